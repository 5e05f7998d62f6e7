/* The exact feasible region of one-way messages: hulls, critical tangents, corners. */
#include "importer/sync/hull.h"

#include "base/error.h"

#include <stdlib.h>

typedef __int128 wide;

enum { COORDINATE_BITS = 62 };

const char *sync_quality_text(enum sync_quality q)
{
    static const char *const texts[] = {
#define X(name, text) text,
        SYNC_QUALITIES(X)
#undef X
    };
    return texts[q];
}

int sync_hull_add(struct sync_hull *h, enum sync_kind kind, int64_t x, int64_t y)
{
    const int64_t limit = (int64_t)1 << COORDINATE_BITS;
    if (x <= -limit || x >= limit || y <= -limit || y >= limit)
        return -MRD_ELIMIT;
    return vec_push(&h->points[kind], (struct sync_point){x, y}) ? 0 : -MRD_ENOMEM;
}

/* Twice the signed area of a, b, c: > 0 when the way a -> b -> c turns left. Differences of 63 bits: products of 126.
 */
static int turn(struct sync_point a, struct sync_point b, struct sync_point c)
{
    wide l = (wide)(b.x - a.x) * (c.y - a.y), r = (wide)(b.y - a.y) * (c.x - a.x);
    return (l > r) - (l < r);
}

int sync_line_side(struct sync_line line, struct sync_point p)
{
    return turn(line.at, (struct sync_point){line.at.x + line.dx, line.at.y + line.dy}, p);
}

int sync_slope_cmp(struct sync_line a, struct sync_line b)
{
    wide l = (wide)a.dy * b.dx, r = (wide)b.dy * a.dx;
    return (l > r) - (l < r);
}

static wide divide_floor(wide n, wide d)
{
    wide q = n / d;
    return q - (n % d < 0);
}

int64_t sync_line_floor(struct sync_line line, int64_t x)
{
    return sync_saturate(line.at.y + divide_floor((wide)line.dy * ((wide)x - line.at.x), line.dx));
}

int64_t sync_line_ceil(struct sync_line line, int64_t x)
{
    return sync_saturate(line.at.y - divide_floor(-((wide)line.dy * ((wide)x - line.at.x)), line.dx));
}

double sync_line_drift(struct sync_line line)
{
    return (double)((wide)line.dy - line.dx) / (double)line.dx;
}

static struct sync_line line_through(struct sync_point left, struct sync_point right)
{
    return (struct sync_line){left, right.x - left.x, right.y - left.y};
}

/* By x; at equal x the point that binds comes first (the highest below, the lowest above). */
static int by_x_below(const void *pa, const void *pb)
{
    const struct sync_point *a = pa, *b = pb;
    return a->x != b->x ? (a->x > b->x) - (a->x < b->x) : (a->y < b->y) - (a->y > b->y);
}

static int by_x_above(const void *pa, const void *pb)
{
    const struct sync_point *a = pa, *b = pb;
    return a->x != b->x ? (a->x > b->x) - (a->x < b->x) : (a->y > b->y) - (a->y < b->y);
}

/* Monotone chain: the upper hull of the points below the line (sign +1), the lower hull of those above (sign -1). */
static int build_chain(struct sync_hull *h, enum sync_kind kind)
{
    sync_points *in = &h->points[kind], *out = &h->chain[kind];
    int sign = kind == SYNC_BELOW ? 1 : -1;
    if (in->n)
        qsort(in->p, in->n, sizeof *in->p, kind == SYNC_BELOW ? by_x_below : by_x_above);
    vec_clear(out);
    for (size_t i = 0; i < in->n; i++) {
        struct sync_point p = in->p[i];
        if (i && in->p[i - 1].x == p.x)
            continue;
        while (out->n >= 2 && turn(out->p[out->n - 2], out->p[out->n - 1], p) * sign >= 0)
            out->n--;
        if (!vec_push(out, p))
            return -MRD_ENOMEM;
    }
    return 0;
}

