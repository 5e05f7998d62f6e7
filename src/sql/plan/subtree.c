/* Queries within a statement that is not planned in whole: each that can be planned becomes a table of its own, and
 * SQLite runs what stands around it.
 *
 * A query is only taken where its place does not change the order of SQLite's loops: it stands alone behind FROM, or on
 * a side of the only join, which is a left one, or before a function of what it has; or is a list of IN, or gives one
 * row. Where SQLite could pull its tables up into the query around it, that one must not ask for an order of its own.
 */
#include "sql/plan/plan_private.h"

#include <string.h>

enum { MAX_TAKEN = 16, MAX_NAMED = 16, MAX_TRIED = 48 };

struct subtrees {
    struct planner *planner;
    const struct sql_tree *tree;
    struct {
        struct sql_span at;
        struct query_plan *plan;
        bool apart;                   /* SQLite shall ask for its rows once, and keep them */
    } taken[MAX_TAKEN];               /* in the order of the text */
    struct sql_span named[MAX_NAMED]; /* items without alias in which a query was taken, in the order of the text */
    uint32_t n_taken, n_named, n_tried;
};

/* A query on the way: whether those that it reads may be taken, since nobody looks at how many rows it may have. */
struct place {
    const struct cte_scope *up;
    int depth;
    bool rows;
    bool asked; /* within an expression, by rows outside */
};

static void walk_query(struct subtrees *t, const struct sql_query *q, struct place at);

/* The queries around that have tables of WITH: at most one may, since its text goes before that of the query. */
static const struct sql_query *with_around(const struct cte_scope *s, bool *one)
{
    const struct sql_query *with = NULL;
    *one = true;
    for (; s; s = s->up) {
        if (s->query->ctes && with)
            *one = false;
        with = s->query->ctes ? s->query : with;
    }
    return with;
}

/* The text of a query by itself. */
static const char *text_of(struct subtrees *t, const struct sql_query *q, const struct sql_query *with)
{
    struct arena *arena = t->planner->arena;
    size_t len, n_head = 0;
    const char *text = sql_tree_text(t->tree, arena, q->at, &len);
    if (!with || !text)
        return text;
    struct sql_span head = {with->at.first, with->selects->at.first};
    const char *before = sql_tree_text(t->tree, arena, head, &n_head);
    return before ? arena_printf(arena, "%.*s %.*s", (int)n_head, before, (int)len, text) : NULL;
}

/* A compound with a right join in an arm: SQLite nests the loops of its arms in another way where it takes it apart
 * into the query around it. */
static bool is_turned(const struct sql_query *q)
{
    bool right = false;
    for (const struct sql_select *s = q->selects; s; s = s->next)
        for (const struct sql_from *f = s->from; f; f = f->next)
            right |= (f->join & JOIN_RIGHT) != 0;
    return right && q->selects->next;
}

static struct query_plan *plan_of(struct subtrees *t, const struct sql_query *q, const struct cte_scope *up)
{
    bool one;
    const struct sql_query *with = with_around(up, &one);
    if (!one || (with && q->ctes) || is_turned(q) || t->n_tried++ >= MAX_TRIED)
        return NULL;
    const char *text = text_of(t, q, with);
    struct loops *loops = text ? loops_new(t->planner, text, true) : NULL;
    uint32_t largest = 0;
    struct reader r = {
        .planner = t->planner, .tree = t->tree, .parameters = t->planner->parameters, .loops = loops, .rows = &largest};
    struct query_plan *p = loops ? plan_build(&r, q, t->tree, up) : NULL;
    if (!p)
        return NULL;
    p->text = arena_strndup(&p->arena, text, strlen(text));
    p->arguments = read_arguments(&r, &p->arena);
    if (largest >= PLANNER_MIN_ROWS && p->text && p->arguments)
        return p;
    plan_free(p);
    return NULL;
}

static bool take(struct subtrees *t, const struct sql_query *q, struct query_plan *p, bool apart)
{
    uint32_t at = t->n_taken;
    if (!p)
        return false;
    if (at == MAX_TAKEN) {
        plan_free(p);
        return false;
    }
    for (; at && t->taken[at - 1].at.first > q->at.first; at--)
        t->taken[at] = t->taken[at - 1];
    t->taken[at].at = q->at;
    t->taken[at].plan = p;
    t->taken[at].apart = apart;
    t->n_taken++;
    return true;
}

/* ---- where a query may be taken ---- */

static bool is_one_row(const struct query_plan *p)
{
    return p->grouped && !p->n_keys;
}

/* The first of groups, all of which SQLite has to make before it knows. */
static bool is_best_group(const struct query_plan *p)
{
    return p->grouped && p->n_orders && p->limit == 1 && !p->offset;
}

