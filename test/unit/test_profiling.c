/* Profiles: stacks of samples, dumps of heaps, and the names that come later. Packets are those that recorders write.
 */
#include "gate.h"
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
#define STAT_AT(name, idx)   (*stats_get_idx(&f.st.stats, 0, STAT_##name, idx))

/* The name of a callsite's frame, and of those that called it: "main > work". */
static const char *stack_text(int64_t callsite)
{
    static char text[512];
    char before[2 * sizeof text];
    text[0] = 0;
    for (; callsite != COL_NULL; callsite = GET(stack_profile_callsite, parent_id, (uint32_t)callsite)) {
        uint32_t frame = (uint32_t)GET(stack_profile_callsite, frame_id, (uint32_t)callsite);
        snprintf(before, sizeof before, "%s%s%s", TEXT(stack_profile_frame, name, frame), text[0] ? " > " : "", text);
        memcpy(text, before, sizeof text - 1);
    }
    return text;
}

/* Sequence 1 from here on has two stacks: 1 main > work, 2 main > idle, both in /bin/app with build id 0xab. */
static void put_stacks(void)
{
    put(w, "1{8:1 10:1 13:1 12{"
           "  5{1:1 2'main'} 5{1:2 2'work'} 5{1:3 2'idle'} 16{1:1 2'\xab'} 17{1:1 2'bin'} 17{1:2 2'app'}"
           "  19{1:1 2:1 4:4096 5:8192 6:64 7:1 7:2}"
           "  6{1:1 2:1 3:1 4:16} 6{1:2 2:2 3:1 4:32 7:4} 6{1:3 2:3 3:1 4:48 8'own'}"
           "  7{1:1 2:1 2:2} 7{1:2 2:1 2:3}}}");
}

START_TEST(samples_stand_on_shared_stacks)
{
    put_stacks();
    for (int i = 0; i < 4; i++)
        put(w, "1{8:%d 10:1 66{1:0 2:30 3:31 4:%d 5:2 16:2}}", 10 + i, 1 + i % 2);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_mapping), 1);
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 0), "/bin/app");
    ck_assert_str_eq(TEXT(stack_profile_mapping, build_id, 0), "ab");
    ck_assert_int_eq(GET(stack_profile_mapping, load_bias, 0), 64);
    ck_assert_uint_eq(ROWS(stack_profile_frame), 3);
    ck_assert_uint_eq(ROWS(stack_profile_callsite), 3); /* main once */
    ck_assert_uint_eq(ROWS(profiler_sample), 4);
    ck_assert_str_eq(stack_text(GET(profiler_sample, callsite_id, 0)), "main > work");
    ck_assert_str_eq(stack_text(GET(profiler_sample, callsite_id, 3)), "main > idle");
    ck_assert_str_eq(TEXT(stack_profile_frame, type, 1), "jit");
    ck_assert_str_eq(TEXT(stack_profile_frame, type, 2), "own");
    ck_assert_str_eq(TEXT(profiler_sample, unwind_error, 0), "memory_invalid");
    ck_assert_uint_eq(ROWS(profiler_task_context), 1);
    ck_assert_str_eq(TEXT(profiler_session, timebase_unit, 0), "ns");
}
END_TEST

static const struct {
    const char *interned, *stat_name;
    enum stat_key stat;
} broken[] = {
    {"", "callstack", STAT_stackprofile_invalid_callstack_id},
    {"7{1:1}", "empty", STAT_stackprofile_empty_callstack},
    {"7{1:1 2:1}", "frame", STAT_stackprofile_invalid_frame_id},
    {"7{1:1 2:1} 6{1:1 3:1}", "mapping", STAT_stackprofile_invalid_mapping_id},
    {"7{1:1 2:1} 6{1:1 2:7 3:1} 19{1:1}", "string", STAT_stackprofile_invalid_string_id},
};

START_TEST(what_a_stack_lacks_is_counted)
{
    put(w, "1{8:1 10:1 13:1 12{5{1:0 2''} %s}} 1{8:2 10:1 66{1:0 2:1 3:1 4:1}}", broken[_i].interned);
    trace_fixture_load(&f);
    ck_assert_msg(stats_get(&f.st.stats, 0, broken[_i].stat) == 1, "%s", broken[_i].stat_name);
    ck_assert_uint_eq(ROWS(profiler_sample), 1); /* when and where is known all the same */
}
END_TEST

START_TEST(a_broken_stack_counts_for_each_sample)
{
    put(w, "1{8:1 10:1 13:1 12{7{1:1 2:1}}}");
    for (int i = 0; i < 3; i++) /* the stack is read for the first one only; long ones would take hours */
        put(w, "1{8:%d 10:1 66{1:0 2:1 3:1 4:1}}", 2 + i);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_sample), 3);
    ck_assert_int_eq(STAT(stackprofile_invalid_frame_id), 3);
}
END_TEST

/* --- native heaps ------------------------------------------------------------------------------------------------- */

static void put_clocks(void)
{
    put(w, "1{6{1{1:6 2:1000} 1{1:4 2:900}}}"); /* BOOTTIME, MONOTONIC_COARSE */
}

