/* A process that names the addresses of one file, for files that may be anybody's.
 *
 * It is this program again, started under another name with the open files in hand. It loads libdw, gives up all system
 * calls but those of computing, and has a bound on time and memory; what it says is checked like any other input. */
#ifndef MERIDIAN_SYMBOLS_SYMBOL_WORKER_H
#define MERIDIAN_SYMBOLS_SYMBOL_WORKER_H

#include "base/error.h"
#include "wire/pb_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* argv[0] of the process. */
#define SYMBOL_WORKER_NAME "meridian-symbol-worker"

/* What main() does when it has that name; the exit status. */
int symbol_worker_main(void);

/* --- the other side --- */

struct symbol_job {
    int fd;                    /* the program or library, or a file of its symbols */
    int debug_fd;              /* a file with debugging information about it, -1: `fd` itself */
    int alt_fd;                /* what that one shares with others, -1: nothing */
    const uint64_t *addresses; /* as the files count, rising, each once */
    size_t n;
    uint64_t shift;      /* address less what the trace has (rel_pc) */
    int64_t cpu_s;       /* the most processor time, 0: by the size of the files */
    const char *program; /* what to start; NULL: /proc/self/exe */
};

struct symbol_job_result {
    size_t named;   /* addresses with at least a function */
    bool no_lines;  /* there is debugging information, but it cannot be read, or libdw is missing: names alone */
    char note[128]; /* why; "" */
};

/* Names the addresses, and appends what is known to `w` as the address_symbols of a ModuleSymbols message. Negative
 * when the process could not do it (a damaged file, too much time or memory): the text says which; `w` is as before. */
int symbol_job_run(const struct symbol_job *job, struct pb_writer *w, struct symbol_job_result *result,
                   struct error *err);

#endif
