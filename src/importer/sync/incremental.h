/* The incremental convex-hull synchronisation of Trace Compass, rule for rule, for results that agree with it
 * (`--method=trace-compass`). Its bounds are sound but not always the tightest, and it keeps the last good formula once
 * the hulls contradict each other; the exact method of hull.h has neither weakness. */
#ifndef MERIDIAN_IMPORTER_SYNC_INCREMENTAL_H
#define MERIDIAN_IMPORTER_SYNC_INCREMENTAL_H

#include "importer/sync/hull.h"

struct incremental_line {
    struct sync_point old_point; /* p0, on the other hull */
    struct sync_point new_point; /* p1, the newest point that qualified */
    bool has_old;
    bool has_new;
};

struct incremental_sync {
    sync_points hull[2];             /* by enum sync_kind */
    struct incremental_line line[2]; /* flattest for points below, steepest for points above: by the kind of p1 */
    enum sync_quality quality;
    uint32_t n_messages;
    uint32_t n_accurate; /* those that qualified */
    /* y = alpha x + beta, from the reference to the other clock; 1 and 0 until something is known. */
    long double alpha, beta;
    long double alpha_max, alpha_min, beta_min, beta_max;
};

void incremental_sync_init(struct incremental_sync *s);

/* Takes a message, in the order in which they were matched. -MRD_ENOMEM. */
int incremental_sync_add(struct incremental_sync *s, enum sync_kind kind, int64_t x, int64_t y);

void incremental_sync_free(struct incremental_sync *s);

#endif
