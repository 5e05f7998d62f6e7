/* Events of Windows' kernel (ETW): what the files of them share. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_ETW_H
#define MERIDIAN_IMPORTER_SYSTEM_ETW_H

#include "importer/system/system_internal.h"

#include "base/vec.h"

/* An operation on a file that has begun. */
struct etw_operation {
    uint64_t irp; /* of the request that it is part of */
    int64_t ts;
    uint32_t track, set;
    bool open;
};

struct etw {
    struct machine_ctx *m;
    uint32_t queue;
    struct arena arena; /* copies of bytes that do not stay */
    VEC(struct etw_event)
    events;
    VEC(struct etw_operation)
    operations;
    struct u64map by_irp; /* request -> index of its open operation + 1 */
};

/* The thread of an event; one that is not told is the same for all. */
uint32_t etw_thread(struct machine_ctx *m, int64_t tid);

/* An event about a file: its field in EtwTraceEvent. */
void etw_file_event(struct etw *e, int64_t ts, uint32_t utid, uint32_t field, struct slice bytes);
/* Operations whose end did not come. */
void etw_files_finish(struct etw *e);

#endif
