/* The feasible region of one-way messages against the quadratic definition, and the exactness of the maps built on it.
 */
#include "base/error.h"
#include "importer/sync/windows.h"

#include <check.h>
#include <stdlib.h>

static uint64_t seed;

static uint64_t rnd(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % n;
}

/* The slope bounds by definition: every pair of a point below and one above. */
static void oracle(const struct sync_hull *h, bool *feasible, bool has[2], struct sync_line best[2])
{
    *feasible = true;
    has[0] = has[1] = false;
    for (size_t i = 0; i < h->points[SYNC_BELOW].n; i++) {
        for (size_t k = 0; k < h->points[SYNC_ABOVE].n; k++) {
            struct sync_point b = h->points[SYNC_BELOW].p[i], a = h->points[SYNC_ABOVE].p[k];
            if (b.x == a.x) {
                if (b.y > a.y)
                    *feasible = false;
            } else if (b.x < a.x) {
                struct sync_line l = {b, a.x - b.x, a.y - b.y};
                if (!has[0] || sync_slope_cmp(l, best[0]) < 0)
                    best[0] = l;
                has[0] = true;
            } else {
                struct sync_line l = {a, b.x - a.x, b.y - a.y};
                if (!has[1] || sync_slope_cmp(l, best[1]) > 0)
                    best[1] = l;
                has[1] = true;
            }
        }
    }
    if (has[0] && has[1] && sync_slope_cmp(best[1], best[0]) > 0)
        *feasible = false;
}

/* Messages around a true line; `lie` makes some of them contradict it. */
static void random_stream(struct sync_hull *h, int64_t base, bool lie)
{
    int n = 2 + (int)rnd(60);
    int64_t drift_ppm = (int64_t)rnd(400) - 200;
    for (int i = 0; i < n; i++) {
        int64_t x = base + (int64_t)rnd(2000);
        int64_t truth = x + (x - base) * drift_ppm / 1000;
        int64_t delay = 1 + (int64_t)rnd(50);
        enum sync_kind kind = rnd(2) ? SYNC_BELOW : SYNC_ABOVE;
        if (lie && rnd(6) == 0)
            delay = -delay;
        ck_assert_int_eq(sync_hull_add(h, kind, x, kind == SYNC_BELOW ? truth - delay : truth + delay), 0);
    }
}

START_TEST(matches_the_quadratic_oracle)
{
    static const int64_t bases[] = {0, 1000000000000000000, -1000000000000000000};
    seed = 0x5eed0000 + (uint64_t)_i;
    int feasible_seen = 0;
    for (int run = 0; run < 5000; run++) {
        struct sync_hull h = {0};
        random_stream(&h, bases[_i], run % 3 == 0);
        bool feasible, has[2];
        struct sync_line best[2];
        oracle(&h, &feasible, has, best);
        ck_assert_int_eq(sync_hull_solve(&h, NULL), 0);
        ck_assert_int_eq(h.quality != SYNC_FAIL, feasible);
        ck_assert_int_eq(h.has_max, has[0]);
        ck_assert_int_eq(h.has_min, has[1]);
        if (has[0] && feasible)
            ck_assert_int_eq(sync_slope_cmp(h.max, best[0]), 0);
        if (has[1] && feasible)
            ck_assert_int_eq(sync_slope_cmp(h.min, best[1]), 0);
        if (h.quality == SYNC_ACCURATE) {
            feasible_seen++;
            for (size_t i = 0; i < h.corners.n; i++)
                ck_assert(sync_hull_admits(&h, h.corners.p[i]));
        }
        sync_hull_free(&h);
    }
    ck_assert_int_gt(feasible_seen, 1000);
}
END_TEST

