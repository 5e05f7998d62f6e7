/* Tests what a recording says about data sources that did not start: to its consumer, and in its trace. */
#include "service_fixture.h"

#include <string.h>

static struct world w;
static struct consumer c;
static struct producer p;

static void begin(const char *descriptor, const char *config)
{
    world_open(&w);
    consumer_join(&c, &w);
    consumer_listen(&c, OBSERVE_RECORDING_REPORT);
    producer_join(&p, &w, "app", descriptor);
    ck_assert_str_eq(consumer_enable(&c, config), "");
}

static void end(void)
{
    producer_leave(&p);
    consumer_leave(&c);
    world_close(&w);
}

#define BUFFER      "buffers { size_kb: 64 } "
#define SOURCE(...) BUFFER "data_sources { config { name: 'src' } " __VA_ARGS__ " } "

/* The i-th problem of a RecordingReport, as the sentence that users read; "" when there are fewer. */
static const char *sentence(const struct pb_writer *message, uint32_t field, unsigned i)
{
    static char text[1400];
    struct pb_field report, f;
    *text = 0;
    ck_assert(pb_find(pb_written(message), field, &report));
    struct pb_cursor at = pb_cursor(pb_bytes(&report));
    while (pb_next(&at, &f)) {
        if (f.id != RECORDING_REPORT_PROBLEM || i--)
            continue;
        struct recording_problem problem;
        recording_problem_read(&problem, pb_bytes(&f));
        recording_problem_text(&problem, text, sizeof text);
        break;
    }
    return text;
}

static uint64_t number(const struct pb_writer *message, uint32_t field, uint32_t of)
{
    struct pb_field report, f;
    ck_assert(pb_find(pb_written(message), field, &report));
    return pb_find(pb_bytes(&report), of, &f) ? pb_u64(&f) : UINT64_MAX;
}

static void stop(void)
{
    ck_assert(consumer_ok(&c, CONSUMER_DISABLE_TRACING, ""));
    RUN_UNTIL(&w.loop, c.enabled.n);
}

/* Says of its last data source that it has started; `more`: fields of the report. */
static void has_started(const char *more)
{
    char args[256];
    snprintf(args, sizeof args, "1:%llu %s",
             (unsigned long long)producer_number(&p, GET_ASYNC_COMMAND_RESPONSE_START_DATA_SOURCE,
                                                 GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE_NEW_INSTANCE_ID),
             more);
    ck_assert(producer_ok(&p, PRODUCER_NOTIFY_DATA_SOURCE_STARTED, args));
    world_settle(&w);
}

/* What the consumer hears at the start, of sources that no producer got. */
static const struct {
    const char *config, *problem;
} missing[] = {
    {SOURCE(""), ""},
    {BUFFER "data_sources { config { name: 'scr' } }",
     "data source \"scr\" did not start: no connected producer offers it"},
    {SOURCE("producer_name_filter: 'web' producer_name_regex_filter: 'ap'"),
     "data source \"src\" did not start: the config's filters (web, ap) select none of those that offer it "
     "(app on this machine)"},
    {SOURCE("machine_name_filter: 'guest'"),
     "data source \"src\" did not start: the config's filters (guest) select none of those that offer it "
     "(app on this machine)"},
    {SOURCE("machine_name_filter: 'host'"), ""},
    {BUFFER "data_sources { }", ""},
};

START_TEST(sources_that_nobody_has)
{
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        begin("1'src'", missing[i].config);
        RUN_UNTIL(&w.loop, c.observed.n);
        ck_assert_str_eq(sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 0), missing[i].problem);
        ck_assert_str_eq(sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 1), "");
        end();
    }
}
END_TEST

START_TEST(all_is_well)
{
    begin("1'src'", SOURCE(""));
    ck_assert_uint_eq(number(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, RECORDING_REPORT_ASKED), 1);
    ck_assert_uint_eq(number(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, RECORDING_REPORT_STARTED), 0);
    producer_write(&p, "something", 0);
    stop();
    ck_assert_str_eq(sentence(&c.enabled.last, ENABLE_TRACING_RESPONSE_REPORT, 0), "");
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_RECORDING_PROBLEM), 0);
    pb_writer_free(&trace);
    end();
}
END_TEST

/* It says itself that it could not start, or not all of it: told once, and in the trace. */
START_TEST(sources_that_tell)
{
    begin("1'src' 3:1", SOURCE(""));
    world_settle(&w);
    ck_assert_uint_eq(c.observed.n, 0); /* it has not said that it started */
    has_started("991'event x is unknown' 991'event y is unknown' 991'event x is unknown'");
    ck_assert_uint_eq(c.observed.n, 1);
    const char *text = sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 0);
    ck_assert_str_eq(text, "data source \"src\" of app records only a part of what the config asks for: "
                           "event x is unknown");
    text = sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 1);
    ck_assert_ptr_nonnull(strstr(text, "event y is unknown"));
    ck_assert_str_eq(sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 2), "");
    ck_assert_uint_eq(number(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, RECORDING_REPORT_STARTED), 0);
    producer_write(&p, "something", 0);
    stop();
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_RECORDING_PROBLEM), 2);
    pb_writer_free(&trace);
    trace = consumer_read(&c); /* … once */
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_RECORDING_PROBLEM), 0);
    pb_writer_free(&trace);
    end();
}
END_TEST