START_TEST(dumps_of_a_heap_tell_what_changed)
{
    put_clocks();
    put_stacks();
    put(w, "1{8:10 10:1 37{7:0 5{1:30 9:910 11'libc' 12:4096 13:1024 10:1 2{1:1 2:100 5:1}}}}");
    put(w, "1{8:20 10:1 37{7:1 6:1 5{1:30 9:920 15:910 11'libc' 2{1:1 2:300 5:2 3:40 6:1}}}}");
    put(w,
        "1{8:30 10:1 37{7:2 5{1:30 9:920 11'libc' 12:4096 13:1024 2{1:2 8:77 9:7}}}}"); /* as it was at its largest */
    put(w, "1{8:40 10:1 37{7:4 6:1 5{1:30 9:930 11'libc' 2{1:1 2:10 5:1}}}}");
    trace_fixture_load(&f);
    static const struct {
        int64_t ts, count, size;
        const char *stack;
    } rows[] = {{1010, 1, 100, "main > work"},
                {1020, 1, 200, "main > work"},
                {1020, -1, -40, "main > work"},
                {1020, 7, 77, "main > idle"}};
    ck_assert_uint_eq(ROWS(heap_profile_allocation), 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(GET(heap_profile_allocation, ts, i), rows[i].ts);
        ck_assert_int_eq(GET(heap_profile_allocation, count, i), rows[i].count);
        ck_assert_int_eq(GET(heap_profile_allocation, size, i), rows[i].size);
        ck_assert_str_eq(stack_text(GET(heap_profile_allocation, callsite_id, i)), rows[i].stack);
    }
    /* a dump each, whether or not it says when it began */
    ck_assert_uint_eq(ROWS(heap_profile), 3);
    ck_assert_int_eq(GET(heap_profile, ts, 0), GET(heap_profile, ts_end, 0));
    ck_assert_int_eq(GET(heap_profile, dur, 0), 0);
    ck_assert_int_eq(GET(heap_profile, ts, 1), 1010);
    ck_assert_int_eq(GET(heap_profile, ts_end, 1), 1020);
    ck_assert_int_eq(GET(heap_profile, dur, 1), 10);
    ck_assert_int_eq(GET(heap_profile, dur, 2), 0);
    ck_assert_int_eq(STAT_AT(heapprofd_hit_guardrail, 30), 1);
    ck_assert_int_eq(STAT_AT(heapprofd_sampling_interval_adjusted, 30), 3072);
    ck_assert_int_eq(STAT(heapprofd_missing_packet), 1);        /* packet 3 */
    ck_assert_int_eq(STAT(heapprofd_non_finalized_profile), 1); /* the last dump has no end */
}
END_TEST

START_TEST(a_heap_that_shrinks_its_totals_is_malformed)
{
    put_clocks();
    put_stacks();
    put(w, "1{8:10 10:1 37{5{1:30 9:910 2{1:1 2:100 5:1}}}}");
    put(w, "1{8:20 10:1 37{7:1 5{1:30 9:920 2{1:1 2:50 5:1}}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_profile_allocation), 1);
    ck_assert_str_eq(TEXT(heap_profile_allocation, heap_name, 0), "unknown");
    ck_assert_int_eq(STAT_AT(heapprofd_malformed_packet, (int)GET(heap_profile_allocation, upid, 0)), 1);
}
END_TEST

START_TEST(a_dump_may_bring_its_own_strings)
{
    put_clocks();
    put(w, "1{8:10 10:1 13:1 37{6:1 1{1:1 2'main'} 1{1:2 2'a.so'} 5{1:30 9:910 2{1:5 2:8 5:1}}}}");
    put(w, "1{8:10 10:1 37{7:1 4{1:1 7:2} 2{1:9 2:1 3:1} 3{1:5 2:9}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_profile_allocation), 1);
    ck_assert_str_eq(stack_text(GET(heap_profile_allocation, callsite_id, 0)), "main");
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 0), "/a.so");
}
END_TEST

/* --- names that come later ---------------------------------------------------------------------------------------- */

START_TEST(a_path_in_one_part_has_one_slash)
{
    put(w, "1{8:1 10:1 13:1 12{17{1:1 2'/opt/app'} 17{1:2 2'/x'} 17{1:3 2''} 19{1:1 7:1} 19{1:2 7:1 7:2} 19{1:3 7:3}"
           "  6{1:1 3:1} 6{1:2 3:2} 6{1:3 3:3} 7{1:1 2:1 2:2 2:3}} 66{1:0 2:3 3:3 4:1}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_mapping), 3);
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 0), "/opt/app");
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 1), "/opt/app//x");
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 2), "/");
}
END_TEST

START_TEST(symbols_name_the_functions_at_an_address)
{
    put_stacks();
    put(w, "1{8:10 10:1 66{1:0 2:30 3:31 4:1}}");
    put(w, "1{61{1'/bin/app' 2'\xab' 3{1:32 2{1'inner' 2'a.c' 3:7} 2{1'outer' 2'' 3:9}} 3{1:5 2{1'nobody'}}}}");
    trace_fixture_load(&f);
    int64_t set = GET(stack_profile_frame, symbol_set_id, 1);
    ck_assert_int_eq(GET(stack_profile_frame, symbol_set_id, 0), COL_NULL);
    ck_assert_int_eq(set, 0);
    ck_assert_str_eq(TEXT(stack_profile_symbol, name, 0), "inner");
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 0), 7);
    ck_assert_int_eq(GET(stack_profile_symbol, inlined, 0), COL_NULL);
    ck_assert_str_eq(TEXT(stack_profile_symbol, name, 1), "outer");
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 1), COL_NULL); /* no file, no line */
    ck_assert_int_eq(GET(stack_profile_symbol, symbol_set_id, 1), 0);
    ck_assert_int_eq(STAT(stackprofile_invalid_frame_id), 1);
}
END_TEST

