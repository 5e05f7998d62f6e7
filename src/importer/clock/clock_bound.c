/* Proves how far the map of a remote clock can be off: docs/clock-sync.md has the assumptions and the proof. */
#include "base/error.h"
#include "importer/clock/clock_line_private.h"

#include <stdlib.h>

static bool holds(const struct clock_range r[2])
{
    return r[0].has && r[1].has;
}

static void widen_end(struct clock_cell *c, int e, const struct clock_range *r)
{
    c->lo[e] = r->has && r->lo < c->lo[e] ? r->lo : c->lo[e];
    c->hi[e] = r->has && r->hi > c->hi[e] ? r->hi : c->hi[e];
}

static void widen(struct clock_cell *c, const struct clock_range r[2])
{
    for (int e = 0; e < 2 && holds(r); e++)
        widen_end(c, e, &r[e]);
}

/* When the comparisons on one side, too, contradict each other, so that the clock stepped more than once: any rate up
 * to a limit, the first that explains the comparisons at both ends; and when none does, any time between them: clocks
 * go forward. Returns by how much the clock stepped then, else 0. */
static int64_t widen_anyhow(struct clock_cell *c, const struct clock_range *begin, const struct clock_range *end)
{
    static const int64_t limits_ppb[] = {CLOCK_RATE_STEP_PPB, CLOCK_RATE_LIMIT_PPB};
    wide length = (wide)c->x[1] - c->x[0], most = (wide)end->hi - begin->lo, least = (wide)end->lo - begin->hi;
    struct clock_range r[2] = {*begin, *end};
    for (size_t i = 0; i < sizeof limits_ppb / sizeof *limits_ppb; i++) {
        wide slack = length * (limits_ppb[i] / 1000) / 1000000 + 1;
        if (least > length + slack || most < length - slack)
            continue;
        for (int e = 0; e < 2; e++)
            r[e] = (struct clock_range){sync_saturate(r[e].lo - slack), sync_saturate(r[e].hi + slack), true};
        widen(c, r);
        return 0;
    }
    r[0].lo = r[1].lo = begin->lo < end->lo ? begin->lo : end->lo;
    r[0].hi = r[1].hi = begin->hi > end->hi ? begin->hi : end->hi;
    widen(c, r);
    return sync_saturate((most + least) / 2 - length);
}

static bool contradict(const struct clock_range *a, const struct clock_range *b)
{
    return a->lo > b->hi || a->hi < b->lo;
}

/* How far what comes behind a gap lies from what comes before it, at both of its ends on the same side: then no change
 * of rate in the gap explains it. Else 0. */
static int64_t step_of(const struct clock_proof *p)
{
    const struct clock_range *a = p->left, *b = p->right;
    if (!holds(a) || !holds(b) || !contradict(&a[0], &b[0]) || !contradict(&a[1], &b[1]) ||
        (a[0].hi < b[0].lo) != (a[1].hi < b[1].lo))
        return 0;
    return sync_saturate(((wide)b[0].lo + b[0].hi + b[1].lo + b[1].hi - a[0].lo - a[0].hi - a[1].lo - a[1].hi) / 4);
}

static int64_t quickest(const struct clock_line *l, size_t burst)
{
    int64_t rtt = INT64_MAX;
    for (size_t i = l->bursts.p[burst].first + 1; i < l->bursts.p[burst].end; i++) {
        int64_t one = l->samples.p[i].remote - l->samples.p[i - 1].remote;
        rtt = one < rtt ? one : rtt;
    }
    return rtt;
}

static bool extend_span(struct clock_line *l, size_t burst, bool stepped)
{
    int64_t rtt = quickest(l, burst);
    if (stepped || !l->spans.n)
        return vec_push(&l->spans, (struct clock_span){burst, burst + 1, rtt});
    struct clock_span *s = vec_last(&l->spans);
    s->end = burst + 1;
    s->min_rtt_ns = rtt < s->min_rtt_ns ? rtt : s->min_rtt_ns;
    return true;
}

static int64_t magnitude(int64_t v)
{
    return v == INT64_MIN ? INT64_MAX : v < 0 ? -v : v;
}

