/* Tests what `util merge` reads from its command line. */
#include "base/alloc.h"
#include "shell/commands/merge_plan.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 2 }; /* positionals before it are the words of the command */

static struct merge_plan plan;
static struct error err;

static void push(struct text_list *l, const char *text)
{
    l->p = mem_realloc(l->p, (l->n + 1) * sizeof *l->p);
    l->p[l->n++] = text;
}

/* Reads flags written behind each other: "--flag value --flag value", each with one blank, and the traces. */
static int read_plan(const char *const *traces, const char *const *flags)
{
    struct options o = {0};
    push(&o.positionals, "merge");
    push(&o.positionals, "out.tar");
    for (; *traces; traces++)
        push(&o.positionals, *traces);
    for (; *flags; flags += 2) {
        struct text_list *list = strcmp(*flags, "--machine") == 0     ? &o.machine
                                 : strcmp(*flags, "--clock") == 0     ? &o.clock
                                 : strcmp(*flags, "--offset") == 0    ? &o.offset
                                 : strcmp(*flags, "--attribute") == 0 ? &o.attribute
                                                                      : NULL;
        if (list)
            push(list, flags[1]);
        else
            o.timeline = flags[1];
    }
    plan = (struct merge_plan){0};
    err = (struct error){0};
    int rc = merge_plan_read(&plan, &o, FIRST, &err);
    struct text_list *all[] = {&o.positionals, &o.machine, &o.clock, &o.offset, &o.attribute};
    for (size_t i = 0; i < 5; i++)
        mem_free(all[i]->p);
    return rc;
}

#define READ(...) read_plan(traces, (const char *const[]){__VA_ARGS__, NULL})

static const char *const traces[] = {"dir/web.pftrace", "dir/db.pftrace", "other/db.pftrace", "a=b.pftrace", NULL};

START_TEST(traces_and_their_names)
{
    const char *const same[] = {"a/t", "b/t", "c/t", "3-t", "x/perfetto_manifest.json", NULL};
    ck_assert_int_eq(read_plan(same, (const char *const[]){NULL}), 0);
    ck_assert_uint_eq(plan.files.n, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(plan.files.p[i].path, same[i]);
        ck_assert_ptr_null(strchr(plan.files.p[i].member, '/'));
        ck_assert_str_ne(plan.files.p[i].member, MERGE_MANIFEST);
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(plan.files.p[i].member, plan.files.p[k].member);
    }
    ck_assert_str_eq(plan.files.p[0].member, "t");
    ck_assert(!plan.has_timeline);
    merge_plan_free(&plan);
}
END_TEST

START_TEST(machines)
{
    ck_assert_int_eq(READ("--machine", "web.pftrace=front", "--machine", "dir/db.pftrace:3=back=end", "--machine",
                          "dir/db.pftrace:0=host", "--machine", "a=b.pftrace=x"),
                     0);
    ck_assert_str_eq(plan.files.p[0].machine, "front");
    ck_assert_ptr_null(plan.files.p[1].machine);
    ck_assert_uint_eq(plan.files.p[1].machines.n, 2);
    ck_assert_int_eq(plan.files.p[1].machines.p[0].id, 3);
    ck_assert_str_eq(plan.files.p[1].machines.p[0].name, "back=end");
    ck_assert_int_eq(plan.files.p[1].machines.p[1].id, 0);
    ck_assert_str_eq(plan.files.p[3].machine, "x");
    merge_plan_free(&plan);
}
END_TEST

START_TEST(clocks)
{
    ck_assert_int_eq(READ("--clock", "web.pftrace=MONOTONIC", "--clock", "dir/db.pftrace=REALTIME@front", "--timeline",
                          "other/db.pftrace=MONOTONIC_RAW"),
                     0);
    ck_assert_str_eq(plan.files.p[0].clock, "MONOTONIC");
    ck_assert_ptr_null(plan.files.p[0].clock_machine);
    ck_assert_str_eq(plan.files.p[1].clock, "REALTIME");
    ck_assert_str_eq(plan.files.p[1].clock_machine, "front");
    ck_assert(plan.has_timeline);
    ck_assert_uint_eq(plan.timeline, 2);
    ck_assert_str_eq(plan.timeline_clock, "MONOTONIC_RAW");
    ck_assert_str_eq(merge_file_clock(&plan.files.p[0]), "MONOTONIC");
    ck_assert_ptr_null(merge_file_clock(&plan.files.p[2])); /* its private one */
    plan.files.p[2].has_clocks = true;
    ck_assert_str_eq(merge_file_clock(&plan.files.p[2]), "BOOTTIME");
    merge_plan_free(&plan);
    ck_assert_int_eq(READ("--timeline", "a=b.pftrace"), 0); /* the '=' is of its name */
    ck_assert_uint_eq(plan.timeline, 3);
    ck_assert_str_eq(plan.timeline_clock, "BOOTTIME");
    merge_plan_free(&plan);
}
END_TEST

static const struct {
    const char *text;
    int64_t ns;
} times[] = {
    {"0", 0},
    {"1500", 1500},
    {"-1500", -1500},
    {"+20us", 20000},
    {"3.5ms", 3500000},
    {"-2.25s", -2250000000},
    {"7ns", 7},
    {".5s", 500000000},
    {"5.s", 5000000000},
    {"0.123456789s", 123456789},
    {"9223372036s", 9223372036000000000},
    {"9223372036854775807", INT64_MAX},
    {"-9223372036854775807", -INT64_MAX},
};

