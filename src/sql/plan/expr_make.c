/* Makes expressions of a plan, and compares them. */
#include "sql/plan/plan_private.h"

#include <string.h>

int64_t plan_null(enum plan_type type)
{
    return type == PLAN_TEXT ? 0 : type == PLAN_REAL ? COL_NULL_F64 : COL_NULL;
}

enum col_type plan_col_type(enum plan_type type)
{
    return type == PLAN_TEXT ? COL_STR : type == PLAN_REAL ? COL_F64 : COL_I64;
}

enum plan_type plan_type_of(enum col_type type)
{
    return type == COL_STR ? PLAN_TEXT : type == COL_F64 ? PLAN_REAL : PLAN_INT;
}

struct plan_expr *plan_expr_new(struct query_plan *p, enum expr_op op, enum plan_type type, uint32_t n_args)
{
    struct plan_expr *x = arena_zalloc(&p->arena, sizeof *x);
    struct plan_expr **args = n_args ? arena_zalloc(&p->arena, n_args * sizeof(struct plan_expr *)) : NULL;
    if (!x || (n_args && !args))
        return NULL;
    *x = (struct plan_expr){.op = (uint8_t)op,
                            .type = (uint8_t)type,
                            .letter = 'c',
                            .n_args = (uint16_t)n_args,
                            .args = args,
                            .slot = p->n_slots++};
    return x;
}

struct plan_expr *plan_expr_like(struct query_plan *p, const struct plan_expr *x)
{
    struct plan_expr *out = plan_expr_new(p, (enum expr_op)x->op, (enum plan_type)x->type, x->n_args);
    if (!out)
        return NULL;
    uint32_t slot = out->slot;
    struct plan_expr **args = out->args;
    *out = *x;
    out->slot = slot;
    out->args = args;
    out->sources = 0;
    return out;
}

struct plan_expr *plan_const(struct query_plan *p, enum plan_type type, int64_t word)
{
    struct plan_expr *x = plan_expr_new(p, X_CONST, type, 0);
    if (x)
        x->word = word;
    return x;
}

struct plan_expr *plan_column(struct query_plan *p, uint8_t source, int16_t column, enum plan_type type)
{
    struct plan_expr *x = plan_expr_new(p, X_COLUMN, type, 0);
    if (!x)
        return NULL;
    x->source = source;
    x->column = column;
    x->sources = 1u << source;
    x->letter = type == PLAN_TEXT ? 't' : type == PLAN_REAL ? 'd' : 'i';
    return x;
}

bool plan_expr_equal(const struct plan_expr *a, const struct plan_expr *b)
{
    if (a == b)
        return true;
    if (a->op != b->op || a->type != b->type || a->sql != b->sql || a->negated != b->negated ||
        a->source != b->source || a->column != b->column || a->n_args != b->n_args || a->word != b->word ||
        a->n_list != b->n_list || a->lookup != b->lookup || a->arguments != b->arguments ||
        a->list_has_null != b->list_has_null || !a->text != !b->text || (a->text && strcmp(a->text, b->text) != 0))
        return false;
    if (a->n_list && memcmp(a->list, b->list, a->n_list * sizeof *a->list) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (!plan_expr_equal(a->args[i], b->args[i]))
            return false;
    return true;
}

struct plan_expr *plan_unary(struct query_plan *p, enum expr_op op, enum plan_type type, struct plan_expr *a)
{
    struct plan_expr *x = a ? plan_expr_new(p, op, type, 1) : NULL;
    if (!x)
        return NULL;
    x->args[0] = a;
    x->sources = a->sources;
    return x;
}