/* Whatever line produced the messages, the reported range contains it, everywhere. */
START_TEST(truth_is_inside_the_range)
{
    seed = 77;
    for (int run = 0; run < 2000; run++) {
        struct sync_hull h = {0};
        int64_t x0 = (int64_t)rnd(2000000000000000) - 1000000000000000,
                y0 = (int64_t)rnd(2000000000000000) - 1000000000000000;
        int64_t ppb = (int64_t)rnd(400000) - 200000;
        for (int i = 0; i < 200; i++) {
            int64_t dx = (int64_t)rnd(600) * 1000000000;
            int64_t truth = y0 + dx + (int64_t)((__int128)dx * ppb / 1000000000);
            enum sync_kind kind = rnd(2) ? SYNC_BELOW : SYNC_ABOVE;
            int64_t delay = 20000 + (int64_t)rnd(200000);
            ck_assert_int_eq(sync_hull_add(&h, kind, x0 + dx, kind == SYNC_BELOW ? truth - delay : truth + delay), 0);
        }
        ck_assert_int_eq(sync_hull_solve(&h, NULL), 0);
        ck_assert_int_eq(h.quality, SYNC_ACCURATE);
        struct sync_transform t;
        ck_assert(sync_transform_middle(&h, x0 + 300000000000, &t));
        for (int i = 0; i < 50; i++) {
            int64_t dx = (int64_t)rnd(900) * 1000000000 - 150000000000, lo, hi;
            int64_t truth = y0 + dx + (int64_t)((__int128)dx * ppb / 1000000000);
            ck_assert(sync_hull_range(&h, x0 + dx, &lo, &hi));
            ck_assert_int_le(lo, truth + 1);
            ck_assert_int_ge(hi, truth - 1);
            int64_t error = sync_transform_error(&t, &h, x0 + dx), y = sync_transform_apply(&t, x0 + dx);
            ck_assert_int_le(y > truth ? y - truth : truth - y, error + 1);
        }
        sync_hull_free(&h);
    }
}
END_TEST

START_TEST(transform_never_falls_and_inverts)
{
    seed = 99;
    for (int run = 0; run < 200; run++) {
        struct sync_transform t = {(int64_t)rnd(1u << 30) << 30, (int64_t)rnd(1u << 30) << 30,
                                   (int64_t)(rnd((uint64_t)1 << 52)) - ((int64_t)1 << 51)};
        int64_t x = t.x0 + (int64_t)rnd(1u << 30) * 1000 - 500000000000, before = sync_transform_apply(&t, x - 1);
        for (int i = 0; i < 1000; i++, x++) {
            int64_t y = sync_transform_apply(&t, x);
            ck_assert_int_ge(y, before);
            int64_t back = sync_transform_invert(&t, y);
            ck_assert_int_eq(sync_transform_apply(&t, back), y);
            ck_assert_int_lt(sync_transform_apply(&t, back - 1), y);
            before = y;
        }
    }
    struct sync_transform far = {INT64_MIN, INT64_MAX, 0};
    ck_assert_int_eq(sync_transform_apply(&far, INT64_MAX), INT64_MAX);
    ck_assert_int_eq(sync_transform_invert(&far, INT64_MAX), INT64_MIN);
}
END_TEST

/* Golden vectors: the exact method step by step; step 9 is a contradiction. */
START_TEST(golden_steps)
{
    static const struct {
        bool from_reference;
        int64_t send, receive;
        enum sync_quality quality;
        int64_t min_dy, min_dx, max_dy, max_dx; /* 0/0: unbounded */
    } steps[] = {
        {false, 1, 1, SYNC_INCOMPLETE, 0, 0, 0, 0},   {true, 1, 3, SYNC_INCOMPLETE, 0, 0, 0, 0},
        {false, 2, 3, SYNC_APPROXIMATE, -1, 2, 0, 0}, {true, 3, 5, SYNC_ACCURATE, -1, 2, 2, 1},
        {true, 4, 8, SYNC_ACCURATE, -1, 2, 2, 1},     {false, 4, 5, SYNC_ACCURATE, 1, 4, 2, 1},
        {false, 4, 6, SYNC_ACCURATE, 1, 4, 2, 1},     {true, 6, 7, SYNC_ACCURATE, 1, 4, 6, 5},
        {true, 7, 4, SYNC_FAIL, 0, 0, 0, 0},
    };
    struct sync_hull h = {0};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t x = steps[i].from_reference ? steps[i].send : steps[i].receive;
        int64_t y = steps[i].from_reference ? steps[i].receive : steps[i].send;
        ck_assert_int_eq(sync_hull_add(&h, steps[i].from_reference ? SYNC_ABOVE : SYNC_BELOW, x, y), 0);
        ck_assert_int_eq(sync_hull_solve(&h, NULL), 0);
        ck_assert_msg(h.quality == steps[i].quality, "step %zu: %s", i + 1, sync_quality_text(h.quality));
        if (h.quality == SYNC_FAIL)
            continue;
        ck_assert_int_eq(h.has_min, steps[i].min_dx != 0);
        ck_assert_int_eq(h.has_max, steps[i].max_dx != 0);
        if (h.has_min)
            ck_assert_int_eq(h.min.dy * steps[i].min_dx, steps[i].min_dy * h.min.dx);
        if (h.has_max)
            ck_assert_int_eq(h.max.dy * steps[i].max_dx, steps[i].max_dy * h.max.dx);
    }
    sync_hull_free(&h);
}
END_TEST

