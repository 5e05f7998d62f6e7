/* The number that a statement gives, for tests of the public API. */
#ifndef MERIDIAN_TEST_TP_ASK_H
#define MERIDIAN_TEST_TP_ASK_H

#include "meridian/tp.h"

#include <check.h>

static inline int64_t ask(struct tp *tp, const char *sql)
{
    struct tp_result *r;
    ck_assert_msg(tp_query(tp, sql, &r) == 0, "%s: %s", sql, tp_error(tp));
    ck_assert_int_eq(tp_step(r), 1);
    int64_t value = tp_int64(r, 0);
    tp_result_close(r);
    return value;
}

#endif
