/* Looks for the words of outer joins, and for names of views where a source may stand. */
#include "sql/planner/outer.h"

#include "sql/frontend/select.h"
#include "sql/planner/schema.h"

#include <string.h>

enum { MOST_NAMES = 500, DEEPEST = 20 };

struct outer_name {
    struct sql_name name;
    bool outer; /* a view with an outer join, in it or below */
};

struct outer_names {
    struct arena arena;
    VEC(struct outer_name) known;
    int64_t seen[2]; /* versions of the schema that `known` is true for */
};

void outer_free(struct engine *e)
{
    if (!e->outer)
        return;
    vec_free(&e->outer->known);
    arena_free(&e->outer->arena);
    mem_free(e->outer);
    e->outer = NULL;
}

/* In a transaction nothing is kept: ROLLBACK takes versions back. */
static struct outer_names *bring_up_to_date(struct engine *e)
{
    int64_t now[2];
    struct outer_names *o = e->outer ? e->outer : (e->outer = mem_zalloc(sizeof *o));
    if (!o || !schema_versions(e, now))
        return NULL;
    if (memcmp(now, o->seen, sizeof now) != 0 || !sqlite3_get_autocommit(e->db) || o->known.n > MOST_NAMES) {
        o->known.n = 0;
        arena_free(&o->arena);
    }
    memcpy(o->seen, now, sizeof now);
    return o;
}

static bool is_any(const struct sql_token *t, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->kind == TOKEN_WORD && token_is(t->text, t->len, words[i]))
            return true;
    return false;
}

/* After these a source may stand; after a dot behind the name of a schema, too. */
static bool comes_before_source(const struct sql_token *t)
{
    static const char *const words[] = {"from", "join", "in"};
    return t->kind == TOKEN_COMMA || t->kind == TOKEN_LP || t->kind == TOKEN_DOT ||
           is_any(t, words, sizeof words / sizeof *words);
}

static bool may_name_source(const struct sql_token *t, const struct sql_token *before, const struct sql_token *after)
{
    bool name = t->kind == TOKEN_WORD || t->kind == TOKEN_QUOTED || t->kind == TOKEN_STRING;
    return name && before && comes_before_source(before) && !(after && after->kind == TOKEN_LP);
}

static bool is_outer_text(struct engine *e, const char *text, size_t len, int depth);

static bool look_up(struct engine *e, struct sql_name name, int depth)
{
    struct outer_names *o = e->outer;
    const char *sql;
    for (size_t i = 0; i < o->known.n; i++)
        if (sql_name_equal(o->known.p[i].name, name))
            return o->known.p[i].outer;
    struct outer_name n = {.name = name};
    n.name.p = o->known.n < MOST_NAMES ? arena_strndup(&o->arena, name.p, name.len) : NULL;
    if (!n.name.p || !schema_find_view(e, &o->arena, name, &sql))
        return true;
    n.outer = sql && is_outer_text(e, sql, strlen(sql), depth + 1);
    vec_push(&o->known, n);
    return n.outer;
}

static bool is_outer_view(struct engine *e, const struct sql_token *t, int depth)
{
    char *copy = token_name(t->text, t->len);
    struct sql_name name = {.p = copy, .len = copy ? (uint32_t)strlen(copy) : 0};
    bool outer = !copy || look_up(e, name, depth);
    mem_free(copy);
    return outer;
}

static bool are_outer(struct engine *e, const struct sql_token *p, size_t n, int depth)
{
    static const char *const words[] = {"left", "right", "full", "outer", "into", "update", "delete"};
    for (size_t i = 0; i < n && p[i].kind != TOKEN_SEMI; i++)
        if (is_any(&p[i], words, sizeof words / sizeof *words) ||
            (may_name_source(&p[i], i ? &p[i - 1] : NULL, i + 1 < n ? &p[i + 1] : NULL) &&
             is_outer_view(e, &p[i], depth)))
            return true;
    return false;
}

static bool is_outer_text(struct engine *e, const char *text, size_t len, int depth)
{
    struct sql_tokens t = {0};
    size_t n = 0;
    bool ok = depth < DEEPEST && sql_tokens_scan_text(&t, text, len);
    for (size_t i = 0; ok && i < t.n; i++)
        if (!token_is_blank(t.p[i].kind))
            t.p[n++] = t.p[i];
    bool outer = !ok || are_outer(e, t.p, n, depth);
    sql_tokens_free(&t);
    return outer;
}

bool engine_outer_join_possible(struct engine *e)
{
    struct engine_compiled *c = &e->compiled;
    if (!c->looked) {
        struct slice text = c->text;
        c->outer = !text.p || !bring_up_to_date(e) || is_outer_text(e, (const char *)text.p, text.len, 0);
        c->looked = true;
    }
    return c->outer;
}
