/* What all data sources of traced_perf share: the names of the kernel's functions, files, shards, the size of queues.
 */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_KERNEL_H
#define MERIDIAN_CAPTURE_PERF_PERF_KERNEL_H

#include "capture/perf/perf_files.h"
#include "kernel/symbols.h"

struct perf_shard {
    uint64_t session_id;
    uint32_t count, chosen;
    unsigned users;
};

struct perf_shared {
    int kallsyms; /* open file; -1: none */
    struct kernel_symbols symbols;
    unsigned symbol_users; /* sources with kernel frames; without any the symbols are dropped */
    VEC(struct perf_shard)
    shards;
    struct perf_files files;
    uint64_t queued_bytes; /* of copied stacks in the queues of all sources */
};

/* Opens /proc/kallsyms, which shows addresses to those who may have them at that moment: before capabilities are
 * dropped. With kptr_restrict it is lowered for that moment, and set to what it was. */
void perf_shared_init(struct perf_shared *s);
void perf_shared_free(struct perf_shared *s);

/* Loads the symbols with the first user, and frees them with the last. -MRD_EDENIED: the kernel shows no addresses. */
int perf_kernel_symbols_use(struct perf_shared *s, struct error *err);
void perf_kernel_symbols_drop(struct perf_shared *s);

enum { PERF_KERNEL_NAME_BYTES = 129 };

/* The name of the function at a kernel address: names of one address joined by '_', without endings of compilers; empty
 * when there is none. */
struct slice perf_kernel_name(const struct perf_shared *s, uint64_t address, char name[PERF_KERNEL_NAME_BYTES]);

/* The shard of a session: chosen at random by its first source, the same for the others. */
uint32_t perf_shard_use(struct perf_shared *s, uint64_t session_id, uint32_t *count);
void perf_shard_drop(struct perf_shared *s, uint64_t session_id);

#endif
