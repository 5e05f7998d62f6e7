/* Memory of the codes of sealed chunks. For column*.c only. */
#ifndef MERIDIAN_STORAGE_COLUMN_CODES_H
#define MERIDIAN_STORAGE_COLUMN_CODES_H

#include "storage/column.h"

/* NULL when out of memory. */
void *column_codes_alloc(struct spill *spill, size_t bytes);

/* Gives back the codes of a chunk, which stays as it is otherwise. */
void column_codes_free(struct spill *spill, const struct col_chunk *k);

/* Packs COL_CHUNK_ROWS words that are a sequence, each one more than the one before, for next to nothing. False when
 * they are none: *k is as it was. */
bool column_pack_sequence(const int64_t *v, enum col_type type, struct col_chunk *k);

/* Packs COL_CHUNK_ROWS words, not all one, into blocks at once. False when that saves little, or when there is no
 * memory: *k is as it was. */
bool column_pack_blocks(const int64_t *v, enum col_type type, struct col_chunk *k, struct spill *spill);

/* Packs chunks that are old enough into blocks, where that saves memory. */
void column_settle(struct column *c);

#endif
