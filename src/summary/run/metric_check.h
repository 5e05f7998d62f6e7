/* What a metric must be before its query runs. The errors begin with the field. */
#ifndef MERIDIAN_SUMMARY_RUN_METRIC_CHECK_H
#define MERIDIAN_SUMMARY_RUN_METRIC_CHECK_H

#include "summary/run/metric_set.h"

/* Is the metric whole, and are its dimensions? -MRD_EINVALID, -MRD_ENOMEM. */
int metric_check(const metric_spec *m, struct error *err);

/* May `m` share the rows of `first`? But for the query, whose SQL is compared when it has been made. */
int metric_check_alike(const metric_spec *first, const metric_spec *m, struct error *err);

#endif
