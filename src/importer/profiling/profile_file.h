/* What profiles in files of other formats than packets share: frames that are known by their name only, and samples. */
#ifndef MERIDIAN_IMPORTER_PROFILING_PROFILE_FILE_H
#define MERIDIAN_IMPORTER_PROFILING_PROFILE_FILE_H

#include "importer/profiling/stack_profile.h"

/* A mapping by its name, one a name. UINT32_MAX when out of memory, as below. */
uint32_t profile_file_mapping(struct machine_ctx *m, strid name);
/* A mapping of its own, whatever others are called. */
uint32_t profile_file_own_mapping(struct machine_ctx *m, strid name);

/* The frame of a function in a mapping, with a symbol that says its name and file (0: not known). */
uint32_t profile_file_frame(struct machine_ctx *m, uint32_t mapping, strid name, strid file);

/* Adds a sample; its row. `source`: a literal; utid, upid: UTID_NONE, UPID_NONE; cpu: COL_NULL when not known. */
uint32_t profile_file_sample(struct machine_ctx *m, int64_t ts, const char *source, uint32_t utid, uint32_t upid,
                             int64_t cpu, uint32_t callsite);

#endif
