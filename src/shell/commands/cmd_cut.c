/* tp_shell cut: a piece of a recording as a recording of its own. */
#include "base/file.h"
#include "shell/commands/compare_load.h"
#include "shell/ticker.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bounds {
    int64_t from, to;   /* the window */
    int64_t begin, end; /* the recording */
    VEC(uint32_t) machines;
    VEC(uint32_t) processes;
};

/* "1.5s", "-20ms": from the recording's begin, or its end; a number alone is a trace time. */
static int read_time(const char *flag, const char *text, const struct bounds *b, int64_t *ts, struct error *err)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (end != text && !*end && !errno) {
        *ts = whole;
        return 0;
    }
    double v = strtod(text, &end);
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) != 0 || !isfinite(v) || fabs(v * units[i].ns) > 9e18)
            continue;
        if (!__builtin_add_overflow(text[0] == '-' ? b->end : b->begin, (int64_t)(v * units[i].ns), ts))
            return 0;
    }
    return error_set(err, -MRD_EINVALID,
                     "%s: invalid time '%.100s': use a trace time in ns as in the column ts, or the time since the "
                     "recording began, with ns, us, ms or s (1.5s); -2s: before its end",
                     flag, text);
}

static int one_row(struct shell *sh, const char *sql, int64_t *a, int64_t *b, struct error *err)
{
    struct tp_result *r = NULL;
    int rc = tp_query(sh->tp, sql, &r);
    if (rc == 0 && (rc = tp_step(r)) == 1) {
        *a = tp_int64(r, 0);
        *b = tp_int64(r, 1);
        rc = 0;
    }
    tp_result_close(r);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

/* The window from the first ts to the last ts + dur of the rows. */
static int read_around(struct shell *sh, const char *sql, struct bounds *b, struct error *err)
{
    struct tp_result *r = NULL;
    int ts = -1, dur = -1, rc = tp_query(sh->tp, sql, &r);
    bool any = false;
    for (int i = 0; rc == 0 && i < tp_columns(r); i++) {
        ts = strcmp(tp_column_name(r, i), "ts") == 0 ? i : ts;
        dur = strcmp(tp_column_name(r, i), "dur") == 0 ? i : dur;
    }
    if (rc == 0 && ts < 0) {
        tp_result_close(r);
        return error_set(err, -MRD_EINVALID,
                         "--around: the query has no column ts; e.g. 'select ts, dur from slice "
                         "where name = ''frame'''");
    }
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        rc = 0;
        if (tp_column_type(r, ts) == TP_NULL)
            continue;
        int64_t from = tp_int64(r, ts), length = dur < 0 ? 0 : tp_int64(r, dur), to;
        if (length < 0 || __builtin_add_overflow(from, length, &to)) /* it did not end */
            to = b->end;
        to += to < INT64_MAX; /* the window ends before `to` */
        b->from = !any || from < b->from ? from : b->from;
        b->to = !any || to > b->to ? to : b->to;
        any = true;
    }
    tp_result_close(r);
    if (rc < 0)
        return session_error(sh, rc, err);
    return any ? 0 : error_set(err, -MRD_ENOTFOUND, "--around: the query has no rows, so there is no window to cut");
}

static int add_machine(struct shell *sh, const char *name, struct bounds *b, struct error *err)
{
    struct tp_result *r = NULL;
    size_t before = b->machines.n;
    int rc = tp_query(sh->tp, "select id, ifnull(name, ''), raw_id from machine", &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, tp_int64(r, 0));
        rc = 0;
        if ((strcmp(name, tp_text(r, 1, NULL)) == 0 || strcmp(name, id) == 0) &&
            !vec_push(&b->machines, (uint32_t)tp_int64(r, 0)))
            rc = TP_NOMEM;
    }
    tp_result_close(r);
    if (rc < 0)
        return session_error(sh, rc, err);
    return b->machines.n > before ? 0
                                  : error_set(err, -MRD_ENOTFOUND,
                                              "--machine: no machine '%.100s'; 'select id, name from machine' lists "
                                              "them",
                                              name);
}

static bool is_process(const char *pattern, struct tp_result *r)
{
    char pid[24];
    const char *name = tp_text(r, 1, NULL), *base = strrchr(name, '/');
    snprintf(pid, sizeof pid, "%" PRId64, tp_int64(r, 2));
    return fnmatch(pattern, name, 0) == 0 || (base && fnmatch(pattern, base + 1, 0) == 0) || strcmp(pattern, pid) == 0;
}

static int add_process(struct shell *sh, const char *pattern, struct bounds *b, struct error *err)
{
    struct tp_result *r = NULL;
    size_t before = b->processes.n;
    int rc = tp_query(sh->tp, "select upid, ifnull(name, ''), pid from process", &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        rc = 0;
        if (is_process(pattern, r) && !vec_push(&b->processes, (uint32_t)tp_int64(r, 0)))
            rc = TP_NOMEM;
    }
    tp_result_close(r);
    if (rc < 0)
        return session_error(sh, rc, err);
    if (b->processes.n == before)
        return error_set(err, -MRD_ENOTFOUND,
                         "--process: no process '%.100s'; 'select pid, name from process' lists them, * and ? match",
                         pattern);
    return 0;
}

