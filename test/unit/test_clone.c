/* Tests clones: which session, by whom, and that both go on by themselves. */
#include "service_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SOURCE "buffers { size_kb: 64 } data_sources { config { name: 'src' } } "

static struct world w;
static struct consumer owner, other;
static struct producer p;

static void begin(const char *config)
{
    world_open(&w);
    consumer_join(&owner, &w);
    consumer_join(&other, &w);
    producer_join(&p, &w, "app", "1'src'");
    ck_assert_str_eq(consumer_enable(&owner, config), "");
}

static void end(void)
{
    producer_leave(&p);
    consumer_leave(&owner);
    consumer_leave(&other);
    world_close(&w);
}

static struct replies cloned;

static void on_cloned(void *ctx, bool success, bool has_more, struct slice reply)
{
    (void)ctx;
    cloned.n++;
    cloned.success = success;
    cloned.has_more = has_more;
    pb_writer_clear(&cloned.last);
    pb_put_raw(&cloned.last, reply.p, reply.len);
}

/* Asks for a clone of the session with this id; `fd`: a file for it, or -1. */
static void ask(struct consumer *c, uint64_t id, int fd)
{
    struct pb_writer args = {0};
    cloned.n = 0;
    pb_put_varint(&args, CLONE_SESSION_REQUEST_SESSION_ID, id);
    ck_assert(ipc_client_invoke(c->client, CONSUMER_CLONE_SESSION, pb_written(&args), fd, on_cloned, NULL));
    pb_writer_free(&args);
    world_settle(&w);
}

static unsigned asked(void)
{
    return producer_count(&p, GET_ASYNC_COMMAND_RESPONSE_FLUSH);
}

/* The whole of it: the producer answers the flush that a clone begins with. */
static void clone_it(struct consumer *c, uint64_t id, int fd)
{
    unsigned before = asked();
    ask(c, id, fd);
    RUN_UNTIL(&w.loop, asked() > before);
    ck_assert_uint_eq(cloned.n, 0); /* not before what it holds has come */
    ck_assert_uint_eq(producer_number(&p, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_FLAGS),
                      FLUSH_REASON_CLONE | FLUSH_BY_TRACED);
    producer_flushed(&p);
    RUN_UNTIL(&w.loop, cloned.n);
    ck_assert(cloned.success);
}

static void is_refused(const char *why)
{
    RUN_UNTIL(&w.loop, cloned.n);
    ck_assert_uint_eq(reply_number(&cloned, CLONE_SESSION_RESPONSE_SUCCESS), 0);
    ck_assert_str_eq(reply_text(&cloned, CLONE_SESSION_RESPONSE_ERROR), why);
}

START_TEST(both_go_on)
{
    begin(SOURCE);
    struct session *s = world_session(&w, 0);
    producer_write(&p, "one", 0);
    clone_it(&other, s->id, -1);
    ck_assert_uint_eq(reply_number(&cloned, CLONE_SESSION_RESPONSE_SUCCESS), 1);
    struct session *clone = world_session(&w, 1);
    ck_assert_int_eq(clone->state, SESSION_CLONED);
    ck_assert_int_eq(s->state, SESSION_STARTED);
    ck_assert_uint_eq(reply_number(&cloned, CLONE_SESSION_RESPONSE_UUID_LSB), clone->uuid_lsb);
    ck_assert_uint_ne(clone->uuid_lsb, s->uuid_lsb); /* a trace of its own */
    producer_write(&p, "two", 0);
    struct pb_writer trace = consumer_read(&other);
    ck_assert(has_text(&trace, "one"));
    ck_assert(!has_text(&trace, "two"));
    ck_assert_uint_ge(count_packets(&trace, TRACE_PACKET_TRACE_CONFIG), 1);
    pb_writer_free(&trace);
    trace = consumer_read(&owner);
    ck_assert(has_text(&trace, "one"));
    ck_assert(has_text(&trace, "two"));
    pb_writer_free(&trace);
    ck_assert(consumer_ok(&other, CONSUMER_FREE_BUFFERS, ""));
    ck_assert_uint_eq(w.service->sessions.n, 1);
    end();
}
END_TEST

