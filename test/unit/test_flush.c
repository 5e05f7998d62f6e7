/* Tests flushes: who is asked, who is waited for, and what the consumer hears. */
#include "service_fixture.h"

#include <string.h>

static struct world w;
static struct consumer c;
static struct producer a, b;

static void begin(const char *config)
{
    world_open(&w);
    consumer_join(&c, &w);
    producer_join(&a, &w, "a", "1'src'");
    producer_join(&b, &w, "b", "1'src'");
    ck_assert_str_eq(consumer_enable(&c, config), "");
}

static void end(void)
{
    if (!a.gone)
        producer_leave(&a);
    producer_leave(&b);
    consumer_leave(&c);
    world_close(&w);
}

#define SOURCE "buffers { size_kb: 64 } data_sources { config { name: 'src' } } "

static struct replies flushed;

static void on_flushed(void *ctx, bool success, bool has_more, struct slice reply)
{
    (void)ctx, (void)has_more, (void)reply;
    flushed.n++;
    flushed.success = success;
}

static void ask(uint64_t timeout_ms, uint64_t flags)
{
    struct pb_writer args = {0};
    pb_put_varint(&args, FLUSH_REQUEST_TIMEOUT_MS, timeout_ms);
    if (flags)
        pb_put_varint(&args, FLUSH_REQUEST_FLAGS, flags);
    ck_assert(ipc_client_invoke(c.client, CONSUMER_FLUSH, pb_written(&args), -1, on_flushed, NULL));
    pb_writer_free(&args);
    world_settle(&w);
}

static unsigned asked(const struct producer *p)
{
    return producer_count(p, GET_ASYNC_COMMAND_RESPONSE_FLUSH);
}

static void flushes_are(uint64_t requested, uint64_t succeeded, uint64_t failed)
{
    struct session *s = world_session(&w, 0);
    ck_assert_uint_eq(s->flushes_requested, requested);
    ck_assert_uint_eq(s->flushes_succeeded, succeeded);
    ck_assert_uint_eq(s->flushes_failed, failed);
}

START_TEST(all_are_waited_for)
{
    begin(SOURCE);
    ask(60000, 0);
    ck_assert_uint_eq(asked(&a), 1);
    ck_assert_uint_eq(asked(&b), 1);
    ck_assert_uint_eq(producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS),
                      FLUSH_REASON_EXPLICIT);
    uint64_t instance = producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_START_DATA_SOURCE,
                                        GET_ASYNC_COMMAND_RESPONSE_SETUP_DATA_SOURCE_NEW_INSTANCE_ID);
    ck_assert_uint_eq(
        producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_DATA_SOURCE_IDS),
        instance);
    producer_flushed(&a);
    world_settle(&w);
    ck_assert_uint_eq(flushed.n, 0);
    producer_flushed(&a); /* twice is not for the other */
    world_settle(&w);
    ck_assert_uint_eq(flushed.n, 0);
    flushes_are(1, 0, 0);
    producer_flushed(&b);
    RUN_UNTIL(&w.loop, flushed.n);
    ck_assert(flushed.success);
    flushes_are(1, 1, 0);
    end();
}
END_TEST

START_TEST(not_for_ever)
{
    begin(SOURCE);
    ask(60000, 0);
    producer_flushed(&a);
    ck_assert_uint_eq(world_session(&w, 0)->flushes->waiting.n, 1);
    loop_hurry(&w.loop);
    RUN_UNTIL(&w.loop, flushed.n);
    ck_assert(!flushed.success);
    flushes_are(1, 0, 1);
    producer_flushed(&b); /* too late, and harmless */
    ck_assert_uint_eq(flushed.n, 1);
    end();
}
END_TEST

/* The request's timeout, the config's, or five seconds. */
START_TEST(how_long)
{
    static const struct {
        const char *config;
        uint64_t asked_ms, least_ms, most_ms;
    } rows[] = {
        {SOURCE, 40000, 20000, 40000}, {SOURCE, 0, 2500, 5000}, {SOURCE "flush_timeout_ms: 90000", 0, 45000, 90000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(rows[i].config);
        ask(rows[i].asked_ms, 0);
        uint64_t due = uv_timer_get_due_in(&world_session(&w, 0)->flushes->timer);
        ck_assert_uint_gt(due, rows[i].least_ms);
        ck_assert_uint_le(due, rows[i].most_ms);
        end();
    }
}
END_TEST

/* A producer that goes is not waited for any more. */
START_TEST(who_is_gone_is_not_waited_for)
{
    begin(SOURCE);
    ask(60000, 0);
    producer_flushed(&b);
    producer_leave(&a);
    a.gone = true;
    RUN_UNTIL(&w.loop, flushed.n);
    ck_assert(flushed.success);
    flushes_are(1, 1, 0);
    end();
}
END_TEST

/* Data sources that have nothing to flush, and producers without any, are not asked. */
START_TEST(who_has_nothing_is_not_asked)
{
    struct producer quiet, other;
    begin(SOURCE);
    ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    producer_join(&quiet, &w, "quiet", "1'quiet' 9:1");
    producer_join(&other, &w, "other", "1'other'");
    ck_assert_str_eq(consumer_enable(&c, "buffers { size_kb: 64 } data_sources { config { name: 'quiet' } }"), "");
    ask(60000, 0);
    RUN_UNTIL(&w.loop, flushed.n);
    ck_assert(flushed.success);
    ck_assert_uint_eq(asked(&a) + asked(&b) + asked(&quiet) + asked(&other), 0);
    producer_leave(&quiet);
    producer_leave(&other);
    end();
}
END_TEST

/* An answer to the last of several flushes answers those before it, too. */
START_TEST(one_answer_for_all_before)
{
    begin(SOURCE);
    ask(60000, 0);
    ask(60000, FLUSH_REASON_PERIODIC | FLUSH_BY_PERFETTO);
    ck_assert_uint_eq(asked(&a), 2);
    ck_assert_uint_eq(producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS),
                      FLUSH_REASON_PERIODIC | FLUSH_BY_PERFETTO);
    producer_flushed(&a);
    producer_flushed(&b);
    RUN_UNTIL(&w.loop, flushed.n == 2);
    flushes_are(2, 2, 0);
    end();
}
END_TEST

