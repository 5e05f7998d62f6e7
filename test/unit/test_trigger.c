/* Tests triggers: which sessions hear them, what they do, and how often. */
#include "service_fixture.h"

#include <string.h>

#define SOURCE "buffers { size_kb: 64 } data_sources { config { name: 'src' } } "

static struct world w;
static struct consumer c;
static struct producer p;

static void begin(void)
{
    world_open(&w);
    consumer_join(&c, &w);
    producer_join(&p, &w, "app", "1'src'");
}

static void end(void)
{
    producer_leave(&p);
    consumer_leave(&c);
    world_close(&w);
}

static void enable(const char *config)
{
    ck_assert_str_eq(consumer_enable(&c, config), "");
}

static void trigger(const char *name)
{
    char args[64];
    snprintf(args, sizeof args, "1'%s'", name);
    ck_assert(producer_ok(&p, PRODUCER_ACTIVATE_TRIGGERS, args));
}

/* Makes timers due until the session has ended: its stop's delay, then the flush that nobody answers. */
static void let_it_end(void)
{
    struct session *s = world_session(&w, 0);
    RUN_UNTIL(&w.loop, ({
        if (producer_count(&p, GET_ASYNC_COMMAND_RESPONSE_FLUSH))
            producer_flushed(&p);
        s->state == SESSION_DISABLED;
    }));
}

START_TEST(a_trigger_starts)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 60000 "
                  "triggers { name: 'go' stop_delay_ms: 50000 } }");
    struct session *s = world_session(&w, 0);
    ck_assert_int_eq(s->state, SESSION_CONFIGURED);
    trigger("another");
    ck_assert_int_eq(s->state, SESSION_CONFIGURED);
    ck_assert(session_awaits_trigger(s));
    ck_assert_uint_eq(producer_count(&p, GET_ASYNC_COMMAND_RESPONSE_START_DATA_SOURCE), 0);
    trigger("go");
    ck_assert_int_ne(s->state, SESSION_CONFIGURED);
    ck_assert(!session_awaits_trigger(s));
    producer_last(&p, GET_ASYNC_COMMAND_RESPONSE_START_DATA_SOURCE);
    trigger("go"); /* one start is enough */
    ck_assert_uint_eq(s->triggers.n, 1);
    ck_assert_uint_gt(uv_timer_get_due_in(&s->timers[TIMER_DURATION]), 1000);
    loop_hurry(&w.loop);
    let_it_end();
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_TRIGGER), 1);
    pb_writer_free(&trace);
    end();
}
END_TEST

/* The first one stops; those after it, while the stop's delay runs, are noted. */
START_TEST(a_trigger_stops)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 "
                  "triggers { name: 'a' stop_delay_ms: 50000 } triggers { name: 'b' stop_delay_ms: 1 } }");
    struct session *s = world_session(&w, 0);
    ck_assert_int_eq(s->state, SESSION_STARTED);
    producer_write(&p, "before", 0);
    trigger("a");
    producer_write(&p, "after", 0);
    trigger("a");
    trigger("b"); /* its delay is shorter, and does not count */
    ck_assert_int_eq(s->state, SESSION_STARTED);
    ck_assert_uint_eq(s->triggers.n, 3);
    uint64_t due = uv_timer_get_due_in(&s->timers[TIMER_DURATION]);
    ck_assert_uint_gt(due, 1000);
    ck_assert_uint_le(due, 50000);
    ck_assert(!uv_is_active((uv_handle_t *)&s->timers[TIMER_TRIGGER]));
    loop_hurry(&w.loop);
    let_it_end();
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_TRIGGER), 3);
    ck_assert(has_text(&trace, "before"));
    ck_assert(has_text(&trace, "after"));
    pb_writer_free(&trace);
    end();
}
END_TEST

/* A session that waits for a trigger gives nothing out, also when the time for it is over. */
START_TEST(without_a_trigger_there_is_nothing)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 triggers { name: 'a' } }");
    struct session *s = world_session(&w, 0);
    producer_write(&p, "secret", 0);
    ck_assert_uint_le(uv_timer_get_due_in(&s->timers[TIMER_TRIGGER]), 60000);
    loop_hurry(&w.loop);
    RUN_UNTIL(&w.loop, s->state == SESSION_DISABLED);
    struct pb_writer trace = consumer_read(&c);
    ck_assert_uint_eq(trace.n, 0);
    pb_writer_free(&trace);
    end();
}
END_TEST

/* A trigger whose producer must have a name. */
static const struct {
    const char *regex;
    unsigned hits;
} producers[] = {{"", 1}, {"app", 1}, {"a.*", 1}, {"ap", 0}, {"pp", 0}, {"other", 0}, {"(", 0}};

START_TEST(only_some_producers_may)
{
    begin();
    for (size_t i = 0; i < sizeof producers / sizeof *producers; i++) {
        char config[512];
        snprintf(config, sizeof config,
                 SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 "
                        "triggers { name: 'a' stop_delay_ms: 50000 producer_name_regex: '%s' } }",
                 producers[i].regex);
        enable(config);
        trigger("a");
        ck_assert_msg(world_session(&w, 0)->triggers.n == producers[i].hits, "'%s'", producers[i].regex);
        ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    }
    end();
}
END_TEST

