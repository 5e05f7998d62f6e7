/* Comparing recordings: the tests of ranks against known values and under simulated noise, and made-up machines of
 * which one was disturbed. */
#include "base/alloc.h"
#include "compare/diff.h"
#include "compare/group_name.h"
#include "compare/rank_test.h"
#include "sched_simulator.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
enum { DISTURBED_PAIRS = 4, QUIET_PAIRS = 6 };
#else
enum { DISTURBED_PAIRS = 20, QUIET_PAIRS = 100 };
#endif

static const struct diff_options usual = {0.05, 0.05};

/* DIFF_SEED=N runs the pairs on seeds that nothing was ever tuned on. */
static uint64_t first_seed(uint64_t usual_one)
{
    const char *other = getenv("DIFF_SEED");
    return other ? strtoull(other, NULL, 10) + usual_one : usual_one;
}

static void add_simulated(struct run_set *set, uint64_t seed, enum disturbance d, int side, int64_t dur_ns)
{
    struct pb_writer w = {0};
    struct tp *tp;
    struct error err = {0};
    sched_simulate(&(struct simulation){seed, d, dur_ns}, &w);
    if (getenv("DIFF_DUMP")) {
        char path[200];
        snprintf(path, sizeof path, "%s/%llu-%d.pftrace", getenv("DIFF_DUMP"), (unsigned long long)seed, d);
        FILE *f = fopen(path, "wb");
        fwrite(w.p, 1, w.n, f);
        fclose(f);
    }
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_int_eq(tp_feed(tp, w.p, w.n), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    ck_assert_msg(run_set_add(set, tp, side ? "b" : "a", side, NULL, &err) == 0, "%s", err.text);
    tp_close(tp);
    pb_writer_free(&w);
}

static void compute(struct run_set *set, struct diff *d)
{
    struct error err = {0};
    ck_assert_msg(diff_compute(set, &usual, d, &err) == 0, "%s", err.text);
}

/* What the first finding must say of each disturbance: of whom, or what. */
static const struct {
    const char *process, *measure, *name;
} causes[DISTURBANCES] = {
    [CPU_HOG] = {"hog", "CPU time", NULL},
    [FSYNC_STORM] = {NULL, NULL, "sys_fsync"},
    [LOCK_CONVOY] = {"webd", NULL, "sys_futex"},
    [FREQUENCY_LIMIT] = {NULL, "CPU frequency", NULL},
};

START_TEST(the_disturbance_is_named_first)
{
    enum disturbance what = (enum disturbance)(1 + _i % (DISTURBANCES - 1));
    for (int k = _i / (DISTURBANCES - 1); k < DISTURBED_PAIRS; k += 1) {
        struct run_set set = {0};
        struct diff d;
        add_simulated(&set, first_seed(1000) + 2 * (uint64_t)k, UNDISTURBED, 0, 1200000000);
        add_simulated(&set, first_seed(1001) + 2 * (uint64_t)k, what, 1, 1200000000);
        compute(&set, &d);
        ck_assert_msg(d.findings > 0, "pair %d: nothing was found", k);
        const struct run_line *first = d.lines[0].line;
        ck_assert_msg((!causes[what].process || strcmp(first->process, causes[what].process) == 0) &&
                          (!causes[what].measure || strcmp(first->measure->name, causes[what].measure) == 0) &&
                          (!causes[what].name || strcmp(first->name, causes[what].name) == 0),
                      "disturbance %d, pair %d: first is %s of %s %s", what, k, first->measure->name, first->process,
                      first->name);
        diff_free(&d);
        run_set_free(&set);
    }
}
END_TEST

START_TEST(without_a_disturbance_next_to_nothing_is_found)
{
    int with_findings = 0;
    for (int k = 0; k < QUIET_PAIRS; k++) {
        struct run_set set = {0};
        struct diff d;
        add_simulated(&set, first_seed(5000) + 2 * (uint64_t)k, UNDISTURBED, 0, 1200000000);
        add_simulated(&set, first_seed(5001) + 2 * (uint64_t)k, UNDISTURBED, 1, 1200000000);
        compute(&set, &d);
        ck_assert_uint_gt(d.tested, 20);
        with_findings += d.findings > 0;
        if (getenv("DIFF_SHOW"))
            for (size_t i = 0; i < d.findings; i++)
                printf("%d: %s %s/%s %s p=%g\n", k, d.lines[i].line->measure->name, d.lines[i].line->process,
                       d.lines[i].line->thread, d.lines[i].line->name, d.lines[i].p);
        diff_free(&d);
        run_set_free(&set);
    }
    if (getenv("DIFF_SHOW"))
        printf("%d pairs with findings\n", with_findings);
    ck_assert_int_le(with_findings, QUIET_PAIRS / 20);
}
END_TEST

/* Sets: the recordings are the sample. One odd recording among five is not a finding, five against five is. */
START_TEST(sets_of_recordings)
{
    struct run_set set = {0}, odd = {0};
    struct diff d;
    for (int k = 0; k < 5; k++) {
        add_simulated(&set, 70 + (uint64_t)k, UNDISTURBED, 0, 400000000);
        add_simulated(&set, 80 + (uint64_t)k, CPU_HOG, 1, 400000000);
        add_simulated(&odd, 70 + (uint64_t)k, UNDISTURBED, 0, 400000000);
        add_simulated(&odd, 80 + (uint64_t)k, k == 2 ? CPU_HOG : UNDISTURBED, 1, 400000000);
    }
    compute(&set, &d);
    ck_assert_uint_gt(d.findings, 0);
    ck_assert_str_eq(d.lines[0].line->process, "hog");
    diff_free(&d);
    compute(&odd, &d);
    ck_assert_uint_eq(d.findings, 0);
    diff_free(&d);
    run_set_free(&set);
    run_set_free(&odd);
}
END_TEST

START_TEST(a_loss_forbids_claims)
{
    struct run_set set = {0};
    struct diff d;
    add_simulated(&set, 1, UNDISTURBED, 0, 1200000000);
    add_simulated(&set, 2, CPU_HOG, 1, 1200000000);
    set.runs.p[1].lost = "ftrace_cpu_overrun_delta";
    compute(&set, &d);
    ck_assert_uint_eq(d.findings, 0);
    ck_assert_int_eq(d.lines[0].verdict, DIFF_LOSS);
    diff_free(&d);
    set.runs.p[1].lost = NULL;
    compute(&set, &d);
    size_t before = d.findings, durations = 0;
    for (size_t i = 0; i < d.findings; i++)
        durations += d.lines[i].line->measure->kind == MEASURE_DURATION;
    ck_assert_uint_gt(durations, 0);
    diff_free(&d);
    set.runs.p[0].clock_error_us = 1e9;
    compute(&set, &d);
    ck_assert_uint_eq(d.findings, before - durations);
    diff_free(&d);
    run_set_free(&set);
}
END_TEST

START_TEST(what_cannot_be_compared)
{
    struct run_set set = {0};
    struct diff d;
    struct error err = {0};
    ck_assert_int_eq(diff_compute(&set, &usual, &d, &err), -MRD_EINVALID);
    add_simulated(&set, 1, UNDISTURBED, 0, 200000000);
    ck_assert_int_eq(diff_compute(&set, &usual, &d, &err), -MRD_EINVALID);
    diff_free(&d);
    /* forty times as long: no block length fits both */
    add_simulated(&set, 2, UNDISTURBED, 1, 8000000000);
    compute(&set, &d);
    ck_assert(d.few_blocks);
    ck_assert_uint_eq(d.tested, 0);
    diff_free(&d);
    for (size_t i = 0; i < set.runs.p[1].processes.n; i++)
        set.runs.p[1].processes.p[i] = "elsewhere";
    ck_assert_int_eq(diff_compute(&set, &usual, &d, &err), -MRD_EINVALID);
    ck_assert_ptr_nonnull(strstr(err.text, "no process name in common"));
    diff_free(&d);
    run_set_free(&set);
    struct tp *tp;
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    ck_assert_int_eq(run_set_add(&set, tp, "x.pftrace", 0, NULL, &err), -MRD_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "x.pftrace: the recording has no duration"));
    tp_close(tp);
    run_set_free(&set);
}
END_TEST

