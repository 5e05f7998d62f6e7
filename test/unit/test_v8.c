/* V8's code: what was compiled, where it lay and when, and the frames of stacks that lie in it. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

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

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

/* Process 30, whose isolate 1 makes code in [4096, 8192) but for V8's own in [5000, 5100). Function 1 is `f` at line
 * 12 of a.js, function 2 has no name and stands 7 bytes into it. Stack 1 is one frame, `other`, at 4096 + rel_pc; its
 * mapping is [4096, 5000). */
static void put_isolate(void)
{
    PACKET(1,
           "13:1 59{99{1:31}} 12{35{1:1 2:30 3:1 4{1:4096 2:4096 3:4200 4:1} 5:5000 6:100}"
           "  35{1:2 2:30 3:2}"
           "  33{1:1 2:9 3:1 4{1'a.js'} 5{1'text'}} 31{1:1 2'f'} 31{1:2 2''}"
           "  32{1:1 2:1 3:1 5:1 7:12 8:3} 32{1:2 2:2 3:1 4:1 5:99 6:7} 32{1:3 2:1 3:9}"
           "  34{1:1 2:4 3'w.wasm' 4'abc'}"
           "  5{1:1 2'other'} 17{1:1 2'jit'} 19{1:1 4:4096 5:5000 7:1}"
           "  6{1:1 2:1 3:1 4:%d} 6{1:2 3:1 4:800} 7{1:1 2:1} 7{1:2 2:2}}",
           4);
}

START_TEST(code_has_isolates_scripts_and_functions)
{
    put_isolate();
    PACKET(10, "99{1:1 3:1 4:2 5:4096 6:16 7'xyz'}");
    PACKET(20, "99{1:1 2:32 3:2 4:1 5:9000 6:8 8'by'}"); /* bytecode, among the data */
    PACKET(30, "100{1:1 3'stub' 4:3 6:5000 7:100}");
    PACKET(40, "101{1:1 3:1 4'wf' 5:1 6:5 7:6000 8:10}");
    PACKET(50, "102{1:1 3{2'r+'} 4:7000 5:10}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(v8_isolate), 1);
    ck_assert_int_eq(GET(v8_isolate, shared_code_range, 0), 1);
    ck_assert_int_eq(GET(v8_isolate, embedded_blob_code_copy_start_address, 0), 4200);
    ck_assert_uint_eq(ROWS(v8_js_script), 1);
    ck_assert_str_eq(TEXT(v8_js_script, script_type, 0), "NORMAL");
    ck_assert_str_eq(TEXT(v8_js_script, source, 0), "text");
    ck_assert_uint_eq(ROWS(v8_js_function), 2);
    ck_assert_int_eq(GET(v8_js_function, line, 0), 12);
    ck_assert_int_eq(GET(v8_js_function, col, 0), 3);
    ck_assert_str_eq(TEXT(v8_js_function, kind, 0), "NORMAL_FUNCTION");
    ck_assert_str_eq(TEXT(v8_js_function, name, 1), "");
    ck_assert_str_eq(TEXT(v8_js_function, kind, 1), "UNKNOWN");
    ck_assert_int_eq(GET(v8_js_function, line, 1), 1);
    ck_assert_int_eq(GET(v8_js_function, col, 1), 7);
    ck_assert_int_eq(GET(v8_js_function, is_toplevel, 1), 1);
    ck_assert_uint_eq(ROWS(v8_js_code), 2);
    ck_assert_str_eq(TEXT(v8_js_code, tier, 0), "SPARKPLUG");
    ck_assert_int_eq(GET(v8_js_code, jit_code_id, 0), 0);
    ck_assert_int_eq(GET(v8_js_code, bytecode_base64, 0), 0);
    ck_assert_int_eq(GET(v8_js_code, jit_code_id, 1), COL_NULL);
    ck_assert_str_eq(TEXT(v8_js_code, bytecode_base64, 1), "Ynk=");
    ck_assert_str_eq(TEXT(v8_internal_code, code_type, 0), "BUILTIN");
    ck_assert_str_eq(TEXT(v8_wasm_script, wire_bytes_base64, 0), "YWJj");
    ck_assert_str_eq(TEXT(v8_wasm_code, tier, 0), "LIFTOFF");
    ck_assert_int_eq(GET(v8_wasm_code, code_offset_in_module, 0), 5);
    ck_assert_str_eq(TEXT(v8_regexp_code, pattern, 0), "\xe2\xad\xb2"); /* "r+" read as one unit of UTF-16: U+2B72 */
    ck_assert_uint_eq(ROWS(jit_code), 4);
    ck_assert_str_eq(TEXT(jit_code, native_code_base64, 0), "eHl6");
    ck_assert_str_eq(TEXT(jit_code, native_code_base64, 1), "");
    ck_assert_str_eq(TEXT(jit_code, function_name, 3), "[RegExp]");
    ck_assert_int_eq(GET(thread, tid, (uint32_t)GET(jit_code, utid, 0)), 31);
    ck_assert_str_eq(TEXT(stack_profile_symbol, source_file, 0), "a.js");
    ck_assert_int_eq(GET(stack_profile_symbol, line_number, 0), 12);
}
END_TEST

START_TEST(code_that_lacks_something_is_counted)
{
    put_isolate();
    PACKET(10, "99{1:7 3:1 4:2 5:4096 6:16}"); /* an isolate that nothing has defined */
    PACKET(11, "99{1:2 3:1 4:2 5:4096 6:16}"); /* one without a range, */
    PACKET(12, "100{1:2 3'x' 6:4096 7:1}");    /* which counts once */
    PACKET(13, "99{1:1 3:9 4:2 5:4096 6:16}"); /* an unknown function */
    PACKET(14, "99{1:1 3:3 4:2 5:4096 6:16}"); /* its script is unknown */
    PACKET(15, "99{1:1 3:1 5:4096 6:16}");     /* an unknown tier */
    PACKET(16, "99{1:1 3:1 4:2 5:4990 6:16}"); /* half in V8's own code */
    PACKET(17, "100{1:1 3'x' 6:4096}");        /* no size */
    PACKET(18, "101{1:1 3:8 7:6000 8:10}");    /* an unknown script */
    PACKET(19, "100{1:1 3'x' 6:18446744073709551615 7:18446744073709551615}");
    PACKET(20, "13:1 12{35{1:1 2:30 3:1 4{1:4096 2:4096}}}");
    PACKET(21, "100{1:1 3'x' 6:4096 7:1}"); /* no thread */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(jit_code), 0);
    ck_assert_uint_eq(ROWS(v8_js_code), 0);
    ck_assert_uint_eq(ROWS(v8_isolate), 1);
    ck_assert_int_eq(STAT(v8_intern_errors), 4);
    ck_assert_int_eq(STAT(v8_isolate_has_no_code_range), 1);
    ck_assert_int_eq(STAT(v8_unknown_code_type), 1);
    ck_assert_int_eq(STAT(v8_no_code_range), 2);
    ck_assert_int_eq(STAT(v8_code_load_missing_code_range), 1);
    ck_assert_int_eq(STAT(v8_no_defaults), 1);
}
END_TEST

