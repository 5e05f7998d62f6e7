/* The steps of a plan: which source is scanned, how the others are joined to its rows, and where each condition is
 * checked. That table is scanned from which most equalities are keys of the others, the largest of such; a table whose
 * row number is asked for comes before those that need a hash. */
#include "sql/plan/plan_private.h"

static uint32_t rows_of(const struct plan_source *s)
{
    return s->sub || s->batches || s->pointer ? 100000 : s->table.table->n_rows;
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

enum fit { FIT_NONE, FIT_CROSS, FIT_HASH, FIT_ROW };

/* How well a source can come next. */
static enum fit fit_of(const struct query_plan *p, uint8_t source, uint32_t placed)
{
    const struct plan_source *s = &p->sources[source];
    struct plan_expr *const *terms = s->left ? s->on : p->where;
    uint32_t n = s->left ? s->n_on : p->n_where;
    enum fit best = FIT_CROSS;
    for (uint32_t i = 0; s->left && i < s->n_on; i++)
        if (s->on[i]->sources & ~(placed | 1u << source))
            return FIT_NONE;
    for (uint32_t i = 0; i < n; i++) {
        int16_t column;
        struct plan_expr *key;
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
    for (uint32_t i = 0; i < n; i++) /* by row number: the other keys are checked behind it */
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
        if (terms[i]->sources == own && (left || !p->sources[s->source].left))
            ok = take(s->tests, &s->n_tests, terms[i]);
        else if (!s->by_row && s->n_keys < PLAN_MAX_KEYS && placed && (left || !p->sources[s->source].left) &&
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
    *s = (struct plan_step){.source = source};
    for (uint32_t i = 0; i < of->n_on; i++)
        on[i] = of->on[i];
    if (of->left && !take_terms(p, s, on, of->n_on, *placed, true))
        return false;
    for (uint32_t i = 0; of->left && i < of->n_on; i++)
        if (on[i])
            return false;
    bool ok = take_terms(p, s, where, p->n_where, *placed, false);
    *placed |= 1u << source;
    return ok;
}

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
            if (fit > best ||
                (fit == best && fit != FIT_NONE && rows_of(&p->sources[i]) < rows_of(&p->sources[next]))) {
                best = fit;
                next = (int)i;
            }
        }
        if (next < 0 || !add_step(p, (uint8_t)next, &placed, where))
            return false;
    }
    for (uint32_t i = 0; i < p->n_where; i++) /* of no source at all */
        if (where[i] && !take(p->steps[0].where, &p->steps[0].n_where, where[i]))
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

/* Equalities between sources that are checked pair by pair: `a.x + a.y = b.z` is a key of b only. */
static uint32_t lost_keys(const struct query_plan *p)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        lost += equalities(p->steps[i].where, p->steps[i].n_where) + equalities(p->steps[i].after, p->steps[i].n_after);
    return lost;
}

bool plan_steps(struct query_plan *p)
{
    int first = -1;
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        if (p->sources[i].left || !steps_from(p, (uint8_t)i))
            continue;
        uint32_t lost = lost_keys(p);
        if (first < 0 || lost < least || (lost == least && rows_of(&p->sources[i]) > rows_of(&p->sources[first]))) {
            first = (int)i;
            least = lost;
        }
    }
    return first >= 0 && steps_from(p, (uint8_t)first);
}
