/* Columns of text as codes into a dictionary of the block. */
#include "base/utf8.h"
#include "export/source_private.h"

bool text_valid(struct arena *a, const char *bytes, size_t n, struct export_text *out)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t good = utf8_prefix(bytes, n);
    *out = (struct export_text){bytes, (uint32_t)n};
    if (good == n)
        return true;
    char *copy = n < UINT32_MAX / 3 ? arena_alloc_bytes(a, 3 * n) : NULL;
    if (!copy)
        return false;
    size_t to = good;
    memcpy(copy, bytes, good);
    for (size_t at = good; at < n;) {
        size_t len = utf8_sequence(bytes + at, n - at);
        memcpy(copy + to, len ? bytes + at : replacement, len ? len : 3);
        to += len ? len : 3;
        at += len ? len : 1;
    }
    *out = (struct export_text){copy, (uint32_t)to};
    return true;
}

/* Where the code of a number is kept; NULL when out of memory. */
static uint32_t *code_of(struct code_map *m, size_t number)
{
    if (number >= m->cap) {
        size_t old = m->cap;
        if (!vec_reserve_((void **)&m->codes, &m->cap, sizeof *m->codes, number + 1))
            return NULL;
        memset(m->codes + old, 0, (m->cap - old) * sizeof *m->codes);
    }
    return &m->codes[number];
}

/* The map is shared by all columns: leaves it empty. */
static void unmark(struct code_map *m, struct text_column *t)
{
    for (size_t i = 0; i < t->marked.n; i++)
        m->codes[t->marked.p[i]] = 0;
    vec_clear(&t->marked);
}

static bool add_text(struct text_column *t, uint32_t number, struct export_text text, uint32_t *code)
{
    if (!vec_push(&t->marked, number))
        return false;
    *code = (uint32_t)t->texts.n + 1;
    return vec_push(&t->texts, text);
}

int text_column_strings(struct export_source *s, struct source_column *c, uint32_t n, bool *any_null)
{
    const struct strpool *pool = &s->st->strings;
    bool ok = true;
    vec_clear(&c->text.texts);
    for (uint32_t i = 0; i < n && ok; i++) {
        const strid id = (strid)s->words[i];
        c->null[i] = id == 0;
        c->codes[i] = 0;
        if (id == 0) {
            *any_null = true;
            continue;
        }
        if (i && s->words[i] == s->words[i - 1]) {
            c->codes[i] = c->codes[i - 1];
            continue;
        }
        uint32_t *code = code_of(&s->strings, id);
        ok = code != NULL;
        if (ok && *code == 0) {
            struct export_text text;
            struct slice bytes = strpool_view(pool, id);
            ok = text_valid(&s->texts, (const char *)bytes.p, bytes.len, &text) && add_text(&c->text, id, text, code);
        }
        c->codes[i] = ok ? *code - 1 : 0;
    }
    unmark(&s->strings, &c->text);
    return ok ? 0 : -MRD_ENOMEM;
}

static int append(void *ctx, const void *bytes, size_t n)
{
    struct export_source *s = ctx;
    if (!vec_reserve(&s->text, s->text.n + n))
        return -MRD_ENOMEM;
    memcpy(s->text.p + s->text.n, bytes, n);
    s->text.n += n;
    return 0;
}

/* The JSON of a set, in the block's arena. 1, 0: it has no values; negative. */
static int make_args(struct export_source *s, argset set, struct export_text *out)
{
    struct json_writer w = {.put = append, .ctx = s};
    vec_clear(&s->text);
    int rc = args_json_put(&s->json, s->st, set, &w);
    if (rc < 1 || w.rc < 0 || s->text.n > UINT32_MAX)
        return rc < 1 ? rc : -MRD_ENOMEM;
    char *copy = arena_alloc_bytes(&s->texts, s->text.n);
    if (!copy)
        return -MRD_ENOMEM;
    memcpy(copy, s->text.p, s->text.n);
    *out = (struct export_text){copy, (uint32_t)s->text.n};
    return 1;
}

int text_column_args(struct export_source *s, struct source_column *c, uint32_t n, bool *any_null)
{
    int rc = 0;
    argset last = ARGSET_NONE;
    vec_clear(&c->text.texts);
    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        argset set = s->words[i] == COL_NULL ? ARGSET_NONE : args_of_next_cell(&s->st->args, s->words[i], &last);
        c->null[i] = 1;
        c->codes[i] = 0;
        if (argset_is_none(set)) {
            *any_null = true;
            continue;
        }
        uint32_t *code = code_of(&s->sets, set.plus_one);
        struct export_text text;
        if (!code)
            rc = -MRD_ENOMEM;
        else if (*code == 0 && (rc = make_args(s, set, &text)) == 1)
            rc = add_text(&c->text, set.plus_one, text, code) ? 1 : -MRD_ENOMEM;
        if (rc >= 0 && *code) {
            c->null[i] = 0;
            c->codes[i] = *code - 1;
        } else {
            *any_null = true;
        }
    }
    unmark(&s->sets, &c->text);
    return rc < 0 ? rc : 0;
}
