/* Tests what a config of linux.perf asks for: its defaults, what is refused, and which processes are sampled. */
#include "ck_slice.h"

#include "capture/perf/perf_sample.h"
#include "wire/fields.h"

/* ---- config ---- */

START_TEST(defaults_are_filled_in)
{
    struct perf_config c;
    struct error err = {0};
    ck_assert_int_eq(perf_config_parse(&c, slice_of(NULL, 0), &err), 0);
    ck_assert_uint_eq(c.frequency, 10);
    ck_assert_uint_eq(c.ring_pages, 256);
    ck_assert_uint_eq(c.read_period_ms, 100);
    ck_assert_uint_eq(c.timeout_ms, 100);
    ck_assert_uint_eq(c.clear_ms, 300000);
    ck_assert_int_eq(c.clock, CLOCK_MONOTONIC_RAW);
    ck_assert_uint_eq(c.timebase.counter, PERF_EVENTS_COUNTER_SW_CPU_CLOCK);
    ck_assert(!c.stacks);
    perf_config_free(&c);
}
END_TEST

/* Writes one wrong config; what the error must say. */
static const char *wrong_config(struct pb_writer *w, int which)
{
    size_t timebase, inner;
    switch (which) {
    case 0:
        pb_put_varint(w, PERF_EVENT_CONFIG_RING_BUFFER_PAGES, 3);
        return "power of two";
    case 1:
        timebase = pb_begin(w, PERF_EVENT_CONFIG_TIMEBASE);
        pb_put_varint(w, PERF_EVENTS_TIMEBASE_COUNTER, 77);
        pb_end(w, timebase);
        return "counter 77";
    case 2:
        timebase = pb_begin(w, PERF_EVENT_CONFIG_TIMEBASE);
        inner = pb_begin(w, PERF_EVENTS_TIMEBASE_TRACEPOINT);
        pb_put_str(w, PERF_EVENTS_TRACEPOINT_NAME, "../../etc/passwd");
        pb_end(w, inner);
        pb_end(w, timebase);
        return "GROUP/NAME";
    case 3:
        timebase = pb_begin(w, PERF_EVENT_CONFIG_TIMEBASE);
        inner = pb_begin(w, PERF_EVENTS_TIMEBASE_RAW_EVENT);
        pb_put_varint(w, PERF_EVENTS_RAW_EVENT_TYPE, 4);
        pb_put_str(w, PERF_EVENTS_RAW_EVENT_PMU_NAME, "cpu");
        pb_end(w, inner);
        pb_end(w, timebase);
        return "not both";
    case 4:
        timebase = pb_begin(w, PERF_EVENT_CONFIG_TIMEBASE);
        pb_put_varint(w, PERF_EVENTS_TIMEBASE_POLL_PERIOD_MS, 10);
        pb_end(w, timebase);
        pb_end(w, pb_begin(w, PERF_EVENT_CONFIG_CALLSTACK_SAMPLING));
        return "poll_period_ms";
    case 5:
        inner = pb_begin(w, PERF_EVENT_CONFIG_CALLSTACK_SAMPLING);
        pb_put_varint(w, PERF_EVENT_CONFIG_CALLSTACK_SAMPLING_USER_FRAMES, 9);
        pb_end(w, inner);
        return "user_frames 9";
    default:
        for (int i = 0; i <= PERF_MAX_FOLLOWERS; i++)
            pb_end(w, pb_begin(w, PERF_EVENT_CONFIG_FOLLOWERS));
        return "followers";
    }
}

START_TEST(wrong_configs_are_refused)
{
    struct pb_writer w = {0};
    struct perf_config c;
    struct error err = {0};
    const char *text = wrong_config(&w, _i);
    ck_assert_int_lt(perf_config_parse(&c, pb_written(&w), &err), 0);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s", err.text);
    perf_config_free(&c);
    pb_writer_free(&w);
}
END_TEST

