/* What stands behind FROM, and what its names mean. Views, WITH tables and queries that only hand rows on are taken
 * apart: their sources become the plan's own. */
#include "sql/plan/build_private.h"
#include "sql/plan/mixed.h"

#include <stdio.h>
#include <string.h>

/* ---- tables ---- */

static struct plan_source *add_source(struct reader *r, struct sql_name printed, bool left)
{
    struct query_plan *p = r->plan;
    if (p->n_sources == PLAN_MAX_SOURCES)
        return NULL;
    struct plan_source *s = &p->sources[p->n_sources];
    *s = (struct plan_source){.printed = {printed}, .n_printed = 1, .left = left};
    return s;
}

static struct sql_name copy_name(struct reader *r, const char *name)
{
    const char *copy = arena_strndup(r->planner->arena, name, strlen(name));
    return (struct sql_name){copy, copy ? (uint32_t)strlen(copy) : 0, 0};
}

static bool add_table(struct reader *r, const struct schema_table *t, struct sql_name alias, bool left)
{
    struct query_plan *p = r->plan;
    struct plan_source *s = add_source(r, alias, left);
    struct scope_entry *e = s ? scope_add_entry(r, alias, t->n_columns) : NULL;
    if (!e)
        return false;
    uint32_t n = t->n_columns;
    for (uint32_t i = 0; i < n; i++) {
        const struct schema_column *c = &t->columns[i];
        struct sql_name name = copy_name(r, c->name);
        struct plan_expr *x = NULL;
        if (c->at != SCHEMA_COMPUTED)
            x = plan_column(p, (uint8_t)p->n_sources, c->at, plan_type_of((enum col_type)c->type));
        if (!name.p)
            return false;
        e->columns[e->n_columns++] = (struct scope_column){.name = name, .expr = x, .hidden = c->hidden};
    }
    if (!plan_table_open(&s->table, r->planner->e, t->table))
        return false;
    p->n_sources++;
    if (!s->table.table->final) /* what is sorted is known then */
        table_finalize((struct table *)(uintptr_t)s->table.table);
    if (s->table.table->n_rows > *r->rows)
        *r->rows = s->table.table->n_rows;
    return true;
}

/* A table that an operator computes. */
static bool add_batches(struct reader *r, const struct engine_batches *b, struct sql_name alias, bool left)
{
    struct query_plan *p = r->plan;
    struct plan_source *s = add_source(r, alias, left);
    struct scope_entry *e = s ? scope_add_entry(r, alias, b->n_columns) : NULL;
    if (!e || b->n_columns > PLAN_MAX_ITEMS)
        return false;
    for (uint32_t i = 0; i < b->n_columns; i++) {
        const char *name;
        enum col_type type;
        struct plan_expr *x = NULL;
        if (b->column(b->ctx, i, &name, &type))
            x = plan_column(p, (uint8_t)p->n_sources, (int16_t)i, plan_type_of(type));
        e->columns[e->n_columns++] = (struct scope_column){.name = copy_name(r, name), .expr = x};
    }
    s->batches = b->serial;
    s->n_columns = b->n_columns;
    p->n_sources++;
    *r->rows = *r->rows < PLANNER_MIN_ROWS ? PLANNER_MIN_ROWS : *r->rows; /* nobody knows how many */
    return true;
}