static const struct {
    const char *timebase, *name, *unit; /* unit NULL: none */
} timebases[] = {
    {"", "cpu-clock", "ns"},
    {"4:3", "task-clock", "ns"},
    {"4:19 12:2", "ref-cycles:k", "cycles"},
    {"4:2 12:1 12:2", "page-faults:uk", "count"},
    {"4:17", "stalled-cycles-frontend", "count"},
    {"4:99", "unknown", "count"},
    {"3{1'sched:sched_switch'}", "sched:sched_switch", "count"},
    {"5{1:4 2:195 3:1 4:0} 12:3", "raw.0x4.0xc3.0x1.0x0:h", NULL},
    {"4:10 10'mine' 12:1", "mine", "cycles"},
};

START_TEST(a_timebase_has_the_name_and_unit_of_what_it_counts)
{
    put(w, "1{8:1 10:1 13:1 59{12{1{%s}}}} 1{8:2 10:1 66{1:0 2:1 3:1 6:5}}", timebases[_i].timebase);
    trace_fixture_load(&f);
    ck_assert(last_value(&f, timebases[_i].name) == 5);
    if (timebases[_i].unit)
        ck_assert_str_eq(TEXT(profiler_session, timebase_unit, 0), timebases[_i].unit);
    else
        ck_assert_int_eq(GET(profiler_session, timebase_unit, 0), 0);
}
END_TEST

/* 1 READ_STAGE, 2 UNWIND_STAGE, 3 UNWIND_ENQUEUE, 4 NOT_IN_SCOPE: rows without a stack; a loss is no row. */
START_TEST(samples_that_were_skipped_keep_their_counts)
{
    put_stacks();
    for (int reason = 1; reason <= 4; reason++)
        put(w, "1{8:%d 10:1 66{1:0 2:30 3:31 6:%d 18:%d}}", 10 + reason, reason, reason);
    put(w, "1{8:20 10:1 66{1:7 17:55}} 1{8:21 10:1 66{1:6 19{1:1}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_sample), 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(GET(profiler_sample, callsite_id, i), COL_NULL);
    ck_assert_int_eq(STAT(perf_samples_skipped), 2);
    ck_assert_int_eq(STAT(perf_samples_skipped_dataloss), 1);
    ck_assert_int_eq(STAT_AT(perf_cpu_lost_records, 7), 55);
    ck_assert_int_eq(STAT_AT(perf_guardrail_stop_ts, 0), 21);
    ck_assert(last_value(&f, "cpu-clock") == 4);
}
END_TEST

/* Sequences 10 and 11 are killed, 11 comes back as 13; 12 ends by itself. The recording ends at 100. */
START_TEST(samples_of_killed_recorders_are_missing_from_then_on)
{
    for (int seq = 10; seq <= 12; seq++)
        put(w, "1{8:1 10:%d 13:1 59{12{1{2:99}}}} 1{8:20 10:%d 13:2 992{}} 1{8:20 10:%d 13:2 66{1:0 2:1 3:1}}", seq,
            seq, seq);
    put(w, "1{8:90 10:10 13:2 992{}} 1{8:60 10:11 13:2 992{}} 1{8:30 10:12 13:2 992{1:1}}");
    if (_i)
        put(w, "1{3:0 8:100 10:1 69{5:1}}");
    put(w, "1{8:75 10:13 13:1 59{12{1{2:99}}}} 1{8:75 10:13 13:2 992{}} 1{8:99 10:13 13:2 992{1:1}}");
    trace_fixture_load(&f);
    ck_assert_int_eq(STAT_AT(perf_whole_until_ts, 0), 90);
    ck_assert_int_eq(STAT_AT(perf_whole_until_ts, 1), 60);
    ck_assert(!stats_get_idx(&f.st.stats, 0, STAT_perf_whole_until_ts, 2));
    ck_assert(!stats_get_idx(&f.st.stats, 0, STAT_perf_whole_until_ts, 3));
    ck_assert(!stats_get_idx(&f.st.stats, 0, STAT_perf_cut_ns, 2));
    if (_i) {
        ck_assert_int_eq(STAT_AT(perf_cut_ns, 0), 10);
        ck_assert_int_eq(STAT_AT(perf_cut_ns, 1), 15); /* until 75 */
    } else {
        ck_assert(!stats_get_idx(&f.st.stats, 0, STAT_perf_cut_ns, 0)); /* nobody knows when it was to end */
    }
}
END_TEST

/* Line 4 of a.b holds what was two methods; without a line, or on one that none holds, any may be meant. */
START_TEST(a_line_tells_which_methods_were_merged)
{
    put(w, "1{64{1'com.one' 3{1'a' 2'One' 4{1'b' 2'In.inner' 3:4 4:4 5:20 6:20} 4{1'b' 2'outer' 3:4 4:6 5:30 6:32}"
           " 4{1'b' 2'after' 3:5 4:5}}}}");
    put(w, "1{8:1 131{1:30 2:10001 3'com.one' 4'com.one' 5:1 8{1{1'a.b' 2'X.java' 3:4} 1{1'a.b' 2'X.java' 3:5}"
           " 1{1'a.b' 2'X.java' 3:9} 1{1'a.b'}}}}");
    trace_fixture_load(&f);
    static const char *const names[] = {"One.outer", "One.after", "In.inner | One.after | One.outer",
                                        "In.inner | One.after | One.outer"};
    ck_assert_uint_eq(ROWS(stack_profile_frame), 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_str_eq(TEXT(stack_profile_frame, deobfuscated_name, i), names[i]);
    uint32_t set = (uint32_t)GET(stack_profile_frame, symbol_set_id, 0);
    ck_assert_str_eq(TEXT(stack_profile_symbol, name, set), "In.inner");
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, set), 20);
    ck_assert_int_eq(GET(stack_profile_symbol, inlined, set), 1);
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, set + 1), 30);
    ck_assert_int_eq(GET(stack_profile_symbol, inlined, set + 1), 0);
    ck_assert_str_eq(TEXT(stack_profile_mapping, name, 0), "art_process_metadata");
}
END_TEST

