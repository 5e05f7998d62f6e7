/* tp_shell util merge: several traces as one file that opens on one timeline, checked before it is given out. */
#include "base/output_file.h"
#include "shell/commands/merge_plan.h"
#include "shell/commands/util.h"
#include "shell/ticker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What happened on each machine. */
static const char events_sql[] =
    "with e(machine_id, n, first, last) as ("
    " select c.machine_id, count(*), min(f.ts), max(f.ts) from __intrinsic_ftrace_event f"
    "  join __intrinsic_cpu c on c.id = f.ucpu group by 1"
    " union all select t.machine_id, count(*), min(s.ts), max(s.ts) from __intrinsic_slice s"
    "  join __intrinsic_track t on t.id = s.track_id group by 1"
    " union all select t.machine_id, count(*), min(k.ts), max(k.ts) from __intrinsic_counter k"
    "  join __intrinsic_track t on t.id = k.track_id group by 1"
    " union all select t.machine_id, count(*), min(s.ts), max(s.ts) from __intrinsic_state s"
    "  join __intrinsic_track t on t.id = s.track_id group by 1)"
    "select m.id, ifnull(m.name, ''), m.raw_id, ifnull(sum(n), 0), min(first) - trace_start(), max(last) - "
    "trace_start() from __intrinsic_machine m left join e on e.machine_id = m.id group by m.id order by m.id";

enum { C_ID, C_NAME, C_RAW_ID, C_EVENTS, C_FIRST, C_LAST };

/* --- the traces alone --------------------------------------------------------------------------------------------- */

static int64_t one_number(struct shell *sh, const char *sql, int *rc)
{
    struct tp_result *r = NULL;
    int64_t v = 0;
    if (!*rc)
        *rc = tp_query(sh->tp, sql, &r);
    if (!*rc && (*rc = tp_step(r)) == 1) {
        v = tp_int64(r, 0);
        *rc = 0;
    }
    tp_result_close(r);
    return v;
}

/* The first row is there when all events have been counted. */
static int query_events(struct shell *sh, struct tp_result **r)
{
    struct ticker ticker;
    ticker_start(&ticker, "Counting events", false);
    int rc = tp_query(sh->tp, events_sql, r);
    ticker_stop(&ticker);
    return rc;
}

/* A handle of its own for each load. */
static int load(struct shell *sh, const char *path, struct error *err)
{
    tp_close(sh->tp);
    sh->tp = NULL;
    return session_load(sh, &path, 1, err);
}

