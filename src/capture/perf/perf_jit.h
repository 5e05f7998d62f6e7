/* Names of code that a process made while it ran: what JIT compilers and interpreters write into /tmp/perf-PID.map, and
 * into jitdump files that they map. Both are files of the process's own; nobody else's are believed. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_JIT_H
#define MERIDIAN_CAPTURE_PERF_PERF_JIT_H

#include "base/slice.h"
#include "base/u64map.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PERF_JIT_BYTES = 32 << 20,    /* of a file: what is behind them is not read */
    PERF_JIT_FUNCTIONS = 1 << 19, /* of a process */
    PERF_JIT_NAME_BYTES = 512
};

struct perf_jit_function {
    uint64_t start, size;
    uint32_t name, order; /* name: where it begins in `names` */
};

/* How far a file has been read. */
struct perf_jit_file {
    uint64_t device, inode, read;
};

/* A zeroed struct with a pid is empty. */
struct perf_jit {
    int32_t pid;
    uint64_t began;    /* perf_process_began() of it; 0: nobody asked */
    bool loading;      /* a thread has it: nothing else may look into it */
    uint64_t asked_ms; /* when it was read last */
    char *dump_path;   /* of a jitdump file that is mapped; NULL: none */
    uint64_t dump_inode;
    struct perf_jit_file map, dump;
    VEC(struct perf_jit_function)
    functions; /* by address, of equal ones in order of their coming */
    VEC(char)
    names;               /* each ends with NUL */
    struct u64map index; /* of functions of jitdump files: code index → 1 + name */
    uint32_t last_order;
    bool full; /* a bound was reached, or memory has run out */
};

/* Reads what has come since the last time. It may take as long as the files' owner likes. */
void perf_jit_read(struct perf_jit *j);

/* Take in as many whole lines, or records, as there are; returns how many bytes those had. perf_jit_sort() follows. */
size_t perf_jit_parse_map(struct perf_jit *j, struct slice text);
size_t perf_jit_parse_dump(struct perf_jit *j, struct slice bytes, bool at_begin);
void perf_jit_sort(struct perf_jit *j);

/* The function that an address is in; empty: none is known. */
struct slice perf_jit_name(const struct perf_jit *j, uint64_t address);

/* The map may have such code: memory without a file, or a jitdump file. */
bool perf_jit_is_code(const char *path);
bool perf_jit_is_dump(const char *path);

size_t perf_jit_memory(const struct perf_jit *j);
void perf_jit_free(struct perf_jit *j); /* its contents */

#endif
