/* Tests whether two sides of values differ by more than their noise. */
#include "compare/rank_test.h"

#include "base/alloc.h"
#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Student's distribution ---- */

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 500; m++) {
        double steps[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                           -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + steps[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + steps[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            change = c * d;
            h *= change;
        }
        if (fabs(change - 1) < 1e-14)
            break;
    }
    return h;
}

static double beta_incomplete(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double freedom)
{
    if (!(freedom > 0) || isnan(t))
        return 1;
    if (isinf(t))
        return 0;
    return beta_incomplete(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/* ---- ranks ---- */

struct ranked {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* rank[i] of the i-th value over all runs, from 1; equal values share the mean of their places. */
static void ranks_of(const struct rank_run *runs, size_t n, struct ranked *all, size_t total, double *rank)
{
    size_t at = 0;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < runs[r].n; i++, at++)
            all[at] = (struct ranked){runs[r].values[i], at};
    qsort(all, total, sizeof *all, by_value);
    for (size_t i = 0; i < total;) {
        size_t end = i;
        while (end < total && all[end].value == all[i].value)
            end++;
        for (size_t k = i; k < end; k++)
            rank[all[k].at] = (double)(i + end + 1) / 2;
        i = end;
    }
}

static double mean_of(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return n ? sum / (double)n : 0;
}

/* Sum of products of deviations `lag` apart. */
static double lagged(const double *v, size_t n, double mean, size_t lag)
{
    double sum = 0;
    for (size_t i = lag; i < n; i++)
        sum += (v[i] - mean) * (v[i - lag] - mean);
    return sum;
}

/* What the noise is made of. */
struct noise {
    double within;    /* sum of squares around each run's mean */
    double inflation; /* of the variance of a mean, by the likeness of neighbours */
};

static struct noise noise_of(const struct rank_run *runs, size_t n, const double *rank, size_t total)
{
    enum { LAGS = 6 };
    double products[LAGS + 1] = {0};
    size_t at = 0;
    for (size_t r = 0; r < n; at += runs[r].n, r++) {
        double mean = mean_of(rank + at, runs[r].n);
        for (size_t lag = 0; lag <= LAGS && lag < runs[r].n; lag++)
            products[lag] += lagged(rank + at, runs[r].n, mean, lag);
    }
    struct noise out = {products[0], 1};
    if (products[0] <= 0)
        return out;
    /* What an estimate from deviations misses (Kendall: (1 + 3 rho) / n), and a standard error more. */
    double first = products[1] / products[0], sum = 1;
    first += (1 + 3 * fmax(first, 0)) * (double)n / (double)total + 1.2 / sqrt((double)total);
    first = first < 0 ? 0 : first > 0.95 ? 0.95 : first;
    for (size_t lag = 1; lag <= LAGS; lag++)
        sum += 2 * (1 - (double)lag / (LAGS + 1)) * (products[lag] / products[0]);
    out.inflation = fmax((1 + first) / (1 - first), sum);
    return out;
}

/* One recording on a side: the t form of the rank test, with as many degrees of freedom as the values are worth. */
static void test_blocks(struct noise noise, const double means[2], const size_t counts[2], bool steady,
                        struct rank_result *out)
{
    double total = (double)(counts[0] + counts[1]);
    out->worth = total / noise.inflation;
    if (noise.within <= 0) {
        out->worth = steady ? total : 2;
        out->tested = steady;
        out->p = steady && means[0] != means[1] ? 0 : 1;
        return;
    }
    double freedom = out->worth - 2;
    if (freedom < 2)
        return;
    double variance = noise.within / (total - 2) * noise.inflation;
    double t = (means[1] - means[0]) / sqrt(variance * (1 / (double)counts[0] + 1 / (double)counts[1]));
    out->tested = true;
    out->p = student_p(t, freedom);
}

/* Several on both: the mean ranks of the recordings are the values. Their variance is at least what the blocks of one
 * recording explain. */
static void test_runs(const struct rank_run *runs, size_t n, const double *rank, struct noise noise, size_t total,
                      struct rank_result *out)
{
    double sum[2] = {0}, squares = 0, blocks = 0, k[2] = {0}, means[2];
    size_t at = 0;
    for (size_t r = 0; r < n; at += runs[r].n, r++)
        if (runs[r].n) {
            sum[runs[r].side] += mean_of(rank + at, runs[r].n);
            k[runs[r].side]++;
            blocks += (double)runs[r].n;
        }
    if (k[0] < 2 || k[1] < 2)
        return;
    for (int s = 0; s < 2; s++)
        means[s] = sum[s] / k[s];
    at = 0;
    for (size_t r = 0; r < n; at += runs[r].n, r++)
        if (runs[r].n) {
            double d = mean_of(rank + at, runs[r].n) - means[runs[r].side];
            squares += d * d;
        }
    double freedom = k[0] + k[1] - 2, all = k[0] + k[1];
    double rest = (double)total > all ? noise.within / ((double)total - all) * noise.inflation : 0;
    double variance = fmax(squares / freedom, rest * all / blocks);
    double difference = means[1] - means[0];
    out->tested = true;
    out->worth = all;
    out->p = difference == 0 ? 1 : student_p(difference / sqrt(variance * (1 / k[0] + 1 / k[1])), freedom);
}

int rank_test(const struct rank_run *runs, size_t n, bool steady, struct rank_result *out)
{
    size_t total = 0, counts[2] = {0}, sides[2] = {0}, at = 0;
    double sums[2] = {0}, means[2];
    *out = (struct rank_result){.p = 1};
    for (size_t r = 0; r < n; r++) {
        total += runs[r].n;
        counts[runs[r].side] += runs[r].n;
        sides[runs[r].side] += runs[r].n > 0;
    }
    if (!counts[0] || !counts[1])
        return 0;
    double *rank = mem_alloc(total * sizeof *rank);
    struct ranked *all = mem_alloc(total * sizeof *all);
    if (rank && all) {
        ranks_of(runs, n, all, total, rank);
        for (size_t r = 0; r < n; r++)
            for (size_t i = 0; i < runs[r].n; i++, at++)
                sums[runs[r].side] += rank[at];
        for (int s = 0; s < 2; s++)
            means[s] = sums[s] / (double)counts[s];
        out->effect = 2 * (means[1] - means[0]) / (double)total;
        struct noise noise = noise_of(runs, n, rank, total);
        if (sides[0] >= 2 && sides[1] >= 2)
            test_runs(runs, n, rank, noise, total, out);
        else if (sides[0] == 1 && sides[1] == 1)
            test_blocks(noise, means, counts, steady, out);
    }
    int rc = rank && all ? 0 : -MRD_ENOMEM;
    mem_free(rank);
    mem_free(all);
    return rc;
}

int holm_correct(double *p, size_t n)
{
    struct ranked *order = mem_alloc((n + 1) * sizeof *order);
    double least = 0;
    if (!order)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){p[i], i};
    qsort(order, n, sizeof *order, by_value);
    for (size_t i = 0; i < n; i++) {
        least = fmax(least, fmin(1, order[i].value * (double)(n - i)));
        p[order[i].at] = least;
    }
    mem_free(order);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_doubles(double *v, size_t n)
{
    if (n)
        qsort(v, n, sizeof *v, by_number);
}

double quantile_sorted(const double *sorted, size_t n, double q)
{
    if (!n)
        return 0;
    double place = q * (double)(n - 1);
    size_t below = (size_t)place;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}
