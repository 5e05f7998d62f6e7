/* What is measured in a recording: SQL over its tables, once for all that compares and reports. */
#ifndef MERIDIAN_COMPARE_MEASURES_H
#define MERIDIAN_COMPARE_MEASURES_H

#include <stdbool.h>
#include <stddef.h>

/* How rows become a value for each block of time. */
enum measure_kind {
    MEASURE_SHARE,    /* the time that rows cover: ms a second; no row: 0 */
    MEASURE_RATE,     /* how many rows a second; no row: 0 */
    MEASURE_DURATION, /* the mean of the rows' values, in microseconds; no row: no value */
    MEASURE_LEVEL,    /* what a counter shows, the mean over time */
    MEASURE_GROWTH,   /* how much a counter that only grows gains in a second */
};

struct measure {
    const char *name;
    const char *unit;
    enum measure_kind kind;
    bool steady;  /* a value that stays the same is set so, not drawn: see rank_test() */
    bool lasting; /* a row may last as long as the recording */
    /* How likely such a change is the cause of others, for the order of findings: what the value gets more or less, and
     * the weight of each millisecond a second that it concerns. */
    double cause_up, cause_down;
};

enum { MEASURES_A_SOURCE = 3 };

/* A query, and the measures made of its rows: ts, dur (-1: not ended), value (NULL: dur), utid, upid, machine_id, name;
 * of counters also track_id, in order of it and of time. utid, upid and name may be NULL. */
struct measure_source {
    const char *name;
    const char *any; /* a query that gives a row when there is something to measure */
    const char *sql;
    bool by_thread; /* lines of threads beside those of processes */
    struct measure measures[MEASURES_A_SOURCE];
};

extern const struct measure_source measure_sources[];
extern const size_t n_measure_sources;

#endif