START_TEST(the_last_of_a_oneof_counts)
{
    struct pb_writer w = {0};
    struct perf_config c;
    struct error err = {0};
    size_t timebase = pb_begin(&w, PERF_EVENT_CONFIG_TIMEBASE);
    pb_put_varint(&w, PERF_EVENTS_TIMEBASE_FREQUENCY, 99);
    pb_put_varint(&w, PERF_EVENTS_TIMEBASE_PERIOD, 7);
    pb_put_varint(&w, PERF_EVENTS_TIMEBASE_COUNTER, PERF_EVENTS_COUNTER_HW_CPU_CYCLES);
    size_t point = pb_begin(&w, PERF_EVENTS_TIMEBASE_TRACEPOINT);
    pb_put_str(&w, PERF_EVENTS_TRACEPOINT_NAME, "sched:sched_switch");
    pb_end(&w, point);
    pb_put_varint(&w, PERF_EVENTS_TIMEBASE_TIMESTAMP_CLOCK, PERF_EVENTS_PERF_CLOCK_BOOTTIME);
    pb_end(&w, timebase);
    ck_assert_msg(perf_config_parse(&c, pb_written(&w), &err) == 0, "%s", err.text);
    ck_assert_uint_eq(c.period, 7);
    ck_assert_uint_eq(c.frequency, 0);
    ck_assert_int_eq(c.timebase.kind, PERF_EVENT_TRACEPOINT);
    ck_assert_slice_eq(c.timebase.group, "sched");
    ck_assert_slice_eq(c.timebase.point, "sched_switch");
    ck_assert_int_eq(c.clock, CLOCK_BOOTTIME);
    perf_config_free(&c);
    pb_writer_free(&w);
}
END_TEST

/* ---- scope ---- */

struct scope_case {
    const char *target, *exclude;
    int32_t target_pid, exclude_pid;
    uint32_t additional, shards;
    const char *cmdline;
    bool kernel_thread, accepted;
    const char *target_cgroup, *exclude_cgroup;
};
static const struct scope_case scope_cases[] = {
    {.cmdline = "/bin/cat", .accepted = true},
    {.target = "cat", .cmdline = "/bin/cat", .accepted = true},
    {.target = "c*", .cmdline = "cat", .accepted = true},
    {.target = "/bin/c*", .cmdline = "/bin/cat", .accepted = true},
    {.target = "/bin/dog", .cmdline = "/bin/cat"},
    {.target = "bin", .cmdline = "/bin/cat"},
    {.target = "*", .exclude = "cat", .cmdline = "/bin/cat"},
    {.target_pid = 101, .exclude = "cat", .cmdline = "/bin/cat"},
    {.target_pid = 101, .exclude_pid = 101, .cmdline = "/bin/cat"},
    {.target_pid = 101, .cmdline = "/bin/cat", .accepted = true},
    {.target_pid = 102, .cmdline = "/bin/cat"},
    {.additional = 1, .cmdline = "/bin/cat", .accepted = true},
    {.additional = 1, .cmdline = "/bin/cat", .kernel_thread = true},
    {.shards = 4, .cmdline = "/bin/cat", .accepted = true}, /* 101 % 4 = 1, which is the shard */
    {.shards = 5, .cmdline = "/bin/cat", .accepted = true},
    {.shards = 3, .additional = 7, .cmdline = "/bin/cat"},
    {.target = "cat", .cmdline = ""},
    {.target_cgroup = "/system.slice/ssh*", .cmdline = "/bin/cat", .accepted = true},
    {.target_cgroup = "/system.slice", .cmdline = "/bin/cat", .accepted = true}, /* and what is beneath it */
    {.target_cgroup = "/system.slice/", .cmdline = "/bin/cat", .accepted = true},
    {.target_cgroup = "/system", .cmdline = "/bin/cat"},
    {.target_cgroup = "/*.service", .cmdline = "/bin/cat"}, /* a star is within a name */
    {.target_cgroup = "ssh.service", .cmdline = "/bin/cat", .accepted = true},
    {.target_cgroup = "system.slice", .cmdline = "/bin/cat", .accepted = true},
    {.target_cgroup = "ssh", .cmdline = "/bin/cat"},
    {.target_cgroup = "cpu", .cmdline = "/bin/cat"}, /* the name of a controller, not of a group */
    {.target_cgroup = "b?x", .cmdline = "/bin/cat", .accepted = true},
    {.target_cgroup = "cut", .cmdline = "/bin/cat"}, /* the end of what could be read */
    {.target_cgroup = "ssh.service", .cmdline = "", .kernel_thread = true, .accepted = true},
    {.target_cgroup = "ssh.service", .exclude = "cat", .cmdline = "/bin/cat"},
    {.exclude_cgroup = "ssh.service", .cmdline = "/bin/cat"},
    {.exclude_cgroup = "other.service", .cmdline = "/bin/cat", .accepted = true},
    {.exclude_cgroup = "ssh.service", .target_pid = 101, .cmdline = "/bin/cat"},
    {.target_cgroup = "other.service", .target_pid = 101, .cmdline = "/bin/cat", .accepted = true},
};

