/* Finds aggregate calls with ORDER BY among tokens and rewrites them. */
#include "sql/dialect/ordered.h"

static const char *const aggregates[] = {"group_concat",      "string_agg",        "json_group_array",
                                         "jsonb_group_array", "json_group_object", "jsonb_group_object"};

static bool is_aggregate(const struct sql_token *t)
{
    for (size_t i = 0; t->kind == TOKEN_WORD && i < sizeof aggregates / sizeof *aggregates; i++)
        if (token_is(t->text, t->len, aggregates[i]))
            return true;
    return false;
}

static size_t skip(const struct sql_tokens *t, size_t i)
{
    while (i < t->n && token_is_blank(t->p[i].kind))
        i++;
    return i;
}

static bool word_at(const struct sql_tokens *t, size_t i, const char *word)
{
    return i < t->n && t->p[i].kind == TOKEN_WORD && token_is(t->p[i].text, t->p[i].len, word);
}

struct call {
    size_t open, order, close; /* places of "(", or "DISTINCT" behind it, of "ORDER" and ")" */
    size_t n_args;
    bool distinct;
};

/* Is there f( … ORDER BY … ) at t[at]? */
static bool find_call(const struct sql_tokens *t, size_t at, struct call *c)
{
    int depth = 0;
    if (!is_aggregate(&t->p[at]))
        return false;
    c->open = skip(t, at + 1);
    c->order = 0;
    c->n_args = 1;
    if (c->open >= t->n || t->p[c->open].kind != TOKEN_LP)
        return false;
    size_t first = skip(t, c->open + 1), from = c->open;
    c->distinct = word_at(t, first, "distinct");
    if (c->distinct)
        c->open = first;
    for (size_t i = from; i < t->n; i++) {
        int kind = t->p[i].kind;
        if (kind == TOKEN_LP)
            depth++;
        else if (kind == TOKEN_RP && --depth == 0) {
            c->close = i;
            return c->order != 0 && (!c->distinct || c->n_args == 1); /* SQLite says what is wrong with more */
        } else if (depth == 1 && kind == TOKEN_COMMA && !c->order)
            c->n_args++;
        else if (depth == 1 && !c->order && word_at(t, i, "order") && word_at(t, skip(t, i + 1), "by"))
            c->order = i;
    }
    return false;
}

struct output {
    struct sql_tokens t;
    struct arena *arena;
    const struct sql_token *at;
    bool ok;
};

static void put(struct output *o, const struct sql_token *p, size_t n)
{
    o->ok = o->ok && sql_tokens_append(&o->t, p, n);
}

static void put_made(struct output *o, const char *text)
{
    o->ok = o->ok && text && sql_tokens_add_made(&o->t, o->at, text);
}

/* One sort term, t[from, to): its expression and the words behind it. */
static void put_term(struct output *o, const struct sql_tokens *t, size_t from, size_t to)
{
    int flags = 0;
    for (bool more = true; more;) {
        more = false;
        while (to > from && token_is_blank(t->p[to - 1].kind))
            to--;
        if (to <= from + 1)
            break;
        if (word_at(t, to - 1, "asc") || word_at(t, to - 1, "desc")) {
            flags |= word_at(t, to - 1, "desc") ? ORDERED_DESC : 0;
            to--;
            more = true;
        } else if (word_at(t, to - 1, "first") || word_at(t, to - 1, "last")) {
            size_t nulls = to - 2;
            while (nulls > from && token_is_blank(t->p[nulls].kind))
                nulls--;
            if (!word_at(t, nulls, "nulls"))
                break;
            flags |= word_at(t, to - 1, "last") ? ORDERED_NULLS_LAST : ORDERED_NULLS_FIRST;
            to = nulls;
            more = true;
        }
    }
    put_made(o, ", ");
    put(o, t->p + from, to - from);
    put_made(o, arena_printf(o->arena, ", %d", flags));
}

/* The call as it was written, in a comment: columns are named after it. "" when a comment cannot hold it. */
static const char *written(struct output *o, const struct sql_tokens *t, size_t at, const struct call *c)
{
    size_t len;
    const char *text = sql_tokens_join(o->arena, t->p + at, c->close + 1 - at, &len);
    return !text ? NULL : strstr(text, "*/") ? "" : arena_printf(o->arena, "/*%s*/", text);
}

static void rewrite_call(struct output *o, const struct sql_tokens *t, size_t at, const struct call *c)
{
    int depth = 0;
    size_t by = skip(t, c->order + 1), from = by + 1;
    o->at = &t->p[at];
    put_made(o, ORDERED_CALL);
    put_made(o, written(o, t, at, c));
    put_made(o, arena_printf(o->arena, "'%s%.*s', %zu, ", c->distinct ? ORDERED_DISTINCT : "", (int)t->p[at].len,
                             t->p[at].text, c->n_args));
    put(o, t->p + c->open + 1, c->order - c->open - 1);
    for (size_t i = from; i <= c->close; i++) {
        int kind = t->p[i].kind;
        if ((kind == TOKEN_COMMA && depth == 0) || i == c->close) {
            put_term(o, t, from, i);
            from = i + 1;
        }
        depth += kind == TOKEN_LP ? 1 : kind == TOKEN_RP ? -1 : 0;
    }
    put(o, t->p + c->close, 1);
}

bool ordered_rewrite(struct sql_tokens *t, struct arena *arena)
{
    struct output o = {.arena = arena, .ok = true};
    struct call c;
    size_t plain = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (!find_call(t, i, &c))
            continue;
        put(&o, t->p + plain, i - plain);
        rewrite_call(&o, t, i, &c);
        plain = c.close + 1;
        i = c.close;
    }
    if (plain == 0)
        return true;
    put(&o, t->p + plain, t->n - plain);
    if (!o.ok) {
        sql_tokens_free(&o.t);
        return false;
    }
    sql_tokens_free(t);
    *t = o.t;
    return true;
}

/* Where the call whose arguments begin at `p` ends. */
static const char *call_end(const char *p)
{
    const char *end = p + strlen(p);
    enum token_kind kind;
    for (int depth = 1; p < end && depth > 0;) {
        p += token_next(p, (size_t)(end - p), &kind);
        depth += kind == TOKEN_LP ? 1 : kind == TOKEN_RP ? -1 : 0;
    }
    return p;
}

char *ordered_column_name(const char *name)
{
    static const char mark[] = ORDERED_CALL "/*";
    const char *call = strstr(name, mark);
    char *out = call ? mem_zalloc(strlen(name) + 1) : NULL, *to = out;
    if (!out)
        return NULL;
    for (; call; call = strstr(name, mark)) {
        const char *from = call + strlen(mark), *end = strstr(from, "*/");
        if (!end)
            break;
        to = mempcpy(to, name, (size_t)(call - name));
        to = mempcpy(to, from, (size_t)(end - from));
        name = call_end(end);
    }
    strcpy(to, name);
    return out;
}
