/* A trace summary: what specs ask of the loaded traces, as one TraceSummary (docs/summaries.md). */
#ifndef MERIDIAN_SUMMARY_RUN_SUMMARY_H
#define MERIDIAN_SUMMARY_RUN_SUMMARY_H

#include "summary/query/spec.h"
#include "summary/run/runner.h"
#include "wire/pb_writer.h"

/* A spec as it came. */
struct summary_source {
    const char *name; /* for errors */
    struct slice bytes;
    enum spec_format format;
};

struct summary_request {
    const struct summary_source *sources;
    size_t n_sources;
    const char *const *metric_ids;
    size_t n_metric_ids;
    bool all_metrics;           /* instead of metric_ids */
    const char *metadata_query; /* id of a query with the columns key and value; NULL: no metadata */
    bool text;                  /* text format instead of wire bytes */
};

/* Appends the summary to `out`. Bundles stand in the order in which their metrics were asked for, metadata behind them.
 * Errors name the spec, the metric and the field. -MRD_EFORMAT, -MRD_EINVALID, -MRD_ENOTFOUND, -MRD_ELIMIT, -MRD_ESQL
 * (the engine has the whole text), -MRD_ECANCELLED, -MRD_ENOMEM. */
int summary_make(struct query_runner *runner, const struct summary_request *request, struct pb_writer *out,
                 struct error *err);

#endif
