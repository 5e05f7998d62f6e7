/* Compares two sets of recordings line by line. */
#include "compare/diff.h"

#include "compare/rank_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_WANTED = 24, BLOCKS_NEEDED = 8 };

/* Lines below this on both sides are not tested: half a millisecond a second, a row each ten seconds. */
#define LEAST_SHARE 0.5
#define LEAST_RATE  0.1
/* An effect that is not seen in the ranks is not told: Cliff's delta of a medium effect. */
#define LEAST_EFFECT 0.33

const char *const diff_verdict_names[DIFF_VERDICTS] = {"finding", "lost data", "clock error", "small",
                                                       "noise",   "too few",   "not recorded"};

struct compare {
    struct run_set *set;
    const struct diff_options *options;
    struct diff *out;
    double *values; /* of all runs of a line, one behind the other */
    struct rank_run *runs;
    double lossy, clock_error_us;
    uint32_t sources[2]; /* what each side recorded */
};

/* The largest power of two that gives the shortest recording enough blocks, and no shorter than any one's own. */
static int64_t common_block(const struct run_set *set)
{
    int64_t shortest = INT64_MAX, block = 1;
    for (size_t i = 0; i < set->runs.n; i++)
        shortest = set->runs.p[i].dur_ns < shortest ? set->runs.p[i].dur_ns : shortest;
    while (block <= shortest / BLOCKS_WANTED / 2)
        block *= 2;
    for (size_t i = 0; i < set->runs.n; i++)
        block = set->runs.p[i].block_ns > block ? set->runs.p[i].block_ns : block;
    return block;
}

/* Has each side a recording with a process of the same name? */
static bool any_common_process(const struct run_set *set)
{
    for (size_t a = 0; a < set->runs.n; a++)
        for (size_t b = 0; b < set->runs.n; b++) {
            const struct run *x = &set->runs.p[a], *y = &set->runs.p[b];
            if (x->side != 0 || y->side != 1)
                continue;
            for (size_t i = 0, k = 0; i < x->processes.n && k < y->processes.n;) {
                int order = strcmp(x->processes.p[i], y->processes.p[k]);
                if (order == 0)
                    return true;
                i += order < 0;
                k += order > 0;
            }
        }
    return false;
}

static bool has_processes(const struct run_set *set)
{
    bool has[2] = {0};
    for (size_t i = 0; i < set->runs.n; i++)
        has[set->runs.p[i].side] |= set->runs.p[i].processes.n > 0;
    return has[0] && has[1];
}

/* ---- a line ---- */

/* Median and 99th percentile: of each row for durations, else of the blocks. */
static int quantiles(const struct compare *c, const struct run_line *line, int side, struct diff_side *out)
{
    size_t n = 0, room = 0;
    bool rows = line->measure->kind == MEASURE_DURATION;
    for (size_t i = 0; i < c->set->runs.n; i++) {
        const struct run_series *s = run_series_of(line, (uint32_t)i);
        if (c->set->runs.p[i].side != side)
            continue;
        room += rows ? (s ? s->values.n : 0) : c->runs[i].n;
    }
    double *all = mem_alloc((room + 1) * sizeof *all);
    if (!all)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < c->set->runs.n; i++) {
        const struct run_series *s = run_series_of(line, (uint32_t)i);
        if (c->set->runs.p[i].side != side)
            continue;
        const double *from = rows ? (s ? s->values.p : NULL) : c->runs[i].values;
        size_t count = rows ? (s ? s->values.n : 0) : c->runs[i].n;
        if (count)
            memcpy(all + n, from, count * sizeof *all);
        n += count;
    }
    sort_doubles(all, n);
    out->median = quantile_sorted(all, n, 0.5);
    out->p99 = quantile_sorted(all, n, 0.99);
    mem_free(all);
    return 0;
}

/* How long the recordings of a side took, in seconds. */
static double seconds_of(const struct compare *c, int side)
{
    double ns = 0;
    for (size_t i = 0; i < c->set->runs.n; i++)
        ns += c->set->runs.p[i].side == side ? (double)c->set->runs.p[i].dur_ns : 0;
    return ns / 1e9;
}

