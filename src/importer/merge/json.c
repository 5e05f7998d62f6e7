/* Reads a small JSON document into a tree, with a limit on depth. */
#include "importer/merge/json.h"

#include "base/json_reader.h"

enum { MAX_DEPTH = 64 };

struct builder {
    struct json_reader r;
    struct arena *arena;
    bool no_memory;
};

static struct json *value(struct builder *b, unsigned depth);

/* A string without its escapes and NUL-terminated; NULL when it has none. */
static const char *plain(struct builder *b, struct json_text t)
{
    char *text = arena_alloc_bytes(b->arena, t.raw.len + 1); /* escapes only get shorter */
    if (!text) {
        b->no_memory = true;
        return NULL;
    }
    size_t n = json_unescape(t, JSON_STRICT, text);
    if (n == SIZE_MAX || memchr(text, 0, n)) {
        b->r.p = t.raw.p;
        json_fail(&b->r, "a string has a character or an escape that is not JSON");
        return NULL;
    }
    text[n] = '\0';
    return text;
}

static bool object(struct builder *b, struct json *j, unsigned depth)
{
    struct json **link = &j->first;
    struct json_text key;
    json_enter(&b->r, '{');
    while (json_member(&b->r, &key)) {
        const char *name = plain(b, key);
        *link = name ? value(b, depth + 1) : NULL;
        if (!*link)
            return false;
        (*link)->key = name;
        link = &(*link)->next;
    }
    return b->r.status == JSON_OK;
}

static bool array(struct builder *b, struct json *j, unsigned depth)
{
    struct json **link = &j->first;
    json_enter(&b->r, '[');
    while (json_element(&b->r)) {
        *link = value(b, depth + 1);
        if (!*link)
            return false;
        link = &(*link)->next;
    }
    return b->r.status == JSON_OK;
}

static bool number(struct builder *b, struct json *j)
{
    struct json_number n;
    if (!json_read_number(&b->r, &n))
        return false;
    j->type = n.integer ? JSON_INT : JSON_REAL;
    j->too_large = n.integer && !json_number_i64(&n, false, &j->number);
    if (j->too_large)
        j->number = n.negative ? INT64_MIN : INT64_MAX;
    j->text = arena_strndup(b->arena, n.text.p, n.text.len);
    b->no_memory |= !j->text;
    return j->text;
}

static bool literal(struct builder *b, struct json *j)
{
    int v;
    if (!json_literal(&b->r, &v))
        return false;
    j->type = v < 0 ? JSON_NULL : JSON_BOOL;
    j->number = v > 0;
    return true;
}

static bool string(struct builder *b, struct json *j)
{
    struct json_text t;
    j->type = JSON_STRING;
    j->text = json_string(&b->r, &t) ? plain(b, t) : NULL;
    return j->text;
}

static struct json *value(struct builder *b, unsigned depth)
{
    struct json *j = arena_zalloc(b->arena, sizeof *j);
    int c = json_peek(&b->r);
    bool ok;
    if (!j || depth > MAX_DEPTH) {
        b->no_memory |= !j;
        json_fail(&b->r, "more than 64 levels of objects and arrays");
        return NULL;
    }
    if (c == '{' || c == '[') {
        j->type = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        ok = c == '{' ? object(b, j, depth) : array(b, j, depth);
    } else if (c == '"') {
        ok = string(b, j);
    } else if (c == 't' || c == 'f' || c == 'n') {
        ok = literal(b, j);
    } else {
        ok = c == '-' || (c >= '0' && c <= '9') ? number(b, j) : json_fail(&b->r, "a value is expected");
    }
    return ok ? j : NULL;
}

struct json *json_parse(struct arena *a, struct slice text, struct error *err)
{
    struct builder b = {.r = json_reader(text), .arena = a};
    b.r.whole = true;
    struct json *j = value(&b, 0);
    if (j && (json_peek(&b.r) != 0 || b.r.p < b.r.end))
        json_fail(&b.r, "something follows the document");
    if (b.no_memory)
        error_set(err, -MRD_ENOMEM, "out of memory");
    else if (b.r.status != JSON_OK || !j)
        error_set(err, -MRD_EFORMAT, "JSON: %s at byte %zu", json_error_text(&b.r), (size_t)(b.r.p - text.p));
    else
        return j;
    return NULL;
}

const struct json *json_get(const struct json *j, const char *key)
{
    const struct json *found = NULL;
    for (const struct json *c = j && j->type == JSON_OBJECT ? j->first : NULL; c; c = c->next)
        if (strcmp(c->key, key) == 0)
            found = c;
    return found;
}
