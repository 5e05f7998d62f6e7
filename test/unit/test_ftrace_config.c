/* Tests reading FtraceConfig, and what sessions keep of the events they asked for. */
#include "kernel/event_filter.h"
#include "capture/probes/ftrace/ftrace_config.h"
#include "schema/config.pb-c.h"
#include "wire/pb_writer.h"

#include <check.h>

/* Every field that the schema has is either read or one of those that need no reading. */
START_TEST(every_field_of_the_schema_is_known)
{
    const ProtobufCMessageDescriptor *d = &mrd__ftrace_config__descriptor;
    static const uint32_t without_effect[] = {14}; /* symbols are always loaded at once */
    for (unsigned i = 0; i < d->n_fields; i++) {
        struct ftrace_config empty, c;
        struct pb_writer w = {0};
        struct pb_writer none = {0};
        uint32_t id = d->fields[i].id;
        bool numeric = d->fields[i].type != PROTOBUF_C_TYPE_STRING && d->fields[i].type != PROTOBUF_C_TYPE_MESSAGE;
        bool ignored = false;
        for (size_t k = 0; k < sizeof without_effect / sizeof *without_effect; k++)
            ignored |= without_effect[k] == id;
        if (numeric)
            pb_put_varint(&w, id, id == 32 ? 0 : id == 17 ? 2 : 7);
        else
            pb_put_bytes(&w, id, "\x0a\x00", 2); /* a text of two bytes, or a message whose field 1 is empty */
        ck_assert_int_eq(ftrace_config_parse(&empty, pb_written(&none), NULL), 0);
        ck_assert_int_eq(ftrace_config_parse(&c, pb_written(&w), NULL), 0);
        if (id == 12) /* on unless switched off: here it is */
            ck_assert(!c.compact_sched);
        memset(&empty.strings, 0, sizeof empty.strings);
        struct arena strings = c.strings;
        memset(&c.strings, 0, sizeof c.strings);
        ck_assert_msg((memcmp(&c, &empty, sizeof c) == 0) == ignored, "field %u (%s)", id, d->fields[i].name);
        c.strings = strings;
        ftrace_config_free(&c);
        pb_writer_free(&w);
    }
}
END_TEST

static const struct {
    const char *text;
    struct print_rule rules[2];
    size_t n;
    bool kept;
} prints[] = {
    {"anything", {{0}}, 0, true},
    {"anything", {{"any", NULL, false}}, 1, false},
    {"anything", {{"anything else", NULL, false}}, 1, true},
    {"anything", {{"thing", NULL, false}}, 1, true},
    {"anything", {{"any", NULL, true}, {"", NULL, false}}, 2, true},
    {"other", {{"any", NULL, true}, {"", NULL, false}}, 2, false},
    {"B|12|draw", {{"draw", "B", false}}, 1, false},
    {"B|12|redraw", {{"draw", "B", false}}, 1, true},
    {"E|12|draw", {{"draw", "B", false}}, 1, true},
    {"E|12|draw", {{"draw", "", false}}, 1, false},
    {"B|12", {{"", "B", false}}, 1, true},
    {"B|12|", {{"", "B", false}}, 1, false},
    {"BB|12|x", {{"x", "B", false}}, 1, true},
    {"", {{"", NULL, false}}, 1, false},
    {"", {{"", "", false}}, 1, true},
};

START_TEST(the_first_rule_that_matches_decides)
{
    ck_assert_int_eq(print_rules_allow(prints[_i].rules, prints[_i].n, slice_str(prints[_i].text)), prints[_i].kept);
}
END_TEST

START_TEST(calls_are_kept_by_number)
{
    struct call_set calls = {0};
    struct event_filter f = {.calls = &calls, .offset = 8};
    uint64_t event[2] = {0};
    static const uint64_t numbers[] = {0, 63, 64, SYSCALL_LIMIT - 1, SYSCALL_LIMIT, UINT64_MAX};
    call_set_add(&calls, 64);
    call_set_add(&calls, SYSCALL_LIMIT - 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        event[1] = numbers[i];
        ck_assert_int_eq(event_filter_keeps(&f, (const uint8_t *)event, 16),
                         numbers[i] == 64 || numbers[i] == SYSCALL_LIMIT - 1);
    }
    ck_assert(event_filter_keeps(&f, (const uint8_t *)event, 12)); /* too short: told by whoever reads it */
}
END_TEST

START_TEST(calls_have_names)
{
    const char *const *names = syscall_names("x86_64");
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(syscall_number(names, "read"), 0);
    ck_assert_int_eq(syscall_number(names, "sys_read"), 0);
    ck_assert_int_eq(syscall_number(names, "openat"), 257);
    ck_assert_int_eq(syscall_number(names, "sys_"), -1);
    ck_assert_int_eq(syscall_number(names, ""), -1);
    ck_assert_int_eq(syscall_number(syscall_names("aarch64"), "openat"), 56);
    ck_assert_ptr_null(syscall_names("pdp11"));
    ck_assert_int_eq(syscall_number(NULL, "read"), -1);
}
END_TEST

Suite *ftrace_config_suite(void);
Suite *ftrace_config_suite(void)
{
    Suite *s = suite_create("ftrace_config");
    TCase *c = tcase_create("config");
    tcase_add_test(c, every_field_of_the_schema_is_known);
    tcase_add_loop_test(c, the_first_rule_that_matches_decides, 0, (int)(sizeof prints / sizeof *prints));
    tcase_add_test(c, calls_are_kept_by_number);
    tcase_add_test(c, calls_have_names);
    suite_add_tcase(s, c);
    return s;
}