START_TEST(so_many_a_day)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 "
                  "triggers { name: 'a' stop_delay_ms: 50000 max_per_24_h: 2 } "
                  "triggers { name: 'b' stop_delay_ms: 50000 max_per_24_h: 2 } }");
    struct session *s = world_session(&w, 0);
    for (int i = 0; i < 5; i++)
        trigger("a");
    ck_assert_uint_eq(s->triggers.n, 2);
    trigger("b"); /* counts by itself */
    ck_assert_uint_eq(s->triggers.n, 3);
    ck_assert_uint_eq(w.service->trigger_history.n, 3);
    w.service->trigger_history.p[0].ts_ns -= 24ull * 3600 * 1000000000 + 1; /* of yesterday */
    trigger("a");
    ck_assert_uint_eq(s->triggers.n, 4);
    ck_assert_uint_eq(w.service->trigger_history.n, 3);
    trigger("a");
    ck_assert_uint_eq(s->triggers.n, 4);
    end();
}
END_TEST

START_TEST(some_are_skipped)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 "
                  "triggers { name: 'never' stop_delay_ms: 50000 skip_probability: 1 } "
                  "triggers { name: 'half' stop_delay_ms: 50000 skip_probability: 0.5 } }");
    struct session *s = world_session(&w, 0);
    for (int i = 0; i < 20; i++)
        trigger("never");
    ck_assert_uint_eq(s->triggers.n, 0);
    for (int i = 0; i < 100; i++)
        trigger("half");
    ck_assert_uint_ge(s->triggers.n, 5); /* 1 in 10^22 tests fails */
    ck_assert_uint_le(s->triggers.n, 95);
    end();
}
END_TEST

/* A producer may send without end. */
START_TEST(only_so_many_are_kept)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 60000 "
                  "triggers { name: 'a' stop_delay_ms: 50000 } }");
    for (int i = 0; i < 1100; i++)
        service_trigger(w.service, "a", "app", 5);
    ck_assert_uint_eq(world_session(&w, 0)->triggers.n, 1000);
    end();
}
END_TEST

/* CLONE_SNAPSHOT: the consumer hears who did it and makes the clone; the session goes on until its time is over. */
START_TEST(a_trigger_asks_for_a_clone)
{
    begin();
    enable(SOURCE "trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 60000 "
                  "triggers { name: 'a' stop_delay_ms: 77 } }");
    struct session *s = world_session(&w, 0);
    trigger("a"); /* nobody listens yet */
    consumer_listen(&c, 4);
    ck_assert_uint_eq(c.observed.n, 0);
    trigger("a");
    world_settle(&w);
    ck_assert_uint_eq(c.observed.n, 1);
    Mrd__ObserveEventsResponse *r = mrd__observe_events_response__unpack(NULL, c.observed.last.n, c.observed.last.p);
    ck_assert(r && r->events && r->events->clone_trigger_hit);
    const Mrd__ObservableEvents__CloneTriggerHit *hit = r->events->clone_trigger_hit;
    ck_assert_int_eq(hit->tracing_session_id, (int64_t)s->id);
    ck_assert_str_eq(hit->trigger_name, "a");
    ck_assert_str_eq(hit->producer_name, "app");
    ck_assert_uint_eq(hit->producer_uid, getuid());
    ck_assert_uint_eq(hit->trigger_delay_ms, 77);
    mrd__observe_events_response__free_unpacked(r, NULL);
    ck_assert_int_eq(s->state, SESSION_STARTED);
    loop_hurry(&w.loop); /* trigger_timeout_ms */
    let_it_end();
    ck_assert_uint_eq(producer_count(&p, GET_ASYNC_COMMAND_RESPONSE_FLUSH), 1);
    end();
}
END_TEST

/* use_clone_snapshot_if_available turns a stop into a clone. */
START_TEST(a_stop_may_become_a_clone)
{
    static const struct {
        const char *config;
        enum trigger_mode mode;
    } modes[] = {
        {"", TRIGGER_NONE},
        {"trigger_config { }", TRIGGER_NONE},
        {"trigger_config { trigger_mode: START_TRACING }", TRIGGER_START},
        {"trigger_config { trigger_mode: STOP_TRACING }", TRIGGER_STOP},
        {"trigger_config { trigger_mode: STOP_TRACING use_clone_snapshot_if_available: true }", TRIGGER_CLONE},
        {"trigger_config { trigger_mode: CLONE_SNAPSHOT }", TRIGGER_CLONE},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        Mrd__TraceConfig *config = config_of(modes[i].config);
        ck_assert_int_eq(config_trigger_mode(config), modes[i].mode);
        mrd__trace_config__free_unpacked(config, NULL);
    }
}
END_TEST

Suite *trigger_suite(void);

Suite *trigger_suite(void)
{
    Suite *s = suite_create("trigger");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_trigger_starts);
    tcase_add_test(t, a_trigger_stops);
    tcase_add_test(t, without_a_trigger_there_is_nothing);
    tcase_add_test(t, only_some_producers_may);
    tcase_add_test(t, so_many_a_day);
    tcase_add_test(t, some_are_skipped);
    tcase_add_test(t, only_so_many_are_kept);
    tcase_add_test(t, a_trigger_asks_for_a_clone);
    tcase_add_test(t, a_stop_may_become_a_clone);
    suite_add_tcase(s, t);
    return s;
}