START_TEST(build_ids_of_33_bytes_are_text_already)
{
    put(w, "1{8:1 10:1 13:1 12{5{1:0 2''} 16{1:1 2'7F0715C286F8B16C10E4ad349cda3b9B1'} 19{1:1 2:1}"
           "  6{1:1 3:1} 7{1:1 2:1}} 66{1:0 4:1}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(stack_profile_mapping, build_id, 0), "7F0715C286F8B16C10E4ad349cda3b9B1");
}
END_TEST

/* Frame 1 lies in a file of com.one; frame 2 in none that tells, and runs in a process of com.two. */
START_TEST(short_names_mean_what_their_package_says)
{
    put_clocks();
    put(w, "1{47{1{1'com.one' 2:10001} 1{1'com.two' 2:10002}}}");
    put(w, "1{2{1{1:30 2:1 3'com.two' 5:10002}}}");
    put(w,
        "1{8:1 10:1 13:1 12{5{1:0 2''} 5{1:1 2'a.b'} 17{1:1 2'data/app/~~x==/com.one-y==/base.apk'} 17{1:2 2'base.apk'}"
        "  19{1:1 7:1} 19{1:2 7:2} 6{1:1 2:1 3:1} 6{1:2 2:1 3:2} 7{1:1 2:1 2:2}}"
        "  66{1:0 2:30 3:30 4:1}}");
    put(w, "1{64{1'com.one' 3{1'a' 2'One' 4{1'b' 2'first'}}}}");
    put(w, "1{64{1'com.two' 3{1'a' 2'Two' 4{1'b' 2'first'} 4{1'b' 2'x.Other.second'}}}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(stack_profile_frame, deobfuscated_name, 0), "One.first");
    ck_assert_str_eq(TEXT(stack_profile_frame, deobfuscated_name, 1), "Two.first | x.Other.second");
    ck_assert_uint_eq(ROWS(package_list), 2);
}
END_TEST

START_TEST(programs_without_a_name_for_symbols_are_counted)
{
    put(w, "1{8:1 10:1 13:1 12{5{1:1 2'main'} 16{1:1 2'\xab'} 17{1:1 2'data'} 17{1:2 2'local'} 17{1:3 2'tmp'} 17{1:4 "
           "2'x'}"
           "  19{1:1 7:1 7:2 7:3 7:4} 19{1:2 2:1 7:1 7:2 7:3 7:4} 19{1:3 7:1 7:4}"
           "  6{1:1 2:1 3:1} 6{1:2 2:1 3:2} 6{1:3 2:1 3:3} 7{1:1 2:1 2:2 2:3}}}");
    put(w, "1{8:10 10:1 66{1:0 2:30 3:31 4:1}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(stack_profile_mapping), 3);
    ck_assert_int_eq(STAT(symbolization_tmp_build_id_not_found), 1);
}
END_TEST

/* --- samples of any profiler -------------------------------------------------------------------------------------- */

START_TEST(stack_samples_bring_tasks_and_counters)
{
    put(w, "1{8:1 10:1 13:1 59{100{1'my.profiler' 2{2'cycles' 3:2 7:2}}} 12{"
           "  51{1:1 2'request' 3'http'} 51{1:2 2'query' 4:1} 48{1:1 2:30 3:31 4:2} 49{1:1 2:3 3:1}"
           "  50{1:7 2'bytes' 4'KiB' 5:1024 6'sent'}}}");
    put(w, "1{8:10 10:1 135{2:1 4:1 5{1{1'main' 2'm.c' 3:3} 1{1'leaf'}} 11:500 13:7 14:2}}");
    put(w, "1{8:20 10:1 135{1{2:30} 11:9}}"); /* a counter of a cpu that is not told */
    put(w, "1{8:30 10:1 135{1{3:31}}}");      /* the thread alone: no process */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_sample), 3);
    ck_assert_int_eq(GET(profiler_task_context, upid, 2), COL_NULL);
    ck_assert_int_eq(GET(thread, is_main_thread, 1), 1); /* made with the process, before the thread of the sample */
    ck_assert_uint_eq(ROWS(stack_profile_symbol), 2);    /* each frame that is spelt out has one */
    ck_assert_str_eq(TEXT(profiler_sample, source, 0), "my.profiler");
    ck_assert_str_eq(stack_text(GET(profiler_sample, callsite_id, 0)), "main > leaf");
    ck_assert_str_eq(TEXT(stack_profile_symbol, source_file, 0), "m.c");
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 0), 3);
    ck_assert_str_eq(TEXT(profiler_session, timebase_unit, 0), "cycles");
    ck_assert_str_eq(TEXT(profiler_execution_context, cpu_mode, 0), "user");
    uint32_t async = (uint32_t)GET(profiler_task_context, async_context_id, 0);
    ck_assert_str_eq(TEXT(profiler_async_context, name, async), "query");
    ck_assert_str_eq(TEXT(profiler_async_context, kind, (uint32_t)GET(profiler_async_context, parent_id, async)),
                     "http");
    ck_assert_double_eq(last_value(&f, "cycles"), 500);
    ck_assert_double_eq(last_value(&f, "bytes"), 2);
    ck_assert_uint_eq(ROWS(profiler_counter_set), 2);
    ck_assert_str_eq(TEXT(track, type, 0), "stack_sample_cpu_counter");
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, track, dimension_arg_set_id, 0)),
                     "cpu=3 session_id=0 source=my.profiler counter_name=cycles");
    ck_assert_str_eq(TEXT(track, type, 1), "stack_sample_session_counter");
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, track, source_arg_set_id, 1)),
                     "is_timebase=0 unit_multiplier=1024 description=sent");
    ck_assert_int_eq(GET(profiler_sample, callsite_id, 1), COL_NULL);
    ck_assert_int_eq(GET(profiler_sample, execution_context_id, 1), COL_NULL);
}
END_TEST

