/* Reads a recording into values by line and block of time. */
#include "compare/run.h"

#include "base/hash.h"
#include "compare/group_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 256, NAME_ROOM = 256 };

/* What rows name by number. */
struct who {
    const char *machine, *process, *thread;
    bool idle;
};

struct whos {
    struct who *p;
    size_t n;
};

struct reader {
    struct run_set *set;
    struct tp *tp;
    struct whos threads, processes;
    VEC(const char *) machines;
    const struct measure_source *source;
    struct { /* of a counter: the row before */
        bool any;
        int64_t track, ts;
        double value;
    } last;
    bool any_cgroup; /* of a process */
    bool failed;     /* out of memory */
};

static struct run *current(struct reader *r)
{
    return vec_last(&r->set->runs);
}

static int sql_error(struct tp *tp, int rc, struct error *err)
{
    return error_set(err,
                     rc == TP_NOMEM         ? -MRD_ENOMEM
                     : rc == TP_INTERRUPTED ? -MRD_ECANCELLED
                                            : -MRD_ESQL,
                     "%s", tp_error(tp));
}

/* Calls `each` for every row; its result ends the walk when not 0. */
static int each_row(struct reader *r, const char *sql, void (*each)(struct reader *r, struct tp_result *row),
                    struct error *err)
{
    struct tp_result *result;
    int rc = tp_query(r->tp, sql, &result);
    while (rc == 0 && (rc = tp_step(result)) == 1) {
        each(r, result);
        rc = 0;
        if (r->failed)
            break;
    }
    if (rc < 0)
        sql_error(r->tp, rc, err);
    tp_result_close(result);
    return r->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : rc < 0 ? err->code : 0;
}

static const char *kept(struct reader *r, const char *text)
{
    const char *copy = arena_strndup(&r->set->arena, text, strlen(text));
    r->failed |= !copy;
    return copy ? copy : "";
}

static const char *kept_group(struct reader *r, const char *name)
{
    char room[NAME_ROOM];
    return name && *name ? kept(r, group_name(name, room, sizeof room)) : "";
}

/* ---- who is who ---- */

/* What a line calls a process: its name, or the control group where that is asked for and known. */
static const char *kept_process(struct reader *r, const char *name, const char *cgroup)
{
    char room[NAME_ROOM];
    if (!r->set->by_cgroup || !cgroup || !*cgroup)
        return kept_group(r, name);
    r->any_cgroup = true;
    return kept(r, cgroup_group_name(cgroup, room, sizeof room));
}

static struct who *who_at(struct reader *r, struct whos *w, int64_t id)
{
    if (id < 0 || id >= 1 << 28) {
        r->failed = true;
        return NULL;
    }
    if ((size_t)id >= w->n) {
        size_t n = (size_t)id * 2 + 64;
        struct who *p = mem_realloc(w->p, n * sizeof *p);
        if (!p) {
            r->failed = true;
            return NULL;
        }
        memset(p + w->n, 0, (n - w->n) * sizeof *p);
        w->p = p;
        w->n = n;
    }
    return &w->p[id];
}

static void add_machine(struct reader *r, struct tp_result *row)
{
    char text[64];
    int64_t id = tp_int64(row, 0);
    const char *name = id > 0 && id <= UINT32_MAX ? tp_machine_name(r->tp, (uint32_t)id) : "";
    snprintf(text, sizeof text, "machine %lld", (long long)id);
    if (id < 0 || (size_t)id != r->machines.n) /* numbers stand without gaps, in order */
        return;
    if (!vec_push(&r->machines, kept_group(r, name ? name : text)))
        r->failed = true;
}

static const char *machine_of(const struct reader *r, int64_t id)
{
    return id >= 0 && (size_t)id < r->machines.n ? r->machines.p[id] : "";
}

static void add_process(struct reader *r, struct tp_result *row)
{
    struct who *w = who_at(r, &r->processes, tp_int64(row, 0));
    if (!w)
        return;
    *w = (struct who){machine_of(r, tp_int64(row, 2)), kept_process(r, tp_text(row, 1, NULL), tp_text(row, 3, NULL)),
                      "", false};
    if (*w->process && !vec_push(&current(r)->processes, w->process))
        r->failed = true;
}

