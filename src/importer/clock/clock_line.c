/* Owns the piecewise linear map of a remote clock. */
#include "importer/clock/clock_line.h"

#include "base/error.h"

#include <stdlib.h>

typedef __int128 wide;

enum {
    NEIGHBOURS = 16, /* bursts on each side that may bound a knot; further ones are too relaxed to matter */
    BURST_SAMPLES = 16,
    REPAIRS = 4
};

static const int64_t longest_round_ns = 30 * INT64_C(1000000000); /* two readings further apart are two exchanges */
static const int64_t burst_gap_ns = 100 * INT64_C(1000000);
static const int64_t largest_value = INT64_C(1) << 61;

/* What the drift may bend a line away from its tangent within `dt`: wander * dt^2 / 2, rounded up. */
static int64_t bend(wide dt)
{
    if (dt < 0)
        dt = -dt;
    if (dt > ((wide)1 << 52)) /* 52 days */
        return INT64_MAX / 4;
    /* dt^2 / 2 * 20e-9 / 1e9 (per ns) = dt^2 / 1e17 */
    const wide per = (wide)1000000000 * 1000000000 * 2 / CLOCK_WANDER_PPB_PER_S;
    return sync_saturate((dt * dt + per - 1) / per);
}

bool clock_line_add(struct clock_line *l, int64_t remote, int64_t host)
{
    if (remote > largest_value || remote < -largest_value || host > largest_value || host < -largest_value) {
        l->rejected++;
        return false;
    }
    return vec_push(&l->samples, (struct clock_sample){remote, host});
}

static int by_remote(const void *a, const void *b)
{
    const struct clock_sample *x = a, *y = b;
    if (x->remote != y->remote)
        return x->remote < y->remote ? -1 : 1;
    return x->host == y->host ? 0 : x->host < y->host ? -1 : 1;
}

/* Sorts, drops duplicates, and drops samples whose host time goes back: the one that disagrees with more neighbours. */
static void clean(struct clock_line *l)
{
    if (l->samples.n)
        qsort(l->samples.p, l->samples.n, sizeof *l->samples.p, by_remote);
    size_t n = 0;
    for (size_t i = 0; i < l->samples.n; i++) {
        struct clock_sample s = l->samples.p[i];
        if (n && l->samples.p[n - 1].remote == s.remote) {
            l->rejected += l->samples.p[n - 1].host != s.host;
            continue;
        }
        while (n && l->samples.p[n - 1].host > s.host) {
            bool next_agrees = i + 1 < l->samples.n && l->samples.p[i + 1].host < l->samples.p[n - 1].host;
            l->rejected++;
            if (!next_agrees)
                goto drop;
            n--; /* what came before is late: the following ones agree with this one */
        }
        l->samples.p[n++] = s;
    drop:;
    }
    l->samples.n = n;
}

/* Whether sample i + 1 was read after the host's answer to sample i. */
static bool answers(const struct clock_line *l, size_t i)
{
    return i + 1 < l->samples.n && l->samples.p[i + 1].remote - l->samples.p[i].remote < longest_round_ns;
}

/* slope - 1 in units of 2^-62 of the line through two points; floor, so that no piece overshoots its end. */
static int64_t slope_between(int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    wide dx = (wide)x1 - x0, excess = ((wide)y1 - y0) - dx;
    wide q = excess * ((wide)1 << 62) / dx;
    if (q * dx > excess * ((wide)1 << 62))
        q--;
    const wide most = ((wide)1 << 62) - 1;
    return (int64_t)(q > most ? most : q < -most ? -most : q);
}

/* ---- bursts ---- */

/* Of the samples of a burst: the one that says most from above, and the one that says most from below. */
static void choose_best(const struct clock_line *l, struct clock_burst *b, const struct sync_transform *rough)
{
    wide lowest = 0, highest = 0;
    b->below = b->end;
    for (size_t i = b->first; i < b->end; i++) {
        const struct clock_sample *s = &l->samples.p[i];
        wide above = (wide)s->host - sync_transform_apply(rough, s->remote);
        if (i == b->first || above < lowest) {
            lowest = above;
            b->above = i;
        }
        if (!answers(l, i))
            continue;
        wide below = (wide)s->host - sync_transform_apply(rough, s[1].remote);
        if (b->below == b->end || below > highest) {
            highest = below;
            b->below = i;
        }
    }
}

