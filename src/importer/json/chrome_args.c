/* Args of events: text in the file until a query asks, then a value a leaf. */
#include "importer/json/chrome_json.h"
#include "importer/track/slice_tracker.h"

#include <stdio.h>

enum { MAX_NESTING = 256, FEW_ARGS = 32 /* are looked through faster than a map is made */ };

/* Where a value goes: its name with array indices and without, grown and cut as the walk goes. */
struct args_walk {
    struct importer *im;
    struct arg_list *out;
    VEC(char)
    key;
    VEC(char)
    flat;
    struct u64map first;   /* strid of a key -> index into *out; once there are many */
    struct u64map indices; /* strid of an array's key -> its next index */
    size_t in_first;       /* of *out, how many are in `first` */
    bool stopped;          /* what comes is malformed */
    bool failed;
};

static bool append(struct args_walk *w, const char *text, size_t n, bool flat_too)
{
    if (!vec_reserve(&w->key, w->key.n + n) || (flat_too && !vec_reserve(&w->flat, w->flat.n + n))) {
        w->failed = true;
        return false;
    }
    memcpy(w->key.p + w->key.n, text, n);
    w->key.n = arg_key_cut(w->key.n + n);
    if (flat_too) {
        memcpy(w->flat.p + w->flat.n, text, n);
        w->flat.n = arg_key_cut(w->flat.n + n);
    }
    return true;
}

/* "." and the member's key. */
static bool append_member(struct args_walk *w, struct json_text key)
{
    size_t n = key.raw.len;
    if (!append(w, ".", 1, true) || !vec_reserve(&w->key, w->key.n + n) || !vec_reserve(&w->flat, w->flat.n + n)) {
        w->failed = true;
        return false;
    }
    char *to = w->key.p + w->key.n;
    if (key.escaped)
        n = json_unescape(key, JSON_TOLERANT, to);
    else
        memcpy(to, key.raw.p, n);
    memcpy(w->flat.p + w->flat.n, to, n);
    w->key.n = arg_key_cut(w->key.n + n);
    w->flat.n = arg_key_cut(w->flat.n + n);
    return true;
}

static strid interned(struct args_walk *w, const char *p, size_t n)
{
    return strpool_intern(&w->im->st->strings, p, n);
}

/* The arg of a key that is there already, else NULL. */
static struct arg *known_arg(struct args_walk *w, strid key)
{
    struct arg_list *out = w->out;
    if (out->n <= FEW_ARGS) {
        for (size_t i = 0; i < out->n; i++)
            if (out->p[i].key == key)
                return &out->p[i];
        return NULL;
    }
    for (; w->in_first < out->n; w->in_first++)
        if (!u64map_get(&w->first, out->p[w->in_first].key) &&
            !u64map_set(&w->first, out->p[w->in_first].key, w->in_first))
            w->failed = true;
    const uint64_t *at = u64map_get(&w->first, key);
    return at ? &out->p[*at] : NULL;
}

static void add_leaf(struct args_walk *w, enum arg_type type, int64_t word)
{
    struct arg a = {interned(w, w->flat.p, w->flat.n), interned(w, w->key.p, w->key.n), word, (uint8_t)type};
    struct arg *known = known_arg(w, a.key);
    if (known)
        *known = a;
    else
        arg_list_add(&w->im->st->args, w->out, a.flat_key, a.key, type, word);
}

static void leaf(struct args_walk *w, struct slice value)
{
    struct json_reader r = json_reader(value);
    struct json_number n;
    struct json_text text;
    int literal;
    int64_t v;
    if (value.p[0] == '"') {
        if (!json_string(&r, &text))
            return;
        if (!text.escaped) {
            add_leaf(w, ARG_STRING, interned(w, (const char *)text.raw.p, text.raw.len));
            return;
        }
        char *plain = mem_alloc(text.raw.len);
        if (!plain) {
            w->failed = true;
            return;
        }
        size_t len = json_unescape(text, JSON_TOLERANT, plain);
        add_leaf(w, ARG_STRING, interned(w, plain, len));
        mem_free(plain);
    } else if (json_number_of(value, &n)) {
        if (json_number_i64(&n, false, &v) && v != COL_NULL) /* the one integer that a table cannot hold */
            add_leaf(w, ARG_INT, v);
        else
            add_leaf(w, ARG_REAL, column_f64_word(json_number_f64(&n)));
    } else if (json_literal(&r, &literal) && literal >= 0) {
        add_leaf(w, ARG_BOOL, literal);
    }
}

static void walk(struct args_walk *w, struct slice value, unsigned depth);

/* True when the value that r has passed ends as it should: what is behind counts too. */
static bool ends_well(struct json_reader *r, int close)
{
    int next = json_peek(r);
    return next == ',' || next == close;
}