/* A table that a function gives. */
static bool add_pointer(struct reader *r, const struct sql_from *f, bool left)
{
    enum { N_COLUMNS = 32 };
    struct query_plan *p = r->plan;
    struct plan_pointer *pointer = pointer_read(r, f);
    struct sql_name alias = f->alias.len ? f->alias : f->name;
    struct plan_source *s = pointer ? add_source(r, alias, left) : NULL;
    struct scope_entry *e = s ? scope_add_entry(r, alias, N_COLUMNS) : NULL;
    for (uint32_t i = 0; e && i < N_COLUMNS; i++) {
        const char *name = arena_printf(r->planner->arena, "c%u", i);
        enum plan_type type;
        uint32_t at = pointer_column(pointer, i, &type);
        struct plan_expr *x = type == PLAN_NULL ? NULL : plan_column(p, (uint8_t)p->n_sources, (int16_t)at, type);
        if (!name) {
            pointer_free(pointer);
            return false;
        }
        if (x)
            x->letter = 'c';
        e->columns[e->n_columns++] = (struct scope_column){.name = copy_name(r, name), .expr = x};
    }
    if (!e) {
        pointer_free(pointer);
        return false;
    }
    s->pointer = pointer;
    p->n_sources++;
    *r->rows = *r->rows < PLANNER_MIN_ROWS ? PLANNER_MIN_ROWS : *r->rows; /* nobody knows how many */
    return true;
}

/* ---- queries ---- */

static bool has_call(struct reader *r, const struct sql_expr *x)
{
    if (!x)
        return false;
    if (x->kind == EXPR_FUNCTION && !schema_is_rowwise_call(r->planner->e, x)) {
        static const char *const scalar[] = {"min", "max", "iif", "sqrt"};
        bool known = false;
        for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++)
            known |= sql_name_is(x->name, scalar[i]) && (i > 1 || x->n_args > 1) && !x->over;
        if (!known)
            return true;
    }
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (has_call(r, a))
            return true;
    return false;
}

/* Windows, and aggregates of which SQLite thinks that the order of rows may show: all but count(), min() and max(). */
static bool wants_order(struct engine *e, const struct sql_expr *x)
{
    static const char *const aggregates[] = {
        "sum", "total", "avg", "group_concat", "json_group_array", "json_group_object"};
    for (; x; x = x->next) {
        bool wants = x->over != NULL;
        for (size_t i = 0; x->kind == EXPR_FUNCTION && i < sizeof aggregates / sizeof *aggregates; i++)
            wants |= sql_name_is(x->name, aggregates[i]);
        if (!wants && x->kind == EXPR_FUNCTION && x->name.len < 64) {
            char name[64];
            memcpy(name, x->name.p, x->name.len);
            name[x->name.len] = 0;
            const struct engine_function *own = engine_find_function(e, name, -2);
            wants = own && own->step;
        }
        if (wants || wants_order(e, x->args))
            return true;
    }
    return false;
}

static bool core_wants_order(struct engine *e, const struct sql_select *s)
{
    bool wants = wants_order(e, s->having);
    for (const struct sql_item *i = s->items; i && !wants; i = i->next)
        wants = !i->star && wants_order(e, i->expr);
    for (const struct sql_order *o = s->query->order; o && !wants; o = o->next)
        wants = wants_order(e, o->expr);
    return wants;
}

/* Does the core, or one that it may be taken apart into, join the query with others, or order its rows? Where the
 * order is wanted, it stays. */
static bool has_more_around(const struct reader *r)
{
    bool more = false, wants = false;
    for (; r; r = r->loop_flat ? r->loop_up : NULL) {
        more |= r->core && (r->core->from->next || r->core->query->order);
        wants |= r->core && core_wants_order(r->planner->e, r->core);
    }
    return more && !wants;
}

/* Has SQLite left out the order of a query whose rows are joined or ordered once more, and taken it apart? Then no step
 * of its own stands for it, and nothing sorts in its place. */
static bool has_lost_order(struct reader *r, const struct sql_query *q, const struct sql_name names[2])
{
    int parent = q->limit || !has_more_around(r) ? -1 : loops_parent(r);
    return parent >= 0 && loops_have_none(r->loops, names[0]) && loops_have_none(r->loops, names[1]) &&
           (r->core->query->order || !loops_say(r->loops, parent, "USE TEMP B-TREE FOR ORDER BY"));
}