static int make_bursts(struct clock_line *l)
{
    vec_clear(&l->bursts);
    if (!l->samples.n)
        return 0;
    const struct clock_sample *s = l->samples.p, *last = vec_last(&l->samples);
    struct sync_transform rough = {s->remote, s->host, 0};
    if (last->remote - s->remote > longest_round_ns)
        rough.slope_minus_one = slope_between(s->remote, s->host, last->remote, last->host);
    for (size_t i = 0; i < l->samples.n; i++) {
        struct clock_burst *b = l->bursts.n ? vec_last(&l->bursts) : NULL;
        if (!b || i - b->first == BURST_SAMPLES || s[i].remote - s[i - 1].remote > burst_gap_ns) {
            if (b)
                choose_best(l, b, &rough);
            if (!vec_push(&l->bursts, (struct clock_burst){.first = i, .end = i}))
                return -MRD_ENOMEM;
            b = vec_last(&l->bursts);
        }
        b->end = i + 1;
    }
    choose_best(l, vec_last(&l->bursts), &rough);
    return 0;
}

/* ---- knots ---- */

/* Adds to the hull what sample i says about the tangent at x: from above, and by its answer from below. */
static int add_above(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t i)
{
    const struct clock_sample *s = &l->samples.p[i];
    return sync_hull_add(h, SYNC_ABOVE, s->remote, sync_saturate((wide)s->host + bend((wide)s->remote - x)));
}

static int add_below(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t i)
{
    const struct clock_sample *s = &l->samples.p[i];
    int64_t later = s[1].remote;
    return sync_hull_add(h, SYNC_BELOW, later, sync_saturate((wide)s->host - bend((wide)later - x)));
}

static int add_all(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b)
{
    int rc = 0;
    for (size_t i = b->first; i < b->end && rc != -MRD_ENOMEM; i++) {
        rc = add_above(l, h, x, i);
        if (answers(l, i) && rc != -MRD_ENOMEM)
            rc = add_below(l, h, x, i);
    }
    return rc == -MRD_ENOMEM ? rc : 0;
}

static int add_best(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b)
{
    int rc = add_above(l, h, x, b->above);
    if (b->below != b->end && rc != -MRD_ENOMEM)
        rc = add_below(l, h, x, b->below);
    return rc == -MRD_ENOMEM ? rc : 0;
}

/* Fills the hull with what the samples of burst `own`, and the best ones of `reach` bursts on either side, say about
 * the tangent at x. The further away the more bursts are passed over: those near by tell the offset, those far away the
 * rate. */
static int fill(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t own, size_t reach)
{
    sync_hull_clear(h);
    int rc = add_all(l, h, x, &l->bursts.p[own]);
    for (size_t k = 0, away = 1; k < reach && rc == 0; k++, away += 1 + away / 4) {
        if (own >= away)
            rc = add_best(l, h, x, &l->bursts.p[own - away]);
        if (own + away < l->bursts.n && rc == 0)
            rc = add_best(l, h, x, &l->bursts.p[own + away]);
    }
    return rc ? rc : sync_hull_solve(h, &(struct sync_limits){.slope_ppb = CLOCK_SLOPE_LIMIT_PPB});
}

/* The interval at sample k of a burst. False when nothing bounds it. */
static int solve_knot(struct clock_line *l, struct sync_hull *h, size_t burst, size_t k, struct clock_knot *out,
                      bool *bounded)
{
    int64_t x = l->samples.p[k].remote;
    *bounded = false;
    for (size_t reach = NEIGHBOURS;; reach /= 2) {
        int rc = fill(l, h, x, burst, reach);
        if (rc)
            return rc;
        if (sync_hull_range(h, x, &out->lo, &out->hi)) {
            out->x = x;
            *bounded = out->lo <= out->hi;
            l->splits += reach != NEIGHBOURS;
            return 0;
        }
        if (!reach)
            return 0;
    }
}

/* Knots bound each other: time goes on between them, at a speed that is limited. */
static void propagate(struct clock_line *l)
{
    struct clock_knot *k = l->knots.p;
    for (size_t i = 1; i < l->knots.n; i++) {
        wide dx = (wide)k[i].x - k[i - 1].x, slack = dx * CLOCK_SLOPE_LIMIT_PPB / 1000000000 + 1;
        int64_t lo = sync_saturate(k[i - 1].lo + dx - slack), hi = sync_saturate(k[i - 1].hi + dx + slack);
        k[i].lo = lo > k[i].lo ? lo : k[i].lo;
        k[i].hi = hi < k[i].hi ? hi : k[i].hi;
    }
    for (size_t i = l->knots.n; i-- > 1;) {
        wide dx = (wide)k[i].x - k[i - 1].x, slack = dx * CLOCK_SLOPE_LIMIT_PPB / 1000000000 + 1;
        int64_t lo = sync_saturate(k[i].lo - dx - slack), hi = sync_saturate(k[i].hi - dx + slack);
        k[i - 1].lo = lo > k[i - 1].lo ? lo : k[i - 1].lo;
        k[i - 1].hi = hi < k[i - 1].hi ? hi : k[i - 1].hi;
    }
}