START_TEST(frames_are_named_by_the_code_of_their_time)
{
    put_isolate();
    PACKET(3, "66{1:0 2:30 3:31 4:1}"); /* before it is known that the process makes code */
    PACKET(4, "100{1:1 3'first' 4:3 6:8000 7:4}");
    PACKET(5, "66{1:0 2:30 3:31 4:1}"); /* nothing was told of this address: the frame's own name */
    PACKET(6, "66{1:0 2:30 3:31 4:2}"); /* nor of this one, and it has none */
    PACKET(7, "66{1:0 2:30 3:31 4:2}");
    PACKET(10, "99{1:1 3:1 4:2 5:4096 6:16}");
    PACKET(11, "66{1:0 2:30 3:31 4:1}");
    PACKET(12, "66{1:0 2:30 3:31 4:1}");
    PACKET(20, "100{1:1 3'stub' 4:3 6:4100 7:4}"); /* in its place */
    PACKET(21, "66{1:0 2:30 3:31 4:1}");
    PACKET(22, "66{1:0 2:40 3:41 4:1}"); /* another process, which makes no code */
    PACKET(30, "103{1:1 3:4100 4:4896 5:4}");
    PACKET(31, "66{1:0 2:30 3:31 4:2}");      /* where it is now: 4096 + 800 */
    PACKET(32, "103{1:1 3:4100 4:5000 5:4}"); /* nothing lies there any more */
    trace_fixture_load(&f);
    static const char *const names[] = {"other", "other", "[+0x320]", "[+0x320]", "f", "f", "stub", "other", "stub"};
    ck_assert_uint_eq(ROWS(profiler_sample), 9);
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t callsite = (uint32_t)GET(profiler_sample, callsite_id, i);
        ck_assert_str_eq(TEXT(stack_profile_frame, name, (uint32_t)GET(stack_profile_callsite, frame_id, callsite)),
                         names[i]);
    }
    ck_assert_int_eq(STAT(jit_unknown_frame), 1); /* the first one was there before it was known to be one */
    ck_assert_uint_eq(ROWS(jit_frame), 2); /* one of f, one of the stub, that moved with it */
    uint32_t frame = (uint32_t)GET(jit_frame, frame_id, 0);
    ck_assert_int_eq(GET(stack_profile_frame, symbol_set_id, frame), 0);
    ck_assert_int_eq(GET(stack_profile_frame, symbol_set_id, (uint32_t)GET(jit_frame, frame_id, 1)), COL_NULL);
    ck_assert_int_eq(GET(jit_code, estimated_delete_ts, 1), 20);
    ck_assert_int_eq(GET(jit_code, estimated_delete_ts, 2), COL_NULL);
    ck_assert_int_eq(GET(jit_code, start_address, 2), 4100);
}
END_TEST

Suite *v8_suite(void);

Suite *v8_suite(void)
{
    Suite *s = suite_create("v8");
    TCase *c = tcase_create("code");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, code_has_isolates_scripts_and_functions);
    tcase_add_test(c, code_that_lacks_something_is_counted);
    tcase_add_test(c, frames_are_named_by_the_code_of_their_time);
    suite_add_tcase(s, c);
    return s;
}
