/* Tests pseudonyms: which strings rules match, where a secret is replaced, and that nothing of it is left. */
#include "cut/redact.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* A packet with a string in each kind of place. */
struct strings {
    const char *comm, *print, *name, *arg_value, *command[3], *unknown;
};

static void put_event(struct pb_writer *w, uint32_t event, uint32_t field, const char *text)
{
    size_t e = pb_begin(w, FTRACE_EVENT_BUNDLE_EVENT), own = pb_begin(w, event);
    pb_put_str(w, field, text);
    pb_end(w, own);
    pb_end(w, e);
}

static void put_packet(struct pb_writer *w, const struct strings *s)
{
    enum { UNKNOWN_FIELD = 5000 };
    size_t mark = pb_begin(w, TRACE_PACKET_FTRACE_EVENTS);
    if (s->comm)
        put_event(w, FTRACE_EVENT_SCHED_SWITCH, FTRACE_SCHED_SWITCH_NEXT_COMM, s->comm);
    if (s->print)
        put_event(w, FTRACE_EVENT_PRINT, FTRACE_PRINT_BUF, s->print);
    pb_end(w, mark);
    mark = pb_begin(w, TRACE_PACKET_TRACK_EVENT);
    if (s->name)
        pb_put_str(w, TRACK_EVENT_NAME, s->name);
    size_t arg = pb_begin(w, TRACK_EVENT_DEBUG_ANNOTATIONS);
    if (s->arg_value)
        pb_put_str(w, DEBUG_ANNOTATION_STRING_VALUE, s->arg_value);
    pb_end(w, arg);
    pb_end(w, mark);
    size_t tree = pb_begin(w, TRACE_PACKET_PROCESS_TREE), process = pb_begin(w, PROCESS_TREE_PROCESSES);
    for (size_t i = 0; i < 3 && s->command[i]; i++)
        pb_put_str(w, PROCESS_TREE_PROCESS_CMDLINE, s->command[i]);
    pb_end(w, process);
    pb_end(w, tree);
    if (s->unknown)
        pb_put_bytes(w, UNKNOWN_FIELD, s->unknown, strlen(s->unknown));
    ck_assert(!w->failed);
}

static bool holds(const struct pb_writer *w, const char *text)
{
    return w->n && memmem(w->p, w->n, text, strlen(text));
}

static struct redact_counts run(const char *rules, const struct strings *s, struct pb_writer *out)
{
    struct pb_writer in = {0};
    struct redactor *r;
    struct error err;
    put_packet(&in, s);
    ck_assert_msg(redactor_open(&r, rules, &err) == 0, "%s", err.text);
    redactor_gather(r, pb_written(&in));
    ck_assert_int_eq(redactor_ready(r, &err), 0);
    redactor_write(r, pb_written(&in), out);
    ck_assert(!out->failed);
    struct redact_counts n = redactor_counts(r);
    redactor_close(r);
    pb_writer_free(&in);
    return n;
}

static const struct {
    const char *rules;
    struct strings in;
    const char *gone[3], *stays[3];
} cases[] = {
    {"name nginx*", {.comm = "nginx", .name = "run nginx now"}, {"nginx"}, {"run x", " now"}},
    {"name nginx", {.comm = "nginx", .print = "B|7|from nginx.service\n"}, {"nginx"}, {"B|7|from x", ".service\n"}},
    {"name work*", {.print = "B|7|worker one\n", .name = "worker one"}, {"worker one"}, {"B|7|x"}},
    {"name *", {.print = "C|7|memory|12345\n", .comm = "7"}, {"memory"}, {"C|7|x", "|12345\n"}},
    {"name nginx", {.comm = "nginx2", .name = "nginxx"}, {NULL}, {"nginx2", "nginxx"}}, /* matches none as a whole */
    {"arg *@*", {.arg_value = "ann@example.com", .name = "mail to ann@example.com"}, {"ann@"}, {"mail to x"}},
    {"arg *@*", {.name = "ann@example.com"}, {NULL}, {"ann@example.com"}},
    {"command-line --pass=*", {.command = {"/bin/db", "--pass=abcd"}}, {"--pass", "abcd"}, {"/bin/db"}},
    {"command-line curl*token*",
     {.command = {"curl", "-X", "token:1234"}, .arg_value = "with token:1234"},
     {"token:1234"},
     {"curl", "-X", "with x"}},
    {"name /bin/secret", {.command = {"/bin/secret", "arg"}, .arg_value = "of /bin/secret"}, {"secret"}, {"arg"}},
    {"text alice", {.name = "hello alice", .unknown = "\1\2alice\3", .comm = "xalicex"}, {"alice"}, {"hello x", "\3"}},
    {"text al", {.name = "al et al, algebra"}, {"al et", " al,"}, {"algebra"}}, /* short: as a word */
    {"string /home/*", {.arg_value = "/home/ann/x", .comm = "sh"}, {"/home"}, {"sh"}},
    {"string long-name-of-a-thread\nname long-name*",
     {.comm = "long-name-of-a-", .name = "long-name-of-a-thread"},
     {"long-name"},
     {NULL}},
    {"text abcde\ntext defgh", {.name = "<abcdefgh>"}, {"abc", "fgh"}, {"<x", ">"}}, /* they overlap */
    {"text abcd\ntext abcdefgh", {.name = "abcdefghi abcdz"}, {"abcd", "efgh"}, {"i x"}},
    {"# a comment\n\n  name \t a b*  \r\nkey k", {.comm = "a bc"}, {"a bc"}, {NULL}},
};

