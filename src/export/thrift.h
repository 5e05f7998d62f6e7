/* Thrift's compact protocol, which the headers of Parquet are written in. */
#ifndef MERIDIAN_EXPORT_THRIFT_H
#define MERIDIAN_EXPORT_THRIFT_H

#include "base/vec.h"

#include <stdint.h>

enum thrift_type { THRIFT_I32 = 5, THRIFT_I64, THRIFT_BINARY = 8, THRIFT_LIST, THRIFT_STRUCT = 12 };
enum { THRIFT_DEPTH = 8 };

struct thrift {
    VEC(uint8_t) out;
    int last[THRIFT_DEPTH]; /* number of the field before, of each struct that is open */
    int depth;
    bool failed; /* out of memory */
};

void thrift_bytes(struct thrift *t, const void *bytes, size_t n);
void thrift_varint(struct thrift *t, uint64_t v);

/* Fields in the order of their numbers. thrift_begin() opens the outermost struct or one of a list. */
void thrift_begin(struct thrift *t);
void thrift_end(struct thrift *t);
void thrift_i32(struct thrift *t, int field, int32_t v);
void thrift_i64(struct thrift *t, int field, int64_t v);
void thrift_binary(struct thrift *t, int field, const void *bytes, size_t n);
void thrift_struct(struct thrift *t, int field); /* to be ended */
/* `n` elements follow: structs, thrift_element_i32(), thrift_element_text(). */
void thrift_list(struct thrift *t, int field, enum thrift_type of, size_t n);
void thrift_element_i32(struct thrift *t, int32_t v);
void thrift_element_text(struct thrift *t, const char *text);

#endif
