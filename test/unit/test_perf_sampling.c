/* Tests the sampler of linux.perf: records of rings, and what becomes of each sample. */
#include "ck_slice.h"
#include "perf_records.h"
#include "probes_fixture.h"

#include "capture/perf/perf_sample.h"
#include "wire/fields.h"

enum { NOBODY = 0x3fffff00 }; /* no process has this number: pid_max is 2^22 */

/* ---- records ---- */

static struct slice made_sample(struct made_record *m, int32_t pid, uint16_t misc, const uint64_t *chain, size_t n)
{
    begin(m, RECORD_SAMPLE, misc);
    put_u32(m, (uint32_t)pid);
    put_u32(m, (uint32_t)pid);
    put_u64(m, 1000);
    put_u64(m, 42); /* the count */
    put_u64(m, n);
    put(m, chain, n * 8);
    return made(m);
}

static struct slice made_map(struct made_record *m, int32_t pid, uint64_t start, uint64_t len, const char *path)
{
    char name[64] = "";
    snprintf(name, sizeof name, "%s", path);
    begin(m, RECORD_MMAP2, MISC_USER);
    put_u32(m, (uint32_t)pid);
    put_u32(m, (uint32_t)pid);
    put_u64(m, start);
    put_u64(m, len);
    put_u64(m, 0x1000);
    put_u64(m, 0); /* device */
    put_u64(m, 77);
    put_u64(m, 0);
    put_u64(m, 5); /* protection and flags */
    put(m, name, sizeof name);
    return made(m);
}

START_TEST(a_ring_is_read_round_its_end)
{
    enum { SIZE = 4096 };
    static uint8_t data[SIZE], scratch[PERF_RECORD_MAX_BYTES];
    struct perf_ring ring = {data, SIZE};
    struct made_record m;
    uint64_t chain[] = {CONTEXT_USER, 0x1234}, tail = SIZE - 24, head = tail;
    struct slice r = made_sample(&m, 7, MISC_USER, chain, 2), got;
    bool broken;
    for (int k = 0; k < 2; k++, head += r.len)
        for (size_t i = 0; i < r.len; i++)
            data[(head + i) % SIZE] = r.p[i];
    for (int k = 0; k < 2; k++) {
        struct perf_record x;
        ck_assert(perf_ring_next(&ring, &tail, head, scratch, &got, &broken));
        perf_record_read(&x, got, &(struct perf_layout){.callchain = true});
        ck_assert_int_eq(x.kind, PERF_KIND_SAMPLE);
        ck_assert_int_eq(x.pid, 7);
        ck_assert_uint_eq(x.time, 1000);
        ck_assert_uint_eq(perf_record_count(&x, 0), 42);
        ck_assert_uint_eq(x.n_chain, 2);
        ck_assert_uint_eq(perf_record_u64(x.chain, 1), 0x1234);
    }
    ck_assert(!perf_ring_next(&ring, &tail, head, scratch, &got, &broken));
    ck_assert(!broken);
    memset(data + head % SIZE, 0, 8); /* a record of no bytes */
    ck_assert(!perf_ring_next(&ring, &tail, head + 8, scratch, &got, &broken));
    ck_assert(broken);
    ck_assert_uint_eq(tail, head + 8);
}
END_TEST

START_TEST(records_that_are_cut_are_broken)
{
    struct made_record m;
    uint64_t chain[] = {CONTEXT_KERNEL, 1, CONTEXT_USER, 2};
    struct slice r = made_sample(&m, 7, MISC_USER, chain, 4);
    for (size_t n = 0; n < r.len; n++) {
        struct perf_record x;
        perf_record_read(&x, slice_of(r.p, n), &(struct perf_layout){.callchain = true});
        ck_assert_int_eq(x.kind, PERF_KIND_BROKEN);
    }
    r = made_map(&m, 7, UINT64_MAX - 5, 4096, "/x");
    struct perf_record x;
    perf_record_read(&x, r, &(struct perf_layout){0});
    ck_assert_int_eq(x.kind, PERF_KIND_BROKEN); /* it would end behind the last address */
}
END_TEST

