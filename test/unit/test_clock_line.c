/* Tests the linear clock model on simulated machines: bounds hold, causes come before effects, errors are small. */
#include "clock_measure.h"
#include "importer/clock/clock_line.h"

#include <check.h>
#include <stdlib.h>

/* 1,000 runs, 20 a test: everything at random within what the model assumes. */
START_TEST(the_true_time_lies_within_the_bound)
{
    for (uint64_t seed = (uint64_t)_i * 20; seed < (uint64_t)_i * 20 + 20; seed++) {
        uint64_t r = seed * 0x9e3779b97f4a7c15 >> 20;
        struct sim_options o = {
            .seed = seed,
            .machines = 2 + (unsigned)(r % 7),
            .span_ns = SIM_SECOND * (60 + (int64_t)(r >> 3) % 540),
            .interval_ns = seed % 4 ? SIM_SECOND * (1 + (int64_t)(r >> 5) % 30) : 0,
            .base_delay_ns = 20000 + (int64_t)(r >> 7) % 400000,
            .jitter_ns = (int64_t)(r >> 9) % 40000,
            .drift_ppb = (int64_t)(r >> 11) % 200000,
            .wander_ppb_s = (int64_t)(r >> 13) % 10, /* of each of two clocks */
            .offset_ns = seed % 3 ? INT64_C(1000000000000000) : 0,
            .loss_percent = (unsigned)(r >> 15) % 40,
            .reboot = seed % 5 == 0,
            .events = 20,
            .rounds_packet = 1 + (unsigned)(r >> 17) % 4,
        };
        o.asymmetry_ns = o.base_delay_ns * (int64_t)(r % 3) / 4;
        struct simulation s;
        struct figures f = {0};
        simulate(&s, &o);
        measure(&s, CLOCK_MODEL_LINEAR, seed % 2, &f);
        ck_assert_msg(!f.missing, "seed %d: %zu events missing", (int)seed, f.missing);
        ck_assert_msg(!f.unbound, "seed %d: %zu events without a bound", (int)seed, f.unbound);
        ck_assert_msg(!f.inverted, "seed %d: %zu effects before their cause", (int)seed, f.inverted);
        ck_assert_msg(!f.outside, "seed %d: %zu events outside their bound", (int)seed, f.outside);
        vec_free(&f.errors);
        simulation_free(&s);
    }
}
END_TEST

static const struct sim_options office = {
    .machines = 4,
    .span_ns = INT64_C(600000000000),
    .interval_ns = INT64_C(30000000000),
    .base_delay_ns = 20000,
    .jitter_ns = 5000,
    .drift_ppb = 10000,
    .wander_ppb_s = 1,
    .offset_ns = INT64_C(1000000000000000),
    .events = 100,
    .rounds_packet = 2,
};

START_TEST(ten_minutes_at_ten_ppm)
{
    struct sim_options o = office;
    struct simulation s;
    struct figures linear = {0}, constant = {0};
    o.seed = (uint64_t)_i + 77;
    simulate(&s, &o);
    measure(&s, CLOCK_MODEL_AUTO, false, &linear); /* several packets: chosen without being asked for */
    measure(&s, CLOCK_MODEL_COMPATIBLE, false, &constant);
    ck_assert_uint_eq(linear.outside + linear.unbound + linear.missing, 0);
    ck_assert_uint_eq(linear.inverted, 0);
    ck_assert_int_lt(error_percentile(&linear, 50), 25000);
    ck_assert_int_gt(constant.worst, 100000); /* what a constant offset would have given */
    vec_free(&linear.errors);
    vec_free(&constant.errors);
    simulation_free(&s);
}
END_TEST

/* A line by itself: rounds of a perfect clock, of damaged ones, of none. */
START_TEST(no_round_is_inverted_and_the_map_goes_up)
{
    uint64_t seed = (uint64_t)_i * 31 + 7;
    struct clock_line l = {0};
    int64_t x = 0, y = -(int64_t)(seed * 1000003 % 1000000007);
    VEC(struct clock_sample)
    all = {0};
    for (int i = 0; i < 60; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        int64_t gap = i % 2 ? (int64_t)(seed >> 40) % 200000 + 20 : (int64_t)(seed >> 30) % 40000000000;
        x += gap;
        y += gap + gap / 100000 + (int64_t)(seed >> 50) % 15;
        vec_push(&all, (struct clock_sample){x, y + (int64_t)(seed >> 45) % 20000});
    }
    for (size_t i = 1; i < all.n; i++) /* the host's clock does not go back */
        if (all.p[i].host < all.p[i - 1].host)
            all.p[i].host = all.p[i - 1].host + 1;
    for (size_t i = all.n; i-- > 0;)
        ck_assert(clock_line_add(&l, all.p[i].remote, all.p[i].host));
    ck_assert_int_eq(clock_line_fit(&l), 0);
    for (size_t i = 0; i < all.n && !l.rejected; i++) {
        ck_assert_int_le(clock_line_to_host(&l, all.p[i].remote), all.p[i].host);
        if (i + 1 < all.n && all.p[i + 1].remote - all.p[i].remote < 30000000000)
            ck_assert_int_ge(clock_line_to_host(&l, all.p[i + 1].remote), all.p[i].host);
    }
    int64_t last = INT64_MIN;
    for (int64_t at = -10000000000; at < x + 10000000000; at += 99999989) {
        int64_t h = clock_line_to_host(&l, at);
        ck_assert_int_ge(h, last);
        ck_assert_int_le(llabs(clock_line_to_remote(&l, h) - at), 2);
        last = h;
    }
    vec_free(&all);
    clock_line_free(&l);
}
END_TEST

START_TEST(hostile_rounds_are_survived)
{
    static const int64_t odd[] = {INT64_MIN,           INT64_MAX,        0,          1,           -1, INT64_C(1) << 61,
                                  -(INT64_C(1) << 61), INT64_C(1) << 60, 1000000000, -1000000000, 3,  2};
    enum { N = sizeof odd / sizeof *odd };
    uint64_t seed = (uint64_t)_i * 977 + 3;
    struct clock_line l = {0};
    for (int i = 0; i < 40; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        int64_t a = odd[(seed >> 33) % N], b = odd[(seed >> 40) % N];
        if (_i % 2)
            b = (int64_t)(seed >> 20);
        clock_line_add(&l, a, b);
    }
    if (clock_line_fit(&l) == 0) {
        int64_t last = INT64_MIN;
        for (size_t i = 0; i < 64; i++) {
            int64_t at = (int64_t)((uint64_t)INT64_MIN + i * ((uint64_t)1 << 58));
            int64_t h = clock_line_to_host(&l, at);
            ck_assert_int_ge(h, last);
            last = h;
            clock_line_to_remote(&l, at);
            ck_assert_int_ge(clock_line_error(&l, at), 0);
        }
    }
    clock_line_free(&l);
}
END_TEST

Suite *clock_line_suite(void);
Suite *clock_line_suite(void)
{
    Suite *s = suite_create("clock_line");
    TCase *t = tcase_create("clock_line");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, the_true_time_lies_within_the_bound, 0, 50);
    tcase_add_loop_test(t, ten_minutes_at_ten_ppm, 0, 10);
    tcase_add_loop_test(t, no_round_is_inverted_and_the_map_goes_up, 0, 50);
    tcase_add_loop_test(t, hostile_rounds_are_survived, 0, 60);
    suite_add_tcase(s, t);
    return s;
}
