/* A linear map between two clocks in exact integers: y = y0 + dx + floor(dx * slope_minus_one / 2^62), dx = x - x0.
 *
 * Anchoring near the data keeps the error of a rounded slope below a nanosecond over hours. The map never decreases;
 * its inverse is the exact lower adjoint: the smallest x that maps to at least y.
 */
#ifndef MERIDIAN_IMPORTER_SYNC_TRANSFORM_H
#define MERIDIAN_IMPORTER_SYNC_TRANSFORM_H

#include "importer/sync/hull.h"

struct sync_transform {
    int64_t x0;
    int64_t y0;
    int64_t slope_minus_one; /* in units of 2^-62; > -2^62, so that the slope is positive */
};

/* The average of the steepest and the flattest lines of a solved hull (a line of the polygon, so it inverts no message
 * that took longer than the nanosecond or two of rounding), anchored at x0. False when the hull is not ACCURATE or the
 * slope would not be within (0, 3). */
bool sync_transform_middle(const struct sync_hull *h, int64_t x0, struct sync_transform *t);

/* y of an x; saturates at the ends of int64. */
int64_t sync_transform_apply(const struct sync_transform *t, int64_t x);

/* The smallest x with apply(x) >= y; saturates. */
int64_t sync_transform_invert(const struct sync_transform *t, int64_t y);

/* The largest distance between the transform and any line of the polygon at x: a bound of its error there. */
int64_t sync_transform_error(const struct sync_transform *t, const struct sync_hull *h, int64_t x);

double sync_transform_drift_ppb(const struct sync_transform *t);

#endif
