/* The packets of a data source linux.perf: PerfSample, and what it refers to. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_PACKETS_H
#define MERIDIAN_CAPTURE_PERF_PERF_PACKETS_H

#include "capture/perf/perf_config.h"
#include "capture/perf/perf_intern.h"
#include "capture/perf/perf_record.h"
#include "kernel/packet_sink.h"

struct perf_packets {
    struct packet_sink sink;
    const struct perf_config *config;
    uint32_t shard_count, shard;
    struct perf_intern in;
    struct pb_writer w;
    size_t before, interned; /* of the packet that is open: where InternedData begins, with its head and without */
    uint64_t lost;           /* packets that the sink had lost when the interned data was begun */
    bool gap;                /* a packet could not be made: out of memory */
};

/* Writes what the other packets of the sequence build on. Again after perf_packets_forget(). */
void perf_packets_begin(struct perf_packets *p);
void perf_packets_forget(struct perf_packets *p);
void perf_packets_free(struct perf_packets *p);

/* Interned data that call stacks refer to before any text is told: number 0 of each kind is "". */
void perf_packets_put_no_texts(struct pb_writer *w);

/* Opens the packet of a sample, for frames to be interned; perf_packets_stack() writes it. */
struct pb_writer *perf_packets_open(struct perf_packets *p, const struct perf_record *r);

/* The sample with its call stack, innermost frame first. `error`: Profiling.StackUnwindError, 0: none. */
void perf_packets_stack(struct perf_packets *p, uint32_t cpu, const struct perf_record *r, const uint32_t *frames,
                        size_t n, uint32_t error);

/* The sample with its counts alone; `reason`: PerfSample.SampleSkipReason, 0: none. */
void perf_packets_counts(struct perf_packets *p, uint32_t cpu, const struct perf_record *r, uint32_t reason);

/* Counts that were read at `now` (BOOTTIME). */
void perf_packets_polled(struct perf_packets *p, uint32_t cpu, uint64_t now, const uint64_t *counts, unsigned n);

/* What the thread of a sample is called, and its process while /proc knows its command line. */
void perf_packets_name(struct perf_packets *p, const struct perf_record *r, const char *name);

/* The kernel has lost `n` records. */
void perf_packets_lost(struct perf_packets *p, uint32_t cpu, uint64_t now, uint64_t n);

/* Every sample that was taken before `whole_until` (BOOTTIME) is in the packets so far; `ended`: no later ones were
 * taken. A packet of our own, which other readers skip: where it is missing at the end, it says what a killed recorder
 * lost. */
void perf_packets_progress(struct perf_packets *p, uint64_t whole_until, bool ended);

/* The source ends, because it uses too much. */
void perf_packets_guardrail(struct perf_packets *p, uint64_t now);

/* Packets have been lost on their way since the last begin: what later ones refer to may be missing. */
bool perf_packets_have_gap(const struct perf_packets *p);

#endif
