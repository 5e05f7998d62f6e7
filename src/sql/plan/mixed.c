/* Numbers that are integers in some rows and reals in others: `iif(c, dur / 1e3, 0)`, `coalesce(value, 0)`, and sums of
 * such. Their type is PLAN_REAL, but their words are integers where SQLite has integers. These are constants, and sums
 * of constants. Only who knows what to do with them may read them: read_expr() gives no such number to anybody else. */
#include "sql/plan/varied.h"

bool mixed_from_integer(int64_t integer, int64_t *word)
{
    *word = (int64_t)(MIXED_WHOLE << 32 | (uint32_t)integer);
    return integer >= INT32_MIN && integer <= INT32_MAX;
}

struct plan_expr *read_mixed(struct reader *r, const struct sql_expr *x)
{
    r->mixed_allowed = true;
    return read_expr(r, x);
}

struct plan_expr *mixed_to_real(struct reader *r, struct plan_expr *x)
{
    if (!x || !x->mixed)
        return x;
    return x->varied ? NULL : plan_unary(r->plan, X_TO_REAL, PLAN_REAL, x);
}

struct plan_expr *read_as_real(struct reader *r, const struct sql_expr *x)
{
    return mixed_to_real(r, read_mixed(r, x));
}

struct plan_expr *mixed_constant(struct reader *r, const struct plan_expr *x)
{
    int64_t word;
    bool fits = x->op == X_CONST && x->type == PLAN_INT && mixed_from_integer(x->word, &word);
    return fits ? plan_const(r->plan, PLAN_REAL, word) : NULL;
}

bool mixed_unify(struct reader *r, struct plan_expr **values, uint32_t n, struct plan_expr *out)
{
    bool has[PLAN_TEXT + 1] = {false}, mixed = false, varied = false;
    for (uint32_t i = 0; i < n; i++) {
        has[values[i]->type] = true;
        mixed |= values[i]->mixed;
        varied |= values[i]->varied;
    }
    mixed |= has[PLAN_INT] && has[PLAN_REAL];
    if (varied || (has[PLAN_TEXT] && (has[PLAN_INT] || has[PLAN_REAL])))
        return varied_unify(r, values, n, out);
    out->mixed = mixed;
    out->type = has[PLAN_TEXT] ? PLAN_TEXT : has[PLAN_REAL] ? PLAN_REAL : has[PLAN_INT] ? PLAN_INT : PLAN_NULL;
    for (uint32_t i = 0; mixed && i < n; i++)
        if (values[i]->type == PLAN_INT && !(values[i] = mixed_constant(r, values[i])))
            return false;
    return true;
}