static int64_t middle(const struct clock_knot *k)
{
    return sync_saturate(((wide)k->lo + k->hi) >> 1);
}

/* Pieces between knots, and the tangents with which the map goes on before the first and behind the last. */
static int make_pieces(struct clock_line *l, const struct sync_transform ends[2])
{
    const struct clock_knot *k = l->knots.p;
    for (size_t i = 0; i <= l->knots.n; i++) {
        struct sync_transform t;
        if (i == 0)
            t = (struct sync_transform){k[0].x, middle(&k[0]), ends[0].slope_minus_one};
        else if (i == l->knots.n)
            t = (struct sync_transform){k[i - 1].x, middle(&k[i - 1]), ends[1].slope_minus_one};
        else
            t = (struct sync_transform){k[i - 1].x, middle(&k[i - 1]),
                                        slope_between(k[i - 1].x, middle(&k[i - 1]), k[i].x, middle(&k[i]))};
        if (!vec_push(&l->pieces, t))
            return -MRD_ENOMEM;
    }
    return 0;
}

/* The tangent at an end, and how fast the error may grow beyond it: by the region of lines, at most. */
static int solve_end(struct clock_line *l, struct sync_hull *h, bool last, struct sync_transform *t)
{
    const struct clock_knot *k = last ? vec_last(&l->knots) : &l->knots.p[0];
    size_t burst = 0;
    while (l->samples.p[l->bursts.p[burst].end - 1].remote < k->x)
        burst++;
    size_t at = l->bursts.p[burst].first;
    while (l->samples.p[at].remote < k->x)
        at++;
    struct clock_knot again;
    bool bounded;
    int rc = solve_knot(l, h, burst, at, &again, &bounded);
    if (rc)
        return rc;
    *t = (struct sync_transform){k->x, middle(k), 0};
    wide growth = (wide)2 * CLOCK_SLOPE_LIMIT_PPB * ((wide)1 << 30) / 1000000000;
    struct sync_transform mid;
    if (bounded && sync_transform_middle(h, k->x, &mid)) {
        t->slope_minus_one = mid.slope_minus_one;
        wide widest = 0;
        const wide limit = ((wide)1 << 62) / 1000000000 * CLOCK_SLOPE_LIMIT_PPB;
        for (size_t i = 0; i < h->corners.n; i++) {
            wide s = slope_between(0, 0, h->corners.p[i].dx, h->corners.p[i].dy);
            s = s > limit ? limit : s < -limit ? -limit : s;
            wide d = s - mid.slope_minus_one;
            widest = d > widest ? d : -d > widest ? -d : widest;
        }
        growth = (widest >> 32) + 1;
    }
    l->end_slope[last] = sync_saturate(growth);
    return 0;
}

/* A knot at every sample that is wanted. */
static int make_knots(struct clock_line *l, struct sync_hull *h, const uint8_t *wanted)
{
    vec_clear(&l->knots);
    vec_clear(&l->pieces);
    for (size_t b = 0; b < l->bursts.n; b++) {
        for (size_t i = l->bursts.p[b].first; i < l->bursts.p[b].end; i++) {
            struct clock_knot k;
            bool bounded = false;
            if (!wanted[i])
                continue;
            int rc = solve_knot(l, h, b, i, &k, &bounded);
            if (rc)
                return rc;
            if (!bounded)
                l->rejected++;
            else if (!vec_push(&l->knots, k))
                return -MRD_ENOMEM;
        }
    }
    if (!l->knots.n)
        return -MRD_ENOTFOUND;
    propagate(l);
    for (size_t i = 0; i < l->knots.n; i++) /* knots that contradict each other: the map must still go up */
        if (l->knots.p[i].lo > l->knots.p[i].hi) {
            l->knots.p[i].hi = l->knots.p[i].lo;
            l->rejected++;
        }
    struct sync_transform ends[2];
    for (int last = 0; last < 2; last++) {
        int rc = solve_end(l, h, last, &ends[last]);
        if (rc)
            return rc;
    }
    return make_pieces(l, ends);
}

