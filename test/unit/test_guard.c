/* Tests who may come in from other machines, and how much each may take. */
#include "capture/ipc/guard.h"

#include <check.h>
#include <string.h>
#include <uv.h>

static uv_loop_t loop;
static struct ipc_guard *guard;
static struct ipc_guarded_conn conns[8];
static bool paused[8];

static void on_pause(struct ipc_guarded_conn *c, bool on)
{
    paused[c - conns] = on;
}

static void begin(const struct ipc_guard_options *o)
{
    memset(conns, 0, sizeof conns);
    memset(paused, 0, sizeof paused);
    for (int i = 0; i < 8; i++)
        conns[i].pause = on_pause;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    guard = ipc_guard_new(&loop, o);
    ck_assert_ptr_nonnull(guard);
}

static void end(void)
{
    for (int i = 0; i < 8; i++)
        ipc_guard_leave(&conns[i]);
    ipc_guard_close(guard);
    while (uv_run(&loop, UV_RUN_DEFAULT))
        ;
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static void admits(int i, uint32_t id, const char *name, const char *certified)
{
    const char *refused = ipc_guard_admit(guard, &conns[i], id, name, certified);
    ck_assert_msg(!refused, "%s: %s", name, refused);
}

static void refuses(int i, uint32_t id, const char *name, const char *certified, const char *why)
{
    const char *refused = ipc_guard_admit(guard, &conns[i], id, name, certified);
    ck_assert_msg(refused && strstr(refused, why), "%s: \"%s\" does not say \"%s\"", name, refused ? refused : "let in",
                  why);
}

START_TEST(only_names_of_the_list_come_in)
{
    begin(&(struct ipc_guard_options){.allow = "web1,web2"});
    ck_assert(ipc_guard_needs_name(guard));
    admits(0, 1, "web1", NULL);
    admits(1, 2, "web2", NULL);
    refuses(2, 3, "web", NULL, "--relay-allow");
    refuses(2, 3, "web11", NULL, "--relay-allow");
    refuses(2, 3, "", NULL, "--relay-allow");
    refuses(2, 3, "web1,web2", NULL, "--relay-allow");
    end();
}
END_TEST

START_TEST(a_name_must_be_that_of_the_certificate)
{
    begin(&(struct ipc_guard_options){0});
    ck_assert(!ipc_guard_needs_name(guard));
    admits(0, 1, "web1", "web1");
    refuses(1, 2, "web1", "web2", "certificate");
    refuses(1, 1, "web2", "web2", "id"); /* web1 has it */
    ck_assert_ptr_null(ipc_guard_admit(NULL, &conns[2], 1, "web1", "web1"));
    ck_assert_ptr_nonnull(ipc_guard_admit(NULL, &conns[2], 1, "web1", "web2"));
    end();
}
END_TEST

START_TEST(a_machine_has_so_many_connections)
{
    begin(&(struct ipc_guard_options){.max_connections = 2});
    admits(0, 1, "web1", NULL);
    admits(1, 1, "web1", NULL);
    refuses(2, 1, "web1", NULL, "--relay-max-connections");
    admits(2, 2, "web2", NULL); /* another has its own */
    ipc_guard_leave(&conns[0]);
    admits(3, 1, "web1", NULL);
    refuses(4, 1, "web1", NULL, "--relay-max-connections");
    end();
}
END_TEST

START_TEST(a_machine_that_sends_too_much_is_paused_for_a_while)
{
    begin(&(struct ipc_guard_options){.max_bytes_per_s = 1000});
    admits(0, 1, "web1", NULL);
    admits(1, 1, "web1", NULL);
    admits(2, 2, "web2", NULL);
    ipc_guard_count(&conns[0], 10);
    ck_assert(!paused[0]);
    ipc_guard_count(&conns[0], 200);
    ck_assert(paused[0]);
    ck_assert(paused[1]); /* all of its connections */
    ck_assert(!paused[2]);
    for (int i = 0; i < 1000 && paused[0]; i++)
        uv_run(&loop, UV_RUN_ONCE);
    ck_assert(!paused[0]);
    ck_assert(!paused[1]);
    end();
}
END_TEST

Suite *guard_suite(void);

Suite *guard_suite(void)
{
    Suite *s = suite_create("guard");
    TCase *t = tcase_create("core");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, only_names_of_the_list_come_in);
    tcase_add_test(t, a_name_must_be_that_of_the_certificate);
    tcase_add_test(t, a_machine_has_so_many_connections);
    tcase_add_test(t, a_machine_that_sends_too_much_is_paused_for_a_while);
    suite_add_tcase(s, t);
    return s;
}
