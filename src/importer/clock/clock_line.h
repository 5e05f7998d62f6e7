/* A remote clock drawn against the host's: a piecewise linear map, and a proven bound of its error everywhere.
 *
 * Each round of the relay gives one-way messages: a reading c of the remote clock was taken before the host read h (c
 * maps to at most h), and the next reading of the remote clock was taken after it (it maps to at least h).
 *
 * The map and its bound are two things. The map is the best guess: it goes through the middles of what all comparisons
 * near by allow, so it inverts no round and never decreases. The bound is what is proven although at any moment the
 * rate or the time of either clock may have stepped: docs/clock-sync.md states the assumptions and the proof.
 *
 * Rounds come in bursts. Remote time is cut into cells: a burst, the gap to the next one, and so on. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_LINE_H

#include "base/vec.h"
#include "importer/sync/transform.h"

enum {
    CLOCK_RATE_LIMIT_PPB = 110000000, /* |slope - 1|: the kernel's 10 % of tick and 500 ppm of frequency */
    CLOCK_RATE_STEP_PPB = 11000000,   /* how far the rate may step where no comparison follows or precedes */
    CLOCK_HIDDEN_STEP_PPB = 1000000,  /* … where the comparisons do not show it */
    CLOCK_WANDER_PPB_PER_S = 20,      /* how fast the rate may change between two steps */
    CLOCK_NOISE_PPB = 100,            /* … and how far it may leave that, as a clock does that is being disciplined */
    CLOCK_LEAST_STEP_NS = 500000,     /* the time steps by at least so much, */
    CLOCK_SMALL_STEP_NS = 1000,       /* … or by at most so much */
    CLOCK_RAW_STEP_PPB = 500,         /* how far the rate of two MONOTONIC_RAW may step */
    CLOCK_READING_NS = 5000,          /* how exactly the quickest reading of a burst relates two clocks of a machine */
};

/* Two steps are at least so long apart, and so many pauses between comparisons: as a rule, and where the comparisons
 * show that the clock is not quiet. */
enum clock_regime_id { CLOCK_QUIET, CLOCK_RESTLESS, CLOCK_REGIMES };
static const struct clock_regime {
    int64_t apart_ns;
    int apart_pauses;
} clock_regimes[CLOCK_REGIMES] = {
    [CLOCK_QUIET] = {INT64_C(5000000000), 8},
    [CLOCK_RESTLESS] = {INT64_C(900000000), 4},
};

/* One exchange as the host noted it. */
struct clock_sample {
    int64_t remote; /* the remote clock when it sent */
    int64_t host;   /* the host's clock when it received */
    /* How far the two clocks were ahead of their machines' MONOTONIC_RAW, which nobody corrects, as read at once. */
    int64_t ahead[2]; /* remote, host */
    bool has_raw;
    /* Counts the changes of the clock sources of the two kernels, of which MONOTONIC_RAW is made, too. 0: unknown, and
     * then there is no `has_raw`. */
    uint32_t source_period;
};

/* A reading of the remote clock and what the comparisons around it say about the host's time then. */
struct clock_knot {
    int64_t x;
    int64_t lo;
    int64_t hi;
};

/* Samples close together: the clocks do not drift apart in between, and only the best of them matter from afar. */
struct clock_burst {
    size_t first, end;
    size_t above; /* the sample that bounds the map most from above */
    size_t below; /* … and from below */
};

/* A burst or the gap between two: what is proven at its ends. In between, the chords hold but for clock_bulge(). */
struct clock_cell {
    int64_t x[2];
    int64_t lo[2];
    int64_t hi[2];
};

/* Bursts between which the clock did not step. */
struct clock_span {
    size_t first, end;  /* bursts */
    int64_t min_rtt_ns; /* the quickest round trip in them */
};

/* A step of the clock: the host's time went on by so much more (or less) than the remote clock's. */
struct clock_step {
    int64_t x[2]; /* the readings that it lies between */
    int64_t by_ns;
};

struct clock_line {
    VEC(struct clock_sample)
    samples; /* sorted by remote once fitted */
    VEC(struct clock_sample)
    aside; /* samples that contradict others whatever the clocks did; the bound covers them, too */
    VEC(struct clock_burst)
    bursts; /* of the samples, in their order */
    VEC(struct clock_cell)
    cells; /* burst 0, the gap behind it, burst 1, … */
    VEC(struct clock_span)
    spans; /* cut at the steps */
    VEC(struct clock_step)
    steps;
    VEC(struct clock_knot)
    knots; /* by x */
    VEC(struct sync_transform)
    pieces;               /* piece i holds from knot i (the first: from ever) to knot i + 1 (the last: for ever) */
    int64_t end_slope[2]; /* bounds of the error's growth per 2^30 ns before the first and behind the last knot */
    uint32_t rejected;    /* readings out of range, and those aside */
    uint32_t splits;      /* gaps in which the rate changed faster than it wanders */
};

/* Adds a sample; duplicates are fine. False when out of memory or out of range (counted in rejected). */
bool clock_line_add(struct clock_line *l, const struct clock_sample *sample);

/* Computes the map and the bounds from all samples. 0; -MRD_ENOTFOUND when they do not bound it (fewer than two that
 * belong together); -MRD_ENOMEM. */
int clock_line_fit(struct clock_line *l);

/* Remote to host and back; only after a fit. Monotonic, saturating. */
int64_t clock_line_to_host(const struct clock_line *l, int64_t remote);
int64_t clock_line_to_remote(const struct clock_line *l, int64_t host);

/* The piece that holds at `remote`, and [*first, *end) where it does. */
const struct sync_transform *clock_line_piece(const struct clock_line *l, int64_t remote, int64_t *first, int64_t *end);

/* |to_host(remote) - true host time| is at most this; never less than half of the quickest round trip of the span. */
int64_t clock_line_error(const struct clock_line *l, int64_t remote);

/* The largest such error in [first, end]. */
int64_t clock_line_worst(const struct clock_line *l, int64_t first, int64_t end);

void clock_line_free(struct clock_line *l);

#endif
