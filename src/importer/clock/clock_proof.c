/* What the comparisons around a gap or a burst prove, whatever happened to the clock there. docs/clock-sync.md has the
 * assumptions and the proof. */
#include "base/error.h"
#include "importer/clock/clock_line_private.h"

enum {
    MOST_BURSTS = 64, /* on a side, of which all count; of more, fewer and fewer */
    READINGS = 4,     /* bursts of whose readings of two clocks the quickest counts */
};

static struct clock_range range_at(const struct sync_hull *h, int64_t x)
{
    struct clock_range r = {0};
    r.has = sync_hull_range(h, x, &r.lo, &r.hi) && r.lo <= r.hi;
    return r;
}

static int solve(struct sync_hull *h, int64_t slope_ppb, int64_t x, struct clock_range *out)
{
    int rc = sync_hull_solve(h, &(struct sync_limits){.slope_ppb = slope_ppb});
    *out = rc ? (struct clock_range){0} : range_at(h, x);
    return rc;
}

/* How many bursts there are from `near` on in direction `dir`, up to `until` and as long as the clock sources stay. */
static size_t count_bursts(const struct clock_line *l, size_t near, int dir, wide until)
{
    size_t n = 1;
    if (dir < 0)
        while (n <= near && clock_burst_start(l, near - n) >= until && !clock_source_changed(l, near - n, near))
            n++;
    else
        while (near + n < l->bursts.n && clock_burst_end(l, near + n) <= until &&
               !clock_source_changed(l, near + n, near))
            n++;
    return n;
}

static int add_bursts(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t near, int dir, size_t n)
{
    sync_hull_clear(h);
    int rc = clock_burst_add(l, h, x, &l->bursts.p[near], true, NULL);
    for (size_t away = 1; away < n && !rc; away = n > MOST_BURSTS ? clock_burst_away(away) : away + 1)
        rc = clock_burst_add(l, h, x, &l->bursts.p[dir < 0 ? near - away : near + away], false, NULL);
    return rc;
}

/* What the *n bursts from `near` on say about x, when nothing happens between them and x; in `h` then. Where they
 * contradict each other the clock stepped amid them: only the nearer ones count, *n of them. */
static int one_sided(const struct clock_line *l, struct sync_hull *h, size_t near, int dir, size_t *n, int64_t x,
                     struct clock_range *out)
{
    const int64_t limit = *n > 1 ? CLOCK_RATE_LIMIT_PPB : CLOCK_RATE_STEP_PPB;
    const size_t least = *n > 1 ? 2 : 1; /* when even the nearest two contradict each other their rate is not known */
    size_t left = *n;
    *out = (struct clock_range){0};
    for (; left >= least && !out->has; left /= 2) {
        int rc = add_bursts(l, h, x, near, dir, left);
        if (!rc)
            rc = solve(h, limit, x, out);
        if (rc)
            return rc;
        *n = left;
    }
    return 0;
}

int clock_proof_together(struct clock_prover *b, size_t first, size_t last, int64_t x, struct clock_range *out)
{
    sync_hull_clear(b->h);
    int rc = clock_burst_add(b->l, b->h, x, &b->l->bursts.p[first], true, NULL);
    if (last != first && !rc)
        rc = clock_burst_add(b->l, b->h, x, &b->l->bursts.p[last], true, NULL);
    return rc ? rc : solve(b->h, CLOCK_RATE_LIMIT_PPB, x, out);
}

/* Within what time the clock steps once at most. `pause`: between the comparisons around. */
static wide steps_apart(wide pause, enum clock_regime_id regime)
{
    wide apart = pause * clock_regimes[regime].apart_pauses;
    return apart > clock_regimes[regime].apart_ns ? apart : clock_regimes[regime].apart_ns;
}

/* How many bursts on the two sides of [x[0], x[1]] lie within that time. */
static void count_sides(const struct clock_line *l, const int64_t x[2], wide apart, const size_t near[2], size_t n[2])
{
    n[0] = near[0] < l->bursts.n ? count_bursts(l, near[0], -1, x[1] - apart) : 0;
    n[1] = near[1] < l->bursts.n ? count_bursts(l, near[1], 1, x[0] + apart) : 0;
}

/* What both sides say about x when their tangents there have one rate: each with the rates that the other one allows.
 * Nothing when these are none. */
