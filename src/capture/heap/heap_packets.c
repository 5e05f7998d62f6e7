/* Writes ProfilePacket as Perfetto's daemon does: call stacks are interned in the sequence, sums are of all the time.
 */
#include "capture/heap/heap_packets.h"

#include "base/clock.h"
#include "capture/probes/common/data_source.h"
#include "capture/probes/proc_status.h"
#include "wire/fields.h"

enum { STATE_CLEARED = 1, STATE_NEEDED = 2 }; /* TracePacket.sequence_flags */
enum { SITES_OF_PACKET = 2048, STACKS_BYTES = 1 << 16 };

static struct pb_writer *open_packet(struct heap_packets *p, uint32_t flags)
{
    struct pb_writer *w = &p->perf->w;
    pb_writer_clear(w);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, probes_boot_ns());
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP_CLOCK_ID, BUILTIN_CLOCK_BOOTTIME);
    pb_put_varint(w, TRACE_PACKET_SEQUENCE_FLAGS, flags);
    return w;
}

static void send_packet(struct heap_packets *p)
{
    struct pb_writer *w = &p->perf->w;
    if (!w->failed)
        packet_sink_write(&p->perf->sink, pb_written(w));
    w->failed = false;
}

void heap_packets_begin(struct heap_packets *p)
{
    perf_intern_tell_anew(&p->perf->in);
    perf_packets_put_no_texts(open_packet(p, STATE_CLEARED));
    send_packet(p);
}

void heap_packets_name(struct heap_packets *p, int32_t pid)
{
    struct proc_status status;
    struct pb_writer *w = open_packet(p, STATE_NEEDED);
    if (!proc_status_read(pid, &status))
        return;
    size_t tree = pb_begin(w, TRACE_PACKET_PROCESS_TREE), process = pb_begin(w, PROCESS_TREE_PROCESSES);
    pb_put_i64(w, PROCESS_TREE_PROCESS_PID, pid);
    pb_put_i64(w, PROCESS_TREE_PROCESS_PPID, status.ppid);
    if (!proc_put_cmdline(w, pid))
        pb_put_str(w, PROCESS_TREE_PROCESS_CMDLINE, status.name);
    pb_put_i64(w, PROCESS_TREE_PROCESS_UID, status.uid);
    pb_end(w, process);
    pb_end(w, tree);
    send_packet(p);
}

static void put_stats(struct pb_writer *w, struct heap_profile *x)
{
    size_t stats = pb_begin(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_STATS);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_STATS_UNWINDING_ERRORS, x->errors);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_STATS_HEAP_SAMPLES, x->samples);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_STATS_TOTAL_UNWINDING_TIME_US, x->unwind_ns / 1000);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_STATS_CLIENT_SPINLOCK_BLOCKED_US, x->blocked_us);
    if (x->lost)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_STATS_SAMPLES_LOST, x->lost);
    pb_end(w, stats);
}

/* What a dump says once, whatever number of packets it takes. */
static void put_flags(struct pb_writer *w, struct heap_peer *peer, enum heap_dump why)
{
    struct heap_profile *x = &peer->profile;
    if (x->from_startup)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_FROM_STARTUP, 1);
    if (why == HEAP_DUMP_DISCONNECTED)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_DISCONNECTED, 1);
    if (why == HEAP_DUMP_GUARDRAIL)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_HIT_GUARDRAIL, 1);
    if (x->lost)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_BUFFER_OVERRAN, 1);
    if (x->broken && !x->tells_broken)
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_BUFFER_CORRUPTED, 1);
    x->tells_broken = x->broken;
    if (peer->ring.header && atomic_load_explicit(&peer->ring.header->timed_out, memory_order_acquire))
        pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_CLIENT_ERROR,
                      PROFILE_PACKET_PROCESS_HEAP_SAMPLES_CLIENT_ERROR_HIT_TIMEOUT);
    put_stats(w, x);
    x->samples = x->errors = x->unwind_ns = x->lost = x->blocked_us = 0;
}

