/* The check's report as text, JSON, JUnit XML and GitHub workflow commands. */
#include "shell/commands/check.h"

#include <string.h>

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
            out_printf(o, "\n  The recorder said:\n%s", r->diagnostics);
    }
}

static void json_text(struct text_out *o, const char *s)
{
    out_json_string(o, s, strlen(s));
}

static void print_json(struct text_out *o, const struct check_result *results, size_t n)
{
    out_text(o, "[");
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        out_text(o, t ? ",\n {\"trace\": " : "\n {\"trace\": ");
        json_text(o, r->path);
        out_printf(o, ", \"ok\": %s", !r->failure && r->problems.failing == 0 ? "true" : "false");
        out_text(o, ", \"error\": ");
        if (r->failure)
            json_text(o, r->failure);
        else
            out_text(o, "null");
        out_text(o, ", \"problems\": [");
        for (size_t i = 0; i < r->problems.n; i++) {
            const struct problem *p = &r->problems.p[i];
            out_text(o, i ? ",\n  {\"severity\": " : "\n  {\"severity\": ");
            json_text(o, p->severity);
            out_text(o, ", \"name\": ");
            json_text(o, p->stat.name);
            out_printf(o, ", \"machine\": %u, \"machine_name\": ", p->stat.machine);
            if (p->stat.machine_name)
                json_text(o, p->stat.machine_name);
            else
                out_text(o, "null");
            if (p->stat.indexed) {
                out_text(o, ", ");
                json_text(o, p->index);
                out_printf(o, ": %lld", (long long)p->stat.idx);
            }
            out_printf(o,
                       ", \"value\": %lld, \"source\": \"%s\", \"allowed\": %s, \"hint\": ", (long long)p->stat.value,
                       p->stat.source, p->allowed ? "true" : "false");
            json_text(o, p->cure);
            out_text(o, "}");
        }
        out_text(o, r->problems.n ? "\n ]}" : "]}");
    }
    out_text(o, n ? "\n]\n" : "]\n");
}

static void xml_text(struct text_out *o, const char *s)
{
    static const char *const named[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&apos;"};
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (named[c])
            out_text(o, named[c]);
        else
            out_char(o, c < 0x20 && c != '\n' && c != '\t' ? '?' : (char)c);
    }
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
            xml_text(o, r->path);
            out_text(o, "\" name=\"health\"");
            if (r->failure) {
                out_text(o, ">\n    <error message=\"");
                xml_text(o, r->failure);
                out_text(o, "\"/>\n  </testcase>\n");
            } else {
                out_text(o, "/>\n");
            }
        }
        for (size_t i = 0; i < r->problems.n; i++) {
            const struct problem *p = &r->problems.p[i];
            out_text(o, "  <testcase classname=\"");
            xml_text(o, r->path);
            out_printf(o, "\" name=\"%s (%s)\"", p->stat.name, p->where);
            if (p->allowed) {
                out_text(o, "/>\n");
                continue;
            }
            out_printf(o, ">\n    <failure type=\"%s\" message=\"%lld\">", p->severity, (long long)p->stat.value);
            xml_text(o, p->cure);
            out_text(o, "</failure>\n  </testcase>\n");
        }
    }
    out_text(o, "</testsuite>\n");
}

/* Values and properties of a workflow command may not hold line ends or, in properties, its separators. */
static void github_text(struct text_out *o, const char *s, bool property)
{
    for (; *s; s++) {
        if (*s == '%' || *s == '\n' || *s == '\r' || (property && (*s == ':' || *s == ',')))
            out_printf(o, "%%%02X", (unsigned char)*s);
        else
            out_char(o, *s);
    }
}

static void print_github(struct text_out *o, const struct check_result *results, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        const struct check_result *r = &results[t];
        if (r->failure) {
            out_text(o, "::error file=");
            github_text(o, r->path, true);
            out_text(o, ",title=trace cannot be loaded::");
            github_text(o, r->failure, false);
            out_char(o, '\n');
        }
        for (size_t i = 0; i < r->problems.n; i++) {
            const struct problem *p = &r->problems.p[i];
            out_text(o, p->allowed ? "::notice file=" : "::error file=");
            github_text(o, r->path, true);
            out_text(o, ",title=");
            github_text(o, p->severity, true);
            out_printf(o, "::%s (%s): %lld. ", p->stat.name, p->where, (long long)p->stat.value);
            github_text(o, p->cure, false);
            out_char(o, '\n');
        }
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