static void add_thread(struct reader *r, struct tp_result *row)
{
    struct who *w = who_at(r, &r->threads, tp_int64(row, 0));
    if (!w)
        return;
    const char *process = tp_text(row, 2, NULL), *thread = tp_text(row, 1, NULL);
    *w = (struct who){machine_of(r, tp_int64(row, 4)),
                      kept_process(r, process && *process ? process : thread, tp_text(row, 5, NULL)),
                      kept_group(r, thread), tp_int64(row, 3) != 0};
    if (*w->process && !w->idle && !vec_push(&current(r)->processes, w->process))
        r->failed = true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_processes(struct run *run)
{
    size_t n = 0;
    if (run->processes.n)
        qsort(run->processes.p, run->processes.n, sizeof *run->processes.p, by_text);
    for (size_t i = 0; i < run->processes.n; i++)
        if (!n || strcmp(run->processes.p[n - 1], run->processes.p[i]) != 0)
            run->processes.p[n++] = run->processes.p[i];
    run->processes.n = n;
}

/* ---- lines ---- */

static bool same_line(const struct run_line *l, const struct measure *m, const struct who *w, const char *thread,
                      const char *name)
{
    return l->measure == m && strcmp(l->machine, w->machine) == 0 && strcmp(l->process, w->process) == 0 &&
           strcmp(l->thread, thread) == 0 && strcmp(l->name, name) == 0;
}

static uint64_t line_hash(const struct measure *m, const struct who *w, const char *thread, const char *name)
{
    uint64_t secret = hash_secret(), h = hash_u64((uint64_t)(uintptr_t)m);
    const char *const parts[] = {w->machine, w->process, thread, name};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        h = hash_combine(h, hash_bytes_seeded(parts[i], strlen(parts[i]), secret));
    return h;
}

/* The line, made when new; UINT32_MAX when out of memory. */
static uint32_t line_of(struct reader *r, const struct measure *m, const struct who *w, const char *thread,
                        const char *name, uint32_t process_line)
{
    struct run_set *set = r->set;
    uint64_t key = line_hash(m, w, thread, name), *slot;
    bool added;
    for (;; key++) { /* two of one hash: the next key */
        slot = u64map_put(&set->by_key, key, &added);
        if (!slot)
            goto failed;
        if (added || same_line(&set->lines.p[*slot], m, w, thread, name))
            break;
    }
    if (!added)
        return (uint32_t)*slot;
    *slot = set->lines.n;
    struct run_line line = {.measure = m,
                            .source = r->source,
                            .machine = w->machine,
                            .process = w->process,
                            .thread = thread,
                            .name = *name ? kept(r, name) : "",
                            .process_line = process_line == UINT32_MAX ? (uint32_t)set->lines.n : process_line};
    if (!vec_push(&set->lines, line))
        goto failed;
    if (process_line != UINT32_MAX)
        set->lines.p[process_line].thread_lines++;
    return (uint32_t)set->lines.n - 1;
failed:
    r->failed = true;
    return UINT32_MAX;
}

static bool is_weighted(enum measure_kind kind)
{
    return kind == MEASURE_DURATION || kind == MEASURE_LEVEL;
}

static struct run_series *series_of(struct reader *r, struct run_line *line)
{
    uint32_t index = (uint32_t)r->set->runs.n - 1;
    if (line->series.n && vec_last(&line->series)->run == index)
        return vec_last(&line->series);
    size_t bytes = current(r)->n_blocks * sizeof(double);
    struct run_series s = {.run = index, .sums = arena_zalloc(&r->set->arena, bytes)};
    if (is_weighted(line->measure->kind))
        s.weights = arena_zalloc(&r->set->arena, bytes);
    if (!s.sums || (is_weighted(line->measure->kind) && !s.weights) || !vec_push(&line->series, s)) {
        r->failed = true;
        return NULL;
    }
    return vec_last(&line->series);
}

/* ---- rows ---- */

struct event {
    int64_t from, to; /* since the start of the recording; to >= from */
    double value;
};

/* Adds `each` a nanosecond to the blocks that [from, to) touches, and the nanoseconds to `weights`. */
static void spread(const struct run *run, struct run_series *s, int64_t from, int64_t to, double each)
{
    const int64_t end = (int64_t)run->n_blocks * run->block_ns;
    from = from < 0 ? 0 : from;
    to = to > end ? end : to;
    while (from < to) {
        int64_t block = from / run->block_ns, stop = (block + 1) * run->block_ns;
        stop = stop < to ? stop : to;
        s->sums[block] += each * (double)(stop - from);
        if (s->weights)
            s->weights[block] += (double)(stop - from);
        from = stop;
    }
}

static void add_event(struct reader *r, uint32_t index, const struct event *e)
{
    if (index == UINT32_MAX)
        return;
    struct run_line *line = &r->set->lines.p[index];
    struct run_series *s = series_of(r, line);
    if (!s)
        return;
    const struct run *run = current(r);
    int64_t block = e->from < 0 ? -1 : e->from / run->block_ns;
    bool inside = block >= 0 && (size_t)block < run->n_blocks;
    s->count++;
    switch (line->measure->kind) {
    case MEASURE_SHARE:
        spread(run, s, e->from, e->to, 1);
        break;
    case MEASURE_RATE:
        s->sums[inside ? block : 0] += inside;
        break;
    case MEASURE_DURATION:
        if (inside) {
            s->sums[block] += e->value / 1e3;
            s->weights[block] += 1;
        }
        if (!vec_push(&s->values, e->value / 1e3))
            r->failed = true;
        break;
    case MEASURE_LEVEL:
        spread(run, s, e->from, e->to, e->value);
        break;
    case MEASURE_GROWTH:
        if (e->to > e->from)
            spread(run, s, e->from, e->to, e->value / (double)(e->to - e->from));
        break;
    }
}

static bool is_counter(const struct measure_source *s)
{
    return s->measures[0].kind == MEASURE_LEVEL || s->measures[0].kind == MEASURE_GROWTH;
}

/* A counter's row closes the one before: its level until then, or its gain since. */
static bool counter_event(struct reader *r, struct tp_result *row, struct event *e)
{
    int64_t track = tp_int64(row, 7), ts = tp_int64(row, 0);
    double value = tp_double(row, 2);
    bool same = r->last.any && r->last.track == track;
    *e = (struct event){r->last.ts - current(r)->start_ns, ts - current(r)->start_ns, r->last.value};
    if (r->source->measures[0].kind == MEASURE_GROWTH)
        e->value = value - r->last.value;
    r->last.any = true;
    r->last.track = track;
    r->last.ts = ts;
    r->last.value = value;
    return same && (r->source->measures[0].kind != MEASURE_GROWTH || e->value >= 0);
}

static void plain_event(struct reader *r, struct tp_result *row, struct event *e)
{
    const struct run *run = current(r);
    int64_t dur = tp_int64(row, 1);
    e->from = tp_int64(row, 0) - run->start_ns;
    e->to = dur < 0 || dur > run->dur_ns - e->from ? run->dur_ns : e->from + dur;
    e->value = tp_column_type(row, 2) == TP_NULL ? (double)(e->to - e->from) : tp_double(row, 2);
}

static void add_row(struct reader *r, struct tp_result *row)
{
    static const struct who nobody = {"", "", "", false};
    struct who on_machine = nobody;
    const struct who *w = NULL;
    struct event e;
    char room[NAME_ROOM];
    if (tp_column_type(row, 3) != TP_NULL && (size_t)tp_int64(row, 3) < r->threads.n)
        w = &r->threads.p[tp_int64(row, 3)];
    else if (tp_column_type(row, 4) != TP_NULL && (size_t)tp_int64(row, 4) < r->processes.n)
        w = &r->processes.p[tp_int64(row, 4)];
    if (is_counter(r->source) && !counter_event(r, row, &e))
        return;
    if (!is_counter(r->source))
        plain_event(r, row, &e);
    if (!w || !w->process) {
        on_machine.machine = machine_of(r, tp_int64(row, 5));
        w = &on_machine;
    }
    if (w->idle)
        return;
    current(r)->sources |= 1u << (r->source - measure_sources);
    const char *name = group_name(tp_text(row, 6, NULL), room, sizeof room);
    for (size_t i = 0; i < MEASURES_A_SOURCE && r->source->measures[i].name && !r->failed; i++) {
        const struct measure *m = &r->source->measures[i];
        uint32_t line = line_of(r, m, w, "", name, UINT32_MAX);
        add_event(r, line, &e);
        if (r->source->by_thread && *w->thread && line != UINT32_MAX)
            add_event(r, line_of(r, m, w, w->thread, name, line), &e);
    }
}

/* ---- the recording ---- */

static void add_bounds(struct reader *r, struct tp_result *row)
{
    current(r)->start_ns = tp_int64(row, 0);
    current(r)->dur_ns = tp_int64(row, 1);
}

static void add_clock(struct reader *r, struct tp_result *row)
{
    current(r)->clock = kept(r, tp_text(row, 0, NULL) ? tp_text(row, 0, NULL) : "");
}

static void add_clock_error(struct reader *r, struct tp_result *row)
{
    current(r)->clock_error_us = tp_double(row, 0) / 1e3;
}

/* The largest error of a time on any machine, at the ends and in the middle of each stretch of its clock. */
static const char clock_error_sql[] =
    "select coalesce(max(clock_error_ns(ts, machine_id)), 0) from (select machine_id, (select start_ts from "
    "trace_bounds) as ts from clock_sync union all select machine_id, (select end_ts from trace_bounds) from "
    "clock_sync union all select machine_id, start_ts from clock_sync)";

static int measure_all(struct reader *r, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n_measure_sources && rc == 0; i++) {
        r->source = &measure_sources[i];
        r->last.any = false;
        rc = each_row(r, r->source->sql, add_row, err);
        if (rc < 0)
            error_prefix(err, "measure %s", r->source->name);
    }
    return rc;
}

