/* Tests the linear clock model on simulated machines: bounds hold, causes come before effects, errors are small. */
#include "clock_measure.h"
#include "importer/clock/clock_line.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { RANDOM_TESTS = 10 }; /* each takes four times as long, and memory goes the same ways in all */
#else
enum { RANDOM_TESTS = 50 };
#endif

/* 1,000 runs, 20 a test: everything at random within what the model assumes, every second one with steps of time and
 * rate. `clock_figures 0 10000` (test/bench) does more of them. */
START_TEST(the_true_time_lies_within_the_bound)
{
    for (uint64_t seed = (uint64_t)_i * 20; seed < (uint64_t)_i * 20 + 20; seed++) {
        bool disturbed = seed % 2;
        struct sim_options o = sim_random_options(seed, disturbed);
        struct simulation s;
        struct figures f = {0};
        simulate(&s, &o);
        measure(&s, CLOCK_MODEL_LINEAR, seed / 2 % 2, &f);
        ck_assert_msg(!f.missing, "seed %d: %zu events missing", (int)seed, f.missing);
        ck_assert_msg(!f.unbound, "seed %d: %zu events without a bound", (int)seed, f.unbound);
        ck_assert_msg(disturbed || !f.inverted, "seed %d: %zu effects before their cause", (int)seed, f.inverted);
        ck_assert_msg(!f.outside, "seed %d: %zu events outside their bound", (int)seed, f.outside);
        figures_free(&f);
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
    simulation_free(&s);
    o.rounds_packet = 5;
    o.once = true;
    simulate(&s, &o);
    measure(&s, CLOCK_MODEL_COMPATIBLE, false, &constant);
    ck_assert_uint_eq(linear.outside + linear.unbound + linear.missing, 0);
    ck_assert_uint_eq(linear.inverted, 0);
    ck_assert_int_lt(error_percentile(&linear, 50), 25000);
    ck_assert_int_gt(constant.worst, 1000000); /* what a constant offset would have given */
    figures_free(&linear);
    figures_free(&constant);
    simulation_free(&s);
}
END_TEST

/* Nothing steps, and the bound does not pay for what could have: the machines' MONOTONIC_RAW tell that no rate was
 * corrected, and a pause would be longer than a round trip. */
static const struct {
    int64_t interval_ns, base_delay_ns, jitter_ns, most_ns;
    bool raw, sources_told;
} quiet_networks[] = {
    {0, 20000, 5000, 23000, true, true}, /* as our relay compares: half of the quickest round trip is 20 us */
    {0, 50000, 40000, 60000, true, true},
    {30 * SIM_SECOND, 20000, 5000, 50000, true, true},
    {30 * SIM_SECOND, 20000, 5000, 110000, true, false},  /* as Perfetto's does: */
    {30 * SIM_SECOND, 20000, 5000, 110000, false, false}, /* any rate is possible in between */
};

START_TEST(without_a_step_the_bound_is_close_to_half_a_round_trip)
{
    struct sim_options o = office;
    struct figures f = {0};
    o.interval_ns = quiet_networks[_i].interval_ns;
    o.base_delay_ns = quiet_networks[_i].base_delay_ns;
    o.jitter_ns = quiet_networks[_i].jitter_ns;
    o.raw = quiet_networks[_i].raw;
    o.sources_told = quiet_networks[_i].sources_told;
    o.machines = 2;
    if (!o.interval_ns)
        o.span_ns = 60 * SIM_SECOND;
    for (o.seed = 5; o.seed < 8; o.seed++) {
        struct simulation s;
        simulate(&s, &o);
        measure(&s, CLOCK_MODEL_AUTO, false, &f);
        simulation_free(&s);
    }
    ck_assert_uint_eq(f.outside + f.unbound + f.missing, 0);
    ck_assert_int_ge(bound_percentile(&f, 1), o.base_delay_ns);
    ck_assert_int_le(bound_percentile(&f, 50), quiet_networks[_i].most_ns);
    figures_free(&f);
}
END_TEST

/* Some seconds after the boot the kernel has calibrated its TSC anew and takes that: the rate steps by what the network
 * hides for a while, and MONOTONIC_RAW with it. The machine is compared as our relay does; recordings begin just after
 * the boot. */
START_TEST(a_new_clock_source_is_a_step_that_raw_does_not_tell)
{
    struct sim_options o = {.machines = 2,
                            .span_ns = 7 * SIM_SECOND,
                            .base_delay_ns = 52000,
                            .jitter_ns = 10000,
                            .drift_ppb = 10000,
                            .wander_ppb_s = 1,
                            .offset_ns = INT64_C(1000000000000000),
                            .rounds_packet = 2,
                            .events = 1000,
                            .raw = true,
                            .sources_told = true,
                            .new_sources = 1,
                            .source_ppb = 80000};
    struct figures f = {0};
    for (o.seed = (uint64_t)_i * 20; o.seed < (uint64_t)_i * 20 + 20; o.seed++) {
        struct simulation s;
        simulate(&s, &o);
        measure(&s, CLOCK_MODEL_AUTO, o.seed % 2, &f);
        simulation_free(&s);
    }
    ck_assert_uint_eq(f.outside + f.unbound + f.missing, 0);
    ck_assert_int_le(bound_percentile(&f, 50), 60000);
    figures_free(&f);
}
END_TEST

/* ---- a machine that reboots and keeps its id ---- */

enum { RAW_ID = 77, HOST_AT = 1000 /* seconds of the host's clock at the beginning */ };

struct boots_trace {
    struct pb_writer w;
    struct storage st;
    struct importer *im;
};

static void put_side(struct pb_writer *w, uint32_t side, int64_t boottime)
{
    size_t snapshot = pb_begin(w, side), clock = pb_begin(w, 1);
    pb_put_varint(w, 1, 6);
    pb_put_i64(w, 2, boottime);
    pb_end(w, clock);
    pb_end(w, snapshot);
}

/* Two comparisons 100 us apart, `second` after the beginning, when the machine's clock shows `local` seconds. */
static void put_comparison(struct pb_writer *w, int64_t second, int64_t local)
{
    size_t packet = pb_begin(w, 1);
    pb_put_varint(w, 98, RAW_ID);
    size_t sync = pb_begin(w, 107);
    for (int64_t i = 0; i < 2; i++) {
        size_t round = pb_begin(w, 1);
        put_side(w, 2, local * SIM_SECOND + i * 100000);
        put_side(w, 3, (HOST_AT + second) * SIM_SECOND + 50000 + i * 100000);
        pb_end(w, round);
    }
    pb_end(w, sync);
    pb_end(w, packet);
}

/* A packet of the kernel without a time of its own: one `print` by thread 5. */
static void put_bundle(struct pb_writer *w, uint32_t sequence, int64_t local)
{
    size_t packet = pb_begin(w, 1);
    pb_put_varint(w, 98, RAW_ID);
    pb_put_varint(w, 10, sequence);
    size_t bundle = pb_begin(w, 1);
    pb_put_varint(w, 1, 0);
    size_t event = pb_begin(w, 2);
    pb_put_i64(w, 1, local * SIM_SECOND);
    pb_put_varint(w, 2, 5);
    size_t print = pb_begin(w, 3);
    pb_put_str(w, 2, "hello");
    pb_end(w, print);
    pb_end(w, event);
    pb_end(w, bundle);
    pb_end(w, packet);
}

static void import_boots(struct boots_trace *t)
{
    struct error err = {0};
    struct import_options options = {.clock_model = CLOCK_MODEL_AUTO, .full_sort = true};
    struct slice trace = pb_written(&t->w);
    char path[] = "/tmp/meridian-boots-XXXXXX";
    ck_assert_int_eq(storage_init(&t->st), 0);
    ck_assert_int_eq(importer_open(&t->im, &t->st, &options, &err), 0);
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, trace.p, trace.len), (ssize_t)trace.len);
    close(fd);
    ck_assert_msg(importer_add_file(t->im, path, &err) == 0, "%s", err.text);
    remove(path);
    ck_assert_int_eq(importer_finish(t->im, &err), 0);
}

