/* A process that imports recordings and sends their rows: what its parent and it say to each other.
 *
 * A recording may take all memory, or crash what reads it; in a process of its own it takes nothing else with it but
 * what the same process has not committed, which the parent gives to another. A worker ends after a batch.
 *
 *     worker → parent                        parent → worker
 *     NEED                                   FILE file, or END: commit and leave
 *     HASH file, trace                       GO, or SKIP: it is there already
 *     TAKEN file, rows, bytes, uuid          (its rows are ready or sent)
 *     BAD file, text                         (it cannot be imported)
 *     SHORT file                             (the worker's memory does not suffice for it)
 *     DONE file                              (it counts)
 *     LATER file, text, unreachable          (a server did not take it: once more) */
#ifndef MERIDIAN_FLEET_ADD_WORKER_H
#define MERIDIAN_FLEET_ADD_WORKER_H

#include "fleet/find.h"
#include "fleet/fleet_private.h"

enum worker_word {
    WORKER_NEED,
    WORKER_FILE,
    WORKER_END,
    WORKER_HASH,
    WORKER_GO,
    WORKER_SKIP,
    WORKER_TAKEN,
    WORKER_BAD,
    WORKER_SHORT,
    WORKER_DONE,
    WORKER_LATER,
    WORKER_UNSETTLED, /* as DONE, but a replica lacks the commit: text */
};

struct worker_message {
    enum worker_word word;
    uint32_t file;
    bool unreachable;
    uint64_t rows, bytes;
    char trace[FLEET_ID_SIZE], uuid[FLEET_ID_SIZE];
    char text[360];
};

/* Sends or receives a message over a SOCK_SEQPACKET socket: false: the other has gone. */
bool worker_send(int fd, const struct worker_message *m);
bool worker_receive(int fd, struct worker_message *m);

/* The life of the process behind fork(); never returns. `memory`: bytes it may have. */
_Noreturn void worker_run(struct fleet *f, const struct fleet_add *what, const struct fleet_files *files, int fd,
                          uint64_t memory);

#endif
