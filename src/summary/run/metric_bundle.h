/* One bundle of metrics: its query runs once, its rows become a TraceMetricV2Bundle. */
#ifndef MERIDIAN_SUMMARY_RUN_METRIC_BUNDLE_H
#define MERIDIAN_SUMMARY_RUN_METRIC_BUNDLE_H

#include "summary/run/metric_set.h"
#include "summary/run/runner.h"
#include "wire/pb_writer.h"

enum { SUMMARY_MAX_BYTES = 200 << 20 }; /* of the whole message; protocol messages end at 256 MiB */

/* What a summary being made consists of. */
struct summary_job {
    struct query_runner *runner;
    struct structured_queries *shared; /* queries by their ids */
    struct pb_writer *out;             /* the TraceSummary */
};

/* Has the message become too large, or is memory out? */
int summary_check_size(const struct summary_job *job, struct error *err);

/* Writes the bundle. Errors name the metric and the field. */
int bundle_write(struct summary_job *job, const struct metric_set *set, const struct metric_bundle *b,
                 struct error *err);

#endif
