/* The steps of a plan: which source is scanned, how the others are joined to its rows, and where each condition is
 * checked. That table is scanned from which most equalities are keys of the others, and with least to be indexed of
 * such; a table whose row number is asked for comes before those that need a hash, those before ones with a range. */
#include "sql/plan/plan_private.h"
#include "sql/plan/range_words.h"

enum { ROWS_OF_QUERY = 100000 /* as nobody knows */ };

/* Of a query: one where it is an aggregate of all rows, and no more than its LIMIT. */
static uint32_t rows_of_query(const struct query_plan *sub)
{
    if (sub->step || sub->next_arm)
        return ROWS_OF_QUERY;
    if (sub->grouped && !sub->n_keys)
        return 1;
    return sub->limit >= 0 && sub->limit < ROWS_OF_QUERY ? (uint32_t)sub->limit : ROWS_OF_QUERY;
}

static uint32_t rows_of(const struct query_plan *p, uint32_t source)
{
    const struct plan_source *s = &p->sources[source];
    if (s->values)
        return s->values->n_rows;
    if (s->table.outline)
        return args_rows_likely(p, (uint8_t)source);
    if (s->sub)
        return rows_of_query(s->sub);
    return s->batches || s->pointer || s->round ? ROWS_OF_QUERY : s->table.table->n_rows;
}

/* A condition `column of source = expression over the placed ones`. */
static bool is_key(const struct plan_expr *x, uint8_t source, uint32_t placed, int16_t *column, struct plan_expr **key)
{
    if (x->op != X_COMPARE || x->sql != SQL_EQ)
        return false;
    for (int side = 0; side < 2; side++) {
        struct plan_expr *own = x->args[side], *other = x->args[1 - side];
        if (own->op != X_COLUMN || own->source != source || !other->sources || (other->sources & ~placed) ||
            own->type != other->type || own->type == PLAN_REAL)
            continue;
        *column = own->column;
        *key = other;
        return true;
    }
    return false;
}

/* A condition `expression of source < expression over the placed ones`, or >, or with =, or = alone. */
static bool is_range(const struct plan_expr *x, uint8_t source, uint32_t placed, struct plan_range *out)
{
    static const uint8_t turned[] = {
        [SQL_LT] = SQL_GT, [SQL_LE] = SQL_GE, [SQL_GT] = SQL_LT, [SQL_GE] = SQL_LE, [SQL_EQ] = SQL_EQ};
    if (x->op != X_COMPARE ||
        (x->sql != SQL_LT && x->sql != SQL_LE && x->sql != SQL_GT && x->sql != SQL_GE && x->sql != SQL_EQ))
        return false;
    for (int side = 0; side < 2; side++) {
        struct plan_expr *own = x->args[side], *other = x->args[1 - side];
        if (own->sources != 1u << source || !other->sources || (other->sources & ~placed) || own->type != PLAN_INT ||
            other->type != PLAN_INT)
            continue;
        *out = (struct plan_range){own, other, side ? turned[x->sql] : x->sql};
        return true;
    }
    return false;
}

enum fit { FIT_NONE, FIT_CROSS, FIT_RANGE, FIT_HASH, FIT_ROW };

/* How well a source can come next. */
static enum fit fit_of(const struct query_plan *p, uint8_t source, uint32_t placed)
{
    const struct plan_source *s = &p->sources[source];
    bool own = plan_has_on(s);
    struct plan_expr *const *terms = own ? s->on : p->where;
    uint32_t n = own ? s->n_on : source < p->right ? p->n_inner : p->n_where;
    enum fit best = FIT_CROSS;
    uint32_t before = p->right ? (1u << p->right) - 1 : 0; /* of a right join, and what comes behind it */
    if (p->right && source != p->right && source > p->right)
        before |= 1u << p->right;
    if (source >= p->right && (before & ~placed))
        return FIT_NONE;
    if (s->kin)
        return s->kin_of->sources & ~placed ? FIT_NONE : FIT_ROW;
    for (uint32_t i = 0; own && i < s->n_on; i++)
        if (s->on[i]->sources & ~(placed | 1u << source))
            return FIT_NONE;
    for (uint32_t i = 0; i < n; i++) {
        int16_t column;
        struct plan_expr *key;
        struct plan_range range;
        if (is_range(terms[i], source, placed, &range))
            best = FIT_RANGE > best ? FIT_RANGE : best;
        if (!is_key(terms[i], source, placed, &column, &key))
            continue;
        enum fit fit = column == VTAB_ROW ? FIT_ROW : FIT_HASH;
        best = fit > best ? fit : best;
    }
    return best;
}

static bool take(struct plan_expr **list, uint32_t *n, struct plan_expr *x)
{
    if (*n == PLAN_MAX_TESTS)
        return false;
    list[(*n)++] = x;
    return true;
}

