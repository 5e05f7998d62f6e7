/* Records of a ring of perf_event_open, as the kernel writes them. It reads bytes and trusts none of them. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_RECORD_H
#define MERIDIAN_CAPTURE_PERF_PERF_RECORD_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* What the samples of an event hold beside TID, TIME and READ. */
struct perf_layout {
    bool group;         /* READ has the format GROUP */
    bool lost;          /* … and LOST: behind each count, how many records of its event had no room in the ring */
    bool callchain;     /* PERF_SAMPLE_CALLCHAIN */
    bool stack;         /* PERF_SAMPLE_REGS_USER and STACK_USER */
    uint64_t regs_mask; /* sample_regs_user */
};

/* Who ran, as PERF_RECORD_MISC_CPUMODE says and Profiling.CpuMode numbers it. */
enum perf_mode {
    PERF_MODE_UNKNOWN,
    PERF_MODE_KERNEL,
    PERF_MODE_USER,
    PERF_MODE_HYPERVISOR,
    PERF_MODE_GUEST_KERNEL,
    PERF_MODE_GUEST_USER,
};

/* What an address of a chain is: the beginning of a part of the stack, or a place in it. */
enum perf_chain { PERF_CHAIN_ADDRESS, PERF_CHAIN_KERNEL, PERF_CHAIN_USER, PERF_CHAIN_OTHER };
enum perf_chain perf_chain_kind(uint64_t address);

enum { PERF_ABI_64 = 2 }; /* PERF_SAMPLE_REGS_ABI_64 */

enum perf_record_kind {
    PERF_KIND_SAMPLE,
    PERF_KIND_LOST,   /* `lost` */
    PERF_KIND_MAP,    /* pid has mapped executable memory: map_…, path */
    PERF_KIND_FORK,   /* pid, tid, parent, parent_tid */
    PERF_KIND_COMM,   /* a thread has a new name: pid, tid, path */
    PERF_KIND_OTHER,  /* nothing for us */
    PERF_KIND_BROKEN, /* the bytes are not what their type says */
};

/* One record. The numbers behind pointers are u64 that may lie at any address: perf_record_u64(). */
struct perf_record {
    enum perf_record_kind kind;
    enum perf_mode mode;
    int32_t pid, tid, parent, parent_tid;
    uint64_t time;
    const uint8_t *counts;          /* the leader's, then the followers' */
    uint32_t n_counts, count_words; /* u64 from one to the next */
    const uint8_t *chain;
    uint64_t n_chain;
    uint64_t abi; /* of the registers; 0: there are none */
    const uint8_t *regs;
    struct slice stack; /* what of the copy is valid */
    bool stack_cut;     /* the copy is as large as it may be: there was more */
    uint64_t lost;
    uint64_t map_start, map_end, map_offset, map_inode, map_generation;
    uint32_t map_major, map_minor;
    struct slice path;
};

/* Value `i` of `chain` or `regs`. */
static inline uint64_t perf_record_u64(const uint8_t *p, uint64_t i)
{
    uint64_t v;
    memcpy(&v, p + i * 8, 8);
    return v;
}

static inline uint64_t perf_record_count(const struct perf_record *r, uint32_t i)
{
    return perf_record_u64(r->counts, (uint64_t)i * r->count_words);
}

/* A quick look: the record is one of a map, a fork or a name. */
bool perf_record_is_of_process(struct slice bytes);

/* Reads one record with its header. */
void perf_record_read(struct perf_record *r, struct slice bytes, const struct perf_layout *layout);

/* The data of a ring: `size` bytes, a power of two. */
struct perf_ring {
    const uint8_t *data;
    uint64_t size;
};

enum { PERF_RECORD_MAX_BYTES = 1 << 16 };

/* The record at `tail`, of those that end at `head`; *tail moves behind it. One that wraps round the end is put
 * together in `scratch` (PERF_RECORD_MAX_BYTES). False: there is none, or what is there is none; then *tail is
 * `head`, and *broken says so. */
bool perf_ring_next(const struct perf_ring *ring, uint64_t *tail, uint64_t head, uint8_t *scratch, struct slice *record,
                    bool *broken);

#endif
