/* Buffered text to a file descriptor. */
#include "shell/text_out.h"

#include "base/file.h"
#include "base/json_writer.h"
#include "shell/ticker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void out_init(struct text_out *o, int fd)
{
    o->fd = fd;
    o->ticker = NULL;
    o->n = 0;
    o->half = false;
    o->terminal = isatty(fd) == 1;
    o->error = 0;
}

/* The controls beyond ASCII are U+0080 to U+009F: 0xc2 and a byte from 0x80 to 0x9f, of which the second is replaced;
 * what is left is no UTF-8, and no control to a terminal. */
static void blank_controls(struct text_out *o)
{
    for (size_t i = 0; i < o->n; i++) {
        unsigned char c = (unsigned char)o->buf[i];
        bool second = o->half && c >= 0x80 && c < 0xa0;
        if (second || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            o->buf[i] = '?';
        o->half = c == 0xc2;
    }
}

int out_flush(struct text_out *o, struct error *err)
{
    struct error e = {0};
    if (o->n)
        ticker_stop(o->ticker);
    if (o->terminal)
        blank_controls(o);
    if (o->n && !o->error) {
        int rc = file_write_all(o->fd, o->buf, o->n, &e);
        if (rc < 0) {
            o->error = rc;
            snprintf(o->why, sizeof o->why, "%.99s", e.text);
        }
    }
    if (o->error)
        error_set(err, o->error, "cannot write the answer: %s", o->why);
    o->n = 0;
    return o->error;
}

void out_bytes(struct text_out *o, const void *p, size_t len)
{
    const char *s = p;
    while (len) {
        size_t room = sizeof o->buf - o->n;
        size_t take = len < room ? len : room;
        memcpy(o->buf + o->n, s, take);
        o->n += take;
        s += take;
        len -= take;
        if (o->n == sizeof o->buf)
            out_flush(o, NULL);
    }
}

void out_text(struct text_out *o, const char *s)
{
    out_bytes(o, s, strlen(s));
}

void out_int(struct text_out *o, int64_t v)
{
    char digits[24];
    char *p = digits + sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0)
        *--p = '-';
    out_bytes(o, p, (size_t)(digits + sizeof digits - p));
}

void out_printf(struct text_out *o, const char *fmt, ...)
{
    char text[1024]; /* %f of DBL_MAX has 316 digits */
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n > 0)
        out_bytes(o, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void out_repeat(struct text_out *o, char c, size_t n)
{
    while (n--)
        out_char(o, c);
}

int out_put(void *o, const void *bytes, size_t len)
{
    out_bytes(o, bytes, len);
    return 0;
}

void out_json_string(struct text_out *o, const char *s, size_t len)
{
    struct json_writer w = {.put = out_put, .ctx = o};
    json_put_bytes(&w, s, len);
}

void out_csv_text(struct text_out *o, const char *text, size_t len)
{
    bool plain = len > 0 && text[0] != ' ' && text[len - 1] != ' ';
    for (size_t i = 0; i < len && plain; i++)
        plain = text[i] != '"' && text[i] != ',' && text[i] != '\n' && text[i] != '\r';
    if (plain) {
        out_bytes(o, text, len);
        return;
    }
    out_char(o, '"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            out_char(o, '"');
        out_char(o, text[i]);
    }
    out_char(o, '"');
}
