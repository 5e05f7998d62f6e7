/* Imports ProfilePacket: dumps of native heaps, in one packet or continued over several.
 *
 * A dump gives totals since the start for each call stack; the table has what changed since the dump before. Stacks may
 * be explained by a later packet of the same dump, so allocations wait for its last one. */
#include "importer/profiling/profiling_internal.h"

#include "base/hash.h"
#include "importer/clock/clock_graph.h"
#include "wire/fields.h"

enum { CLIENT_ERROR_HIT_TIMEOUT = 1 /* of ProcessHeapSamples.ClientError: it waited too long for room */ };

struct totals {
    int64_t alloc_size, alloc_count, free_size, free_count;
};

static bool is_sane(const struct totals *t)
{
    return t->alloc_size >= 0 && t->alloc_count >= 0 && t->free_size >= 0 && t->free_count >= 0;
}

struct pending {
    struct seq_generation *g;
    int64_t ts;
    int64_t pid;
    strid heap;
    uint64_t callstack;
    struct totals totals;
};

struct heap_sequence {
    uint64_t last_index;
    bool has_index;
    struct own_messages own;
    VEC(struct pending)
    pending;
};

struct heap_dumps {
    struct u64map by_sequence; /* struct sequence * -> one of `sequences` + 1 */
    VEC(struct heap_sequence)
    sequences;
    struct u64map profiles; /* hash of process, end, heap: those that have a row of heap_profile */
    struct u64map total_of; /* hash of sequence, process, heap, stack -> one of `totals` + 1 */
    VEC(struct totals)
    totals;
};

static struct heap_sequence *sequence_of(struct profiling_machine *s, const struct sequence *seq)
{
    if (!s->dumps)
        s->dumps = mem_zalloc(sizeof *s->dumps);
    uint64_t *at = s->dumps ? u64map_put(&s->dumps->by_sequence, (uint64_t)(uintptr_t)seq, NULL) : NULL;
    if (at && !*at && vec_add(&s->dumps->sequences))
        *at = s->dumps->sequences.n;
    if (!at || !*at) {
        s->m->im->failed = true;
        return NULL;
    }
    return &s->dumps->sequences.p[*at - 1];
}

static void check_index(struct packet *p, struct heap_sequence *h, uint64_t index)
{
    if (index != (h->has_index ? h->last_index + 1 : 0))
        stats_add(&p->m->st->stats, p->m->id, STAT_heapprofd_missing_packet, 1);
    h->last_index = index;
    h->has_index = true;
}

static void keep_message(struct packet *p, struct heap_sequence *h, const struct pb_field *f)
{
    struct pb_field iid;
    struct slice kept = profiling_keep(p->m->profiling, pb_bytes(f));
    if (!pb_find(kept, INTERNED_STRING_IID, &iid))
        return;
    uint64_t *at = u64map_put(&h->own.index, (uint64_t)f->id << 56 ^ pb_u64(&iid), NULL);
    if (!at || (!*at && !vec_push(&h->own.messages, kept)))
        p->m->im->failed = true;
    else if (!*at) /* the first one stays */
        *at = h->own.messages.n;
}

/* Of the fields of ProcessHeapSamples: those that a stat repeats, under the pid. */
static const struct {
    uint8_t field;
    enum stat_key stat;
} dump_stats[] = {
    {4, STAT_heapprofd_rejected_concurrent}, {6, STAT_heapprofd_client_disconnected},
    {7, STAT_heapprofd_buffer_overran},      {8, STAT_heapprofd_buffer_corrupted},
    {10, STAT_heapprofd_hit_guardrail},
};
/* The same of ProcessHeapSamples.stats. */
static const struct {
    uint8_t field;
    enum stat_key stat;
} process_stats[] = {
    {2, STAT_heapprofd_unwind_samples},
    {5, STAT_heapprofd_unwind_time_us},
    {6, STAT_heapprofd_client_spinlock_blocked},
};

struct dump {
    int64_t pid, ts, start_ts; /* start_ts COL_NULL: not told */
    uint64_t interval, wanted_interval;
    strid heap;
    struct slice stats;
    uint64_t flags[16]; /* scalars by field number */
};

