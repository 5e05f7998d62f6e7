/* Queues lines of ftrace's text, and reads them in order of time. */
#include "importer/text/systrace.h"

#include "importer/ftrace/ftrace_line.h"
#include "importer/lines/line_reader.h"
#include "importer/lines/systrace_line.h"
#include "importer/sort/sorter.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"

/* A line that waits. Its text lies in the file, or in the arena. */
struct line_event {
    const uint8_t *task, *args;
    uint32_t task_len, args_len;
    int32_t pid, tgid;
    uint32_t cpu, kind;
    uint32_t flags;
    bool has_tgid;
};

struct systrace {
    struct importer *im;
    struct machine_ctx *m;
    systrace_clock_fn to_ns;
    systrace_anchor_fn anchor;
    void *ctx;
    uint32_t queue;
    uint32_t file; /* serial */
    bool tid0_is_thread;
    struct arena arena;
};

/* What a line says about its thread: its thread. */
static uint32_t thread_of(struct systrace *s, const struct line_event *l)
{
    struct process_tracker *p = s->m->processes;
    uint32_t utid = process_tracker_thread(p, l->pid);
    struct slice task = slice_of(l->task, l->task_len);
    if (!slice_eq_str(task, "<...>"))
        process_tracker_thread_name(p, utid, import_slice(s->im, task), THREAD_NAME_FTRACE);
    if (!l->has_tgid)
        return utid;
    return process_tracker_update_thread_and_main(p, l->pid, l->tgid);
}

static void parse_lines(void *owner, const struct sort_event *events, size_t n)
{
    struct systrace *s = owner;
    if (s->tid0_is_thread && !s->im->idle_files)
        process_tracker_without_idle(s->m->processes);
    for (size_t i = 0; i < n; i++) {
        const struct line_event *l = (const void *)(uintptr_t)events[i].a;
        struct ftrace_line line = {.ts = events[i].ts,
                                   .cpu = l->cpu,
                                   .pid = l->pid,
                                   .common_flags = l->flags,
                                   .file = s->file,
                                   .kind = l->kind,
                                   .args = slice_of(l->args, l->args_len)};
        line.utid = thread_of(s, l);
        ftrace_line_parse(s->m, &line);
    }
}

struct systrace *systrace_open(struct importer *im, systrace_clock_fn to_ns, systrace_anchor_fn anchor, void *ctx,
                               bool tid0_is_thread)
{
    struct systrace *s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct systrace){.im = im,
                           .m = text_machine(im),
                           .to_ns = to_ns,
                           .anchor = anchor,
                           .ctx = ctx,
                           .file = im->input.serial,
                           .tid0_is_thread = tid0_is_thread};
    s->queue = sorter_add_queue(im->sorter, parse_lines, s);
    return s;
}

void systrace_close(struct systrace *s)
{
    if (!s)
        return;
    arena_free(&s->arena);
    mem_free(s);
}

/* What recorders write when they begin, so that a trace can be placed beside others. */
static void read_anchor(struct systrace *s, const struct systrace_line *p)
{
    enum { NS_PER_MS = 1000000 };
    const double max_seconds = 9e9;
    static const char mark[] = "trace_event_clock_sync: ", real[] = "realtime_ts=", parent[] = "parent_ts=";
    struct slice said = slice_from(p->args, sizeof mark - 1);
    int64_t there;
    double seconds;
    if (slice_starts(said, real)) {
        if (number_decimal(trim_space(slice_from(said, sizeof real - 1)), &there) && there > 0 &&
            there < INT64_MAX / NS_PER_MS)
            s->anchor(s->ctx, p->ts, CLOCK_ID_REALTIME, there * NS_PER_MS);
    } else if (slice_starts(said, parent)) { /* seconds; 0 where nobody knew */
        if (number_real(trim_space(slice_from(said, sizeof parent - 1)), &seconds) && seconds > 0 &&
            seconds < max_seconds)
            s->anchor(s->ctx, p->ts, CLOCK_ID_MONOTONIC, (int64_t)(seconds * 1e9 + 0.5));
    }
}

