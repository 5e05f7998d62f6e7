/* The parser of SELECT: any text gives a tree whose nodes lie within the text and below their bounds, or none. */
#include "sql/frontend/select.h"

#include "fuzz.h"

#include <stdlib.h>

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_query(const struct sql_query *q, struct sql_span outer, int depth);

static void check_expr(const struct sql_expr *x, struct sql_span outer, int depth)
{
    uint32_t n = 0;
    must(depth < SQL_TREE_MAX_HEIGHT + SQL_TREE_MAX_DEPTH);
    must(x->at.first >= outer.first && x->at.end <= outer.end && x->at.first < x->at.end);
    for (const struct sql_expr *a = x->args; a; a = a->next, n++)
        check_expr(a, x->at, depth + 1);
    must(n == x->n_args);
    must(x->kind != EXPR_FUNCTION || x->name.len);
    if (x->filter)
        check_expr(x->filter, x->at, depth + 1);
    if (x->query)
        check_query(x->query, x->at, depth + 1);
}

static void check_from(const struct sql_from *from, struct sql_span outer, int depth)
{
    for (; from; from = from->next) {
        must(from->at.first >= outer.first && from->at.end <= outer.end);
        if (from->on)
            check_expr(from->on, from->at, depth + 1);
        if (from->query)
            check_query(from->query, from->at, depth + 1);
        if (from->group)
            check_from(from->group, from->at, depth + 1);
    }
}

static void check_query(const struct sql_query *q, struct sql_span outer, int depth)
{
    must(q->at.first >= outer.first && q->at.end <= outer.end && q->selects);
    for (const struct sql_cte *c = q->ctes; c; c = c->next)
        check_query(c->query, q->at, depth + 1);
    for (const struct sql_select *s = q->selects; s; s = s->next) {
        must((s->items != NULL) != (s->rows != NULL) && s->query == q);
        for (const struct sql_item *i = s->items; i; i = i->next)
            if (i->expr)
                check_expr(i->expr, i->at, depth + 1);
        check_from(s->from, s->at, depth + 1);
        if (s->where)
            check_expr(s->where, s->at, depth + 1);
    }
    for (const struct sql_order *o = q->order; o; o = o->next)
        check_expr(o->expr, q->at, depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sql_tokens tokens = {0};
    struct arena arena = {0};
    struct sql_tree tree;
    char *exact = malloc(size + 1); /* so that a read behind the end is seen */
    if (exact && size) {
        memcpy(exact, data, size);
        exact = realloc(exact, size);
    }
    if (exact && sql_tokens_scan_text(&tokens, exact, size) && sql_tree_parse(&tree, &arena, tokens.p, tokens.n))
        check_query(tree.query, (struct sql_span){0, tree.n_tokens}, 0);
    sql_tokens_free(&tokens);
    arena_free(&arena);
    free(exact);
    return 0;
}