/* ---- samples ---- */

static uint64_t last_reason(const struct bench *b)
{
    return message_u64(last_sample(b), PERF_SAMPLE_SAMPLE_SKIPPED_REASON);
}

static void take_user(struct bench *b, int32_t pid, uint64_t pc, uint64_t now_ms)
{
    uint64_t chain[] = {CONTEXT_USER, pc};
    perf_sampler_take(&b->s, 3, made_sample(&b->m, pid, MISC_USER, chain, 2), now_ms);
}

START_TEST(a_sequence_begins_with_its_defaults)
{
    struct bench *b = bench_new();
    ck_assert_uint_eq(b->sink.ends.n, 2);
    struct slice first = memory_sink_packet(&b->sink, 0);
    ck_assert_uint_eq(message_u64(first, TRACE_PACKET_SEQUENCE_FLAGS), 1);
    ck_assert_uint_eq(message_u64(first, TRACE_PACKET_TIMESTAMP_CLOCK_ID), BUILTIN_CLOCK_BOOTTIME);
    struct slice defaults = message_bytes(first, TRACE_PACKET_TRACE_PACKET_DEFAULTS);
    ck_assert_uint_eq(message_u64(defaults, TRACE_PACKET_DEFAULTS_TIMESTAMP_CLOCK_ID), BUILTIN_CLOCK_MONOTONIC_RAW);
    struct slice perf = message_bytes(defaults, TRACE_PACKET_DEFAULTS_PERF_SAMPLE_DEFAULTS);
    struct slice timebase = message_bytes(perf, PERF_SAMPLE_DEFAULTS_TIMEBASE);
    ck_assert_uint_eq(message_u64(timebase, PERF_EVENTS_TIMEBASE_FREQUENCY), 99);
    ck_assert_uint_eq(message_u64(timebase, PERF_EVENTS_TIMEBASE_COUNTER), PERF_EVENTS_COUNTER_SW_CPU_CLOCK);
    ck_assert_uint_eq(message_u64(memory_sink_packet(&b->sink, 1), TRACE_PACKET_SEQUENCE_FLAGS), 2);
    bench_free(b);
}
END_TEST

START_TEST(a_stack_of_this_process_has_its_file)
{
    struct bench *b = bench_new();
    uint64_t pc = (uint64_t)(uintptr_t)take_user;
    take_user(b, getpid(), pc, 1000);
    struct slice packet = memory_sink_packet(&b->sink, b->sink.ends.n - 1), sample = last_sample(b);
    struct slice interned = message_bytes(packet, TRACE_PACKET_INTERNED_DATA);
    struct slice mapping = message_bytes(interned, INTERNED_DATA_MAPPINGS);
    struct slice frame = message_bytes(interned, INTERNED_DATA_FRAMES);
    ck_assert_uint_le(message_u64(mapping, MAPPING_START), pc);
    ck_assert_uint_gt(message_u64(mapping, MAPPING_END), pc);
    uint64_t rel = pc - message_u64(mapping, MAPPING_START) + message_u64(mapping, MAPPING_EXACT_OFFSET) +
                   message_u64(mapping, MAPPING_LOAD_BIAS);
    uint64_t step = rel - message_u64(frame, FRAME_REL_PC);
    ck_assert(step == 1 || step == 4); /* a step back from the return address */
    ck_assert_uint_ge(message_bytes(message_bytes(interned, INTERNED_DATA_BUILD_IDS), INTERNED_STRING_STR).len, 8);
    ck_assert_uint_eq(message_u64(sample, PERF_SAMPLE_CPU), 3);
    ck_assert_uint_eq(message_u64(sample, PERF_SAMPLE_PID), (uint64_t)getpid());
    ck_assert_uint_eq(message_u64(sample, PERF_SAMPLE_CPU_MODE), PROFILING_CPU_MODE_USER);
    ck_assert_uint_eq(message_u64(sample, PERF_SAMPLE_TIMEBASE_COUNT), 42);
    uint64_t stack = message_u64(sample, PERF_SAMPLE_CALLSTACK_IID);
    ck_assert_uint_ne(stack, 0);
    take_user(b, getpid(), pc, 1001); /* again: nothing is new */
    packet = memory_sink_packet(&b->sink, b->sink.ends.n - 1);
    ck_assert(!message_has(packet, TRACE_PACKET_INTERNED_DATA));
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_CALLSTACK_IID), stack);
    perf_sampler_begin(&b->s); /* all anew, and under another number */
    take_user(b, getpid(), pc, 1002);
    packet = memory_sink_packet(&b->sink, b->sink.ends.n - 1);
    ck_assert(message_has(message_bytes(packet, TRACE_PACKET_INTERNED_DATA), INTERNED_DATA_MAPPINGS));
    ck_assert_uint_gt(message_u64(last_sample(b), PERF_SAMPLE_CALLSTACK_IID), stack);
    bench_free(b);
}
END_TEST