bool systrace_add_line(struct systrace *s, struct slice line)
{
    struct systrace_line p;
    int64_t ts;
    if (line.len > UINT32_MAX || !systrace_line_parse(line, &p))
        return false;
    if (p.ts < 0) {
        stats_add(&s->im->st->stats, 0, STAT_trace_sorter_negative_timestamp_dropped, 1);
        return true;
    }
    if (s->anchor && slice_starts(p.args, "trace_event_clock_sync: "))
        read_anchor(s, &p);
    if (!s->to_ns(s->ctx, p.ts, &ts))
        return true;
    struct line_event *l = arena_alloc(&s->arena, sizeof *l);
    if (l && !importer_bytes_stable(s->im, line.p)) {
        uint8_t *copy = arena_alloc_bytes(&s->arena, p.task.len + p.args.len + 1);
        if (copy) {
            memcpy(copy, p.task.p, p.task.len);
            memcpy(copy + p.task.len, p.args.p, p.args.len);
        }
        p.task.p = copy;
        p.args.p = copy ? copy + p.task.len : NULL;
    }
    if (!l || !p.task.p || !p.args.p) {
        s->im->failed = true;
        return true;
    }
    *l = (struct line_event){.task = p.task.p,
                             .args = p.args.p,
                             .task_len = (uint32_t)p.task.len,
                             .args_len = (uint32_t)p.args.len,
                             .pid = p.pid,
                             .tgid = p.tgid,
                             .cpu = p.cpu,
                             .kind = ftrace_line_kind(s->m, p.event),
                             .flags = p.flags,
                             .has_tgid = p.has_tgid};
    sorter_push(s->im->sorter, s->queue, (struct sort_event){.ts = ts, .a = (uintptr_t)l});
    return true;
}

/* --- the dump of processes --------------------------------------------------------------------------------------- */

enum { PROCESS_FIELDS = 10, THREAD_FIELDS = 4 };

/* Splits at white space; the last of `max` fields is the rest of the line. */
static size_t split(struct slice line, struct slice *out, size_t max)
{
    size_t n = 0;
    line = trim_space(line);
    while (line.len && n < max) {
        size_t end = 0;
        while (end < line.len && (n + 1 == max || !is_space(line.p[end])))
            end++;
        out[n++] = slice_to(line, end);
        line = trim_space(slice_from(line, end));
    }
    return n;
}

static bool read_process(struct systrace *s, const struct slice *f)
{
    int64_t pid, parent;
    if (!number_decimal(f[1], &pid) || !number_decimal(f[2], &parent))
        return false;
    struct process_tracker *p = s->m->processes;
    process_tracker_set_metadata(p, (int32_t)pid, (int32_t)parent, import_slice(s->im, f[8]), 0);
    return true;
}

static bool read_thread(struct systrace *s, const struct slice *f)
{
    int64_t pid, tid;
    if (!number_decimal(f[1], &pid) || !number_decimal(f[2], &tid))
        return false;
    struct process_tracker *p = s->m->processes;
    uint32_t utid = process_tracker_update_thread(p, (int32_t)tid, (int32_t)pid);
    process_tracker_thread_name(p, utid, import_slice(s->im, f[3]), THREAD_NAME_OTHER);
    return true;
}

bool systrace_dump_line(struct systrace *s, struct systrace_dump *d, struct slice line)
{
    struct slice f[PROCESS_FIELDS];
    line = trim_space(line);
    if (slice_starts(line, "USER")) {
        size_t n = split(line, f, THREAD_FIELDS);
        d->threads = n >= THREAD_FIELDS && slice_eq_str(f[2], "TID");
        return true;
    }
    if (d->threads)
        return split(line, f, THREAD_FIELDS) < THREAD_FIELDS || read_thread(s, f);
    return split(line, f, PROCESS_FIELDS) < PROCESS_FIELDS || read_process(s, f);
}
