/* Shared by the parts of a clock_line (bursts, bounds, map); for clock_*.c of a line only. */
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

/* From `at` on, away from the time in question, the rate may have stepped by so much without showing it. */
struct clock_kink {
    int64_t at;
    int64_t rate_ppb;
};

enum { CLOCK_MOST_KINKS = 32 };

struct clock_kinks {
    struct clock_kink p[CLOCK_MOST_KINKS];
    size_t n;
};

/* Adds to the hull what a burst says about the tangent at x: all of its samples, or the two that say most; relaxed by
 * what the clock may have done on the way (NULL: nothing). 0 or -MRD_ENOMEM. */
int clock_burst_add(const struct clock_line *l, struct sync_hull *h, int64_t x, const struct clock_burst *b, bool all,
                    const struct clock_kinks *kinks);

/* The first and the last reading of a burst. */
int64_t clock_burst_start(const struct clock_line *l, size_t burst);
int64_t clock_burst_end(const struct clock_line *l, size_t burst);

/* Whether a kernel's clock source changed between two bursts: any step of the rate and of the time is possible there,
 * and comparisons say nothing about what lies beyond. */
bool clock_source_changed(const struct clock_line *l, size_t burst, size_t other);

/* The number of bursts to go away from one for the k-th of those that are asked: close ones all, then fewer and fewer.
 */
size_t clock_burst_away(size_t away);

/* ---- clock_proof.c ---- */

/* What the host's time can be at one reading; a hypothesis that no clock satisfies has none. */
struct clock_range {
    int64_t lo, hi;
    bool has;
};

/* By how much a clock runs faster than the MONOTONIC_RAW of its machine. */
struct clock_own_rate {
    int64_t least_ppb, most_ppb;
    bool has;
};

/* What is known about a cell, each at both of its ends. */
struct clock_proof {
    struct clock_range left[2];  /* nothing happens up to the time in question: what the comparisons before it say */
    struct clock_range right[2]; /* nothing happens from there on: those behind it */
    struct clock_range both[2];  /* nothing happens in the cell: those at its ends; where the clock is restless */
    /* While the clock is quiet, of gaps: */
    struct clock_range left_same[2];   /* the time steps and the rate is the same on both sides: those before it */
    struct clock_range right_same[2];  /* those behind it */
    size_t n[2];                       /* how many bursts before and behind agree with each other */
    int64_t least_ppb[2], most_ppb[2]; /* the rate before the gap and behind it */
    bool has_rate[2];
    struct clock_own_rate own[2][2]; /* of the remote and of the host's clock, before the gap and behind it */
};

/* What may have happened in a cell although the comparisons do not show it. */
struct clock_hidden {
    int64_t rate_ppb; /* a step of the rate, by so much at most */
    bool time;        /* a step of the time */
};

struct clock_prover {
    struct clock_line *l;
    struct sync_hull *h, *other;
    struct clock_proof *gaps;    /* while the clock is quiet, by the burst before the gap */
    struct clock_hidden *hidden; /* by cell */
};

/* The gap behind burst i, or burst i when the clock is restless; from x[0] to x[1]. 0 or -MRD_ENOMEM, as below. */
int clock_proof_gap(struct clock_prover *b, const int64_t x[2], size_t i, enum clock_regime_id regime,
                    struct clock_proof *p);
int clock_proof_burst(struct clock_prover *b, const int64_t x[2], size_t i, struct clock_proof *p);

/* What the bursts `first` and `last` say about x together. */
int clock_proof_together(struct clock_prover *b, size_t first, size_t last, int64_t x, struct clock_range *out);

/* Fills b->hidden, once b->gaps is known. */
void clock_proof_hidden(struct clock_prover *b);

/* What all comparisons near by say about end e of the gap behind burst i when nothing happens near it on side `still`
 * (0: before it), and on the other and far away the rate or (`time`) the time may step, by what the comparisons hide.
 * Nothing when they hide no step of the time there. */
int clock_proof_hypothesis(struct clock_prover *b, const int64_t x[2], size_t i, int e, int still, bool time,
                           struct clock_range *out);

/* ---- clock_bound.c ---- */

/* Fills the cells, the steps and the spans. 0 or -MRD_ENOMEM. */
int clock_bound_fit(struct clock_line *l, struct sync_hull *h);

/* ---- clock_error.c ---- */

/* The cell that holds x: the burst or the gap in whose [x[0], x[1]) it lies; beyond the ends the first and the last. */
size_t clock_cell_at(const struct clock_line *l, int64_t x);

/* The span of a burst. */
const struct clock_span *clock_span_of(const struct clock_line *l, size_t burst);

#endif