static void widen_all(struct clock_cell *c, const struct clock_proof *p)
{
    widen(c, p->both);
    widen(c, p->left);
    widen(c, p->right);
}

/* Whether what comes before a gap and what comes behind it go together: no step shows. */
static bool goes_together(const struct clock_proof *p)
{
    return holds(p->left) && holds(p->right) && !contradict(&p->left[0], &p->right[0]) &&
           !contradict(&p->left[1], &p->right[1]);
}

static struct clock_cell empty_cell(int64_t first, int64_t end)
{
    return (struct clock_cell){{first, end}, {INT64_MAX, INT64_MAX}, {INT64_MIN, INT64_MIN}};
}

/* How far the upper edge may leave the chord of its ends when the rate steps in the gap: up to the step what comes
 * before holds, from there on what comes behind, and at the step both. So by no more than where these two meet. `a` is
 * the edge of what comes before, `b` of what comes behind, `u` what is proven at the ends. */
static wide kink_above(const int64_t a[2], const int64_t b[2], const int64_t u[2])
{
    wide up[2] = {(wide)a[1] - b[1], (wide)b[0] - a[0]};
    wide peak = up[0] > 0 && up[1] > 0 ? up[0] * up[1] / (up[0] + up[1]) + 1 : 0;
    wide over[2] = {(wide)a[0] - u[0], (wide)b[1] - u[1]};
    wide most = over[0] > over[1] ? over[0] : over[1];
    return peak + (most > 0 ? most : 0);
}

/* The rate steps in the gap, by `rate_ppb` at most, and the time does not. */
static void widen_kink(struct clock_cell *c, const struct clock_proof *p, int64_t rate_ppb)
{
    const int64_t a[2] = {p->left[0].hi, p->left[1].hi}, b[2] = {p->right[0].hi, p->right[1].hi};
    const int64_t low_a[2] = {-p->left[0].lo, -p->left[1].lo}, low_b[2] = {-p->right[0].lo, -p->right[1].lo};
    const int64_t low[2] = {-c->lo[0], -c->lo[1]};
    wide most = ((wide)c->x[1] - c->x[0]) * rate_ppb / 4000000000 + 1;
    wide above = kink_above(a, b, c->hi), below = kink_above(low_a, low_b, low);
    above = above < most ? above : most;
    below = below < most ? below : most;
    for (int e = 0; e < 2; e++) {
        c->hi[e] = sync_saturate(c->hi[e] + above);
        c->lo[e] = sync_saturate(c->lo[e] - below);
    }
}

/* The gap behind burst i when the clock is quiet, by all that may have happened; *quiet says whether the comparisons
 * agree with that. */
static int bound_gap(struct clock_prover *b, size_t i, bool *quiet)
{
    const struct clock_line *l = b->l;
    struct clock_cell *c = &b->l->cells.p[2 * i + 1];
    const struct clock_proof *p = &b->gaps[i];
    const struct clock_hidden *hidden = &b->hidden[2 * i + 1];
    *quiet = !clock_source_changed(l, i, i + 1) && goes_together(p) && holds(p->left_same) && holds(p->right_same);
    for (int k = 0; k < 4 && *quiet; k++) {
        const bool time = k >= 2;
        struct clock_range r[2];
        for (int e = 0; e < 2; e++) {
            int rc = clock_proof_hypothesis(b, c->x, i, e, k % 2, time, &r[e]);
            if (rc)
                return rc;
        }
        for (int e = 0; e < 2; e++)
            widen_end(c, e, &r[e]);
        *quiet = time || holds(r);
    }
    if (*quiet) {
        widen_kink(c, p, hidden->rate_ppb);
        if (hidden->time) {
            widen(c, p->left_same);
            widen(c, p->right_same);
        }
    } else {
        *c = empty_cell(c->x[0], c->x[1]);
        widen_all(c, p);
    }
    return 0;
}

/* The same gap when it is not: what fewer comparisons say, on top. *step is how far the clock stepped in it, 0 when a
 * change of its rate explains the comparisons. */
