/* Tests the report of `check` as text, JSON, JUnit XML and GitHub commands: what the trace says cannot break its form.
 */
#include "shell/commands/check.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct text_out out;
static char text[1 << 15];

static struct problem some_problems[] = {
    {.stat = {.name = "ftrace_lost",
              .value = 12,
              .indexed = true,
              .idx = 3,
              .machine = 1,
              .machine_name = "web1",
              .source = "trace"},
     .severity = "data_loss",
     .index = "cpu",
     .cure = "Use larger buffers.",
     .where = "web1, cpu 3"},
    {.stat = {.name = "ftrace_lost",
              .value = 1,
              .indexed = true,
              .idx = 4,
              .machine = 1,
              .machine_name = "web1",
              .source = "trace"},
     .severity = "data_loss",
     .index = "cpu",
     .cure = "Use larger buffers.",
     .where = "web1, cpu 4",
     .allowed = true},
    {.stat = {.name = "odd", .value = -5, .machine_name = "<&\"'%:,\n>", .source = "analysis"},
     .severity = "error",
     .index = "index",
     .cure = "Cure: 100%,\r\n<now> & \"here\"",
     .where = "<&\"'%:,\n>"},
};

static char said[] = "buffers are too small; use \"larger\" ones\nline <two> & 100%\n";

static const struct check_result results[] = {
    {.path = "good.pftrace"},
    {.path = "bad <1>,x:y.pftrace", .failure = "not a trace: 50% of \"it\""},
    {.path = "lossy.pftrace", .problems = {.p = some_problems, .n = 3, .failing = 2}, .diagnostics = said},
    {.path = "allowed.pftrace", .problems = {.p = some_problems + 1, .n = 1}},
};

static const char *report(const char *format, size_t first, size_t n)
{
    struct error err = {0};
    out_init(&out, memfd_create("report", MFD_CLOEXEC));
    check_format_find(format)->print(&out, results + first, n);
    ck_assert_int_eq(out_flush(&out, &err), 0);
    ssize_t len = pread(out.fd, text, sizeof text - 1, 0);
    ck_assert_int_ge(len, 0);
    text[len] = 0;
    close(out.fd);
    return text;
}

START_TEST(formats_have_names)
{
    static const char *const names[] = {"text", "json", "junit", "github"};
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(check_format_find(names[i])->name, names[i]);
    ck_assert_ptr_null(check_format_find("xml"));
    ck_assert_ptr_null(check_format_find(""));
}
END_TEST

START_TEST(as_text)
{
    ck_assert_str_eq(report("text", 0, 2), "good.pftrace: ok: nothing was lost, no errors\n"
                                           "bad <1>,x:y.pftrace: cannot be loaded\n  not a trace: 50% of \"it\"\n");
    const char *t = report("text", 2, 1);
    ck_assert_ptr_nonnull(strstr(t, "lossy.pftrace: FAILED: 2 problems, 1 allowed\n"));
    ck_assert_ptr_nonnull(strstr(t, "  data_loss  ftrace_lost "));
    ck_assert_ptr_nonnull(strstr(t, " web1, cpu 3 "));
    ck_assert_ptr_nonnull(strstr(t, "       12\n"));
    ck_assert_ptr_nonnull(strstr(t, "        1  (allowed)\n"));
    const char *cure = strstr(t, "  ftrace_lost:\n    Use larger buffers.\n"); /* once for both */
    ck_assert_ptr_nonnull(cure);
    ck_assert_ptr_null(strstr(cure + 1, "  ftrace_lost:\n"));
    ck_assert_ptr_nonnull(strstr(t, "  The recorder said:\n    buffers are too small; use \"larger\" ones\n"
                                    "    line <two> & 100%\n"));
    t = report("text", 3, 1);
    ck_assert_ptr_nonnull(strstr(t, "allowed.pftrace: ok: 0 problems, 1 allowed\n"));
}
END_TEST

START_TEST(as_json)
{
    const char *t = report("json", 0, 0);
    ck_assert_str_eq(t, "[]\n");
    t = report("json", 0, 4);
    ck_assert_ptr_nonnull(strstr(t, "{\"trace\": \"good.pftrace\", \"ok\": true, \"error\": null, \"recorder\": [], "
                                    "\"problems\": []}"));
    ck_assert_ptr_nonnull(strstr(t, "\"ok\": false, \"error\": \"not a trace: 50% of \\\"it\\\"\""));
    ck_assert_ptr_nonnull(strstr(t, "{\"severity\": \"data_loss\", \"name\": \"ftrace_lost\", \"machine\": 1, "
                                    "\"machine_name\": \"web1\", \"cpu\": 3, \"value\": 12, \"source\": \"trace\", "
                                    "\"allowed\": false, \"hint\": \"Use larger buffers.\"}"));
    ck_assert_ptr_nonnull(strstr(t, "\"machine_name\": \"<&\\\"'%:,\\n>\", \"value\": -5")); /* without an index */
    ck_assert_ptr_nonnull(strstr(t, "\"allowed\": true"));
    ck_assert_ptr_nonnull(strstr(t, "\"recorder\": [\"buffers are too small; use \\\"larger\\\" ones\", "
                                    "\"line <two> & 100%\"]"));
}
END_TEST

