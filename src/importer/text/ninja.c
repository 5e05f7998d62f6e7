/* Logs of ninja: what was built when, laid on as many workers as ran at once. */
#include "importer/text/text_formats.h"

#include "importer/lines/line_reader.h"
#include "importer/text/text_file.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <stdlib.h>

enum { NS_PER_MS = 1000000, BUILD_PID = 1, FIRST_VERSION = 5, LAST_VERSION = 7 };

struct worker {
    int64_t free_at;
    uint32_t number, track;
};

struct job {
    int64_t start, end; /* ms */
    uint64_t hash;
    strid name;
    uint32_t order; /* in the file */
    struct worker worker;
};

struct ninja {
    struct importer *im;
    struct machine_ctx *m;
    struct line_reader lines;
    bool seen_header;
    struct error bad_header;
    VEC(struct job)
    jobs;
    VEC(const struct job *)
    ends;         /* those that take time, by when they end */
    size_t ended; /* of them, whose workers are idle again */
    VEC(struct worker)
    idle; /* the one that became free last at the end; of several that did, the first */
    uint32_t n_workers;
};

static bool each_field(struct slice *line, struct slice *field)
{
    while (line->len && line->p[0] == '\t') /* empty ones vanish */
        *line = slice_from(*line, 1);
    if (!line->len)
        return false;
    const uint8_t *tab = memchr(line->p, '\t', line->len);
    *field = slice_to(*line, tab ? (size_t)(tab - line->p) : line->len);
    *line = slice_from(*line, field->len);
    return true;
}

static bool read_job(struct ninja *n, struct slice line, struct job *job)
{
    struct slice start, end, restat, name, hash;
    if (!each_field(&line, &start) || !each_field(&line, &end) || !each_field(&line, &restat) ||
        !each_field(&line, &name) || !each_field(&line, &hash))
        return false;
    if (!number_decimal(trim_blanks(start), &job->start) || !number_decimal(trim_blanks(end), &job->end) ||
        !number_hex(trim_space(hash), &job->hash))
        return false;
    const int64_t most = INT64_MAX / NS_PER_MS;
    if (job->start > most || job->start < -most || job->end > most || job->end < -most)
        return false;
    job->name = import_slice(n->im, name);
    return true;
}

/* One command may make several files: they are one job. */
static bool add_to_last(struct ninja *n, const struct job *job)
{
    struct job *last = n->jobs.n ? vec_last(&n->jobs) : NULL;
    struct strpool *strings = &n->im->st->strings;
    enum { MAX_NAME = 16384 };
    if (!last || last->hash != job->hash || last->start != job->start || last->end != job->end)
        return false;
    if (strpool_view(strings, last->name).len < MAX_NAME)
        last->name =
            strpool_printf(strings, "%s %s", strpool_cstr(strings, last->name), strpool_cstr(strings, job->name));
    return true;
}

static bool each_line(void *ctx, struct slice line, int64_t end, bool in_place)
{
    static const char header[] = "# ninja log v";
    struct ninja *n = ctx;
    struct job job;
    int64_t version = 0;
    (void)end;
    (void)in_place;
    if (!n->seen_header) {
        n->seen_header = true;
        if (!slice_starts(line, header) || !number_decimal(trim_space(slice_from(line, sizeof header - 1)), &version) ||
            version < FIRST_VERSION || version > LAST_VERSION)
            error_set(&n->bad_header, -MRD_EUNSUPPORTED, "a log of ninja of a version that is not known (%d to %d are)",
                      FIRST_VERSION, LAST_VERSION);
        return !n->bad_header.code;
    }
    if (!line.len)
        return true;
    if (!read_job(n, line, &job)) {
        stats_add(&n->im->st->stats, n->m->id, STAT_ninja_parse_errors, 1);
        return true;
    }
    job.order = (uint32_t)n->jobs.n;
    if (!add_to_last(n, &job) && !vec_push(&n->jobs, job))
        n->im->failed = true;
    return true;
}

static void *open_file(struct importer *im)
{
    struct ninja *n = mem_zalloc(sizeof *n);
    if (!n)
        return NULL;
    *n = (struct ninja){.im = im, .m = text_machine(im), .lines = {.each = each_line}};
    n->lines.ctx = n;
    return n;
}

