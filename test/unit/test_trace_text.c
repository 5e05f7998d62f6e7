/* Tests traces as text and back. */
#include "wire/pb_cursor.h"
#include "wire/trace_text.h"

#include <check.h>
#include <string.h>

static const struct trace_message *trace(void)
{
    return trace_message_by_name("Trace");
}

static const struct {
    const char *bytes;
    size_t len;
    const char *text;
} cases[] = {
#define CASE(b, t)                                                                                                     \
    {                                                                                                                  \
        b, sizeof b - 1, t                                                                                             \
    }
    CASE("", ""),
    CASE("\x0a\x02\x40\x05", "packet {\n  timestamp: 5\n}\n"),
    CASE("\x0a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "packet {\n  trusted_uid: -1\n}\n"),
    CASE("\x0a\x06\x18\xff\xff\xff\xff\x0f", "packet {\n  3: 4294967295\n}\n"), /* not how -1 is written */
    CASE("\x0a\x04\x5a\x02\x48\x03", "packet {\n  track_event {\n    type: TYPE_INSTANT\n  }\n}\n"),
    CASE("\x0a\x04\x5a\x02\x48\x63", "packet {\n  track_event {\n    type: 99\n  }\n}\n"),
    CASE("\x0a\x08\x0a\x06\x22\x04\x0a\x02\x01\x02",
         "packet {\n  ftrace_events {\n    compact_sched {\n      switch_timestamp: [1, 2]\n    }\n  }\n}\n"),
    CASE("\x0a\x07\x0a\x05\x22\x03\x0a\x01\x80", /* a packed value that breaks off */
         "packet {\n  ftrace_events {\n    compact_sched {\n      1: \"\\200\"\n    }\n  }\n}\n"),
    CASE("\x0a\x09\x41\x05\0\0\0\0\0\0\0", "packet {\n  8: 0x0000000000000005\n}\n"), /* another wire type */
    CASE("\x0a\x06\x85\x7d\x01\0\0\0", "packet {\n  2000: 0x00000001\n}\n"),
    CASE("\x0a\x02\x5a\x7f", "packet: \"Z\\177\"\n"), /* longer than the packet */
    CASE("\x12\x02hi", "2: \"hi\"\n"),
};

START_TEST(bytes_become_text_and_come_back)
{
    struct pb_writer text = {0}, bytes = {0}, again = {0};
    struct error err = {0};
    ck_assert(trace_text_print(trace(), slice_of(cases[_i].bytes, cases[_i].len), 0, &text));
    ck_assert_msg(text.n == strlen(cases[_i].text) && (!text.n || memcmp(text.p, cases[_i].text, text.n) == 0), "%.*s",
                  (int)text.n, (const char *)text.p);
    ck_assert_msg(trace_text_parse(trace(), pb_written(&text), 0, &bytes, NULL, NULL, &err) == 0, "%s", err.text);
    ck_assert(trace_text_print(trace(), pb_written(&bytes), 0, &again));
    ck_assert_uint_eq(text.n, again.n);
    ck_assert(!text.n || memcmp(text.p, again.p, text.n) == 0);
    pb_writer_free(&text);
    pb_writer_free(&bytes);
    pb_writer_free(&again);
}
END_TEST

static const struct {
    const char *text, *error;
} wrong[] = {
    {"packet {\n timestamp: -1 }", "2:13: -1 is out of range"},
    {"packet { nothing: 1 }", "1:10: TracePacket has no field \"nothing\""},
    {"packet { ftrace_events { event { sched_switch { x: 1 } } } }", "1:49: the message has no field \"x\""},
    {"packet { track_event { type: NEVER } }", "1:30: \"NEVER\" is not a value of TrackEvent.Type"},
    {"packet { timestamp 1 }", "1:20: expected ':' after timestamp, found '1'"},
    {"packet { timestamp: 1", "1:22: expected '}', found end of text"},
    {"packet 5", "1:8: expected a string, found '5'"},
    {"0: 1", "1:1: not a field number"},
    {"536870912: 1", "1:1: not a field number"},
    {"packet { 77: 99999999999999999999 }", "1:14: expected an integer, found \"99999999999999999999\""},
    {"}", "1:1: expected the name of a field, found '}'"},
};

START_TEST(errors_say_where)
{
    struct pb_writer w = {0};
    struct error err = {0};
    ck_assert_int_eq(trace_text_parse(trace(), slice_str(wrong[_i].text), 0, &w, NULL, NULL, &err), -MRD_EFORMAT);
    ck_assert_str_eq(err.text, wrong[_i].error);
    pb_writer_free(&w);
}
END_TEST

START_TEST(unknown_names_can_be_skipped)
{
    struct pb_writer w = {0};
    struct error err = {0};
    const char *text = "packet { new { a: [1, {b: \"}\"}] c < d: -1 > } other: -5 name: 'x' timestamp: 5 }";
    ck_assert_int_eq(trace_text_parse(trace(), slice_str(text), TRACE_TEXT_SKIP_UNKNOWN, &w, NULL, NULL, &err), 0);
    struct pb_field packet, ts;
    ck_assert(pb_find(pb_written(&w), 1, &packet));
    ck_assert(pb_find(pb_bytes(&packet), 8, &ts));
    ck_assert_uint_eq(ts.u, 5);
    pb_writer_free(&w);
}
END_TEST

static int count_packets(void *ctx, struct pb_writer *out)
{
    pb_writer_clear(out);
    return ++*(int *)ctx == 2 ? -MRD_EIO : 0;
}

START_TEST(what_takes_the_packets_may_end_it)
{
    struct pb_writer w = {0};
    struct error err = {0};
    int n = 0;
    ck_assert_int_eq(
        trace_text_parse(trace(), slice_str("packet {} packet {} packet {}"), 0, &w, count_packets, &n, &err),
        -MRD_EIO);
    ck_assert_int_eq(n, 2);
    pb_writer_free(&w);
}
END_TEST

Suite *trace_text_suite(void);

Suite *trace_text_suite(void)
{
    Suite *s = suite_create("trace_text");
    TCase *t = tcase_create("text");
    tcase_add_loop_test(t, bytes_become_text_and_come_back, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, errors_say_where, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, unknown_names_can_be_skipped);
    tcase_add_test(t, what_takes_the_packets_may_end_it);
    suite_add_tcase(s, t);
    return s;
}
