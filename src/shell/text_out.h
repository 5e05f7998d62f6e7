/* Buffered text to a file descriptor. On a terminal, control characters but line ends and tabs become question marks: a
 * name in a trace could else set titles, move the cursor, or overwrite what is shown. */
#ifndef MERIDIAN_SHELL_TEXT_OUT_H
#define MERIDIAN_SHELL_TEXT_OUT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ticker;

struct text_out {
    int fd;
    struct ticker *ticker; /* ended by the first write; NULL: none */
    size_t n;
    bool terminal; /* it is one: controls in names of a trace must not reach it */
    bool half;     /* the last byte written began a character of two bytes that may be a control */
    int error;     /* of the first write that failed, as error_set() wants it; 0: none */
    char why[100]; /* what it said */
    char buf[1 << 16];
};

void out_init(struct text_out *o, int fd);
void out_bytes(struct text_out *o, const void *p, size_t len);
void out_text(struct text_out *o, const char *s);
void out_int(struct text_out *o, int64_t v);
void out_printf(struct text_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_repeat(struct text_out *o, char c, size_t n);

/* Writes what is buffered. Fails when this or an earlier write has. */
int out_flush(struct text_out *o, struct error *err);

static inline void out_char(struct text_out *o, char c)
{
    if (o->n == sizeof o->buf)
        out_flush(o, NULL);
    o->buf[o->n++] = c;
}

/* out_bytes() as writers of JSON call it (base/json_writer.h): errors show in out_flush(). */
int out_put(void *o, const void *bytes, size_t len);

/* A JSON string: quoted, escaped; bytes that are not UTF-8 become U+FFFD. */
void out_json_string(struct text_out *o, const char *s, size_t len);
/* A cell of CSV (RFC 4180): quoted where it must be; the empty text too, because nothing at all stands for NULL. */
void out_csv_text(struct text_out *o, const char *text, size_t len);

#endif
