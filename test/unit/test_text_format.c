/* Tests protobuf text format: what parses, what it becomes, where errors are said to be, and that printing comes back.
 */
#include "base/alloc.h"
#include "schema/config.pb-c.h"
#include "wire/text_format.h"

#include <check.h>
#include <string.h>

static const ProtobufCMessageDescriptor *const config = &mrd__trace_config__descriptor;

static Mrd__TraceConfig *parse(const char *text)
{
    struct pb_writer w = {0};
    struct error err = {0};
    int rc = text_parse(config, slice_str(text), 0, &w, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, err.text);
    Mrd__TraceConfig *c = mrd__trace_config__unpack(NULL, w.n, w.p);
    ck_assert_ptr_nonnull(c);
    pb_writer_free(&w);
    return c;
}

START_TEST(a_config_in_all_its_forms)
{
    Mrd__TraceConfig *c = parse("# a comment\n"
                                "buffers { size_kb: 0x400, fill_policy: RING_BUFFER; }\n"
                                "buffers: < size_kb: 010 fill_policy: 2 >\n"
                                "data_sources { config { name: 'linux' \".ftrace\" ftrace_config {\n"
                                "  ftrace_events: [\"a/b\", \"c\\x2fd\"] ftrace_events: \"e\\057f\\n\"\n"
                                "  compact_sched { enabled: true } } } }\n"
                                "trace_uuid_msb: -9223372036854775808 ; duration_ms: 4294967295\n"
                                "trigger_config { triggers { name: \"t\" skip_probability: 2.5e-1 } }");
    ck_assert_uint_eq(c->n_buffers, 2);
    ck_assert_uint_eq(c->buffers[0]->size_kb, 1024);
    ck_assert_uint_eq(c->buffers[1]->size_kb, 8);
    ck_assert_int_eq(c->buffers[1]->fill_policy, 2);
    const Mrd__DataSourceConfig *d = c->data_sources[0]->config;
    ck_assert_str_eq(d->name, "linux.ftrace");
    ck_assert_uint_eq(d->ftrace_config->n_ftrace_events, 3);
    ck_assert_str_eq(d->ftrace_config->ftrace_events[1], "c/d");
    ck_assert_str_eq(d->ftrace_config->ftrace_events[2], "e/f\n");
    ck_assert(d->ftrace_config->compact_sched->enabled);
    ck_assert_int_eq(c->trace_uuid_msb, INT64_MIN);
    ck_assert_uint_eq(c->duration_ms, UINT32_MAX);
    ck_assert_double_eq(c->trigger_config->triggers[0]->skip_probability, 0.25);
    mrd__trace_config__free_unpacked(c, NULL);
}
END_TEST

static const struct {
    const char *text, *error;
} wrong[] = {
    {"nope: 1", "1:1: TraceConfig has no field \"nope\""},
    {"duration_ms: 1\n  buffers { size: 2 }", "2:13: BufferConfig has no field \"size\""},
    {"duration_ms: 4294967296", "1:14: 4294967296 is out of range"},
    {"duration_ms: -1", "1:14: -1 is out of range"},
    {"duration_ms: ten", "1:14: expected an integer, found \"ten\""},
    {"duration_ms 5", "1:13: expected ':' after duration_ms, found '5'"},
    {"duration_ms: 1 duration_ms: 2", "1:16: duration_ms is given twice"},
    {"write_into_file: yes", "1:18: expected true or false, found \"yes\""},
    {"buffers { fill_policy: RING }", "1:24: \"RING\" is not a value of FillPolicy"},
    {"buffers { size_kb: 1", "1:21: expected '}' at the end of BufferConfig, found end of text"},
    {"buffers ( )", "1:9: expected '{' after buffers, found '('"},
    {"unique_session_name: \"x", "1:22: unterminated string"},
    {"unique_session_name: \"\\q\"", "1:24: unknown escape"},
    {"unique_session_name: 5", "1:22: expected a string, found '5'"},
    {"buffers { size_kb: 1 >", "1:22: expected the name of a field of BufferConfig, found '>'"},
    {"activate_triggers: [\"a\" \"b\", \"c\" d]", "1:34: expected ',' or ']', found 'd'"},
};

START_TEST(errors_say_where)
{
    struct pb_writer w = {0};
    struct error err = {0};
    ck_assert_int_eq(text_parse(config, slice_str(wrong[_i].text), 0, &w, &err), -MRD_EFORMAT);
    ck_assert_str_eq(err.text, wrong[_i].error);
    pb_writer_free(&w);
}
END_TEST

START_TEST(unknown_fields_can_be_skipped)
{
    struct pb_writer w = {0};
    struct error err = {0};
    const char *text = "new_field { a: [1, {b: \"}\"}] c < d: 1 > } other: -5 name: 'x' duration_ms: 7";
    ck_assert_int_eq(text_parse(config, slice_str(text), TEXT_SKIP_UNKNOWN, &w, &err), 0);
    ck_assert_uint_eq(w.n, 2);
    ck_assert_mem_eq(w.p, "\x18\x07", 2);
    pb_writer_free(&w);
}
END_TEST

START_TEST(what_is_printed_parses_to_the_same_bytes)
{
    const char *text = "buffers { size_kb: 1 } data_sources { config { name: \"a\\\"b\\001\" } } trace_uuid_lsb: -1 "
                       "trigger_config { triggers { skip_probability: 0.1 } } statsd_logging: STATSD_LOGGING_DISABLED";
    struct pb_writer a = {0}, b = {0}, printed = {0};
    struct error err = {0};
    ck_assert_int_eq(text_parse(config, slice_str(text), 0, &a, &err), 0);
    ck_assert(text_print(config, pb_written(&a), 0, &printed));
    ck_assert_msg(text_parse(config, pb_written(&printed), 0, &b, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(a.n, b.n);
    ck_assert_mem_eq(a.p, b.p, a.n);
    const char *want = "buffers {\n  size_kb: 1\n}\n";
    ck_assert_mem_eq(printed.p, want, strlen(want));
    pb_writer_free(&a);
    pb_writer_free(&b);
    pb_writer_free(&printed);
}
END_TEST

static int allocations_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return allocations_left-- > 0;
}

START_TEST(out_of_memory_is_an_error)
{
    const char *text =
        "buffers { size_kb: 1 } unique_session_name: \"a longer name than the first allocation will hold .....\"";
    for (int n = 0; n < 4; n++) {
        struct pb_writer w = {0};
        struct error err = {0};
        allocations_left = n;
        alloc_set_gate(gate, NULL);
        int rc = text_parse(config, slice_str(text), 0, &w, &err);
        alloc_set_gate(NULL, NULL);
        ck_assert_int_le(rc, 0);
        if (n == 0)
            ck_assert_int_eq(rc, -MRD_ENOMEM);
        pb_writer_free(&w);
    }
}
END_TEST

Suite *text_format_suite(void);
Suite *text_format_suite(void)
{
    Suite *s = suite_create("text_format");
    TCase *t = tcase_create("text");
    tcase_add_test(t, a_config_in_all_its_forms);
    tcase_add_loop_test(t, errors_say_where, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, unknown_fields_can_be_skipped);
    tcase_add_test(t, what_is_printed_parses_to_the_same_bytes);
    tcase_add_test(t, out_of_memory_is_an_error);
    suite_add_tcase(s, t);
    return s;
}
