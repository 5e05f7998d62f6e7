/* Groups comparisons of clocks into bursts, and turns them into inequalities. */
#include "base/error.h"
#include "importer/clock/clock_line_private.h"

#include <stdlib.h>

enum { BURST_SAMPLES = 16, QUICK_ROUNDS = 3 };

static const int64_t longest_round_ns = 30 * INT64_C(1000000000); /* two readings further apart are two exchanges */
static const int64_t burst_gap_ns = 20 * INT64_C(1000000);
static const wide longest_ns = (wide)1 << 52; /* 52 days: what is further away says nothing */

int64_t clock_bend(wide dt)
{
    if (dt < 0)
        dt = -dt;
    if (dt > longest_ns)
        return INT64_MAX / 4;
    /* dt^2 / 2 * 20e-9 / 1e9 (per ns) = dt^2 / 1e17 */
    const wide per = (wide)1000000000 * 1000000000 * 2 / CLOCK_WANDER_PPB_PER_S;
    return sync_saturate((dt * dt + per - 1) / per + (dt * CLOCK_NOISE_PPB + 999999999) / 1000000000);
}

int64_t clock_bulge(wide at, wide length)
{
    wide rest = length - at;
    if (at <= 0 || rest <= 0)
        return 0;
    if (length > longest_ns)
        return INT64_MAX / 4;
    /* The mean rates of the two parts differ by at most noise + wander * length / 2. */
    const wide per = (wide)1000000000 * 1000000000 * 2 / CLOCK_WANDER_PPB_PER_S;
    wide noise = (at < rest ? at : rest) * CLOCK_NOISE_PPB / 1000000000 + 1;
    return sync_saturate((at * rest + per - 1) / per + noise);
}

static int by_remote(const void *a, const void *b)
{
    const struct clock_sample *x = a, *y = b;
    if (x->remote != y->remote)
        return x->remote < y->remote ? -1 : 1;
    return x->host == y->host ? 0 : x->host < y->host ? -1 : 1;
}

/* Both clocks only go forward. A sample whose host time is later than that of the next contradicts it, or is late; of
 * two, the one that disagrees with more neighbours is put aside. */
static bool clean(struct clock_line *l)
{
    if (l->samples.n)
        qsort(l->samples.p, l->samples.n, sizeof *l->samples.p, by_remote);
    size_t n = 0;
    for (size_t i = 0; i < l->samples.n; i++) {
        struct clock_sample s = l->samples.p[i];
        if (n && l->samples.p[n - 1].remote == s.remote && l->samples.p[n - 1].host == s.host)
            continue;
        bool drop = n && l->samples.p[n - 1].remote == s.remote;
        while (!drop && n && l->samples.p[n - 1].host > s.host) {
            bool next_agrees = i + 1 < l->samples.n && l->samples.p[i + 1].host < l->samples.p[n - 1].host;
            drop = !next_agrees;
            if (next_agrees && !vec_push(&l->aside, l->samples.p[--n])) /* the following ones agree with this one */
                return false;
        }
        if (!drop)
            l->samples.p[n++] = s;
        else if (!vec_push(&l->aside, s))
            return false;
    }
    l->samples.n = n;
    l->rejected += (uint32_t)l->aside.n;
    return true;
}

bool clock_sample_answers(const struct clock_line *l, size_t i)
{
    return i > 0 && l->samples.p[i].remote - l->samples.p[i - 1].remote < longest_round_ns;
}

/* What sample i says about the tangent at x, relaxed: from above, and as an answer from below. */
static int add_above(const struct clock_line *l, struct sync_hull *h, size_t i, int64_t relax)
{
    const struct clock_sample *s = &l->samples.p[i];
    return sync_hull_add(h, SYNC_ABOVE, s->remote, sync_saturate((wide)s->host + relax));
}

static int add_below(const struct clock_line *l, struct sync_hull *h, size_t i, int64_t relax)
{
    const struct clock_sample *s = &l->samples.p[i];
    return sync_hull_add(h, SYNC_BELOW, s->remote, sync_saturate((wide)s[-1].host - relax));
}

int64_t clock_burst_start(const struct clock_line *l, size_t burst)
{
    return l->samples.p[l->bursts.p[burst].first].remote;
}

int64_t clock_burst_end(const struct clock_line *l, size_t burst)
{
    return l->samples.p[l->bursts.p[burst].end - 1].remote;
}

bool clock_source_changed(const struct clock_line *l, size_t burst, size_t other)
{
    const struct clock_sample *s = l->samples.p;
    return s[l->bursts.p[burst].first].source_period != s[l->bursts.p[other].first].source_period;
}

