/* What samples are missing because their recorder was killed: traced_perf says after each reading of the kernel's rings
 * up to which time all samples are there, and with its last words that there are no more. */
#include "base/bisect.h"
#include "importer/core/metadata.h"
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

#include <stdlib.h>

static struct perf_run *run_of(struct profiling_machine *s, uint32_t session, int64_t ts)
{
    bool added;
    uint64_t *at = u64map_put(&s->perf_run_of, session, &added);
    if (at && added) {
        *at = s->perf_runs.n;
        if (!vec_push(&s->perf_runs, (struct perf_run){.session = session, .began = ts, .whole_until = ts})) {
            u64map_del(&s->perf_run_of, session);
            at = NULL;
        }
    }
    s->m->im->failed |= !at;
    return at ? &s->perf_runs.p[*at] : NULL;
}

void perf_progress_parse(struct packet *p)
{
    struct pb_field f;
    int64_t session = perf_sample_session(p);
    struct perf_run *run = session < 0 ? NULL : run_of(p->m->profiling, (uint32_t)session, p->ts);
    if (!run)
        return;
    if (p->ts > run->whole_until)
        run->whole_until = p->ts;
    run->ended |= pb_find(p->field, PERF_PROGRESS_ENDED, &f) && pb_bool(&f);
}

/* When the recording ended, or COL_NULL; the service's words are of its own machine. */
static int64_t recording_end(const struct profiling_machine *s)
{
    struct importer *im = s->m->im;
    int64_t end = metadata_get_int(im, s->m, METADATA_tracing_disabled_ns);
    return end == COL_NULL ? metadata_get_int(im, im->machines.p[0], METADATA_tracing_disabled_ns) : end;
}

static int by_beginning(const void *a, const void *b)
{
    int64_t x = ((const struct perf_run *)a)->began, y = ((const struct perf_run *)b)->began;
    return (x > y) - (x < y);
}

/* When a recorder was back, or the end: it begins a sequence of its own. The runs are in the order of their beginnings.
 */
static int64_t came_back(const struct profiling_machine *s, const struct perf_run *run, int64_t end)
{
    size_t at = s->perf_runs.n;
    BISECT(at, mid, s->perf_runs.p[mid].began <= run->whole_until);
    return at < s->perf_runs.n && s->perf_runs.p[at].began < end ? s->perf_runs.p[at].began : end;
}

void perf_progress_finish(struct profiling_machine *s)
{
    struct stats *stats = &s->m->st->stats;
    int64_t end = s->perf_runs.n ? recording_end(s) : COL_NULL;
    if (s->perf_runs.n)
        qsort(s->perf_runs.p, s->perf_runs.n, sizeof *s->perf_runs.p, by_beginning);
    for (size_t i = 0; i < s->perf_runs.n; i++) {
        const struct perf_run *run = &s->perf_runs.p[i];
        if (run->ended)
            continue;
        stats_set_idx(stats, s->m->id, STAT_perf_whole_until_ts, (int32_t)run->session, run->whole_until);
        int64_t until = end == COL_NULL ? end : came_back(s, run, end);
        if (until != COL_NULL && until > run->whole_until)
            stats_set_idx(stats, s->m->id, STAT_perf_cut_ns, (int32_t)run->session, until - run->whole_until);
    }
}
