/* What the files that run a plan share. */
#ifndef MERIDIAN_SQL_PLAN_RUN_PRIVATE_H
#define MERIDIAN_SQL_PLAN_RUN_PRIVATE_H

#include "sql/plan/plan_private.h"

/* Appends the rows of a plan that has no DISTINCT, as they come, with what orders them behind the list. The sources are
 * open. */
void run_into(struct run *r, struct table *t);
/* The rows that the plan makes of those of a round, with which *step begins as zeros but for its engine. What it finds
 * rows by stays from round to round, until run_close(). */
int run_round(struct run *step, const struct query_plan *p, const struct table *round, struct plan_answer *out);
/* Plans without what top.c is for. The sources are open. */
void run_to_answer(struct run *r, struct plan_answer *out);

/* Of args that are not decoded: the rows that the plan can use. NULL: all, or r->rc. args_rows.c */
struct table *args_rows_run(struct run *r, uint8_t source);

#endif