static bool hands_rows_on(struct reader *r, const struct sql_query *q, const struct sql_name names[2], bool left)
{
    const struct sql_select *s = q->selects;
    for (const struct sql_from *f = s->from; f; f = f->next)
        if (f->join & JOIN_RIGHT)
            return false;
    if ((q->order && !has_lost_order(r, q, names)) || q->limit || q->recursive || s->next || s->rows || s->distinct ||
        s->group || s->having || s->windows || !s->from)
        return false;
    if (left && (s->where || s->from->next))
        return false;
    for (const struct sql_item *i = s->items; i; i = i->next)
        if (!i->star && has_call(r, i->expr))
            return false;
    for (const struct sql_order *o = q->order; o; o = o->next)
        if (has_call(r, o->expr))
            return false;
    return true;
}

static struct sql_name item_name(struct reader *r, const struct sql_item *i)
{
    size_t len = 0;
    if (i->alias.len)
        return i->alias;
    if (i->expr->kind == EXPR_COLUMN)
        return i->expr->name;
    const char *text = sql_tree_text(r->tree, r->planner->arena, i->at, &len);
    return (struct sql_name){text, (uint32_t)len, 0};
}

enum { MAX_UNFOLDED = 5000 };

/* Views over views can name a column so often that its expression, written out, has no end. */
static bool fits(const struct plan_expr *x, int *budget)
{
    if (--*budget < 0)
        return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!fits(x->args[i], budget))
            return false;
    return true;
}

/* NULL where the source has no row, else the expression. */
static struct plan_expr *null_with(struct reader *r, struct plan_expr *x, uint32_t source)
{
    if (!x || x->op == X_COLUMN)
        return x;
    struct plan_expr *wrapped = x->mixed ? NULL : plan_expr_new(r->plan, X_NULL_ROW, (enum plan_type)x->type, 1);
    if (wrapped) {
        wrapped->args[0] = x;
        wrapped->source = (uint8_t)source;
        wrapped->sources = x->sources | 1u << wrapped->source;
    }
    return wrapped;
}

/* A column of the inner query as the outer one reads it: of a left join that found nothing it is NULL, whatever it is
 * made of. NULL: it is not understood. */
static struct plan_expr *handed_on(struct reader *outer, struct plan_expr *x, bool left)
{
    int budget = MAX_UNFOLDED;
    if (!x || !fits(x, &budget) || (left && x->mixed))
        return NULL;
    return left ? null_with(outer, x, outer->plan->n_sources - 1) : x;
}

/* Columns of the inner query become those of an entry of the outer scope. What is not understood has no expression: it
 * matters to those who ask for it only. */
static bool hand_on_columns(struct reader *outer, struct reader *inner, struct sql_name alias, bool left)
{
    uint32_t n = inner->core->n_items;
    for (uint32_t i = 0; i < inner->scope->n_entries; i++)
        n += inner->scope->entries[i].n_columns;
    struct scope_entry *e = scope_add_entry(outer, alias, n);
    for (const struct sql_order *o = inner->core->query->order; o;
         o = o->next) /* it makes groups, wherever it stands */
        if (owner_may_be(inner, o->expr))
            return false;
    for (const struct sql_item *i = inner->core->items; e && i; i = i->next) {
        if (!i->star) {
            struct plan_expr *x = left ? read_expr(inner, i->expr) : read_mixed(inner, i->expr);
            if (!x && owner_may_be(inner, i->expr))
                return false;
            if (!scope_add_column(outer, e, item_name(inner, i), handed_on(outer, x, left)))
                return false;
            continue;
        }
        for (uint32_t k = 0; k < inner->scope->n_entries; k++) {
            const struct scope_entry *from = &inner->scope->entries[k];
            if (i->table.len && !sql_name_equal(i->table, from->alias))
                continue;
            for (uint32_t c = 0; c < from->n_columns; c++) {
                if (!scope_star_takes(&from->columns[c], i))
                    continue;
                if (!scope_add_column(outer, e, from->columns[c].name, handed_on(outer, from->columns[c].expr, left)))
                    return false;
            }
        }
    }
    return e != NULL;
}

