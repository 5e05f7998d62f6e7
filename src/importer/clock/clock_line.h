/* A remote clock drawn against the host's: a piecewise linear map with a proven bound of its error everywhere.
 *
 * Each round of the relay gives one-way messages: a reading c of the remote clock was taken before the host read h (c
 * maps to at most h), and the next reading of the remote clock was taken after it (it maps to at least h). What is
 * assumed besides: the slope stays within 1 +- 1000 ppm, and changes by at most 20 ppb a second (what temperature does
 * to a quartz; docs/clock-sync.md). Then the tangent at any moment satisfies every message, relaxed by the square of
 * the distance in time; the region of lines that do is solved exactly (importer/sync/hull.h) at the readings, which
 * gives intervals there. The map goes through the middles of these intervals, so it inverts no round, never
 * decreases, and its error is at most half an interval plus what the drift may bend in between. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_H

#include "base/vec.h"
#include "importer/sync/transform.h"

enum {
    CLOCK_SLOPE_LIMIT_PPB = 1000000, /* |slope - 1| */
    CLOCK_WANDER_PPB_PER_S = 20,     /* how fast the slope may change */
};

/* One exchange as the host noted it. */
struct clock_sample {
    int64_t remote; /* the remote clock when it sent */
    int64_t host;   /* the host's clock when it received */
};

/* A reading of the remote clock and what is proven about the host's time then: lo <= host <= hi. */
struct clock_knot {
    int64_t x;
    int64_t lo;
    int64_t hi;
};

/* Samples close together: the clocks do not drift apart in between, and only the best of them matter from afar. */
struct clock_burst {
    size_t first, end;
    size_t above; /* the sample that bounds the map most from above */
    size_t below; /* … and, with the one after it, from below; `end` when none does */
};

struct clock_line {
    VEC(struct clock_sample)
    samples; /* sorted by remote once fitted */
    VEC(struct clock_burst)
    bursts; /* of the samples, in their order */
    VEC(struct clock_knot)
    knots; /* by x */
    VEC(struct sync_transform)
    pieces;               /* piece i holds from knot i (the first: from ever) to knot i + 1 (the last: for ever) */
    int64_t end_slope[2]; /* bounds of the error's growth per 2^30 ns before the first and behind the last knot */
    uint32_t rejected;    /* samples that contradict others */
    uint32_t splits;      /* knots where samples far away had to be left out because no line fits them all */
};

/* Adds a sample; duplicates are fine. False when out of memory or out of range (counted in rejected). */
bool clock_line_add(struct clock_line *l, int64_t remote, int64_t host);

/* Computes the map from all samples. 0; -MRD_ENOTFOUND when they do not bound it (fewer than two that belong together);
 * -MRD_ENOMEM. */
int clock_line_fit(struct clock_line *l);

/* Remote to host and back; only after a fit. Monotonic, saturating. */
int64_t clock_line_to_host(const struct clock_line *l, int64_t remote);
int64_t clock_line_to_remote(const struct clock_line *l, int64_t host);

/* The piece that holds at `remote`, and [*first, *end) where it does. */
const struct sync_transform *clock_line_piece(const struct clock_line *l, int64_t remote, int64_t *first, int64_t *end);

/* |to_host(remote) - true host time| is at most this. */
int64_t clock_line_error(const struct clock_line *l, int64_t remote);

void clock_line_free(struct clock_line *l);

#endif
