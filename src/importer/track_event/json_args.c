/* Owns reading JSON texts into args: checked whole first, then written. */
#include "importer/track_event/json_args.h"

#include "storage/column.h"

#include <stdlib.h>

struct json {
    const uint8_t *p, *end;
    struct arg_writer *w; /* NULL while checking */
};

static bool value(struct json *j, unsigned depth);

static void skip_space(struct json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
        j->p++;
}

static bool take(struct json *j, char c)
{
    skip_space(j);
    if (j->p == j->end || *j->p != (uint8_t)c)
        return false;
    j->p++;
    return true;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

static bool hex4(struct json *j, uint32_t *c)
{
    *c = 0;
    if (j->end - j->p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        uint8_t d = *j->p++;
        uint32_t v = d >= '0' && d <= '9' ? d - 48u : (d | 32u) >= 'a' && (d | 32u) <= 'f' ? (d | 32u) - 'a' + 10u : 16;
        if (v > 15)
            return false;
        *c = *c << 4 | v;
    }
    return true;
}

/* Reads a string, the quote still to come; writes at most cap bytes of it. */
static bool string(struct json *j, char *out, size_t cap, size_t *len)
{
    *len = 0;
    if (!take(j, '"'))
        return false;
    while (j->p < j->end && *j->p != '"') {
        char c[4];
        size_t n = 1;
        c[0] = (char)*j->p++;
        if (c[0] == '\\') {
            static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
            if (j->p == j->end)
                return false;
            uint8_t e = *j->p++;
            const char *at = e ? strchr(from, e) : NULL;
            uint32_t code, low;
            if (at) {
                c[0] = to[at - from];
            } else if (e == 'u' && hex4(j, &code)) {
                if (code >= 0xd800 && code < 0xdc00 && j->end - j->p >= 6 && j->p[0] == '\\' && j->p[1] == 'u') {
                    j->p += 2;
                    if (!hex4(j, &low))
                        return false;
                    code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
                }
                n = put_utf8(c, code);
            } else {
                return false;
            }
        }
        if (*len + n <= cap) {
            memcpy(out + *len, c, n);
            *len += n;
        }
    }
    return take(j, '"');
}

static bool string_value(struct json *j)
{
    char small[256];
    size_t n, cap = j->w ? (size_t)(j->end - j->p) : 0;
    char *text = cap <= sizeof small ? small : mem_alloc(cap);
    if (!text)
        return false;
    bool ok = string(j, text, cap, &n);
    if (ok && j->w)
        arg_writer_add_bytes(j->w, ARG_STRING, slice_of(text, n));
    if (text != small)
        mem_free(text);
    return ok;
}

static bool number(struct json *j)
{
    char text[64];
    size_t n = 0;
    bool real = false;
    while (j->p < j->end && n < sizeof text - 1 && *j->p && strchr("+-.0123456789eE", *j->p)) {
        real |= *j->p == '.' || *j->p == 'e' || *j->p == 'E';
        text[n++] = (char)*j->p++;
    }
    text[n] = 0;
    char *end;
    double d = strtod(text, &end);
    if (!n || *end)
        return false;
    if (!j->w)
        return true;
    if (real || d < -9.3e18 || d > 1.85e19)
        arg_writer_add(j->w, ARG_REAL, column_f64_word(d));
    else if (d > 9.2e18)
        arg_writer_add(j->w, ARG_UINT, (int64_t)strtoull(text, NULL, 10));
    else
        arg_writer_add(j->w, ARG_INT, strtoll(text, NULL, 10));
    return true;
}

static bool literal(struct json *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
        return false;
    j->p += n;
    return true;
}

static bool object(struct json *j, unsigned depth)
{
    if (take(j, '}'))
        return true;
    do {
        char name[256];
        size_t n;
        skip_space(j);
        if (!string(j, name, sizeof name, &n) || !take(j, ':'))
            return false;
        struct arg_mark m = {0};
        if (j->w)
            m = arg_writer_push(j->w, name, n);
        if (!value(j, depth + 1))
            return false;
        if (j->w)
            arg_writer_pop(j->w, m);
    } while (take(j, ','));
    return take(j, '}');
}

static bool array(struct json *j, unsigned depth)
{
    uint64_t index = j->w ? arg_writer_array_index(j->w) : 0;
    if (take(j, ']'))
        return true;
    do {
        struct arg_mark m = {0};
        size_t before = j->w ? j->w->out->n : 0;
        if (j->w)
            m = arg_writer_push_index(j->w, index);
        if (!value(j, depth + 1))
            return false;
        if (j->w) {
            arg_writer_pop(j->w, m);
            index += j->w->out->n != before;
        }
    } while (take(j, ','));
    if (j->w)
        arg_writer_array_set(j->w, index);
    return take(j, ']');
}

static bool value(struct json *j, unsigned depth)
{
    skip_space(j);
    if (j->p == j->end || depth > ARG_MAX_DEPTH)
        return false;
    switch (*j->p) {
    case '{':
        j->p++;
        return object(j, depth);
    case '[':
        j->p++;
        return array(j, depth);
    case '"':
        return string_value(j);
    case 't':
    case 'f': {
        bool b = *j->p == 't';
        if (!literal(j, b ? "true" : "false"))
            return false;
        if (j->w)
            arg_writer_add(j->w, ARG_BOOL, b);
        return true;
    }
    case 'n':
        return literal(j, "null");
    default:
        return number(j);
    }
}

void json_args_write(struct arg_writer *w, struct slice json)
{
    if (!json.len) {
        arg_writer_add_bytes(w, ARG_JSON, json);
        return;
    }
    struct json j = {json.p, json.p + json.len, NULL};
    bool ok = value(&j, 0);
    skip_space(&j);
    if (!ok || j.p != j.end) {
        arg_writer_add_bytes(w, ARG_JSON, json);
        return;
    }
    j = (struct json){json.p, json.p + json.len, w};
    value(&j, 0);
}
