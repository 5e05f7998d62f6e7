/* Tests the import of ftrace bundles: tokenizing, rows with args on demand, sched, damaged and lying input. */
#include "unit/ftrace_trace.h"

static struct ftrace_trace t;

static void setup(void)
{
    memset(&t, 0, sizeof t);
}

static void teardown(void)
{
    trace_free(&t);
}

START_TEST(rows_of_handlers_name_the_events_they_are_for)
{
    size_t n = 0;
    for (size_t i = 0; ftrace_families[i]; i++)
        for (const struct ftrace_handler *h = ftrace_families[i]; h->fn; h++, n++) {
            const struct ftrace_event_desc *d = ftrace_event_by_id(h->id);
            ck_assert_msg(d && strcmp(d->name, h->name) == 0, "%u is not %s", h->id, h->name);
        }
    ck_assert_uint_gt(n, 150);
}
END_TEST

START_TEST(a_switch_is_a_row_a_slice_and_two_states)
{
    trace_bundle(&t, 2);
    trace_switch(&t, 100, "a", 1, 1, "b", 2);
    trace_switch(&t, 150, "b", 2, 0x100, "a", 1);
    trace_switch(&t, 160, "x", 9, 0, "b", 2); /* not what ran: no end for the open slice */
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 3);
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)),
                     "prev_comm=a prev_pid=1 prev_prio=120 prev_state=1 next_comm=b next_pid=2 next_prio=110");
    ck_assert_uint_eq(ROWS(&t, sched_slice), 3);
    ck_assert_int_eq(CELL(&t, sched_slice, dur, 0), 50);
    ck_assert_int_eq(CELL(&t, sched_slice, ucpu, 0), 2);
    ck_assert_int_eq(CELL(&t, sched_slice, priority, 0), 110);
    ck_assert_int_eq(CELL(&t, sched_slice, dur, 1), -1);
    ck_assert_int_eq(TRACE_STAT(&t, mismatched_sched_switch_tids), 1);
    ck_assert_uint_eq(ROWS(&t, thread_state), 6);
    ck_assert_str_eq(TEXT_CELL(&t, thread_state, state, 0), "S");
    ck_assert_str_eq(TEXT_CELL(&t, thread_state, state, 1), "Running");
    ck_assert_int_eq(CELL(&t, thread_state, dur, 0), 50);
    ck_assert_int_eq(CELL(&t, thread_state, ucpu, 1), 2);
}
END_TEST

static void put_packed(struct pb_writer *w, uint32_t id, const uint64_t *v, size_t n)
{
    size_t mark = pb_begin(w, id);
    for (size_t i = 0; i < n; i++)
        pb_put_raw_varint(w, v[i]);
    pb_end(w, mark);
}

START_TEST(compact_events_know_what_ran_before)
{
    trace_bundle(&t, 0);
    size_t c = pb_begin(&t.w, 4);
    pb_put_str(&t.w, 5, "a");
    pb_put_str(&t.w, 5, "b");
    put_packed(&t.w, 1, (uint64_t[]){1000, 10, 20}, 3); /* 1000, 1010, 1030 */
    put_packed(&t.w, 2, (uint64_t[]){1, 2, 0}, 3);
    put_packed(&t.w, 3, (uint64_t[]){11, 12, 11}, 3);
    put_packed(&t.w, 4, (uint64_t[]){120, (uint64_t)-1, 100}, 3);
    put_packed(&t.w, 6, (uint64_t[]){0, 1, 0}, 3);
    put_packed(&t.w, 7, (uint64_t[]){990, 25}, 2); /* 990 before any switch, 1015 */
    put_packed(&t.w, 8, (uint64_t[]){11, 11}, 2);
    put_packed(&t.w, 9, (uint64_t[]){3, 4}, 2);
    put_packed(&t.w, 10, (uint64_t[]){120, 121}, 2);
    put_packed(&t.w, 11, (uint64_t[]){0, 0}, 2);
    put_packed(&t.w, 12, (uint64_t[]){0, 0x10}, 2);
    pb_end(&t.w, c);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_int_eq(TRACE_STAT(&t, compact_sched_switch_skipped), 1);
    ck_assert_int_eq(TRACE_STAT(&t, compact_sched_waking_skipped), 1);
    ck_assert_int_eq(TRACE_STAT(&t, compact_sched_has_parse_errors), 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 3);
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)),
                     "prev_comm=a prev_pid=11 prev_prio=120 prev_state=2 next_comm=b next_pid=12 next_prio=-1");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 1)), "comm=a pid=11 prio=121 target_cpu=4");
    ck_assert_int_eq(CELL(&t, ftrace_event, common_flags, 1), 0x10);
    ck_assert_uint_eq(ROWS(&t, sched_slice), 2);
    ck_assert_int_eq(CELL(&t, sched_slice, dur, 0), 20);
    ck_assert_int_eq(CELL(&t, sched_slice, priority, 0), -1);
    /* a: D, then woken in a softirq by b, who runs. */
    ck_assert_str_eq(TEXT_CELL(&t, thread_state, state, 0), "D");
    ck_assert_str_eq(TEXT_CELL(&t, thread_state, state, 2), "R");
    ck_assert_int_eq(CELL(&t, thread_state, irq_context, 2), 1);
    ck_assert_int_eq(CELL(&t, thread_state, waker_id, 2), 1);
}
END_TEST

