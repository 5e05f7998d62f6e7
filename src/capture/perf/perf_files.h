/* The files behind maps, for all data sources: their build ids, their unwind tables, names of code without a file. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_FILES_H
#define MERIDIAN_CAPTURE_PERF_PERF_FILES_H

#include "base/u64map.h"
#include "base/vec.h"
#include "capture/perf/perf_loader.h"

enum {
    PERF_TABLES_BYTES = 192 << 20, /* of all files: beyond it those that were not used for longest are forgotten */
    PERF_LOAD_WAIT_MS = 1000       /* after which samples do without a file that is still being read */
};

struct perf_file {
    uint64_t key;
    bool loading;
    bool known;        /* it was opened: elf and is */
    bool tables_tried; /* tables, or NULL: it has none that can be read */
    uint8_t failures;  /* in a row: of processes that could not name it */
    int32_t failed_pid;
    uint64_t asked_ms, used_ms, checked_ms;
    struct perf_file_identity is;
    struct perf_elf elf;
    struct unwind_file *tables;
};

/* A zeroed struct reads files at once, for tests. */
struct perf_files {
    bool threads;
    struct perf_loader *loader; /* NULL: not needed yet */
    VEC(struct perf_file)
    list;
    struct u64map index; /* key → 1 + place in the list */
    uint32_t epoch;      /* of places: after another one they are forgotten */
    size_t memory;       /* of tables */
    struct unwind_cache *cache;
    struct unwind_file *vdso;
    struct u64map jits; /* pid → struct perf_jit * */
};

/* A map of a process, as far as its file is concerned. */
struct perf_file_map {
    int32_t pid;
    uint64_t start, end, inode;
    uint32_t major, minor;
    uint64_t generation; /* of the inode; 0: unknown */
    const char *path;
};

/* The place in the list of the file behind a map, -1: out of memory. It lasts while `epoch` is the same. It begins to
 * be read when it is new, when it has no tables and the caller wants them, or when it may be another by now. */
int32_t perf_files_find(struct perf_files *f, const struct perf_file_map *m, bool wants_tables, uint64_t now_ms);

/* It is still being read, and a sample had better wait. */
bool perf_file_is_late(const struct perf_file *x, uint64_t now_ms);

/* Something is being read. */
bool perf_files_are_loading(const struct perf_files *f);

/* Takes in what has been read; waits up to `wait_ms` for each that is on its way. */
void perf_files_collect(struct perf_files *f, uint64_t now_ms, uint32_t wait_ms);

/* The names of a process's code that has no file; NULL: out of memory. `began`: perf_process_began(), as its number may
 * have been another's. They are read at first, and again when the caller has not found a name and the last time is a
 * while ago. `dump`: a jitdump file that is mapped, or NULL. */
const struct perf_jit *perf_files_jit(struct perf_files *f, int32_t pid, uint64_t began, const char *dump,
                                      uint64_t dump_inode, uint64_t address, uint64_t now_ms);

/* They are being read, and a sample had better wait. */
bool perf_jit_is_late(const struct perf_jit *j, uint64_t now_ms);

/* The cache of rows, made when it is needed; NULL: out of memory. */
struct unwind_cache *perf_files_cache(struct perf_files *f);

/* The tables of the vdso, which is this process's own as well; NULL: it has none. */
const struct unwind_file *perf_files_vdso(struct perf_files *f);

/* Forgets all that is not being read. */
void perf_files_forget(struct perf_files *f);
void perf_files_free(struct perf_files *f);

#endif