static void free_boots(struct boots_trace *t)
{
    importer_close(t->im);
    storage_free(&t->st);
    pb_writer_free(&t->w);
}

static void put_host(struct pb_writer *w)
{
    size_t packet = pb_begin(w, 1), snapshot = pb_begin(w, 6), clock = pb_begin(w, 1);
    pb_put_varint(w, 1, 6);
    pb_put_i64(w, 2, HOST_AT * SIM_SECOND);
    pb_end(w, clock);
    pb_put_varint(w, 2, 6);
    pb_end(w, snapshot);
    pb_end(w, packet);
}

/* All comparisons first, as a service writes them that reads its buffers once: the times of the packets must tell. The
 * machine has been up for a day and reboots after 60 s; thread 5 is not the same in both boots. */
START_TEST(a_reboot_makes_a_machine_of_its_own)
{
    struct boots_trace t = {0};
    put_host(&t.w);
    for (int64_t s = 0; s < 60; s += 10)
        put_comparison(&t.w, s, 86400 + s);
    for (int64_t s = 80; s < 140; s += 10)
        put_comparison(&t.w, s, s - 70);
    put_bundle(&t.w, 9, 120 - 70);
    put_bundle(&t.w, 4, 86400 + 55);
    put_bundle(&t.w, 9, 130 - 70);
    import_boots(&t);
    ck_assert_uint_eq(t.st.t[T_machine].n_rows, 3);
    ck_assert_int_eq(ROW_GET(&t.st, machine, raw_id, 1), RAW_ID);
    ck_assert_int_eq(ROW_GET(&t.st, machine, raw_id, 2), RAW_ID);
    static const struct {
        int64_t second;
        uint32_t machine;
    } want[] = {{55, 1}, {120, 2}, {130, 2}};
    uint32_t machine_of[3];
    ck_assert_uint_eq(t.st.t[T_ftrace_event].n_rows, 3);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t at = ROW_GET(&t.st, ftrace_event, ts, i) - HOST_AT * SIM_SECOND;
        uint32_t thread = (uint32_t)ROW_GET(&t.st, ftrace_event, utid, i);
        ck_assert_int_lt(llabs(at - want[i].second * SIM_SECOND), 100000);
        machine_of[i] = (uint32_t)ROW_GET(&t.st, thread, machine_id, thread);
    }
    ck_assert_uint_ne(machine_of[0], machine_of[1]);
    ck_assert_uint_eq(machine_of[1], machine_of[2]);
    for (uint32_t i = 0; i < t.st.t[T_clock_sync].n_rows; i++)
        ck_assert_int_lt(ROW_GET(&t.st, clock_sync, max_error_ns, i), 200000);
    free_boots(&t);
}
END_TEST

