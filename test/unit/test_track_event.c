/* Tests track events from bytes to tables: tracks, counters, states, times. What events carry is in
 * test_track_event_args.c, what is left when packets are lost in test_track_event_loss.c. */
#include "track_event_fixture.h"

/* --- tracks ------------------------------------------------------------------------------------------------------- */

static void as_process(void)
{
    size_t p = in(3);
    pb_put_varint(&trace, 1, 100);
    pb_put_str(&trace, 6, "app");
    out(p);
}

static void as_thread(void)
{
    size_t t = in(4);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    pb_put_str(&trace, 5, "worker");
    out(t);
}

static void as_counter(void)
{
    size_t c = in(8);
    pb_put_varint(&trace, 4, 10); /* unit_multiplier */
    pb_put_varint(&trace, 5, 1);  /* is_incremental */
    pb_put_str(&trace, 6, "requests");
    out(c);
}

static void as_state(void)
{
    out(in(18));
}

static void merge_by_key(void)
{
    pb_put_varint(&trace, 15, 3);
    pb_put_str(&trace, 16, "key");
}

static const char *track_type(int64_t track)
{
    return text(ROW_GET(&st, track, type, (uint32_t)track));
}

START_TEST(a_thread_track_is_the_threads_own)
{
    describe(1, 0, NULL, as_process);
    describe(2, 1, NULL, as_thread);
    simple_event(10, BEGIN, 2, "outer");
    simple_event(20, BEGIN, 2, "inner");
    simple_event(30, END, 2, NULL);
    simple_event(40, END, 2, NULL);
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_int_eq(SLICE(dur, 0), 30);
    ck_assert_int_eq(SLICE(dur, 1), 10);
    ck_assert_int_eq(SLICE(parent_id, 1), 0);
    ck_assert_str_eq(track_type(SLICE(track_id, 0)), "thread_execution");
    uint32_t utid = (uint32_t)ROW_GET(&st, track, utid, (uint32_t)SLICE(track_id, 0));
    ck_assert_str_eq(text(ROW_GET(&st, thread, name, utid)), "worker");
    ck_assert_int_eq(ROW_GET(&st, thread, tid, utid), 101);
    ck_assert_str_eq(text(ROW_GET(&st, process, name, (uint32_t)ROW_GET(&st, thread, upid, utid))), "app");
}
END_TEST

START_TEST(siblings_merge_by_key_and_overlap_on_two_rows)
{
    describe(1, 0, NULL, as_process);
    describe(10, 1, "a", merge_by_key);
    describe(11, 1, "b", merge_by_key);
    describe(12, 1, "c", NULL);
    simple_event(10, BEGIN, 10, "x");
    simple_event(11, BEGIN, 11, "y");
    simple_event(12, END, 10, NULL);
    simple_event(13, END, 11, NULL);
    simple_event(14, INSTANT, 11, "z");
    simple_event(15, INSTANT, 12, "w");
    load();
    ck_assert_uint_eq(ROWS(slice), 4);
    ck_assert_int_ne(SLICE(track_id, 0), SLICE(track_id, 1));
    ck_assert_int_eq(SLICE(dur, 0), 2);
    ck_assert_int_eq(SLICE(dur, 1), 2);
    ck_assert_int_eq(SLICE(track_id, 2), SLICE(track_id, 1)); /* the uuid keeps its row while it is free */
    ck_assert_str_eq(track_type(SLICE(track_id, 0)), "process_merged_track_event");
    ck_assert_int_ne(SLICE(track_id, 3), SLICE(track_id, 0));
}
END_TEST

START_TEST(an_unknown_uuid_is_a_track_of_its_own)
{
    simple_event(10, INSTANT, 77, "first");
    simple_event(11, INSTANT, 77, "second");
    simple_event(12, INSTANT, 0, "third");
    load();
    ck_assert_int_eq(SLICE(track_id, 0), SLICE(track_id, 1));
    ck_assert_str_eq(text(ROW_GET(&st, track, name, (uint32_t)SLICE(track_id, 0))), "first");
    ck_assert_str_eq(text(ROW_GET(&st, track, name, (uint32_t)SLICE(track_id, 2))), "Default Track");
}
END_TEST