/* How far the clock may have left its tangent at x when it shows `remote`. */
static int64_t relaxed(int64_t x, int64_t remote, const struct clock_kinks *kinks)
{
    wide most = 0;
    for (size_t i = 0; kinks && i < kinks->n; i++) {
        wide away = (wide)remote - kinks->p[i].at;
        wide by = (away < 0 ? -away : away) * kinks->p[i].rate_ppb / 1000000000 + CLOCK_SMALL_STEP_NS + 1;
        most = by > most ? by : most;
    }
    return sync_saturate(most + clock_bend((wide)remote - x));
}

int clock_burst_add(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b, bool all,
                    const struct clock_kinks *kinks)
{
    int rc = 0;
    for (size_t i = b->first; i < b->end && rc != -MRD_ENOMEM; i++) {
        int64_t relax = relaxed(x, l->samples.p[i].remote, kinks);
        if (all || i == b->above)
            rc = add_above(l, h, i, relax);
        if (rc != -MRD_ENOMEM && i > b->first && (all || i == b->below) && clock_sample_answers(l, i))
            rc = add_below(l, h, i, relax);
    }
    return rc == -MRD_ENOMEM ? rc : 0;
}

size_t clock_burst_away(size_t away)
{
    return away + 1 + away / 4;
}

/* Of the samples of a burst: the one that says most from above, and the one that says most from below. False when they
 * do not bound the clock on both sides. */
static bool choose_best(const struct clock_line *l, struct clock_burst *b)
{
    const struct clock_sample *s = l->samples.p;
    b->above = b->first;
    b->below = b->first;
    for (size_t i = b->first + 1; i < b->end; i++) {
        if ((wide)s[i].host - s[i].remote < (wide)s[b->above].host - s[b->above].remote)
            b->above = i;
        if (clock_sample_answers(l, i) && (b->below == b->first || (wide)s[i - 1].host - s[i].remote >
                                                                       (wide)s[b->below - 1].host - s[b->below].remote))
            b->below = i;
    }
    return b->below != b->first;
}

/* Whether one line at all satisfies a burst. */
static int agrees(const struct clock_line *l, struct sync_hull *h, const struct clock_burst *b, bool *agrees)
{
    static const struct sync_limits limits = {.slope_ppb = CLOCK_RATE_LIMIT_PPB};
    sync_hull_clear(h);
    int rc = clock_burst_add(l, h, l->samples.p[b->first].remote, b, true, NULL);
    if (!rc)
        rc = sync_hull_solve(h, &limits);
    *agrees = h->quality != SYNC_FAIL;
    return rc;
}

/* Keeps [first, end) as a burst, or where the clock stepped amid it, as several. Samples that bound nothing by
 * themselves belong to the gaps. */
static int keep(struct clock_line *l, struct sync_hull *h, size_t first, size_t end)
{
    while (first < end) {
        struct clock_burst b = {.first = first, .end = end};
        bool ok = false;
        int rc = agrees(l, h, &b, &ok);
        while (!rc && !ok && b.end > b.first + 1) {
            b.end--;
            rc = agrees(l, h, &b, &ok);
        }
        if (rc || (choose_best(l, &b) && !vec_push(&l->bursts, b)))
            return -MRD_ENOMEM;
        first = b.end;
    }
    return 0;
}

/* Pauses longer than this end a burst: some quickest round trips, since a slow network stretches the bursts. */
static int64_t pause_ns(const struct clock_line *l)
{
    int64_t quickest = INT64_MAX;
    for (size_t i = 1; i < l->samples.n; i++) {
        int64_t apart = l->samples.p[i].remote - l->samples.p[i - 1].remote;
        quickest = apart < quickest ? apart : quickest;
    }
    quickest = quickest < longest_round_ns ? quickest * QUICK_ROUNDS : longest_round_ns;
    return quickest > burst_gap_ns ? quickest : burst_gap_ns;
}

int clock_bursts_make(struct clock_line *l, struct sync_hull *h)
{
    vec_clear(&l->bursts);
    if (!clean(l))
        return -MRD_ENOMEM;
    const struct clock_sample *s = l->samples.p;
    const int64_t pause = pause_ns(l);
    size_t first = 0;
    int rc = 0;
    for (size_t i = 1; i <= l->samples.n && rc == 0; i++)
        if (i == l->samples.n || i - first == BURST_SAMPLES || s[i].remote - s[i - 1].remote > pause ||
            s[i].source_period != s[i - 1].source_period) {
            rc = keep(l, h, first, i);
            first = i;
        }
    return rc;
}