START_TEST(streamed_samples_have_times_of_their_own)
{
    put_stacks();
    put(w, "1{8:2 10:1 44{1:30 2:31 6:100 7:0}}"); /* the sequence's thread, at 100 us */
    put(w, "1{8:3 10:1 54{1:1 1:2 2:5 2:10 3:4}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_sample), 2);
    ck_assert_int_eq(GET(profiler_sample, ts, 0), 105000);
    ck_assert_int_eq(GET(profiler_sample, ts, 1), 115000);
    ck_assert_str_eq(stack_text(GET(profiler_sample, callsite_id, 1)), "main > idle");
    ck_assert_int_eq(GET(chrome_stack_sample_extras, process_priority, 1), 4);
    ck_assert_str_eq(TEXT(profiler_sample, source, 0), "chrome");
    ck_assert_int_eq(GET(profiler_sample, session_id, 0), COL_NULL);
    ck_assert_uint_eq(ROWS(profiler_session), 0);
    uint32_t utid = (uint32_t)GET(profiler_task_context, utid, 0);
    ck_assert_int_eq(GET(thread, tid, utid), 31);
}
END_TEST

START_TEST(slices_know_where_they_began_and_ended)
{
    put_stacks();
    put(w, "1{8:2 10:1 60{1:7 4{1:30 2:31}}}");
    put(w, "1{8:10 10:1 11{9:1 11:7 23'slice' 56:1}} 1{8:20 10:1 11{9:2 11:7 55{1{1'main'}}}}");
    put(w, "1{8:30 10:1 11{9:3 11:7 23'moment' 56:2}} 1{8:40 10:1 11{9:3 11:7 23'lost' 56:9}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 3);
    ck_assert_uint_eq(ROWS(track_event_callstacks), 3); /* one for each event */
    ck_assert_str_eq(stack_text(GET(track_event_callstacks, callsite_id, 0)), "main > work");
    ck_assert_int_eq(GET(track_event_callstacks, end_callsite_id, 0), COL_NULL);
    ck_assert_int_eq(GET(track_event_callstacks, slice_id, 1), 0);
    ck_assert_int_eq(GET(track_event_callstacks, callsite_id, 1), COL_NULL);
    ck_assert_str_eq(stack_text(GET(track_event_callstacks, end_callsite_id, 1)), "main");
    ck_assert_int_eq(GET(track_event_callstacks, slice_id, 2), 1);
    ck_assert_str_eq(stack_text(GET(track_event_callstacks, callsite_id, 2)), "main > idle");
    ck_assert_int_eq(GET(track_event_callstacks, end_callsite_id, 2), COL_NULL);
    ck_assert_int_eq(STAT(stackprofile_invalid_callstack_id), 1);
}
END_TEST

/* --- managed heaps ------------------------------------------------------------------------------------------------ */

/* Two objects of class Base > Sub (fields own first, then inherited), an array, and one that nothing holds. */
START_TEST(a_managed_heap_is_a_graph)
{
    put(w, "1{8:10 10:9 56{1:30 5:1 6:0 10:5000 2{1:1 2:2 5:0 5:3} 2{7:2 2:3 3:16 5:1 9:1} 2{7:1 2:1 3:8}"
           "  7{1:1 2:8} 7{1:99 2:1}}}");
    put(w, "1{8:10 10:9 56{1:30 6:1 4{1:1 2'Base Sub.next'} 4{1:2 2'int[] Base.data'} 8{1:1 2'/a.jar'}"
           "  9{1:1 2:1 3'Base' 4:24 6:2 7:1} 9{1:2 2:1 3'Sub' 4:32 5:1 6:1 7:1} 9{1:3 3'int[]' 7:4}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_graph), 1);
    ck_assert_int_eq(GET(heap_graph, heap_size, 0), 5000);
    ck_assert_int_eq(GET(heap_graph, truncated, 0), 0);
    ck_assert_uint_eq(ROWS(heap_graph_object), 3);
    uint32_t sub = (uint32_t)GET(heap_graph_object, type_id, 0);
    ck_assert_str_eq(TEXT(heap_graph_class, name, sub), "Sub");
    ck_assert_str_eq(TEXT(heap_graph_class, kind, sub), "KIND_NORMAL");
    ck_assert_int_eq(GET(heap_graph_class, superclass_id, sub), COL_NULL); /* class objects would tell */
    ck_assert_int_eq(GET(heap_graph_object, self_size, 0), 32);            /* its class's */
    ck_assert_int_eq(GET(heap_graph_object, self_size, 1), 16);
    ck_assert_str_eq(TEXT(heap_graph_object, root_type, 0), "ROOT_THREAD_OBJECT");
    ck_assert_str_eq(TEXT(heap_graph_object, heap_type, 1), "HEAP_TYPE_APP");
    ck_assert_int_eq(GET(heap_graph_object, reachable, 1), 1);
    ck_assert_int_eq(GET(heap_graph_object, reachable, 2), 0);
    ck_assert_int_eq(GET(heap_graph_object, root_distance, 0), -1);
    ck_assert_uint_eq(ROWS(heap_graph_reference), 3);
    ck_assert_str_eq(TEXT(heap_graph_reference, field_name, 0), "Sub.next");
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 0), COL_NULL);
    ck_assert_str_eq(TEXT(heap_graph_reference, field_name, 1), "Base.data");
    ck_assert_str_eq(TEXT(heap_graph_reference, field_type_name, 1), "int[]");
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 1), 1);
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 2), 0); /* the array's, back */
    ck_assert_ptr_null(stats_get_idx(&f.st.stats, 0, STAT_heap_graph_missing_packet, 1));
}
END_TEST