int run_set_add(struct run_set *set, struct tp *tp, const char *path, int side, const char *lost, struct error *err)
{
    struct reader r = {.set = set, .tp = tp};
    struct run *run = vec_add(&set->runs);
    if (!run)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    *run = (struct run){.path = kept(&r, path), .side = side, .clock = "", .lost = lost ? kept(&r, lost) : NULL};
    int rc = each_row(&r, "select start_ts, end_ts - start_ts from trace_bounds", add_bounds, err);
    if (rc == 0 && run->dur_ns <= 0)
        rc = error_set(err, -MRD_EFORMAT, "%s: the recording has no duration: nothing to compare", path);
    if (rc == 0) {
        for (run->block_ns = 1; run->dur_ns / run->block_ns > MAX_BLOCKS;)
            run->block_ns *= 2;
        run->n_blocks = (size_t)(run->dur_ns / run->block_ns);
        static const struct {
            const char *sql;
            void (*each)(struct reader *r, struct tp_result *row);
        } steps[] = {
            {"select id from machine order by id", add_machine},
            {"select upid, name, machine_id, extract_arg(arg_set_id, 'process.cgroup') from process", add_process},
            {"select t.utid, t.name, p.name, t.is_idle, t.machine_id, extract_arg(p.arg_set_id, 'process.cgroup') "
             "from thread t left join process p using (upid)",
             add_thread},
            {"select coalesce((select clock_name from clock_snapshot where clock_id = int_value limit 1), case "
             "int_value "
             "when 1 then 'REALTIME' when 2 then 'REALTIME_COARSE' when 3 then 'MONOTONIC' when 4 then "
             "'MONOTONIC_COARSE' "
             "when 5 then 'MONOTONIC_RAW' when 6 then 'BOOTTIME' when 10 then 'PERF' end, int_value) from metadata "
             "where name = 'trace_time_clock_id' limit 1",
             add_clock},
            {clock_error_sql, add_clock_error},
        };
        for (size_t i = 0; i < sizeof steps / sizeof *steps && rc == 0; i++)
            rc = each_row(&r, steps[i].sql, steps[i].each, err);
    }
    if (rc == 0 && set->by_cgroup && !r.any_cgroup)
        rc = error_set(err, -MRD_EINVALID,
                       "%s: no control groups were recorded: Meridian's data source linux.process_stats records them; "
                       "or compare by process",
                       path);
    if (rc == 0)
        rc = measure_all(&r, err);
    if (rc == 0)
        sort_processes(current(&r));
    mem_free(r.threads.p);
    mem_free(r.processes.p);
    vec_free(&r.machines);
    return rc;
}