/* A recording of sixty years: the length of its blocks does not overflow, nor does looking for it take for ever. */
START_TEST(very_long_recordings)
{
    struct run_set set = {0};
    struct diff d;
    struct error err = {0};
    for (int side = 0; side < 2; side++) {
        struct tp *tp;
        static const char json[] =
            "{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": 0, \"dur\": 1, \"name\": "
            "\"a\"}, {\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": 1900000000000000, \"dur\": 1, "
            "\"name\": \"b\"}]}";
        ck_assert_int_eq(tp_open(&tp, NULL), 0);
        ck_assert_int_eq(tp_feed(tp, json, sizeof json - 1), 0);
        ck_assert_int_eq(tp_finish(tp), 0);
        ck_assert_msg(run_set_add(&set, tp, "long", side, NULL, &err) == 0, "%s", err.text);
        tp_close(tp);
    }
    ck_assert_int_gt(set.runs.p[0].dur_ns, 1800000000000000000);
    compute(&set, &d);
    ck_assert_uint_eq(d.findings, 0);
    ck_assert_int_gt(d.block_ns, 1000000000000000);
    diff_free(&d);
    run_set_free(&set);
}
END_TEST

/* A thread that sleeps from beginning to end on one side, and is not seen on the other. */
START_TEST(who_sleeps_throughout_is_no_finding)
{
    struct run_set set = {0};
    struct diff d;
    add_simulated(&set, 1, UNDISTURBED, 0, 1200000000);
    add_simulated(&set, 1, UNDISTURBED, 1, 1200000000);
    for (size_t i = 0; i < set.lines.n; i++) {
        struct run_line *l = &set.lines.p[i];
        if (strcmp(l->measure->name, "sleep") != 0 || strcmp(l->process, "batch") != 0)
            continue;
        ck_assert_uint_eq(l->series.n, 2);
        l->series.n = 1;
        l->series.p[0].count = 1;
        for (size_t b = 0; b < set.runs.p[0].n_blocks; b++)
            l->series.p[0].sums[b] = (double)set.runs.p[0].block_ns;
    }
    compute(&set, &d);
    ck_assert_uint_eq(d.findings, 0);
    diff_free(&d);
    run_set_free(&set);
}
END_TEST

