/* Looks for the words of outer joins, and for names of views where a source may stand. */
#include "sql/planner/outer.h"

#include "base/hash.h"
#include "base/u64map.h"
#include "sql/frontend/select.h"
#include "sql/planner/schema.h"

#include <string.h>

enum { DEEPEST = 20, SCHEMAS = 2 };

struct outer_view {
    const char *sql;
    size_t next; /* view of the same name in the other schema, from 1; 0: none */
    enum { NOT_LOOKED, WITHOUT, WITH } outer;
};

struct outer_views {
    struct arena arena;
    VEC(struct outer_view) all;
    struct u64map by_name; /* hash of the name -> the first of `all`, from 1 */
    int64_t seen[SCHEMAS]; /* versions of the schema that these are the views of */
    bool whole;
};

static void forget(struct outer_views *o)
{
    vec_clear(&o->all);
    u64map_clear(&o->by_name);
    arena_free(&o->arena);
    o->whole = false;
}

void outer_free(struct engine *e)
{
    if (!e->outer)
        return;
    forget(e->outer);
    vec_free(&e->outer->all);
    u64map_free(&e->outer->by_name);
    mem_free(e->outer);
    e->outer = NULL;
}

/* Names with one hash are taken for one: at worst a view too many is looked at. */
static uint64_t name_key(const char *name)
{
    uint64_t h = 0;
    for (const char *p = name; *p; p++)
        h = hash_combine(h, (uint64_t)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p));
    return h;
}

static bool add_view(void *ctx, const char *name, const char *sql)
{
    struct outer_views *o = ctx;
    uint64_t *first = u64map_put(&o->by_name, name_key(name), NULL);
    struct outer_view v = {.sql = arena_strndup(&o->arena, sql, strlen(sql)), .next = first ? (size_t)*first : 0};
    if (!first || !v.sql || !vec_push(&o->all, v))
        return false;
    *first = o->all.n;
    return true;
}

/* In a transaction nothing is kept: ROLLBACK takes versions back. False: the views are not known. */
static bool bring_up_to_date(struct engine *e)
{
    int64_t now[SCHEMAS];
    struct outer_views *o = e->outer ? e->outer : (e->outer = mem_zalloc(sizeof *o));
    if (!o || sqlite3_db_name(e->db, SCHEMAS) || !schema_versions(e, now)) /* a database that is attached has its own */
        return false;
    if (o->whole && sqlite3_get_autocommit(e->db) && memcmp(now, o->seen, sizeof now) == 0)
        return true;
    forget(o);
    memcpy(o->seen, now, sizeof now);
    return o->whole = schema_each_view(e, add_view, o);
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

static bool is_outer_text(struct outer_views *o, const char *text, size_t len, int depth);

static bool is_outer_view(struct outer_views *o, const struct sql_token *t, int depth)
{
    char *name = token_name(t->text, t->len);
    const uint64_t *first = name ? u64map_get(&o->by_name, name_key(name)) : NULL;
    bool outer = !name;
    mem_free(name);
    for (size_t i = first ? (size_t)*first : 0; i && !outer; i = o->all.p[i - 1].next) {
        struct outer_view *v = &o->all.p[i - 1];
        if (v->outer == NOT_LOOKED) {
            v->outer = WITH; /* one that reads itself */
            v->outer = is_outer_text(o, v->sql, strlen(v->sql), depth + 1) ? WITH : WITHOUT;
        }
        outer = v->outer == WITH;
    }
    return outer;
}

static bool are_outer(struct outer_views *o, const struct sql_token *p, size_t n, int depth)
{
    static const char *const words[] = {"left", "right", "full", "outer", "into", "update", "delete"};
    for (size_t i = 0; i < n && p[i].kind != TOKEN_SEMI; i++)
        if (is_any(&p[i], words, sizeof words / sizeof *words) ||
            (may_name_source(&p[i], i ? &p[i - 1] : NULL, i + 1 < n ? &p[i + 1] : NULL) &&
             is_outer_view(o, &p[i], depth)))
            return true;
    return false;
}

static bool is_outer_text(struct outer_views *o, const char *text, size_t len, int depth)
{
    struct sql_tokens t = {0};
    size_t n = 0;
    bool ok = depth < DEEPEST && sql_tokens_scan_text(&t, text, len);
    for (size_t i = 0; ok && i < t.n; i++)
        if (!token_is_blank(t.p[i].kind))
            t.p[n++] = t.p[i];
    bool outer = !ok || are_outer(o, t.p, n, depth);
    sql_tokens_free(&t);
    return outer;
}

static bool is_outer(struct engine *e)
{
    struct engine_compiled *c = &e->compiled;
    if (!c->looked) {
        struct slice text = c->text;
        c->outer = !text.p || !bring_up_to_date(e) || is_outer_text(e->outer, (const char *)text.p, text.len, 0);
        c->looked = true;
    }
    return c->outer;
}

bool engine_may_be_misread(struct engine *e, int op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_NE:
    case SQLITE_INDEX_CONSTRAINT_ISNOT:
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
    case SQLITE_INDEX_CONSTRAINT_GLOB:
        return is_outer(e);
    default:
        return false;
    }
}