static void put_head(struct pb_writer *w, const struct heap_packets *p, const struct heap_peer *peer, int64_t now)
{
    const struct heap_profile *x = &peer->profile;
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_PID, (uint32_t)peer->pid);
    pb_put_str(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_HEAP_NAME, HEAP_NAME);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLING_INTERVAL_BYTES, x->interval);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_ORIG_SAMPLING_INTERVAL_BYTES, p->config->interval);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_TIMESTAMP, (uint64_t)now);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_START_TIMESTAMP, (uint64_t)x->start_ns);
}

static void put_site(struct pb_writer *w, const struct heap_book *b, struct heap_site *s, bool at_max)
{
    size_t m = pb_begin(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLES);
    pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_CALLSTACK_ID, s->callstack);
    if (at_max) {
        uint64_t n, bytes = heap_book_at_most(b, s, &n);
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_SELF_MAX, bytes);
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_SELF_MAX_COUNT, n);
    } else {
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_SELF_ALLOCATED, s->allocated);
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_SELF_FREED, s->freed);
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_ALLOC_COUNT, s->allocations);
        pb_put_varint(w, PROFILE_PACKET_HEAP_SAMPLE_FREE_COUNT, s->frees);
    }
    pb_end(w, m);
    s->told = true;
}

/* The place behind up to SITES_OF_PACKET that are new, from `at` on, and behind those that are not. */
static size_t end_of_packet(const struct heap_book *b, size_t at)
{
    for (unsigned n = 0; at < b->sites.n && (b->sites.p[at].told || n < SITES_OF_PACKET); at++)
        n += !b->sites.p[at].told;
    return at;
}

static size_t open_interned(struct heap_packets *p)
{
    return pb_begin(open_packet(p, STATE_NEEDED), TRACE_PACKET_INTERNED_DATA);
}

/* The call stacks of sites that are new, as many to a packet as fit. */
static void tell_stacks(struct heap_packets *p, const struct heap_book *b, size_t at, size_t end)
{
    struct pb_writer *w = &p->perf->w;
    size_t interned = open_interned(p);
    for (; at < end; at++) {
        if (!b->sites.p[at].told)
            perf_intern_tell(&p->perf->in, w, b->sites.p[at].callstack);
        if (w->n == interned || (at + 1 < end && w->n - interned < STACKS_BYTES))
            continue;
        pb_end(w, interned);
        send_packet(p);
        interned = open_interned(p);
    }
}

void heap_packets_dump(struct heap_packets *p, struct heap_peer *peer, enum heap_dump why)
{
    struct heap_book *b = &peer->profile.book;
    int64_t now = clock_now_ns(CLOCK_MONOTONIC_COARSE);
    bool first = true;
    size_t at = 0;
    do {
        size_t end = end_of_packet(b, at);
        tell_stacks(p, b, at, end);
        struct pb_writer *w = open_packet(p, STATE_NEEDED);
        size_t packet = pb_begin(w, TRACE_PACKET_PROFILE_PACKET), dump = pb_begin(w, PROFILE_PACKET_PROCESS_DUMPS);
        put_head(w, p, peer, now);
        if (first)
            put_flags(w, peer, why);
        for (; at < end; at++)
            if (!b->sites.p[at].told)
                put_site(w, b, &b->sites.p[at], p->config->at_max);
        pb_end(w, dump);
        if (at < b->sites.n)
            pb_put_varint(w, PROFILE_PACKET_CONTINUED, 1);
        pb_put_varint(w, PROFILE_PACKET_INDEX, p->index++);
        pb_end(w, packet);
        send_packet(p);
        first = false;
    } while (at < b->sites.n);
}

void heap_packets_refused(struct heap_packets *p, int32_t pid, uint32_t why)
{
    struct pb_writer *w = open_packet(p, STATE_NEEDED);
    size_t packet = pb_begin(w, TRACE_PACKET_PROFILE_PACKET), dump = pb_begin(w, PROFILE_PACKET_PROCESS_DUMPS);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_PID, (uint32_t)pid);
    pb_put_str(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_HEAP_NAME, HEAP_NAME);
    pb_put_varint(w, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_TIMESTAMP, (uint64_t)clock_now_ns(CLOCK_MONOTONIC_COARSE));
    pb_put_varint(w, why, 1); /* true; HIT_TIMEOUT */
    pb_end(w, dump);
    pb_put_varint(w, PROFILE_PACKET_INDEX, p->index++);
    pb_end(w, packet);
    send_packet(p);
}
