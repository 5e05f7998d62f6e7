/* Cuts records out of a ring and reads their fields, each within the record's bounds. */
#include "capture/perf/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

enum { MAP_IDS_BYTES = 24, MAP_FLAGS_BYTES = 8 };

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static const uint8_t *take(struct reader *r, uint64_t n)
{
    const uint8_t *at = r->p;
    if (r->bad || n > (uint64_t)(r->end - r->p)) {
        r->bad = true;
        return NULL;
    }
    r->p += n;
    return at;
}

static uint64_t u64(struct reader *r)
{
    const uint8_t *at = take(r, 8);
    return at ? perf_record_u64(at, 0) : 0;
}

static uint32_t u32(struct reader *r)
{
    uint32_t v = 0;
    const uint8_t *at = take(r, 4);
    if (at)
        memcpy(&v, at, 4);
    return v;
}

/* `n` numbers in a row. */
static const uint8_t *numbers(struct reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->p) / 8)
        r->bad = true;
    return r->bad ? NULL : take(r, n * 8);
}

/* What is left, up to its NUL. */
static struct slice text(struct reader *r)
{
    const uint8_t *nul = r->bad || r->p == r->end ? NULL : memchr(r->p, 0, (size_t)(r->end - r->p));
    r->bad |= !nul;
    return nul ? slice_of(r->p, (size_t)(nul - r->p)) : slice_of(NULL, 0);
}

static void read_stack(struct perf_record *o, struct reader *r, const struct perf_layout *layout)
{
    o->abi = u64(r);
    if (o->abi)
        o->regs = numbers(r, (uint64_t)__builtin_popcountll(layout->regs_mask));
    uint64_t size = u64(r);
    const uint8_t *bytes = take(r, size);
    uint64_t valid = size ? u64(r) : 0;
    if (valid > size)
        r->bad = true;
    o->stack = slice_of(bytes, r->bad ? 0 : (size_t)valid);
    o->stack_cut = size && valid == size;
}

static void read_sample(struct perf_record *o, struct reader *r, const struct perf_layout *layout)
{
    o->kind = PERF_KIND_SAMPLE;
    o->pid = (int32_t)u32(r);
    o->tid = (int32_t)u32(r);
    o->time = u64(r);
    uint64_t n_counts = layout->group ? u64(r) : 1;
    o->count_words = layout->lost ? 2 : 1;
    r->bad |= n_counts > UINT16_MAX;
    o->counts = numbers(r, n_counts * o->count_words);
    o->n_counts = (uint32_t)n_counts;
    if (layout->callchain) {
        o->n_chain = u64(r);
        o->chain = numbers(r, o->n_chain);
    }
    if (layout->stack)
        read_stack(o, r, layout);
}

static void read_map(struct perf_record *o, struct reader *r, bool build_id)
{
    o->kind = PERF_KIND_MAP;
    o->pid = (int32_t)u32(r);
    o->tid = (int32_t)u32(r);
    o->map_start = u64(r);
    uint64_t len = u64(r);
    o->map_offset = u64(r);
    if (build_id) {
        take(r, MAP_IDS_BYTES);
    } else {
        o->map_major = u32(r);
        o->map_minor = u32(r);
        o->map_inode = u64(r);
        o->map_generation = u64(r);
    }
    take(r, MAP_FLAGS_BYTES);
    if (!r->bad && len > UINT64_MAX - o->map_start)
        r->bad = true;
    o->map_end = o->map_start + (r->bad ? 0 : len);
    o->path = text(r);
}

static enum perf_mode mode_of(uint16_t misc)
{
    switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
    case PERF_RECORD_MISC_KERNEL:
        return PERF_MODE_KERNEL;
    case PERF_RECORD_MISC_USER:
        return PERF_MODE_USER;
    case PERF_RECORD_MISC_HYPERVISOR:
        return PERF_MODE_HYPERVISOR;
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return PERF_MODE_GUEST_KERNEL;
    case PERF_RECORD_MISC_GUEST_USER:
        return PERF_MODE_GUEST_USER;
    default:
        return PERF_MODE_UNKNOWN;
    }
}

enum perf_chain perf_chain_kind(uint64_t address)
{
    return address < (uint64_t)PERF_CONTEXT_MAX       ? PERF_CHAIN_ADDRESS
           : address == (uint64_t)PERF_CONTEXT_KERNEL ? PERF_CHAIN_KERNEL
           : address == (uint64_t)PERF_CONTEXT_USER   ? PERF_CHAIN_USER
                                                      : PERF_CHAIN_OTHER;
}

bool perf_record_is_of_process(struct slice bytes)
{
    struct perf_event_header h;
    if (bytes.len < sizeof h)
        return false;
    memcpy(&h, bytes.p, sizeof h);
    return h.type == PERF_RECORD_MMAP2 || h.type == PERF_RECORD_FORK || h.type == PERF_RECORD_COMM;
}

void perf_record_read(struct perf_record *o, struct slice bytes, const struct perf_layout *layout)
{
    struct perf_event_header h;
    memset(o, 0, sizeof *o);
    o->kind = PERF_KIND_BROKEN;
    if (bytes.len < sizeof h)
        return;
    memcpy(&h, bytes.p, sizeof h);
    struct reader r = {bytes.p + sizeof h, bytes.p + bytes.len, false};
    o->mode = mode_of(h.misc);
    switch (h.type) {
    case PERF_RECORD_SAMPLE:
        read_sample(o, &r, layout);
        break;
    case PERF_RECORD_LOST:
        o->kind = PERF_KIND_LOST;
        u64(&r); /* the event's id */
        o->lost = u64(&r);
        break;
    case PERF_RECORD_MMAP2:
        read_map(o, &r, h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
        break;
    case PERF_RECORD_FORK:
        o->kind = PERF_KIND_FORK;
        o->pid = (int32_t)u32(&r);
        o->parent = (int32_t)u32(&r);
        o->tid = (int32_t)u32(&r);
        o->parent_tid = (int32_t)u32(&r);
        break;
    case PERF_RECORD_COMM:
        o->kind = PERF_KIND_COMM;
        o->pid = (int32_t)u32(&r);
        o->tid = (int32_t)u32(&r);
        o->path = text(&r);
        break;
    default:
        o->kind = PERF_KIND_OTHER;
        break;
    }
    if (r.bad)
        *o = (struct perf_record){.kind = PERF_KIND_BROKEN};
}

static void copy_out(const struct perf_ring *ring, uint64_t at, uint8_t *to, uint64_t n)
{
    uint64_t begin = at & (ring->size - 1), first = ring->size - begin < n ? ring->size - begin : n;
    memcpy(to, ring->data + begin, (size_t)first);
    memcpy(to + first, ring->data, (size_t)(n - first));
}

bool perf_ring_next(const struct perf_ring *ring, uint64_t *tail, uint64_t head, uint8_t *scratch, struct slice *record,
                    bool *broken)
{
    struct perf_event_header h;
    uint64_t left = head - *tail;
    *broken = false;
    if (!left)
        return false;
    if (left >= sizeof h && left <= ring->size) {
        copy_out(ring, *tail, (uint8_t *)&h, sizeof h);
        if (h.size >= sizeof h && h.size <= left) {
            uint64_t begin = *tail & (ring->size - 1);
            const uint8_t *p = ring->data + begin;
            if (h.size > ring->size - begin) {
                copy_out(ring, *tail, scratch, h.size);
                p = scratch;
            }
            *record = slice_of(p, h.size);
            *tail += h.size;
            return true;
        }
    }
    *tail = head;
    *broken = true;
    return false;
}
