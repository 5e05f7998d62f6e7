/* Statements that have plans, or none, and whose answers are those of SQLite alone. */
#ifndef MERIDIAN_TEST_PLAN_SHAPES_H
#define MERIDIAN_TEST_PLAN_SHAPES_H

#include "plan_grammar.h"

#include <check.h>

enum expected { PLANNED, NOT_PLANNED, EITHER };

/* The statements' answers are those of SQLite alone, by a plan or not. */
static inline void each(struct mirror *m, const char *const *statements, size_t n, enum expected expected)
{
    for (size_t i = 0; i < n; i++) {
        bool planned = mirror_compare_planner(m, statements[i]);
        ck_assert_msg(planned || expected != PLANNED, "no plan: %s", statements[i]);
        ck_assert_msg(!planned || expected != NOT_PLANNED, "a plan: %s", statements[i]);
    }
}
#define EACH(m, list, expected) each(m, list, sizeof(list) / sizeof *(list), expected)

#endif
