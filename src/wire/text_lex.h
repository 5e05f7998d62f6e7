/* The words of protobuf text format, for those that parse it (text_parse.c, trace_text.c).
 *
 * The first mistake latches `failed`; the error says "line:column: what". */
#ifndef MERIDIAN_WIRE_TEXT_LEX_H
#define MERIDIAN_WIRE_TEXT_LEX_H

#include "base/error.h"
#include "wire/pb_writer.h"

struct text_lexer {
    const char *p, *end;
    const char *line_start;
    unsigned line;
    struct error *err;
    bool failed;
};

static inline struct text_lexer text_lexer(struct slice text, struct error *err)
{
    const char *p = (const char *)text.p;
    return (struct text_lexer){.p = p, .end = p ? p + text.len : p, .line_start = p, .line = 1, .err = err};
}

/* A mistake at `at`, which is on the line that is being read. */
void text_fail(struct text_lexer *s, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Steps over blanks and comments. */
void text_skip_space(struct text_lexer *s);

/* Is `c` next? text_accept() steps over it. */
bool text_peek(struct text_lexer *s, char c);
bool text_accept(struct text_lexer *s, char c);

/* What is next, for a message. */
const char *text_here(struct text_lexer *s, char buf[8]);

/* A word: identifier or number. Empty when there is none. */
struct slice text_next_word(struct text_lexer *s);

/* One string, or several in a row, without their quotes, appended to `w`. */
void text_string(struct text_lexer *s, struct pb_writer *w);

/* An integer in [min, max]; as two's complement. */
uint64_t text_int(struct text_lexer *s, int64_t min, uint64_t max);
double text_double(struct text_lexer *s);
bool text_bool(struct text_lexer *s);

uint64_t text_zigzag(uint64_t v);

/* The same the other way: a string in quotes with its escapes, and the shortest number that reads back the same. */
void text_put_quoted(struct pb_writer *w, struct slice s);
void text_put_double(struct pb_writer *w, double v, bool single);
void text_put_indent(struct pb_writer *w, unsigned indent);
void text_printf(struct pb_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
