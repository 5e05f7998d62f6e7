/* Writes JSON. */
#include "base/json_writer.h"

#include "base/decimal.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static void put(struct json_writer *w, const void *bytes, size_t len)
{
    if (len && !w->rc)
        w->rc = w->put(w->ctx, bytes, len);
}

static void put_break(struct json_writer *w)
{
    if (w->gap)
        put(w, w->gap, strlen(w->gap));
    w->gap = NULL;
}

/* What stands before a value or a key. */
static void begin(struct json_writer *w)
{
    if (w->comma)
        put(w, ",", 1);
    if (w->comma && w->spaced && !w->gap)
        put(w, " ", 1);
    put_break(w);
    w->comma = true;
}

void json_put_open(struct json_writer *w, char bracket)
{
    begin(w);
    put(w, &bracket, 1);
    w->comma = false;
}

void json_put_close(struct json_writer *w, char bracket)
{
    put_break(w);
    put(w, &bracket, 1);
    w->comma = true;
}

void json_put_key_bytes(struct json_writer *w, const void *key, size_t len)
{
    json_put_bytes(w, key, len);
    put(w, ": ", w->spaced ? 2 : 1);
    w->comma = false;
}

void json_put_key(struct json_writer *w, const char *key)
{
    json_put_key_bytes(w, key, strlen(key));
}

void json_put_text_open(struct json_writer *w)
{
    begin(w);
    put(w, "\"", 1);
}

void json_put_text_close(struct json_writer *w)
{
    put(w, "\"", 1);
}

void json_put_bytes(struct json_writer *w, const void *text, size_t len)
{
    json_put_text_open(w);
    json_put_escaped(w, text, len);
    json_put_text_close(w);
}

void json_put_str(struct json_writer *w, const char *text)
{
    if (text)
        json_put_bytes(w, text, strlen(text));
    else
        json_put_null(w);
}

static void put_word(struct json_writer *w, const char *word)
{
    begin(w);
    put(w, word, strlen(word));
}

void json_put_int(struct json_writer *w, int64_t v)
{
    char digits[DECIMAL_SIZE];
    begin(w);
    put(w, digits, decimal_put_i64(v, digits));
}

void json_put_uint(struct json_writer *w, uint64_t v)
{
    char digits[DECIMAL_SIZE];
    begin(w);
    put(w, digits, decimal_put_u64(v, digits));
}

void json_put_bool(struct json_writer *w, bool v)
{
    put_word(w, v ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
    put_word(w, "null");
}

void json_put_raw(struct json_writer *w, const void *json, size_t len)
{
    const char *s = json;
    begin(w);
    while (len && !w->rc) {
        size_t good = utf8_prefix(s, len);
        put(w, s, good);
        if (good < len) {
            put(w, "\xef\xbf\xbd", 3);
            good++;
        }
        s += good;
        len -= good;
    }
}

void json_put_break(struct json_writer *w, const char *space)
{
    w->gap = space;
}

/* The escape of a byte that does not stand for itself, into `text`. */
static void escape(unsigned char c, char text[8])
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter behind the backslash */
    for (const char *p = named; *p; p += 2)
        if ((unsigned char)*p == c) {
            snprintf(text, 8, "\\%c", p[1]);
            return;
        }
    snprintf(text, 8, "\\u%04x", c < 0x80 ? c : 0xfffd);
}

/* How many bytes at the beginning of s[0, len) stand in a JSON string as they are. */
static size_t plain_prefix(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len) {
        unsigned char c = (unsigned char)s[n];
        size_t step = c >= 0x80 ? utf8_sequence(s + n, len - n) : c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
        if (!step)
            break;
        n += step;
    }
    return n;
}

void json_put_escaped(struct json_writer *w, const void *text, size_t len)
{
    const char *s = text;
    char code[8];
    for (size_t i = 0; i < len && !w->rc; i++) {
        size_t plain = plain_prefix(s + i, len - i);
        put(w, s + i, plain);
        i += plain;
        if (i < len) {
            escape((unsigned char)s[i], code);
            put(w, code, strlen(code));
        }
    }
}
