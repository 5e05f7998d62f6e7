/* What one-way messages between two clocks prove about the line that joins them.
 *
 * x is the reference clock, y the other one; the unknown truth is y = a x + b with a > 0. A message sent by one and
 * received by the other is one inequality:
 *
 *     other -> reference: (x = receive, y = send) lies on or below the line (SYNC_BELOW)
 *     reference -> other: (x = send, y = receive) lies on or above the line (SYNC_ABOVE)
 *
 * All lines that satisfy every message form a convex polygon in (a, b). Its corners are lines through two points: the
 * steepest, the flattest, and the edges of the two hulls between their points of contact. Everything here is exact:
 * int64 coordinates, differences in __int128, no floating point.
 *
 * Coordinates are to lie within +-2^62; sync_hull_add() refuses others. */
#ifndef MERIDIAN_IMPORTER_SYNC_HULL_H
#define MERIDIAN_IMPORTER_SYNC_HULL_H

#include "base/vec.h"

#include <stdint.h>

/* The nearest value that 64 bits hold. */
static inline int64_t sync_saturate(__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

struct sync_point {
    int64_t x;
    int64_t y;
};

enum sync_kind { SYNC_BELOW, SYNC_ABOVE };

/* A line by a point on it and a direction; dx > 0. */
struct sync_line {
    struct sync_point at;
    int64_t dx;
    int64_t dy;
};

/* The words of Trace Compass for how well two clocks are related. */
#define SYNC_QUALITIES(X)                                                                                              \
    X(ABSENT, "absent")           /* no message at all */                                                              \
    X(INCOMPLETE, "incomplete")   /* nothing bounds the slope: messages in one direction only, or none that pair up */ \
    X(APPROXIMATE, "approximate") /* the slope is bounded on one side only */                                          \
    X(ACCURATE, "accurate")       /* bounded on both sides */                                                          \
    X(FAIL, "fail")               /* no line satisfies every message */

enum sync_quality {
#define X(name, text) SYNC_##name,
    SYNC_QUALITIES(X)
#undef X
};

const char *sync_quality_text(enum sync_quality q);

typedef VEC(struct sync_point) sync_points;

/* Messages between one pair of clocks, and after sync_hull_solve() what they prove. A zeroed struct is an empty hull.
 */
struct sync_hull {
    sync_points points[2]; /* by enum sync_kind, as added */
    sync_points chain[2];  /* upper hull of the points below, lower hull of those above; by x */
    enum sync_quality quality;
    bool has_max, has_min;
    struct sync_line max; /* steepest line, from a point below on the left to one above on the right */
    struct sync_line min; /* flattest line, from a point above on the left to one below on the right */
    VEC(struct sync_line)
    corners; /* all corners of the polygon, when quality is ACCURATE */
};

/* Adds a message. -MRD_ENOMEM, or -MRD_ELIMIT for a coordinate that is too large. */
int sync_hull_add(struct sync_hull *h, enum sync_kind kind, int64_t x, int64_t y);

/* Bounds the slope to 1 +- limit_ppb / 1e9 without a message saying so: what any quartz keeps. It makes a pair ACCURATE
 * that would be APPROXIMATE or INCOMPLETE as long as there are messages in both directions. Applies to the corners
 * only. */
struct sync_limits {
    int64_t slope_ppb;  /* 0: none */
    int64_t centre_ppb; /* … of what the slope is to keep to: 1 + centre_ppb / 1e9 +- slope_ppb / 1e9 */
};

/* Computes the chains, the extreme lines, the quality and the corners. O(n log n) for new points. -MRD_ENOMEM. */
int sync_hull_solve(struct sync_hull *h, const struct sync_limits *limits);

/* The corners under other limits, once solved. -MRD_ENOMEM. */
int sync_hull_limit(struct sync_hull *h, const struct sync_limits *limits);

/* The slopes of the corners, minus one, in ppb: rounded outwards. Only when there are corners. */
bool sync_hull_slopes(const struct sync_hull *h, int64_t *least_ppb, int64_t *most_ppb);

/* The smallest and the largest y that a line of the polygon takes at x, rounded outwards. Only when quality is
 * ACCURATE; false otherwise. Values outside int64 saturate. */
bool sync_hull_range(const struct sync_hull *h, int64_t x, int64_t *lo, int64_t *hi);

/* True when a line satisfies every message added so far (solve first). */
bool sync_hull_admits(const struct sync_hull *h, struct sync_line line);

/* How far a point lies above (> 0) or below (< 0) a line, times line.dx: only the sign means anything. */
int sync_line_side(struct sync_line line, struct sync_point p);

/* floor / ceil of the line's y at x; saturates. */
int64_t sync_line_floor(struct sync_line line, int64_t x);
int64_t sync_line_ceil(struct sync_line line, int64_t x);

/* Compares the slopes of two lines exactly: < 0, 0, > 0. */
int sync_slope_cmp(struct sync_line a, struct sync_line b);

/* Slope minus one, for people. */
double sync_line_drift(struct sync_line line);

void sync_hull_clear(struct sync_hull *h); /* keeps the memory */
void sync_hull_free(struct sync_hull *h);

#endif