static int same_rate(struct clock_prover *b, int64_t x, struct clock_range *left, struct clock_range *right)
{
    int64_t least[2], most[2];
    struct sync_hull *h[2] = {b->h, b->other};
    struct clock_range *out[2] = {left, right};
    for (int i = 0; i < 2; i++)
        if (!sync_hull_slopes(h[i], &least[i], &most[i]))
            return 0;
    int64_t lo = least[0] > least[1] ? least[0] : least[1], hi = most[0] < most[1] ? most[0] : most[1];
    if (lo > hi)
        return 0;
    for (int i = 0; i < 2; i++) {
        struct sync_limits limits = {.centre_ppb = lo + (hi - lo) / 2, .slope_ppb = (hi - lo) / 2 + 1};
        int rc = sync_hull_limit(h[i], &limits);
        if (rc)
            return rc;
        *out[i] = range_at(h[i], x);
    }
    return 0;
}

/* Of the readings of the bursts from `burst` on, the one that took the least time: MONOTONIC_RAW comes after the other
 * clock. NULL when one is without it. */
static const struct clock_sample *quickest_reading(const struct clock_line *l, size_t burst, int dir, size_t n,
                                                   int whose)
{
    const struct clock_sample *best = NULL;
    for (; n; n--, burst += (size_t)dir) {
        const struct clock_burst *in = &l->bursts.p[burst];
        for (size_t i = in->first; i < in->end; i++) {
            const struct clock_sample *s = &l->samples.p[i];
            if (!s->has_raw)
                return NULL;
            if (!best || s->ahead[whose] > best->ahead[whose])
                best = s;
        }
    }
    return best;
}

/* How fast a clock runs against its machine's MONOTONIC_RAW, by the n bursts from `near` on; nothing when no rate
 * explains the readings. Of some readings the quickest counts. */
static int own_rate(struct clock_prover *b, size_t near, int dir, size_t n, int whose, struct clock_own_rate *out)
{
    const struct clock_line *l = b->l;
    n = n < MOST_BURSTS ? n : MOST_BURSTS;
    const size_t step = n >= 4 * READINGS ? READINGS : n >= READINGS ? READINGS / 2 : 1;
    const struct clock_sample *first = NULL;
    int rc = 0;
    *out = (struct clock_own_rate){0};
    sync_hull_clear(b->h);
    for (size_t away = 0; away + step <= n && !rc; away += step) {
        const struct clock_sample *s = quickest_reading(l, dir < 0 ? near - away : near + away, dir, step, whose);
        if (!s)
            return 0;
        first = first ? first : s;
        const int64_t at = whose ? s->host : s->remote;
        wide dt = (wide)at - (whose ? first->host : first->remote);
        wide jitter = (dt < 0 ? -dt : dt) * CLOCK_NOISE_PPB / 1000000000 + 1;
        wide raw = (wide)at + s->ahead[whose] - first->ahead[whose];
        rc = sync_hull_add(b->h, SYNC_BELOW, at, sync_saturate(raw - jitter));
        if (!rc)
            rc = sync_hull_add(b->h, SYNC_ABOVE, at, sync_saturate(raw + jitter + CLOCK_READING_NS));
    }
    if (rc == -MRD_ELIMIT)
        return 0;
    if (!rc)
        rc = sync_hull_solve(b->h, &(struct sync_limits){.slope_ppb = CLOCK_RATE_LIMIT_PPB});
    out->has = !rc && sync_hull_slopes(b->h, &out->least_ppb, &out->most_ppb);
    return rc;
}

static int own_rates(struct clock_prover *b, size_t i, struct clock_proof *p)
{
    int rc = 0;
    for (int whose = 0; whose < 2 && !rc; whose++) {
        rc = own_rate(b, i, -1, p->n[0], whose, &p->own[whose][0]);
        if (!rc)
            rc = own_rate(b, i + 1, 1, p->n[1], whose, &p->own[whose][1]);
    }
    return rc;
}