/* Columns of different lengths, indices beyond the table: counted, what is whole before is kept. */
START_TEST(damaged_compact_events_are_counted)
{
    trace_bundle(&t, 0);
    size_t c = pb_begin(&t.w, 4);
    pb_put_str(&t.w, 5, "a");
    put_packed(&t.w, 1, (uint64_t[]){1000, 10, 10}, 3);
    put_packed(&t.w, 2, (uint64_t[]){1, 2}, 2);
    put_packed(&t.w, 3, (uint64_t[]){11, 12, 13}, 3);
    put_packed(&t.w, 4, (uint64_t[]){1, 1, 1}, 3);
    put_packed(&t.w, 6, (uint64_t[]){0, 0, 0}, 3);
    put_packed(&t.w, 7, (uint64_t[]){1005, 1}, 2);
    put_packed(&t.w, 8, (uint64_t[]){11, 11}, 2);
    put_packed(&t.w, 9, (uint64_t[]){3, 4}, 2);
    put_packed(&t.w, 10, (uint64_t[]){120, 121}, 2);
    put_packed(&t.w, 11, (uint64_t[]){0, 7}, 2);
    pb_end(&t.w, c);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_int_eq(TRACE_STAT(&t, compact_sched_has_parse_errors), 2);
    ck_assert_uint_eq(ROWS(&t, sched_slice), 1);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 2);
}
END_TEST

START_TEST(what_a_bundle_lacks_is_counted)
{
    struct pb_writer p = {0};
    trace_packet(&t); /* no cpu */
    t.bundle = pb_begin(&t.w, PACKET_BUNDLE);
    trace_print(&t, 5, 1, "x");
    trace_bundle_end(&t);
    trace_bundle(&t, 1);
    pb_put_varint(&t.w, 3, 1); /* lost events */
    size_t e = pb_begin(&t.w, 2);
    pb_put_varint(&t.w, FTRACE_EVENT_PID, 7); /* no timestamp */
    pb_put_bytes(&t.w, FTRACE_EVENT_PRINT, "", 0);
    pb_end(&t.w, e);
    e = pb_begin(&t.w, 2);
    pb_put_varint(&t.w, FTRACE_EVENT_TIMESTAMP, 7);
    pb_put_varint(&t.w, FTRACE_EVENT_PID, 7); /* no event */
    pb_end(&t.w, e);
    e = pb_begin(&t.w, 2); /* fields in another order */
    pb_put_varint(&t.w, FTRACE_EVENT_PID, 7);
    pb_put_varint(&t.w, FTRACE_EVENT_COMMON_FLAGS, 3);
    pb_put_str(&p, 2, "hello");
    pb_put_bytes(&t.w, FTRACE_EVENT_PRINT, p.p, p.n);
    pb_put_varint(&t.w, FTRACE_EVENT_TIMESTAMP, 8);
    pb_end(&t.w, e);
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_int_eq(TRACE_STAT(&t, ftrace_bundle_tokenizer_errors), 2);
    ck_assert_int_eq(TRACE_STAT(&t, ftrace_missing_event_id), 1);
    ck_assert_int_eq(*stats_get_idx(&t.st.stats, 0, STAT_ftrace_cpu_has_data_loss, 1), 1);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 1);
    ck_assert_int_eq(CELL(&t, ftrace_event, ts, 0), 8);
    ck_assert_int_eq(CELL(&t, ftrace_event, common_flags, 0), 3);
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)), "buf=hello");
}
END_TEST