static void walk_object(struct args_walk *w, struct slice value, unsigned depth)
{
    struct json_reader r = json_reader(value);
    struct json_text key;
    struct slice inner;
    size_t key_n = w->key.n, flat_n = w->flat.n;
    r.lenient = true;
    if (!json_enter(&r, '{'))
        return;
    while (!w->stopped && !w->failed && json_member(&r, &key) && json_skip(&r, &inner) && ends_well(&r, '}')) {
        if (append_member(w, key))
            walk(w, inner, depth + 1);
        w->key.n = key_n;
        w->flat.n = flat_n;
    }
    w->stopped |= r.depth != 0;
}

static void walk_array(struct args_walk *w, struct slice value, unsigned depth)
{
    struct json_reader r = json_reader(value);
    struct slice inner;
    size_t key_n = w->key.n;
    uint64_t array = interned(w, w->key.p, key_n);
    r.lenient = true;
    if (!json_enter(&r, '['))
        return;
    while (!w->stopped && !w->failed && json_element(&r) && json_skip(&r, &inner) && ends_well(&r, ']')) {
        uint64_t *next = u64map_put(&w->indices, array, NULL);
        if (!next) {
            w->failed = true;
            return;
        }
        char index[24];
        int n = snprintf(index, sizeof index, "[%llu]", (unsigned long long)(*next)++);
        if (append(w, index, (size_t)n, false))
            walk(w, inner, depth + 1);
        w->key.n = key_n;
    }
    w->stopped |= r.depth != 0;
}

static void walk(struct args_walk *w, struct slice value, unsigned depth)
{
    if (depth > MAX_NESTING)
        return;
    if (value.p[0] == '{')
        walk_object(w, value, depth);
    else if (value.p[0] == '[')
        walk_array(w, value, depth);
    else
        leaf(w, value);
}

/* Arrays that are there already go on where they ended. */
static void note_indices(struct args_walk *w)
{
    for (size_t i = 0; i < w->out->n && !w->failed; i++) {
        struct slice key = strpool_view(&w->im->st->strings, w->out->p[i].key);
        const uint8_t *end = key.p + key.len;
        for (const uint8_t *p = key.p; (p = memchr(p, '[', (size_t)(end - p))); p++) {
            uint64_t index = 0;
            const uint8_t *d = p + 1;
            for (; d < end && *d >= '0' && *d <= '9' && index < UINT32_MAX; d++)
                index = index * 10 + (uint64_t)(*d - '0');
            if (d == p + 1 || d == end || *d != ']')
                continue;
            uint64_t *next = u64map_put(&w->indices, interned(w, (const char *)key.p, (size_t)(p - key.p)), NULL);
            if (!next)
                w->failed = true;
            else if (*next <= index)
                *next = index + 1;
        }
    }
}

void chrome_args_append(struct importer *im, const char *prefix, struct slice value, bool merge, struct arg_list *out)
{
    struct args_walk w = {.im = im, .out = out};
    if (merge)
        note_indices(&w);
    if (append(&w, prefix, strlen(prefix), true))
        walk(&w, value, 0);
    if (w.failed)
        im->failed = true;
    vec_free(&w.key);
    vec_free(&w.flat);
    u64map_free(&w.first);
    u64map_free(&w.indices);
}

/* Whether a value, or anything in it, is there: null, {} and [] are not. */
static bool any(struct slice value, unsigned depth)
{
    struct json_reader r = json_reader(value);
    struct json_text key;
    struct slice inner;
    char open = (char)value.p[0];
    if (open != '{' && open != '[')
        return open != 'n';
    if (depth > MAX_NESTING)
        return false;
    r.lenient = true;
    if (!json_enter(&r, open))
        return false;
    int close = open == '{' ? '}' : ']';
    while ((open == '{' ? json_member(&r, &key) : json_element(&r)) && json_skip(&r, &inner) && ends_well(&r, close))
        if (any(inner, depth + 1))
            return true;
    return false;
}

bool chrome_args_any(struct slice object)
{
    return any(object, 0);
}

static void decode(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)aux;
    chrome_args_append(ctx, "args", bytes, false, out);
}

void chrome_args_open(struct importer *im)
{
    args_set_decoder(&im->st->args, ARGS_KIND_JSON, decode, im);
}

argset chrome_args_set(struct chrome *c, const struct chrome_event *e)
{
    if (!(e->flags & CHROME_HAS_ARGS) || e->flags & CHROME_ARGS_EMPTY)
        return ARGSET_NONE;
    return args_intern_bytes(&c->im->st->args, ARGS_KIND_JSON, 0, e->args, true, false, NULL);
}

void chrome_add_args(struct chrome *c, const struct chrome_event *e, uint32_t slice)
{
    struct storage *st = c->im->st;
    if (!(e->flags & CHROME_HAS_ARGS) || e->flags & CHROME_ARGS_EMPTY)
        return;
    argset have = ROW_ARGS(st, slice, arg_set_id, slice), set;
    if (argset_is_none(have)) {
        set = chrome_args_set(c, e);
    } else {
        struct arg_list all = {0};
        args_values(&st->args, have, &all);
        chrome_args_append(c->im, "args", e->args, true, &all);
        set = args_intern(&st->args, all.p, all.n);
        arg_list_free(&all);
    }
    if (!argset_is_none(set))
        ROW_SET_ARGS(st, slice, arg_set_id, slice, set);
}
