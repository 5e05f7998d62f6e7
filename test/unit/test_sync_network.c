/* Many machines at once: matching, solving and composing over a simulated network whose clocks are known. */
#include "network_simulator.h"

#include <check.h>

static const struct sync_limits limits = {.slope_ppb = 1000000};

static const struct simulated_network networks[] = {
    {.hosts = 2, .packets = 2000, .span_ns = 10000000000, .delay_ns = 50000, .jitter_ns = 100000, .seed = 1},
    {.hosts = 10,
     .packets = 20000,
     .lost_percent = 5,
     .span_ns = 600000000000,
     .delay_ns = 20000,
     .jitter_ns = 2000000,
     .seed = 2},
    {.hosts = 40,
     .packets = 40000,
     .lost_percent = 30,
     .span_ns = 60000000000,
     .delay_ns = 100000,
     .jitter_ns = 50000,
     .seed = 3},
    {.hosts = 5,
     .packets = 300,
     .lost_percent = 10,
     .span_ns = 7200000000000,
     .delay_ns = 1000,
     .jitter_ns = 10000000,
     .seed = 4},
};

/* Every clock comes onto the reference's, the truth is inside the bound, no message is inverted, counts add up. */
START_TEST(the_truth_is_inside_the_bound)
{
    struct simulated_network n = networks[_i];
    struct sync_session s = {0};
    int64_t error, bound;
    ck_assert(simulate_network(&n, &s));
    ck_assert_int_eq(sync_session_solve(&s, n.hosts, SYNC_METHOD_EXACT, limits, SYNC_NO_HOST), 0);
    ck_assert_uint_eq(s.network.n_islands, 1);
    ck_assert_uint_eq(simulated_outside(&n, &s.network, 5000, &error, &bound), 0);
    ck_assert_int_lt(bound, 4 * (n.delay_ns + n.jitter_ns) + 1000000);
    struct match_counts c = matcher_counts(s.matcher, UINT32_MAX);
    ck_assert_uint_eq(c.sent, n.packets);
    ck_assert_uint_eq(c.matched, c.received);
    ck_assert_uint_eq(c.unmatched_sent, c.sent - c.matched);
    ck_assert_uint_eq(c.unmatched_received, 0);
    for (size_t i = 0; i < s.network.pairs.n; i++)
        if (s.network.pairs.p[i].in_tree)
            ck_assert_uint_eq(s.network.pairs.p[i].n_inverted_after, 0);
    sync_session_free(&s);
}
END_TEST

/* The same network solved by either method: Trace Compass' spread of slopes is nowhere narrower than the exact one. */
static void compare_bounds(uint64_t seed)
{
    struct simulated_network n = {
        .hosts = 2, .packets = 200, .span_ns = 5000000000, .delay_ns = 20000, .jitter_ns = 300000, .seed = seed};
    struct simulated_network again = n;
    struct sync_session exact = {0}, tc = {0};
    ck_assert(simulate_network(&n, &exact));
    ck_assert(simulate_network(&again, &tc));
    ck_assert_int_eq(sync_session_solve(&exact, 2, SYNC_METHOD_EXACT, (struct sync_limits){0}, 0), 0);
    ck_assert_int_eq(sync_session_solve(&tc, 2, SYNC_METHOD_TRACE_COMPASS, (struct sync_limits){0}, 0), 0);
    const struct sync_hull *h = &exact.network.pairs.p[0].windows.windows.p[0].hull;
    const struct incremental_sync *i = &tc.network.pairs.p[0].incremental;
    ck_assert_uint_eq(exact.network.pairs.p[0].windows.windows.n, 1);
    ck_assert_int_eq(h->quality, SYNC_ACCURATE);
    if (i->quality == SYNC_ACCURATE) {
        long double max = 1 + (long double)sync_line_drift(h->max), min = 1 + (long double)sync_line_drift(h->min);
        ck_assert_ldouble_le(max, i->alpha_max + 1e-15L);
        ck_assert_ldouble_ge(min, i->alpha_min - 1e-15L);
    }
    sync_session_free(&exact);
    sync_session_free(&tc);
}

START_TEST(the_exact_bounds_are_nowhere_wider)
{
    for (uint64_t seed = 100; seed < 300; seed++)
        compare_bounds(seed);
}
END_TEST

/* Two groups that never met are two islands; each keeps its own reference. */
START_TEST(groups_that_never_met_are_islands)
{
    struct simulated_network a = networks[0];
    struct sync_session s = {0};
    ck_assert(simulate_network(&a, &s));
    for (uint32_t i = 0; i < 100; i++) {
        struct packet_key key = {.flow = 7, .seq = i, .family = PACKET_TCP};
        uint32_t from = 2 + i % 2, to = 3 - i % 2;
        ck_assert_int_eq(sync_session_packet(&s, from, PACKET_SENT, 1000000 * (int64_t)i, key), 0);
        ck_assert_int_eq(sync_session_packet(&s, to, PACKET_RECEIVED, 1000000 * (int64_t)i + 500, key), 0);
    }
    ck_assert_int_eq(sync_session_solve(&s, 5, SYNC_METHOD_EXACT, limits, 1), 0);
    ck_assert_uint_eq(s.network.reference, 1);
    ck_assert_uint_eq(s.network.n_islands, 3);
    const struct sync_host *h = s.network.hosts.p;
    ck_assert_uint_eq(h[0].island, h[1].island);
    ck_assert_uint_eq(h[2].island, h[3].island);
    ck_assert_uint_ne(h[0].island, h[2].island);
    ck_assert_uint_ne(h[4].island, h[0].island);
    ck_assert_uint_ne(h[4].island, h[2].island);
    ck_assert_int_eq(h[4].parent, SYNC_NO_HOST);
    sync_session_free(&s);
}
END_TEST

Suite *sync_network_suite(void);
Suite *sync_network_suite(void)
{
    Suite *s = suite_create("sync_network");
    TCase *t = tcase_create("sync_network");
    tcase_add_loop_test(t, the_truth_is_inside_the_bound, 0, (int)(sizeof networks / sizeof *networks));
    tcase_add_test(t, the_exact_bounds_are_nowhere_wider);
    tcase_add_test(t, groups_that_never_met_are_islands);
    suite_add_tcase(s, t);
    return s;
}
