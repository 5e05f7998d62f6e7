/* The packets of a data source android.heapprofd: ProfilePacket, and what it refers to. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_PACKETS_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_PACKETS_H

#include "capture/heap/heap_config.h"
#include "capture/heap/heap_peer.h"
#include "capture/perf/perf_packets.h"

struct heap_packets {
    struct perf_packets *perf; /* the sequence's writer, and what is interned in it */
    const struct heap_config *config;
    uint64_t index; /* of the next ProfilePacket */
};

/* What the other packets of the sequence build on. Again: dumps from now on refer to nothing of before. */
void heap_packets_begin(struct heap_packets *p);

/* What a process is called. */
void heap_packets_name(struct heap_packets *p, int32_t pid);

/* Why a dump is one. */
enum heap_dump { HEAP_DUMP_NOW, HEAP_DUMP_DISCONNECTED, HEAP_DUMP_GUARDRAIL };

/* What has changed of a process since its last dump, with the call stacks that were not told yet. */
void heap_packets_dump(struct heap_packets *p, struct heap_peer *peer, enum heap_dump why);

/* The process is not sampled; `why`: a flag of ProfilePacket.ProcessHeapSamples. */
void heap_packets_refused(struct heap_packets *p, int32_t pid, uint32_t why);

#endif