static int bound_restless_gap(struct clock_prover *b, size_t i, int64_t *step)
{
    struct clock_line *l = b->l;
    struct clock_cell *c = &l->cells.p[2 * i + 1];
    struct clock_proof p;
    struct clock_range begin = {0}, end = {0};
    int rc = clock_proof_gap(b, c->x, i, CLOCK_RESTLESS, &p);
    if (!rc)
        rc = clock_proof_together(b, i, i, c->x[0], &begin);
    if (!rc)
        rc = clock_proof_together(b, i + 1, i + 1, c->x[1], &end);
    if (rc)
        return rc;
    widen_all(c, &p);
    *step = step_of(&p);
    if (!(holds(p.left) && holds(p.right)) && begin.has && end.has)
        *step = widen_anyhow(c, &begin, &end);
    l->splits += !goes_together(&p);
    int64_t rtt = quickest(l, i), next = quickest(l, i + 1);
    if (magnitude(*step) <= (rtt < next ? rtt : next)) /* less cannot be told from the network */
        *step = 0;
    return 0;
}

/* Burst i while the clock is quiet: what is proven where it begins and where it ends, by the gaps around it, on the
 * way through it. */
static int bound_burst(struct clock_prover *b, size_t i)
{
    struct clock_line *l = b->l;
    struct clock_cell *c = &l->cells.p[2 * i];
    const struct clock_cell *prev = i > 0 && !clock_source_changed(l, i - 1, i) ? c - 1 : NULL;
    const struct clock_cell *next = i + 1 < l->bursts.n && !clock_source_changed(l, i, i + 1) ? c + 1 : NULL;
    wide length = (wide)c->x[1] - c->x[0], slack = 0, pace = length;
    if (prev && next) { /* the pace around it */
        wide rise = ((wide)next->lo[1] + next->hi[1] - prev->lo[0] - prev->hi[0]) / 2;
        wide way = (wide)next->x[1] - prev->x[0];
        pace = rise > -4 * way && rise < 4 * way ? length * rise / way : length;
        slack = length * CLOCK_HIDDEN_STEP_PPB / 1000000000 + 1;
    } else {
        slack = length * (CLOCK_RATE_STEP_PPB / 1000) / 1000000 + 1;
    }
    struct clock_range own[2] = {0};
    for (int e = 0; e < 2 && !(prev && next); e++) {
        int rc = clock_proof_together(b, i, i, c->x[e], &own[e]);
        if (rc)
            return rc;
    }
    widen(c, own);
    for (int side = 0; side < 2; side++) {
        const struct clock_cell *from = side ? next : prev;
        struct clock_range r[2];
        for (int e = 0; e < 2 && from; e++) {
            wide way = e == side ? 0 : side ? -pace : pace;
            r[e] = (struct clock_range){sync_saturate(from->lo[!side] + way - slack),
                                        sync_saturate(from->hi[!side] + way + slack), true};
        }
        if (from)
            widen(c, r);
    }
    return 0;
}

static int bound_restless_burst(struct clock_prover *b, size_t i)
{
    struct clock_cell *c = &b->l->cells.p[2 * i];
    struct clock_proof p;
    int rc = clock_proof_burst(b, c->x, i, &p);
    widen_all(c, &p);
    return rc;
}

static int by_remote(const void *a, const void *b)
{
    const struct clock_sample *x = a, *y = b;
    return (x->remote > y->remote) - (x->remote < y->remote);
}

/* Whole rounds that contradict the others: the clock was set back, and showed the same time twice. The bound covers
 * both times. */
static void cover_aside(struct clock_line *l)
{
    static const int64_t quick_ns = 1000000000;
    if (l->aside.n)
        qsort(l->aside.p, l->aside.n, sizeof *l->aside.p, by_remote);
    for (size_t i = 1; i < l->aside.n; i++) {
        const struct clock_sample *s = &l->aside.p[i - 1];
        if (s[1].remote - s[0].remote > quick_ns || s[1].host < s[0].host || s[1].host - s[0].host > quick_ns)
            continue;
        struct clock_cell *c = &l->cells.p[clock_cell_at(l, s[0].remote)];
        wide length = (wide)c->x[1] - c->x[0];
        struct clock_range r = {sync_saturate(s[0].host - length), sync_saturate(s[1].host + length), true};
        widen(c, (struct clock_range[2]){r, r});
    }
}