/* One comparison a boot: the machine shows 100 s, and 60 s later 20 s. It ran for 40 s more at most, so that 150 s is
 * of the second boot, however near the first one's comparison is; 120 s can be of either, which is counted. */
START_TEST(a_boot_that_had_ended_sent_nothing)
{
    static const struct {
        int64_t shown;
        uint32_t machine;
        bool sure;
    } cases[] = {{110, 1, false}, {139, 1, false}, {150, 2, true}, {30, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct boots_trace t = {0};
        put_host(&t.w);
        put_comparison(&t.w, 0, 100);
        put_comparison(&t.w, 60, 20);
        put_bundle(&t.w, 4, cases[i].shown);
        import_boots(&t);
        ck_assert_uint_eq(t.st.t[T_ftrace_event].n_rows, 1);
        uint32_t thread = (uint32_t)ROW_GET(&t.st, ftrace_event, utid, 0);
        int64_t at = ROW_GET(&t.st, ftrace_event, ts, 0) - HOST_AT * SIM_SECOND;
        int64_t want = (cases[i].machine == 1 ? cases[i].shown - 100 : cases[i].shown + 40) * SIM_SECOND;
        ck_assert_int_eq(ROW_GET(&t.st, thread, machine_id, thread), cases[i].machine);
        ck_assert_int_lt(llabs(at - want), SIM_SECOND);
        uint32_t machine = cases[i].machine;
        ck_assert(!stats_get_idx(&t.st.stats, machine, STAT_clock_sync_boot_unsure, (int32_t)machine) == cases[i].sure);
        free_boots(&t);
    }
}
END_TEST

/* A clock that is set back has not started anew: it shows more than the time that has gone by. */
START_TEST(a_clock_set_back_is_not_a_reboot)
{
    struct boots_trace t = {0};
    put_host(&t.w);
    for (int64_t s = 0; s < 100; s += 10)
        put_comparison(&t.w, s, 86400 + s - (s == 50 ? 3600 : 0));
    put_bundle(&t.w, 4, 86400 + 55);
    import_boots(&t);
    ck_assert_uint_eq(t.st.t[T_machine].n_rows, 2);
    ck_assert_uint_eq(t.st.t[T_ftrace_event].n_rows, 1);
    ck_assert_ptr_nonnull(stats_get_idx(&t.st.stats, 1, STAT_clock_sync_rounds_rejected, 1));
    free_boots(&t);
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
        vec_push(&all, (struct clock_sample){.remote = x, .host = y + (int64_t)(seed >> 45) % 20000});
    }
    for (size_t i = 1; i < all.n; i++) /* the host's clock does not go back */
        if (all.p[i].host < all.p[i - 1].host)
            all.p[i].host = all.p[i - 1].host + 1;
    for (size_t i = all.n; i-- > 0;)
        ck_assert(clock_line_add(&l, &all.p[i]));
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
        clock_line_add(&l, &(struct clock_sample){.remote = a, .host = b});
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

/* ---- steps of the time and of the rate ---- */

/* A machine that is compared eight times a second for 20 s, four exchanges of 100 us at a time; at 10 s something
 * happens to its clock. */
struct stepping {
    int64_t pause_ns;     /* it stands still for so long */
    int64_t rate_ppb;     /* it runs so much faster … */
    int64_t rate_time_ns; /* … for so long */
};

static const int64_t step_at = 10 * SIM_SECOND + 33 * SIM_SECOND / 1000, offset = 777 * SIM_SECOND;

/* What the remote clock shows at a host time. */
static int64_t remote_at(const struct stepping *w, int64_t host)
{
    int64_t remote = host + offset + host / 50000;
    if (host > step_at)
        remote -= host - step_at < w->pause_ns ? host - step_at : w->pause_ns;
    if (host > step_at)
        remote += (int64_t)((__int128)(host - step_at < w->rate_time_ns ? host - step_at : w->rate_time_ns) *
                            w->rate_ppb / 1000000000);
    return remote;
}

static void compare_clocks(struct clock_line *l, const struct stepping *w)
{
    uint64_t random = 12345;
    for (int64_t burst = 0; burst < 20 * SIM_SECOND; burst += SIM_SECOND / 8) {
        if (burst > step_at && burst < step_at + w->pause_ns)
            continue; /* nothing is sent while it stands still */
        int64_t host = burst;
        for (int i = 0; i < 8; i++) { /* readings that are sent, and answered */
            random = random * 6364136223846793005 + 1442695040888963407;
            int64_t there = 50000 + (int64_t)(random >> 44) % 30000, back = 50000 + (int64_t)(random >> 50) % 10000;
            ck_assert(clock_line_add(l, &(struct clock_sample){.remote = remote_at(w, host), .host = host + there}));
            host += there + back;
        }
    }
    ck_assert_int_eq(clock_line_fit(l), 0);
}

static const struct stepping steppings[] = {
    {0, 0, 0},
    {200 * SIM_SECOND / 1000, 0, 0},
    {3 * SIM_SECOND, 0, 0},
    {SIM_SECOND / 1000, 0, 0},
    {0, 200000, 100 * SIM_SECOND},
    {0, -200000, 100 * SIM_SECOND},
    {0, 500000, 100 * SIM_SECOND},
    {0, -500000, 100 * SIM_SECOND},
    {0, 10000000, 3 * SIM_SECOND},
    {0, -10000000, 3 * SIM_SECOND},
    {0, 80000000, 2 * SIM_SECOND},
};

START_TEST(a_step_is_found_and_the_bound_holds)
{
    const struct stepping *w = &steppings[_i];
    struct clock_line l = {0};
    size_t far = 0, wide_ones = 0;
    compare_clocks(&l, w);
    ck_assert_uint_eq(l.rejected, 0);
    ck_assert_uint_eq(l.steps.n, w->pause_ns != 0);
    ck_assert_uint_eq(l.spans.n, 1 + l.steps.n);
    for (size_t i = 0; i < l.steps.n; i++) {
        ck_assert_int_le(llabs(l.steps.p[i].by_ns - w->pause_ns), 120000);
        ck_assert_int_le(l.steps.p[i].x[0], remote_at(w, step_at));
        ck_assert_int_ge(l.steps.p[i].x[1], remote_at(w, step_at));
    }
    for (int64_t host = SIM_SECOND / 100; host < 19900 * SIM_SECOND / 1000; host += 999983) {
        if (host > step_at && host <= step_at + w->pause_ns)
            continue; /* its clock shows one time all the while */
        int64_t remote = remote_at(w, host), error = clock_line_error(&l, remote);
        ck_assert_msg(llabs(clock_line_to_host(&l, remote) - host) <= error, "at %lld: off by %lld, bound %lld",
                      (long long)host, (long long)(clock_line_to_host(&l, remote) - host), (long long)error);
        ck_assert_int_ge(error, 50000); /* half of the quickest possible round trip */
        far += llabs(host - step_at) > 5 * SIM_SECOND;
        wide_ones += llabs(host - step_at) > 5 * SIM_SECOND && error > 80000;
    }
    ck_assert_uint_lt(wide_ones * 8, far); /* at the ends of the recording, but no more than that */
    clock_line_free(&l);
}
END_TEST

/* The guest is paused for a second: a row says when and how far, a stat that `check` shows counts it. */
START_TEST(a_step_is_a_row_and_a_stat)
{
    struct boots_trace t = {0};
    put_host(&t.w);
    for (int64_t s = 0; s < 60; s += 2)
        put_comparison(&t.w, s, 86400 + s - (s > 30));
    put_bundle(&t.w, 4, 86400 + 55);
    import_boots(&t);
    uint32_t steps = 0;
    for (uint32_t i = 0; i < t.st.t[T_clock_sync].n_rows; i++) {
        const char *model = strpool_cstr(&t.st.strings, (strid)ROW_GET(&t.st, clock_sync, model, i));
        int64_t start = ROW_GET(&t.st, clock_sync, start_ts, i), end = ROW_GET(&t.st, clock_sync, end_ts, i);
        if (strcmp(model, "step") != 0) {
            ck_assert_int_eq(ROW_GET(&t.st, clock_sync, step_ns, i), COL_NULL);
            continue;
        }
        steps++;
        ck_assert_int_lt(llabs(ROW_GET(&t.st, clock_sync, step_ns, i) + SIM_SECOND), 1000000);
        ck_assert_int_lt(llabs(start - (HOST_AT + 30) * SIM_SECOND), SIM_SECOND / 1000);
        ck_assert_int_lt(llabs(end - (HOST_AT + 32) * SIM_SECOND), SIM_SECOND / 1000);
        ck_assert_int_ge(ROW_GET(&t.st, clock_sync, max_error_ns, i), SIM_SECOND * 9 / 10);
    }
    ck_assert_uint_eq(steps, 1);
    ck_assert_ptr_nonnull(stats_get_idx(&t.st.stats, 1, STAT_clock_sync_steps, 1));
    free_boots(&t);
}
END_TEST

/* What the packets hold is in clock_snapshot under the linear model, too. */
START_TEST(clock_snapshot_has_the_comparisons)
{
    struct boots_trace t = {0};
    uint32_t remote = 0, together = 0;
    put_host(&t.w);
    for (int64_t s = 0; s < 20; s += 2)
        put_comparison(&t.w, s, 86400 + s);
    put_bundle(&t.w, 4, 86400 + 15);
    import_boots(&t);
    for (uint32_t i = 0; i < t.st.t[T_clock_snapshot].n_rows; i++) {
        if (ROW_GET(&t.st, clock_snapshot, machine_id, i) != 1)
            continue;
        remote++;
        int64_t value = ROW_GET(&t.st, clock_snapshot, clock_value, i), ts = ROW_GET(&t.st, clock_snapshot, ts, i);
        ck_assert_int_lt(llabs((ts - HOST_AT * SIM_SECOND) - (value - 86400 * SIM_SECOND)), 200000);
        if (i && ROW_GET(&t.st, clock_snapshot, snapshot_id, i) == ROW_GET(&t.st, clock_snapshot, snapshot_id, i - 1)) {
            together++;
            ck_assert_int_eq(ROW_GET(&t.st, clock_snapshot, machine_id, i - 1), 0);
        }
    }
    ck_assert_uint_eq(together, 10); /* next to the host's, once a packet */
    ck_assert_uint_eq(remote, 20);
    free_boots(&t);
}
END_TEST

Suite *clock_line_suite(void);
Suite *clock_line_suite(void)
{
    Suite *s = suite_create("clock_line");
    TCase *t = tcase_create("clock_line");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, the_true_time_lies_within_the_bound, 0, RANDOM_TESTS);
    tcase_add_loop_test(t, a_new_clock_source_is_a_step_that_raw_does_not_tell, 0, 20);
    tcase_add_loop_test(t, ten_minutes_at_ten_ppm, 0, 10);
    tcase_add_loop_test(t, without_a_step_the_bound_is_close_to_half_a_round_trip, 0,
                        sizeof quiet_networks / sizeof *quiet_networks);
    tcase_add_test(t, a_reboot_makes_a_machine_of_its_own);
    tcase_add_test(t, a_boot_that_had_ended_sent_nothing);
    tcase_add_test(t, a_clock_set_back_is_not_a_reboot);
    tcase_add_loop_test(t, no_round_is_inverted_and_the_map_goes_up, 0, 50);
    tcase_add_loop_test(t, a_step_is_found_and_the_bound_holds, 0, sizeof steppings / sizeof *steppings);
    tcase_add_test(t, a_step_is_a_row_and_a_stat);
    tcase_add_test(t, clock_snapshot_has_the_comparisons);
    tcase_add_loop_test(t, hostile_rounds_are_survived, 0, 60);
    suite_add_tcase(s, t);
    return s;
}
