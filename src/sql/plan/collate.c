/* x COLLATE NOCASE: texts compare as they do with their ASCII letters in lower case. The clause says how a value is
 * compared, not what it is, so it is read where values are compared: operators, IN, GROUP BY, ORDER BY. Anywhere else
 * it is not understood. */
#include "sql/plan/varied.h"

#include <string.h>

/* SQLite compares up to the first zero byte: a text that has one makes the plan give up, since an integer comes. */
static const char lower[] = "SELECT CASE WHEN instr(?1, char(0)) THEN 1 ELSE lower(?1) END";

static struct plan_expr *lower_constant(struct reader *r, const struct plan_expr *x)
{
    struct strpool *strings = &r->planner->e->storage->strings;
    struct slice s = strpool_view(strings, (strid)x->word);
    char *copy = memchr(s.p, 0, s.len) ? NULL : arena_strndup(r->planner->arena, (const char *)s.p, s.len);
    for (size_t i = 0; copy && i < s.len; i++)
        copy[i] = copy[i] >= 'A' && copy[i] <= 'Z' ? (char)(copy[i] + 'a' - 'A') : copy[i];
    strid id = copy ? strpool_intern(strings, copy, s.len) : 0;
    return id ? plan_const(r->plan, PLAN_TEXT, id) : NULL;
}

struct plan_expr *collate_value(struct reader *r, enum collation c, struct plan_expr *x)
{
    if (!x || c != COLLATE_NOCASE || x->type != PLAN_TEXT)
        return x;
    if (x->varied)
        return NULL;
    if (x->op == X_CONST)
        return x->word == plan_null(PLAN_TEXT) ? x : lower_constant(r, x);
    return plan_make_call(r->plan, PLAN_TEXT, lower, &x, 1);
}

enum collation collate_take(const struct sql_expr **x)
{
    enum collation c = COLLATE_NONE;
    while ((*x)->kind == EXPR_COLLATE && c != COLLATE_UNKNOWN) {
        enum collation this = sql_name_is((*x)->name, "nocase")   ? COLLATE_NOCASE
                              : sql_name_is((*x)->name, "binary") ? COLLATE_BINARY
                                                                  : COLLATE_UNKNOWN;
        c = c == COLLATE_NONE || this == COLLATE_UNKNOWN ? this : c; /* the outermost counts */
        *x = (*x)->args;
    }
    return c;
}

/* One side of a comparison. Varied values are compared with literals only. */
static struct plan_expr *read_side(struct reader *r, const struct sql_expr *x, const struct sql_expr *other)
{
    struct plan_expr *out = read_mixed(r, x);
    return out && out->varied && varied_is_literal(other) ? out : mixed_to_real(r, out);
}

bool collate_pair(struct reader *r, const struct sql_expr *x, const struct sql_expr *y, struct plan_expr **a,
                  struct plan_expr **b)
{
    enum collation left = collate_take(&x), right = collate_take(&y), c = left != COLLATE_NONE ? left : right;
    if (left == COLLATE_UNKNOWN || right == COLLATE_UNKNOWN)
        return false;
    *a = read_side(r, x, y);
    *b = *a ? read_side(r, y, x) : NULL;
    if (*b && ((*a)->varied || (*b)->varied)) {
        *a = varied_compared(r->plan, varied_of(r, *a));
        *b = varied_compared(r->plan, varied_of(r, *b));
    }
    *a = *a && *b ? collate_value(r, c, *a) : NULL;
    *b = *a ? collate_value(r, c, *b) : NULL;
    return *b != NULL;
}
