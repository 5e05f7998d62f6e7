/* Call stacks of user space out of the copies of registers and stack that `perf record --call-graph dwarf` takes, by
 * the unwind tables of the files that were mapped. The user of the importer opens them (import_options.open_code): what
 * a recording names is only a name, and whether the file is the one that ran is not for the importer to judge. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_UNWIND_H
#define MERIDIAN_IMPORTER_PERF_PERF_UNWIND_H

#include "importer/perf/perf_internal.h"
#include "unwind/unwind.h"

/* Which file a MMAP2 says it is, beside its path and build id. All 0: it does not. */
struct perf_inode {
    uint64_t number;
    uint32_t major, minor;
};

/* Makes the unwinder, where the recording has what it needs: else p->unwinder stays NULL. */
void perf_unwind_open(struct perf_import *p);

/* A file is mapped: `mapping` is its row. */
void perf_unwind_map(struct perf_import *p, uint32_t mapping, struct perf_inode inode);

/* The frames of a sample's user space, innermost first; 0 when it has no copies that can be read. *error: why they end
 * before the outermost function, a Profiling.StackUnwindError; 0: they do not. They last until the next call. */
size_t perf_unwind(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                   const struct unwind_frame **frames, uint32_t *error);

/* An address inside of the instruction that such a frame is in. */
uint64_t perf_unwind_code(const struct perf_import *p, const struct unwind_frame *frame);

void perf_unwind_close(struct perf_import *p); /* twice is fine */

#endif
