/* Tests which trace configs the service refuses, and what it says about them. */
#include "service_fixture.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER  "buffers { size_kb: 4 } "
#define GUARDED "enable_extra_guardrails: true "
#define TRIGGER "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 1000 triggers { name: 'a' } } "

/* A config, and the part of the reason that must be there; NULL: it is fine. */
static const struct {
    const char *config, *why;
} configs[] = {
    {BUFFER, NULL},
    {"", NULL},
    /* duration */
    {BUFFER "duration_ms: 604800000", NULL},
    {BUFFER "duration_ms: 604800001", "duration_ms 604800001 is too long: at most 604800000"},
    {BUFFER GUARDED "duration_ms: 86400001", "at most 86400000"},
    /* buffers */
    {"buffers { size_kb: 0 }", "buffer 0: size_kb 0 is out of range"},
    {BUFFER "buffers { size_kb: 4194304 }", "buffer 1: size_kb 4194304 is out of range"},
    {"buffers { size_kb: 4194303 }", NULL},
    {"buffers { size_kb: 4 machine_size_kb: 4194303 }", "buffer 0: machine_size_kb 4194303 is out of range"},
    {"buffers { size_kb: 4 name: 'x' } buffers { size_kb: 4 name: 'x' }", "buffer name \"x\" is used twice"},
    {"buffers { size_kb: 4 name: '' } buffers { size_kb: 4 name: '' }", NULL},
    {GUARDED "buffers { size_kb: 131072 }", NULL},
    {GUARDED "buffers { size_kb: 131072 } buffers { size_kb: 4 }", "131076 KiB in all; at most 131072 KiB"},
    {GUARDED "buffers { size_kb: 4 machine_size_kb: 131072 }", "131076 KiB"},
    {GUARDED "guardrail_overrides { max_tracing_buffer_size_kb: 200 } buffers { size_kb: 201 }", "at most 200"},
    /* data sources */
    {BUFFER "data_sources { config { name: 's' target_buffer: 0 } }", NULL},
    {BUFFER "data_sources { config { name: 's' target_buffer: 1 } }", "data source \"s\": there is no target buffer 1"},
    {"data_sources { config { name: 's' } }", "there is no target buffer 0"},
    {"buffers { size_kb: 4 } buffers { size_kb: 4 name: 'two' } "
     "data_sources { config { name: 's' target_buffer_name: 'two' } }",
     NULL},
    {BUFFER "data_sources { config { name: 's' target_buffer_name: 'two' } }", "\"two\""},
    {"buffers { size_kb: 4 } buffers { size_kb: 4 name: 'two' } buffers { size_kb: 4 } "
     "data_sources { config { name: 's' target_buffer: 2 target_buffer_name: 'two' } }",
     "there is no target buffer 2 \"two\""},
    /* triggers */
    {BUFFER TRIGGER, NULL},
    {BUFFER TRIGGER "duration_ms: 5", "duration_ms and triggers exclude each other: use trigger_timeout_ms"},
    {BUFFER "trigger_config { trigger_mode: START_TRACING }", "trigger_timeout_ms must be between 1 and 604800000"},
    {BUFFER "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 604800001 }", "trigger_timeout_ms"},
    {BUFFER GUARDED "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 86400001 }",
     "between 1 and 86400000"},
    {BUFFER "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 1 triggers { name: 'a' } "
            "triggers { name: 'b' } triggers { name: 'a' } }",
     "trigger name \"a\" is used twice"},
    {BUFFER "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 1 "
            "use_clone_snapshot_if_available: true }",
     "use_clone_snapshot_if_available needs STOP_TRACING"},
    {BUFFER "write_into_file: true trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 1 }",
     "write_into_file and STOP_TRACING or CLONE_SNAPSHOT exclude each other"},
    {BUFFER "write_into_file: true trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1 }",
     "exclude each other"},
    /* files */
    {BUFFER "write_into_file: true", "write_into_file needs a file descriptor or output_path"},
    {BUFFER "write_into_file: true output_path: '/nowhere/x'", NULL}, /* found out when it is opened */
    /* the rest */
    {BUFFER "bugreport_filename: 'trace-1_b.pftrace'", NULL},
    {BUFFER "bugreport_filename: '../trace'", "bugreport_filename may hold letters, digits"},
    {BUFFER "trace_filter { bytecode: 'x' }", "trace_filter is not supported by this service"},
};

START_TEST(configs_are_checked)
{
    struct world w;
    struct consumer c;
    world_open(&w);
    consumer_join(&c, &w);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct error err = {0};
        Mrd__TraceConfig *config = config_of(configs[i].config);
        int rc = session_check(w.service, c.inside, config, -1, &err);
        if (configs[i].why)
            ck_assert_msg(rc < 0 && strstr(err.text, configs[i].why), "%s: %d %s", configs[i].config, rc, err.text);
        else
            ck_assert_msg(rc == 0, "%s: %s", configs[i].config, err.text);
        w.service->named_starts.n = 0;
        mrd__trace_config__free_unpacked(config, NULL);
    }
    consumer_leave(&c);
    world_close(&w);
}
END_TEST