/* Buffers of the config that give all they have to the clone, or that begin empty for it. */
START_TEST(buffers_that_are_handed_over)
{
    begin("buffers { size_kb: 64 transfer_on_clone: true } data_sources { config { name: 'src' } }");
    producer_write(&p, "one", 0);
    clone_it(&other, world_session(&w, 0)->id, -1);
    producer_write(&p, "two", 0);
    struct pb_writer trace = consumer_read(&other);
    ck_assert(has_text(&trace, "one"));
    pb_writer_free(&trace);
    trace = consumer_read(&owner);
    ck_assert(!has_text(&trace, "one"));
    ck_assert(has_text(&trace, "two"));
    pb_writer_free(&trace);
    end();
}
END_TEST

START_TEST(buffers_that_begin_empty)
{
    begin("buffers { size_kb: 64 clear_before_clone: true } data_sources { config { name: 'src' } }");
    producer_write(&p, "old", 0);
    ask(&other, world_session(&w, 0)->id, -1);
    RUN_UNTIL(&w.loop, asked());
    producer_write(&p, "with the flush",
                   producer_number(&p, GET_ASYNC_COMMAND_RESPONSE_FLUSH, GET_ASYNC_COMMAND_RESPONSE_FLUSH_REQUEST_ID));
    RUN_UNTIL(&w.loop, cloned.n);
    struct pb_writer trace = consumer_read(&other);
    ck_assert(!has_text(&trace, "old"));
    ck_assert(has_text(&trace, "with the flush"));
    pb_writer_free(&trace);
    end();
}
END_TEST

/* What does not come in time is not in the clone: it is made all the same. */
START_TEST(a_producer_that_does_not_answer)
{
    begin(SOURCE);
    producer_write(&p, "one", 0);
    ask(&other, world_session(&w, 0)->id, -1);
    ck_assert_uint_eq(cloned.n, 0);
    loop_hurry(&w.loop);
    RUN_UNTIL(&w.loop, cloned.n);
    ck_assert_uint_eq(reply_number(&cloned, CLONE_SESSION_RESPONSE_SUCCESS), 1);
    struct pb_writer trace = consumer_read(&other);
    ck_assert(has_text(&trace, "one"));
    pb_writer_free(&trace);
    end();
}
END_TEST

START_TEST(what_is_refused)
{
    begin(SOURCE "unique_session_name: 'mine'");
    struct session *s = world_session(&w, 0);
    ask(&other, s->id + 100, -1);
    is_refused("there is no such session");
    ask(&owner, s->id, -1);
    is_refused("this consumer has a session already");
    consumer_is(&other, getuid() + 1000);
    ask(&other, s->id, -1);
    is_refused("the session belongs to another user");
    consumer_is(&other, getuid());
    clone_it(&other, s->id, -1);
    struct consumer third;
    consumer_join(&third, &w);
    ask(&third, world_session(&w, 1)->id, -1); /* a clone is not cloned */
    is_refused("there is no such session");
    ck_assert_uint_eq(w.service->sessions.n, 2);
    consumer_leave(&third);
    end();
}
END_TEST

static uint64_t by_args(const char *args)
{
    struct replies a = {0};
    consumer_leave(&other); /* with the clone that it has */
    consumer_join(&other, &w);
    a = consumer_call(&other, CONSUMER_CLONE_SESSION, args);
    uint64_t ok = reply_number(&a, CLONE_SESSION_RESPONSE_SUCCESS);
    replies_free(&a);
    return ok;
}

/* By name; or the best for a bug report: the one with the highest score. Without data sources no flush is waited for.
 */
