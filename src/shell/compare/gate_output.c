/* The gate's report as text, JSON, JUnit XML and GitHub workflow commands. */
#include "shell/compare/gate_output.h"

#include "base/json_writer.h"
#include "shell/report_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const statuses[] = {"ok", "FAILED", "NOT CHECKED"};
static const char *const comparisons[] = {"<=", "<", ">=", ">", "=", "!="};

enum { MESSAGE = 700 };

/* "is 12500, must be <= 11000", or why it was not checked. */
static const char *message(const struct gate_result *r, char text[MESSAGE])
{
    if (r->status == GATE_UNCHECKED)
        return r->why ? r->why : "out of memory";
    snprintf(text, MESSAGE, "is %.9g, must be %s %.9g", r->left, comparisons[r->rule->compare], r->right);
    return text;
}

static const char *title(const struct gate_result *r)
{
    return r->rule ? r->rule->text : "the trace";
}

static void print_text(struct text_out *o, const struct gate_report *g)
{
    char text[MESSAGE];
    const char *trace = NULL;
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_result *r = &g->p[i];
        if (!trace || strcmp(trace, r->trace) != 0)
            out_printf(o, "%s:\n", r->trace);
        trace = r->trace;
        out_printf(o, "  %-11s %s: ", statuses[r->status], title(r));
        out_text(o, message(r, text));
        out_char(o, '\n');
    }
}

static void put_number(struct json_writer *w, const char *key, const struct gate_result *r, double v)
{
    char text[40];
    int n = snprintf(text, sizeof text, "%.17g", v);
    json_put_key(w, key);
    if (r->status == GATE_UNCHECKED || !isfinite(v))
        json_put_null(w);
    else
        json_put_raw(w, text, (size_t)n);
}

static void print_json(struct text_out *o, const struct gate_report *g)
{
    static const char *const names[] = {"passed", "failed", "unchecked"};
    struct json_writer w = {.put = out_put, .ctx = o, .spaced = true};
    json_put_open(&w, '[');
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_result *r = &g->p[i];
        json_put_break(&w, "\n ");
        json_put_open(&w, '{');
        json_put_key(&w, "trace");
        json_put_str(&w, r->trace);
        json_put_key(&w, "rule");
        json_put_str(&w, r->rule ? r->rule->text : NULL);
        json_put_key(&w, "line");
        json_put_uint(&w, r->rule ? r->rule->line : 0);
        json_put_key(&w, "status");
        json_put_str(&w, names[r->status]);
        put_number(&w, "left", r, r->left);
        put_number(&w, "right", r, r->right);
        json_put_key(&w, "error");
        json_put_str(&w, r->status == GATE_UNCHECKED ? r->why : NULL);
        json_put_close(&w, '}');
    }
    json_put_break(&w, g->n ? "\n" : "");
    json_put_close(&w, ']');
    out_char(o, '\n');
}

static void print_junit(struct text_out *o, const struct gate_report *g)
{
    size_t of[3] = {0};
    char text[MESSAGE];
    for (size_t i = 0; i < g->n; i++)
        of[g->p[i].status]++;
    out_printf(o,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tp_shell gate\" tests=\"%zu\" "
               "failures=\"%zu\" errors=\"%zu\">\n",
               g->n, of[GATE_FAILED], of[GATE_UNCHECKED]);
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_result *r = &g->p[i];
        out_text(o, "  <testcase classname=\"");
        report_xml(o, r->trace);
        out_text(o, "\" name=\"");
        report_xml(o, title(r));
        if (r->status == GATE_PASSED) {
            out_text(o, "\"/>\n");
            continue;
        }
        out_text(o, r->status == GATE_FAILED ? "\">\n    <failure message=\"" : "\">\n    <error message=\"");
        report_xml(o, message(r, text));
        out_text(o, "\"/>\n  </testcase>\n");
    }
    out_text(o, "</testsuite>\n");
}

static void print_github(struct text_out *o, const struct gate_report *g)
{
    char text[MESSAGE];
    for (size_t i = 0; i < g->n; i++) {
        const struct gate_result *r = &g->p[i];
        out_text(o, r->status == GATE_PASSED ? "::notice file=" : "::error file=");
        report_github(o, r->rule ? g->rules_path : r->trace, true);
        if (r->rule)
            out_printf(o, ",line=%u", r->rule->line);
        out_text(o, ",title=");
        report_github(o, title(r), true);
        out_text(o, "::");
        report_github(o, r->trace, false);
        out_text(o, ": ");
        report_github(o, message(r, text), false);
        out_char(o, '\n');
    }
}

const struct gate_format gate_formats[GATE_FORMATS] = {
    {"text", print_text}, {"json", print_json}, {"junit", print_junit}, {"github", print_github}};
