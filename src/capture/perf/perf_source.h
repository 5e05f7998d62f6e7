/* The data source linux.perf. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_SOURCE_H
#define MERIDIAN_CAPTURE_PERF_PERF_SOURCE_H

#include "capture/probes/common/data_source.h"

extern const struct data_source_type perf_data_source;

#endif