/* Milliseconds a second that a change concerns. */
static double concerned(const struct compare *c, const struct diff_line *d)
{
    double delta = fabs(d->side[1].mean - d->side[0].mean);
    double ratio = d->side[0].mean > 0 && d->side[1].mean > 0 ? fabs(log2(d->side[1].mean / d->side[0].mean)) : 4;
    double rate = (double)d->side[1].count / fmax(seconds_of(c, 1), 1e-9);
    switch (d->line->measure->kind) {
    case MEASURE_SHARE:
        return delta;
    case MEASURE_RATE:
        return fmin(delta, 1e4) / 10;
    case MEASURE_DURATION:
        return delta / 1e3 * rate;
    case MEASURE_LEVEL:
    case MEASURE_GROWTH:
        return (d->line->measure->steady ? 1000 : 10) * fmin(ratio, 4);
    }
    return 0;
}

static bool is_tiny(const struct diff_line *d)
{
    double larger = fmax(d->side[0].mean, d->side[1].mean);
    if (d->line->measure->kind == MEASURE_SHARE)
        return larger < LEAST_SHARE;
    return d->line->measure->kind == MEASURE_RATE && larger < LEAST_RATE;
}

/* A sleep may last as long as the recording, and a thread that sleeps throughout is not seen at all: fewer rows than
 * blocks are fewer draws than the blocks look like. */
static bool is_seldom_seen(const struct diff_line *d)
{
    return d->line->measure->lasting &&
           (d->side[0].count < d->side[0].n_blocks || d->side[1].count < d->side[1].n_blocks);
}

static int measure_line(struct compare *c, struct diff_line *d)
{
    double sums[2] = {0};
    size_t at = 0;
    for (size_t i = 0; i < c->set->runs.n; i++) {
        const struct run *run = &c->set->runs.p[i];
        const struct run_series *s = run_series_of(d->line, (uint32_t)i);
        size_t n = run_blocks(run, d->line, (uint32_t)i, c->out->block_ns, c->values + at);
        c->runs[i] = (struct rank_run){c->values + at, n, run->side};
        for (size_t k = 0; k < n; k++)
            sums[run->side] += c->values[at + k];
        d->side[run->side].n_blocks += n;
        d->side[run->side].count += s ? s->count : 0;
        at += n;
    }
    for (int s = 0; s < 2; s++) {
        d->side[s].mean = d->side[s].n_blocks ? sums[s] / (double)d->side[s].n_blocks : 0;
        if (quantiles(c, d->line, s, &d->side[s]) < 0)
            return -MRD_ENOMEM;
    }
    double delta = d->side[1].mean - d->side[0].mean;
    d->change = delta == 0 ? 0 : d->side[0].mean != 0 ? delta / fabs(d->side[0].mean) : copysign(INFINITY, delta);
    d->p = d->raw_p = 1;
    d->verdict = DIFF_FEW;
    if (!(c->sources[0] & c->sources[1] & 1u << (d->line->source - measure_sources))) {
        d->verdict = DIFF_ABSENT;
        return 0;
    }
    if (c->out->few_blocks || is_tiny(d) || is_seldom_seen(d) || d->side[0].n_blocks < BLOCKS_NEEDED ||
        d->side[1].n_blocks < BLOCKS_NEEDED)
        return 0;
    struct rank_result r;
    int rc = rank_test(c->runs, c->set->runs.n, d->line->measure->steady, &r);
    d->p = d->raw_p = r.p;
    d->effect = r.effect;
    if (r.tested)
        d->verdict = DIFF_NOISE;
    const struct measure *m = d->line->measure;
    d->score = concerned(c, d) * (delta > 0 ? m->cause_up : m->cause_down);
    return rc;
}

/* A process with threads of one name only has one line, that of the process. */
static bool is_repeated(const struct run_set *set, size_t index)
{
    const struct run_line *l = &set->lines.p[index];
    return l->process_line != index && set->lines.p[l->process_line].thread_lines < 2;
}