START_TEST(hierarchies_without_end_are_counted)
{
    describe(1, 2, "a", NULL);
    describe(2, 1, "b", NULL);
    for (uint64_t i = 0; i < 150; i++)
        describe(1000 + i, 1001 + i, "deep", NULL);
    simple_event(10, INSTANT, 1, "x");
    simple_event(11, INSTANT, 1000, "y");
    load();
    ck_assert_uint_eq(ROWS(slice), 0);
    ck_assert_int_eq(STAT(track_event_track_hierarchy_loop), 1);
    ck_assert_int_eq(STAT(track_event_track_hierarchy_too_deep), 1);
}
END_TEST

START_TEST(broken_descriptors_are_counted)
{
    packet_begin(0, 1, 0);
    size_t d = in(60);
    pb_put_str(&trace, 2, "no uuid");
    out(d);
    packet_end();
    packet_begin(0, 1, 0);
    d = in(60);
    pb_put_varint(&trace, 1, 5);
    size_t t = in(4);
    pb_put_varint(&trace, 1, 100); /* no tid */
    out(t);
    out(d);
    packet_end();
    packet_begin(0, 1, 0);
    d = in(60);
    pb_put_varint(&trace, 1, 6);
    out(in(3)); /* no pid */
    out(d);
    packet_end();
    describe(7, 0, "counter", as_counter);
    describe(7, 0, "slices", NULL);
    describe(0, 7, NULL, NULL);
    packet_begin(0, 1, 0); /* uuid 0 with a parent, said explicitly */
    d = in(60);
    pb_put_varint(&trace, 1, 0);
    pb_put_varint(&trace, 5, 7);
    out(d);
    packet_end();
    load();
    ck_assert_int_eq(STAT(track_descriptor_missing_uuid), 1);
    ck_assert_int_eq(STAT(track_descriptor_thread_missing_pid_tid), 1);
    ck_assert_int_eq(STAT(track_descriptor_process_missing_pid), 1);
    ck_assert_int_eq(STAT(track_descriptor_conflicting_reservation), 1);
    ck_assert_int_ge(STAT(track_descriptor_default_track_with_parent), 1);
}
END_TEST

/* --- counters and states ------------------------------------------------------------------------------------------ */

START_TEST(counters_add_up)
{
    describe(1, 0, NULL, as_process);
    describe(5, 1, "served", as_counter);
    for (int i = 1; i <= 3; i++) {
        event(10 * i, COUNTER, 5, NULL);
        pb_put_varint(&trace, 30, (uint64_t)i);
        event_end();
    }
    event(50, COUNTER, 99, NULL); /* nobody described it */
    pb_put_varint(&trace, 30, 1);
    event_end();
    simple_event(60, COUNTER, 5, NULL); /* no value */
    event(70, COUNTER, 0, NULL);        /* no track */
    pb_put_varint(&trace, 30, 1);
    event_end();
    load();
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert_double_eq(column_f64(ROW_GET(&st, counter, value, 2)), 60);
    uint32_t track = (uint32_t)ROW_GET(&st, counter, track_id, 0);
    ck_assert_str_eq(text(ROW_GET(&st, track, counter_unit, track)), "requests");
    ck_assert_str_eq(track_type(track), "process_counter_track_event");
    ck_assert_int_eq(STAT(track_event_counter_invalid_track_uuid), 1);
    ck_assert_int_eq(STAT(track_event_counter_missing_value), 1);
    ck_assert_int_eq(STAT(track_event_counter_missing_track_uuid), 1);
}
END_TEST

START_TEST(extra_counters_must_fit_their_tracks)
{
    describe(5, 0, "served", as_counter);
    event(10, INSTANT, 1, "two values, one track");
    pb_put_varint(&trace, 31, 5);
    pb_put_varint(&trace, 12, 1);
    pb_put_varint(&trace, 12, 2);
    event_end();
    event(20, INSTANT, 1, "no track");
    pb_put_varint(&trace, 12, 1);
    event_end();
    event(30, INSTANT, 1, "not a counter");
    pb_put_varint(&trace, 31, 1);
    pb_put_varint(&trace, 12, 1);
    event_end();
    event(40, INSTANT, 1, "nine of them");
    for (int i = 0; i < 9; i++) {
        pb_put_varint(&trace, 31, 5);
        pb_put_varint(&trace, 12, 1);
    }
    event_end();
    event(50, INSTANT, 1, "good");
    pb_put_varint(&trace, 31, 5);
    pb_put_varint(&trace, 12, 7);
    event_end();
    load();
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_uint_eq(ROWS(counter), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_missing_track_uuids), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_invalid_track), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_track_uuid_mismatch) + STAT(track_event_extra_counter_exceeds_max),
                     2);
}
END_TEST