static const char some_cgroups[] = "4:cpu,cpuacct:/box\n0::/system.slice/ssh.service\nno line\n3:memory:/cut";

START_TEST(scopes_accept_by_the_rules)
{
    const struct scope_case *x = &scope_cases[_i];
    struct perf_scope_config c = {.additional_cmdlines = x->additional, .shard_count = x->shards};
    struct perf_scope s = {.config = &c, .shard = 1};
    if (x->target)
        vec_push(&c.target_cmdlines, slice_str(x->target));
    if (x->exclude)
        vec_push(&c.exclude_cmdlines, slice_str(x->exclude));
    if (x->target_pid)
        vec_push(&c.target_pids, x->target_pid);
    if (x->exclude_pid)
        vec_push(&c.exclude_pids, x->exclude_pid);
    if (x->target_cgroup)
        vec_push(&c.target_cgroups, slice_str(x->target_cgroup));
    if (x->exclude_cgroup)
        vec_push(&c.exclude_cgroups, slice_str(x->exclude_cgroup));
    struct perf_who who = {.pid = 101,
                           .kernel_thread = x->kernel_thread,
                           .cmdline = slice_str(x->cmdline),
                           .cgroups = slice_str(some_cgroups)};
    ck_assert_int_eq(perf_scope_accepts(&s, &who), x->accepted);
    if (x->additional && x->accepted) { /* the same again, but no other, nor with other arguments */
        who.pid = 102;
        ck_assert(perf_scope_accepts(&s, &who));
        who.cmdline = slice_of("/bin/cat\0a", 11);
        ck_assert(!perf_scope_accepts(&s, &who));
        who.cmdline = slice_str("another");
        ck_assert(!perf_scope_accepts(&s, &who));
    }
    perf_scope_free(&s);
    vec_free(&c.target_cmdlines);
    vec_free(&c.exclude_cmdlines);
    vec_free(&c.target_cgroups);
    vec_free(&c.exclude_cgroups);
    vec_free(&c.target_pids);
    vec_free(&c.exclude_pids);
}
END_TEST

Suite *perf_config_suite(void);
Suite *perf_config_suite(void)
{
    Suite *s = suite_create("perf_config");
    TCase *t = tcase_create("perf_config");
    tcase_add_test(t, defaults_are_filled_in);
    tcase_add_loop_test(t, wrong_configs_are_refused, 0, 7);
    tcase_add_test(t, the_last_of_a_oneof_counts);
    tcase_add_loop_test(t, scopes_accept_by_the_rules, 0, sizeof scope_cases / sizeof *scope_cases);
    suite_add_tcase(s, t);
    return s;
}
