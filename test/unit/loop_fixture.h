/* Runs a loop until something has happened, without fixed sleeps, and makes timers due that would come much later. */
#ifndef MERIDIAN_TEST_LOOP_FIXTURE_H
#define MERIDIAN_TEST_LOOP_FIXTURE_H

#include <check.h>
#include <stdbool.h>
#include <unistd.h>
#include <uv.h>

enum { LOOP_PATIENCE_S = 30 };

/* Turns the loop until `condition` holds; it may do a piece of work each time it is asked. */
#define RUN_UNTIL(loop, condition)                                                                                     \
    for (uint64_t end_ns_ = uv_hrtime() + LOOP_PATIENCE_S * 1000000000ull; !(condition);) {                            \
        ck_assert_msg(uv_hrtime() < end_ns_, "not after %d s: %s", LOOP_PATIENCE_S, #condition);                       \
        uv_run(loop, UV_RUN_NOWAIT);                                                                                   \
        usleep(50);                                                                                                    \
    }

/* Turns the loop often enough for what is on its way on this machine to arrive: for "nothing happens". */
static inline void loop_settle(uv_loop_t *loop)
{
    for (int i = 0; i < 30; i++) {
        uv_run(loop, UV_RUN_NOWAIT);
        usleep(100);
    }
}

static inline void loop_make_due(uv_handle_t *h, void *ctx)
{
    uv_timer_t *t = (uv_timer_t *)h;
    unsigned *n = ctx;
    if (h->type != UV_TIMER || !uv_is_active(h) || uv_is_closing(h))
        return;
    ++*n;
    ck_assert_int_eq(uv_timer_start(t, t->timer_cb, 0, uv_timer_get_repeat(t)), 0);
}

/* Every timer that runs now is due at the next turn. Returns how many there are. */
static inline unsigned loop_hurry(uv_loop_t *loop)
{
    unsigned n = 0;
    uv_walk(loop, loop_make_due, &n);
    return n;
}

/* Runs what is left; fails when something was not closed. */
static inline void loop_end(uv_loop_t *loop)
{
    uv_run(loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(loop), 0);
}

#endif
