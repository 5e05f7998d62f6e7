/* The metrics that a summary is to compute: chosen by their ids from specs and their templates, looked over, and put
 * into the bundles that they share. */
#ifndef MERIDIAN_SUMMARY_RUN_METRIC_SET_H
#define MERIDIAN_SUMMARY_RUN_METRIC_SET_H

#include "base/arena.h"
#include "base/strpool.h"
#include "base/vec.h"
#include "summary/query/spec.h"

typedef Mrd__TraceMetricV2Spec metric_spec;

struct metric {
    const metric_spec *spec; /* NULL: asked for and not found yet */
    size_t next;             /* of its bundle */
};

/* Metrics with one query, whose values stand in the same rows. */
struct metric_bundle {
    const char *id;
    size_t first, last; /* metrics */
    size_t n_metrics;
};

struct metric_set {
    struct arena mem;
    VEC(struct metric)
    metrics; /* in the order of the ids asked for; of all: of the specs, templates behind the others */
    VEC(struct metric_bundle)
    bundles;                        /* in the order of their first metrics */
    struct strpool ids, bundle_ids; /* the number of an id is 1 + its place in the array */
};

/* Walks the places of a bundle's metrics, in their order. */
#define FOR_METRICS_OF_BUNDLE(set, bundle, i)                                                                          \
    for (size_t i = (bundle)->first, left_ = (bundle)->n_metrics; left_ > 0; i = (set)->metrics.p[i].next, left_--)

/* What to choose from, and what. */
struct metric_choice {
    const trace_summary_spec *const *specs; /* must outlive the set */
    const char *const *names;               /* of the specs, for errors */
    size_t n_specs;
    const char *const *ids;
    size_t n_ids;
    bool all; /* instead of ids */
};

/* Zero the set before. -MRD_EINVALID names the metric and its field, -MRD_ENOTFOUND an id that no spec has,
 * -MRD_ELIMIT, -MRD_ENOMEM. Free it in any case. */
int metric_set_choose(struct metric_set *set, const struct metric_choice *choice, struct error *err);
void metric_set_free(struct metric_set *set);

/* ---- dimensions, however the spec names them ---- */

size_t metric_n_dimensions(const metric_spec *m);
const char *metric_dimension_name(const metric_spec *m, size_t i);

/* DIMENSION_TYPE_UNSPECIFIED (0): by what the rows hold. */
Mrd__TraceMetricV2Spec__DimensionType metric_dimension_type(const metric_spec *m, size_t i);

#endif