/* The extreme slope between a point of `from` on the left and one of `to` on the right: the smallest when sign is +1
 * (what bounds the line from above), the largest when -1. Seen from one point, the slopes to the vertices of a hull on
 * its right fall and then rise (sign +1), whatever side of the hull the point is on, so the best partner is found by
 * bisection. */
static bool extreme_line(const sync_points *from, const sync_points *to, int sign, struct sync_line *best)
{
    bool found = false;
    size_t first_right = 0;
    for (size_t i = 0; i < from->n; i++) {
        while (first_right < to->n && to->p[first_right].x <= from->p[i].x)
            first_right++;
        if (first_right == to->n)
            break;
        size_t lo = first_right, hi = to->n - 1;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (sync_slope_cmp(line_through(from->p[i], to->p[mid + 1]), line_through(from->p[i], to->p[mid])) * sign <
                0)
                lo = mid + 1;
            else
                hi = mid;
        }
        struct sync_line l = line_through(from->p[i], to->p[lo]);
        if (!found || sync_slope_cmp(l, *best) * sign < 0)
            *best = l;
        found = true;
    }
    return found;
}

/* False when two points at one x contradict each other: a point below that is higher than one above. */
static bool columns_agree(const struct sync_hull *h)
{
    const sync_points *below = &h->points[SYNC_BELOW], *above = &h->points[SYNC_ABOVE];
    for (size_t i = 0, k = 0; i < below->n && k < above->n;) {
        if (below->p[i].x < above->p[k].x)
            i++;
        else if (below->p[i].x > above->p[k].x)
            k++;
        else if (below->p[i].y > above->p[k].y)
            return false;
        else { /* the first of a column is the one that binds */
            int64_t x = below->p[i].x;
            while (i < below->n && below->p[i].x == x)
                i++;
        }
    }
    return true;
}

/* The line of a given slope that touches a chain from its side. */
static struct sync_line touching(const sync_points *chain, int64_t dx, int64_t dy, int sign)
{
    struct sync_line l = {chain->p[0], dx, dy};
    for (size_t i = 1; i < chain->n; i++)
        if (sync_line_side(l, chain->p[i]) * sign > 0)
            l.at = chain->p[i];
    return l;
}

static bool add_limit_corners(struct sync_hull *h, int64_t slope_e9)
{
    return vec_push(&h->corners, touching(&h->chain[SYNC_BELOW], 1000000000, slope_e9, 1)) &&
           vec_push(&h->corners, touching(&h->chain[SYNC_ABOVE], 1000000000, slope_e9, -1));
}

static int collect_corners(struct sync_hull *h, const struct sync_limits *limits)
{
    int64_t ppb = limits ? limits->slope_ppb : 0;
    int64_t one = 1000000000 + (limits ? limits->centre_ppb : 0);
    struct sync_line steep = {{0, 0}, 1000000000, one + ppb}, flat = {{0, 0}, 1000000000, one - ppb};
    bool cut_max = ppb && (!h->has_max || sync_slope_cmp(h->max, steep) > 0);
    bool cut_min = ppb && (!h->has_min || sync_slope_cmp(h->min, flat) < 0);
    if (ppb &&
        ((h->has_max && sync_slope_cmp(h->max, flat) < 0) || (h->has_min && sync_slope_cmp(h->min, steep) > 0))) {
        h->quality = SYNC_FAIL; /* what the messages prove lies outside what the limit allows */
        return 0;
    }
    if ((!h->has_max && !cut_max) || (!h->has_min && !cut_min) || !h->chain[0].n || !h->chain[1].n)
        return 0;
    bool ok = cut_max ? add_limit_corners(h, one + ppb) : vec_push(&h->corners, h->max);
    ok = ok && (cut_min ? add_limit_corners(h, one - ppb) : vec_push(&h->corners, h->min));
    struct sync_line hi = cut_max ? steep : h->max, lo = cut_min ? flat : h->min;
    for (int kind = 0; kind < 2; kind++) {
        const sync_points *chain = &h->chain[kind];
        for (size_t i = 1; ok && i < chain->n; i++) {
            struct sync_line edge = line_through(chain->p[i - 1], chain->p[i]);
            if (sync_slope_cmp(edge, hi) <= 0 && sync_slope_cmp(edge, lo) >= 0)
                ok = vec_push(&h->corners, edge);
        }
    }
    h->quality = SYNC_ACCURATE;
    return ok ? 0 : -MRD_ENOMEM;
}

