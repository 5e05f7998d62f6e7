/* Owns a recursive-descent parser of JSON with a limit on depth. */
#include "importer/merge/json.h"

#include <errno.h>
#include <stdlib.h>

enum { MAX_DEPTH = 64 };

struct parser {
    struct arena *arena;
    const char *at;
    const char *end;
    const char *begin;
    struct error *err;
    int depth;
};

static struct json *fail(struct parser *p, const char *what)
{
    error_set(p->err, -MRD_EFORMAT, "JSON: %s at byte %zu", what, (size_t)(p->at - p->begin));
    return NULL;
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_space(p);
    if (p->at >= p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static int hex4(struct parser *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = p->at < p->end ? *p->at++ : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static char *put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 63));
        *out++ = (char)(0x80 | (c >> 6 & 63));
        *out++ = (char)(0x80 | (c & 63));
    }
    return out;
}

/* The text of a string whose opening quote has been read. */
static const char *string(struct parser *p)
{
    const char *from = p->at;
    while (p->at < p->end && *p->at != '"')
        p->at += *p->at == '\\' && p->at + 1 < p->end ? 2 : 1;
    if (p->at >= p->end)
        return (const char *)fail(p, "a string does not end");
    const char *stop = p->at;
    char *text = arena_alloc_bytes(p->arena, (size_t)(stop - from) + 1), *out = text; /* escapes only get shorter */
    if (!text) {
        error_set(p->err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    for (p->at = from; p->at < stop;) {
        char c = *p->at++;
        if (c != '\\') {
            *out++ = c;
            continue;
        }
        static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
        c = *p->at++;
        const char *known = c ? strchr(names, c) : NULL;
        int u = c == 'u' ? hex4(p) : -1;
        if (known) {
            *out++ = values[known - names];
        } else if (u >= 0xd800 && u < 0xdc00 && stop - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u') {
            p->at += 2;
            int low = hex4(p);
            if (low < 0xdc00 || low > 0xdfff)
                return (const char *)fail(p, "a bad escape");
            out = put_utf8(out, 0x10000 + ((unsigned)(u - 0xd800) << 10) + (unsigned)(low - 0xdc00));
        } else if (u > 0) {
            out = put_utf8(out, (unsigned)u);
        } else {
            return (const char *)fail(p, "a bad escape");
        }
    }
    *out = 0;
    p->at = stop + 1;
    return text;
}

static struct json *value(struct parser *p);

static struct json *members(struct parser *p, struct json *j, char close)
{
    struct json **link = &j->first;
    if (++p->depth > MAX_DEPTH)
        return fail(p, "too deep");
    if (!take(p, close)) {
        do {
            const char *key = NULL;
            if (j->type == JSON_OBJECT) {
                if (!take(p, '"'))
                    return fail(p, "a name was expected");
                key = string(p);
                if (!key)
                    return NULL;
                if (!take(p, ':'))
                    return fail(p, "':' was expected");
            }
            *link = value(p);
            if (!*link)
                return NULL;
            (*link)->key = key;
            link = &(*link)->next;
        } while (take(p, ','));
        if (!take(p, close))
            return fail(p, "',' or the end of a list was expected");
    }
    p->depth--;
    return j;
}

static bool word(struct parser *p, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, w, n) != 0)
        return false;
    p->at += n;
    return true;
}

static struct json *number(struct parser *p, struct json *j)
{
    const char *from = p->at;
    bool real = false;
    while (p->at < p->end && *p->at && strchr("+-.0123456789eE", *p->at)) {
        real |= strchr(".eE", *p->at) != NULL;
        p->at++;
    }
    char *text = arena_strndup(p->arena, from, (size_t)(p->at - from)), *end;
    if (!text) {
        error_set(p->err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    errno = 0;
    j->text = text;
    j->type = real ? JSON_REAL : JSON_INT;
    j->number = strtoll(text, &end, 10);
    j->too_large = errno == ERANGE;
    if (real)
        strtod(text, &end);
    return *text && !*end ? j : fail(p, "a bad number");
}

static struct json *value(struct parser *p)
{
    struct json *j = arena_zalloc(p->arena, sizeof *j);
    if (!j) {
        error_set(p->err, -MRD_ENOMEM, "out of memory");
        return NULL;
    }
    if (take(p, '{')) {
        j->type = JSON_OBJECT;
        return members(p, j, '}');
    }
    if (take(p, '[')) {
        j->type = JSON_ARRAY;
        return members(p, j, ']');
    }
    if (take(p, '"')) {
        j->type = JSON_STRING;
        j->text = string(p);
        return j->text ? j : NULL;
    }
    if (word(p, "null"))
        return j;
    j->type = JSON_BOOL;
    if (word(p, "false"))
        return j;
    j->number = 1;
    if (word(p, "true"))
        return j;
    if (p->at < p->end && (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')))
        return number(p, j);
    return fail(p, "a value was expected");
}

struct json *json_parse(struct arena *a, struct slice text, struct error *err)
{
    const char *begin = (const char *)text.p;
    struct parser p = {.arena = a, .at = begin, .end = begin + text.len, .begin = begin, .err = err};
    struct json *j = value(&p);
    if (!j)
        return NULL;
    skip_space(&p);
    return p.at == p.end ? j : fail(&p, "something follows the document");
}

const struct json *json_get(const struct json *j, const char *key)
{
    const struct json *found = NULL;
    for (const struct json *c = j && j->type == JSON_OBJECT ? j->first : NULL; c; c = c->next)
        if (strcmp(c->key, key) == 0)
            found = c;
    return found;
}