START_TEST(a_heap_without_its_end_is_kept_as_far_as_it_goes)
{
    put(w, "1{8:10 10:9 56{1:30 5:1 6:1 2{1:1 2:1 3:8} 2{1:2 2:7} 2{1:3 2:1 4:1 5:1 5:2} 7{1:1}"
           "  9{1:1 2:4 3'a[]'}}}");
    trace_fixture_load(&f);
    int upid = (int)GET(heap_graph, upid, 0);
    ck_assert_int_eq(GET(heap_graph, truncated, 0), 1);
    ck_assert_uint_eq(ROWS(heap_graph_object), 2);
    ck_assert_int_eq(STAT(heap_graph_non_finalized_graph), 1);
    ck_assert_int_eq(STAT_AT(heap_graph_missing_packet, 0), 1);
    ck_assert_int_eq(STAT_AT(heap_graph_malformed_packet, upid), 2);  /* fields and references, a type */
    ck_assert_int_eq(STAT_AT(heap_graph_invalid_string_id, upid), 1); /* a location */
}
END_TEST

/* 1 refers to 5, of which nothing is told, and to 2, told later: rows are in the order of the first mention. */
START_TEST(objects_have_rows_from_their_first_mention)
{
    put(w, "1{8:10 10:9 56{1:30 6:0 2{1:1 2:1 3:8 5:5 5:2 9:2} 2{1:2 2:1 3:9 11:70 13:640} 7{1:2 2:3} 7{1:2 2:1}"
           " 7{1:2 2:5} 9{1:1 3'A' 7:4}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_graph_object), 3);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 0), 8);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 1), -1);
    ck_assert_int_eq(GET(heap_graph_object, type_id, 1), 0);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 2), 9);
    ck_assert_str_eq(TEXT(heap_graph_object, root_type, 0), "ROOT_VM_INTERNAL"); /* of the zygote's heap */
    ck_assert_str_eq(TEXT(heap_graph_object, root_type, 2), "ROOT_STICKY_CLASS");
    ck_assert_int_eq(GET(heap_graph_object, reachable, 1), 1);
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 0), 1);
    ck_assert_int_eq(GET(heap_graph_reference, field_name, 0), 0); /* an array's elements have no names */
    ck_assert_int_eq(GET(heap_graph_object, object_data_id, 0), COL_NULL);
    ck_assert_int_eq(GET(heap_graph_object, object_data_id, 2), 0);
    ck_assert_uint_eq(ROWS(heap_graph_primitive), 2);
    ck_assert_str_eq(TEXT(heap_graph_primitive, field_name, 0), "android.graphics.Bitmap.mId");
    ck_assert_int_eq(GET(heap_graph_primitive, long_value, 0), 70);
    ck_assert_int_eq(GET(heap_graph_primitive, int_value, 1), 640);
}
END_TEST