START_TEST(so_many_buffers)
{
    struct world w;
    struct consumer c;
    char text[129 * 32] = "";
    world_open(&w);
    consumer_join(&c, &w);
    for (int n = 128; n <= 129; n++) {
        struct error err = {0};
        *text = 0;
        for (int i = 0; i < n; i++)
            strcat(text, BUFFER);
        Mrd__TraceConfig *config = config_of(text);
        ck_assert_int_eq(session_check(w.service, c.inside, config, -1, &err) < 0, n > 128);
        ck_assert_str_eq(err.text, n > 128 ? "too many buffers: 129, at most 128" : "");
        mrd__trace_config__free_unpacked(config, NULL);
    }
    consumer_leave(&c);
    world_close(&w);
}
END_TEST

/* The service itself refuses as it is told: the consumer gets the reason, and no session is there. */
START_TEST(the_consumer_hears_why)
{
    struct world w;
    struct consumer c;
    world_open(&w);
    consumer_join(&c, &w);
    ck_assert_str_eq(consumer_enable(&c, "buffers { size_kb: 0 }"),
                     "buffer 0: size_kb 0 is out of range; use 1 to 4194303");
    ck_assert_uint_eq(w.service->sessions.n, 0);
    ck_assert_str_eq(consumer_enable(&c, BUFFER "write_into_file: true output_path: '/nowhere/x'"),
                     "cannot create output_path /nowhere/x: No such file or directory");
    ck_assert_str_eq(consumer_enable(&c, BUFFER), "");
    ck_assert_uint_eq(w.service->sessions.n, 1);
    ck_assert_str_eq(consumer_enable(&c, BUFFER), "this consumer has a session already");
    ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    ck_assert_str_eq(consumer_enable(&c, BUFFER), "");
    consumer_leave(&c);
    world_close(&w);
}
END_TEST

/* A file is made with the service's rights: only its own user (and root) may say where. */
START_TEST(only_its_own_user_names_a_file)
{
    struct world w;
    struct consumer c;
    struct error err = {0};
    world_open(&w);
    consumer_join(&c, &w);
    Mrd__TraceConfig *config = config_of(BUFFER "write_into_file: true output_path: '/tmp/x'");
    ck_assert_int_lt(session_check(w.service, c.inside, config, 0, &err), 0);
    ck_assert_str_eq(err.text, "write_into_file: give a file descriptor or output_path, not both");
    ck_assert_int_eq(session_check(w.service, c.inside, config, -1, &err), 0);
    consumer_is(&c, getuid() + 1000); /* somebody else */
    ck_assert_int_eq(session_check(w.service, c.inside, config, -1, &err), -MRD_EDENIED);
    ck_assert(strstr(err.text, "only root and the service's own user may name a file") != NULL);
    consumer_is(&c, 0);
    ck_assert_int_eq(session_check(w.service, c.inside, config, -1, &err), 0);
    mrd__trace_config__free_unpacked(config, NULL);
    consumer_leave(&c);
    world_close(&w);
}
END_TEST

/* ---- against other sessions ---- */

/* What the first session asked for, what the second asks for, and the reason; NULL: both are fine. */
static const struct {
    const char *first, *second, *why;
} pairs[] = {
    {"unique_session_name: 'n'", "unique_session_name: 'n'", "a session with unique_session_name \"n\" exists"},
    {"unique_session_name: 'n'", "unique_session_name: 'm'", NULL},
    {"unique_session_name: ''", "unique_session_name: ''", NULL},
    {"exclusive_prio: 5", "", "records exclusively with priority 5"},
    {"exclusive_prio: 5", "exclusive_prio: 5", "records exclusively with priority 5"},
    {"exclusive_prio: 5", "exclusive_prio: 6", NULL},
    {"session_semaphores { name: 's' max_other_session_count: 0 }",
     "session_semaphores { name: 's' max_other_session_count: 3 }", "semaphore \"s\" is held by 1 other sessions"},
    {"session_semaphores { name: 's' max_other_session_count: 3 }",
     "session_semaphores { name: 's' max_other_session_count: 0 }", "semaphore \"s\" is held by 1 other sessions"},
    {"session_semaphores { name: 's' max_other_session_count: 1 }",
     "session_semaphores { name: 's' max_other_session_count: 1 }", NULL},
    {"session_semaphores { name: 's' max_other_session_count: 0 }",
     "session_semaphores { name: 't' max_other_session_count: 0 }", NULL},
    {GUARDED "unique_session_name: 'a'", GUARDED "unique_session_name: 'b'", NULL},
    {GUARDED, GUARDED, "a session named \"\" began less than 300 s ago"},
    {GUARDED, "", NULL},
};