START_TEST(an_impossible_cpu_fails_the_import)
{
    trace_bundle(&t, 1024);
    trace_print(&t, 5, 1, "x");
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, -MRD_EFORMAT);
    ck_assert_ptr_nonnull(strstr(t.err.text, "1024"));
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 0);
}
END_TEST

/* Fields that are not what the table says are left out of the args. */
START_TEST(args_of_lying_payloads)
{
    struct pb_writer p = {0};
    trace_bundle(&t, 0);
    pb_put_str(&p, 1, "not a number"); /* irq */
    pb_put_varint(&p, 2, 5);           /* name, a string */
    pb_put_varint(&p, 3, 77);
    pb_put_varint(&p, 63, 1); /* no such field */
    trace_event(&t, 1, 1, 36, &p);
    pb_put_varint(&p, 1, 4);
    pb_put_varint(&p, 2, 1);
    pb_put_varint(&p, 2, 2); /* twice: the last counts */
    trace_event(&t, 2, 1, 37, &p);
    pb_put_varint(&p, 1, 3);
    pb_put_raw(&p, "\x12\x7fzz", 4); /* a string longer than the payload */
    trace_event(&t, 3, 1, 36, &p);
    trace_event(&t, 4, 1, 24, &p);  /* empty */
    trace_event(&t, 5, 1, 999, &p); /* no such event */
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 4);
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)), "handler=77");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 1)), "irq=4 ret=2");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 2)), "irq=3");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 3)), "");
}
END_TEST

static void put_descriptor(uint32_t id, const char *name, uint32_t number, uint32_t type)
{
    size_t g = pb_begin(&t.w, 11);
    pb_put_varint(&t.w, 1, id);
    size_t d = pb_begin(&t.w, 2);
    pb_put_str(&t.w, 1, name);
    size_t f = pb_begin(&t.w, 2);
    pb_put_str(&t.w, 1, "value");
    pb_put_varint(&t.w, 3, number);
    pb_put_varint(&t.w, 5, type);
    pb_end(&t.w, f);
    pb_end(&t.w, d);
    pb_end(&t.w, g);
}

START_TEST(lying_descriptors_are_counted)
{
    struct pb_writer p = {0};
    enum { TYPE_INT64 = 3, TYPE_STRING = 9, DYNAMIC = FTRACE_EVENT_FIRST_DYNAMIC };
    trace_bundle(&t, 0);
    put_descriptor(DYNAMIC, "good", 1, TYPE_INT64);
    put_descriptor(DYNAMIC, "again", 1, TYPE_STRING);    /* the first one stays */
    put_descriptor(DYNAMIC + 1, "high", 32, TYPE_INT64); /* field number too high */
    put_descriptor(DYNAMIC + 2, "odd", 1, 19);           /* no such type */
    put_descriptor(DYNAMIC + 3, "huge", UINT32_MAX, UINT32_MAX);
    put_descriptor(DYNAMIC + 4, "text", 1, TYPE_STRING);
    pb_put_i64(&p, 1, -5);
    pb_put_varint(&p, 2, 6); /* not described */
    trace_event(&t, 1, 1, DYNAMIC, &p);
    pb_put_varint(&p, 1, 6); /* a string by its descriptor */
    trace_event(&t, 2, 1, DYNAMIC + 4, &p);
    trace_event(&t, 3, 1, DYNAMIC + 1, &p); /* no descriptor */
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_int_eq(TRACE_STAT(&t, ftrace_generic_descriptor_errors), 3 + 1 + 1);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 2);
    ck_assert_str_eq(TEXT_CELL(&t, ftrace_event, name, 0), "good");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)), "value=-5");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 1)), "value=");
}
END_TEST

