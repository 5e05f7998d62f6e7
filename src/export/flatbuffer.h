/* Writes flatbuffers, the headers of Arrow: small tables, built from the end to the front.
 *
 * A place is counted from the end of the buffer, so that it stays what it is while more is put in front. Children are
 * made before the table that refers to them. */
#ifndef MERIDIAN_EXPORT_FLATBUFFER_H
#define MERIDIAN_EXPORT_FLATBUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t fb_place; /* 0: none */

enum { FB_MAX_FIELDS = 8 };

struct flatbuffer {
    uint8_t *bytes; /* what has been written is at the end: bytes + cap - n */
    size_t n, cap;
    size_t aligned; /* the strictest alignment so far */
    bool failed;    /* out of memory */
    struct {
        uint8_t size; /* 0: the field has its default */
        bool place;
        uint64_t value;
    } fields[FB_MAX_FIELDS]; /* of the table being made */
};

void fb_clear(struct flatbuffer *b); /* keeps the memory */
void fb_free(struct flatbuffer *b);

/* A text with its length in front and a NUL behind. */
fb_place fb_text(struct flatbuffer *b, const char *text);
/* A vector of references. */
fb_place fb_places(struct flatbuffer *b, const fb_place *places, size_t n);
/* A vector of structs of 8-byte numbers, `words` of them each. */
fb_place fb_structs(struct flatbuffer *b, const uint64_t *values, size_t n, size_t words);

/* A table: fields are set in any order between the two. Children must have been made before fb_table(). */
void fb_table(struct flatbuffer *b);
void fb_field(struct flatbuffer *b, unsigned field, uint64_t value, unsigned size);
void fb_child(struct flatbuffer *b, unsigned field, fb_place place); /* 0: none */
fb_place fb_table_end(struct flatbuffer *b);

/* Puts the reference to the root in front; the buffer is complete, at fb_bytes(), its length a multiple of 8. */
void fb_finish(struct flatbuffer *b, fb_place root);
const uint8_t *fb_bytes(const struct flatbuffer *b);

#endif
