/* Reads HeapprofdConfig. */
#include "capture/heap/heap_config.h"

#include "base/alloc.h"
#include "capture/heap/heap_abi.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

enum {
    DEFAULT_INTERVAL = 4096,
    DEFAULT_RING = 8 << 20,
    DEFAULT_BLOCK_US = 10000000,
    MAX_BLOCK_US = 60000000,
};

/* Numbers that are kept as they are. */
#define NUMBERS(X)                                                                                                     \
    X(HEAPPROFD_CONFIG_SAMPLING_INTERVAL_BYTES, interval)                                                              \
    X(HEAPPROFD_CONFIG_ALL, all)                                                                                       \
    X(HEAPPROFD_CONFIG_NO_STARTUP, no_startup)                                                                         \
    X(HEAPPROFD_CONFIG_NO_RUNNING, no_running)                                                                         \
    X(HEAPPROFD_CONFIG_SHMEM_SIZE_BYTES, ring_bytes)                                                                   \
    X(HEAPPROFD_CONFIG_BLOCK_CLIENT, block)                                                                            \
    X(HEAPPROFD_CONFIG_BLOCK_CLIENT_TIMEOUT_US, block_us)                                                              \
    X(HEAPPROFD_CONFIG_DUMP_AT_MAX, at_max)                                                                            \
    X(HEAPPROFD_CONFIG_ADAPTIVE_SAMPLING_SHMEM_THRESHOLD, raise_above)                                                 \
    X(HEAPPROFD_CONFIG_ADAPTIVE_SAMPLING_MAX_SAMPLING_INTERVAL_BYTES, interval_max)                                    \
    X(HEAPPROFD_CONFIG_MAX_HEAPPROFD_MEMORY_KB, max_memory_kb)                                                         \
    X(HEAPPROFD_CONFIG_MAX_HEAPPROFD_CPU_SECS, max_cpu_s)

/* Which heaps the config names; only one is known here. */
struct heaps {
    unsigned n, place; /* of `heaps`; place: 1 + that of ours, 0: it is not among them */
    bool excluded, all;
};

static void read_number(struct heap_config *c, const struct pb_field *f)
{
    switch (f->id) {
#define X(id, field)                                                                                                   \
    case id:                                                                                                           \
        c->field = (__typeof__(c->field))pb_u64(f);                                                                    \
        break;
        NUMBERS(X)
#undef X
    }
}

static void read_heap(struct heaps *h, const struct pb_field *f)
{
    bool ours = slice_eq(pb_bytes(f), slice_str(HEAP_NAME));
    if (f->id == HEAPPROFD_CONFIG_EXCLUDE_HEAPS)
        h->excluded |= ours;
    if (f->id == HEAPPROFD_CONFIG_ALL_HEAPS)
        h->all = pb_bool(f);
    if (f->id != HEAPPROFD_CONFIG_HEAPS)
        return;
    h->n++;
    if (ours)
        h->place = h->n;
}

static void read_dumps(struct heap_config *c, struct slice message)
{
    struct pb_field f;
    if (pb_find(message, HEAPPROFD_CONFIG_CONTINUOUS_DUMP_CONFIG_DUMP_PHASE_MS, &f))
        c->dump_phase_ms = pb_u32(&f);
    if (pb_find(message, HEAPPROFD_CONFIG_CONTINUOUS_DUMP_CONFIG_DUMP_INTERVAL_MS, &f))
        c->dump_ms = pb_u32(&f);
}

static bool read_fields(struct heap_config *c, struct heaps *h, struct slice message)
{
    struct pb_cursor at = pb_cursor(message);
    struct pb_field f;
    bool room = true;
    while (pb_next(&at, &f)) {
        read_number(c, &f);
        read_heap(h, &f);
        if (f.id == HEAPPROFD_CONFIG_PROCESS_CMDLINE)
            room &= vec_push(&c->scope.target_cmdlines, pb_bytes(&f));
        if (f.id == HEAPPROFD_CONFIG_CONTINUOUS_DUMP_CONFIG)
            read_dumps(c, pb_bytes(&f));
    }
    struct pb_numbers pids = pb_numbers(message, HEAPPROFD_CONFIG_PID);
    for (uint64_t pid; pb_next_number(&pids, &pid);)
        room &= vec_push(&c->scope.target_pids, pid <= INT32_MAX ? (int32_t)pid : -1);
    struct pb_numbers intervals = pb_numbers(message, HEAPPROFD_CONFIG_HEAP_SAMPLING_INTERVALS);
    unsigned place = 0;
    for (uint64_t interval; pb_next_number(&intervals, &interval);)
        if (++place == h->place)
            c->interval = interval;
    return room;
}

static int check(struct heap_config *c, const struct heaps *h, struct error *err)
{
    if (!c->interval || c->interval > INT32_MAX)
        return error_set(err, -MRD_EINVALID, "sampling_interval_bytes: use a number from 1 to %d (4096)", INT32_MAX);
    if (h->excluded || (h->n && !h->place && !h->all))
        return error_set(err, -MRD_EINVALID, "heaps: processes have the heap " HEAP_NAME " here, and no other");
    if (!c->all && !c->scope.target_pids.n && !c->scope.target_cmdlines.n)
        return error_set(err, -MRD_EINVALID, "no process is named: use process_cmdline, pid, or all: true");
    if (c->no_startup && c->no_running)
        return error_set(err, -MRD_EINVALID, "no_startup and no_running leave no process");
    if (c->ring_bytes > HEAP_RING_MAX)
        return error_set(err, -MRD_EINVALID, "shmem_size_bytes: use at most %d", HEAP_RING_MAX);
    if (c->block_us > MAX_BLOCK_US)
        return error_set(err, -MRD_EINVALID, "block_client_timeout_us: use at most %d", MAX_BLOCK_US);
    return 0;
}

int heap_config_parse(struct heap_config *c, struct slice message, struct error *err)
{
    struct heaps h = {0};
    *c = (struct heap_config){.interval = DEFAULT_INTERVAL};
    c->bytes = mem_alloc(message.len ? message.len : 1);
    if (!c->bytes)
        return error_set(err, -MRD_ENOMEM, "out of memory for android.heapprofd");
    if (message.len)
        memcpy(c->bytes, message.p, message.len);
    if (!read_fields(c, &h, slice_of(c->bytes, message.len)))
        return error_set(err, -MRD_ENOMEM, "out of memory for android.heapprofd");
    int rc = check(c, &h, err);
    if (rc)
        return rc;
    uint64_t ring = HEAP_RING_MIN;
    while (ring < (c->ring_bytes ? c->ring_bytes : DEFAULT_RING))
        ring *= 2;
    c->ring_bytes = ring;
    if (!c->block_us)
        c->block_us = DEFAULT_BLOCK_US;
    if (!c->interval_max)
        c->interval_max = INT32_MAX;
    return 0;
}

void heap_config_free(struct heap_config *c)
{
    vec_free(&c->scope.target_pids);
    vec_free(&c->scope.target_cmdlines);
    mem_free(c->bytes);
    *c = (struct heap_config){0};
}