/* Events from before all cpus have data become rows only; sched_switch not even that. */
START_TEST(what_not_all_cpus_cover_has_no_effect)
{
    trace_bundle(&t, 0);
    pb_put_varint(&t.w, 10, 100); /* previous_bundle_end_timestamp */
    trace_print(&t, 150, 5, "C|5|early|1");
    trace_switch(&t, 160, "a", 1, 1, "b", 2);
    trace_print(&t, 250, 5, "C|5|late|1");
    trace_bundle_end(&t);
    trace_bundle(&t, 1);
    pb_put_varint(&t.w, 10, 200);
    trace_bundle_end(&t);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 2);
    ck_assert_uint_eq(ROWS(&t, counter), 1);
    ck_assert_uint_eq(ROWS(&t, sched_slice), 0);
}
END_TEST

START_TEST(kernel_symbols_are_found_when_a_query_asks)
{
    struct pb_writer p = {0};
    trace_packet(&t);
    pb_put_varint(&t.w, PACKET_FLAGS, 1);
    size_t in = pb_begin(&t.w, PACKET_INTERNED);
    size_t s = pb_begin(&t.w, 26);
    pb_put_varint(&t.w, 1, 4);
    pb_put_str(&t.w, 2, "do_work");
    pb_end(&t.w, s);
    pb_end(&t.w, in);
    t.bundle = pb_begin(&t.w, PACKET_BUNDLE);
    pb_put_varint(&t.w, 1, 0);
    for (uint64_t function = 4; function < 6; function++) {
        pb_put_varint(&p, 1, 1);
        pb_put_varint(&p, 2, function);
        trace_event(&t, function, 1, 58, &p); /* workqueue_execute_start */
    }
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 0)), "work=1 function=do_work");
    ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 1)), "work=1 function=5");
    ck_assert_str_eq(TEXT_CELL(&t, slice, name, 0), "do_work");
    ck_assert_str_eq(TEXT_CELL(&t, slice, name, 1), "0x5");
}
END_TEST

/* Equal args share a set until they turn out to be rare; all can be decoded either way. */
START_TEST(sharing_of_args_stops_when_it_does_not_pay)
{
    enum { DIFFERENT = 5000, EQUAL = 1000 };
    struct pb_writer p = {0};
    trace_bundle(&t, 0);
    for (uint64_t i = 0; i < DIFFERENT + EQUAL; i++) {
        pb_put_varint(&p, 1, i < DIFFERENT ? i : 3); /* softirq_raise */
        trace_event(&t, i + 1, 1, 26, &p);
        pb_put_varint(&p, 1, 9); /* softirq_exit: always the same */
        trace_event(&t, i + 1, 1, 25, &p);
    }
    trace_bundle_end(&t);
    pb_writer_free(&p);
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 2 * (DIFFERENT + EQUAL));
    ck_assert_uint_ge(args_count(&t.st.args), DIFFERENT + EQUAL); /* the equal ones came after the end of sharing */
    ck_assert_uint_le(args_count(&t.st.args), DIFFERENT + EQUAL + 8);
    for (uint32_t i = 0; i < DIFFERENT + EQUAL; i += 97) {
        char want[32];
        snprintf(want, sizeof want, "vec=%u", i < DIFFERENT ? i : 3);
        ck_assert_str_eq(trace_args(&t, CELL(&t, ftrace_event, arg_set_id, 2 * i)), want);
    }
}
END_TEST