/* What comes with the answer is in the trace; a flush that failed in the end is told there by name. */
START_TEST(the_last_flush_of_a_session)
{
    begin(SOURCE "duration_ms: 50000");
    struct session *s = world_session(&w, 0);
    loop_hurry(&w.loop); /* the duration */
    RUN_UNTIL(&w.loop, asked(&b));
    ck_assert_uint_eq(producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS),
                      FLUSH_REASON_STOP | FLUSH_BY_TRACED);
    producer_write(&a, "last words",
                   producer_number(&a, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_REQUEST_ID));
    ck_assert_int_eq(s->state, SESSION_STARTED); /* b has not answered */
    loop_hurry(&w.loop);
    RUN_UNTIL(&w.loop, s->state == SESSION_DISABLED);
    ck_assert_int_eq(s->final_flush_outcome, 2);
    unsigned slow = 0;
    for (size_t i = 0; i < s->events.n; i++) {
        if (s->events.p[i].field != LIFECYCLE_LAST_FLUSH_SLOW)
            continue;
        slow++;
        struct pb_field f, name;
        struct slice body = slice_of(s->events.p[i].body, s->events.p[i].body_len);
        ck_assert(pb_find(body, TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE, &f));
        ck_assert(pb_find(pb_bytes(&f), TRACING_SERVICE_EVENT_DATA_SOURCES_DATA_SOURCE_PRODUCER_NAME, &name));
        ck_assert(slice_eq_str(pb_bytes(&name), "b"));
    }
    ck_assert_uint_eq(slow, 1);
    struct pb_writer trace = consumer_read(&c);
    ck_assert(has_text(&trace, "last words"));
    pb_writer_free(&trace);
    end();
}
END_TEST

START_TEST(a_flush_ends_with_its_session)
{
    begin(SOURCE);
    ask(60000, 0);
    ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    RUN_UNTIL(&w.loop, flushed.n);
    ck_assert(!flushed.success);
    ask(60000, 0); /* there is no session now */
    RUN_UNTIL(&w.loop, flushed.n == 2);
    ck_assert(!flushed.success);
    end();
}
END_TEST

/* flush_period_ms and clear_period_ms, again and again. */
START_TEST(periods)
{
    struct producer clears;
    begin(SOURCE);
    ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    producer_join(&clears, &w, "clears", "1'src' 4:1");
    ck_assert_str_eq(consumer_enable(&c, SOURCE "flush_period_ms: 50000 "
                                                "incremental_state_config { clear_period_ms: 70000 }"),
                     "");
    ck_assert_uint_eq(asked(&clears), 0);
    for (unsigned i = 1; i <= 3; i++) {
        struct session *s = world_session(&w, 0);
        ck_assert_uint_le(uv_timer_get_due_in(&s->timers[TIMER_FLUSH]), 50000);
        ck_assert_uint_le(uv_timer_get_due_in(&s->timers[TIMER_CLEAR]), 70000);
        loop_hurry(&w.loop);
        RUN_UNTIL(&w.loop, asked(&clears) == i);
        RUN_UNTIL(&w.loop, producer_count(&clears, GET_ASYNC_COMMAND_RESPONSE_CLEAR_INCREMENTAL_STATE) == i);
        ck_assert_uint_eq(
            producer_number(&clears, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS),
            FLUSH_REASON_PERIODIC | FLUSH_BY_TRACED);
    }
    ck_assert_uint_eq(producer_count(&a, GET_ASYNC_COMMAND_RESPONSE_CLEAR_INCREMENTAL_STATE), 0);
    producer_leave(&clears);
    end();
}
END_TEST

Suite *flush_suite(void);

Suite *flush_suite(void)
{
    Suite *s = suite_create("flush");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, all_are_waited_for);
    tcase_add_test(t, not_for_ever);
    tcase_add_test(t, how_long);
    tcase_add_test(t, who_is_gone_is_not_waited_for);
    tcase_add_test(t, who_has_nothing_is_not_asked);
    tcase_add_test(t, one_answer_for_all_before);
    tcase_add_test(t, the_last_flush_of_a_session);
    tcase_add_test(t, a_flush_ends_with_its_session);
    tcase_add_test(t, periods);
    suite_add_tcase(s, t);
    return s;
}