START_TEST(kernel_frames_have_names)
{
    struct bench *b = bench_new();
    struct error err = {0};
    const char text[] = "ffffffff81000000 T alias_one\nffffffff81000000 t alias_two.cfi\nffffffff81000000 W weak\n"
                        "ffffffff81000100 t plain\t[module]\n0000000000000000 t hidden\n";
    ck_assert_int_eq(kernel_symbols_parse(&b->shared.symbols, slice_str(text), &err), 0);
    uint64_t chain[] = {CONTEXT_KERNEL, 0xffffffff81000110, 0xffffffff81000010, 0xffffffff91000000};
    perf_sampler_take(&b->s, 0, made_sample(&b->m, 2, MISC_KERNEL, chain, 4), 1000);
    struct slice interned = message_bytes(memory_sink_packet(&b->sink, b->sink.ends.n - 1), TRACE_PACKET_INTERNED_DATA);
    struct pb_cursor c = pb_cursor(interned);
    struct pb_field f;
    char names[100] = "";
    while (pb_next(&c, &f))
        if (f.id == INTERNED_DATA_FUNCTION_NAMES) {
            struct slice name = message_bytes(pb_bytes(&f), INTERNED_STRING_STR);
            snprintf(names + strlen(names), sizeof names - strlen(names), "%.*s ", (int)name.len, (const char *)name.p);
        }
    ck_assert_str_eq(names, "plain alias_one_alias_two ");
    ck_assert_uint_eq(last_reason(b), 0);
    bench_free(b);
}
END_TEST

START_TEST(samples_out_of_scope_keep_their_counts)
{
    struct bench *b = bench_new();
    vec_push(&b->config.scope.exclude_pids, getpid());
    take_user(b, getpid(), 1, 1000);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_NOT_IN_SCOPE);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_TIMEBASE_COUNT), 42);
    ck_assert(!message_has(last_sample(b), PERF_SAMPLE_CALLSTACK_IID));
    vec_free(&b->config.scope.exclude_pids);
    bench_free(b);
}
END_TEST

START_TEST(samples_of_a_process_that_is_gone_are_told)
{
    struct bench *b = bench_new();
    size_t before = b->sink.ends.n;
    take_user(b, NOBODY, 1, 1000);
    perf_sampler_retry(&b->s, 1050, false);
    ck_assert_uint_eq(b->sink.ends.n, before); /* it may still come */
    perf_sampler_retry(&b->s, 1100, false);
    ck_assert_uint_eq(b->sink.ends.n, before + 1);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_STAGE);
    take_user(b, NOBODY, 1, 1200);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_READ_STAGE);
    take_user(b, NOBODY + 1, 1, 1300);
    perf_sampler_retry(&b->s, 1300, true); /* the session ends */
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_STAGE);
    bench_free(b);
}
END_TEST