/* Elements open and close, and nothing of the trace is taken for one. */
START_TEST(as_junit)
{
    const char *t = report("junit", 0, 4);
    ck_assert_ptr_nonnull(strstr(t, "<testsuite name=\"tp_shell check\" tests=\"6\" failures=\"2\" errors=\"1\">"));
    ck_assert_ptr_nonnull(strstr(t, "  <testcase classname=\"good.pftrace\" name=\"health\">\n  </testcase>\n"));
    ck_assert_ptr_nonnull(strstr(t, "classname=\"bad &lt;1&gt;,x:y.pftrace\" name=\"health\">\n"
                                    "    <error message=\"not a trace: 50% of &quot;it&quot;\"/>\n"));
    ck_assert_ptr_nonnull(strstr(t, "name=\"ftrace_lost (web1, cpu 3)\">\n"
                                    "    <failure type=\"data_loss\" message=\"12\">Use larger buffers.</failure>\n"
                                    "    <system-out>The recorder said:\nbuffers are too small; use "
                                    "&quot;larger&quot; ones\nline &lt;two&gt; &amp; 100%\n</system-out>\n"));
    ck_assert_ptr_nonnull(strstr(t, "name=\"ftrace_lost (web1, cpu 4)\">\n  </testcase>\n")); /* allowed */
    ck_assert_ptr_nonnull(strstr(t, "name=\"odd (&lt;&amp;&quot;&apos;%:,\n&gt;)\">"));
    unsigned open = 0, close_tags = 0;
    for (const char *p = t; (p = strstr(p, "<testcase ")) != NULL; p++)
        open++;
    for (const char *p = t; (p = strstr(p, "</testcase>")) != NULL; p++)
        close_tags++;
    ck_assert_uint_eq(open, 6);
    ck_assert_uint_eq(close_tags, 6);
}
END_TEST

/* One command a line: a line end in a text, or a separator in a property, would begin another one. */
START_TEST(as_github)
{
    const char *t = report("github", 0, 4);
    ck_assert_str_eq(
        t, "::error file=bad <1>%2Cx%3Ay.pftrace,title=trace cannot be loaded::not a trace: 50%25 of \"it\"\n"
           "::error file=lossy.pftrace,title=data_loss::ftrace_lost (web1, cpu 3): 12. Use larger buffers.\n"
           "::notice file=lossy.pftrace,title=data_loss::ftrace_lost (web1, cpu 4): 1. Use larger buffers.\n"
           "::error file=lossy.pftrace,title=error::odd (<&\"'%25:,%0A>): -5. Cure: 100%25,%0D%0A<now> & \"here\"\n"
           "::error file=lossy.pftrace,title=the recorder said::buffers are too small; use \"larger\" ones\n"
           "::error file=lossy.pftrace,title=the recorder said::line <two> & 100%25\n"
           "::notice file=allowed.pftrace,title=data_loss::ftrace_lost (web1, cpu 4): 1. Use larger buffers.\n");
}
END_TEST

START_TEST(rules)
{
    static const struct {
        const char *fail_on;
        unsigned set; /* 1 info, 2 notice, 4 data_loss, 8 error */
        const char *why;
    } rows[] = {
        {NULL, 4 | 8, NULL},
        {"error", 8, NULL},
        {"info,notice", 1 | 2, NULL},
        {"none", 0, NULL},
        {"", 0, NULL},
        {"error,,error", 8, NULL},
        {"none,error", 8, NULL},
        {"errors", 0, "'errors' is none of"},
        {"error;notice", 0, "'error;notice' is none of data_loss, error, notice, info, none"},
    };
    struct check_rules r;
    struct text_list none = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = {0};
        int rc = check_rules_parse(&r, rows[i].fail_on, &none, &err);
        ck_assert_int_eq(rc < 0, rows[i].why != NULL);
        if (rows[i].why)
            ck_assert_msg(strstr(err.text, rows[i].why) != NULL, "%s", err.text);
        else
            ck_assert_uint_eq(r.fail_on, rows[i].set);
    }
    static const struct {
        const char *allow;
        bool ok;
    } allows[] = {{"name", true},
                  {"na*=5", true},
                  {"name=0", true},
                  {"name=", false},
                  {"name=-1", false},
                  {"name=5x", false},
                  {"name=99999999999999999999", false}};
    for (size_t i = 0; i < sizeof allows / sizeof *allows; i++) {
        struct error err = {0};
        const char *list[] = {allows[i].allow};
        struct text_list l = {.p = list, .n = 1};
        int rc = check_rules_parse(&r, NULL, &l, &err);
        ck_assert_msg((rc == 0) == allows[i].ok, "%s: %s", allows[i].allow, err.text);
    }
}
END_TEST

Suite *check_report_suite(void);

Suite *check_report_suite(void)
{
    Suite *s = suite_create("check_report");
    TCase *t = tcase_create("core");
    tcase_add_test(t, formats_have_names);
    tcase_add_test(t, as_text);
    tcase_add_test(t, as_json);
    tcase_add_test(t, as_junit);
    tcase_add_test(t, as_github);
    tcase_add_test(t, rules);
    suite_add_tcase(s, t);
    return s;
}
