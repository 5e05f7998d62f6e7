/* The check's report as text, JSON, JUnit XML and GitHub workflow commands. */
#include "base/json_writer.h"
#include "shell/commands/check.h"
#include "shell/report_text.h"

#include <string.h>

/* What the recorder said, one line after the other: `before`, the line, `after`. */
static void put_diagnostics(struct text_out *o, const struct check_result *r, const char *before, const char *after,
                            void (*put)(struct text_out *o, const char *line))
{
    const char *lines = r->diagnostics;
    for (char *line; check_next_diagnostic(&lines, &line); mem_free(line)) {
        out_text(o, before);
        put(o, line);
        out_text(o, after);
    }
}

static void say_diagnostics(struct text_out *o, const struct check_result *r)
{
    if (r->diagnostics)
        out_text(o, "  The recorder said:\n");
    put_diagnostics(o, r, "    ", "\n", out_text);
}

static void print_text(struct text_out *o, const struct check_result *results, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        if (r->failure) {
            out_printf(o, "%s: cannot be loaded\n  %s\n", r->path, r->failure);
            continue;
        }
        const struct problems *ps = &r->problems;
        if (ps->n == 0) {
            out_printf(o, "%s: ok: nothing was lost, no errors\n", r->path);
            say_diagnostics(o, r);
            continue;
        }
        out_printf(o, "%s: %s: %zu problem%s, %zu allowed\n\n", r->path, ps->failing ? "FAILED" : "ok", ps->failing,
                   ps->failing == 1 ? "" : "s", ps->n - ps->failing);
        out_printf(o, "  %-10s %-44s %-22s %s\n", "severity", "what", "where", "how many");
        for (size_t i = 0; i < ps->n; i++) {
            const struct problem *p = &ps->p[i];
            out_printf(o, "  %-10s %-44s %-22s %8lld%s\n", p->severity, p->stat.name, p->where,
                       (long long)p->stat.value, p->allowed ? "  (allowed)" : "");
        }
        out_text(o, "\n");
        for (size_t i = 0; i < ps->n; i++) {
            const struct problem *p = &ps->p[i];
            if (i > 0 && strcmp(ps->p[i - 1].stat.name, p->stat.name) == 0)
                continue;
            out_printf(o, "  %s:\n    %s\n", p->stat.name, p->cure);
        }
        if (r->diagnostics)
            out_text(o, "\n");
        say_diagnostics(o, r);
    }
}

static void put_problem(struct json_writer *w, const struct problem *p)
{
    json_put_break(w, "\n  ");
    json_put_open(w, '{');
    json_put_key(w, "severity");
    json_put_str(w, p->severity);
    json_put_key(w, "name");
    json_put_str(w, p->stat.name);
    json_put_key(w, "machine");
    json_put_uint(w, p->stat.machine);
    json_put_key(w, "machine_name");
    json_put_str(w, p->stat.machine_name);
    if (p->stat.indexed) {
        json_put_key(w, p->index);
        json_put_int(w, p->stat.idx);
    }
    json_put_key(w, "value");
    json_put_int(w, p->stat.value);
    json_put_key(w, "source");
    json_put_str(w, p->stat.source);
    json_put_key(w, "allowed");
    json_put_bool(w, p->allowed);
    json_put_key(w, "hint");
    json_put_str(w, p->cure);
    json_put_close(w, '}');
}

static void put_diagnostic_list(struct json_writer *w, const struct check_result *r)
{
    const char *lines = r->diagnostics;
    json_put_key(w, "recorder");
    json_put_open(w, '[');
    for (char *line; check_next_diagnostic(&lines, &line); mem_free(line))
        json_put_str(w, line);
    json_put_close(w, ']');
}