static int count_events(struct shell *sh, struct merge_file *f, struct error *err)
{
    struct tp_result *r;
    int rc = query_events(sh, &r);
    while (!rc && (rc = tp_step(r)) == 1) {
        f->events += tp_int64(r, C_EVENTS);
        rc = 0;
        if (!vec_push(&f->seen, (struct merge_seen){tp_int64(r, C_RAW_ID), tp_int64(r, C_EVENTS)}))
            rc = TP_NOMEM;
    }
    tp_result_close(r);
    if (!rc)
        f->has_clocks = one_number(sh, "select count(*) from __intrinsic_clock_snapshot", &rc) > 0;
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

/* --machine FILE=NAME for a trace whose packets carry numbers of machines: the name is that of the one that has events,
 * the others are named after it. */
static int name_machines(struct merge_plan *p, struct merge_file *f, struct error *err)
{
    char flags_needed[256] = "";
    size_t n = 0, with_events = 0, main = 0;
    bool has_host = false;
    for (size_t i = 0; i < f->seen.n; i++) {
        int len = snprintf(flags_needed + n, sizeof flags_needed - n, " --machine %s:%" PRId64 "=NAME", f->member,
                           f->seen.p[i].id);
        n = len > 0 && (size_t)len < sizeof flags_needed - n ? n + (size_t)len : n;
        main = f->seen.p[i].events ? i : main;
        with_events += f->seen.p[i].events > 0;
        has_host |= f->seen.p[i].id == 0;
    }
    if (with_events > 1)
        return error_set(err, -MRD_EINVALID, "%s holds events of several machines; name each:%s", f->path,
                         flags_needed);
    bool ok = has_host || vec_push(&f->machines, (struct merge_machine){0, f->machine});
    for (size_t i = 0; i < f->seen.n && ok; i++) {
        const char *name = i == main ? f->machine : arena_printf(&p->arena, "%s/%" PRId64, f->machine, f->seen.p[i].id);
        ok = name && vec_push(&f->machines, (struct merge_machine){f->seen.p[i].id, name});
    }
    if (!f->clock_machine)
        f->clock_machine = f->machine;
    f->machine = NULL;
    return ok ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

static int look_at(struct shell *sh, struct merge_plan *p, struct merge_file *f, struct error *err)
{
    struct stat st;
    if (strcmp(f->path, "-") == 0 || (stat(f->path, &st) == 0 && !S_ISREG(st.st_mode)))
        return error_set(err, -MRD_EINVALID, "%s: only files can be merged", f->path);
    int rc = load(sh, f->path, err);
    if (!rc) {
        f->bytes = st.st_size;
        rc = count_events(sh, f, err);
    }
    if (rc < 0)
        return strstr(err->text, f->path) ? rc : error_prefix(err, "%s", f->path);
    bool numbered = f->seen.n > 1 || (f->seen.n == 1 && f->seen.p[0].id);
    return f->machine && numbered ? name_machines(p, f, err) : 0;
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static int print_result(struct shell *sh, const struct merge_plan *p, const char *path, int64_t *events,
                        struct error *err)
{
    printf("%s: %zu traces\n\n  %-28s %12s %12s\n", path, p->files.n, "trace", "bytes", "events");
    for (size_t i = 0; i < p->files.n; i++)
        printf("  %-28s %12" PRId64 " %12" PRId64 "\n", p->files.p[i].member, p->files.p[i].bytes,
               p->files.p[i].events);
    printf("\n  %-28s %12s %16s %16s\n", "machine", "events", "from (s)", "to (s)");
    fflush(stdout);
    struct tp_result *r;
    int rc = query_events(sh, &r);
    while (!rc && (rc = tp_step(r)) == 1) {
        char name[64];
        if (*tp_text(r, C_NAME, NULL))
            snprintf(name, sizeof name, "%s", tp_text(r, C_NAME, NULL));
        else
            snprintf(name, sizeof name, "(no name, id %" PRId64 ")", tp_int64(r, C_RAW_ID));
        *events += tp_int64(r, C_EVENTS);
        if (tp_int64(r, C_EVENTS))
            printf("  %-28s %12" PRId64 " %16.6f %16.6f\n", name, tp_int64(r, C_EVENTS),
                   (double)tp_int64(r, C_FIRST) / 1e9, (double)tp_int64(r, C_LAST) / 1e9);
        rc = 0;
    }
    tp_result_close(r);
    return rc < 0 ? session_error(sh, rc, err) : 0;
}

/* Opens what was written as anybody will, and sees whether everything is there. */
static int check_result(struct shell *sh, const struct merge_plan *p, const char *part, const char *path,
                        struct error *err)
{
    int64_t want = 0, got = 0;
    int rc = load(sh, part, err);
    if (rc < 0)
        return error_prefix(err, "the merged trace does not load");
    rc = print_result(sh, p, path, &got, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->files.n; i++)
        want += p->files.p[i].events;
    if (got < want)
        return error_set(err, -MRD_EFORMAT,
                         "%" PRId64 " of %" PRId64
                         " events are not on the timeline: the clock of a trace is not related "
                         "to the others; say how with --offset FILE=TIME",
                         want - got, want);
    return 0;
}

int util_merge(struct shell *sh, struct error *err)
{
    struct merge_plan p = {0};
    const char *path = sh->opt.output;
    if (!path)
        return error_set(err, -MRD_EINVALID, "merge: -o FILE is needed");
    if (sh->opt.positionals.n < 3)
        return error_set(err, -MRD_EINVALID, "merge: at least two traces are needed");
    int rc = merge_plan_read(&p, &sh->opt, 1, err);
    for (size_t i = 0; i < p.files.n && !rc; i++)
        rc = look_at(sh, &p, &p.files.p[i], err);
    struct output_file out;
    if (!rc && !(rc = output_file_open(&out, path, err))) {
        struct ticker ticker;
        ticker_start(&ticker, "Merging", true);
        rc = merge_archive_write(&p, out.part, err);
        ticker_stop(&ticker);
        if (!rc)
            rc = check_result(sh, &p, out.part, path, err);
        rc = output_file_close(&out, rc, err);
    }
    merge_plan_free(&p);
    if (rc < 0)
        return error_prefix(err, "merge");
    printf("\nmerged: all events are there\n");
    return 0;
}
