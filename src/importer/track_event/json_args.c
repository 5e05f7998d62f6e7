/* Reads JSON texts into args: checked whole first, then written. */
#include "importer/track_event/json_args.h"

#include "base/json_reader.h"
#include "storage/column.h"

struct walk {
    struct json_reader r;
    struct arg_writer *w; /* NULL while checking */
};

/* A string without its escapes: a view of the JSON where it has none, else in `small` or in `owned`, which the caller
 * frees. */
struct plain {
    struct slice text;
    char *owned;
    char small[256];
};

static bool make_plain(struct json_text t, struct plain *out)
{
    out->text = t.raw;
    out->owned = NULL;
    if (!t.escaped)
        return true;
    if (t.raw.len > sizeof out->small && !(out->owned = mem_alloc(t.raw.len)))
        return false;
    char *to = out->owned ? out->owned : out->small;
    size_t n = json_unescape(t, JSON_CONTROLS, to);
    if (n == SIZE_MAX)
        mem_free(out->owned);
    out->text = slice_of(to, n);
    return n != SIZE_MAX;
}

static bool value(struct walk *x, unsigned depth);

static bool string(struct walk *x)
{
    struct json_text t;
    struct plain plain;
    if (!json_string(&x->r, &t) || !make_plain(t, &plain))
        return false;
    if (x->w)
        arg_writer_add_bytes(x->w, ARG_STRING, plain.text);
    mem_free(plain.owned);
    return true;
}

static bool number(struct walk *x)
{
    struct json_number n;
    int64_t v;
    if (!json_read_number(&x->r, &n))
        return false;
    if (!x->w)
        return true;
    if (n.integer && json_number_i64(&n, false, &v))
        arg_writer_add(x->w, ARG_INT, v);
    else if (n.integer && n.exact && !n.negative)
        arg_writer_add(x->w, ARG_UINT, (int64_t)n.whole);
    else
        arg_writer_add(x->w, ARG_REAL, column_f64_word(json_number_f64(&n)));
    return true;
}

static bool literal(struct walk *x)
{
    int v;
    if (!json_literal(&x->r, &v))
        return false;
    if (x->w && v >= 0)
        arg_writer_add(x->w, ARG_BOOL, v);
    return true;
}

static bool object(struct walk *x, unsigned depth)
{
    enum { LONGEST_NAME = 256 };
    struct json_text key;
    struct plain name;
    json_enter(&x->r, '{');
    while (json_member(&x->r, &key)) {
        struct arg_mark m = {0};
        if (!make_plain(key, &name))
            return false;
        if (x->w)
            m = arg_writer_push(x->w, name.text.p, name.text.len < LONGEST_NAME ? name.text.len : LONGEST_NAME);
        mem_free(name.owned);
        if (!value(x, depth + 1))
            return false;
        if (x->w)
            arg_writer_pop(x->w, m);
    }
    return x->r.status == JSON_OK;
}

static bool array(struct walk *x, unsigned depth)
{
    uint64_t index = x->w ? arg_writer_array_index(x->w) : 0;
    json_enter(&x->r, '[');
    while (json_element(&x->r)) {
        struct arg_mark m = {0};
        size_t before = x->w ? x->w->out->n : 0;
        if (x->w)
            m = arg_writer_push_index(x->w, index);
        if (!value(x, depth + 1))
            return false;
        if (x->w) {
            arg_writer_pop(x->w, m);
            index += x->w->out->n != before;
        }
    }
    if (x->w)
        arg_writer_array_set(x->w, index);
    return x->r.status == JSON_OK;
}

static bool value(struct walk *x, unsigned depth)
{
    if (depth > ARG_MAX_DEPTH)
        return false;
    switch (json_peek(&x->r)) {
    case '{':
        return object(x, depth);
    case '[':
        return array(x, depth);
    case '"':
        return string(x);
    case 't':
    case 'f':
    case 'n':
        return literal(x);
    default:
        return number(x);
    }
}

/* One JSON value, and nothing behind it. */
static bool document(struct slice json, struct arg_writer *w)
{
    struct walk x = {json_reader(json), w};
    x.r.whole = true;
    return value(&x, 0) && json_peek(&x.r) == 0 && x.r.p == x.r.end;
}

void json_args_write(struct arg_writer *w, struct slice json)
{
    if (document(json, NULL))
        document(json, w);
    else
        arg_writer_add_bytes(w, ARG_JSON, json);
}