int clock_proof_gap(struct clock_prover *b, const int64_t x[2], size_t i, enum clock_regime_id regime,
                    struct clock_proof *p)
{
    const struct clock_line *l = b->l;
    const size_t near[2] = {i, i + 1};
    *p = (struct clock_proof){0};
    count_sides(l, x, steps_apart((wide)x[1] - x[0], regime), near, p->n);
    for (int e = 0; e < 2; e++) {
        int rc = one_sided(l, b->h, near[0], -1, &p->n[0], x[e], &p->left[e]);
        if (!rc)
            rc = one_sided(l, b->other, near[1], 1, &p->n[1], x[e], &p->right[e]);
        bool both = p->left[e].has && p->right[e].has;
        if (e == 0 && both)
            p->has_rate[0] = sync_hull_slopes(b->h, &p->least_ppb[0], &p->most_ppb[0]);
        if (e == 1 && both)
            p->has_rate[1] = sync_hull_slopes(b->other, &p->least_ppb[1], &p->most_ppb[1]);
        if (!rc && regime == CLOCK_QUIET && both)
            rc = same_rate(b, x[e], &p->left_same[e], &p->right_same[e]);
        if (!rc && regime == CLOCK_RESTLESS)
            rc = clock_proof_together(b, i, i + 1, x[e], &p->both[e]);
        if (rc)
            return rc;
    }
    return regime == CLOCK_QUIET ? own_rates(b, i, p) : 0;
}

