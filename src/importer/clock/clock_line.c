/* Maps a remote clock to the host's: the best guess, in straight pieces. */
#include "base/bisect.h"
#include "base/error.h"
#include "importer/clock/clock_line_private.h"

enum {
    NEIGHBOURS = 16, /* bursts on each side that may help a knot; further ones are too relaxed to matter */
    REPAIRS = 4,
    POOR_RATE_PPB = 100000
};

static const int64_t largest_value = INT64_C(1) << 61;

static bool in_range(int64_t value)
{
    return value <= largest_value && value >= -largest_value;
}

bool clock_line_add(struct clock_line *l, const struct clock_sample *sample)
{
    if (!in_range(sample->remote) || !in_range(sample->host)) {
        l->rejected++;
        return false;
    }
    struct clock_sample s = *sample;
    s.has_raw &= in_range(s.ahead[0]) && in_range(s.ahead[1]);
    return vec_push(&l->samples, s);
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

/* ---- knots ---- */

/* Fills the hull with what the samples of burst `own`, and the best ones of `reach` bursts of its span on either side,
 * say about the tangent at x. The further away the more bursts are passed over: those near by tell the offset, those
 * far away the rate. */
static int fill(const struct clock_line *l, struct sync_hull *h, int64_t x, size_t own, size_t reach)
{
    const struct clock_span *span = clock_span_of(l, own);
    sync_hull_clear(h);
    int rc = clock_burst_add(l, h, x, &l->bursts.p[own], true, NULL);
    for (size_t k = 0, away = 1; k < reach && rc == 0; k++, away = clock_burst_away(away)) {
        if (own >= span->first + away)
            rc = clock_burst_add(l, h, x, &l->bursts.p[own - away], false, NULL);
        if (own + away < span->end && rc == 0)
            rc = clock_burst_add(l, h, x, &l->bursts.p[own + away], false, NULL);
    }
    if (!rc) /* as a rule clocks keep to a thousandth */
        rc = sync_hull_solve(h, &(struct sync_limits){.slope_ppb = CLOCK_HIDDEN_STEP_PPB});
    if (!rc && h->quality == SYNC_FAIL)
        rc = sync_hull_solve(h, &(struct sync_limits){.slope_ppb = CLOCK_RATE_LIMIT_PPB});
    return rc;
}

/* What the samples say about the host's time at sample i: by all bursts around it that agree. */
static int solve_knot(const struct clock_line *l, struct sync_hull *h, size_t burst, size_t i, struct clock_knot *out)
{
    int64_t x = l->samples.p[i].remote;
    out->x = x;
    for (size_t reach = NEIGHBOURS;; reach /= 2) {
        int rc = fill(l, h, x, burst, reach);
        if (rc)
            return rc;
        if (sync_hull_range(h, x, &out->lo, &out->hi) && out->lo <= out->hi)
            return 0;
        if (!reach)
            return -MRD_ENOTFOUND;
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

/* The tangent at an end, and how fast the error may grow beyond it while nothing happens: by the region of lines. */
static int solve_end(struct clock_line *l, struct sync_hull *h, bool last, struct sync_transform *t)
{
    const struct clock_knot *k = last ? vec_last(&l->knots) : &l->knots.p[0];
    const struct clock_burst *burst = last ? vec_last(&l->bursts) : &l->bursts.p[0];
    struct clock_knot again;
    int rc = solve_knot(l, h, last ? l->bursts.n - 1 : 0, last ? burst->end - 1 : burst->first, &again);
    if (rc && rc != -MRD_ENOTFOUND)
        return rc;
    *t = (struct sync_transform){k->x, middle(k), 0};
    wide growth = (wide)2 * CLOCK_RATE_LIMIT_PPB * ((wide)1 << 30) / 1000000000;
    struct sync_transform mid;
    int64_t least, most;
    if (!rc && sync_transform_middle(h, k->x, &mid) && sync_hull_slopes(h, &least, &most)) {
        if (most - least > POOR_RATE_PPB) /* next to nothing is known: the likeliest is that they run alike */
            mid.slope_minus_one = (least > 0 ? least : most < 0 ? most : 0) * (((int64_t)1 << 62) / 1000000000);
        t->slope_minus_one = mid.slope_minus_one;
        int64_t rate = (int64_t)((wide)mid.slope_minus_one * 1000000000 / ((wide)1 << 62));
        wide widest = most - rate > rate - least ? most - rate : rate - least;
        growth = (widest + 2) * ((wide)1 << 30) / 1000000000 + 1;
    }
    l->end_slope[last] = sync_saturate(growth);
    return 0;
}

/* A knot at every sample that is wanted. Both clocks only go forward, and so does the map. */
static int make_knots(struct clock_line *l, struct sync_hull *h, const uint8_t *wanted)
{
    vec_clear(&l->knots);
    vec_clear(&l->pieces);
    for (size_t b = 0; b < l->bursts.n; b++) {
        for (size_t i = l->bursts.p[b].first; i < l->bursts.p[b].end; i++) {
            struct clock_knot k;
            int rc = wanted[i] ? solve_knot(l, h, b, i, &k) : -MRD_ENOTFOUND;
            if (rc == -MRD_ENOTFOUND)
                continue;
            if (rc || !vec_push(&l->knots, k))
                return -MRD_ENOMEM;
        }
    }
    if (!l->knots.n)
        return -MRD_ENOTFOUND;
    for (size_t i = 1; i < l->knots.n; i++)
        if (middle(&l->knots.p[i]) < middle(&l->knots.p[i - 1]))
            l->knots.p[i].lo = l->knots.p[i].hi = middle(&l->knots.p[i - 1]);
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
        bool inverted = clock_line_to_host(l, s->remote) > s->host;
        if (!wanted[i] && (inverted || (clock_sample_answers(l, i) && clock_line_to_host(l, s->remote) < s[-1].host)))
            wanted[i] = more = true;
    }
    return more;
}

int clock_line_fit(struct clock_line *l)
{
    struct sync_hull h = {0};
    int rc = clock_bursts_make(l, &h);
    uint8_t *wanted = mem_zalloc(l->samples.n + 1);
    if (!rc)
        rc = wanted ? clock_bound_fit(l, &h) : -MRD_ENOMEM;
    for (size_t b = 0; rc == 0 && b < l->bursts.n; b++) /* in between a burst is too short to bend */
        wanted[l->bursts.p[b].first] = wanted[l->bursts.p[b].end - 1] = true;
    for (int pass = 0; rc == 0 && (pass == 0 || (pass < REPAIRS && want_more(l, wanted))); pass++)
        rc = make_knots(l, &h, wanted);
    mem_free(wanted);
    sync_hull_free(&h);
    return rc;
}

/* The number of knots at or before x: the piece that holds. */
static size_t piece_at(const struct clock_line *l, int64_t x)
{
    size_t at = l->knots.n;
    BISECT(at, mid, l->knots.p[mid].x <= x);
    return at;
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
    size_t at = l->knots.n;
    BISECT(at, mid, middle(&l->knots.p[mid]) <= host);
    int64_t x = sync_transform_invert(&l->pieces.p[at], host);
    int64_t first = at ? l->knots.p[at - 1].x : INT64_MIN, end = at < l->knots.n ? l->knots.p[at].x : INT64_MAX;
    return x < first ? first : x > end ? end : x;
}

void clock_line_free(struct clock_line *l)
{
    vec_free(&l->samples);
    vec_free(&l->aside);
    vec_free(&l->bursts);
    vec_free(&l->cells);
    vec_free(&l->spans);
    vec_free(&l->steps);
    vec_free(&l->knots);
    vec_free(&l->pieces);
    *l = (struct clock_line){0};
}