/* Two processes are dumped at one time: rows are in the order of the packets, not in that of the dumps' ends. */
START_TEST(dumps_at_one_time_have_rows_among_each_other)
{
    put(w, "1{8:10 10:8 56{1:30 5:1 6:0 2{1:1 2:1 3:8 4:1 5:2} 7{1:1 2:3}}}");
    put(w, "1{8:10 10:9 56{1:40 6:0 2{1:1 2:1 3:16 4:7 5:2} 2{1:2 2:1 3:17} 4{1:7 2'A.other'} 9{1:1 3'A'}}}");
    put(w, "1{8:10 10:8 56{1:30 6:1 2{1:3 2:1 3:9 4:1 5:1} 4{1:1 2'B.next'} 9{1:1 3'B'}}}");
    put(w, "1{64{1'com.b' 3{1'B' 2'Book' 3{1'next' 2'following'}}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_graph_object), 5);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 0), 8);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 1), -1);
    ck_assert_int_ne(GET(heap_graph_object, upid, 2), GET(heap_graph_object, upid, 0));
    ck_assert_int_eq(GET(heap_graph_object, self_size, 3), 17);
    ck_assert_int_eq(GET(heap_graph_object, self_size, 4), 9);
    ck_assert_int_eq(GET(heap_graph_object, reachable, 1), 1);
    ck_assert_int_eq(GET(heap_graph_object, reference_set_id, 4), 2);
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 1), 3);
    ck_assert_int_eq(GET(heap_graph_reference, owner_id, 2), 4);
    ck_assert_int_eq(GET(heap_graph_reference, owned_id, 2), 0);
    ck_assert_str_eq(TEXT(heap_graph_reference, field_name, 0), "B.next");
    ck_assert_str_eq(TEXT(heap_graph_reference, field_name, 1), "A.other");
    ck_assert_int_eq(GET(heap_graph_reference, deobfuscated_field_name, 1), 0);
    ck_assert_str_eq(TEXT(heap_graph_reference, deobfuscated_field_name, 2), "Book.following");
}
END_TEST

/* The class objects of Sub and Base stand in Class.superClass of each other. */
START_TEST(class_objects_tell_superclasses)
{
    put(w, "1{8:10 10:9 56{1:30 6:0 2{1:1 2:3 3:8 4:1 5:2} 2{1:2 2:4 3:8} 2{1:3 2:1 3:8}"
           " 4{1:1 2'java.lang.Class java.lang.Class.superClass'} 8{1:1 2'/a.jar'}"
           " 9{1:1 2:1 3'Sub' 7:1} 9{1:2 2:1 3'Base' 7:1} 9{1:3 2:1 3'java.lang.Class<Sub>' 7:5}"
           " 9{1:4 2:1 3'java.lang.Class<Base>' 7:5}}}");
    trace_fixture_load(&f);
    uint32_t sub = (uint32_t)GET(heap_graph_object, type_id, 2);
    ck_assert_str_eq(TEXT(heap_graph_class, name, sub), "Sub");
    ck_assert_str_eq(TEXT(heap_graph_class, name, (uint32_t)GET(heap_graph_class, superclass_id, sub)), "Base");
}
END_TEST

