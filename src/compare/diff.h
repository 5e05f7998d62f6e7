/* What differs between two sets of recordings by more than their noise. */
#ifndef MERIDIAN_COMPARE_DIFF_H
#define MERIDIAN_COMPARE_DIFF_H

#include "compare/run.h"

enum diff_verdict {
    DIFF_FINDING, /* more than the noise */
    DIFF_LOSS,    /* it would be one, but a recording lost data that may explain it */
    DIFF_CLOCK,   /* the same with the error of a machine's clock */
    DIFF_SMALL,   /* real, but smaller than --min-change */
    DIFF_NOISE,   /* what chance brings */
    DIFF_FEW,     /* too few values for a test */
    DIFF_ABSENT,  /* one side has nothing of the kind at all: it was not recorded */
    DIFF_VERDICTS
};
extern const char *const diff_verdict_names[DIFF_VERDICTS];

struct diff_side {
    uint64_t count;
    double median, p99; /* of the rows of durations, of the blocks of all else */
    double mean;        /* of the blocks */
    size_t n_blocks;
};

struct diff_line {
    const struct run_line *line;
    struct diff_side side[2];
    double change;   /* of the mean, 0.1: ten percent more; infinite from 0 */
    double p, raw_p; /* corrected for the number of lines, and not */
    double effect;   /* Cliff's delta */
    double score;    /* for the order: ms a second that it concerns, by how likely it is the cause */
    enum diff_verdict verdict;
};

struct diff_options {
    double alpha;      /* 0: 0.05 */
    double min_change; /* 0.05: less than five percent is not told */
};

struct diff {
    struct diff_line *lines; /* findings first, the most likely cause at the top */
    size_t n, findings, tested;
    int64_t block_ns;
    bool few_blocks; /* the recordings' lengths differ too much, or they are too short, for any claim */
};

/* Compares side 0 with side 1 of `set`, which must outlive the result. -MRD_EINVALID when a side is empty or the sides
 * have no process name in common. */
int diff_compute(struct run_set *set, const struct diff_options *options, struct diff *out, struct error *err);
void diff_free(struct diff *d);

#endif