/* Does SQLite compute it by itself, whatever stands around? */
static bool is_apart(const struct sql_query *q, const struct query_plan *p)
{
    return p->grouped || p->n_windows || p->distinct || p->limit >= 0 || q->selects->next;
}

/* May the rows of `q`, which a core reads alone, come from a plan? */
static bool keeps_order(const struct subtrees *t, const struct sql_select *outer, const struct sql_query *q,
                        const struct query_plan *p)
{
    const struct sql_query *around = outer->query;
    /* SQLite may leave out the order within; what stands within another query may become part of that */
    if ((around->order || around != t->tree->query) && p->n_orders && p->limit < 0)
        return false;
    if (is_apart(q, p)) /* a condition may be handed down into it, where it could turn its loops around */
        return !outer->where || (p->grouped && !p->n_windows) || (p->n_sources == 1 && !p->sources[0].sub);
    return !outer->where && !outer->group && !outer->distinct && !around->order && !around->limit &&
           !around->selects->next && !t->tree->n_windows;
}

/* Two sources whose loops have one order, since the second is joined to the left. */
static bool is_left_pair(const struct sql_select *s)
{
    const struct sql_from *second = s->from ? s->from->next : NULL;
    return second && !second->next && second->join == JOIN_LEFT && !s->where;
}

static bool names_column(const struct sql_expr *x)
{
    for (; x; x = x->next)
        if (x->kind == EXPR_COLUMN || names_column(x->args))
            return true;
    return false;
}

/* Two sources whose loops have one order, since the second is a function of what the first has. */
static bool is_bound_pair(const struct sql_select *s)
{
    const struct sql_from *second = s->from ? s->from->next : NULL;
    return second && !second->next && second->form == SOURCE_FUNCTION && names_column(second->args) &&
           !(second->join & (JOIN_LEFT | JOIN_RIGHT | JOIN_NATURAL)) && !second->using_columns;
}

/* May rows of `q`, a side of such a pair, come from a plan? */
static bool keeps_order_in_pair(const struct sql_query *q, const struct query_plan *p)
{
    return is_apart(q, p) && (!p->n_orders || p->limit >= 0); /* else SQLite may leave out the order within */
}

/* Do all that read a table of WITH belong to the query of the clause, and read nothing else? */
static bool uses_keep_order(const struct subtrees *t, const struct sql_query *with, const struct sql_cte *cte,
                            const struct query_plan *p)
{
    uint32_t uses = 0;
    for (const struct sql_select *s = t->tree->cores; s; s = s->next_core)
        for (const struct sql_from *f = s->from; f; f = f->next) {
            if (f->form == SOURCE_GROUP)
                return false;
            if (f->form != SOURCE_TABLE || f->schema.len || !sql_name_equal(f->name, cte->name))
                continue;
            uses++;
            bool alone = !s->from->next || (f == s->from && is_bound_pair(s) && is_apart(cte->query, p));
            if (s->query != with || !alone || !keeps_order(t, s, cte->query, p))
                return false;
        }
    return uses > 0;
}

/* ---- the walk ---- */

/* The queries in an expression. */
static void walk_expr(struct subtrees *t, const struct sql_expr *x, struct place at)
{
    struct place within = {at.up, at.depth + 1, true, true};
    for (; x; x = x->next) {
        walk_expr(t, x->args, at);
        if (x->filter)
            walk_expr(t, x->filter, at);
        if (!x->query)
            continue;
        struct query_plan *p = x->kind == EXPR_SELECT || x->kind == EXPR_IN ? plan_of(t, x->query, at.up) : NULL;
        if (p && x->kind == EXPR_SELECT && !is_one_row(p) && !is_best_group(p)) {
            plan_free(p);
            p = NULL;
        }
        if (!take(t, x->query, p, false))
            walk_query(t, x->query, within);
    }
}

/* The text of an item without alias is the name of its column, and has to stay that. */
static void walk_item(struct subtrees *t, const struct sql_item *i, struct place at)
{
    uint32_t before = t->n_taken;
    if (!i->expr || (!i->alias.len && t->n_named == MAX_NAMED))
        return;
    walk_expr(t, i->expr, at);
    if (i->alias.len || t->n_taken == before)
        return;
    uint32_t k = t->n_named++;
    for (; k && t->named[k - 1].end > i->at.end; k--)
        t->named[k] = t->named[k - 1];
    t->named[k] = i->at;
}