/* A clock whose drift changes twice: three windows or a few more, truth within the bound inside each. */
START_TEST(windows_follow_changing_drift)
{
    seed = 5;
    struct sync_windows w = {0};
    static const int64_t ppb[] = {100000, -50000, 20000};
    int64_t truth[1801];
    truth[0] = 123456789;
    for (int s = 1; s <= 1800; s++)
        truth[s] = truth[s - 1] + 1000000000 + ppb[(s - 1) / 600];
    for (int s = 0; s <= 1800; s++) {
        ck_assert_int_eq(sync_windows_add(&w, SYNC_ABOVE, s * 1000000000ll, truth[s] + 20000 + (int64_t)rnd(30000)), 0);
        ck_assert_int_eq(sync_windows_add(&w, SYNC_BELOW, s * 1000000000ll, truth[s] - 20000 - (int64_t)rnd(30000)), 0);
    }
    ck_assert_int_eq(sync_windows_solve(&w, &(struct sync_limits){.slope_ppb = 1000000}), 0);
    ck_assert_int_ge(w.windows.n, 3);
    ck_assert_int_le(w.windows.n, 6);
    int64_t before = INT64_MIN;
    for (int64_t x = -10; x <= 1810; x++) {
        int64_t y, error;
        ck_assert(sync_windows_apply(&w, x * 1000000000, &y, &error));
        ck_assert_int_ge(y, before);
        before = y;
        if (x % 600 > 20 && x % 600 < 580 && x > 0 && x < 1800)
            ck_assert_int_le(llabs(y - truth[x]), 200000);
    }
    sync_windows_free(&w);
}
END_TEST

START_TEST(slope_limit_bounds_what_messages_do_not)
{
    struct sync_hull h = {0};
    sync_hull_add(&h, SYNC_ABOVE, 1000, 5000);
    sync_hull_add(&h, SYNC_BELOW, 1000, 4000);
    ck_assert_int_eq(sync_hull_solve(&h, NULL), 0);
    ck_assert_int_eq(h.quality, SYNC_INCOMPLETE);
    ck_assert_int_eq(sync_hull_solve(&h, &(struct sync_limits){.slope_ppb = 1000000}), 0);
    ck_assert_int_eq(h.quality, SYNC_ACCURATE);
    int64_t lo, hi;
    ck_assert(sync_hull_range(&h, 1001000, &lo, &hi));
    ck_assert_int_eq(lo, 4000 + 999000);
    ck_assert_int_eq(hi, 5000 + 1001000);
    ck_assert_int_eq(sync_hull_add(&h, SYNC_ABOVE, INT64_MAX, 0), -MRD_ELIMIT);
    sync_hull_free(&h);
}
END_TEST

Suite *sync_hull_suite(void);

Suite *sync_hull_suite(void)
{
    Suite *s = suite_create("sync_hull");
    TCase *t = tcase_create("hull");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, matches_the_quadratic_oracle, 0, 3);
    tcase_add_test(t, truth_is_inside_the_range);
    tcase_add_test(t, transform_never_falls_and_inverts);
    tcase_add_test(t, golden_steps);
    tcase_add_test(t, windows_follow_changing_drift);
    tcase_add_test(t, slope_limit_bounds_what_messages_do_not);
    suite_add_tcase(s, t);
    return s;
}
