/* Which stats of a trace are problems, where they are, and how to cure them. */
#include "shell/commands/check.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const severities[] = {"info", "notice", "data_loss", "error"};
enum { N_SEVERITIES = sizeof severities / sizeof *severities };

enum counts_as { SAME, LOSS, TOLD };

static const struct {
    const char *pattern;
    enum counts_as counts_as;
    const char *index;
    const char *cure;
} hints[] = {
#define HINT(pattern, counts_as, index, cure) {pattern, counts_as, index, cure},
#include "shell/hints.def"
#undef HINT
};

static const char any_analysis[] = "The data contradicts itself or is damaged; trace_import_logs says where.";
static const char any_trace[] = "The recorder noted this; look at the data source's own log and settings.";

static int severity_of(const char *name, size_t len)
{
    for (int i = 0; i < N_SEVERITIES; i++)
        if (strlen(severities[i]) == len && strncmp(severities[i], name, len) == 0)
            return i;
    return -1;
}

int check_rules_parse(struct check_rules *r, const char *fail_on, const struct text_list *allow, struct error *err)
{
    *r = (struct check_rules){.allow = allow};
    for (const char *p = fail_on ? fail_on : "data_loss,error"; *p;) {
        size_t len = strcspn(p, ",");
        int s = severity_of(p, len);
        if (s >= 0)
            r->fail_on |= 1u << s;
        else if (len && !(len == 4 && strncmp(p, "none", 4) == 0))
            return error_set(err, -MRD_EINVALID, "--fail-on: '%.*s' is none of data_loss, error, notice, info, none",
                             (int)len, p);
        p += len;
        p += *p == ',';
    }
    for (size_t i = 0; i < allow->n; i++) {
        const char *value = strchr(allow->p[i], '=');
        char *end;
        errno = 0;
        if (value && (strtoll(value + 1, &end, 10) < 0 || errno || *end || end == value + 1))
            return error_set(err, -MRD_EINVALID, "--allow: '%s' is not NAME or NAME=N", allow->p[i]);
    }
    return 0;
}

static bool is_allowed(const struct tp_stat *s, const struct text_list *allow)
{
    for (size_t i = 0; i < allow->n; i++) {
        const char *value = strchr(allow->p[i], '=');
        char pattern[256];
        snprintf(pattern, sizeof pattern, "%.*s", (int)(value ? value - allow->p[i] : (ptrdiff_t)strlen(allow->p[i])),
                 allow->p[i]);
        if (fnmatch(pattern, s->name, 0) == 0 && (!value || s->value <= strtoll(value + 1, NULL, 10)))
            return true;
    }
    return false;
}

/* True: every check shows it, whatever --fail-on says. */
static bool explain(struct problem *p)
{
    p->severity = p->stat.severity;
    p->index = "index";
    p->cure = strcmp(p->stat.source, "analysis") == 0 ? any_analysis : any_trace;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (fnmatch(hints[i].pattern, p->stat.name, 0) == 0) {
            if (hints[i].counts_as == LOSS)
                p->severity = "data_loss";
            if (hints[i].index[0])
                p->index = hints[i].index;
            if (hints[i].counts_as == TOLD)
                p->severity = "notice";
            p->cure = hints[i].cure;
            return hints[i].counts_as == TOLD;
        }
    return false;
}

static void copy_shown(const char *from, char *to, size_t size)
{
    for (; *from && size > 1; from++, size--)
        *to++ = (unsigned char)*from < 0x20 || *from == 0x7f ? '?' : *from;
    *to = 0;
}

/* What people call a machine; its name comes from the trace, so that control characters are not shown. */
static void machine_label(const struct tp *tp, int64_t machine, char *text, size_t size)
{
    const char *name = machine >= 0 && machine <= UINT32_MAX ? tp_machine_name(tp, (uint32_t)machine) : NULL;
    if (name && *name)
        copy_shown(name, text, size);
    else if (machine == 0)
        snprintf(text, size, "host");
    else
        snprintf(text, size, "machine %" PRId64, machine);
}

/* The machine, and what the index numbers there; when it numbers machines or files, that is all there is to say. */
static void say_where(const struct tp *tp, struct problem *p)
{
    char machine[96];
    if (strcmp(p->index, "machine") == 0) {
        machine_label(tp, p->stat.idx, p->where, sizeof p->where);
        return;
    }
    if (p->stat.of_trace && !p->stat.indexed) {
        snprintf(p->where, sizeof p->where, "trace");
        return;
    }
    if (strcmp(p->index, "file") == 0) {
        snprintf(p->where, sizeof p->where, p->stat.idx ? "file %" PRId64 : "file", p->stat.idx);
        return;
    }
    machine_label(tp, p->stat.machine, machine, sizeof machine);
    if (p->stat.indexed)
        snprintf(p->where, sizeof p->where, "%s, %s %" PRId64, machine, p->index, p->stat.idx);
    else
        snprintf(p->where, sizeof p->where, "%s", machine);
}

int check_collect(struct tp *tp, const struct check_rules *rules, struct problems *out)
{
    struct tp_stat s;
    for (size_t it = 0; tp_stats_next(tp, &it, &s);) {
        struct problem p = {.stat = s};
        bool always_shown = explain(&p);
        int severity = severity_of(p.severity, strlen(p.severity));
        bool fails = severity >= 0 && rules->fail_on & 1u << severity;
        if (s.value <= 0 || (!fails && !always_shown))
            continue;
        say_where(tp, &p);
        p.allowed = !fails || is_allowed(&s, rules->allow);
        out->failing += !p.allowed;
        if (!vec_push(out, p))
            return -MRD_ENOMEM;
    }
    return 0;
}

char *check_diagnostics(struct tp *tp)
{
    static const char sql[] = "SELECT title || '; ' || remediation FROM __intrinsic_trace_diagnostics WHERE key GLOB "
                              "'recording_*' ORDER BY id";
    struct tp_result *r = NULL;
    char *lines = NULL;
    size_t n = 0, len;
    if (tp_query(tp, sql, &r) != 0)
        return NULL;
    while (tp_step(r) == 1) {
        const char *text = tp_text(r, 0, &len);
        char *longer = text ? mem_realloc(lines, n + len + 2) : NULL;
        if (!longer)
            break;
        lines = longer;
        memcpy(lines + n, text, len);
        for (size_t i = n; i < n + len; i++)
            if ((unsigned char)lines[i] < 0x20 || lines[i] == 0x7f)
                lines[i] = '?';
        memcpy(lines + n + len, "\n", 2);
        n += len + 1;
    }
    tp_result_close(r);
    return lines;
}

bool check_next_diagnostic(const char **lines, char **line)
{
    *line = NULL;
    if (!*lines || !**lines)
        return false;
    size_t len = strcspn(*lines, "\n");
    *line = mem_alloc(len + 1);
    if (!*line)
        return false;
    memcpy(*line, *lines, len);
    (*line)[len] = 0;
    *lines += len + ((*lines)[len] == '\n');
    return true;
}