static bool take_apart(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                       const struct cte_scope *ctes, struct sql_name alias, bool left)
{
    struct scope *scope = arena_zalloc(outer->planner->arena, sizeof *scope);
    struct cte_scope own = {q, tree, ctes};
    struct reader inner = *outer;
    inner.tree = tree;
    inner.ctes = &own;
    inner.scope = scope;
    inner.core = q->selects;
    inner.left_core = left ? q->selects : NULL;
    inner.depth++;
    inner.loop_up = outer;
    inner.loop_name = alias;
    inner.loop_flat = true;
    inner.loop_arm = 0;
    inner.aggregates_allowed = inner.windows_allowed = inner.in_aggregate = inner.aliases_allowed = false;
    uint32_t first = outer->plan->n_sources;
    if (!scope || inner.depth > PLAN_MAX_DEPTH || !read_from(&inner, q->selects->from))
        return false;
    struct plan_source *only = &outer->plan->sources[first];
    uint32_t name_place = outer->plan->n_sources == first + 1 ? only->n_printed : PLAN_MAX_NAMES;
    if (name_place < PLAN_MAX_NAMES)
        only->printed[only->n_printed++] = alias;
    if (left) {
        if (outer->plan->n_sources != first + 1)
            return false;
        outer->plan->sources[first].left = true;
    }
    inner.aliases_allowed = true;
    if (q->selects->where && !read_conjunction(&inner, q->selects->where, outer->plan->where, &outer->plan->n_where))
        return false;
    inner.aliases_allowed = false;
    if (!hand_on_columns(outer, &inner, alias, left))
        return false;
    if (name_place < PLAN_MAX_NAMES)
        only->entries[name_place] = &outer->scope->entries[outer->scope->n_entries - 1];
    return true;
}

bool read_from_plan(struct reader *r, struct query_plan *sub, struct sql_name alias, bool left)
{
    struct plan_source *s = sub ? add_source(r, alias, left) : NULL;
    struct scope_entry *e = s ? scope_add_entry(r, alias, sub->n_items) : NULL;
    if (!e) {
        plan_free(sub);
        return false;
    }
    s->sub = sub;
    s->entries[0] = e;
    r->plan->n_sources++;
    for (uint32_t i = 0; i < sub->n_items; i++) {
        const struct plan_expr *of = sub->items[i].expr;
        struct plan_expr *x =
            plan_column(r->plan, (uint8_t)(r->plan->n_sources - 1), (int16_t)i, (enum plan_type)of->type);
        if (!x || !scope_add_column(r, e, copy_name(r, sub->items[i].name), x))
            return false;
        x->letter = of->letter;
    }
    return true;
}

/* The rows that the step of a recursion goes on from. */
static bool add_round(struct reader *r, struct sql_name alias)
{
    const struct recursion *now = r->recursion;
    struct query_plan *p = r->plan;
    struct plan_source *s = now->core == r->core ? add_source(r, alias, false) : NULL;
    struct scope_entry *e = s ? scope_add_entry(r, alias, now->first->n_items) : NULL;
    for (uint32_t i = 0; e && i < now->first->n_items; i++) {
        const struct plan_item *item = &now->first->items[i];
        struct plan_expr *x = plan_column(p, (uint8_t)p->n_sources, (int16_t)i, (enum plan_type)item->expr->type);
        if (!x || !scope_add_column(r, e, copy_name(r, item->name), x))
            return false;
        x->letter = item->expr->letter;
    }
    if (e)
        s->round = now->rows;
    p->n_sources += e != NULL;
    return e != NULL;
}

/* SQLite leaves the ORDER BY of a query out whose rows are joined or ordered once more. Where it does not say that it
 * sorts them, nobody knows whether it has done so. */
static bool may_lose_order(const struct reader *r, const struct reader *inner, const struct sql_query *q)
{
    if (!q->order || q->limit || !has_more_around(r))
        return false;
    return !loops_say(r->loops, loops_parent(inner), "USE TEMP B-TREE FOR ORDER BY");
}