/* Sorts the terms that can be decided now into keys and tests; those taken are cleared. */
static bool take_terms(struct query_plan *p, struct plan_step *s, struct plan_expr **terms, uint32_t n, uint32_t placed,
                       bool left)
{
    uint32_t own = 1u << s->source;
    int16_t column;
    struct plan_expr *key;
    bool finds =
        left || !plan_has_on(&p->sources[s->source]); /* WHERE leaves out rows of a left join, and finds none */
    bool keys = finds && !p->sources[s->source].kin;
    for (uint32_t i = 0; keys && i < n; i++) /* by row number: the other keys are checked behind it */
        if (terms[i] && !s->by_row && is_key(terms[i], s->source, placed, &column, &key) && column == VTAB_ROW) {
            s->by_row = true;
            s->keys[0] = key;
            s->columns[0] = VTAB_ROW;
            s->n_keys = 1;
            terms[i] = NULL;
        }
    for (uint32_t i = 0; i < n; i++) {
        if (!terms[i] || (terms[i]->sources & ~(placed | own)))
            continue;
        bool ok = true;
        if (terms[i]->sources == own && finds)
            ok = take(s->tests, &s->n_tests, terms[i]);
        else if (!s->by_row && s->n_keys < PLAN_MAX_KEYS && placed && keys &&
                 is_key(terms[i], s->source, placed, &column, &key)) {
            s->keys[s->n_keys] = key;
            s->columns[s->n_keys++] = column;
        } else if (left)
            ok = take(s->after, &s->n_after, terms[i]);
        else
            ok = take(s->where, &s->n_where, terms[i]);
        if (!ok)
            return false;
        terms[i] = NULL;
    }
    return true;
}

static bool add_step(struct query_plan *p, uint8_t source, uint32_t *placed, struct plan_expr **where)
{
    struct plan_step *s = &p->steps[p->n_steps++];
    struct plan_source *of = &p->sources[source];
    struct plan_expr *on[PLAN_MAX_TESTS];
    bool own = plan_has_on(of);
    *s = (struct plan_step){.source = source};
    for (uint32_t i = 0; i < of->n_on; i++)
        on[i] = of->on[i];
    if (own && !take_terms(p, s, on, of->n_on, *placed, true))
        return false;
    for (uint32_t i = 0; own && i < of->n_on; i++)
        if (on[i])
            return false;
    bool ok = take_terms(p, s, where, source < p->right ? p->n_inner : p->n_where, *placed, false);
    *placed |= 1u << source;
    return ok;
}

/* ---- ranges ---- */

/* The column by which the table is sorted that a range compares. */
bool steps_is_sorted_range(const struct query_plan *p, const struct plan_range *r)
{
    const struct plan_expr *x = r->own;
    if (x->op != X_COLUMN || x->column < 0 || !p->sources[x->source].table.name)
        return false;
    const struct column *c = &p->sources[x->source].table.table->columns[x->column];
    return c->sorted && c->type != COL_STR && c->type != COL_F64;
}

static void add_ranges(struct plan_step *s, struct plan_expr *const *terms, uint32_t n, uint32_t placed)
{
    for (int equal = 1; equal >= 0; equal--) /* what is equal leaves fewer rows: it comes first */
        for (uint32_t i = 0; i < n && s->n_ranges < PLAN_MAX_RANGES; i++) {
            struct plan_range x;
            if (!is_range(terms[i], s->source, placed, &x) || (x.op == SQL_EQ) != equal ||
                s->n_ranges + (uint32_t)equal == PLAN_MAX_RANGES)
                continue;
            if (equal) {
                s->ranges[s->n_ranges++] = (struct plan_range){x.own, x.other, SQL_GE};
                x.op = SQL_LE;
            }
            s->ranges[s->n_ranges++] = x;
            s->by_equal |= equal != 0;
        }
}

/* Which ranges lead to the rows of a step, the one of the best order first. Keys that are times tell more. */
static void find_ranges(const struct query_plan *p, struct plan_step *s, uint32_t placed)
{
    s->n_ranges = 0;
    s->by_sorted = s->by_equal = false;
    if (s->by_row || p->sources[s->source].kin)
        return;
    for (uint32_t k = 0; k < s->n_keys; k++) {
        struct plan_expr column = {.op = X_COLUMN, .source = s->source, .column = s->columns[k]};
        if (steps_is_sorted_range(p, &(struct plan_range){.own = &column}))
            return;
    }
    if (plan_has_on(&p->sources[s->source]))
        add_ranges(s, s->after, s->n_after, placed);
    else
        add_ranges(s, s->where, s->n_where, placed);
    bool all = s->n_ranges && !s->n_keys && !s->n_tests && !s->by_equal;
    for (uint32_t i = s->n_ranges; !s->by_equal && i-- > 0;) {
        struct plan_range swap = s->ranges[0];
        bool column = s->ranges[i].own->op == X_COLUMN, sorted = steps_is_sorted_range(p, &s->ranges[i]);
        all &= sorted && s->ranges[i].own->column == s->ranges[s->n_ranges - 1].own->column;
        if (sorted || (column && !steps_is_sorted_range(p, &swap))) {
            s->ranges[0] = s->ranges[i];
            s->ranges[i] = swap;
        }
    }
    s->by_sorted = all;
}

/* ---- from step to step ---- */

