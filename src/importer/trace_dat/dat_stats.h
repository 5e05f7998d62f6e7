/* What the kernel says at the end of a recording, per CPU: option CPUSTAT into the stats of ftrace. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_STATS_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_STATS_H

#include "importer/core/context.h"
#include "importer/trace_dat/dat_file.h"

void dat_stats_import(struct machine_ctx *m, const struct dat_file *f);

#endif
