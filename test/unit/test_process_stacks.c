/* Stacks that several processes name by the same number: whose mappings, frames and callsites they are. */
#include "pb_text.h"
#include "trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *const w = &f.w;

static void setup(void)
{
    trace_fixture_open(&f);
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(T)              f.st.t[T_##T].n_rows
#define GET(T, column, row)  ROW_GET(&f.st, T, column, row)
#define TEXT(T, column, row) fixture_text(&f, ROW_GET(&f.st, T, column, row))
#define STAT(name)           stats_get(&f.st.stats, 0, STAT_##name)

/* Stack 1 is main > work in /app, which lies in memory; stack 2 is read in /kernel, which has no addresses; stack 3 is
 * both. */
static void put_stacks(void)
{
    put(w, "1{8:1 10:1 13:1 12{"
           "  5{1:1 2'main'} 5{1:2 2'work'} 5{1:3 2'read'} 17{1:1 2'app'} 17{1:2 2'kernel'}"
           "  19{1:1 4:4096 5:8192 7:1} 19{1:2 7:2}"
           "  6{1:1 2:1 3:1 4:16} 6{1:2 2:2 3:1 4:32} 6{1:3 2:3 3:2}"
           "  7{1:1 2:1 2:2} 7{1:2 2:3} 7{1:3 2:1 2:3}}}");
}

static void put_sample(int64_t ts, int pid, int stack)
{
    put(w, "1{8:%lld 10:1 66{1:0 2:%d 3:%d 4:%d}}", (long long)ts, pid, pid, stack);
}

START_TEST(each_process_has_its_own_mappings)
{
    put_stacks();
    put_sample(10, 30, 1);
    put_sample(11, 40, 1);
    put_sample(12, 30, 1);
    put_sample(13, 40, 1);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_mapping), 2);
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 1), "/app");
    ck_assert_uint_eq(ROWS(stack_profile_frame), 4);
    ck_assert_uint_eq(ROWS(stack_profile_callsite), 4);
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 0), 1);
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 1), 3);
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 2), 1);
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 3), 3);
    ck_assert_int_eq(STAT(interned_data_tokenizer_errors), 0);
}
END_TEST

START_TEST(what_lies_in_no_memory_is_everybodys)
{
    put_stacks();
    put_sample(10, 30, 2);
    put_sample(11, 40, 2);
    put_sample(12, 30, 3);
    put_sample(13, 40, 3);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_mapping), 3); /* the kernel's once */
    ck_assert_uint_eq(ROWS(stack_profile_frame), 3);
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 0), GET(profiler_sample, callsite_id, 1));
    ck_assert_int_ne(GET(profiler_sample, callsite_id, 2), GET(profiler_sample, callsite_id, 3));
}
END_TEST

START_TEST(many_processes_with_one_long_stack_share_it_in_the_end)
{
    enum { FRAMES = 100000, PROCESSES = 200 };
    put(w, "1{8:1 10:1 13:1 12{5{1:1 2'main'} 17{1:1 2'app'} 19{1:1 4:4096 5:8192 7:1} 6{1:1 2:1 3:1 4:16}}}");
    size_t packet = pb_begin(w, 1), data = pb_begin(w, 12), stack = pb_begin(w, 7);
    put(w, "1:1");
    for (int i = 0; i < FRAMES; i++)
        put(w, "2:1");
    pb_end(w, stack);
    pb_end(w, data);
    put(w, "8:2 10:1");
    pb_end(w, packet);
    for (int i = 0; i < PROCESSES; i++)
        put_sample(10 + i, 30 + i, 1);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_sample), PROCESSES);
    ck_assert_int_ne(GET(profiler_sample, callsite_id, 1), GET(profiler_sample, callsite_id, 0));
    ck_assert_int_eq(GET(profiler_sample, callsite_id, PROCESSES - 1), GET(profiler_sample, callsite_id, 0));
    ck_assert_uint_lt(ROWS(stack_profile_callsite), 20 * FRAMES);
}
END_TEST

START_TEST(frames_in_no_mapping_are_known_by_name)
{
    put(w, "1{8:1 10:1 13:1 12{5{1:1 2'f'} 18{1:1 2'f.c'} 6{1:1 2:1 4:100} 6{1:2 2:1 4:200} 6{1:3 2:1 5:1 6:5}"
           "  6{1:4 2:1 5:9} 7{1:1 2:1 2:2 2:3} 7{1:2 2:4}}}");
    put_sample(10, 30, 1);
    put_sample(11, 30, 2);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_frame), 2); /* with and without its file */
    ck_assert_int_eq(GET(stack_profile_frame, rel_pc, 0), 0);
    ck_assert_int_eq(GET(stack_profile_frame, symbol_set_id, 0), 0);
    ck_assert_str_eq(TEXT(stack_profile_symbol, name, 0), "f");
    ck_assert_int_eq(GET(stack_profile_symbol, source_file, 0), 0);
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 0), COL_NULL);
    ck_assert_str_eq(TEXT(stack_profile_symbol, source_file, 1), "f.c");
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 1), COL_NULL); /* its file's name is not there */
    ck_assert_int_eq(STAT(stackprofile_invalid_string_id), 1);
}
END_TEST

START_TEST(a_frame_in_a_mapping_has_the_line_first_told)
{
    put(w, "1{8:1 10:1 13:1 12{5{1:1 2'f'} 17{1:1 2'app'} 19{1:1 4:4096 5:8192 7:1}"
           "  6{1:1 2:1 3:1 4:16 6:5} 6{1:2 2:1 3:1 4:16 6:7 7:4} 7{1:1 2:1} 7{1:2 2:2}}}");
    put_sample(10, 30, 1);
    put_sample(11, 30, 2);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_frame), 1);
    ck_assert_uint_eq(ROWS(stack_profile_symbol), 1);
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 0), 5);
    ck_assert_str_eq(TEXT(stack_profile_frame, type, 0), "jit"); /* what kind it is may come later */
}
END_TEST

START_TEST(threads_come_before_their_main_thread)
{
    put_stacks();
    put(w, "1{8:10 10:1 66{1:0 2:30 3:31 4:1}}");
    trace_fixture_load(&f);
    ck_assert_int_eq(GET(thread, tid, 1), 31);
    ck_assert_int_eq(GET(thread, tid, 2), 30);
    ck_assert_int_eq(GET(thread, is_main_thread, 2), 1);
}
END_TEST

START_TEST(numbers_that_nothing_explains_are_counted)
{
    put_stacks();
    put_sample(10, 30, 9);
    put_sample(11, 30, 9);
    trace_fixture_load(&f);
    ck_assert_int_eq(STAT(stackprofile_invalid_callstack_id), 2);
    ck_assert_int_eq(STAT(interned_data_tokenizer_errors), 2);
}
END_TEST

Suite *process_stacks_suite(void);

Suite *process_stacks_suite(void)
{
    Suite *s = suite_create("process_stacks");
    TCase *c = tcase_create("samples");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, each_process_has_its_own_mappings);
    tcase_add_test(c, what_lies_in_no_memory_is_everybodys);
    tcase_add_test(c, many_processes_with_one_long_stack_share_it_in_the_end);
    tcase_add_test(c, frames_in_no_mapping_are_known_by_name);
    tcase_add_test(c, a_frame_in_a_mapping_has_the_line_first_told);
    tcase_add_test(c, threads_come_before_their_main_thread);
    tcase_add_test(c, numbers_that_nothing_explains_are_counted);
    suite_add_tcase(s, c);
    return s;
}