static void print_json(struct text_out *o, const struct check_result *results, size_t n)
{
    struct json_writer w = {.put = out_put, .ctx = o, .spaced = true};
    json_put_open(&w, '[');
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        json_put_break(&w, "\n ");
        json_put_open(&w, '{');
        json_put_key(&w, "trace");
        json_put_str(&w, r->path);
        json_put_key(&w, "ok");
        json_put_bool(&w, !r->failure && r->problems.failing == 0);
        json_put_key(&w, "error");
        json_put_str(&w, r->failure);
        put_diagnostic_list(&w, r);
        json_put_key(&w, "problems");
        json_put_open(&w, '[');
        for (size_t i = 0; i < r->problems.n; i++)
            put_problem(&w, &r->problems.p[i]);
        json_put_break(&w, r->problems.n ? "\n " : "");
        json_put_close(&w, ']');
        json_put_close(&w, '}');
    }
    json_put_break(&w, n ? "\n" : "");
    json_put_close(&w, ']');
    out_text(o, "\n");
}

/* What the recorder said about the trace, in its first test case. */
static void junit_diagnostics(struct text_out *o, const struct check_result *r)
{
    if (!r->diagnostics)
        return;
    out_text(o, "    <system-out>The recorder said:\n");
    put_diagnostics(o, r, "", "\n", report_xml);
    out_text(o, "</system-out>\n");
}

static void print_junit(struct text_out *o, const struct check_result *results, size_t n)
{
    size_t tests = 0, failures = 0, errors = 0;
    for (size_t t = 0; t < n; t++) {
        tests += results[t].problems.n ? results[t].problems.n : 1;
        failures += results[t].problems.failing;
        errors += results[t].failure != NULL;
    }
    out_printf(o,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<testsuite name=\"tp_shell check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
               tests, failures, errors);
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        if (r->problems.n == 0) {
            out_text(o, "  <testcase classname=\"");
            report_xml(o, r->path);
            out_text(o, "\" name=\"health\"");
            if (r->failure) {
                out_text(o, ">\n    <error message=\"");
                report_xml(o, r->failure);
                out_text(o, "\"/>\n  </testcase>\n");
            } else {
                out_text(o, ">\n");
                junit_diagnostics(o, r);
                out_text(o, "  </testcase>\n");
            }
        }
        for (size_t i = 0; i < r->problems.n; i++) {
            const struct problem *p = &r->problems.p[i];
            out_text(o, "  <testcase classname=\"");
            report_xml(o, r->path);
            out_printf(o, "\" name=\"%s (", p->stat.name);
            report_xml(o, p->where);
            out_text(o, ")\">\n");
            if (!p->allowed) {
                out_printf(o, "    <failure type=\"%s\" message=\"%lld\">", p->severity, (long long)p->stat.value);
                report_xml(o, p->cure);
                out_text(o, "</failure>\n");
            }
            if (i == 0)
                junit_diagnostics(o, r);
            out_text(o, "  </testcase>\n");
        }
    }
    out_text(o, "</testsuite>\n");
}

static void github_diagnostics(struct text_out *o, const struct check_result *r)
{
    const char *lines = r->diagnostics;
    for (char *line; check_next_diagnostic(&lines, &line); mem_free(line)) {
        out_text(o, r->problems.failing ? "::error file=" : "::notice file=");
        report_github(o, r->path, true);
        out_text(o, ",title=the recorder said::");
        report_github(o, line, false);
        out_char(o, '\n');
    }
}

static void print_github(struct text_out *o, const struct check_result *results, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        if (r->failure) {
            out_text(o, "::error file=");
            report_github(o, r->path, true);
            out_text(o, ",title=trace cannot be loaded::");
            report_github(o, r->failure, false);
            out_char(o, '\n');
        }
        for (size_t i = 0; i < r->problems.n; i++) {
            const struct problem *p = &r->problems.p[i];
            out_text(o, p->allowed ? "::notice file=" : "::error file=");
            report_github(o, r->path, true);
            out_text(o, ",title=");
            report_github(o, p->severity, true);
            out_printf(o, "::%s (", p->stat.name);
            report_github(o, p->where, false);
            out_printf(o, "): %lld. ", (long long)p->stat.value);
            report_github(o, p->cure, false);
            out_char(o, '\n');
        }
        github_diagnostics(o, r);
    }
}

static const struct check_format formats[] = {
    {"text", print_text}, {"json", print_json}, {"junit", print_junit}, {"github", print_github}};

const struct check_format *check_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