START_TEST(a_source_that_fails)
{
    begin("1'src' 3:1", SOURCE(""));
    has_started("990'no permission'");
    ck_assert_str_eq(sentence(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, 0),
                     "data source \"src\" of app could not start: no permission");
    ck_assert_uint_eq(number(&c.observed.last, OBSERVE_EVENTS_RESPONSE_REPORT, RECORDING_REPORT_STARTED), UINT64_MAX);
    stop();
    ck_assert_str_eq(sentence(&c.enabled.last, ENABLE_TRACING_RESPONSE_REPORT, 0),
                     "data source \"src\" of app could not start: no permission");
    ck_assert_str_eq(sentence(&c.enabled.last, ENABLE_TRACING_RESPONSE_REPORT, 1), ""); /* EMPTY would say it twice */
    end();
}
END_TEST

/* It never says that it started: the session ends, or it does. */
START_TEST(a_source_that_says_nothing)
{
    begin("1'src' 3:1", SOURCE(""));
    if (_i) {
        producer_leave(&p);
        producer_join(&p, &w, "another", "");
    }
    stop();
    ck_assert_str_eq(sentence(&c.enabled.last, ENABLE_TRACING_RESPONSE_REPORT, 0),
                     _i ? "data source \"src\" of app could not start: its producer disconnected before it had started"
                        : "data source \"src\" of app has not said that it started");
    end();
}
END_TEST

START_TEST(nothing_was_delivered)
{
    begin("1'src'", SOURCE(""));
    stop();
    ck_assert_str_eq(sentence(&c.enabled.last, ENABLE_TRACING_RESPONSE_REPORT, 0),
                     "nothing was recorded: no data source delivered a packet");
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_RECORDING_PROBLEM), 1);
    pb_writer_free(&trace);
    end();
}
END_TEST

/* A session that never started says nothing. */
START_TEST(never_started)
{
    begin("1'src'", BUFFER "deferred_start: true data_sources { config { name: 'scr' } }");
    struct pb_field f;
    stop();
    ck_assert(!pb_find(pb_written(&c.enabled.last), ENABLE_TRACING_RESPONSE_REPORT, &f));
    end();
}
END_TEST

/* Without end, and as long as they like: what is kept fits into one reply. */
START_TEST(too_many_problems)
{
    char text[1300] = "", reason[1200];
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    begin("1'src' 3:1", SOURCE(""));
    struct session *s = world_session(&w, 0);
    struct instance *in = s->instances.p[0];
    for (int i = 0; i < 400; i++) {
        struct pb_writer report = {0};
        snprintf(text, sizeof text, "%d %s", i, _i ? reason : "");
        pb_put_str(&report, NOTIFY_STARTED_INCOMPLETE, text);
        problems_instance_started(s, in, pb_written(&report));
        pb_writer_free(&report);
    }
    size_t bytes = 0;
    for (size_t i = 0; i < s->problems.list.n; i++)
        bytes += s->problems.list.p[i].message.n;
    if (_i == 0)
        ck_assert_uint_eq(s->problems.list.n, 256);
    ck_assert_uint_le(bytes, 64 << 10);
    ck_assert_uint_ge(bytes, _i ? 60 << 10 : 1);
    struct recording_problem first;
    struct pb_field f;
    ck_assert(pb_find(pb_written(&s->problems.list.p[0].message), RECORDING_REPORT_PROBLEM, &f));
    recording_problem_read(&first, pb_bytes(&f));
    ck_assert_uint_eq(first.reason.len, _i ? 1000 : 2);
    stop();
    ck_assert(c.enabled.success);
    end();
}
END_TEST

/* A clone says what its session knew. */
START_TEST(clones_know_it_too)
{
    struct consumer other;
    begin("1'src'", BUFFER "data_sources { config { name: 'scr' } }");
    consumer_join(&other, &w);
    ck_assert(consumer_ok(&other, CONSUMER_CLONE_SESSION, "1:1"));
    struct pb_writer trace = consumer_read(&other);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_RECORDING_PROBLEM), 1);
    pb_writer_free(&trace);
    consumer_leave(&other);
    end();
}
END_TEST

Suite *problems_suite(void);

Suite *problems_suite(void)
{
    Suite *s = suite_create("problems");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, sources_that_nobody_has);
    tcase_add_test(t, all_is_well);
    tcase_add_test(t, sources_that_tell);
    tcase_add_test(t, a_source_that_fails);
    tcase_add_loop_test(t, a_source_that_says_nothing, 0, 2);
    tcase_add_test(t, nothing_was_delivered);
    tcase_add_test(t, never_started);
    tcase_add_loop_test(t, too_many_problems, 0, 2);
    tcase_add_test(t, clones_know_it_too);
    suite_add_tcase(s, t);
    return s;
}