/* All cells as if the clock were quiet; loud[i] is set where the comparisons show that in gap i it is not. */
static int bound_quiet(struct clock_prover *b, uint8_t *loud)
{
    struct clock_line *l = b->l;
    int rc = 0;
    for (size_t i = 0; i < l->bursts.n && !rc; i++) {
        int64_t start = clock_burst_start(l, i), end = clock_burst_end(l, i);
        bool last = i + 1 == l->bursts.n;
        if (!vec_push(&l->cells, empty_cell(start, end)) ||
            (!last && !vec_push(&l->cells, empty_cell(end, clock_burst_start(l, i + 1)))))
            return -MRD_ENOMEM;
        if (!last)
            rc = clock_proof_gap(b, vec_last(&l->cells)->x, i, CLOCK_QUIET, &b->gaps[i]);
    }
    if (!rc)
        clock_proof_hidden(b);
    for (size_t i = 0; i + 1 < l->bursts.n && !rc; i++) {
        bool quiet;
        rc = bound_gap(b, i, &quiet);
        loud[i] = !quiet && !clock_source_changed(l, i, i + 1);
    }
    for (size_t i = 0; i < l->bursts.n && !rc; i++)
        rc = bound_burst(b, i);
    return rc;
}

/* Whether a gap within the reach of burst or gap i is loud. */
static bool is_restless(const struct clock_line *l, const uint8_t *loud, size_t i)
{
    const int64_t near = clock_regimes[CLOCK_QUIET].apart_ns;
    for (size_t k = i;
         k + 1 < l->bursts.n && (k <= i + 1 || (wide)clock_burst_end(l, k) - clock_burst_end(l, i) <= near); k++)
        if (loud[k])
            return true;
    for (size_t k = i; k-- > 0 && (k + 2 >= i || (wide)clock_burst_start(l, i) - clock_burst_end(l, k) <= near);)
        if (loud[k])
            return true;
    return false;
}

/* Widens the cells near those where the clock is loud; cuts the line where it stepped. */
static int bound_restless(struct clock_prover *b, const uint8_t *loud)
{
    struct clock_line *l = b->l;
    bool stepped = false;
    for (size_t i = 0; i < l->bursts.n; i++) {
        int64_t step = 0;
        int rc = 0;
        if (!extend_span(l, i, stepped))
            return -MRD_ENOMEM;
        const bool restless = is_restless(l, loud, i), last = i + 1 == l->bursts.n;
        if (restless)
            rc = bound_restless_burst(b, i);
        if (!rc && !last && (restless || clock_source_changed(l, i, i + 1)))
            rc = bound_restless_gap(b, i, &step);
        stepped = step != 0 || (!last && clock_source_changed(l, i, i + 1));
        const int64_t *x = step ? l->cells.p[2 * i + 1].x : NULL;
        if (!rc && step && !vec_push(&l->steps, (struct clock_step){{x[0], x[1]}, step}))
            rc = -MRD_ENOMEM;
        if (rc)
            return rc;
    }
    return 0;
}

int clock_bound_fit(struct clock_line *l, struct sync_hull *h)
{
    struct sync_hull other = {0};
    vec_clear(&l->cells);
    vec_clear(&l->steps);
    vec_clear(&l->spans);
    l->splits = 0;
    const size_t n = l->bursts.n;
    if (!n)
        return 0;
    uint8_t *loud = mem_zalloc(n);
    struct clock_prover b = {l, h, &other, mem_zalloc(n * sizeof *b.gaps), mem_zalloc(2 * n * sizeof *b.hidden)};
    int rc = loud && b.gaps && b.hidden ? bound_quiet(&b, loud) : -MRD_ENOMEM;
    if (!rc)
        rc = bound_restless(&b, loud);
    if (!rc)
        cover_aside(l);
    sync_hull_free(&other);
    mem_free(b.gaps);
    mem_free(b.hidden);
    mem_free(loud);
    return rc;
}