START_TEST(offsets)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char text[128];
        snprintf(text, sizeof text, "web.pftrace=%s@dir/db.pftrace", times[i].text);
        ck_assert_msg(READ("--offset", text) == 0, "%s: %s", text, err.text);
        ck_assert_msg(plan.files.p[0].offset_ns == times[i].ns, "%s: %lld", text, (long long)plan.files.p[0].offset_ns);
        ck_assert(plan.files.p[0].has_offset);
        ck_assert_uint_eq(plan.files.p[0].to, 1);
        ck_assert(!plan.files.p[1].has_offset);
        merge_plan_free(&plan);
    }
    ck_assert_int_eq(READ("--offset", "dir/db.pftrace=1s"), 0); /* to the first one */
    ck_assert_uint_eq(plan.files.p[1].to, 0);
    merge_plan_free(&plan);
}
END_TEST

START_TEST(attributes)
{
    ck_assert_int_eq(READ("--attribute", "build=12", "--attribute", "flags=-O2=x", "--attribute", "empty="), 0);
    ck_assert_uint_eq(plan.attributes.n, 3);
    ck_assert_str_eq(plan.attributes.p[0].key, "build");
    ck_assert_str_eq(plan.attributes.p[0].value, "12");
    ck_assert_str_eq(plan.attributes.p[1].value, "-O2=x");
    ck_assert_str_eq(plan.attributes.p[2].value, "");
    merge_plan_free(&plan);
}
END_TEST

static const struct {
    const char *flag, *value, *why;
} mistakes[] = {
    {"--machine", "web.pftrace", "--machine: 'web.pftrace' is not FILE=NAME or FILE:ID=NAME"},
    {"--machine", "=x", "--machine: '=x' is not FILE=NAME or FILE:ID=NAME"},
    {"--machine", "web.pftrace=", "--machine: 'web.pftrace=' is not FILE=NAME or FILE:ID=NAME"},
    {"--machine", "nobody=x", "--machine: 'nobody' is not one of the given traces"},
    {"--machine", "db.pftrace=x", "--machine: 'db.pftrace' matches several traces; give the whole path"},
    {"--machine", "nobody:3=x", "--machine: 'nobody' is not one of the given traces"},
    {"--machine", "web.pftrace:-3=x", "--machine: 'web.pftrace:-3' is not one of the given traces"},
    {"--machine", "web.pftrace:4294967296=x", "is not one of the given traces"},
    {"--machine", "web.pftrace:3x=x", "is not one of the given traces"},
    {"--clock", "web.pftrace=TAI", "--clock: 'TAI' is not a clock; use one of REALTIME,"},
    {"--clock", "web.pftrace=@x", "--clock: '' is not a clock"},
    {"--clock", "web.pftrace", "is not FILE=CLOCK or FILE=CLOCK@MACHINE"},
    {"--offset", "web.pftrace=soon", "--offset: invalid duration 'soon'; write it like -1500, 20us, 3.5ms or 2s"},
    {"--offset", "web.pftrace=1h", "invalid duration '1h'"},
    {"--offset", "web.pftrace=-", "invalid duration '-'"},
    {"--offset", "web.pftrace=.", "invalid duration '.'"},
    {"--offset", "web.pftrace=9223372036854775808", "invalid duration"},
    {"--offset", "web.pftrace=9223372037s", "invalid duration"},
    {"--offset", "web.pftrace=1s@nobody", "--offset: 'nobody' is not one of the given traces"},
    {"--offset", "dir/db.pftrace=1s@dir/db.pftrace", "cannot be relative to itself; name another trace after '@'"},
    {"--offset", "web.pftrace=1s", "--offset: web.pftrace cannot be relative to itself"}, /* it is the first one */
    {"--timeline", "nobody", "--timeline: 'nobody' is not one of the given traces"},
    {"--timeline", "web.pftrace=TAI", "--timeline: 'TAI' is not a clock"},
    {"--attribute", "word", "--attribute: 'word' is not KEY=VALUE"},
    {"--attribute", "=v", "--attribute: '=v' is not KEY=VALUE"},
};

START_TEST(mistakes_are_told)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        int rc = READ(mistakes[i].flag, mistakes[i].value);
        ck_assert_msg(rc < 0, "%s %s", mistakes[i].flag, mistakes[i].value);
        ck_assert_msg(strstr(err.text, mistakes[i].why) != NULL, "%s %s: %s", mistakes[i].flag, mistakes[i].value,
                      err.text);
        merge_plan_free(&plan);
    }
    const char *const twice[] = {"a/t", "a/t", NULL};
    ck_assert_int_lt(read_plan(twice, (const char *const[]){NULL}), 0);
    ck_assert_str_eq(err.text, "a/t is given twice");
    merge_plan_free(&plan);
}
END_TEST

Suite *merge_plan_suite(void);

Suite *merge_plan_suite(void)
{
    Suite *s = suite_create("merge_plan");
    TCase *t = tcase_create("core");
    tcase_add_test(t, traces_and_their_names);
    tcase_add_test(t, machines);
    tcase_add_test(t, clocks);
    tcase_add_test(t, offsets);
    tcase_add_test(t, attributes);
    tcase_add_test(t, mistakes_are_told);
    suite_add_tcase(s, t);
    return s;
}
