/* Cuts a piece out of a recording: asks the tables which times matter, and writes the packets that tell of them. */
#include "cut/cut.h"
#include "api/tp_snapshot.h"
#include "base/output_file.h"
#include "cut/redact.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where rows that reach into the window begin and end. States of threads follow from the ones before: three rows back
 * there was a switch that told who ran. Both ends of a flow stay when one does. %1: from, %2: to. */
static const char times_sql[] =
    "with w(a, b) as (values (%" PRId64 ", %" PRId64 ")), "
    "o(id) as materialized (select s.id from slice s, w where s.ts < b and (s.dur < 0 or s.ts + s.dur >= a)), "
    "r(ts, dur) as (select s.ts, s.dur from sched s, w where s.ts < b and (s.dur < 0 or s.ts + s.dur >= a) "
    "union all select ts, dur from (select ts, dur, lead(ts, 3) over (partition by utid order by ts) later "
    "from thread_state), w where ts < b and (later is null or later >= a) "
    "union all select s.ts, s.dur from slice s join o using (id) "
    "union all select s.ts, s.dur from __intrinsic_state s, w where s.ts < b and (s.dur < 0 or s.ts + s.dur >= a) "
    "union all select s.ts, s.dur from slice s where s.id in (select slice_in from flow join o on o.id = slice_out "
    "union select slice_out from flow join o on o.id = slice_in) "
    "union all select max(ts), 0 from counter, w where ts < a group by track_id "
    "union all select min(ts), 0 from counter, w where ts >= b group by track_id "
    "union all select start_ts, end_ts - start_ts from thread where start_ts is not null "
    "union all select start_ts, end_ts - start_ts from process where start_ts is not null) "
    "select ts, ifnull(dur, 0) from r, w where ts < a or ts >= b or ts + dur >= b";

