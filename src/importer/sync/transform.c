/* Exact, monotonic maps between two clocks. */
#include "importer/sync/transform.h"

typedef __int128 wide;

enum { SLOPE_BITS = 62 };

/* floor(dx * slope): dx may have 65 bits, so the product is taken in two halves. */
static wide scale(wide dx, int64_t slope)
{
    wide high = dx >> 32;                            /* floor */
    wide low = dx - high * ((wide)1 << 32);          /* shifting a negative left is undefined */
    wide sum = high * slope + ((low * slope) >> 32); /* units of 2^32; what is cut off cannot change the floor */
    return sum >> (SLOPE_BITS - 32);
}

/* Of all corners as steep as `slope`: where the lowest and the highest pass at x. Two when the slope is a limit rather
 * than proven: one touches the points below, one those above. */
static wide middle_at(const struct sync_hull *h, struct sync_line slope, int64_t x)
{
    wide lo = INT64_MAX, hi = INT64_MIN;
    for (size_t i = 0; i < h->corners.n; i++) {
        if (sync_slope_cmp(h->corners.p[i], slope) != 0)
            continue;
        wide y = sync_line_floor(h->corners.p[i], x);
        lo = y < lo ? y : lo;
        hi = y > hi ? y : hi;
    }
    return (lo + hi) / 2;
}

bool sync_transform_middle(const struct sync_hull *h, int64_t x0, struct sync_transform *t)
{
    if (h->quality != SYNC_ACCURATE || !h->corners.n)
        return false;
    const struct sync_line *steep = &h->corners.p[0], *flat = &h->corners.p[0];
    for (size_t i = 1; i < h->corners.n; i++) {
        if (sync_slope_cmp(h->corners.p[i], *steep) > 0)
            steep = &h->corners.p[i];
        if (sync_slope_cmp(h->corners.p[i], *flat) < 0)
            flat = &h->corners.p[i];
    }
    wide sum = 0;
    const struct sync_line *lines[2] = {steep, flat};
    for (int i = 0; i < 2; i++) {
        wide excess = (wide)lines[i]->dy - lines[i]->dx; /* slope - 1 = excess / dx */
        if (excess > (wide)lines[i]->dx * 4 || excess < -(wide)lines[i]->dx * 4)
            return false;
        sum += excess * ((wide)1 << (SLOPE_BITS - 1)) / lines[i]->dx; /* half of each */
    }
    const wide one = (wide)1 << SLOPE_BITS;
    if (sum <= -one || sum >= 2 * one)
        return false;
    wide y0 = (middle_at(h, *flat, x0) + middle_at(h, *steep, x0)) / 2;
    *t = (struct sync_transform){x0, (int64_t)y0, (int64_t)sum};
    return true;
}

static wide apply(const struct sync_transform *t, wide x)
{
    wide dx = x - t->x0;
    return (wide)t->y0 + dx + scale(dx, t->slope_minus_one);
}

int64_t sync_transform_apply(const struct sync_transform *t, int64_t x)
{
    return sync_saturate(apply(t, x));
}

int64_t sync_transform_invert(const struct sync_transform *t, int64_t y)
{
    /* A first guess by division, then bisection around it: the guess is off by little where the slope is near one. */
    double slope = 1.0 + (double)t->slope_minus_one / 4611686018427387904.0;
    double guess = slope > 0 ? ((double)y - (double)t->y0) / slope : 0; /* a slope near 0 may round to it */
    wide span = 1 << 10;
    wide centre = (wide)t->x0 + (guess > 1e19 ? (wide)INT64_MAX : guess < -1e19 ? (wide)INT64_MIN : (wide)guess);
    while (apply(t, centre - span) >= y && centre - span > INT64_MIN)
        span *= 2;
    wide lo = centre - span, hi = centre + (1 << 10);
    for (span = 1 << 10; apply(t, hi) < y && hi < INT64_MAX; span *= 2)
        hi += span;
    while (lo < hi) { /* smallest x with apply(x) >= y */
        wide mid = lo + ((hi - lo) >> 1);
        if (apply(t, mid) >= y)
            hi = mid;
        else
            lo = mid + 1;
    }
    return sync_saturate(lo);
}

int64_t sync_transform_error(const struct sync_transform *t, const struct sync_hull *h, int64_t x)
{
    int64_t lo, hi;
    if (!sync_hull_range(h, x, &lo, &hi))
        return INT64_MAX;
    wide y = apply(t, x);
    wide up = hi - y, down = y - lo;
    return sync_saturate(up > down ? up : down);
}

double sync_transform_drift_ppb(const struct sync_transform *t)
{
    return (double)t->slope_minus_one / 4611686018427387904.0 * 1e9;
}
