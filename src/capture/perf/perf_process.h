/* What code the processes have mapped: from /proc, and from the records of maps and forks in the rings, which also know
 * of processes that have ended by the time their samples are read. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_PROCESS_H
#define MERIDIAN_CAPTURE_PERF_PERF_PROCESS_H

#include "base/strpool.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/perf/perf_record.h"

enum perf_verdict {
    PERF_NEW,       /* not judged yet */
    PERF_OUT,       /* not in scope */
    PERF_IN,        /* to be sampled */
    PERF_WAITING,   /* in scope, but its maps cannot be read (yet) */
    PERF_TIMED_OUT, /* … and could not within the time that the config gives */
};

/* What is in executable memory: that of a file, or what the process has made itself. */
enum perf_map_code { PERF_CODE_UNKNOWN, PERF_CODE_OF_FILE, PERF_CODE_MADE };

/* Executable memory. */
struct perf_map {
    uint64_t start, end, offset, inode;
    uint32_t major, minor;
    uint64_t inode_generation; /* 0: unknown */
    strid path;                /* 0: memory without a name */
    uint32_t mapping;          /* its number in the trace, in generation `generation` */
    uint32_t generation;
    uint32_t file, file_epoch; /* 1 + its place in perf_files, when the epoch is the same; 0: none yet */
    uint64_t load_bias;        /* of its file, with `mapping` */
    uint8_t code;              /* enum perf_map_code */
};

struct perf_process {
    int32_t pid, parent; /* parent 0: unknown */
    enum perf_verdict verdict;
    bool kernel_thread;
    bool read;         /* its maps were read from /proc */
    uint64_t asked_ms; /* PERF_WAITING: since when */
    uint64_t read_ms;  /* when /proc was looked at last */
    uint64_t began;    /* as perf_process_began() says; 0: not asked yet */
    VEC(struct perf_map)
    maps; /* in order of their addresses */
};

struct perf_processes {
    struct u64map index; /* pid → struct perf_process * */
    struct strpool paths;
    size_t map_room; /* of all processes */
};

/* More than machines have at a time. Processes that have ended are known until they are forgotten, and anybody can make
 * others by the thousand, and map code under names that are new each time. */
enum { PERF_PROCESSES_MAX = 1 << 18, PERF_MAPS_MAX = 1 << 19, PERF_PATHS_MAX_BYTES = 32 << 20 };

/* The process, made when it is new; NULL: out of memory. */
struct perf_process *perf_process_get(struct perf_processes *ps, int32_t pid);

/* Reads /proc/PID/maps; false when that cannot be done. What is known already stays where /proc says nothing else. */
bool perf_process_read(struct perf_processes *ps, struct perf_process *p, uint64_t now_ms);

/* The same from the text of such a file. */
void perf_process_parse(struct perf_processes *ps, struct perf_process *p, struct slice text);

/* Takes in a record of a map or a fork. */
void perf_process_record(struct perf_processes *ps, const struct perf_record *r);

/* A process that cannot be read takes over what its parent has mapped, unless something is known. False: nothing is. */
bool perf_process_inherit(struct perf_processes *ps, struct perf_process *p, uint64_t now_ms);

/* The map of its parent that an address lies in, or NULL: between its birth and its program a process runs there. */
struct perf_map *perf_process_find_in_parent(struct perf_processes *ps, const struct perf_process *p, uint64_t address,
                                             uint64_t now_ms);

/* The map that an address lies in, or NULL. */
struct perf_map *perf_process_find(struct perf_process *p, uint64_t address);

/* When the process of that number began, in nanoseconds since the machine did: tells it from others that have had the
 * number. UINT64_MAX: there is none. */
uint64_t perf_process_began(int32_t pid);

/* Forgets maps when there are too many, and the verdicts as well when there are too many processes. */
void perf_processes_bound(struct perf_processes *ps);

/* Forgets maps, not the verdicts. */
void perf_processes_forget(struct perf_processes *ps);
void perf_processes_free(struct perf_processes *ps);

#endif