/* Samples are whole up to the reading that the first one that waits came with. */
START_TEST(waiting_samples_hold_progress_back)
{
    struct bench *b = bench_new();
    b->s.read_until = 100;
    ck_assert_uint_eq(perf_sampler_whole_until(&b->s), 100);
    take_user(b, NOBODY, 1, 1000);
    b->s.read_until = 200;
    take_user(b, NOBODY, 1, 1001);
    b->s.read_until = 300;
    ck_assert_uint_eq(perf_sampler_whole_until(&b->s), 100);
    perf_sampler_retry(&b->s, 1100, false); /* nobody waits any longer */
    ck_assert_uint_eq(perf_sampler_whole_until(&b->s), 300);
    bench_free(b);
}
END_TEST

START_TEST(a_full_queue_is_told)
{
    struct bench *b = bench_new();
    size_t before = b->sink.ends.n;
    for (int i = 0; i < PERF_QUEUE_MAX; i++)
        take_user(b, NOBODY, 1, 1000);
    ck_assert_uint_eq(b->sink.ends.n, before);
    take_user(b, NOBODY, 1, 1000);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_ENQUEUE);
    bench_free(b);
}
END_TEST

/* A copy of registers and stack: `frames` of them lie in it, each 32 bytes behind the one before. */
static struct slice made_stack_sample(struct bench *b, int32_t pid, uint64_t pc, unsigned frames)
{
    enum { BYTES = 4096, SP = 0x7000 };
    uint64_t regs = (uint64_t)__builtin_popcountll(perf_arch_regs.mask);
    uint64_t mask = perf_arch_regs.mask;
    begin(&b->m, RECORD_SAMPLE, MISC_USER);
    put_u32(&b->m, (uint32_t)pid);
    put_u32(&b->m, (uint32_t)pid);
    put_u64(&b->m, 1000);
    put_u64(&b->m, 42);
    put_u64(&b->m, 2); /* 64 bits */
    for (unsigned i = 0; regs && i < 64; i++) {
        if (mask >> i & 1)
            put_u64(&b->m, i == perf_arch_regs.fp   ? SP + 32
                           : i == perf_arch_regs.sp ? SP
                           : i == perf_arch_regs.pc ? pc
                                                    : 0);
    }
    put_u64(&b->m, BYTES);
    for (unsigned i = 0; i < BYTES / 8; i++) {
        unsigned frame = i / 4;
        bool linked = frame >= 1 && frame <= frames;
        put_u64(&b->m, i % 4 == 0 && linked && frame < frames ? SP + 32 * (frame + 1)
                       : i % 4 == 1 && linked                 ? pc + frame
                                                              : 0);
    }
    put_u64(&b->m, BYTES);
    return made(&b->m);
}

START_TEST(frame_pointers_lead_through_a_copied_stack)
{
    struct bench *b = stack_bench(PERF_USER_FRAME_POINTER);
    uint64_t pc = (uint64_t)(uintptr_t)take_user;
    perf_sampler_take(&b->s, 0, made_stack_sample(b, getpid(), pc, 5), 1000);
    ck_assert_uint_eq(count_frames(b), 5);
    ck_assert(!message_has(last_sample(b), PERF_SAMPLE_UNWIND_ERROR));
    struct slice narrow = made_stack_sample(b, getpid(), pc, 5);
    b->m.bytes[32] = 1; /* a program of 32 bits */
    perf_sampler_take(&b->s, 0, narrow, 1000);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_UNWIND_ERROR), PROFILING_STACK_UNWIND_ERROR_UNSUPPORTED);
    bench_free(b);
}
END_TEST

START_TEST(stacks_beyond_the_footprint_are_told)
{
    struct bench *b = stack_bench(PERF_USER_FRAME_POINTER);
    b->config.max_queued_kb = 4;
    perf_sampler_take(&b->s, 0, made_stack_sample(b, getpid(), 1, 2), 1000);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_ENQUEUE);
    b->config.max_queued_kb = 5;
    perf_sampler_take(&b->s, 0, made_stack_sample(b, getpid(), 1, 2), 1000);
    ck_assert_uint_eq(last_reason(b), 0);
    perf_sampler_take(&b->s, 0, made_stack_sample(b, NOBODY, 1, 2), 1000); /* waits, and fills the queue */
    perf_sampler_take(&b->s, 0, made_stack_sample(b, NOBODY, 1, 2), 1000);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_ENQUEUE);
    bench_free(b);
}
END_TEST

