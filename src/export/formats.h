/* The formats that tables are written in. */
#ifndef MERIDIAN_EXPORT_FORMATS_H
#define MERIDIAN_EXPORT_FORMATS_H

#include "export/block.h"
#include "export/buffer.h"

/* What writes a table: begin, blocks, end. */
struct export_writer {
    const struct export_schema *schema;
    struct export_buffer *out;
    void *state; /* the format's own; NULL to begin with */
};

struct export_format {
    const char *name;
    const char *ending;   /* of files */
    const char *describe; /* of schema.sql: the format's name in ClickHouse; NULL: none is written */
    /* Each returns 0 or a negative code of its own; failures of writing stay in `out`. NULL: nothing to do. */
    int (*begin)(struct export_writer *w, struct error *err);
    int (*block)(struct export_writer *w, const struct export_block *block, struct error *err);
    int (*end)(struct export_writer *w, struct error *err);
    void (*free)(struct export_writer *w); /* `state`, on every way out */
};

extern const struct export_format export_formats[];
extern const size_t n_export_formats;

/* NULL: there is none of that name. */
const struct export_format *export_format_find(const char *name);

int export_native_block(struct export_writer *w, const struct export_block *block, struct error *err);
int export_rowbinary_block(struct export_writer *w, const struct export_block *block, struct error *err);
int export_csv_begin(struct export_writer *w, struct error *err);
int export_csv_block(struct export_writer *w, const struct export_block *block, struct error *err);
int export_jsonl_block(struct export_writer *w, const struct export_block *block, struct error *err);

/* A double in the fewest digits that bring it back (with a point or an exponent), its length. */
enum { EXPORT_DOUBLE_SIZE = 32 };
size_t export_double_text(double d, char out[EXPORT_DOUBLE_SIZE]);
size_t export_int_text(int64_t v, char out[EXPORT_DOUBLE_SIZE]);

#endif
