/* Events as perf_event_open() wants them. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_ATTR_H
#define MERIDIAN_CAPTURE_PERF_PERF_ATTR_H

#include "capture/perf/perf_config.h"
#include "capture/perf/perf_record.h"

struct perf_event_attr;

/* What user_frames of this architecture can be unwound from; a mask of 0: nothing. */
struct perf_arch_regs {
    uint64_t mask; /* sample_regs_user */
    uint8_t fp, sp, pc;
};
extern const struct perf_arch_regs perf_arch_regs;

enum { PERF_STACK_BYTES = 65280 }; /* 2^16 - 256: a record is less than 64 KiB */

/* The attributes of the leader of a config, or of a follower. Ids of tracepoints and types of PMUs are looked up in
 * tracefs and /sys; what was found is put into the spec (type, config). */
int perf_attr_make(struct perf_event_attr *attr, const struct perf_config *c, struct perf_event_spec *e, bool leader,
                   struct error *err);

/* What the records of that leader look like. */
struct perf_layout perf_attr_layout(const struct perf_event_attr *leader);

#endif