static bool steps_from(struct query_plan *p, uint8_t first)
{
    struct plan_expr *where[PLAN_MAX_TESTS];
    uint32_t placed = 0;
    p->n_steps = 0;
    for (uint32_t i = 0; i < p->n_where; i++)
        where[i] = p->where[i];
    if (!add_step(p, first, &placed, where))
        return false;
    while (p->n_steps < p->n_sources) {
        int next = -1;
        enum fit best = FIT_NONE;
        for (uint32_t i = 0; i < p->n_sources; i++) {
            if (placed >> i & 1)
                continue;
            enum fit fit = fit_of(p, (uint8_t)i, placed);
            if (fit > best || (fit == best && fit != FIT_NONE && rows_of(p, i) < rows_of(p, (uint32_t)next))) {
                best = fit;
                next = (int)i;
            }
        }
        if (next < 0 || !add_step(p, (uint8_t)next, &placed, where))
            return false;
    }
    placed = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (i)
            find_ranges(p, &p->steps[i], placed);
        placed |= 1u << p->steps[i].source;
    }
    for (uint32_t i = 0; i < p->n_where; i++) /* of no source at all */
        if (where[i] && p->right)
            return false;
        else if (where[i] && !take(p->steps[0].where, &p->steps[0].n_where, where[i]))
            return false;
    return true;
}

static uint32_t equalities(struct plan_expr *const *terms, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++)
        found += terms[i]->op == X_COMPARE && terms[i]->sql == SQL_EQ && terms[i]->args[0]->sources &&
                 terms[i]->args[1]->sources && !(terms[i]->args[0]->sources & terms[i]->args[1]->sources);
    return found;
}

/* Equalities between sources that are checked pair by pair: `a.x + a.y = b.z` is a key of b only. Where a row number
 * finds the row, there is one pair at most. */
static uint32_t lost_keys(const struct query_plan *p)
{
    uint32_t lost = 0;
    bool round = p->sources[p->steps[0].source].round; /* an index of both ends of the equality stays for all rounds */
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        if (!s->by_row)
            lost += equalities(s->where, s->n_where) + equalities(s->after, s->n_after) - (round && s->by_equal);
    }
    return lost;
}

/* Are rows of the step found by what sorts its table, without an index, as long as few rows ask? Those of a scan with
 * conditions may be few. */
static bool may_walk(const struct query_plan *p, const struct plan_step *s)
{
    return p->steps[0].n_tests && s->n_ranges && !s->n_tests && steps_is_sorted_range(p, &s->ranges[0]);
}

bool steps_has_both_bounds(const struct plan_step *s)
{
    bool lower = false, upper = false;
    for (uint32_t k = 0; k < s->n_ranges; k++) {
        bool same = plan_expr_equal(s->ranges[k].own, s->ranges[0].own);
        lower |= same && range_is_lower(s->ranges[k].op);
        upper |= same && !range_is_lower(s->ranges[k].op);
    }
    return lower && upper;
}

enum { LOOSE = 4 /* rows that are looked at beside each that passes, where spans overlap */ };

enum { WALKED = 4 /* part of the rows of such a table */ };

/* What it costs to go that way: rows to be scanned, twice that for those to be found by keys. The rows of a round are
 * few, and the other table is indexed once for all rounds. */
static uint64_t cost(const struct query_plan *p)
{
    if (p->sources[p->steps[0].source].round)
        return 0;
    uint64_t sum = rows_of(p, p->steps[0].source);
    for (uint32_t i = 1; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        uint64_t rows = rows_of(p, s->source);
        if (s->n_ranges && !s->n_keys && !s->by_equal && !steps_has_both_bounds(s))
            sum += LOOSE * (rows + rows_of(p, p->steps[0].source));
        sum += s->by_row || s->by_sorted || p->sources[s->source].kin ? 0 : may_walk(p, s) ? rows / WALKED : 2 * rows;
    }
    return sum;
}

/* Tables that are looked into by row number, by what sorts them, or by keys are not gone through; queries are run once.
 */
uint64_t plan_rows_of_round(const struct query_plan *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        bool found = i && (s->by_row || s->by_sorted || s->n_keys);
        if (!found && p->sources[s->source].table.name)
            sum += p->sources[s->source].table.table->n_rows;
    }
    return sum;
}

/* Rows that ask come first, and what they ask for is found by them: correlated.c. */
static bool is_asked(const struct query_plan *p)
{
    return p->rows && p->sources[0].round == p->rows;
}

bool plan_steps(struct query_plan *p)
{
    int first = -1;
    uint32_t least = UINT32_MAX;
    uint64_t cheapest = UINT64_MAX;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if (plan_has_on(&p->sources[i]) || p->sources[i].kin || (p->right && i > p->right) || (i > 0 && is_asked(p)) ||
            !steps_from(p, (uint8_t)i))
            continue;
        uint32_t lost = lost_keys(p);
        uint64_t costs = cost(p);
        if (first < 0 || lost < least || (lost == least && costs < cheapest)) {
            first = (int)i;
            least = lost;
            cheapest = costs;
        }
    }
    if (first < 0 || !steps_from(p, (uint8_t)first))
        return false;
    plan_push_tests(p);
    return true;
}