static void count_dump(struct packet *p, const struct dump *d)
{
    struct stats *stats = &p->m->st->stats;
    int32_t pid = (int32_t)d->pid;
    for (size_t i = 0; i < sizeof dump_stats / sizeof *dump_stats; i++)
        if (d->flags[dump_stats[i].field])
            stats_add_idx(stats, p->m->id, dump_stats[i].stat, pid, (int64_t)d->flags[dump_stats[i].field]);
    uint64_t error = d->flags[PROFILE_PACKET_PROCESS_HEAP_SAMPLES_CLIENT_ERROR];
    if (error)
        stats_set_idx(stats, p->m->id, STAT_heapprofd_client_error, pid, (int64_t)error);
    if (error == CLIENT_ERROR_HIT_TIMEOUT && !d->flags[PROFILE_PACKET_PROCESS_HEAP_SAMPLES_BUFFER_OVERRAN])
        stats_add_idx(stats, p->m->id, STAT_heapprofd_buffer_overran, pid, 1);
    if (d->wanted_interval)
        stats_set_idx(stats, p->m->id, STAT_heapprofd_sampling_interval_adjusted, pid,
                      (int64_t)(d->interval - d->wanted_interval));
    stats_set_idx(stats, p->m->id, STAT_heapprofd_last_profile_timestamp, pid, p->ts);
    struct pb_field lost;
    if (pb_find(d->stats, PROFILE_PACKET_PROCESS_STATS_SAMPLES_LOST, &lost)) /* ours */
        stats_add_idx(stats, p->m->id, STAT_heapprofd_samples_lost, pid, pb_i64(&lost));
    for (size_t i = 0; i < sizeof process_stats / sizeof *process_stats; i++) {
        struct pb_field f;
        bool told = pb_find(d->stats, process_stats[i].field, &f);
        stats_add_idx(stats, p->m->id, process_stats[i].stat, pid, told ? pb_i64(&f) : 0); /* a row for each process */
    }
}

static void add_heap_sample(struct packet *p, struct heap_sequence *h, const struct dump *d, struct slice bytes)
{
    uint64_t v[16] = {0};
    bool at_max = false;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id < 16)
            v[f.id] = pb_u64(&f);
        at_max |= f.id == PROFILE_PACKET_HEAP_SAMPLE_SELF_MAX;
    }
    struct pending *a = vec_add(&h->pending);
    if (!a) {
        p->m->im->failed = true;
        return;
    }
    *a = (struct pending){.g = p->gen, .ts = d->ts, .pid = d->pid, .heap = d->heap, .callstack = v[1]};
    if (at_max) /* what was held when the heap was largest; recorders that did not tell the interval did not count */
        a->totals = (struct totals){.alloc_size = (int64_t)v[8], .alloc_count = d->wanted_interval ? (int64_t)v[9] : 0};
    else
        a->totals = (struct totals){(int64_t)v[2], (int64_t)v[5], (int64_t)v[3], (int64_t)v[6]};
}

static bool trace_time(struct packet *p, int64_t coarse, int64_t *ts)
{
    struct clock_id clock = packet_clock(p, CLOCK_ID_MONOTONIC_COARSE);
    if (clock_graph_to_trace_time(p->m->im->clocks, clock, coarse, ts) == 0)
        return true;
    clock_graph_record_failure(p->m->im->clocks, clock, coarse, p->byte_offset);
    return false;
}

/* A row of heap_profile: one for each process, end and heap, though a dump may come in several packets. */
static void note_profile(struct packet *p, const struct dump *d)
{
    struct machine_ctx *m = p->m;
    struct heap_profile_row row = {
        .ts = d->ts, .ts_end = d->ts, .upid = process_tracker_process(m->processes, d->pid), .heap_name = d->heap};
    uint64_t key = hash_combine(hash_keyed(m->profiling->secret, (uint64_t)d->ts, row.upid), d->heap);
    bool added = false;
    if (!u64map_put(&m->profiling->dumps->profiles, key, &added))
        m->im->failed = true;
    if (!added)
        return;
    int64_t start;
    if (d->start_ts != COL_NULL && trace_time(p, d->start_ts, &start) &&
        !__builtin_sub_overflow(d->ts, start, &row.dur))
        row.ts = start;
    heap_profile_insert(m->st, &row);
}

static void add_dump(struct packet *p, struct heap_sequence *h, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    struct dump d = {.start_ts = COL_NULL};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id < 16)
            d.flags[f.id] = pb_u64(&f);
        switch (f.id) {
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_PID:
            d.pid = pb_i64(&f);
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_STATS:
            d.stats = pb_bytes(&f);
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_TIMESTAMP:
            d.ts = pb_i64(&f);
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_HEAP_NAME:
            d.heap = import_slice(m->im, pb_bytes(&f));
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLING_INTERVAL_BYTES:
            d.interval = pb_u64(&f);
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_ORIG_SAMPLING_INTERVAL_BYTES:
            d.wanted_interval = pb_u64(&f);
            break;
        case PROFILE_PACKET_PROCESS_HEAP_SAMPLES_START_TIMESTAMP:
            d.start_ts = pb_i64(&f);
            break;
        }
    }
    if (!trace_time(p, d.ts, &d.ts))
        return;
    count_dump(p, &d);
    note_profile(p, &d);
    if (!d.heap)
        d.heap = import_str(m->im, "unknown"); /* recordings of before there were others do not say */
    for (c = pb_cursor(bytes); pb_next(&c, &f);)
        if (f.id == PROFILE_PACKET_PROCESS_HEAP_SAMPLES_SAMPLES)
            add_heap_sample(p, h, &d, pb_bytes(&f));
}