static int read_window(struct shell *sh, struct bounds *b, struct error *err)
{
    const struct options *o = &sh->opt;
    int rc = one_row(sh, "select start_ts, end_ts from trace_bounds", &b->begin, &b->end, err);
    b->from = b->begin;
    b->to = b->end < INT64_MAX ? b->end + 1 : b->end;
    if (rc == 0 && o->around)
        rc = read_around(sh, o->around, b, err);
    if (rc == 0 && o->from)
        rc = read_time("--from", o->from, b, &b->from, err);
    if (rc == 0 && o->to)
        rc = read_time("--to", o->to, b, &b->to, err);
    for (size_t i = 0; rc == 0 && i < o->only_machine.n; i++)
        rc = add_machine(sh, o->only_machine.p[i], b, err);
    for (size_t i = 0; rc == 0 && i < o->only_process.n; i++)
        rc = add_process(sh, o->only_process.p[i], b, err);
    if (rc < 0)
        return rc;
    if (b->to <= b->begin || b->from > b->end)
        return error_set(err, -MRD_EINVALID,
                         "cut: the window lies outside of the recording, which goes from %" PRId64 " to %" PRId64,
                         b->begin, b->end);
    if (b->from >= b->to)
        return error_set(err, -MRD_EINVALID, "cut: the window is empty: it ends at %" PRId64 " and begins at %" PRId64,
                         b->to, b->from);
    return 0;
}

static void tell(const struct tp_cut_counts *n, const struct options *o)
{
    const char *output = o->output;
    fprintf(stderr, "%s: %" PRIu64 " of %" PRIu64 " packets, %" PRIu64 " of %" PRIu64 " kernel events\n", output,
            n->packets_out, n->packets_in, n->events_out, n->events_in);
    if (n->timeless)
        fprintf(stderr, "note: the time of %" PRIu64 " packets cannot be told; they are written as they are\n",
                n->timeless);
    if (n->damaged)
        fprintf(stderr, "note: %" PRIu64 " packets cannot be read; they are %s\n", n->damaged,
                o->redact ? "left out" : "written as they are");
    if (n->tail)
        fprintf(stderr, "note: %" PRIu64 " bytes at the end are not a whole packet; they are left out\n", n->tail);
    if (o->redact)
        fprintf(stderr, "%s: %" PRIu64 " strings replaced in %" PRIu64 " places\n", output, n->strings, n->replaced);
    if (n->unmatched)
        fprintf(stderr, "note: %" PRIu64 " rules of %s replaced nothing, the first is line %u\n", n->unmatched,
                o->redact, n->unmatched_at);
}

enum { RULES_BYTES_MAX = 1 << 20 };

static int read_rules(const char *path, char **text, struct error *err)
{
    size_t len = 0;
    if (!path)
        return 0;
    int rc = file_read_all(path, RULES_BYTES_MAX, text, &len, err);
    if (rc == 0 && strlen(*text) != len)
        return error_set(err, -MRD_EINVALID, "%s: byte %zu is 0: rules are text", path, strlen(*text));
    return rc;
}

int cmd_cut(struct shell *sh, struct error *err)
{
    const struct options *o = &sh->opt;
    struct bounds b = {0};
    struct tp_cut_counts counts;
    if (o->positionals.n != 1 || strcmp(o->positionals.p[0], "-") == 0)
        return error_set(err, -MRD_EINVALID,
                         "cut: give one trace file, e.g. tp_shell cut --from 2s --to 3s -o "
                         "piece.pftrace trace.pftrace");
    if (!o->output)
        return error_set(err, -MRD_EINVALID, "cut: -o FILE is needed");
    if (!o->from && !o->to && !o->around && o->only_machine.n == 0 && o->only_process.n == 0 && !o->redact)
        return error_set(err, -MRD_EINVALID,
                         "cut: say what to keep: --from T, --to T, --around SQL, --machine NAME or --process NAME; or "
                         "what to replace: "
                         "--redact FILE");
    if (o->around && (o->from || o->to))
        return error_set(err, -MRD_EINVALID, "cut: --around tells the window; leave out --from and --to");
    char *rules = NULL;
    sh->needs_packets = true;
    int rc = read_rules(o->redact, &rules, err);
    rc = rc ? rc : compare_open(sh, o->positionals.p[0], err);
    rc = rc ? rc : read_window(sh, &b, err);
    if (rc == 0) {
        struct tp_cut what = {o->positionals.p[0], o->output,     b.from,        b.to, b.machines.p,
                              b.machines.n,        b.processes.p, b.processes.n, rules};
        struct ticker ticker;
        ticker_start(&ticker, "Cutting", true);
        rc = tp_cut(sh->tp, &what, &counts);
        ticker_stop(&ticker);
        rc = rc < 0 ? session_error(sh, rc, err) : 0;
    }
    if (rc == 0)
        tell(&counts, o);
    mem_free(rules);
    vec_free(&b.machines);
    vec_free(&b.processes);
    compare_close(sh);
    return rc;
}
