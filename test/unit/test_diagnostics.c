/* Tests what is told of a recording's config: rows of trace_diagnostics. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *w;

static void setup(void)
{
    trace_fixture_open(&f);
    w = &f.w;
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define FTRACE(config) "2{1{1'linux.ftrace' 100{" config "}}}"

/* A config, what else the trace has, and the keys that are told with their confidence. */
static const struct {
    const char *config, *more, *told;
} cases[] = {
    {FTRACE("10:16"), "", "tiny_ftrace_buffer 0.900"},
    {FTRACE("10:544"), "", "tiny_ftrace_buffer 0.550"},
    {FTRACE("10:1023"), "", "tiny_ftrace_buffer 0.201"},
    {FTRACE("10:1024"), "", ""},
    {FTRACE("10:0"), "", ""},
    {FTRACE("10:3072 11:1000"), "", "low_ftrace_drain_bandwidth 0.450"},
    {FTRACE("10:1024 11:2000"), "", "low_ftrace_drain_bandwidth 0.900"},
    {FTRACE("10:5120 11:1000"), "", ""},
    {FTRACE("11:99"), "", "extreme_ftrace_drain_period 0.600"},
    {FTRACE("11:100"), "", ""},
    {FTRACE("11:60001"), "", "extreme_ftrace_drain_period 0.600"},
    {FTRACE("1'raw_syscalls/sys_exit'"), "", "syscalls_without_filter 0.300"},
    {FTRACE("1'raw_syscalls/sys_exit' 18'sys_read'"), "", ""},
    {FTRACE("19:1"), "", "function_graph_requires_symbolize_ksyms 1.000"},
    {FTRACE("19:1 13:1"), "", ""},
    {FTRACE("1'sched/sched_blocked_reason' 1'workqueue/workqueue_execute_start'"), "",
     "events_require_symbolize_ksyms 0.600"},
    {"1{4:2} 8:1 " FTRACE("1'sched/sched_switch'"), "", "discard_buffer_for_streaming 0.800"},
    {"1{4:1} 1{4:2} 8:1 " FTRACE("1'sched/sched_switch'") "2{1{1'track_event' 2:1}}", "",
     "discard_buffer_for_streaming 0.800"},
    {"1{4:2} 8:1 9:604800000 " FTRACE("1'sched/sched_switch'"), "", ""},
    {"2{1{1'android.heapprofd' 105{1:4096}}}", "", "heapprofd_sampling_interval_too_low 0.300"},
    {"2{1{1'android.heapprofd' 105{1:4096}}}",
     "1{6{1{1:6 2:1000} 1{1:4 2:900}}} 1{8:5 10:1 37{7:0 5{1:30 9:910 10:1}}}",
     "heapprofd_sampling_interval_too_low 0.900"},
    {"2{1{1'android.display.video'}}", "1{45{2'google/x/x:15/A/1:user/release-keys'}}",
     "display_video_not_enabled 0.700"},
    {"2{1{1'android.display.video'}}", "1{45{2'google/x/x:15/A/1:userdebug/dev-keys'}}", ""},
    {FTRACE("10:16") FTRACE("11:5"), "", "tiny_ftrace_buffer 0.900, extreme_ftrace_drain_period 0.600"},
};

START_TEST(a_config_is_looked_through)
{
    char told[512] = "";
    size_t n = 0;
    put(w, "1{33{%s}} %s", cases[_i].config, cases[_i].more);
    trace_fixture_load(&f);
    for (uint32_t i = 0; i < f.st.t[T_trace_diagnostics].n_rows; i++)
        n += (size_t)snprintf(told + n, sizeof told - n, "%s%s %.3f", n ? ", " : "",
                              fixture_text(&f, ROW_GET(&f.st, trace_diagnostics, key, i)),
                              column_f64(ROW_GET(&f.st, trace_diagnostics, confidence, i)));
    ck_assert_str_eq(told, cases[_i].told);
}
END_TEST

/* Of two configs of a trace the last one counts. */
START_TEST(the_last_config_counts)
{
    put(w, "1{33{" FTRACE("10:16") "}} 1{33{" FTRACE("10:8192") "}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(f.st.t[T_trace_diagnostics].n_rows, 0);
}
END_TEST

/* When the kernel did lose events, what may lose them is the more likely the reason. */
START_TEST(losses_make_a_rule_surer)
{
    stats_add_idx(&f.st.stats, 0, STAT_ftrace_cpu_overrun_delta, 3, 1);
    put(w, "1{33{" FTRACE("10:544") FTRACE("1'raw_syscalls/sys_enter'") "}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(f.st.t[T_trace_diagnostics].n_rows, 2);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(column_f64(ROW_GET(&f.st, trace_diagnostics, confidence, i)) == 0.9);
}
END_TEST

Suite *diagnostics_suite(void);

Suite *diagnostics_suite(void)
{
    Suite *s = suite_create("diagnostics");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, a_config_is_looked_through, 0, sizeof cases / sizeof *cases);
    tcase_add_test(c, the_last_config_counts);
    tcase_add_test(c, losses_make_a_rule_surer);
    suite_add_tcase(s, c);
    return s;
}