START_TEST(records_of_maps_name_what_proc_cannot)
{
    struct bench *b = bench_new();
    perf_sampler_look_ahead(&b->s, made_map(&b->m, NOBODY, 0x400000, 0x10000, "/gone/program"), false);
    take_user(b, NOBODY, 0x400123, 1000);
    struct slice interned = message_bytes(memory_sink_packet(&b->sink, b->sink.ends.n - 1), TRACE_PACKET_INTERNED_DATA);
    struct slice frame = message_bytes(interned, INTERNED_DATA_FRAMES);
    uint64_t step = 0x1123 - message_u64(frame, FRAME_REL_PC);
    ck_assert(step == 1 || step == 4);
    ck_assert_uint_eq(last_reason(b), 0);
    begin(&b->m, RECORD_FORK, 0); /* a child has what its parent has */
    put_u32(&b->m, NOBODY + 9);
    put_u32(&b->m, NOBODY);
    put_u32(&b->m, NOBODY + 9);
    put_u32(&b->m, NOBODY);
    put_u64(&b->m, 1000);
    perf_sampler_look_ahead(&b->s, made(&b->m), true);
    take_user(b, NOBODY + 9, 0x400123, 1000);
    ck_assert_uint_eq(last_reason(b), 0);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_PID), NOBODY + 9);
    bench_free(b);
}
END_TEST

static void take_name(struct bench *b, int32_t pid, const char *name)
{
    char text[16] = {0};
    strncpy(text, name, sizeof text - 1);
    begin(&b->m, RECORD_COMM, 0);
    put_u32(&b->m, (uint32_t)pid);
    put_u32(&b->m, (uint32_t)pid);
    put(&b->m, text, sizeof text);
    perf_sampler_look_ahead(&b->s, made(&b->m), false);
}

/* The name that the packet before the last one tells of a thread; empty: it tells none. */
static struct slice told_name(const struct bench *b, int32_t tid)
{
    struct slice tree = message_bytes(memory_sink_packet(&b->sink, b->sink.ends.n - 2), TRACE_PACKET_PROCESS_TREE);
    struct slice thread = message_bytes(tree, PROCESS_TREE_THREADS);
    if (thread.len)
        ck_assert_uint_eq(message_u64(thread, PROCESS_TREE_THREAD_TID), (uint64_t)tid);
    return message_bytes(thread, PROCESS_TREE_THREAD_NAME);
}

/* A program that starts and ends within the recording is named by the records alone, each name once. */
START_TEST(records_name_threads_that_have_ended)
{
    struct bench *b = bench_new();
    perf_sampler_look_ahead(&b->s, made_map(&b->m, NOBODY, 0x400000, 0x10000, "/gone/program"), false);
    take_name(b, NOBODY, "program");
    take_user(b, NOBODY, 0x400123, 1000);
    ck_assert_slice_eq(told_name(b, NOBODY), "program");
    take_user(b, NOBODY, 0x400123, 1001);
    ck_assert_slice_eq(told_name(b, NOBODY), "");
    begin(&b->m, RECORD_FORK, 0); /* a child is called what its parent is called */
    put_u32(&b->m, NOBODY + 9);
    put_u32(&b->m, NOBODY);
    put_u32(&b->m, NOBODY + 9);
    put_u32(&b->m, NOBODY);
    put_u64(&b->m, 1000);
    perf_sampler_look_ahead(&b->s, made(&b->m), true);
    take_user(b, NOBODY + 9, 0x400123, 1002);
    ck_assert_slice_eq(told_name(b, NOBODY + 9), "program");
    take_name(b, NOBODY + 9, "another");
    take_user(b, NOBODY + 9, 0x400123, 1003);
    ck_assert_slice_eq(told_name(b, NOBODY + 9), "another");
    take_user(b, NOBODY, 0x400123, 1004);
    ck_assert_slice_eq(told_name(b, NOBODY), "");
    for (int32_t i = 0; i < 70000; i++) /* more than are kept */
        take_name(b, 100 + i, "many");
    take_name(b, NOBODY, "last");
    take_user(b, NOBODY, 0x400123, 1005);
    ck_assert_slice_eq(told_name(b, NOBODY), "last");
    ck_assert_uint_le(b->s.names.list.n, 65536);
    begin(&b->m, RECORD_COMM, 0); /* no NUL: no name */
    put_u32(&b->m, NOBODY);
    put_u32(&b->m, NOBODY);
    put_u64(&b->m, 0x4141414141414141);
    perf_sampler_look_ahead(&b->s, made(&b->m), false);
    take_user(b, NOBODY, 0x400123, 1006);
    ck_assert_slice_eq(told_name(b, NOBODY), "");
    bench_free(b);
}
END_TEST

