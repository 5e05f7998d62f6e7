/* Opens and reads the files behind maps in threads of its own: a file may be on a disk that is slow, or on a file
 * system of somebody who never answers. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_LOADER_H
#define MERIDIAN_CAPTURE_PERF_PERF_LOADER_H

#include "capture/common/perf_elf.h"
#include "capture/perf/perf_jit.h"
#include "unwind/unwind.h"

/* Which bytes were read: another time or size is another file, whatever its number. */
struct perf_file_identity {
    uint64_t device, inode, size;
    int64_t changed_ns;
};

/* What to read, and what was found. */
struct perf_load {
    struct perf_jit *jit; /* names to be read on; NULL: a file, as follows */

    uint32_t file;                 /* whose load it is: a number of the caller */
    int32_t pid;                   /* a process that has it mapped */
    uint64_t map_start, map_end;   /* there */
    uint64_t inode;                /* only the file of this number is read */
    char *path;                    /* owned */
    struct perf_file_identity had; /* what the caller has of it: the same is not read again */
    bool wants_tables;
    size_t max_bytes; /* of tables */

    bool opened, same;
    struct perf_file_identity is;
    struct perf_elf elf;
    struct unwind_file *tables; /* NULL: none, see `why` */
    struct error why;
    struct perf_load *next;
};

struct perf_loader;
struct perf_loader *perf_loader_new(void); /* NULL: out of memory */

/* Waits a moment for threads that are reading. False: one does not come back, and is left behind with its load. */
bool perf_loader_free(struct perf_loader *l);

/* Takes over the load. False: no thread could be started, it was not taken. */
bool perf_loader_add(struct perf_loader *l, struct perf_load *load);

/* One that is done, or NULL. It waits up to `wait_ms` for one, while any is on its way. */
struct perf_load *perf_loader_take(struct perf_loader *l, uint32_t wait_ms);

/* Does a load at once. */
void perf_load_run(struct perf_load *load);
void perf_load_free(struct perf_load *load);

#endif