/* Does SQLite make one query of that around and one with LIMIT? Its rows are then the first in the order of the former:
 * SELECT id FROM (SELECT id, dur FROM slice LIMIT 5) ORDER BY dur are the shortest of all. */
static bool is_limited(const struct sql_query *q, const struct query_plan *sub)
{
    bool plain = sub && !sub->grouped && !sub->n_windows && !sub->distinct && !sub->n_orders && !sub->next_arm;
    return (q->limit && !q->order) || (plain && sub->limited);
}

static bool add_query(struct reader *r, const struct sql_query *q, const struct sql_tree *tree,
                      const struct cte_scope *ctes, struct sql_name alias, struct sql_name name, bool left)
{
    if (r->depth >= PLAN_MAX_DEPTH || r->plan->n_sources == PLAN_MAX_SOURCES)
        return false;
    if (hands_rows_on(r, q, (struct sql_name[]){alias, name}, left))
        return take_apart(r, q, tree, ctes, alias, left);
    struct reader inner = *r;
    inner.loop_up = r;
    inner.loop_name = alias;
    inner.loop_flat = false;
    inner.any_order = r->below_any;
    inner.loop_arm = 0;
    bool plain = q->selects->next && plan_last_kind(q) == COMPOUND_UNION_ALL && !q->order && !q->limit;
    struct query_plan *sub = plain ? plan_build_arms(&inner, q, tree, ctes) : plan_build(&inner, q, tree, ctes);
    r->plan->order_unknown |= sub && may_lose_order(r, &inner, q);
    r->plan->limited |= is_limited(q, sub);
    return read_from_plan(r, sub, alias, left);
}

/* ---- names of tables ---- */

static const struct sql_cte *find_cte(const struct cte_scope *s, struct sql_name name, const struct cte_scope **where)
{
    for (; s; s = s->up)
        for (const struct sql_cte *c = s->query->ctes; c; c = c->next)
            if (sql_name_equal(c->name, name)) {
                *where = s;
                return c;
            }
    return NULL;
}

static const struct sql_tree *parse(const struct reader *r, const char *sql, bool view)
{
    struct arena *arena = r->planner->arena;
    struct sql_tree *tree = sql ? arena_zalloc(arena, sizeof *tree) : NULL;
    struct sql_tokens tokens = {0};
    size_t body = 0;
    bool ok =
        tree && sql_tokens_scan_text(&tokens, sql, strlen(sql)) && (!view || (body = schema_view_body(&tokens)) != 0);
    struct sql_token *kept = ok ? arena_alloc(arena, tokens.n * sizeof *kept) : NULL;
    if (kept)
        memcpy(kept, tokens.p, tokens.n * sizeof *kept);
    ok = kept && sql_tree_parse(tree, arena, kept + body, tokens.n - body);
    sql_tokens_free(&tokens);
    return ok ? tree : NULL;
}

const struct sql_tree *plan_parse_text(const struct reader *r, const char *sql)
{
    return parse(r, arena_strndup(r->planner->arena, sql, strlen(sql)), false);
}

/* The columns of a table of WITH, as the clause names them. */
static bool rename_columns(struct scope_entry *e, const struct sql_expr *columns)
{
    uint32_t n = 0;
    for (const struct sql_expr *c = columns; c; c = c->next, n++) {
        for (const struct sql_expr *before = columns; before != c; before = before->next)
            if (sql_name_equal(before->name, c->name))
                return false;
        if (n == e->n_columns)
            return false;
        e->columns[n].name = c->name;
    }
    return !columns || n == e->n_columns;
}

