/* What samples are missing because their recorder was killed: traced_perf says after each reading of the kernel's rings
 * up to which time all samples are there, and with its last words that there are no more. */
#include "importer/core/metadata.h"
#include "importer/profiling/profiling_internal.h"

#include "wire/fields.h"

static struct perf_run *run_of(struct profiling_machine *s, uint32_t session, int64_t ts)
{
    for (size_t i = s->perf_runs.n; i-- > 0;)
        if (s->perf_runs.p[i].session == session)
            return &s->perf_runs.p[i];
    if (!vec_push(&s->perf_runs, (struct perf_run){.session = session, .began = ts, .whole_until = ts})) {
        s->m->im->failed = true;
        return NULL;
    }
    return vec_last(&s->perf_runs);
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

/* A recorder that came back begins a sequence of its own. */
static int64_t came_back(const struct profiling_machine *s, const struct perf_run *run, int64_t end)
{
    for (size_t i = 0; i < s->perf_runs.n; i++)
        if (s->perf_runs.p[i].began > run->whole_until && s->perf_runs.p[i].began < end)
            end = s->perf_runs.p[i].began;
    return end;
}

void perf_progress_finish(struct profiling_machine *s)
{
    struct stats *stats = &s->m->st->stats;
    int64_t end = s->perf_runs.n ? recording_end(s) : COL_NULL;
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