START_TEST(students_distribution)
{
    static const struct {
        double t, freedom, p;
    } cases[] = {{0, 5, 1},          {2.571, 5, 0.05},   {12.706, 1, 0.05}, {1.960, 1e6, 0.05},
                 {-2.228, 10, 0.05}, {4.587, 10, 0.001}, {63.657, 1, 0.01}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_double_eq_tol(student_p(cases[i].t, cases[i].freedom), cases[i].p, 1e-3 * cases[i].p);
    ck_assert_double_gt(student_p(30, 40), 0);
    ck_assert_double_lt(student_p(30, 40), 1e-25);
    ck_assert_double_eq(student_p(INFINITY, 3), 0);
    ck_assert_double_eq(student_p(1, 0), 1);
}
END_TEST

static double noise(uint64_t *x)
{
    double sum = 0;
    for (int i = 0; i < 6; i++) {
        *x = *x * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*x >> 11) / 9007199254740992.0;
    }
    return sum - 3;
}

/* Values that resemble their neighbours: at 1 % no more than 1.5 % of the tests without a difference may say one. */
START_TEST(likeness_in_time_makes_no_findings)
{
    static const double likeness[] = {0, 0.3, 0.6, 0.8};
    uint64_t x = 7;
    int found = 0;
    enum { N = 28, TRIES = 4000 };
    for (int k = 0; k < TRIES; k++) {
        double v[2][N], last = 0;
        for (int s = 0; s < 2; s++)
            for (int i = -40; i < N; i++) {
                last = likeness[_i] * last + noise(&x);
                if (i >= 0)
                    v[s][i] = last;
            }
        const struct rank_run runs[] = {{v[0], N, 0}, {v[1], N, 1}};
        struct rank_result r;
        ck_assert_int_eq(rank_test(runs, 2, false, &r), 0);
        found += r.p < 0.01;
    }
    ck_assert_msg(found <= TRIES * 15 / 1000, "%d of %d at likeness %.1f", found, TRIES, likeness[_i]);
}
END_TEST

START_TEST(ranks)
{
    double low[20], high[20], same[20];
    for (int i = 0; i < 20; i++) {
        low[i] = i * 7 % 20;
        high[i] = 100 + i * 7 % 20;
        same[i] = 5;
    }
    struct rank_result r;
    ck_assert_int_eq(rank_test((struct rank_run[]){{low, 20, 0}, {high, 20, 1}}, 2, false, &r), 0);
    ck_assert(r.tested);
    ck_assert_double_eq_tol(r.effect, 1, 1e-9);
    ck_assert_double_lt(r.p, 1e-8);
    ck_assert_int_eq(rank_test((struct rank_run[]){{high, 20, 0}, {low, 20, 1}}, 2, false, &r), 0);
    ck_assert_double_eq_tol(r.effect, -1, 1e-9);
    ck_assert_int_eq(rank_test((struct rank_run[]){{low, 20, 0}, {low, 20, 1}}, 2, false, &r), 0);
    ck_assert_double_eq_tol(r.effect, 0, 1e-9);
    ck_assert_double_gt(r.p, 0.9);
    /* a level that never moves tells nothing, unless somebody set it */
    double other[20];
    for (int i = 0; i < 20; i++)
        other[i] = 6;
    ck_assert_int_eq(rank_test((struct rank_run[]){{same, 20, 0}, {other, 20, 1}}, 2, false, &r), 0);
    ck_assert(!r.tested);
    ck_assert_int_eq(rank_test((struct rank_run[]){{same, 20, 0}, {other, 20, 1}}, 2, true, &r), 0);
    ck_assert(r.tested && r.p == 0);
    ck_assert_int_eq(rank_test((struct rank_run[]){{same, 20, 0}, {same, 20, 1}}, 2, true, &r), 0);
    ck_assert(r.tested && r.p == 1);
    ck_assert_int_eq(rank_test((struct rank_run[]){{same, 0, 0}, {same, 20, 1}}, 2, true, &r), 0);
    ck_assert(!r.tested);
}
END_TEST