START_TEST(sessions_side_by_side)
{
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct consumer a, b;
        char config[512];
        consumer_join(&a, &w);
        consumer_join(&b, &w);
        snprintf(config, sizeof config, BUFFER "%s", pairs[i].first);
        ck_assert_str_eq(consumer_enable(&a, config), "");
        snprintf(config, sizeof config, BUFFER "%s", pairs[i].second);
        const char *why = consumer_enable(&b, config);
        ck_assert_msg(pairs[i].why ? strstr(why, pairs[i].why) != NULL : !*why, "row %zu: %s", i, why);
        consumer_leave(&a);
        consumer_leave(&b);
        w.service->named_starts.n = 0;
    }
    world_close(&w);
}
END_TEST

/* One that records alone ends the others. */
START_TEST(an_exclusive_session_ends_others)
{
    struct world w;
    struct consumer a, b;
    world_open(&w);
    consumer_join(&a, &w);
    consumer_join(&b, &w);
    ck_assert_str_eq(consumer_enable(&a, BUFFER "exclusive_prio: 1"), "");
    ck_assert_int_eq(world_session(&w, 0)->state, SESSION_STARTED);
    ck_assert_str_eq(consumer_enable(&b, BUFFER "exclusive_prio: 2"), "");
    ck_assert_int_eq(world_session(&w, 0)->state, SESSION_DISABLED);
    ck_assert_int_eq(world_session(&w, 1)->state, SESSION_STARTED);
    ck_assert(a.enabled.n == 1 && reply_number(&a.enabled, ENABLE_TRACING_RESPONSE_DISABLED));
    consumer_leave(&a);
    consumer_leave(&b);
    world_close(&w);
}
END_TEST

START_TEST(a_name_may_start_again_after_a_while)
{
    struct world w;
    struct consumer c;
    world_open(&w);
    consumer_join(&c, &w);
    ck_assert_str_eq(consumer_enable(&c, BUFFER GUARDED "unique_session_name: 'n'"), "");
    ck_assert(consumer_ok(&c, CONSUMER_FREE_BUFFERS, ""));
    ck_assert_str_eq(consumer_enable(&c, BUFFER GUARDED "unique_session_name: 'n'"),
                     "guardrail: a session named \"n\" began less than 300 s ago");
    ck_assert_uint_eq(w.service->named_starts.n, 1);
    w.service->named_starts.p[0].at_ns = clock_boot_ns() - 301 * 1000000000ull;
    ck_assert_str_eq(consumer_enable(&c, BUFFER GUARDED "unique_session_name: 'n'"), "");
    consumer_leave(&c);
    world_close(&w);
}
END_TEST

START_TEST(so_many_sessions_of_a_user)
{
    struct world w;
    struct consumer c[6];
    world_open(&w);
    for (int i = 0; i < 6; i++) {
        consumer_join(&c[i], &w);
        const char *why = consumer_enable(&c[i], BUFFER);
        char wanted[64] = "";
        if (i == 5)
            snprintf(wanted, sizeof wanted, "too many sessions of uid %u: at most 5", (unsigned)getuid());
        ck_assert_str_eq(why, wanted);
    }
    consumer_leave(&c[0]); /* and its session goes with it */
    ck_assert_str_eq(consumer_enable(&c[5], BUFFER), "");
    for (int i = 1; i < 6; i++)
        consumer_leave(&c[i]);
    world_close(&w);
}
END_TEST

START_TEST(so_many_sessions_of_all_users)
{
    struct world w;
    struct consumer c[16];
    world_open(&w);
    for (int i = 0; i < 16; i++) {
        consumer_join(&c[i], &w);
        ck_assert_str_eq(consumer_enable(&c[i], BUFFER), i == 15 ? "too many sessions: at most 15" : "");
        if (i < 15)
            world_session(&w, (size_t)i)->consumer_uid = 100000 + (uint32_t)i;
    }
    for (int i = 0; i < 16; i++)
        consumer_leave(&c[i]);
    world_close(&w);
}
END_TEST

Suite *session_check_suite(void);

Suite *session_check_suite(void)
{
    Suite *s = suite_create("session_check");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, configs_are_checked);
    tcase_add_test(t, so_many_buffers);
    tcase_add_test(t, the_consumer_hears_why);
    tcase_add_test(t, only_its_own_user_names_a_file);
    tcase_add_test(t, sessions_side_by_side);
    tcase_add_test(t, an_exclusive_session_ends_others);
    tcase_add_test(t, a_name_may_start_again_after_a_while);
    tcase_add_test(t, so_many_sessions_of_a_user);
    tcase_add_test(t, so_many_sessions_of_all_users);
    suite_add_tcase(s, t);
    return s;
}