/* The path of the mapping of the last sample's frame. */
static bool last_path_is(const struct bench *b, const char *name)
{
    struct slice interned = message_bytes(memory_sink_packet(&b->sink, b->sink.ends.n - 1), TRACE_PACKET_INTERNED_DATA);
    struct pb_cursor c = pb_cursor(interned);
    struct pb_field f;
    bool found = false;
    while (pb_next(&c, &f))
        if (f.id == INTERNED_DATA_MAPPING_PATHS)
            found |= slice_eq_str(message_bytes(pb_bytes(&f), INTERNED_STRING_STR), name);
    return found;
}

/* What is mapped now counts: over a map, over its middle, and over many. */
START_TEST(maps_that_change_are_followed)
{
    struct bench *b = bench_new();
    static const struct {
        uint64_t start, bytes;
        const char *path;
    } maps[] = {{0x400000, 0x30000, "/gone/whole"},
                {0x410000, 0x10000, "/gone/middle"},
                {0x400000, 0x30000, "/gone/again"},
                {0x3f0000, 0x50000, "/gone/larger"},
                {0x43f000, UINT64_MAX - 0x1000, "/gone/endless"}, /* its end is beyond the last address */
                {0x410000, 0, "/gone/empty"}};
    static const char *const names[] = {"whole", "middle", "again", "larger", NULL, NULL};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        perf_sampler_look_ahead(&b->s, made_map(&b->m, NOBODY, maps[i].start, maps[i].bytes, maps[i].path), false);
        take_user(b, NOBODY, 0x410123, 1000 + i);
        ck_assert_uint_eq(last_reason(b), 0);
        ck_assert(message_has(last_sample(b), PERF_SAMPLE_CALLSTACK_IID));
        if (names[i])
            ck_assert_msg(last_path_is(b, names[i]), "%s", maps[i].path);
        else /* nothing has changed */
            ck_assert(!last_path_is(b, "endless") && !last_path_is(b, "empty"));
    }
    /* more than anybody has: they are bounded, and the last is known */
    for (uint64_t i = 0; i < 40000; i++)
        perf_sampler_look_ahead(&b->s, made_map(&b->m, NOBODY + 1, 0x10000000 + i * 0x2000, 0x1000, "/gone/many"),
                                false);
    take_user(b, NOBODY + 1, 0x10000000 + 39999 * UINT64_C(0x2000) + 0x123, 1000);
    ck_assert_uint_eq(last_reason(b), 0);
    ck_assert(last_path_is(b, "many"));
    ck_assert_uint_le(perf_process_get(&b->s.processes, NOBODY + 1)->maps.n, 16384);
    bench_free(b);
}
END_TEST