START_TEST(corrections_and_quantiles)
{
    double p[] = {0.01, 0.04, 0.03, 0.005};
    const double corrected[] = {0.03, 0.06, 0.06, 0.02};
    ck_assert_int_eq(holm_correct(p, 4), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(p[i], corrected[i], 1e-12);
    double v[] = {5, 1, 4, 2, 3};
    sort_doubles(v, 5);
    ck_assert_double_eq(quantile_sorted(v, 5, 0.5), 3);
    ck_assert_double_eq_tol(quantile_sorted(v, 5, 0.99), 4.96, 1e-12);
    ck_assert_double_eq(quantile_sorted(v, 5, 1), 5);
    ck_assert_double_eq(quantile_sorted(v, 0, 0.5), 0);
}
END_TEST

START_TEST(control_groups_without_ids)
{
#define ID64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const char *const cases[][2] = {
        {"/system.slice/docker-" ID64 ".scope", "/system.slice/docker-*.scope"},
        {"/docker/" ID64, "/docker/*"},
        {"/kubepods/burstable/pod8f0a7c9e-1b2d-4e3f-a0b1-c2d3e4f50617/" ID64, "/kubepods/burstable/pod*/*"},
        {"/kubepods-pod8f0a7c9e_1b2d_4e3f_a0b1_c2d3e4f50617.slice/crio-" ID64 ".scope", "/kubepods-pod*.slice/crio-*.scope"},
        {"/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-*.slice/session-*.scope"},
        {"/system.slice/facade.service", "/system.slice/facade.service"},
        {"/system.slice/deadbeef-8f0a-1b2d.service", "/system.slice/deadbeef-*f0a-*b2d.service"},
        {"", ""}};
    char room[128], small[8];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(cgroup_group_name(cases[i][0], room, sizeof room), cases[i][1]);
    ck_assert_str_eq(cgroup_group_name("/docker/" ID64 "/x", small, sizeof small), "/docker");
}
END_TEST

START_TEST(names_without_numbers)
{
    static const char *const cases[][2] = {{"worker-12", "worker-*"},
                                           {"kworker/u8:2-events", "kworker/u*:*-events"},
                                           {"python3", "python3"},
                                           {"12", "12"},
                                           {"pool 3 thread 44", "pool * thread *"},
                                           {"a\x01\xff", "a??"},
                                           {"h\xc3\xa9-1", "h\xc3\xa9-*"},
                                           {"", ""}};
    char room[64], small[5];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(group_name(cases[i][0], room, sizeof room), cases[i][1]);
    ck_assert_str_eq(group_name(NULL, room, sizeof room), "");
    ck_assert_str_eq(group_name("abc\xc3\xa9", small, sizeof small), "abc");
}
END_TEST

Suite *diff_suite(void);
Suite *diff_suite(void)
{
    Suite *s = suite_create("diff");
    TCase *quick = tcase_create("statistics"), *pairs = tcase_create("pairs");
    tcase_add_test(quick, students_distribution);
    tcase_add_test(quick, ranks);
    tcase_add_test(quick, corrections_and_quantiles);
    tcase_add_test(quick, names_without_numbers);
    tcase_add_test(quick, control_groups_without_ids);
    tcase_add_loop_test(quick, likeness_in_time_makes_no_findings, 0, 4);
    tcase_set_timeout(quick, 120);
    suite_add_tcase(s, quick);
    tcase_add_test(pairs, a_loss_forbids_claims);
    tcase_add_test(pairs, what_cannot_be_compared);
    tcase_add_test(pairs, sets_of_recordings);
    tcase_add_test(pairs, very_long_recordings);
    tcase_add_test(pairs, who_sleeps_throughout_is_no_finding);
    tcase_add_loop_test(pairs, the_disturbance_is_named_first, 0, DISTURBANCES - 1);
    tcase_add_test(pairs, without_a_disturbance_next_to_nothing_is_found);
    tcase_set_timeout(pairs, 300);
    suite_add_tcase(s, pairs);
    return s;
}