static int write_file(void *self, struct slice bytes, struct error *err)
{
    struct ninja *n = self;
    if (!line_reader_feed(&n->lines, bytes) || n->im->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (n->bad_header.code && err)
        *err = n->bad_header;
    return n->bad_header.code;
}

static int by_start(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static int by_end(const void *a, const void *b)
{
    const struct job *const *x = a, *const *y = b;
    return (x[0]->end > y[0]->end) - (x[0]->end < y[0]->end);
}

static int by_freedom(const void *a, const void *b)
{
    const struct worker *x = a, *y = b;
    if (x->free_at != y->free_at)
        return x->free_at < y->free_at ? -1 : 1;
    return x->number > y->number ? -1 : 1;
}

static bool sort_jobs(struct ninja *n)
{
    if (n->jobs.n)
        qsort(n->jobs.p, n->jobs.n, sizeof *n->jobs.p, by_start);
    for (size_t i = 0; i < n->jobs.n; i++)
        if (n->jobs.p[i].end > n->jobs.p[i].start && !vec_push(&n->ends, &n->jobs.p[i]))
            return false;
    if (n->ends.n)
        qsort(n->ends.p, n->ends.n, sizeof *n->ends.p, by_end);
    return true;
}

/* Those whose jobs have ended by `start` are idle. */
static bool release_workers(struct ninja *n, int64_t start)
{
    size_t before = n->idle.n;
    for (; n->ended < n->ends.n && n->ends.p[n->ended]->end <= start; n->ended++)
        if (!vec_push(&n->idle, n->ends.p[n->ended]->worker))
            return false;
    if (n->idle.n > before)
        qsort(n->idle.p + before, n->idle.n - before, sizeof *n->idle.p, by_freedom);
    return true;
}

static struct worker add_worker(struct ninja *n)
{
    struct process_tracker *p = n->m->processes;
    uint32_t utid = process_tracker_update_thread(p, (int64_t)++n->n_workers, BUILD_PID);
    process_tracker_thread_name(p, utid, import_str(n->im, "Worker"), THREAD_NAME_OTHER);
    return (struct worker){
        .number = n->n_workers,
        .track = track_intern_int(n->im->tracks, n->m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0)};
}

/* Of the workers that are idle, the one that became free last; a new one when none is. */
static bool give_worker(struct ninja *n, struct job *job)
{
    if (!release_workers(n, job->start))
        return false;
    job->worker = n->idle.n ? n->idle.p[--n->idle.n] : add_worker(n);
    job->worker.free_at = job->end;
    return job->end > job->start || vec_push(&n->idle, job->worker);
}

static int end_file(void *self, struct error *err)
{
    struct ninja *n = self;
    text_check_end(n->im, &n->lines);
    bool ok = sort_jobs(n);
    uint32_t upid = process_tracker_process(n->m->processes, BUILD_PID);
    process_tracker_process_name(n->m->processes, upid, import_str(n->im, "Build"), PROCESS_NAME_OTHER);
    for (size_t i = 0; ok && i < n->jobs.n; i++) {
        struct job *job = &n->jobs.p[i];
        if (job->end < job->start) {
            import_log(n->m, STAT_slice_negative_duration, job->start * NS_PER_MS, -1, ARGSET_NONE);
            continue;
        }
        ok = give_worker(n, job);
        slice_scoped(n->im->slices, n->m->id, job->start * NS_PER_MS, job->worker.track, 0, job->name,
                     (job->end - job->start) * NS_PER_MS, ARGSET_NONE);
    }
    return ok ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
}

static void close_file(void *self)
{
    struct ninja *n = self;
    line_reader_free(&n->lines);
    vec_free(&n->jobs);
    vec_free(&n->ends);
    vec_free(&n->idle);
    mem_free(n);
}

const struct format_reader ninja_format_reader = {.format = FORMAT_NINJA_LOG,
                                                  .fixed_clock = true,
                                                  .open = open_file,
                                                  .write = write_file,
                                                  .end = end_file,
                                                  .close = close_file};