START_TEST(a_class_keeps_its_brackets_when_it_gets_its_name)
{
    put(w, "1{2{1{1:30 2:1 3'com.one:service' 5:77}}}");
    put(w,
        "1{8:10 10:9 56{1:30 6:0 2{1:1 2:1 4:1 5:1} 4{1:1 2'int a.b'} 9{1:1 3'java.lang.Class<a[][]>'} 9{1:2 3'z'}}}");
    put(w, "1{64{1'com.one' 3{1'a' 2'Long' 3{1'b' 2'name'}}}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(heap_graph_class, deobfuscated_name, 0), "java.lang.Class<Long[][]>");
    ck_assert_int_eq(GET(heap_graph_class, deobfuscated_name, 1), 0); /* not in the mapping */
    ck_assert_str_eq(TEXT(heap_graph_reference, deobfuscated_field_name, 0), "Long.name");
}
END_TEST

START_TEST(a_process_that_ran_out_of_memory_says_where)
{
    put(w, "1{8:10 10:1 131{1:30 2:77 3'com.one' 4'com.one' 5:100 6:20 7:5 9'no memory' 8{"
           "  1{1'void a.B.deep(int, long)' 2'B.java' 3:12} 1{1'a.B.main'}}}}");
    put(w, "1{8:10 10:2 56{1:30 2{1:1 2:1} 9{1:1 3'a'}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(heap_graph), 1); /* of both packets */
    ck_assert_str_eq(TEXT(heap_graph, dump_reason, 0), "OOME");
    ck_assert_int_eq(GET(heap_graph_java_oome_details, allocation_size_bytes, 0), 100);
    ck_assert_str_eq(TEXT(heap_graph_java_oome_details, error_msg, 0), "no memory");
    ck_assert_str_eq(stack_text(GET(heap_graph_thread_callsite, callsite_id, 0)), "a.B.main > a.B.deep");
    ck_assert_str_eq(TEXT(process, name, (uint32_t)GET(heap_graph, upid, 0)), "com.one");
    ck_assert_str_eq(TEXT(package_list, package_name, 0), "com.one");
}
END_TEST

/* --- mappings ----------------------------------------------------------------------------------------------------- */

START_TEST(mappings_come_one_by_one_or_in_columns)
{
    put(w, "1{8:10 10:1 68{1:30 2{1'/lib/a.so' 2:20 3:4}}}");
    packet_begin(&f, 20);
    put(w, "68{1:30 3{1'' 1'/lib/b.so (deleted)' 2'\x01\x01' 4'\x07\x08' 11'\x01\x02'}}");
    packet_end(&f);
    put(w, "1{8:30 10:1 68{1:30 3{1'x' 2'\x05' 4'\x01\x02'}}}"); /* a name that is not there, a column too long */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(profiler_smaps), 3);
    ck_assert_str_eq(TEXT(profiler_smaps, path, 0), "/lib/a.so");
    ck_assert_int_eq(GET(profiler_smaps, private_dirty_kb, 0), 4);
    ck_assert_str_eq(TEXT(profiler_smaps, path, 1), "/lib/b.so (deleted)");
    ck_assert_str_eq(TEXT(profiler_smaps, path_trimmed, 1), "/lib/b.so");
    ck_assert_int_eq(GET(profiler_smaps, is_deleted, 1), 1);
    ck_assert_int_eq(GET(profiler_smaps, aggregate_count, 2), 1);
    ck_assert_int_eq(GET(profiler_smaps, size_kb, 2), 8);
    ck_assert_int_eq(GET(profiler_smaps, private_dirty_kb, 2), 2);
    ck_assert_int_eq(GET(profiler_smaps, rss_kb, 2), 0);
    ck_assert_int_eq(STAT(smaps_parser_errors), 1);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

START_TEST(memory_may_run_out_anywhere)
{
    put_clocks();
    put_stacks();
    put(w, "1{47{1{1'com.one' 2:77}}}");
    for (int i = 0; i < 40; i++)
        put(w, "1{8:%d 10:1 66{1:%d 2:30 3:%d 4:%d 6:%d}}", 10 + i, i, 31 + i, 1 + i % 2, i);
    put(w, "1{8:60 10:1 37{5{1:30 9:910 15:905 2{1:1 2:100 5:1} 2{1:2 2:7 5:1}}}}");
    put(w, "1{8:70 10:1 135{1{2:30 3:31} 3{2:1 3:1} 5{1{1'main' 2'm.c' 3:3}} 9{2'bytes' 4'B' 6'all'} 11:7}}");
    put(w, "1{8:80 10:1 68{1:30 3{1'/lib/b.so' 2'\x01' 4'\x07'} 2{1'/lib/a.so'}}}");
    put(w, "1{8:90 10:1 131{1:30 2:77 3'com.one' 4'com.one' 5:100 8{1{1'void a.b(int)' 3:12}}}}");
    put(w, "1{8:90 10:1 56{1:30 5:1 2{1:1 2:1 4:1 5:2} 2{7:1 2:1} 7{1:1 2:8}}}");
    put(w, "1{8:90 10:1 56{1:30 6:1 4{1:1 2'int a.b'} 8{1:1 2'/x'} 9{1:1 2:1 3'a[]' 7:1}}}");
    put(w, "1{61{1'/bin/app' 2'\xab' 3{1:32 2{1'inner' 2'a.c' 3:7} 2{1'outer'}}}}");
    put(w, "1{64{1'com.one' 3{1'a' 2'Long' 3{1'b' 2'c'} 4{1'b' 2'd'}}}}");
    ck_assert_uint_gt(import_without_memory(pb_written(w)), 100);
}
END_TEST

Suite *profiling_suite(void);

Suite *profiling_suite(void)
{
    Suite *s = suite_create("profiling");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, samples_stand_on_shared_stacks);
    tcase_add_loop_test(c, what_a_stack_lacks_is_counted, 0, (int)(sizeof broken / sizeof *broken));
    tcase_add_test(c, a_broken_stack_counts_for_each_sample);
    tcase_add_test(c, dumps_of_a_heap_tell_what_changed);
    tcase_add_test(c, a_heap_that_shrinks_its_totals_is_malformed);
    tcase_add_test(c, a_dump_may_bring_its_own_strings);
    tcase_add_test(c, a_path_in_one_part_has_one_slash);
    tcase_add_test(c, symbols_name_the_functions_at_an_address);
    tcase_add_loop_test(c, a_timebase_has_the_name_and_unit_of_what_it_counts, 0, sizeof timebases / sizeof *timebases);
    tcase_add_test(c, a_line_tells_which_methods_were_merged);
    tcase_add_test(c, objects_have_rows_from_their_first_mention);
    tcase_add_test(c, dumps_at_one_time_have_rows_among_each_other);
    tcase_add_test(c, class_objects_tell_superclasses);
    tcase_add_test(c, build_ids_of_33_bytes_are_text_already);
    tcase_add_test(c, short_names_mean_what_their_package_says);
    tcase_add_test(c, programs_without_a_name_for_symbols_are_counted);
    tcase_add_test(c, stack_samples_bring_tasks_and_counters);
    tcase_add_test(c, streamed_samples_have_times_of_their_own);
    tcase_add_test(c, slices_know_where_they_began_and_ended);
    tcase_add_test(c, a_managed_heap_is_a_graph);
    tcase_add_test(c, a_heap_without_its_end_is_kept_as_far_as_it_goes);
    tcase_add_test(c, a_class_keeps_its_brackets_when_it_gets_its_name);
    tcase_add_test(c, samples_that_were_skipped_keep_their_counts);
    tcase_add_loop_test(c, samples_of_killed_recorders_are_missing_from_then_on, 0, 2);
    tcase_add_test(c, a_process_that_ran_out_of_memory_says_where);
    tcase_add_test(c, mappings_come_one_by_one_or_in_columns);
    tcase_add_test(c, memory_may_run_out_anywhere);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return s;
}
