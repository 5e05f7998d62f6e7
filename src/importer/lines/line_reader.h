/* Cuts a file that comes in pieces into its lines. */
#ifndef MERIDIAN_IMPORTER_LINES_LINE_READER_H
#define MERIDIAN_IMPORTER_LINES_LINE_READER_H

#include "base/slice.h"
#include "base/vec.h"

#include <stdint.h>

/* One line without its line feed. `end` is the offset in the file of the byte behind the line feed; `in_place`: the
 * bytes lie in the piece that was fed, else they are gone after the call. False ends the reading. */
typedef bool (*line_fn)(void *ctx, struct slice line, int64_t end, bool in_place);

struct line_reader {
    line_fn each;
    void *ctx;
    int64_t at; /* offset of the next byte that is fed */
    bool begun; /* the first line has been given */
    bool ended; /* `each` wants no more */
    VEC(uint8_t)
    tail; /* of a line whose end has not come yet */
};

/* False when out of memory. */
bool line_reader_feed(struct line_reader *r, struct slice bytes);
/* Gives what came after the last line feed, if anything did, as a line. */
void line_reader_end(struct line_reader *r);
void line_reader_free(struct line_reader *r);

/* The next line of text in memory, without its line feed; false at the end. *fed (may be NULL): it had one. */
bool line_next(struct slice *text, struct slice *line, bool *fed);

/* The next word, between spaces, taken off the text; empty at its end. */
struct slice next_word(struct slice *text);

/* Without what stands at both ends: spaces and tabs; the second any white space. */
struct slice trim_blanks(struct slice s);
struct slice trim_space(struct slice s);

static inline bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}
static inline bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline struct slice slice_from(struct slice s, size_t at)
{
    return slice_of(s.p + at, s.len - at);
}
static inline struct slice slice_to(struct slice s, size_t end)
{
    return slice_of(s.p, end);
}

/* Whole numbers that are nothing else: an optional sign (the first), hexadecimal digits with an optional 0x (the
 * second). False when they do not fit, too. */
bool number_decimal(struct slice s, int64_t *value);
bool number_hex(struct slice s, uint64_t *value);
/* A number as strtod reads it, of a whole text. */
bool number_real(struct slice s, double *value);

#endif
