/* Proves how far the map of a remote clock can be off: docs/clock-sync.md has the assumptions and the proof. */
#include "base/error.h"
#include "importer/clock/clock_line_private.h"

#include <assert.h>
#include <stdlib.h>

/* What the host's time can be at one reading; a hypothesis that no clock satisfies has none. */
struct range {
    int64_t lo, hi;
    bool has;
};

/* The hypotheses about a cell, each at both of its ends. */
struct proof {
    struct range left[2];  /* nothing happens up to the time in question: what the comparisons before the cell say */
    struct range right[2]; /* nothing happens from there on: those behind it */
    struct range both[2];  /* nothing happens in the cell: those at its ends */
    /* While the clock is quiet, of gaps: */
    struct range before[2];     /* the rate stepped before the gap: what comes behind it, and the burst before it */
    struct range behind[2];     /* it steps behind the gap */
    struct range left_same[2];  /* the time steps and the rate is the same on both sides; the comparisons before it */
    struct range right_same[2]; /* those behind it */
};

struct bound {
    struct clock_line *l;
    struct sync_hull *h, *other;
};

static int64_t first_of(const struct clock_line *l, size_t burst)
{
    return l->samples.p[l->bursts.p[burst].first].remote;
}

static int64_t last_of(const struct clock_line *l, size_t burst)
{
    return l->samples.p[l->bursts.p[burst].end - 1].remote;
}

static struct range range_at(const struct sync_hull *h, int64_t x)
{
    struct range r = {0};
    r.has = sync_hull_range(h, x, &r.lo, &r.hi) && r.lo <= r.hi;
    return r;
}

static int solve(struct sync_hull *h, int64_t slope_ppb, int64_t x, struct range *out)
{
    int rc = sync_hull_solve(h, &(struct sync_limits){.slope_ppb = slope_ppb});
    *out = rc ? (struct range){0} : range_at(h, x);
    return rc;
}

/* How many bursts there are from `near` on in direction `dir`, up to `until`. */
static size_t count_bursts(const struct clock_line *l, size_t near, int dir, wide until)
{
    size_t n = 1;
    if (dir < 0)
        while (n <= near && first_of(l, near - n) >= until)
            n++;
    else
        while (near + n < l->bursts.n && last_of(l, near + n) <= until)
            n++;
    return n;
}

static int add_bursts(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t near, int dir, size_t n)
{
    sync_hull_clear(h);
    int rc = clock_burst_add(l, h, x, &l->bursts.p[near], true);
    for (size_t away = 1; away < n && !rc; away = clock_burst_away(away))
        rc = clock_burst_add(l, h, x, &l->bursts.p[dir < 0 ? near - away : near + away], false);
    return rc;
}

/* What the n bursts from `near` on say about x, when nothing happens between them and x; in `h` then. Where they
 * contradict each other the clock stepped amid them: only the nearer ones count. */
static int one_sided(const struct clock_line *l, struct sync_hull *h, size_t near, int dir, size_t n, int64_t x,
                     struct range *out)
{
    const int64_t limit = n > 1 ? CLOCK_RATE_LIMIT_PPB : CLOCK_RATE_STEP_PPB;
    const size_t least = n > 1 ? 2 : 1; /* when even the nearest two contradict each other their rate is not known */
    *out = (struct range){0};
    for (; n >= least && !out->has; n /= 2) {
        int rc = add_bursts(l, h, x, near, dir, n);
        if (!rc)
            rc = solve(h, limit, x, out);
        if (rc)
            return rc;
    }
    return 0;
}

/* What the bursts first..last say about x together. */
static int together(struct bound *b, size_t first, size_t last, int64_t x, struct range *out)
{
    sync_hull_clear(b->h);
    int rc = clock_burst_add(b->l, b->h, x, &b->l->bursts.p[first], true);
    if (last != first && !rc)
        rc = clock_burst_add(b->l, b->h, x, &b->l->bursts.p[last], true);
    return rc ? rc : solve(b->h, CLOCK_RATE_LIMIT_PPB, x, out);
}

/* How many bursts on the two sides of [x[0], x[1]] lie within the time in which the clock steps once at most. `pause`:
 * between the comparisons around. */
