/* Row values in conditions: (a, b) = (c, d), (a, b) < (c, d), (a, b) BETWEEN (c, d) AND (e, f). They become comparisons
 * of their columns. That is done where NULL counts as false only, since SQLite does not say which of both a comparison
 * of rows is. */
#include "sql/plan/plan_private.h"

static bool is_row(const struct sql_expr *x, uint32_t n)
{
    return x->kind == EXPR_ROW && (n == 0 || x->n_args == n);
}

static bool add_term(struct plan_expr *x, struct plan_expr **terms, uint32_t *n)
{
    if (!x || x->type == PLAN_TEXT || *n == PLAN_MAX_TESTS)
        return false;
    terms[(*n)++] = x;
    return true;
}

static struct plan_expr *both(struct reader *r, enum expr_op op, struct plan_expr *a, struct plan_expr *b)
{
    struct plan_expr *x = a && b ? plan_expr_new(r->plan, op, PLAN_INT, 2) : NULL;
    if (!x)
        return NULL;
    x->args[0] = a;
    x->args[1] = b;
    x->sources = a->sources | b->sources;
    return x;
}

static struct plan_expr *compare(struct reader *r, uint8_t op, const struct sql_expr *a, const struct sql_expr *b)
{
    struct plan_expr *x, *y;
    return collate_pair(r, a, b, &x, &y) ? read_compare(r, op, x, y) : NULL;
}

/* a < c OR (a = c AND (b < d OR …)), where `last` is the operator between the last columns. */
static struct plan_expr *read_order(struct reader *r, uint8_t op, uint8_t last, const struct sql_expr *a,
                                    const struct sql_expr *b)
{
    if (!a->next)
        return compare(r, last, a, b);
    struct plan_expr *first = compare(r, op, a, b), *same = first ? compare(r, SQL_EQ, a, b) : NULL;
    struct plan_expr *rest = same ? read_order(r, op, last, a->next, b->next) : NULL;
    return both(r, X_OR, first, both(r, X_AND, same, rest));
}

/* a != c OR b != d … */
static struct plan_expr *read_difference(struct reader *r, uint8_t op, const struct sql_expr *a,
                                         const struct sql_expr *b)
{
    struct plan_expr *x = compare(r, op, a, b);
    return a->next && x ? both(r, X_OR, x, read_difference(r, op, a->next, b->next)) : x;
}

static bool read_pair(struct reader *r, uint8_t op, const struct sql_expr *a, const struct sql_expr *b,
                      struct plan_expr **terms, uint32_t *n)
{
    static const uint8_t strict[] = {[SQL_LT] = SQL_LT, [SQL_LE] = SQL_LT, [SQL_GT] = SQL_GT, [SQL_GE] = SQL_GT},
                         loose[] = {[SQL_LT] = SQL_LE, [SQL_LE] = SQL_LE, [SQL_GT] = SQL_GE, [SQL_GE] = SQL_GE};
    enum { MOST_COLUMNS = PLAN_MAX_KEYS };
    if (a->n_args > MOST_COLUMNS)
        return false;
    const struct sql_expr *x = a->args, *y = b->args;
    switch (op) {
    case SQL_EQ:
    case SQL_IS:
        for (; x; x = x->next, y = y->next)
            if (!add_term(compare(r, op, x, y), terms, n))
                return false;
        return true;
    case SQL_NE:
    case SQL_ISNOT:
        return add_term(read_difference(r, op, x, y), terms, n);
    case SQL_LT:
    case SQL_LE:
    case SQL_GT:
    case SQL_GE: /* what it says of the first column alone bounds scans */
        return add_term(compare(r, loose[op], x, y), terms, n) &&
               add_term(read_order(r, strict[op], op, x, y), terms, n);
    default:
        return false;
    }
}

bool rows_are_compared(const struct sql_expr *x)
{
    if (x->kind == EXPR_BETWEEN)
        return !x->negated && is_row(x->args, 0) && is_row(x->args->next, x->args->n_args) &&
               is_row(x->args->next->next, x->args->n_args);
    return x->kind == EXPR_BINARY && is_row(x->args, 0) && x->args->next && is_row(x->args->next, x->args->n_args);
}

bool read_rows_compared(struct reader *r, const struct sql_expr *x, struct plan_expr **terms, uint32_t *n)
{
    const struct sql_expr *a = x->args, *b = a->next;
    if (x->kind == EXPR_BETWEEN)
        return read_pair(r, SQL_GE, a, b, terms, n) && read_pair(r, SQL_LE, a, b->next, terms, n);
    return read_pair(r, x->op, a, b, terms, n);
}