START_TEST(which_session)
{
    struct consumer more[2];
    begin("buffers { size_kb: 4 } unique_session_name: 'x' bugreport_score: 5");
    ck_assert_uint_eq(by_args("4'x'"), 1);
    ck_assert_uint_eq(by_args("4'y'"), 0);
    consumer_join(&more[0], &w);
    consumer_join(&more[1], &w);
    ck_assert_str_eq(consumer_enable(&more[0], "buffers { size_kb: 4 } bugreport_score: 9"), "");
    ck_assert_str_eq(consumer_enable(&more[1], "buffers { size_kb: 4 } bugreport_score: 7"), "");
    uint64_t best = more[0].inside->session->uuid_msb;
    ck_assert_uint_eq(by_args("3:1"), 1);
    ck_assert_uint_eq(other.inside->session->uuid_msb, best);
    ck_assert_uint_eq(by_args("1:18446744073709551615"), 1);
    ck_assert_uint_eq(other.inside->session->uuid_msb, best);
    consumer_leave(&more[0]);
    consumer_leave(&more[1]);
    end();
}
END_TEST

/* A clone that a trigger asked for has it in its trace. */
START_TEST(the_trigger_is_in_the_trace)
{
    begin("buffers { size_kb: 4 } unique_session_name: 'x'");
    ck_assert_uint_eq(by_args("4'x' 5'boom' 6'app' 7:5 8:1234 9:6"), 1);
    struct session *clone = other.inside->session;
    ck_assert_ptr_nonnull(clone->clone_trigger);
    ck_assert_str_eq(clone->clone_trigger->name, "boom");
    ck_assert_str_eq(clone->clone_trigger->producer_name, "app");
    ck_assert_uint_eq(clone->clone_trigger->uid, 5);
    ck_assert_uint_eq(clone->clone_trigger->ts, 1234);
    ck_assert_uint_eq(clone->clone_trigger->stop_delay_ms, 6);
    struct pb_writer trace = consumer_read(&other);
    ck_assert_uint_eq(count_packets(&trace, TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER), 1);
    pb_writer_free(&trace);
    end();
}
END_TEST

/* A clone into a file: the answer comes when all is in it. */
START_TEST(a_clone_into_a_file)
{
    char path[] = "/tmp/meridian-clone-XXXXXX";
    struct stat st;
    int fd = mkstemp(path);
    begin(SOURCE);
    producer_write(&p, "in the file", 0);
    clone_it(&other, world_session(&w, 0)->id, fd);
    ck_assert_uint_eq(reply_number(&cloned, CLONE_SESSION_RESPONSE_WAS_WRITE_INTO_FILE), 1);
    struct pb_writer trace = {0};
    ck_assert_int_eq(fstat(fd, &st), 0);
    uint8_t bytes[65536];
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    ck_assert_int_eq(n, st.st_size);
    pb_put_raw(&trace, bytes, (size_t)n);
    ck_assert(has_text(&trace, "in the file"));
    pb_writer_free(&trace);
    close(fd);
    unlink(path);
    end();
}
END_TEST

/* Who asked is gone, or the session is, before the flush is answered. */
START_TEST(gone_meanwhile)
{
    begin(SOURCE);
    if (_i == 0) {
        ask(&other, world_session(&w, 0)->id, -1);
        consumer_leave(&other);
        producer_flushed(&p);
        world_settle(&w);
        ck_assert_uint_eq(cloned.n, 0);
        ck_assert_uint_eq(w.service->sessions.n, 1);
        consumer_join(&other, &w);
    } else {
        ask(&other, world_session(&w, 0)->id, -1);
        ck_assert(consumer_ok(&owner, CONSUMER_FREE_BUFFERS, ""));
        is_refused("the session has ended");
        ck_assert_uint_eq(w.service->sessions.n, 0);
    }
    end();
}
END_TEST

Suite *clone_suite(void);

Suite *clone_suite(void)
{
    Suite *s = suite_create("clone");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, both_go_on);
    tcase_add_test(t, buffers_that_are_handed_over);
    tcase_add_test(t, buffers_that_begin_empty);
    tcase_add_test(t, a_producer_that_does_not_answer);
    tcase_add_test(t, what_is_refused);
    tcase_add_test(t, which_session);
    tcase_add_test(t, the_trigger_is_in_the_trace);
    tcase_add_test(t, a_clone_into_a_file);
    tcase_add_loop_test(t, gone_meanwhile, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
