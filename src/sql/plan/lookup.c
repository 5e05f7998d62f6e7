/* Queries within expressions. Each becomes a plan of its own, whose rows are looked up by keys:
 *
 *     x IN (SELECT a FROM …)                                  is x among the a?
 *     EXISTS (SELECT … FROM t WHERE t.a = s.b AND …)          is s.b among the t.a of rows that pass the rest?
 *     (SELECT max(v) FROM t WHERE t.a = s.b AND …)            the value beside s.b, of the groups by t.a
 *     (SELECT v FROM t WHERE t.ts <= s.ts ORDER BY t.ts DESC) the first of the rows within ranges: lookup_ranges.c
 *
 * Conditions that look outside in another way are not understood. */
#include "sql/plan/plan_private.h"

static struct plan_lookup *add_lookup(struct reader *r, enum lookup_kind kind, struct query_plan *sub, uint32_t n_keys)
{
    struct query_plan *p = r->plan;
    if (!sub || p->n_lookups == PLAN_MAX_LOOKUPS) {
        plan_free(sub);
        return NULL;
    }
    struct plan_lookup *l = &p->lookups[p->n_lookups++];
    *l = (struct plan_lookup){.kind = (uint8_t)kind, .sub = sub, .n_keys = n_keys, .aggregate = AGG_KINDS};
    return l;
}

/* Of keys and ranges; what orders rows comes first of them. Their arguments in `args`. */
static struct plan_lookup *add_keyed(struct reader *r, enum lookup_kind kind, struct query_plan *sub,
                                     const struct keyed *k, struct plan_expr **args)
{
    struct plan_lookup *l = add_lookup(r, kind, sub, k->n);
    for (uint32_t i = 0; l && i < k->n; i++)
        args[i] = k->outer[i];
    for (uint32_t i = 0; l && i < k->n_ranges; i++) {
        args[k->n + i] = k->ranges[i].other;
        l->ops[l->n_ranges++] = k->ranges[i].op;
    }
    if (l) {
        l->aggregate = k->aggregate;
        l->last = k->last;
        l->n_ties = k->ties ? sub->n_orders : 0;
    }
    return l;
}

static struct plan_expr *make(struct reader *r, const struct plan_lookup *l, enum plan_type type,
                              struct plan_expr *const *args)
{
    uint32_t n = l ? l->n_keys + l->n_ranges : 0;
    struct plan_expr *x = l ? plan_expr_new(r->plan, X_LOOKUP, type, n) : NULL;
    for (uint32_t i = 0; x && i < n; i++) {
        x->args[i] = args[i];
        x->sources |= args[i]->sources;
    }
    if (x)
        x->lookup = l;
    return x;
}

/* A reader for the query: SQLite runs it apart from the loops around it. */
static struct reader inside(const struct reader *r, bool any_order)
{
    struct reader in = *r;
    in.loop_up = NULL;
    in.loops = NULL;
    in.loop_arm = 0;
    in.any_order = any_order;
    in.aggregates_allowed = in.windows_allowed = false; /* those of this query are none of the other's */
    return in;
}

static bool read_left(struct reader *r, const struct sql_expr *left, struct plan_expr **args, uint32_t *n)
{
    const struct sql_expr *x = left->kind == EXPR_ROW ? left->args : left;
    for (*n = 0; x && *n < PLAN_MAX_KEYS; x = left->kind == EXPR_ROW ? x->next : NULL)
        if (!(args[(*n)++] = read_expr(r, x)))
            return false;
    return !x;
}

static struct plan_expr *read_in_query(struct reader *r, const struct sql_expr *x)
{
    struct plan_expr *args[PLAN_MAX_KEYS];
    uint32_t n;
    struct reader in = inside(r, true);
    if (!read_left(r, x->args, args, &n))
        return NULL;
    const struct plan_lookup *l = add_lookup(r, LOOKUP_IN, plan_build(&in, x->query, r->tree, r->ctes), n);
    if (!l || l->sub->n_items != n)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t type = l->sub->items[i].expr->type;
        if (type != args[i]->type || type == PLAN_REAL || type == PLAN_NULL)
            return NULL;
    }
    r->plan->order_unknown |= n > 1; /* SQLite may go through the list, and look each row of it up */
    struct plan_expr *out = make(r, l, PLAN_INT, args);
    if (out)
        out->negated = x->negated;
    return out;
}

