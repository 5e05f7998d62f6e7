/* Hands conditions on the columns of a query down into it, where they leave out the same rows sooner: those on any
 * column of plain rows and of the arms of a compound, those on the keys of groups, and those on what all windows are
 * partitioned by. They stay where they were, too: what is handed down need not be all of them. */
#include "sql/plan/plan_private.h"

struct pushed {
    struct query_plan *to;
    int budget; /* nodes that may still be copied */
};

/* Is the column one by which the windows of every level are partitioned? */
static bool is_partitioned_by(const struct query_plan *p, int16_t column)
{
    for (uint32_t i = 0; i < p->n_levels; i++) {
        bool found = false;
        for (uint32_t k = 0; k < p->levels[i].n_partition; k++)
            found |= p->levels[i].order[k].column == column;
        if (!found)
            return false;
    }
    return p->n_levels > 0;
}

static struct plan_expr *copy(struct pushed *c, const struct plan_expr *x, bool within);

/* What a column stands for, over the rows of the sources; NULL: it is not known before groups or windows are there. */
static struct plan_expr *copy_column(struct pushed *c, const struct plan_expr *x, bool within)
{
    struct query_plan *p = c->to;
    const struct plan_expr *stands_for = NULL;
    bool plain = !p->grouped && !p->n_windows && !p->distinct;
    if (x->type == PLAN_REAL && !plain) /* zeros of both signs are one key */
        return NULL;
    if (!within)
        stands_for = x->column >= 0 && (uint32_t)x->column < p->n_items ? p->items[x->column].expr : NULL;
    else if (x->source == PLAN_WINDOWS && x->column >= 0 && is_partitioned_by(p, x->column))
        stands_for = p->window_rows.columns[x->column];
    else if (x->source == PLAN_GROUPS && x->column >= 0 && (uint32_t)x->column < p->n_keys)
        stands_for = p->keys[x->column];
    else if (x->source < p->n_sources)
        return plan_column(p, x->source, x->column, (enum plan_type)x->type);
    return stands_for && stands_for->type == x->type ? copy(c, stands_for, true) : NULL;
}

/* `within`: the expression is one of the plan that it is copied to. */
static struct plan_expr *copy(struct pushed *c, const struct plan_expr *x, bool within)
{
    if (--c->budget < 0 || x->mixed || x->varied || x->op == X_LOOKUP || x->op == X_RESULT || x->op == X_NULL_ROW)
        return NULL;
    if (x->op == X_COLUMN)
        return copy_column(c, x, within);
    struct plan_expr *out = plan_expr_like(c->to, x);
    for (uint32_t i = 0; out && i < x->n_args; i++) {
        if (!(out->args[i] = copy(c, x->args[i], within)))
            return NULL;
        out->sources |= out->args[i]->sources;
    }
    return out;
}

/* Checks the condition as soon as its sources are there. */
static void add_test(struct query_plan *p, struct plan_expr *x)
{
    uint32_t placed = 0, at = 0;
    for (; at < p->n_steps; at++) {
        placed |= 1u << p->steps[at].source;
        if (!(x->sources & ~placed))
            break;
    }
    if (at == p->n_steps)
        return;
    struct plan_step *s = &p->steps[at];
    if (at == 0 && s->n_tests < PLAN_MAX_TESTS)
        s->tests[s->n_tests++] = x;
    else if (at && s->n_where < PLAN_MAX_TESTS)
        s->where[s->n_where++] = x;
}

static void push_tests_of(struct query_plan *p, uint32_t at, uint32_t first);

enum { MOST_NODES = 200 };

static void push_into(struct query_plan *p, const struct plan_expr *x)
{
    struct pushed c = {.to = p, .budget = MOST_NODES};
    uint32_t before = p->n_steps ? p->steps[0].n_tests : 0;
    if (p->limit >= 0 || p->offset || p->right || p->step || (p->grouped && !p->n_keys))
        return;
    struct plan_expr *own = copy(&c, x, false);
    if (!own)
        return;
    add_test(p, own);
    push_tests_of(p, 0, before);
}

/* Those tests of a step, from `first` on, whose rows a query gives. What ON says of a right join leaves out no rows. */
static void push_tests_of(struct query_plan *p, uint32_t at, uint32_t first)
{
    const struct plan_step *s = &p->steps[at];
    struct query_plan *sub = at < p->n_steps ? p->sources[s->source].sub : NULL;
    if (!sub || sub->step || p->sources[s->source].right)
        return;
    for (uint32_t i = first; i < s->n_tests; i++)
        for (struct query_plan *arm = sub; arm && s->tests[i]->sources == 1u << s->source; arm = arm->next_arm)
            push_into(arm, s->tests[i]);
}

void plan_push_tests(struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        push_tests_of(p, i, 0);
}
