/* Which files processes had mapped when they were recorded: option PROCMAPS, of `trace-cmd record --proc-map`. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_MAPS_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_MAPS_H

#include "importer/clock/clock_graph.h"
#include "importer/core/context.h"
#include "importer/trace_dat/dat_file.h"

/* Rows of stack_profile_mapping, and of when they were seen: at `time` of `clock`, the begin of the recording. */
void dat_maps_import(struct machine_ctx *m, const struct dat_file *f, struct clock_id clock, int64_t time);

#endif