static bool add_name(struct reader *r, const struct sql_from *f, bool left)
{
    struct sql_name alias = f->alias.len ? f->alias : f->name;
    const struct cte_scope *where = NULL;
    const struct sql_cte *cte = find_cte(r->ctes, f->name, &where);
    if (cte && r->recursion && cte == r->recursion->cte)
        return !left && add_round(r, alias);
    if (cte && recursion_is(where->tree, cte, where))
        return recursion_read(r, cte, where, alias, left);
    if (cte)
        return add_query(r, cte->query, where->tree, where, alias, f->name, left) &&
               rename_columns(&r->scope->entries[r->scope->n_entries - 1], cte->columns);
    const char *view;
    if (!schema_view(r->planner->e, r->planner->arena, f->name, &view))
        return false;
    const struct sql_tree *tree = parse(r, view, true);
    if (tree)
        return !tree->n_parameters && add_query(r, tree->query, tree, NULL, alias, f->name, left);
    char name[64];
    if (f->name.len && f->name.len < sizeof name) {
        memcpy(name, f->name.p, f->name.len);
        name[f->name.len] = 0;
        const struct engine_batches *b = engine_find_batches(r->planner->e, name, 0);
        if (b)
            return add_batches(r, b, alias, left);
    }
    if (read_bounds_table(r, f, left))
        return true;
    const struct schema_table *t = schema_find(r->planner->e, f->name);
    return t && sql_name_is(f->name, t->table) && add_table(r, t, alias, left);
}

/* ---- joins ---- */

static bool add_equality(struct reader *r, struct plan_expr *a, struct plan_expr *b, struct plan_expr **terms,
                         uint32_t *n)
{
    if ((a->type == PLAN_TEXT) != (b->type == PLAN_TEXT) || *n == PLAN_MAX_TESTS)
        return false;
    struct plan_expr *x = plan_expr_new(r->plan, X_COMPARE, PLAN_INT, 2);
    if (!x)
        return false;
    x->sql = SQL_EQ;
    x->args[0] = a;
    x->args[1] = b;
    x->sources = a->sources | b->sources;
    terms[(*n)++] = x;
    return true;
}

/* Of a right join with USING the bare name means the one that is there. */
static bool merge(struct reader *r, struct scope_column *left, struct plan_expr *right)
{
    struct plan_expr *x =
        left->expr->type == right->type ? plan_expr_new(r->plan, X_COALESCE, (enum plan_type)right->type, 2) : NULL;
    if (!x || left->merged)
        return false;
    x->args[0] = left->expr;
    x->args[1] = right;
    x->sources = left->expr->sources | right->sources;
    left->merged = x;
    return true;
}

/* Beside a right join, wherever that stands, SQLite refuses a name that several tables on the left have, unless USING
 * has made one of them. */
static bool is_refused(const struct reader *r, struct sql_name name)
{
    bool right = false;
    uint32_t n = 0;
    for (const struct sql_from *f = r->core ? r->core->from : NULL; f; f = f->next)
        right |= (f->join & JOIN_RIGHT) != 0;
    for (uint32_t i = 0; i + 1 < r->scope->n_entries && right; i++)
        n += scope_find_in(&r->scope->entries[i], name, false) != NULL;
    return n > 1;
}

/* USING (column, …): the first table on the left that has it. */
static bool read_using(struct reader *r, const struct sql_from *f, struct plan_expr **terms, uint32_t *n)
{
    struct scope_entry *right = &r->scope->entries[r->scope->n_entries - 1];
    for (const struct sql_expr *x = f->using_columns; x; x = x->next) {
        struct scope_column *left = NULL, *own = NULL;
        for (uint32_t i = 0; i + 1 < r->scope->n_entries && !left; i++)
            left = scope_find_in(&r->scope->entries[i], x->name, false);
        for (uint32_t i = 0; i < right->n_columns && !own; i++)
            own = sql_name_equal(right->columns[i].name, x->name) ? &right->columns[i] : NULL;
        if (!left || !own || !left->expr || !own->expr || left->expr->mixed || own->expr->mixed ||
            is_refused(r, x->name) || !add_equality(r, scope_column_value(left, true), own->expr, terms, n))
            return false;
        own->joined = own->used = left->used = true;
        if ((f->join & JOIN_RIGHT) && !merge(r, left, own->expr))
            return false;
    }
    return true;
}

