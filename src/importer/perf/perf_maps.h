/* Which file lies where: the address spaces of the kernel and of processes. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_MAPS_H
#define MERIDIAN_IMPORTER_PERF_PERF_MAPS_H

#include "base/u64map.h"
#include "base/vec.h"
#include "storage/storage.h"

struct perf_map {
    uint64_t start, end; /* [start, end) */
    int64_t pc_offset;   /* of an address there to its rel_pc, less the address */
    uint32_t mapping;    /* row of stack_profile_mapping */
    uint32_t symbol;     /* code that the kernel made, in perf_import.symbols, + 1; 0: a file */
};

struct perf_space {
    VEC(struct perf_map)
    maps;             /* by start; they do not overlap */
    uint32_t dummy;   /* row of the mapping of addresses that nothing is known of, UINT32_MAX until needed */
    uint32_t version; /* grows whenever a file is mapped */
    uint64_t moved;   /* bytes of `maps`, to make room */
};

#define PERF_MAX_MOVED (UINT64_C(1) << 32) /* bytes: 16,000 maps, each inside the one before */
enum { PERF_RECENT_SPACES = 64 /* those looked up lately, by the low bits of the pid */ };

struct perf_spaces {
    struct perf_space kernel;
    struct u64map by_pid; /* pid -> one of `list` */
    VEC(struct perf_space)
    list;
    size_t inherited; /* maps that children were given */
    struct {
        uint32_t pid, at; /* its place in `list` + 1, 0: none yet */
    } recent[PERF_RECENT_SPACES];
};

/* The space of a process that was looked up lately; NULL for others. */
static inline struct perf_space *perf_space_near(const struct perf_spaces *s, uint32_t pid)
{
    size_t near = pid % PERF_RECENT_SPACES;
    return s->recent[near].at && s->recent[near].pid == pid ? &s->list.p[s->recent[near].at - 1] : NULL;
}

/* The space of a process; NULL when out of memory. Lasts until the next call. */
struct perf_space *perf_space_of(struct perf_spaces *s, uint32_t pid);

/* A file is mapped: older maps give way where they overlap. A space whose maps were moved about as those of no process
 * are (PERF_MAX_MOVED) forgets them and begins anew. False when out of memory. */
bool perf_space_map(struct perf_space *s, struct perf_map map);

/* A process is born with what its parent has mapped, unless so much was handed on already that it is nobody's work.
 * False when out of memory. */
bool perf_space_inherit(struct perf_spaces *s, uint32_t child, uint32_t parent);

/* A process begins another program: nothing is mapped. */
void perf_space_clear(struct perf_spaces *s, uint32_t pid);

/* What lies at an address, NULL when nothing does. */
const struct perf_map *perf_space_find(const struct perf_space *s, uint64_t address);

void perf_spaces_free(struct perf_spaces *s);

#endif