static void count_sides(const struct clock_line *l, const int64_t x[2], wide pause, enum clock_mood_id mood,
                        const size_t near[2], size_t n[2])
{
    wide apart = pause * clock_moods[mood].apart_pauses;
    apart = apart > clock_moods[mood].apart_ns ? apart : clock_moods[mood].apart_ns;
    n[0] = near[0] < l->bursts.n ? count_bursts(l, near[0], -1, x[1] - apart) : 0;
    n[1] = near[1] < l->bursts.n ? count_bursts(l, near[1], 1, x[0] + apart) : 0;
}

/* What both sides say about x when their tangents there have one rate: each with the rates that the other one allows.
 * Nothing when these are none. */
static int same_rate(struct bound *b, int64_t x, struct range *left, struct range *right)
{
    int64_t least[2], most[2];
    struct sync_hull *h[2] = {b->h, b->other};
    struct range *out[2] = {left, right};
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

/* What the comparisons on one side say together with the burst on the other side of the gap, amid which the rate may
 * have stepped. */
static int across(const struct clock_line *l, struct sync_hull *h, size_t near, int dir, size_t n, int64_t x,
                  struct range *out)
{
    const struct clock_burst *far = &l->bursts.p[dir < 0 ? near + 1 : near - 1];
    int rc = add_bursts(l, h, x, near, dir, n);
    if (!rc)
        rc = clock_burst_add_relaxed(l, h, x, far, l->samples.p[dir < 0 ? far->first : far->end - 1].remote);
    return rc ? rc : solve(h, CLOCK_RATE_LIMIT_PPB, x, out);
}

/* The hypotheses about the gap behind burst i. */
static int gather_gap(struct bound *b, const int64_t x[2], size_t i, enum clock_mood_id mood, struct proof *p)
{
    const struct clock_line *l = b->l;
    const size_t near[2] = {i, i + 1};
    size_t n[2];
    *p = (struct proof){0};
    count_sides(l, x, (wide)x[1] - x[0], mood, near, n);
    for (int e = 0; e < 2; e++) {
        int rc = one_sided(l, b->h, near[0], -1, n[0], x[e], &p->left[e]);
        if (!rc)
            rc = one_sided(l, b->other, near[1], 1, n[1], x[e], &p->right[e]);
        if (!rc && mood == CLOCK_QUIET && p->left[e].has && p->right[e].has)
            rc = same_rate(b, x[e], &p->left_same[e], &p->right_same[e]);
        if (!rc && mood == CLOCK_QUIET)
            rc = across(l, b->h, near[0], -1, n[0], x[e], &p->behind[e]);
        if (!rc && mood == CLOCK_QUIET)
            rc = across(l, b->h, near[1], 1, n[1], x[e], &p->before[e]);
        if (!rc && mood == CLOCK_RESTLESS)
            rc = together(b, i, i + 1, x[e], &p->both[e]);
        if (rc)
            return rc;
    }
    return 0;
}

/* The hypotheses about burst i when the clock is not quiet. */
static int gather_burst(struct bound *b, const int64_t x[2], size_t i, struct proof *p)
{
    const struct clock_line *l = b->l;
    const size_t near[2] = {i > 0 ? i - 1 : SIZE_MAX, i + 1};
    size_t n[2];
    *p = (struct proof){0};
    count_sides(l, x, i > 0 ? (wide)first_of(l, i) - last_of(l, i - 1) : 0, CLOCK_RESTLESS, near, n);
    for (int e = 0; e < 2; e++) {
        int rc = n[0] ? one_sided(l, b->h, near[0], -1, n[0], x[e], &p->left[e]) : 0;
        if (!rc && n[1])
            rc = one_sided(l, b->h, near[1], 1, n[1], x[e], &p->right[e]);
        if (!rc)
            rc = together(b, i, i, x[e], &p->both[e]);
        if (rc)
            return rc;
    }
    return 0;
}

static bool holds(const struct range r[2])
{
    return r[0].has && r[1].has;
}

static void widen(struct clock_cell *c, const struct range r[2])
{
    for (int e = 0; e < 2 && holds(r); e++) {
        c->lo[e] = r[e].lo < c->lo[e] ? r[e].lo : c->lo[e];
        c->hi[e] = r[e].hi > c->hi[e] ? r[e].hi : c->hi[e];
    }
}

/* When the comparisons on one side, too, contradict each other, so that the clock stepped more than once: any rate up
 * to a limit, the first that explains the comparisons at both ends; and when none does, any time between them: clocks
 * go forward. Returns by how much the clock stepped then, else 0. */
static int64_t widen_anyhow(struct clock_cell *c, const struct range *begin, const struct range *end)
{
    static const int64_t limits_ppb[] = {CLOCK_RATE_STEP_PPB, CLOCK_RATE_LIMIT_PPB};
    wide length = (wide)c->x[1] - c->x[0], most = (wide)end->hi - begin->lo, least = (wide)end->lo - begin->hi;
    struct range r[2] = {*begin, *end};
    for (size_t i = 0; i < sizeof limits_ppb / sizeof *limits_ppb; i++) {
        wide slack = length * (limits_ppb[i] / 1000) / 1000000 + 1;
        if (least > length + slack || most < length - slack)
            continue;
        for (int e = 0; e < 2; e++)
            r[e] = (struct range){sync_saturate(r[e].lo - slack), sync_saturate(r[e].hi + slack), true};
        widen(c, r);
        return 0;
    }
    r[0].lo = r[1].lo = begin->lo < end->lo ? begin->lo : end->lo;
    r[0].hi = r[1].hi = begin->hi > end->hi ? begin->hi : end->hi;
    widen(c, r);
    return sync_saturate((most + least) / 2 - length);
}

static bool contradict(const struct range *a, const struct range *b)
{
    return a->lo > b->hi || a->hi < b->lo;
}

/* How far what comes behind a gap lies from what comes before it, at both of its ends on the same side: then no change
 * of rate in the gap explains it. Else 0. */
static int64_t step_of(const struct proof *p)
{
    const struct range *a = p->left, *b = p->right;
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

static void widen_all(struct clock_cell *c, const struct proof *p)
{
    widen(c, p->both);
    widen(c, p->left);
    widen(c, p->right);
}

/* Whether what comes before a gap and what comes behind it go together: no step shows. */
static bool goes_together(const struct proof *p)
{
    return holds(p->left) && holds(p->right) && !contradict(&p->left[0], &p->right[0]) &&
           !contradict(&p->left[1], &p->right[1]);
}

static struct clock_cell empty_cell(int64_t first, int64_t end)
{
    return (struct clock_cell){{first, end}, {INT64_MAX, INT64_MAX}, {INT64_MIN, INT64_MIN}};
}

/* Whether the comparisons around a gap show no step of the time nor of the rate. */
static bool shows_nothing(const struct proof *p)
{
    return goes_together(p) && holds(p->before) && holds(p->behind) && holds(p->left_same) && holds(p->right_same);
}

/* The rate steps in the gap and the time does not: up to the step what comes before holds, from there on what comes
 * behind, and at the step both. So it begins where the left side allows and ends where the right side allows, and in
 * between it leaves the chord by no more than where the two sides' own chords meet. */
static void widen_kink(struct clock_cell *c, const struct proof *p)
{
    struct range r[2] = {p->left[0], p->right[1]};
    wide up[2] = {(wide)p->left[1].hi - p->right[1].hi, (wide)p->right[0].hi - p->left[0].hi};
    wide down[2] = {(wide)p->right[1].lo - p->left[1].lo, (wide)p->left[0].lo - p->right[0].lo};
    wide above = up[0] > 0 && up[1] > 0 ? up[0] * up[1] / (up[0] + up[1]) + 1 : 0;
    wide below = down[0] > 0 && down[1] > 0 ? down[0] * down[1] / (down[0] + down[1]) + 1 : 0;
    for (int e = 0; e < 2; e++) {
        r[e].hi = sync_saturate(r[e].hi + above);
        r[e].lo = sync_saturate(r[e].lo - below);
    }
    widen(c, r);
}

/* The gap behind burst i when the clock is quiet; *quiet says whether the comparisons agree with that. */
static int bound_gap(struct bound *b, size_t i, bool *quiet)
{
    struct clock_line *l = b->l;
    struct clock_cell c = empty_cell(last_of(l, i), first_of(l, i + 1));
    struct proof p;
    int rc = gather_gap(b, c.x, i, CLOCK_QUIET, &p);
    *quiet = shows_nothing(&p);
    if (*quiet) {
        widen_kink(&c, &p);
        widen(&c, p.before);
        widen(&c, p.behind);
        widen(&c, p.left_same);
        widen(&c, p.right_same);
    } else {
        widen_all(&c, &p);
    }
    return rc ? rc : vec_push(&l->cells, c) ? 0 : -MRD_ENOMEM;
}

/* The same gap when it is not: what fewer comparisons say, on top. *step is how far the clock stepped in it, 0 when a
 * change of its rate explains the comparisons. */
static int bound_restless_gap(struct bound *b, size_t i, int64_t *step)
{
    struct clock_line *l = b->l;
    struct clock_cell *c = &l->cells.p[2 * i + 1];
    struct proof p;
    struct range begin = {0}, end = {0};
    int rc = gather_gap(b, c->x, i, CLOCK_RESTLESS, &p);
    if (!rc)
        rc = together(b, i, i, c->x[0], &begin);
    if (!rc)
        rc = together(b, i + 1, i + 1, c->x[1], &end);
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
static int bound_burst(struct bound *b, size_t i)
{
    struct clock_line *l = b->l;
    struct clock_cell *c = &l->cells.p[2 * i];
    const struct clock_cell *prev = i > 0 ? c - 1 : NULL, *next = i + 1 < l->bursts.n ? c + 1 : NULL;
    wide length = (wide)c->x[1] - c->x[0], slack = 0, pace = length;
    if (prev && next) { /* the pace around it */
        wide rise = ((wide)next->lo[1] + next->hi[1] - prev->lo[0] - prev->hi[0]) / 2;
        wide way = (wide)next->x[1] - prev->x[0];
        pace = rise > -4 * way && rise < 4 * way ? length * rise / way : length;
        slack = length * CLOCK_HIDDEN_STEP_PPB / 1000000000 + 1;
    } else {
        slack = length * (CLOCK_RATE_STEP_PPB / 1000) / 1000000 + 1;
    }
    struct range own[2] = {0};
    for (int e = 0; e < 2 && !(prev && next); e++) {
        int rc = together(b, i, i, c->x[e], &own[e]);
        if (rc)
            return rc;
    }
    widen(c, own);
    for (int side = 0; side < 2; side++) {
        const struct clock_cell *from = side ? next : prev;
        struct range r[2];
        for (int e = 0; e < 2 && from; e++) {
            wide way = e == side ? 0 : side ? -pace : pace;
            r[e] = (struct range){sync_saturate(from->lo[!side] + way - slack),
                                  sync_saturate(from->hi[!side] + way + slack), true};
        }
        if (from)
            widen(c, r);
    }
    return 0;
}

static int bound_restless_burst(struct bound *b, size_t i)
{
    struct clock_cell *c = &b->l->cells.p[2 * i];
    struct proof p;
    int rc = gather_burst(b, c->x, i, &p);
    widen_all(c, &p);
    return rc;
}

/* The cell that holds x: the burst or the gap in whose [x[0], x[1]) it lies; beyond the ends the first and the last. */
static size_t cell_at(const struct clock_line *l, int64_t x)
{
    size_t lo = 0, hi = l->cells.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->cells.p[mid].x[0] <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? lo - 1 : 0;
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
        struct clock_cell *c = &l->cells.p[cell_at(l, s[0].remote)];
        wide length = (wide)c->x[1] - c->x[0];
        struct range r = {sync_saturate(s[0].host - length), sync_saturate(s[1].host + length), true};
        widen(c, (struct range[2]){r, r});
    }
}

/* All cells as if the clock were quiet; loud[i] is set where the comparisons show that in gap i it is not. */
static int bound_quiet(struct bound *b, uint8_t *loud)
{
    struct clock_line *l = b->l;
    for (size_t i = 0; i < l->bursts.n; i++) {
        bool quiet = true;
        int rc = vec_push(&l->cells, empty_cell(first_of(l, i), last_of(l, i))) ? 0 : -MRD_ENOMEM;
        if (!rc && i + 1 < l->bursts.n)
            rc = bound_gap(b, i, &quiet);
        if (rc)
            return rc;
        loud[i] = !quiet;
    }
    int rc = 0;
    for (size_t i = 0; i < l->bursts.n && !rc; i++)
        rc = bound_burst(b, i);
    return rc;
}

/* Whether a gap within the reach of burst or gap i is loud. */
static bool is_restless(const struct clock_line *l, const uint8_t *loud, size_t i)
{
    const int64_t near = clock_moods[CLOCK_QUIET].apart_ns;
    for (size_t k = i; k + 1 < l->bursts.n && (k <= i + 1 || (wide)last_of(l, k) - last_of(l, i) <= near); k++)
        if (loud[k])
            return true;
    for (size_t k = i; k-- > 0 && (k + 2 >= i || (wide)first_of(l, i) - last_of(l, k) <= near);)
        if (loud[k])
            return true;
    return false;
}

/* Widens the cells near those where the clock is loud; cuts the line where it stepped. */
static int bound_restless(struct bound *b, const uint8_t *loud)
{
    struct clock_line *l = b->l;
    bool stepped = false;
    for (size_t i = 0; i < l->bursts.n; i++) {
        int64_t step = 0;
        int rc = 0;
        if (!extend_span(l, i, stepped))
            return -MRD_ENOMEM;
        if (is_restless(l, loud, i)) {
            rc = bound_restless_burst(b, i);
            if (!rc && i + 1 < l->bursts.n)
                rc = bound_restless_gap(b, i, &step);
        }
        stepped = step != 0;
        const int64_t *x = stepped ? l->cells.p[2 * i + 1].x : NULL;
        if (!rc && stepped && !vec_push(&l->steps, (struct clock_step){{x[0], x[1]}, step}))
            rc = -MRD_ENOMEM;
        if (rc)
            return rc;
    }
    return 0;
}

int clock_bound_fit(struct clock_line *l, struct sync_hull *h)
{
    struct sync_hull other = {0};
    struct bound b = {l, h, &other};
    vec_clear(&l->cells);
    vec_clear(&l->steps);
    vec_clear(&l->spans);
    l->splits = 0;
    if (!l->bursts.n)
        return 0;
    uint8_t *loud = mem_zalloc(l->bursts.n);
    int rc = loud ? bound_quiet(&b, loud) : -MRD_ENOMEM;
    if (!rc)
        rc = bound_restless(&b, loud);
    if (!rc)
        cover_aside(l);
    sync_hull_free(&other);
    mem_free(loud);
    return rc;
}

const struct clock_span *clock_span_of(const struct clock_line *l, size_t burst)
{
    size_t lo = 0, hi = l->spans.n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->spans.p[mid].end <= burst)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &l->spans.p[lo];
}

/* The quickest round trip of what surrounds a cell: an error below half of it is never claimed. */
static int64_t floor_of(const struct clock_line *l, size_t cell)
{
    int64_t a = clock_span_of(l, cell / 2)->min_rtt_ns, b = clock_span_of(l, (cell + 1) / 2)->min_rtt_ns;
    return (a < b ? a : b) / 2 + 1;
}

static int64_t chord(const int64_t y[2], wide at, wide length)
{
    if (length <= 0)
        return y[0];
    wide rise = (wide)y[1] - y[0];
    return sync_saturate(y[0] + (rise / length) * at + (rise % length) * at / length);
}

int64_t clock_line_error(const struct clock_line *l, int64_t remote)
{
    size_t i = cell_at(l, remote);
    const struct clock_cell *c = &l->cells.p[i];
    wide length = (wide)c->x[1] - c->x[0], at = (wide)remote - c->x[0], away = 0, slack = 0;
    if (at < 0 || at > length) { /* before the first comparison, or after the last */
        bool last = at > length;
        away = last ? at - length : -at;
        at = last ? length : 0;
        wide growth = ((away * l->end_slope[last]) >> 30) + 1;
        slack = growth + clock_bend(away) + away * (CLOCK_RATE_STEP_PPB / 1000) / 1000000 + 1;
        remote = c->x[last];
    } else {
        slack = clock_bulge(at, length);
    }
    wide map = clock_line_to_host(l, remote);
    wide above = chord(c->hi, at, length) - map, below = map - chord(c->lo, at, length);
    wide error = (above > below ? above : below) + slack + 2;
    wide least = floor_of(l, i);
    error = error > least ? error : least;
    assert(2 * error > clock_span_of(l, i / 2)->min_rtt_ns || 2 * error > clock_span_of(l, (i + 1) / 2)->min_rtt_ns);
    return sync_saturate(error);
}

int64_t clock_line_worst(const struct clock_line *l, int64_t first, int64_t end)
{
    int64_t worst = 0;
    for (size_t i = cell_at(l, first); i < l->cells.n && (l->cells.p[i].x[0] <= end || i == 0); i++) {
        const struct clock_cell *c = &l->cells.p[i];
        int64_t a = c->x[0] > first ? c->x[0] : first, b = c->x[1] < end ? c->x[1] : end;
        b = b > a ? b : a;
        const int64_t at[] = {a, a + (b - a) / 2, b > a ? b - 1 : b};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            int64_t e = clock_line_error(l, at[k]);
            worst = e > worst ? e : worst;
        }
    }
    return worst;
}