int clock_proof_burst(struct clock_prover *b, const int64_t x[2], size_t i, struct clock_proof *p)
{
    const struct clock_line *l = b->l;
    const size_t near[2] = {i > 0 ? i - 1 : SIZE_MAX, i + 1};
    wide pause = i > 0 ? (wide)clock_burst_start(l, i) - clock_burst_end(l, i - 1) : 0;
    *p = (struct clock_proof){0};
    count_sides(l, x, steps_apart(pause, CLOCK_RESTLESS), near, p->n);
    for (int e = 0; e < 2; e++) {
        int rc = p->n[0] ? one_sided(l, b->h, near[0], -1, &p->n[0], x[e], &p->left[e]) : 0;
        if (!rc && p->n[1])
            rc = one_sided(l, b->h, near[1], 1, &p->n[1], x[e], &p->right[e]);
        if (!rc)
            rc = clock_proof_together(b, i, i, x[e], &p->both[e]);
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- what may hide ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How far the rates of two clocks may have stepped by the readings of their own machines: those of MONOTONIC_RAW do not
 * step. */
static int64_t hidden_own_rate(const struct clock_proof *left, const struct clock_proof *right)
{
    int64_t sum = CLOCK_RAW_STEP_PPB;
    for (int whose = 0; whose < 2; whose++) {
        const struct clock_own_rate *a = &left->own[whose][0], *b = &right->own[whose][1];
        if (!a->has || !b->has)
            return 2 * CLOCK_RATE_LIMIT_PPB;
        sum += larger(larger(b->most_ppb - a->least_ppb, a->most_ppb - b->least_ppb), 0);
    }
    return sum;
}

/* How far the rate may have stepped between the comparisons of two proofs, `left` before and `right` behind, `way`
 * apart. */
static int64_t hidden_rate(const struct clock_proof *left, const struct clock_proof *right, wide way)
{
    int64_t own = hidden_own_rate(left, right), shown = 2 * CLOCK_RATE_LIMIT_PPB;
    if (left->has_rate[0] && right->has_rate[1])
        shown = larger(right->most_ppb[1] - left->least_ppb[0], left->most_ppb[0] - right->least_ppb[1]);
    wide wander = way * CLOCK_WANDER_PPB_PER_S / 1000000000 + 2 * CLOCK_NOISE_PPB + 1;
    return sync_saturate((wide)larger(own < shown ? own : shown, 0) + wander);
}

/* Whether the time may have stepped by as much as it does when it steps at all: by least to most. */
static bool may_step(wide least, wide most)
{
    return most >= CLOCK_LEAST_STEP_NS || -least >= CLOCK_LEAST_STEP_NS;
}

static bool may_step_in_gap(const struct clock_proof *p)
{
    for (int e = 0; e < 2; e++) {
        const struct clock_range *a = &p->left_same[e], *b = &p->right_same[e];
        if (!a->has || !b->has || may_step((wide)b->lo - a->hi, (wide)b->hi - a->lo))
            return true;
    }
    return false;
}

/* Takes `r` to what it is together with `from`, `way` earlier or (negative) later, at a rate that lies within
 * [least_ppb, most_ppb] some way off. */
static void carry(struct clock_range *r, const struct clock_range *from, wide way, int64_t least_ppb, int64_t most_ppb,
                  wide slack)
{
    wide a = way + way * least_ppb / 1000000000, b = way + way * most_ppb / 1000000000;
    wide lo = from->lo + (a < b ? a : b) - slack, hi = from->hi + (a < b ? b : a) + slack;
    r->lo = lo > r->lo ? sync_saturate(lo) : r->lo;
    r->hi = hi < r->hi ? sync_saturate(hi) : r->hi;
}

/* Amid the burst between two gaps, from `start` to `end`; x: where the gap before it begins, and that behind it ends.
 * The rate is the same before the step and behind it. */
static bool may_step_amid(const struct clock_proof *before, const struct clock_proof *behind, const wide x[2],
                          wide start, wide end)
{
    struct clock_range a = before->left[1], b = behind->right[0];
    if (!a.has || !b.has || !before->has_rate[0] || !behind->has_rate[1])
        return true;
    const int64_t *least = before->least_ppb, *most = before->most_ppb;
    const wide slack = 2 * (wide)clock_bend(x[1] - x[0]) + 2;
    carry(&a, &before->left[0], start - x[0], behind->least_ppb[1], behind->most_ppb[1], slack);
    carry(&b, &behind->right[1], end - x[1], least[0], most[0], slack);
    const wide length = end - start, bend = clock_bend(length) + 2;
    return may_step((wide)b.lo - a.hi - length - length * most[0] / 1000000000 - bend,
                    (wide)b.hi - a.lo - length - length * least[0] / 1000000000 + bend);
}

void clock_proof_hidden(struct clock_prover *b)
{
    const struct clock_line *l = b->l;
    const size_t gaps = l->bursts.n - 1;
    for (size_t i = 0; i < gaps; i++) {
        const struct clock_proof *p = &b->gaps[i];
        wide way = (wide)clock_burst_start(l, i + 1) - clock_burst_end(l, i);
        b->hidden[2 * i + 1] = (struct clock_hidden){hidden_rate(p, p, way), may_step_in_gap(p)};
    }
    for (size_t i = 0; i <= gaps; i++) {
        struct clock_hidden *hidden = &b->hidden[2 * i];
        *hidden = (struct clock_hidden){CLOCK_RATE_STEP_PPB, gaps && b->hidden[i ? 2 * i - 1 : 1].time};
        if (i == 0 || i == gaps)
            continue;
        const struct clock_proof *p = &b->gaps[i - 1];
        const wide x[2] = {clock_burst_end(l, i - 1), clock_burst_start(l, i + 1)};
        hidden->rate_ppb = hidden_rate(p, p + 1, x[1] - x[0]);
        hidden->time = may_step_amid(p, p + 1, x, clock_burst_start(l, i), clock_burst_end(l, i));
    }
}

/* One end of a gap and what is taken to have happened: nothing near it on side `still` (0: before it); on the other and
 * far away, steps of the rate or of the time. */
struct hypothesis {
    int64_t x;
    size_t gap;
    int e, still;
    wide stillness;
    bool time;
    int64_t least_ppb, most_ppb; /* the rate, when the time stepped on the other side of it */
    bool any;                    /* such a step may be hidden */
};

/* The time may have stepped in a cell: then the rate is what both sides of it allow. */
static void note_time_step(const struct clock_prover *b, struct hypothesis *h, size_t cell)
{
    const size_t gaps = b->l->bursts.n - 1, first = cell ? (cell - 1) / 2 : 0,
                 last = cell / 2 < gaps ? cell / 2 : gaps - 1;
    const struct clock_proof *p = &b->gaps[first], *q = &b->gaps[last];
    int64_t least = -CLOCK_RATE_LIMIT_PPB, most = CLOCK_RATE_LIMIT_PPB;
    if (p->has_rate[0] && q->has_rate[1] && p->least_ppb[0] <= q->most_ppb[1] && q->least_ppb[1] <= p->most_ppb[0]) {
        least = larger(p->least_ppb[0], q->least_ppb[1]);
        most = -larger(-p->most_ppb[0], -q->most_ppb[1]);
    }
    h->least_ppb = h->any && h->least_ppb < least ? h->least_ppb : least;
    h->most_ppb = h->any && h->most_ppb > most ? h->most_ppb : most;
    h->any = true;
}

/* The rate may have stepped in a cell, on the way from `at` outwards. */
static bool note_rate_step(const struct clock_prover *b, struct clock_kinks *k, size_t cell, int64_t at)
{
    const int64_t rate_ppb = b->hidden[cell].rate_ppb;
    if (k->n && rate_ppb <= k->p[k->n - 1].rate_ppb)
        return true; /* one nearer by and no smaller has been noted */
    if (k->n == CLOCK_MOST_KINKS)
        return false;
    k->p[k->n++] = (struct clock_kink){at, rate_ppb};
    return true;
}

/* What may have happened in a cell on the way outwards, from `at` to `until`. False when nothing from there on counts.
 */
static bool pass_cell(const struct clock_prover *b, struct hypothesis *h, struct clock_kinks *k, int dir, size_t cell,
                      int64_t at, int64_t until)
{
    const bool still = (dir < 0) == (h->still == 0);
    const wide way = ((wide)until - h->x) * dir;
    if (h->time) { /* nothing else happens near it */
        if (still || !b->hidden[cell].time)
            return true;
        note_time_step(b, h, cell);
        return false;
    }
    return way <= (still ? h->stillness : 0) || note_rate_step(b, k, cell, at);
}

/* Adds what the bursts from the gap outwards say. */
static int add_outwards(struct clock_prover *b, struct hypothesis *h, int dir)
{
    const struct clock_line *l = b->l;
    struct clock_kinks kinks = {0};
    const size_t near = dir < 0 ? h->gap : h->gap + 1, n = b->gaps[h->gap].n[dir > 0];
    const bool in_gap = !h->time && (dir < 0 ? h->e == 1 && h->still == 1 : h->e == 0 && h->still == 0);
    bool counts = true;
    int rc = 0;
    if (in_gap)
        note_rate_step(b, &kinks, 2 * h->gap + 1, h->x);
    for (size_t away = 0; away < n && away < MOST_BURSTS && !rc; away++) {
        const size_t burst = dir < 0 ? near - away : near + away;
        const int64_t start = clock_burst_start(l, burst), end = clock_burst_end(l, burst);
        const int64_t inner = dir < 0 ? end : start, outer = dir < 0 ? start : end;
        if (away) { /* the gap on the way to it */
            const size_t gap = dir < 0 ? burst : burst - 1;
            const int64_t at = dir < 0 ? clock_burst_start(l, burst + 1) : clock_burst_end(l, burst - 1);
            counts = pass_cell(b, h, &kinks, dir, 2 * gap + 1, at, inner) && counts;
        }
        counts = pass_cell(b, h, &kinks, dir, 2 * burst, inner, outer) && counts;
        if (counts)
            rc = clock_burst_add(l, b->h, h->x, &l->bursts.p[burst], away == 0, &kinks);
        else if (!h->time)
            break;
    }
    return rc;
}

int clock_proof_hypothesis(struct clock_prover *b, const int64_t x[2], size_t i, int e, int still, bool time,
                           struct clock_range *out)
{
    struct hypothesis h = {.x = x[e], .gap = i, .e = e, .still = still, .time = time};
    h.stillness = steps_apart((wide)x[1] - x[0], CLOCK_QUIET) / 2;
    *out = (struct clock_range){0};
    sync_hull_clear(b->h);
    int rc = add_outwards(b, &h, -1);
    if (!rc)
        rc = add_outwards(b, &h, 1);
    if (rc || (time && !h.any))
        return rc;
    struct sync_limits limits = {.slope_ppb = CLOCK_RATE_LIMIT_PPB};
    if (time) { /* by how much the rate may have changed on the way since */
        const int64_t wander =
            (int64_t)(steps_apart((wide)x[1] - x[0], CLOCK_QUIET) * CLOCK_WANDER_PPB_PER_S / 1000000000) +
            2 * CLOCK_NOISE_PPB;
        limits.centre_ppb = h.least_ppb + (h.most_ppb - h.least_ppb) / 2;
        limits.slope_ppb = (h.most_ppb - h.least_ppb) / 2 + wander + 1;
    }
    rc = sync_hull_solve(b->h, &limits);
    *out = rc ? (struct clock_range){0} : range_at(b->h, x[e]);
    return rc;
}