/* Wants knots where the map inverts a message although its sample has none yet. True when there are any. */
static bool want_more(const struct clock_line *l, uint8_t *wanted)
{
    bool more = false;
    for (size_t i = 0; i < l->samples.n; i++) {
        const struct clock_sample *s = &l->samples.p[i];
        if (!wanted[i] && clock_line_to_host(l, s->remote) > s->host)
            wanted[i] = more = true;
        if (answers(l, i) && !wanted[i + 1] && clock_line_to_host(l, s[1].remote) < s->host)
            wanted[i + 1] = more = true;
    }
    return more;
}

int clock_line_fit(struct clock_line *l)
{
    struct sync_hull h = {0};
    clean(l);
    uint8_t *wanted = mem_zalloc(l->samples.n + 1);
    int rc = wanted ? make_bursts(l) : -MRD_ENOMEM;
    for (size_t b = 0; rc == 0 && b < l->bursts.n; b++) /* in between a burst is too short to bend */
        wanted[l->bursts.p[b].first] = wanted[l->bursts.p[b].end - 1] = true;
    uint32_t rejected = l->rejected;
    for (int pass = 0; rc == 0 && (pass == 0 || (pass < REPAIRS && want_more(l, wanted))); pass++) {
        l->rejected = rejected;
        l->splits = 0;
        rc = make_knots(l, &h, wanted);
    }
    mem_free(wanted);
    sync_hull_free(&h);
    return rc;
}

/* The number of knots at or before x: the piece that holds. */
static size_t piece_at(const struct clock_line *l, int64_t x)
{
    size_t lo = 0, hi = l->knots.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->knots.p[mid].x <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct sync_transform *clock_line_piece(const struct clock_line *l, int64_t remote, int64_t *first, int64_t *end)
{
    size_t i = piece_at(l, remote);
    *first = i ? l->knots.p[i - 1].x : INT64_MIN;
    *end = i < l->knots.n ? l->knots.p[i].x : INT64_MAX;
    return &l->pieces.p[i];
}

int64_t clock_line_to_host(const struct clock_line *l, int64_t remote)
{
    return sync_transform_apply(&l->pieces.p[piece_at(l, remote)], remote);
}

int64_t clock_line_to_remote(const struct clock_line *l, int64_t host)
{
    /* The piece whose range holds `host`: knots' middles ascend with them. */
    size_t lo = 0, hi = l->knots.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (middle(&l->knots.p[mid]) <= host)
            lo = mid + 1;
        else
            hi = mid;
    }
    int64_t x = sync_transform_invert(&l->pieces.p[lo], host);
    int64_t first = lo ? l->knots.p[lo - 1].x : INT64_MIN, end = lo < l->knots.n ? l->knots.p[lo].x : INT64_MAX;
    return x < first ? first : x > end ? end : x;
}

/* How far the middle of a knot can be from the truth. */
static int64_t half_width(const struct clock_knot *k)
{
    return sync_saturate(((wide)k->hi - k->lo + 1) / 2 + 1);
}

int64_t clock_line_error(const struct clock_line *l, int64_t remote)
{
    size_t i = piece_at(l, remote);
    if (i > 0 && i < l->knots.n) {
        const struct clock_knot *a = &l->knots.p[i - 1], *b = &l->knots.p[i];
        wide dx = (wide)b->x - a->x, at = (wide)remote - a->x;
        wide ea = half_width(a), eb = half_width(b);
        wide between = (ea * (dx - at) + eb * at + dx - 1) / dx;
        /* Between two points a curve leaves its chord by at most wander * at * (dx - at) / 2. */
        wide product = at > ((wide)1 << 52) || dx - at > ((wide)1 << 52) ? (wide)1 << 104 : at * (dx - at);
        wide per = (wide)1000000000 * 1000000000 * 2 / CLOCK_WANDER_PPB_PER_S;
        return sync_saturate(between + (product + per - 1) / per + 2);
    }
    bool last = i > 0;
    const struct clock_knot *k = last ? vec_last(&l->knots) : &l->knots.p[0];
    wide away = last ? (wide)remote - k->x : (wide)k->x - remote;
    wide growth = (away * l->end_slope[last] >> 30) + 1;
    wide bent = growth + bend(away);
    wide limit = away * 2 * CLOCK_SLOPE_LIMIT_PPB / 1000000000 + 1; /* nothing is worse than the limits of the slope */
    return sync_saturate(half_width(k) + (bent < limit ? bent : limit) + 2);
}

void clock_line_free(struct clock_line *l)
{
    vec_free(&l->samples);
    vec_free(&l->bursts);
    vec_free(&l->knots);
    vec_free(&l->pieces);
    *l = (struct clock_line){0};
}
