/* Tests whether two sides of values differ by more than their noise: ranks, so that no shape of distribution is
 * assumed.
 *
 * The values of a recording follow each other in time and resemble their neighbours; so many values tell less than as
 * many independent ones. With one recording a side the test counts them as the fewer values that they are worth (by
 * their autocorrelation). With several a side, the recordings are the sample: their mean ranks are compared. */
#ifndef MERIDIAN_COMPARE_RANK_TEST_H
#define MERIDIAN_COMPARE_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

/* The values of one recording, in order of time. */
struct rank_run {
    const double *values;
    size_t n;
    int side; /* 0 or 1 */
};

struct rank_result {
    bool tested;   /* false: there are too few values for any claim */
    double p;      /* two-sided; 1 when not tested */
    double effect; /* Cliff's delta: how much more often a value of side 1 is larger than smaller, -1 to 1 */
    double worth;  /* how many independent values (or recordings) the test rests on */
};

/* `steady`: a value that never moves is set so on purpose (a frequency), and counts as many values; else it counts as
 * one, since what made it so was drawn once. -MRD_ENOMEM. */
int rank_test(const struct rank_run *runs, size_t n, bool steady, struct rank_result *out);

/* The probability of a value at least as far from 0 as `t`, of Student's distribution. */
double student_p(double t, double freedom);

/* Holm's step-down correction in place: the chance that any of `n` tests without a difference gets less than its
 * corrected p is at most p. -MRD_ENOMEM. */
int holm_correct(double *p, size_t n);

/* The q-th part (0 to 1) of sorted values, between two of them by their distance; 0 of none. */
double quantile_sorted(const double *sorted, size_t n, double q);
void sort_doubles(double *v, size_t n);

#endif