START_TEST(no_ftrace_raw_leaves_the_table_empty)
{
    trace_bundle(&t, 0);
    trace_switch(&t, 100, "a", 1, 1, "b", 2);
    trace_print(&t, 150, 2, "C|5|c|1");
    trace_bundle_end(&t);
    trace_import_with(&t, &(struct import_options){.no_ftrace_raw = true});
    ck_assert_int_eq(t.result, 0);
    ck_assert_uint_eq(ROWS(&t, ftrace_event), 0);
    ck_assert_uint_eq(ROWS(&t, sched_slice), 1);
    ck_assert_uint_eq(ROWS(&t, counter), 1);
}
END_TEST

/* FtraceStats: deltas need a start; seconds beyond what fits do not overflow; unreadable pages fail the import. */
START_TEST(buffer_stats_and_their_deltas)
{
    for (int end = 0; end < 2; end++) {
        trace_packet(&t);
        size_t s = pb_begin(&t.w, PACKET_STATS);
        pb_put_varint(&t.w, 1, end ? 2 : 1);
        size_t c = pb_begin(&t.w, 2);
        pb_put_varint(&t.w, 1, 3);
        pb_put_varint(&t.w, 2, end ? 50 : 20);
        pb_put_double(&t.w, 6, 1e300);
        pb_put_double(&t.w, 7, 1.5);
        pb_end(&t.w, c);
        pb_put_str(&t.w, 6, "sched/nothing");
        pb_end(&t.w, s);
        pb_end(&t.w, t.packet);
    }
    trace_import(&t);
    ck_assert_int_eq(t.result, 0);
    ck_assert_int_eq(*stats_get_idx(&t.st.stats, 0, STAT_ftrace_cpu_entries_delta, 3), 30);
    ck_assert_int_eq(*stats_get_idx(&t.st.stats, 0, STAT_ftrace_cpu_oldest_event_ts_end, 3), INT64_MAX);
    ck_assert_int_eq(*stats_get_idx(&t.st.stats, 0, STAT_ftrace_cpu_now_ts_begin, 3), 1500000000);
    ck_assert_int_eq(TRACE_STAT(&t, ftrace_setup_errors), 1);
    ck_assert_str_eq(trace_args(&t, CELL(&t, trace_import_logs, arg_set_id, 0)),
                     "message=Ftrace event unknown: sched/nothing");
}
END_TEST

START_TEST(pages_that_the_recorder_could_not_read)
{
    trace_packet(&t);
    size_t s = pb_begin(&t.w, PACKET_STATS);
    pb_put_varint(&t.w, 1, 2);
    pb_put_varint(&t.w, 9, 12); /* zero data length: harmless */
    pb_put_varint(&t.w, 9, 15);
    pb_end(&t.w, s);
    pb_end(&t.w, t.packet);
    trace_import_with(&t, &(struct import_options){.ignore_ftrace_parse_errors = _i == 1});
    ck_assert_int_eq(t.result, _i == 1 ? 0 : -MRD_EFORMAT);
    if (_i == 0)
        ck_assert_int_eq(TRACE_STAT(&t, ftrace_abi_errors_skipped_zero_data_length), 1);
}
END_TEST

Suite *ftrace_import_suite(void);
Suite *ftrace_import_suite(void)
{
    Suite *s = suite_create("ftrace_import");
    TCase *c = tcase_create("bundles");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, rows_of_handlers_name_the_events_they_are_for);
    tcase_add_test(c, a_switch_is_a_row_a_slice_and_two_states);
    tcase_add_test(c, compact_events_know_what_ran_before);
    tcase_add_test(c, damaged_compact_events_are_counted);
    tcase_add_test(c, what_a_bundle_lacks_is_counted);
    tcase_add_test(c, an_impossible_cpu_fails_the_import);
    tcase_add_test(c, args_of_lying_payloads);
    tcase_add_test(c, lying_descriptors_are_counted);
    tcase_add_test(c, what_not_all_cpus_cover_has_no_effect);
    tcase_add_test(c, kernel_symbols_are_found_when_a_query_asks);
    tcase_add_test(c, sharing_of_args_stops_when_it_does_not_pay);
    tcase_add_test(c, no_ftrace_raw_leaves_the_table_empty);
    tcase_add_test(c, buffer_stats_and_their_deltas);
    tcase_add_loop_test(c, pages_that_the_recorder_could_not_read, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