/* Of what correlated.c reads: what it reads of the rows outside are the keys. */
static struct plan_lookup *add_correlated(struct reader *r, const struct sql_query *q, struct correlated *c)
{
    struct query_plan *sub = plan_build_correlated(q, c);
    struct plan_lookup *l = add_lookup(r, c->value ? LOOKUP_VALUE : LOOKUP_EXISTS, sub, c->n);
    if (l) {
        l->by_rounds = true;
        l->n_ties = sub->n_orders;
    }
    return l;
}

static bool is_one(struct reader *r, const struct sql_expr *limit)
{
    struct plan_expr *n = limit ? read_constant(r, limit) : NULL;
    return n && n->type == PLAN_INT && n->word == 1;
}

/* SELECT 1, SELECT *: what EXISTS asks for is of no account, but names in it must be there. */
static bool asks_for_nothing(const struct sql_select *s)
{
    const struct sql_item *i = s->items;
    return !i->next && ((i->star && !i->table.len) || (!i->star && i->expr->kind == EXPR_INTEGER));
}

static struct plan_expr *read_exists(struct reader *r, const struct sql_expr *x)
{
    const struct sql_query *q = x->query;
    struct reader in = inside(r, true);
    struct keyed k = {.aggregate = AGG_KINDS};
    struct plan_expr *args[PLAN_MAX_KEYS + PLAN_MAX_RANGES];
    if (q->offset || q->order || (q->limit && !is_one(r, q->limit)) || !asks_for_nothing(q->selects))
        return NULL;
    struct query_plan *sub = plan_build_keyed(&in, q, &k);
    if (sub)
        return make(r, add_keyed(r, LOOKUP_EXISTS, sub, &k, args), PLAN_INT, args);
    struct correlated c = {.outer = &in};
    return make(r, add_correlated(r, q, &c), PLAN_INT, c.args);
}

/* What the value is where there are no rows: NULL or 0 of one aggregate, or what coalesce() makes of it. */
static bool of_no_rows(struct reader *r, const struct sql_expr *x, enum plan_type type, int64_t *out)
{
    static const char *const nulls[] = {
        "min", "max", "sum", "avg", "group_concat", "string_agg", "median", "percentile", "percentile_cont"};
    *out = plan_null(type);
    if (x->kind != EXPR_FUNCTION || x->over)
        return false;
    if (sql_name_is(x->name, "count") || sql_name_is(x->name, "total")) {
        *out = type == PLAN_REAL ? column_f64_word(0) : 0;
        return true;
    }
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        if (sql_name_is(x->name, nulls[i]) && (i > 1 || x->n_args == 1))
            return true;
    if (x->n_args != 2 || !(sql_name_is(x->name, "coalesce") || sql_name_is(x->name, "ifnull")) ||
        !of_no_rows(r, x->args, type, out))
        return false;
    struct plan_expr *other = *out == plan_null(type) ? read_constant(r, x->args->next) : NULL;
    if (other && other->type == type)
        *out = other->word;
    return *out != plan_null(type) || (other && other->type == PLAN_NULL);
}

/* The type of a value: of the first row, or of an aggregate within ranges. */
static enum plan_type value_type(const struct plan_lookup *l, const struct plan_expr *value)
{
    switch (l->aggregate) {
    case AGG_COUNT:
        return PLAN_INT;
    case AGG_TOTAL:
    case AGG_AVG:
        return PLAN_REAL;
    default:
        return (enum plan_type)value->type;
    }
}

/* Does nothing come of it where an operand is NULL? */
static bool spreads_null(const struct sql_expr *x)
{
    static const char *const calls[] = {"round", "abs"};
    bool spreads = x->kind == EXPR_BINARY && (x->op == SQL_ADD || x->op == SQL_SUBTRACT || x->op == SQL_MULTIPLY ||
                                              x->op == SQL_DIVIDE || x->op == SQL_REMAINDER);
    for (size_t i = 0; i < sizeof calls / sizeof *calls && x->kind == EXPR_FUNCTION && !x->over; i++)
        spreads |= sql_name_is(x->name, calls[i]);
    return spreads;
}

/* of_no_rows(), or several aggregates of which one makes NULL of all. */
static bool of_no_rows_of_several(struct reader *r, const struct sql_expr *x, enum plan_type type, int64_t *out)
{
    if (of_no_rows(r, x, type, out))
        return true;
    bool null = false;
    for (const struct sql_expr *a = spreads_null(x) ? x->args : NULL; a && !null; a = a->next)
        null = of_no_rows_of_several(r, a, type, out) && *out == plan_null(type);
    *out = plan_null(type);
    return null;
}