void run_set_free(struct run_set *set)
{
    for (size_t i = 0; i < set->lines.n; i++) {
        for (size_t k = 0; k < set->lines.p[i].series.n; k++)
            vec_free(&set->lines.p[i].series.p[k].values);
        vec_free(&set->lines.p[i].series);
    }
    for (size_t i = 0; i < set->runs.n; i++)
        vec_free(&set->runs.p[i].processes);
    vec_free(&set->lines);
    vec_free(&set->runs);
    u64map_free(&set->by_key);
    arena_free(&set->arena);
}

const struct run_series *run_series_of(const struct run_line *line, uint32_t run_index)
{
    for (size_t i = 0; i < line->series.n; i++)
        if (line->series.p[i].run == run_index)
            return &line->series.p[i];
    return NULL;
}

size_t run_blocks(const struct run *run, const struct run_line *line, uint32_t run_index, int64_t block_ns, double *out)
{
    const struct run_series *s = run_series_of(line, run_index);
    const size_t fine = (size_t)(block_ns / run->block_ns), blocks = fine ? run->n_blocks / fine : 0;
    const bool weighted = is_weighted(line->measure->kind);
    /* ns of a block as ms a second; rows and gains a second */
    const double scale = (line->measure->kind == MEASURE_SHARE ? 1e3 : 1e9) / (double)block_ns;
    size_t n = 0;
    if (!s && weighted)
        return 0;
    for (size_t b = 0; b < blocks; b++) {
        double sum = 0, weight = 0;
        for (size_t i = b * fine; s && i < (b + 1) * fine; i++) {
            sum += s->sums[i];
            weight += weighted ? s->weights[i] : 0;
        }
        if (!weighted)
            out[n++] = sum * scale;
        else if (weight > 0)
            out[n++] = sum / weight;
    }
    return n;
}
