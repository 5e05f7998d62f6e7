/* Tests the table of typed ftrace events. */
#include "wire/ftrace_events.h"

#include <check.h>
#include <string.h>

START_TEST(every_row_is_found_by_id_and_by_name)
{
    const struct ftrace_event_desc *last = NULL;
    ck_assert_uint_eq(ftrace_event_count(), 596);
    for (size_t i = 0; i < ftrace_event_count(); i++) {
        const struct ftrace_event_desc *e = ftrace_event_at(i);
        ck_assert_ptr_eq(ftrace_event_by_id(e->id), e);
        if (e->group)
            ck_assert_ptr_eq(ftrace_event_by_name(e->group, e->tracefs_name), e);
        if (last && last->group) { /* the binary search needs the rows sorted */
            int c = strcmp(last->group, e->group);
            ck_assert_msg(c < 0 || (c == 0 && strcmp(last->tracefs_name, e->tracefs_name) < 0), "%s/%s is out of order",
                          e->group, e->tracefs_name);
        }
        for (uint32_t n = 0; n < e->field_slots; n++) {
            const struct ftrace_field_desc *f = ftrace_field_by_id(e, n);
            if (!f)
                continue;
            ck_assert_uint_eq(f->number, n);
            ck_assert_ptr_eq(ftrace_field_by_name(e, f->name), f);
        }
        last = e;
    }
}
END_TEST

START_TEST(rows_hold_what_the_format_says)
{
    const struct ftrace_event_desc *e = ftrace_event_by_name("sched", "sched_switch");
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->id, FTRACE_EVENT_SCHED_SWITCH);
    ck_assert_str_eq(ftrace_field_by_id(e, 4)->name, "prev_state");
    ck_assert_uint_eq(ftrace_field_by_id(e, 4)->type, FTRACE_FIELD_INT64);

    e = ftrace_event_by_id(FTRACE_EVENT_SYS_ENTER);
    ck_assert_str_eq(e->tracefs_name, "sys_enter");
    ck_assert_uint_eq(ftrace_field_by_name(e, "args")->repeated, 1);

    e = ftrace_event_by_name("hypervisor", "hyp_exit"); /* the name in traces differs from the kernel's */
    ck_assert_str_eq(e->name, "hypervisor_hyp_exit");
    ck_assert_uint_eq(e->field_slots, 1);
}
END_TEST

START_TEST(what_is_not_there_is_null)
{
    const struct ftrace_event_desc *e = ftrace_event_by_id(FTRACE_EVENT_GENERIC);
    ck_assert_ptr_nonnull(e);
    ck_assert_ptr_null(e->group);
    ck_assert_ptr_null(ftrace_event_by_id(0));
    ck_assert_ptr_null(ftrace_event_by_id(FTRACE_EVENT_TIMESTAMP));
    ck_assert_ptr_null(ftrace_event_by_id(UINT32_MAX));
    ck_assert_ptr_null(ftrace_event_at(596));
    ck_assert_ptr_null(ftrace_event_by_name("sched", "no_such_event"));
    ck_assert_ptr_null(ftrace_event_by_name("", ""));
    ck_assert_ptr_null(ftrace_field_by_id(e, 0));
    ck_assert_ptr_null(ftrace_field_by_id(e, 1000));
    ck_assert_ptr_null(ftrace_field_by_name(e, "nothing"));
}
END_TEST

Suite *ftrace_events_suite(void);
Suite *ftrace_events_suite(void)
{
    Suite *s = suite_create("ftrace_events");
    TCase *t = tcase_create("table");
    tcase_add_test(t, every_row_is_found_by_id_and_by_name);
    tcase_add_test(t, rows_hold_what_the_format_says);
    tcase_add_test(t, what_is_not_there_is_null);
    suite_add_tcase(s, t);
    return s;
}