/* Names are numbered from 1 as a rule; numbers that are far apart are names as well, and cost no memory. */
START_TEST(names_may_have_any_number)
{
    static const uint64_t iids[] = {1, 2, 15, 16, 17, 5000, UINT32_MAX, UINT64_MAX};
    enum { N = sizeof iids / sizeof *iids, ROUNDS = 3, CLEARED = 1, NEEDS_STATE = 2 };
    for (unsigned row = 0; row < ROUNDS * N; row++) {
        char name[32];
        unsigned round = row / N, i = row % N;
        snprintf(name, sizeof name, "name %u.%u", round, i);
        packet_begin(100 + row, 1, !i && round != 1 ? CLEARED | NEEDS_STATE : NEEDS_STATE);
        size_t interned = in(12), entry = in(2);
        pb_put_varint(&trace, 1, iids[i]);
        pb_put_str(&trace, 2, name);
        out(entry);
        out(interned);
        size_t event = in(11);
        pb_put_varint(&trace, 9, INSTANT);
        pb_put_varint(&trace, 10, iids[i]);
        pb_put_varint(&trace, 11, 77);
        out(event);
        packet_end();
    }
    load();
    ck_assert_uint_eq(ROWS(slice), ROUNDS * N);
    for (unsigned row = 0; row < ROUNDS * N; row++) { /* what a number was told to mean first stays, until a clear */
        char name[32];
        snprintf(name, sizeof name, "name %u.%u", row / N == 1 ? 0 : row / N, row % N);
        ck_assert_str_eq(text(SLICE(name, row)), name);
    }
}
END_TEST

START_TEST(a_state_lasts_until_the_next)
{
    describe(8, 0, "mode", as_state);
    simple_event(10, STATE, 8, "idle");
    simple_event(25, STATE, 8, "busy");
    simple_event(40, STATE, 8, NULL); /* ends it */
    simple_event(50, STATE, 8, "idle");
    load();
    ck_assert_uint_eq(ROWS(state), 3);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 0), 15);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 1), 15);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 2), -1);
    ck_assert_str_eq(text(ROW_GET(&st, state, value, 1)), "busy");
    ck_assert_str_eq(track_type(ROW_GET(&st, state, track_id, 0)), "global_state_track_event");
}
END_TEST

/* --- times -------------------------------------------------------------------------------------------------------- */

/* Packets that say a time, a sequence and an event only go a shorter way than others. Each of these is read as it would
 * be with fields beside that change nothing. */
START_TEST(plain_packets_and_others_take_turns)
{
    enum { EVENTS = 64 };
    describe(1, 0, "t", NULL);
    for (int i = 0; i < EVENTS; i++) {
        packet_begin(10 + i, (uint32_t)(1 + i % 3), i % 8 == 5 ? 1 : 0); /* some clear the state of their sequence */
        size_t e = in(11);
        pb_put_varint(&trace, 9, INSTANT);
        pb_put_varint(&trace, 11, 1);
        pb_put_str(&trace, 23, i % 7 == 3 ? "of a machine" : "here");
        out(e);
        if (i % 5 == 1)
            pb_put_varint(&trace, 3, 9999); /* trusted_uid */
        if (i % 7 == 3)
            pb_put_varint(&trace, 98, 77); /* machine_id */
        if (i % 11 == 2)
            pb_put_varint(&trace, 42, 1); /* previous_packet_dropped */
        if (i % 13 == 4)
            pb_put_varint(&trace, 900, 1); /* nothing that is known */
        packet_end();
    }
    packet_begin(100, 2, 2); /* needs a state: the last loss on its sequence is behind the last clear, or not */
    size_t e = in(11);
    pb_put_varint(&trace, 9, INSTANT);
    out(e);
    packet_end();
    load();
    int64_t losses[2][4] = {0}, of_machine = 0;
    bool seen[2][4] = {0};
    seen[0][1] = true; /* by the descriptor */
    for (int i = 0; i < EVENTS; i++) {
        int machine = i % 7 == 3, sequence = 1 + i % 3;
        losses[machine][sequence] += i % 11 == 2 && seen[machine][sequence];
        seen[machine][sequence] = true;
    }
    for (uint32_t i = 0; i < ROWS(slice); i++)
        of_machine += ROW_GET(&st, track, machine_id, (uint32_t)SLICE(track_id, i)) == 1;
    ck_assert_int_eq(of_machine, (EVENTS + 3) / 7);
    ck_assert_uint_eq(ROWS(machine), 2);
    ck_assert_uint_eq(ROWS(slice) + (uint32_t)STAT(packet_skipped_seq_needs_incremental_state_invalid), EVENTS + 1);
    for (uint32_t machine = 0; machine < 2; machine++)
        for (int32_t sequence = 1; sequence <= 3; sequence++) {
            const int64_t *n = stats_get_idx(&st.stats, machine, STAT_sequence_packet_loss_unlisted, sequence);
            ck_assert_int_eq(n ? *n : 0, losses[machine][sequence]);
        }
}
END_TEST

