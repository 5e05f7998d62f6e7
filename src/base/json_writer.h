/* Writes JSON: commas, quotes and escapes. What goes out is valid UTF-8 whatever comes in: bytes that are not become
 * U+FFFD.
 *
 *     struct json_writer w = {.put = to_file, .ctx = f, .spaced = true};
 *     json_put_open(&w, '{');
 *     json_put_key(&w, "name");
 *     json_put_str(&w, name);        // {"name": "…"}
 *     json_put_close(&w, '}');
 *     return w.rc;
 *
 * Who calls keeps keys and values in order; there is no stack. */
#ifndef MERIDIAN_BASE_JSON_WRITER_H
#define MERIDIAN_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    int (*put)(void *ctx, const void *bytes, size_t len); /* 0, or what `rc` becomes */
    void *ctx;
    bool spaced; /* a blank behind each comma and colon */
    int rc;      /* of the first put that failed; nothing is put after it */
    /* its own */
    bool comma;      /* one stands before the next value */
    const char *gap; /* white space before the next value */
};

void json_put_open(struct json_writer *w, char bracket);
void json_put_close(struct json_writer *w, char bracket);
void json_put_key(struct json_writer *w, const char *key);
void json_put_key_bytes(struct json_writer *w, const void *key, size_t len);

void json_put_str(struct json_writer *w, const char *text); /* NULL: null */
void json_put_bytes(struct json_writer *w, const void *text, size_t len);
void json_put_int(struct json_writer *w, int64_t v);
void json_put_uint(struct json_writer *w, uint64_t v);
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);

/* A value that is JSON already, a number that somebody has formatted for instance. */
void json_put_raw(struct json_writer *w, const void *json, size_t len);

/* White space in place of the blank before the next value or key, or before the next bracket that closes. */
void json_put_break(struct json_writer *w, const char *space);

/* A string in pieces of whole characters: json_put_escaped() between these two. */
void json_put_text_open(struct json_writer *w);
void json_put_text_close(struct json_writer *w);
void json_put_escaped(struct json_writer *w, const void *text, size_t len);

#endif
