/* Shared by the parts of a clock_line (bursts, bounds, map); for clock_line.c, clock_burst.c and clock_bound.c only. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_PRIVATE_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_PRIVATE_H

#include "importer/clock/clock_line.h"

typedef __int128 wide;

/* ---- clock_burst.c ---- */

/* Sorts the samples, puts aside those that contradict others whatever the clocks did, and groups the rest. 0 or
 * -MRD_ENOMEM. */
int clock_bursts_make(struct clock_line *l, struct sync_hull *h);

/* Whether sample i was read after the host's answer to the sample before it: it maps to no less than that answer. */
bool clock_sample_answers(const struct clock_line *l, size_t i);

/* How far a clock may leave its tangent within `dt`, rounded up. */
int64_t clock_bend(wide dt);

/* How far it may leave the chord of an interval `length` at `at` from its beginning. */
int64_t clock_bulge(wide at, wide length);

/* Adds to the hull what a burst says about the tangent at x: all of its samples, or the two that say most. 0 or
 * -MRD_ENOMEM. */
int clock_burst_add(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b, bool all);

/* The same when the rate may have stepped amid the burst by as much as does not show: on the way from `side`, an end of
 * the burst. */
int clock_burst_add_relaxed(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b,
                            int64_t side);

/* The number of bursts to go away from one for the k-th of those that are asked: close ones all, then fewer and fewer.
 */
size_t clock_burst_away(size_t away);

/* ---- clock_bound.c ---- */

/* Fills the cells, the steps and the spans. 0 or -MRD_ENOMEM. */
int clock_bound_fit(struct clock_line *l, struct sync_hull *h);

/* The span of a burst. */
const struct clock_span *clock_span_of(const struct clock_line *l, size_t burst);

#endif