static void walk_from(struct subtrees *t, const struct sql_select *s, struct place at)
{
    bool alone = s->from && !s->from->next, pair = is_left_pair(s), bound = is_bound_pair(s);
    struct place within = {at.up, at.depth + 1, at.rows && (alone || pair), at.asked};
    for (const struct sql_from *f = s->from; f; f = f->next) {
        walk_expr(t, f->args, at);
        if (f->form != SOURCE_QUERY)
            continue;
        /* SQLite makes an index of what it is asked for again and again, which sorts the rows */
        bool indexed = at.asked && s->where;
        struct query_plan *p = at.rows && !indexed ? plan_of(t, f->query, at.up) : NULL;
        if (p && !is_one_row(p) &&
            !(alone   ? keeps_order(t, s, f->query, p)
              : bound ? f == s->from && is_apart(f->query, p) && keeps_order(t, s, f->query, p)
                      : pair && keeps_order_in_pair(f->query, p))) {
            plan_free(p);
            p = NULL;
        }
        if (!take(t, f->query, p, pair))
            walk_query(t, f->query, within);
    }
}

static void walk_query(struct subtrees *t, const struct sql_query *q, struct place at)
{
    struct cte_scope own = {q, t->tree, at.up};
    if (at.depth > PLAN_MAX_DEPTH)
        return;
    at.up = &own;
    for (const struct sql_cte *c = q->ctes; c; c = c->next) {
        struct query_plan *p = c->columns || q->recursive || !at.rows ? NULL : plan_of(t, c->query, &own);
        if (p && !uses_keep_order(t, q, c, p)) {
            plan_free(p);
            p = NULL;
        }
        take(t, c->query, p, false);
    }
    for (const struct sql_select *s = q->selects; s; s = s->next) {
        walk_from(t, s, at);
        for (const struct sql_item *i = s->items; i; i = i->next)
            walk_item(t, i, at);
        walk_expr(t, s->where, at);
        walk_expr(t, s->having, at);
    }
}

/* ---- the statement ---- */

static bool put_text(const struct subtrees *t, sqlite3_str *out, uint32_t first, uint32_t end)
{
    struct sql_span span = {first, end};
    size_t len = 0;
    const char *text = end > first ? sql_tree_text(t->tree, t->planner->arena, span, &len) : "";
    if (text)
        sqlite3_str_append(out, text, (int)len);
    return text;
}

/* What stands between two queries that were taken, with names for the items that end there. */
static bool put_gap(const struct subtrees *t, sqlite3_str *out, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < t->n_named; i++) {
        size_t len;
        if (t->named[i].end <= first || t->named[i].end > end)
            continue;
        const char *name = sql_item_text(t->tree, t->planner->arena, t->named[i], &len);
        if (!name || !put_text(t, out, first, t->named[i].end))
            return false;
        sqlite3_str_appendf(out, " AS \"%w\" ", name);
        first = t->named[i].end;
    }
    return put_text(t, out, first, end);
}

static bool put_rest(struct subtrees *t, sqlite3_str *out)
{
    uint32_t from = 0;
    for (uint32_t i = 0; i <= t->n_taken; i++) {
        if (!put_gap(t, out, from, i < t->n_taken ? t->taken[i].at.first : t->tree->n_tokens))
            return false;
        if (i == t->n_taken)
            return true;
        sqlite3_str_appendchar(out, 1, ' ');
        plan_put_select(out, t->taken[i].plan, (int)i + 1);
        sqlite3_str_appendall(out, t->taken[i].apart ? " LIMIT -1 " : " ");
        from = t->taken[i].at.end;
    }
    return true;
}

static sqlite3_stmt *prepare_rest(struct subtrees *t, bool show)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *out = sqlite3_str_new(NULL);
    if (show)
        sqlite3_str_appendall(out, "EXPLAIN QUERY PLAN ");
    bool ok = put_rest(t, out);
    char *text = sqlite3_str_finish(out);
    ok = ok && text && engine_compile(t->planner->e, text, -1, 0, &stmt, NULL) == SQLITE_OK;
    sqlite3_free(text);
    uint32_t bound = 0;
    while (ok && bound < t->n_taken) { /* a plan that cannot be bound is freed, too */
        ok = plan_bind(stmt, t->taken[bound].plan, (int)bound + 1) == SQLITE_OK;
        bound++;
    }
    for (uint32_t i = bound; i < t->n_taken; i++)
        plan_free(t->taken[i].plan);
    if (ok)
        return stmt;
    sqlite3_finalize(stmt);
    return NULL;
}

sqlite3_stmt *subtrees_prepare(struct planner *planner, bool show)
{
    struct subtrees t = {.planner = planner, .tree = planner->tree};
    walk_query(&t, planner->tree->query, (struct place){NULL, 0, true, false});
    return t.n_taken ? prepare_rest(&t, show) : NULL;
}