static void insert_change(struct machine_ctx *m, const struct pending *a, uint32_t upid, uint32_t callsite,
                          int64_t count, int64_t size)
{
    if (count || size)
        heap_profile_allocation_insert(m->st, &(struct heap_profile_allocation_row){.ts = a->ts,
                                                                                    .upid = upid,
                                                                                    .heap_name = a->heap,
                                                                                    .callsite_id = callsite,
                                                                                    .count = count,
                                                                                    .size = size});
}

/* Heaps whose garbage is collected tell nothing true about when memory was freed. */
static bool is_collected(const struct machine_ctx *m, strid heap)
{
    return strcmp(strpool_cstr(&m->st->strings, heap), "com.android.art") == 0;
}

/* Adds what changed since the dump before. */
static void commit(struct profiling_machine *s, const struct sequence *seq, struct own_messages *own,
                   const struct pending *a)
{
    struct machine_ctx *m = s->m;
    uint32_t callsite =
        stack_messages_callsite(m, a->g, process_tracker_find_process(m->processes, a->pid), own, a->callstack);
    if (callsite == CALLSITE_NONE)
        return;
    uint32_t upid = process_tracker_process(m->processes, a->pid);
    /* A number that gets another meaning counts from nothing again: so the number is part of the key. */
    uint64_t key = hash_combine(hash_keyed(m->profiling->secret, (uint64_t)(uintptr_t)seq, upid), a->heap);
    key = hash_combine(hash_combine(key, a->callstack), callsite);
    uint64_t *at = u64map_put(&s->dumps->total_of, key, NULL);
    if (at && !*at && vec_add(&s->dumps->totals))
        *at = s->dumps->totals.n;
    if (!at || !*at) {
        m->im->failed = true;
        return;
    }
    struct totals *before = &s->dumps->totals.p[*at - 1];
    const struct totals *now = &a->totals;
    if (!is_sane(now) || now->alloc_size < before->alloc_size || now->alloc_count < before->alloc_count ||
        now->free_size < before->free_size || now->free_count < before->free_count) {
        stats_add_idx(&m->st->stats, m->id, STAT_heapprofd_malformed_packet, (int32_t)upid, 1);
        return;
    }
    insert_change(m, a, upid, callsite, now->alloc_count - before->alloc_count, now->alloc_size - before->alloc_size);
    if (!is_collected(m, a->heap))
        insert_change(m, a, upid, callsite, before->free_count - now->free_count, before->free_size - now->free_size);
    *before = *now;
}

static void end_dump(struct profiling_machine *s, const struct sequence *seq, struct heap_sequence *h)
{
    for (size_t i = 0; i < h->pending.n; i++)
        commit(s, seq, &h->own, &h->pending.p[i]);
    vec_clear(&h->pending);
    vec_clear(&h->own.messages);
    u64map_clear(&h->own.index);
    u64map_clear(&h->own.rows);
    h->own.later = true;
}

void heap_profile_parse(struct packet *p)
{
    struct heap_sequence *h = sequence_of(p->m->profiling, p->gen->seq);
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t index = 0;
    bool continued = false;
    if (!h)
        return;
    while (pb_next(&c, &f)) {
        if (f.id == PROFILE_PACKET_CONTINUED)
            continued = pb_bool(&f);
        else if (f.id == PROFILE_PACKET_INDEX)
            index = pb_u64(&f);
        else if (f.id <= PROFILE_PACKET_MAPPINGS)
            keep_message(p, h, &f);
    }
    check_index(p, h, index);
    stack_messages_read_own(p->m, p->field, &h->own);
    for (struct pb_cursor dumps = pb_cursor(p->field); pb_next(&dumps, &f);)
        if (f.id == PROFILE_PACKET_PROCESS_DUMPS)
            add_dump(p, h, pb_bytes(&f));
    if (c.bad)
        stats_add(&p->m->st->stats, p->m->id, STAT_stackprofile_parser_error, 1);
    if (!continued)
        end_dump(p->m->profiling, p->gen->seq, h);
}

void heap_profile_finish(struct profiling_machine *s)
{
    for (size_t i = 0; s->dumps && i < s->dumps->sequences.n; i++)
        if (s->dumps->sequences.p[i].pending.n)
            stats_add(&s->m->st->stats, s->m->id, STAT_heapprofd_non_finalized_profile, 1);
}

void heap_profile_close(struct heap_dumps *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->sequences.n; i++) {
        u64map_free(&d->sequences.p[i].own.index);
        u64map_free(&d->sequences.p[i].own.rows);
        vec_free(&d->sequences.p[i].own.messages);
        vec_free(&d->sequences.p[i].pending);
    }
    u64map_free(&d->by_sequence);
    vec_free(&d->sequences);
    u64map_free(&d->total_of);
    u64map_free(&d->profiles);
    vec_free(&d->totals);
    mem_free(d);
}