START_TEST(deltas_need_a_thread_descriptor)
{
    packet_begin(-1, 1, 1);
    size_t e = in(11);
    pb_put_varint(&trace, 1, 5);
    pb_put_varint(&trace, 9, INSTANT);
    out(e);
    packet_end();
    packet_begin(-1, 1, 0);
    size_t t = in(44);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    pb_put_varint(&trace, 6, 1000);
    out(t);
    packet_end();
    for (int i = 0; i < 2; i++) {
        packet_begin(-1, 1, 0);
        e = in(11);
        pb_put_varint(&trace, 1, 5);
        pb_put_varint(&trace, 9, INSTANT);
        out(e);
        packet_end();
    }
    packet_begin(-1, 1, 0); /* no time at all */
    e = in(11);
    pb_put_varint(&trace, 9, INSTANT);
    out(e);
    packet_end();
    packet_begin(10, 1, 0); /* neither type nor phase */
    out(in(11));
    packet_end();
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_int_eq(SLICE(ts, 0), 1005000);
    ck_assert_int_eq(SLICE(ts, 1), 1010000);
    ck_assert_int_eq(STAT(track_event_skipped_timestamp_delta_without_valid_state), 1);
    ck_assert_int_eq(STAT(track_event_missing_timestamp), 1);
    ck_assert_int_eq(STAT(track_event_parser_errors), 1);
}
END_TEST

/* Times and instructions of a thread that lie further apart than 64 bits can say. */
START_TEST(thread_counts_may_be_too_far_apart)
{
    packet_begin(0, 1, 1);
    size_t t = in(44);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    out(t);
    packet_end();
    for (int end = 0; end < 2; end++) {
        packet_begin(10 + end, 1, 0);
        size_t e = in(11);
        pb_put_varint(&trace, 9, end ? 2 : 1);
        pb_put_varint(&trace, 17, (uint64_t)(end ? INT64_MAX / 1000 : INT64_MIN / 1000));
        pb_put_varint(&trace, 20, (uint64_t)(end ? INT64_MAX : -5));
        out(e);
        packet_end();
    }
    load();
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_int_eq(SLICE(dur, 0), 1);
    ck_assert_int_eq(SLICE(thread_ts, 0), INT64_MIN / 1000 * 1000);
    ck_assert_int_eq(SLICE(thread_dur, 0), COL_NULL);
    ck_assert_int_eq(SLICE(thread_instruction_count, 0), -5);
    ck_assert_int_eq(SLICE(thread_instruction_delta, 0), COL_NULL);
    ck_assert_int_eq(STAT(track_event_parser_errors), 2);
}
END_TEST

Suite *track_event_suite(void);

Suite *track_event_suite(void)
{
    Suite *s = suite_create("track_event");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_thread_track_is_the_threads_own);
    tcase_add_test(c, siblings_merge_by_key_and_overlap_on_two_rows);
    tcase_add_test(c, an_unknown_uuid_is_a_track_of_its_own);
    tcase_add_test(c, hierarchies_without_end_are_counted);
    tcase_add_test(c, broken_descriptors_are_counted);
    tcase_add_test(c, counters_add_up);
    tcase_add_test(c, extra_counters_must_fit_their_tracks);
    tcase_add_test(c, names_may_have_any_number);
    tcase_add_test(c, a_state_lasts_until_the_next);
    tcase_add_test(c, plain_packets_and_others_take_turns);
    tcase_add_test(c, deltas_need_a_thread_descriptor);
    tcase_add_test(c, thread_counts_may_be_too_far_apart);
    suite_add_tcase(s, c);
    return s;
}
