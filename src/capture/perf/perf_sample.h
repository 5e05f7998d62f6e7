/* One data source linux.perf: its state, and what it makes of each sample. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_SAMPLE_H
#define MERIDIAN_CAPTURE_PERF_PERF_SAMPLE_H

#include "capture/perf/perf_cpu.h"
#include "capture/perf/perf_kernel.h"
#include "capture/perf/perf_names.h"
#include "capture/perf/perf_packets.h"
#include "capture/perf/perf_process.h"
#include "capture/perf/perf_queue.h"
#include "capture/perf/perf_scope.h"
#include "capture/probes/common/data_source.h"

enum { PERF_MAX_FRAMES = PERF_RECORD_MAX_BYTES / 8 };

/* The user's part of a stack, before its frames have numbers. */
struct perf_user_stack {
    struct unwind_frame frames[PERF_MAX_FRAMES];
    size_t n;
    const char *error;   /* NULL: it is whole, as far as anybody can tell */
    uint32_t error_code; /* Profiling.StackUnwindError */
};

/* Records of one cpu that had no room in its ring. The ring tells of them once there is a record to do it in front of,
 * the event's own count at once. */
struct perf_losses {
    uint64_t by_records; /* what the ring has told of */
    uint64_t told;       /* in packets */
};

/* What turns samples into packets; without the events and timers, so that a test can give it any record. */
struct perf_sampler {
    const struct perf_config *config;
    struct perf_layout layout;
    struct perf_shared *shared;
    struct perf_packets packets;
    struct perf_processes processes;
    struct perf_names names;
    struct perf_scope scope;
    struct perf_queue queue;
    VEC(struct perf_losses)
    losses;              /* by cpu */
    uint64_t read_until; /* BOOTTIME: what was taken before has been read out of the rings */
    uint32_t generation; /* of the numbers of mappings */
    struct perf_user_stack user;
    uint32_t frames[PERF_MAX_FRAMES];
};

/* Takes one record of `cpu`; those of processes are not looked at, see perf_sampler_look_ahead(). `now_ms`: a clock
 * that never goes back. True: it was a sample. */
bool perf_sampler_take(struct perf_sampler *s, uint32_t cpu, struct slice record, uint64_t now_ms);

/* Tells of losses of which no record has told: the event of `cpu` has counted `total` so far. */
void perf_sampler_lost(struct perf_sampler *s, uint32_t cpu, uint64_t total);

/* Takes in forks, or maps and names, ahead of the samples, which may be of another cpu's ring; the forks of all rings
 * first, as a child's maps may be in another ring than its birth. */
void perf_sampler_look_ahead(struct perf_sampler *s, struct slice record, bool forks);

/* Looks again at the samples that wait; `last`: nothing waits any longer. */
void perf_sampler_retry(struct perf_sampler *s, uint64_t now_ms, bool last);

/* BOOTTIME: every sample that was taken before is written. */
uint64_t perf_sampler_whole_until(const struct perf_sampler *s);

/* Forgets what has become too much: maps of processes; what was interned, and then the sequence begins again. */
void perf_sampler_bound(struct perf_sampler *s);

/* Begins the sequence (again): what was interned is forgotten. */
void perf_sampler_begin(struct perf_sampler *s);

void perf_sampler_free(struct perf_sampler *s);

/* perf_stack.c: the user's part of a stack into s->user. False: a file that it needs is still being read. */
bool perf_stack_collect(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, uint64_t now_ms);

/* The frames of a sample into s->frames, innermost first; `user`: with those of s->user. The packet is open. */
size_t perf_stack_frames(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, bool user,
                         uint64_t now_ms);

#endif