/* The aggregate as a part of what is computed outside; `out` itself where it is the whole. */
static struct plan_expr *put_into(struct reader *r, const struct sql_expr *value, const struct sql_expr *whole,
                                  struct plan_expr *out)
{
    if (!out || !whole)
        return out;
    struct reader around = *r;
    around.known = value;
    around.known_as = out;
    return read_expr(&around, whole);
}

static struct plan_expr *read_correlated_value(struct reader *r, const struct sql_expr *x)
{
    const struct sql_query *q = x->query;
    struct reader in = inside(r, true);
    struct correlated c = {.outer = &in, .value = q->selects->items->expr};
    struct plan_lookup *l = add_correlated(r, q, &c);
    const struct plan_expr *value = l ? l->sub->items[1].expr : NULL;
    enum plan_type type = value ? (enum plan_type)value->type : PLAN_NULL;
    if (type == PLAN_NULL)
        return NULL;
    l->missing = plan_null(type);
    if (l->sub->grouped && !q->selects->group && !of_no_rows_of_several(r, c.value, type, &l->missing))
        return NULL;
    struct plan_expr *out = make(r, l, type, c.args);
    if (out)
        out->letter = value->letter;
    return put_into(r, c.value, c.whole, out);
}

static struct plan_expr *read_value(struct reader *r, const struct sql_expr *x)
{
    const struct sql_query *q = x->query;
    const struct sql_item *item = q->selects->items;
    struct reader in = inside(r, false);
    struct keyed k = {.aggregate = AGG_KINDS};
    struct plan_expr *args[PLAN_MAX_KEYS + PLAN_MAX_RANGES];
    if (q->selects->next || q->selects->rows || q->offset || (q->limit && !is_one(r, q->limit)) || !item ||
        item->next || item->star)
        return NULL;
    k.value = item->expr;
    struct query_plan *sub = plan_build_keyed(&in, q, &k);
    bool any_order = !sub && q->selects->from;
    if (any_order) { /* where one row is found, it may come in any order */
        k = (struct keyed){.value = item->expr, .aggregate = AGG_KINDS, .ties = q->order != NULL};
        in = inside(r, true);
        sub = plan_build_keyed(&in, q, &k);
    }
    if (!sub)
        return read_correlated_value(r, x);
    struct plan_lookup *l = add_keyed(r, LOOKUP_VALUE, sub, &k, args);
    if (!l)
        return NULL;
    const struct plan_expr *value = l->sub->items[k.n].expr;
    enum plan_type type = value_type(l, value);
    bool computed = l->sub->grouped || l->aggregate != AGG_KINDS;
    if (type == PLAN_NULL)
        return NULL;
    /* nobody knows which of several is the first, unless they are ordered */
    l->one = !computed && k.n + k.n_ranges && (any_order || l->sub->n_sources > 1) && !k.ties;
    l->missing = plan_null(type);
    if (computed && k.n + k.n_ranges && !of_no_rows(r, k.value, type, &l->missing))
        return NULL;
    struct plan_expr *out = make(r, l, type, args);
    if (out)
        out->letter = l->aggregate == AGG_KINDS ? value->letter : 'c';
    return put_into(r, k.value, k.whole, out);
}

struct plan_expr *read_lookup_of_one(struct reader *r, const struct sql_expr *x)
{
    uint32_t before = r->plan->n_lookups;
    struct plan_expr *out = read_value(r, x);
    if (!out || before == r->plan->n_lookups)
        return NULL;
    struct plan_lookup *l = &r->plan->lookups[r->plan->n_lookups - 1]; /* of the body; those within it are of `sub` */
    l->one |= !l->sub->grouped && !x->query->limit;
    return out;
}

/* Each is read in up to three ways, and so is each within it: what lies deep would take for ever. */
enum { MOST_READ = 256 };

struct plan_expr *read_lookup(struct reader *r, const struct sql_expr *x)
{
    if (r->planner->n_lookups++ >= MOST_READ)
        return NULL;
    switch (x->kind) {
    case EXPR_IN:
        return read_in_query(r, x);
    case EXPR_EXISTS:
        return read_exists(r, x);
    default:
        return read_value(r, x);
    }
}