/* What a line whose p passes is called. */
static enum diff_verdict judged(const struct compare *c, const struct diff_line *d)
{
    double delta = fabs(d->side[1].mean - d->side[0].mean);
    if (fabs(d->effect) < LEAST_EFFECT || fabs(d->change) < c->options->min_change)
        return DIFF_SMALL;
    if (c->lossy > 0)
        return DIFF_LOSS;
    if (d->line->measure->kind == MEASURE_DURATION && delta <= c->clock_error_us)
        return DIFF_CLOCK;
    return DIFF_FINDING;
}

static int judge(struct compare *c)
{
    struct diff *out = c->out;
    double alpha = c->options->alpha > 0 ? c->options->alpha : 0.05;
    double *p = mem_alloc((out->n + 1) * sizeof *p);
    if (!p)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < out->n; i++)
        if (out->lines[i].verdict == DIFF_NOISE)
            p[out->tested++] = out->lines[i].raw_p;
    int rc = holm_correct(p, out->tested);
    for (size_t i = 0, k = 0; i < out->n && rc == 0; i++) {
        struct diff_line *d = &out->lines[i];
        if (d->verdict != DIFF_NOISE)
            continue;
        d->p = p[k++];
        if (d->p < alpha)
            d->verdict = judged(c, d);
        out->findings += d->verdict == DIFF_FINDING;
    }
    mem_free(p);
    return rc;
}

static int by_verdict(const void *a, const void *b)
{
    const struct diff_line *x = a, *y = b;
    if (x->verdict != y->verdict)
        return (int)x->verdict - (int)y->verdict;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->raw_p != y->raw_p)
        return x->raw_p < y->raw_p ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* ---- all ---- */

static int prepare(struct compare *c, struct error *err)
{
    size_t sides[2] = {0}, room = 1;
    for (size_t i = 0; i < c->set->runs.n; i++) {
        const struct run *run = &c->set->runs.p[i];
        sides[run->side]++;
        c->lossy += run->lost != NULL;
        c->sources[run->side] |= run->sources;
        c->clock_error_us = fmax(c->clock_error_us, run->clock_error_us);
    }
    if (!sides[0] || !sides[1])
        return error_set(err, -MRD_EINVALID, "a recording is needed on each side");
    if (has_processes(c->set) && !any_common_process(c->set))
        return error_set(err, -MRD_EINVALID,
                         "the two sides have no process name in common (%s has %s, %s has %s): they are not two "
                         "recordings of the same work",
                         c->set->runs.p[0].path,
                         c->set->runs.p[0].processes.n ? c->set->runs.p[0].processes.p[0] : "none",
                         vec_last(&c->set->runs)->path,
                         vec_last(&c->set->runs)->processes.n ? vec_last(&c->set->runs)->processes.p[0] : "none");
    c->out->block_ns = common_block(c->set);
    for (size_t i = 0; i < c->set->runs.n; i++) {
        size_t n = (size_t)(c->set->runs.p[i].dur_ns / c->out->block_ns) + 1;
        c->out->few_blocks |= n <= BLOCKS_NEEDED;
        room += n;
    }
    c->values = mem_alloc(room * sizeof *c->values);
    c->runs = mem_alloc(c->set->runs.n * sizeof *c->runs);
    c->out->lines = mem_zalloc((c->set->lines.n + 1) * sizeof *c->out->lines);
    if (!c->values || !c->runs || !c->out->lines)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return 0;
}

int diff_compute(struct run_set *set, const struct diff_options *options, struct diff *out, struct error *err)
{
    struct compare c = {.set = set, .options = options, .out = out};
    *out = (struct diff){0};
    int rc = prepare(&c, err);
    for (size_t i = 0; i < set->lines.n && rc == 0; i++) {
        if (is_repeated(set, i))
            continue;
        struct diff_line *d = &out->lines[out->n++];
        d->line = &set->lines.p[i];
        if (measure_line(&c, d) < 0)
            rc = error_set(err, -MRD_ENOMEM, "out of memory");
    }
    if (rc == 0 && judge(&c) < 0)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    if (rc == 0 && out->n)
        qsort(out->lines, out->n, sizeof *out->lines, by_verdict);
    mem_free(c.values);
    mem_free(c.runs);
    return rc;
}

void diff_free(struct diff *d)
{
    mem_free(d->lines);
    *d = (struct diff){0};
}