START_TEST(secrets_go_from_every_place)
{
    struct pb_writer out = {0};
    struct redact_counts n = run(cases[_i].rules, &cases[_i].in, &out);
    for (size_t i = 0; i < 3 && cases[_i].gone[i]; i++)
        ck_assert_msg(!holds(&out, cases[_i].gone[i]), "%s: '%s' is left", cases[_i].rules, cases[_i].gone[i]);
    for (size_t i = 0; i < 3 && cases[_i].stays[i]; i++)
        ck_assert_msg(holds(&out, cases[_i].stays[i]), "%s: '%s' went", cases[_i].rules, cases[_i].stays[i]);
    ck_assert_int_eq(n.replaced > 0, cases[_i].gone[0] != NULL);
    pb_writer_free(&out);
}
END_TEST

START_TEST(pseudonyms_are_stable)
{
    const struct strings all = {.comm = "long-name-of-a-", .name = "long-name-of-a-thread", .arg_value = "other-long"};
    struct pb_writer a = {0}, b = {0}, c = {0};
    struct pb_cursor cursor;
    struct pb_field f, g, h, i;
    run("key one\nname long-name-of-a-thread", &all, &a);
    run("key one\nname long-*\nstring other-*", &all, &b);
    run("key two\nname long-name-of-a-thread", &all, &c);
    ck_assert(!slice_eq(pb_written(&a), pb_written(&c)));
    /* The name that the kernel cut off has the pseudonym of the whole one. */
    cursor = pb_cursor(pb_written(&a));
    struct slice bundle = {0}, event = {0};
    while (pb_next(&cursor, &f)) {
        bundle = f.id == TRACE_PACKET_FTRACE_EVENTS ? pb_bytes(&f) : bundle;
        event = f.id == TRACE_PACKET_TRACK_EVENT ? pb_bytes(&f) : event;
    }
    ck_assert(pb_find(bundle, FTRACE_EVENT_BUNDLE_EVENT, &g) && pb_find(pb_bytes(&g), FTRACE_EVENT_SCHED_SWITCH, &h) &&
              pb_find(pb_bytes(&h), FTRACE_SCHED_SWITCH_NEXT_COMM, &i) && pb_find(event, TRACK_EVENT_NAME, &f));
    ck_assert(slice_eq(pb_bytes(&i), pb_bytes(&f)));
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)f.u, (const char *)f.p);
    ck_assert_msg(holds(&b, name), "%s is not the pseudonym with other rules of the same key", name);
    pb_writer_free(&a);
    pb_writer_free(&b);
    pb_writer_free(&c);
}
END_TEST

START_TEST(lengths_of_unknown_fields_stay)
{
    const struct strings s = {.unknown = "\12\5alice\22\1b"};
    struct pb_writer in = {0}, out = {0};
    put_packet(&in, &s);
    run("text alice", &s, &out);
    ck_assert_uint_eq(in.n, out.n);
    ck_assert(!holds(&out, "alice") && holds(&out, "\12\5x") && holds(&out, "\22\1b"));
    pb_writer_free(&in);
    pb_writer_free(&out);
}
END_TEST

/* What is damaged may hold anything: it goes when a secret is near. */
START_TEST(damage_is_not_written)
{
    static const uint8_t bytes[] = "\xa2\x06\x05"
                                   "alice"
                                   "\xa2\x06\x7f"
                                   "al";
    struct pb_writer out = {0};
    struct redactor *r;
    struct error err;
    for (size_t len = 0; len < sizeof bytes; len++) {
        ck_assert_int_eq(redactor_open(&r, "text alice\nstring *", &err), 0);
        redactor_gather(r, slice_of(bytes, len));
        ck_assert_int_eq(redactor_ready(r, &err), 0);
        pb_writer_clear(&out);
        redactor_write(r, slice_of(bytes, len), &out);
        ck_assert_uint_eq(out.n, len < 8 ? 0 : 8);
        ck_assert(!holds(&out, "al"));
        redactor_close(r);
    }
    pb_writer_free(&out);
}
END_TEST

static const struct {
    const char *rules, *text;
} refused[] = {
    {"", "no rules"},
    {"# nothing\n", "no rules"},
    {"name a\nnames b", "line 2: unknown kind 'names'"},
    {"name", "line 1: nothing behind 'name'"},
    {"name a\nkey x\nkey y", "line 3: a second key"},
};

START_TEST(rules_are_refused_with_a_line)
{
    struct redactor *r;
    struct error err;
    ck_assert_int_lt(redactor_open(&r, refused[_i].rules, &err), 0);
    ck_assert_msg(strstr(err.text, refused[_i].text), "%s", err.text);
    ck_assert_ptr_null(r);
}
END_TEST

START_TEST(rules_that_replace_nothing_are_told)
{
    struct pb_writer out = {0};
    struct redact_counts n = run("name a\n\nname b\nname c", &(struct strings){.comm = "a"}, &out);
    ck_assert_uint_eq(n.unmatched, 2);
    ck_assert_uint_eq(n.unmatched_at, 3);
    ck_assert_uint_eq(n.strings, 1);
    pb_writer_free(&out);
}
END_TEST

Suite *redact_suite(void);
Suite *redact_suite(void)
{
    Suite *s = suite_create("redact");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, secrets_go_from_every_place, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, pseudonyms_are_stable);
    tcase_add_test(t, lengths_of_unknown_fields_stay);
    tcase_add_test(t, damage_is_not_written);
    tcase_add_loop_test(t, rules_are_refused_with_a_line, 0, sizeof refused / sizeof *refused);
    tcase_add_test(t, rules_that_replace_nothing_are_told);
    suite_add_tcase(s, t);
    return s;
}
