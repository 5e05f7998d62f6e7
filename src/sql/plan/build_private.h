/* What the parts share that make plans of queries: build.c, keyed.c, compound.c. */
#ifndef MERIDIAN_SQL_PLAN_BUILD_PRIVATE_H
#define MERIDIAN_SQL_PLAN_BUILD_PRIVATE_H

#include "sql/plan/plan_private.h"

/* What a core is asked for: its own list, or one of them. */
struct asked {
    struct keyed *keyed;
    struct correlated *correlated;
    const struct list *list;
};
static const struct asked plan_asked_whole = {0};

struct query_plan *plan_build_core(struct reader *outer, const struct sql_query *q, const struct sql_select *s,
                                   const struct sql_tree *tree, const struct cte_scope *ctes,
                                   const struct asked *asked);

/* Clauses of a core; false: not understood. */
bool plan_add_item(struct reader *r, struct plan_expr *x, const char *name, size_t len);
bool plan_add_order(struct reader *r, const struct sql_order *o, struct plan_expr *x);
bool plan_read_groups(struct reader *r, const struct sql_select *s);
bool plan_read_orders(struct reader *r, const struct sql_select *s);
bool plan_read_limit(struct reader *r, const struct sql_query *q);

/* Windows in ORDER BY, beneath those of several levels: window_again.c */
bool window_order_again(const struct reader *r, const struct sql_select *s);

/* A core for lookups, or for a list: keyed.c. */
bool plan_read_keyed_core(struct reader *r, struct reader *outer, const struct sql_select *s, struct keyed *k);
/* `x` is an aggregate with other parts that look outside: *whole is all of it then, and *value the aggregate. */
void plan_take_aggregate(const struct reader *r, const struct sql_expr **value, const struct sql_expr **whole);
bool plan_read_list_core(struct reader *r, const struct sql_select *s, const struct list *list);

/* A table of WITH that names itself: recursion.c. */
bool recursion_is(const struct sql_tree *tree, const struct sql_cte *cte, const struct cte_scope *where);
bool recursion_read(struct reader *r, const struct sql_cte *cte, const struct cte_scope *where, struct sql_name alias,
                    bool left);

/* compound.c */
struct query_plan *plan_build_compound(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                       const struct cte_scope *ctes);

/* A core that reads columns of the rows that ask: correlated.c. */
bool plan_read_correlated_core(struct reader *r, const struct sql_select *s, struct correlated *c);

#endif
