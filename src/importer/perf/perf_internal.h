/* What the files of this folder share: one file while it is imported. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_INTERNAL_H
#define MERIDIAN_IMPORTER_PERF_PERF_INTERNAL_H

#include "importer/clock/file_clock.h"
#include "importer/perf/perf_file.h"
#include "importer/perf/perf_import.h"
#include "importer/perf/perf_maps.h"
#include "kernel/bundle.h"

enum { PERF_MODES = 6, PERF_KNOWN_FRAMES = 1024 };

/* What a sample or the trailer of another record says of where and when. */
struct perf_where {
    uint32_t pid, tid;
    uint64_t time, id;
    uint32_t cpu;
    bool has_tid, has_time, has_id, has_cpu;
};

/* A SAMPLE, decoded. Views are in the byte order of the file. */
struct perf_sample_record {
    struct perf_where where;
    uint64_t ip, period;
    bool has_ip, has_period;
    struct slice read;      /* of READ, whole */
    struct slice callchain; /* n × u64 */
    struct slice raw;
};

/* What an event has counted on a CPU. */
struct perf_counter {
    double total;
    uint32_t track;
};

/* A frame that was looked for. Stale when other files lie there since (`version`). */
struct perf_known_frame {
    uint64_t ip;
    uint32_t pid, version, frame;
    uint8_t mode;
    bool dummy; /* in no known file */
};

struct perf_import {
    struct importer *im;
    struct machine_ctx *m;
    struct perf_file file;
    uint8_t *copy; /* of a file whose bytes do not stay */
    struct file_clock clock;
    uint32_t queue;
    struct u64map counter_of; /* attr, cpu -> one of `counters` */
    VEC(struct perf_counter)
    counters;
    strid source, nothing, modes[PERF_MODES]; /* texts that samples have in common */
    uint32_t first_session;                   /* row of profiler_session of the first attr */
    struct perf_spaces spaces;
    struct perf_known_frame known_frames[PERF_KNOWN_FRAMES]; /* by a hash of their address */
    bool has_kernel_map;
    bool has_switches;                    /* a tracepoint tells them */
    struct perf_tracepoints *tracepoints; /* NULL: none in the file */
};

/* The fields of a sample in their order. False when it is not all there. */
bool perf_sample_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                      struct perf_sample_record *s);
/* The trailer of another record; nothing where the attr has none. */
void perf_trailer_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                       struct perf_where *w);
/* The attr of a record, NULL when there is no such. */
const struct perf_attr *perf_attr_of(const struct perf_file *f, const struct perf_record *r);

/* perf_sample.c: in time order. */
void perf_samples_open(struct perf_import *p);
void perf_parse_sample(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts);
/* perf_tasks.c: the others; false when this type is not one of them. */
bool perf_parse_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts);

/* perf_tracepoints.c: kernel events in the samples, as bundles. */
int perf_tracepoints_open(struct perf_import *p);
void perf_tracepoints_add(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s);
void perf_tracepoints_end(struct perf_import *p);
void perf_tracepoints_close(struct perf_tracepoints *t);

#endif