struct times {
    VEC(int64_t) at;
    VEC(uint64_t) threads; /* cut_thread_key()s */
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void sort_times(struct times *t)
{
    size_t n = 1;
    if (!t->at.n)
        return;
    qsort(t->at.p, t->at.n, sizeof *t->at.p, by_value);
    for (size_t i = 1; i < t->at.n; i++)
        if (t->at.p[i] != t->at.p[n - 1])
            t->at.p[n++] = t->at.p[i];
    t->at.n = n;
}

/* A slice of which one end stays, since something else happened at the same time, keeps the other one, too. *added: how
 * many times there are now that were not. */
static int close_pairs(struct tp *tp, const struct tp_cut *what, struct times *t, size_t *added)
{
    struct tp_result *r = NULL;
    const size_t before = t->at.n;
    int64_t end;
    int rc = tp_query(tp, "select ts, dur from slice where dur > 0", &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        const struct cut_window w = {.from = what->from, .to = what->to, .kept = t->at.p, .n_kept = before};
        int64_t ts = tp_int64(r, 0);
        rc = 0;
        if (__builtin_add_overflow(ts, tp_int64(r, 1), &end))
            continue;
        bool begins = cut_wants(&w, ts), ends = cut_wants(&w, end);
        if (begins != ends && !vec_push(&t->at, begins ? end : ts))
            rc = TP_NOMEM;
    }
    tp_result_close(r);
    *added = t->at.n - before;
    sort_times(t);
    return rc;
}

static int read_times(struct tp *tp, const struct tp_cut *what, struct times *t)
{
    char sql[sizeof times_sql + 64];
    struct tp_result *r = NULL;
    int64_t end;
    snprintf(sql, sizeof sql, times_sql, what->from, what->to);
    int rc = tp_query(tp, sql, &r);
    while (rc == 0 && (rc = tp_step(r)) == 1) {
        int64_t ts = tp_int64(r, 0), dur = tp_int64(r, 1);
        rc = 0;
        if ((ts < what->from || ts >= what->to) && !vec_push(&t->at, ts))
            rc = TP_NOMEM;
        if (dur > 0 && !__builtin_add_overflow(ts, dur, &end) && (end < what->from || end >= what->to) &&
            !vec_push(&t->at, end))
            rc = TP_NOMEM;
    }
    tp_result_close(r);
    sort_times(t);
    for (size_t added = 1; rc == 0 && added;)
        rc = close_pairs(tp, what, t, &added);
    return rc;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The threads of the processes; the pid stands for what is of a process alone. */
static int read_threads(struct tp *tp, const struct tp_cut *what, struct times *t)
{
    struct tp_result *r = NULL;
    int rc = what->n_processes ? tp_query(tp,
                                          "select upid, ifnull(machine_id, 0), tid from thread where upid is not null "
                                          "union select upid, ifnull(machine_id, 0), pid from process",
                                          &r)
                               : 0;
    while (r && rc == 0 && (rc = tp_step(r)) == 1) {
        rc = 0;
        for (size_t i = 0; i < what->n_processes; i++)
            if (tp_int64(r, 0) == what->processes[i] &&
                !vec_push(&t->threads, cut_thread_key((uint32_t)tp_int64(r, 1), tp_int64(r, 2))))
                rc = TP_NOMEM;
    }
    tp_result_close(r);
    if (t->threads.n)
        qsort(t->threads.p, t->threads.n, sizeof *t->threads.p, by_key);
    if (rc == 0 && what->n_processes && !t->threads.n)
        return tp_done(tp, error_set(&tp->err, -MRD_ENOTFOUND, "%s: no such process", what->output));
    return rc;
}

static int write_cut(struct tp *tp, const struct tp_cut *what, const struct times *t, struct redactor *redactor,
                     struct cut_counts *counts)
{
    struct packet_file in;
    struct output_file out;
    struct error *err = &tp->err;
    struct cut_window w = {.from = what->from,
                           .to = what->to,
                           .kept = t->at.p,
                           .n_kept = t->at.n,
                           .machines = what->machines,
                           .n_machines = what->n_machines,
                           .threads = t->threads.p,
                           .n_threads = t->threads.n,
                           .redactor = redactor};
    int rc = packet_file_open(&in, what->input, err);
    if (rc < 0)
        return rc;
    rc = packet_file_check(&in, what->input, err);
    rc = rc ? rc : output_file_open(&out, what->output, err);
    if (rc == 0) {
        rc = cut_write(tp->importer, &in, &w, &out, counts, err);
        if (rc == 0 && mapped_file_shrank(&in.map))
            rc =
                error_set(err, -MRD_EIO, "%s became shorter while it was read; another program writes it", what->input);
        rc = output_file_close(&out, rc, err);
    }
    packet_file_close(&in);
    return rc;
}

int tp_cut(struct tp *tp, const struct tp_cut *what, struct tp_cut_counts *counts)
{
    struct times t = {0};
    struct cut_counts n = {0};
    if (tp->remote)
        return tp_done(tp, error_set(&tp->err, -MRD_EUNSUPPORTED, "%s: the trace is on a server", what->output));
    if (!tp->finished)
        return tp_done(tp, error_set(&tp->err, -MRD_EINVALID, "%s: call tp_finish() first", what->output));
    if (tp_need_packets(tp, what->input) < 0)
        return tp_done(tp, tp->err.code);
    struct redactor *redactor = NULL;
    struct redact_counts m = {0};
    *counts = (struct tp_cut_counts){0};
    int rc = what->redact ? redactor_open(&redactor, what->redact, &tp->err) : 0;
    if (rc < 0)
        return tp_done(tp, error_prefix(&tp->err, "rules of redaction"));
    rc = read_times(tp, what, &t);
    rc = rc ? rc : read_threads(tp, what, &t);
    if (rc == TP_NOMEM)
        error_set(&tp->err, -MRD_ENOMEM, "out of memory");
    if (rc == 0)
        rc = tp_done(tp, write_cut(tp, what, &t, redactor, &n));
    if (redactor)
        m = redactor_counts(redactor);
    redactor_close(redactor);
    vec_free(&t.at);
    vec_free(&t.threads);
    *counts = (struct tp_cut_counts){.packets_in = n.packets_in,
                                     .packets_out = n.packets_out,
                                     .events_in = n.events_in,
                                     .events_out = n.events_out,
                                     .timeless = n.timeless,
                                     .damaged = n.damaged,
                                     .tail = n.tail,
                                     .strings = m.strings,
                                     .replaced = m.replaced,
                                     .unmatched = m.unmatched,
                                     .unmatched_at = m.unmatched_at};
    return rc;
}
