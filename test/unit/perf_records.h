/* Records of a ring of perf events, made by a test, and a sampler that they are given to. */
#ifndef MERIDIAN_TEST_PERF_RECORDS_H
#define MERIDIAN_TEST_PERF_RECORDS_H

#include "probes_fixture.h"

#include "capture/perf/perf_sample.h"
#include "wire/fields.h"

/* Types and marks of linux/perf_event.h, whose names clash with those of wire/fields.h. */
enum {
    RECORD_LOST = 2,
    RECORD_COMM = 3,
    RECORD_FORK = 7,
    RECORD_SAMPLE = 9,
    RECORD_MMAP2 = 10,
    MISC_KERNEL = 1,
    MISC_USER = 2
};
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)

struct made_record {
    uint8_t bytes[70000];
    size_t n;
};

static inline void put(struct made_record *m, const void *p, size_t n)
{
    memcpy(m->bytes + m->n, p, n);
    m->n += n;
}
static inline void put_u32(struct made_record *m, uint32_t v)
{
    put(m, &v, 4);
}
static inline void put_u64(struct made_record *m, uint64_t v)
{
    put(m, &v, 8);
}
static inline void begin(struct made_record *m, uint32_t type, uint16_t misc)
{
    m->n = 0;
    put_u32(m, type);
    put(m, &misc, 2);
    put(m, &misc, 2); /* its size follows */
}
static inline struct slice made(struct made_record *m)
{
    uint16_t size = (uint16_t)m->n;
    memcpy(m->bytes + 6, &size, 2);
    return slice_of(m->bytes, m->n);
}

/* ---- a sampler ---- */

struct bench {
    struct perf_config config;
    struct perf_shared shared;
    struct memory_sink sink;
    struct perf_sampler s;
    struct made_record m;
};

static inline struct bench *bench_new(void)
{
    struct bench *b = calloc(1, sizeof *b);
    b->shared.kallsyms = -1;
    b->config = (struct perf_config){.stacks = true,
                                     .kernel_frames = true,
                                     .user_frames = PERF_USER_KERNEL_FRAME_POINTER,
                                     .frequency = 99,
                                     .timeout_ms = 100,
                                     .clock = CLOCK_MONOTONIC_RAW};
    b->config.timebase.counter = PERF_EVENTS_COUNTER_SW_CPU_CLOCK;
    b->s.config = &b->config;
    b->s.shared = &b->shared;
    b->s.layout.callchain = true;
    b->s.packets.config = &b->config;
    b->s.packets.sink = memory_sink(&b->sink);
    b->s.scope.config = &b->config.scope;
    perf_sampler_begin(&b->s);
    return b;
}

static inline void bench_free(struct bench *b)
{
    perf_sampler_free(&b->s);
    ck_assert_uint_eq(b->shared.queued_bytes, 0);
    perf_shared_free(&b->shared);
    memory_sink_free(&b->sink);
    free(b);
}

static inline struct slice last_sample(const struct bench *b)
{
    ck_assert_uint_gt(b->sink.ends.n, 0);
    return memory_sink_field(&b->sink, b->sink.ends.n - 1, TRACE_PACKET_PERF_SAMPLE);
}

static inline struct bench *stack_bench(uint32_t user_frames)
{
    struct bench *b = bench_new();
    b->config.user_frames = user_frames;
    b->config.kernel_frames = false;
    b->s.layout = (struct perf_layout){.stack = true, .regs_mask = perf_arch_regs.mask};
    return b;
}

static inline unsigned count_frames(const struct bench *b)
{
    struct slice interned = message_bytes(memory_sink_packet(&b->sink, b->sink.ends.n - 1), TRACE_PACKET_INTERNED_DATA);
    struct pb_numbers n = pb_numbers(message_bytes(interned, INTERNED_DATA_CALLSTACKS), CALLSTACK_FRAME_IDS);
    unsigned count = 0;
    for (uint64_t v; pb_next_number(&n, &v);)
        count++;
    return count;
}

#endif