int sync_hull_solve(struct sync_hull *h, const struct sync_limits *limits)
{
    vec_clear(&h->corners);
    int rc = build_chain(h, SYNC_BELOW);
    if (!rc)
        rc = build_chain(h, SYNC_ABOVE);
    if (rc)
        return rc;
    const sync_points *below = &h->chain[SYNC_BELOW], *above = &h->chain[SYNC_ABOVE];
    h->has_max = extreme_line(below, above, 1, &h->max);
    h->has_min = extreme_line(above, below, -1, &h->min);
    if (!below->n && !above->n)
        h->quality = SYNC_ABSENT;
    else if (!columns_agree(h) || (h->has_max && h->has_min && sync_slope_cmp(h->min, h->max) > 0))
        h->quality = SYNC_FAIL;
    else if (h->has_max && h->has_min)
        h->quality = SYNC_ACCURATE;
    else
        h->quality = h->has_max || h->has_min ? SYNC_APPROXIMATE : SYNC_INCOMPLETE;
    return h->quality == SYNC_FAIL ? 0 : collect_corners(h, limits);
}

int sync_hull_limit(struct sync_hull *h, const struct sync_limits *limits)
{
    vec_clear(&h->corners);
    return h->quality == SYNC_FAIL ? 0 : collect_corners(h, limits);
}

bool sync_hull_slopes(const struct sync_hull *h, int64_t *least_ppb, int64_t *most_ppb)
{
    *least_ppb = INT64_MAX;
    *most_ppb = INT64_MIN;
    for (size_t i = 0; i < h->corners.n; i++) {
        const struct sync_line *l = &h->corners.p[i];
        wide excess = ((wide)l->dy - l->dx) * 1000000000, least = divide_floor(excess, l->dx);
        int64_t ppb = sync_saturate(least);
        *least_ppb = ppb < *least_ppb ? ppb : *least_ppb;
        ppb = sync_saturate(least + 1);
        *most_ppb = ppb > *most_ppb ? ppb : *most_ppb;
    }
    return h->quality == SYNC_ACCURATE && h->corners.n > 0;
}

bool sync_hull_range(const struct sync_hull *h, int64_t x, int64_t *lo, int64_t *hi)
{
    if (h->quality != SYNC_ACCURATE || !h->corners.n)
        return false;
    *lo = INT64_MAX;
    *hi = INT64_MIN;
    for (size_t i = 0; i < h->corners.n; i++) {
        int64_t floor = sync_line_floor(h->corners.p[i], x), ceil = sync_line_ceil(h->corners.p[i], x);
        *lo = floor < *lo ? floor : *lo;
        *hi = ceil > *hi ? ceil : *hi;
    }
    return true;
}

bool sync_hull_admits(const struct sync_hull *h, struct sync_line line)
{
    for (size_t i = 0; i < h->chain[SYNC_BELOW].n; i++)
        if (sync_line_side(line, h->chain[SYNC_BELOW].p[i]) > 0)
            return false;
    for (size_t i = 0; i < h->chain[SYNC_ABOVE].n; i++)
        if (sync_line_side(line, h->chain[SYNC_ABOVE].p[i]) < 0)
            return false;
    return true;
}

void sync_hull_clear(struct sync_hull *h)
{
    for (int i = 0; i < 2; i++) {
        vec_clear(&h->points[i]);
        vec_clear(&h->chain[i]);
    }
    vec_clear(&h->corners);
    h->quality = SYNC_ABSENT;
    h->has_max = h->has_min = false;
}

void sync_hull_free(struct sync_hull *h)
{
    for (int i = 0; i < 2; i++) {
        vec_free(&h->points[i]);
        vec_free(&h->chain[i]);
    }
    vec_free(&h->corners);
    *h = (struct sync_hull){0};
}