START_TEST(a_thread_that_ends_has_a_stack_of_the_kernel)
{
    struct bench *b = bench_new();
    uint64_t chain[] = {CONTEXT_KERNEL, 0xffffffff81000110};
    take_user(b, getpid(), (uint64_t)(uintptr_t)take_user, 1000);
    perf_sampler_take(&b->s, 0, made_sample(&b->m, getpid(), MISC_KERNEL, chain, 2), 1000);
    ck_assert_uint_eq(last_reason(b), 0);
    ck_assert_uint_eq(count_frames(b), 1);
    bench_free(b);
    b = stack_bench(PERF_USER_FRAME_POINTER); /* without registers there is nothing to unwind */
    perf_sampler_take(&b->s, 0, made_stack_sample(b, getpid(), 1, 2), 1000);
    struct slice r = made_stack_sample(b, getpid(), 1, 2);
    size_t regs = (size_t)__builtin_popcountll(perf_arch_regs.mask) * 8, abi = 8 + 8 + 8 + 8;
    memset(b->m.bytes + abi, 0, 8);
    memmove(b->m.bytes + abi + 8, b->m.bytes + abi + 8 + regs, r.len - abi - 8 - regs);
    b->m.n -= regs;
    perf_sampler_take(&b->s, 0, made(&b->m), 1000);
    ck_assert_uint_eq(last_reason(b), PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_STAGE);
    bench_free(b);
}
END_TEST

static uint64_t packets_lost;
static uint64_t count_lost(void *ctx)
{
    (void)ctx;
    return packets_lost;
}

START_TEST(after_lost_packets_the_sequence_begins_again)
{
    struct bench *b = bench_new();
    b->s.packets.sink.lost = count_lost;
    packets_lost = 5;
    perf_sampler_begin(&b->s);
    ck_assert(!perf_packets_have_gap(&b->s.packets));
    packets_lost = 6; /* perhaps the one that had the names */
    ck_assert(perf_packets_have_gap(&b->s.packets));
    perf_sampler_begin(&b->s);
    ck_assert(!perf_packets_have_gap(&b->s.packets));
    bench_free(b);
}
END_TEST

START_TEST(losses_of_the_kernel_are_told)
{
    struct bench *b = bench_new();
    begin(&b->m, RECORD_LOST, 0);
    put_u64(&b->m, 1);
    put_u64(&b->m, 55);
    perf_sampler_take(&b->s, 3, made(&b->m), 1000);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_KERNEL_RECORDS_LOST), 55);
    ck_assert_uint_eq(message_u64(last_sample(b), PERF_SAMPLE_CPU), 3);
    ck_assert(!message_has(last_sample(b), PERF_SAMPLE_PID));
    bench_free(b);
}
END_TEST

Suite *perf_sampling_suite(void);
Suite *perf_sampling_suite(void)
{
    Suite *s = suite_create("perf_sampling");
    TCase *t = tcase_create("perf_sampling");
    tcase_add_test(t, a_ring_is_read_round_its_end);
    tcase_add_test(t, records_that_are_cut_are_broken);
    tcase_add_test(t, a_sequence_begins_with_its_defaults);
    tcase_add_test(t, a_stack_of_this_process_has_its_file);
    tcase_add_test(t, kernel_frames_have_names);
    tcase_add_test(t, samples_out_of_scope_keep_their_counts);
    tcase_add_test(t, samples_of_a_process_that_is_gone_are_told);
    tcase_add_test(t, waiting_samples_hold_progress_back);
    tcase_add_test(t, a_full_queue_is_told);
    tcase_add_test(t, frame_pointers_lead_through_a_copied_stack);
    tcase_add_test(t, stacks_beyond_the_footprint_are_told);
    tcase_add_test(t, records_of_maps_name_what_proc_cannot);
    tcase_add_test(t, records_name_threads_that_have_ended);
    tcase_add_test(t, maps_that_change_are_followed);
    tcase_add_test(t, a_thread_that_ends_has_a_stack_of_the_kernel);
    tcase_add_test(t, after_lost_packets_the_sequence_begins_again);
    tcase_add_test(t, losses_of_the_kernel_are_told);
    suite_add_tcase(s, t);
    return s;
}
