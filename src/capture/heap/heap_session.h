/* What a session makes of the records of its processes; without timers and the service, so that a test can give it any
 * ring. */
#ifndef MERIDIAN_CAPTURE_HEAP_HEAP_SESSION_H
#define MERIDIAN_CAPTURE_HEAP_HEAP_SESSION_H

#include "capture/heap/heap_packets.h"
#include "capture/perf/perf_sample.h"

struct heap_session {
    struct heap_config config;
    struct perf_config perf_config; /* as stacks are unwound */
    struct perf_sampler sampler;    /* what unwinds them; its packets are ours, too */
    struct heap_packets packets;
    bool full; /* so many call stacks are known that others are counted as lost */
    uint8_t scratch[HEAP_RECORD_MAX];
};

/* Fills in what does not come from the config. */
void heap_session_init(struct heap_session *s, struct perf_shared *shared, const struct packet_sink *sink);
void heap_session_free(struct heap_session *s);

/* The process is sampled from now on: what it has mapped is looked at. */
void heap_session_meet(struct heap_session *s, struct heap_peer *p, uint64_t now_ms);

/* Reads what a process has written, until the clock (MONOTONIC, ns) is at `until_ns`. `ended`: it writes no more.
 * `last`: nothing waits for files. True: that was all that can be read now. */
bool heap_session_read(struct heap_session *s, struct heap_peer *p, bool ended, bool last, uint64_t now_ms,
                       int64_t until_ns);

#endif