/* NATURAL: USING of all columns that a table on the left has, too. */
static bool read_natural(struct reader *r, struct plan_expr **terms, uint32_t *n)
{
    struct scope_entry *right = &r->scope->entries[r->scope->n_entries - 1];
    for (uint32_t k = 0; k < right->n_columns; k++) {
        struct scope_column *own = &right->columns[k];
        struct scope_column *left = NULL;
        for (uint32_t i = 0; i + 1 < r->scope->n_entries && !left && !own->hidden; i++)
            left = scope_find_in(&r->scope->entries[i], own->name, false);
        if (!left)
            continue;
        if (left->hidden || !left->expr || !own->expr || left->expr->mixed || own->expr->mixed ||
            is_refused(r, own->name) || !add_equality(r, scope_column_value(left, true), own->expr, terms, n))
            return false;
        own->joined = own->used = left->used = true;
    }
    return true;
}

/* Makes the last source that of a right join: rows of it stay without any of those before it. */
static bool begin_right_join(struct reader *r, const struct sql_from *f, uint32_t n_where)
{
    struct query_plan *p = r->plan;
    struct plan_source *s = &p->sources[p->n_sources - 1];
    if (p->right || p->n_sources < 2 || (f->join & JOIN_NATURAL) || r->recursion || p->n_where != n_where)
        return false;
    for (uint32_t i = 0; i < p->n_sources; i++)
        if (p->sources[i].table.outline || p->sources[i].batches || p->sources[i].round || p->sources[i].kin)
            return false;
    s->left = (f->join & JOIN_LEFT) != 0;
    s->right = true;
    p->right = p->n_sources - 1;
    p->n_inner = p->n_where;
    for (uint32_t i = 0; i + 1 < r->scope->n_entries; i++) /* what was made of the others is NULL with them */
        for (uint32_t c = 0; c < r->scope->entries[i].n_columns; c++) {
            struct scope_column *column = &r->scope->entries[i].columns[c];
            column->expr = null_with(r, column->expr, 0);
        }
    return true;
}

static bool read_join(struct reader *r, const struct sql_from *f, bool left)
{
    struct query_plan *p = r->plan;
    if (left && !p->n_sources)
        return false;
    struct plan_source *s = left ? &p->sources[p->n_sources - 1] : NULL;
    struct plan_expr **terms = left ? s->on : p->where;
    uint32_t *n = left ? &s->n_on : &p->n_where;
    if (f->using_columns && !read_using(r, f, terms, n))
        return false;
    if ((f->join & JOIN_NATURAL) && !read_natural(r, terms, n))
        return false;
    return !f->on || read_conjunction(r, f->on, terms, n);
}

bool read_from(struct reader *r, const struct sql_from *from)
{
    for (const struct sql_from *f = from; f; f = f->next) {
        bool right = (f->join & JOIN_RIGHT) != 0;
        bool left = (f->join & JOIN_LEFT) != 0 || right || (r->left_core && r->left_core == r->core);
        uint32_t n_sources = r->plan->n_sources, n_where = r->plan->n_where;
        bool ok = !f->indexed && !f->schema.len;
        if (ok && f->form == SOURCE_TABLE)
            ok = add_name(r, f, left);
        else if (ok && f->form == SOURCE_FUNCTION)
            ok = read_sql_table(r, f, f->alias.len ? f->alias : f->name, left) || read_kin(r, f, left) ||
                 add_pointer(r, f, left);
        else if (ok && f->form == SOURCE_QUERY)
            ok = add_query(r, f->query, r->tree, r->ctes, f->alias, f->alias, left);
        else
            ok = false;
        if (ok && right)
            ok = r->plan->n_sources == n_sources + 1 && begin_right_join(r, f, n_where);
        if (!ok || !read_join(r, f, left))
            return false;
    }
    return r->scope->n_entries > 0;
}
