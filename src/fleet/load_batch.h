/* What one worker has for one shard: rows of several traces on their way into its servers, and the lines that will make
 * them count.
 *
 *     batch_trace_begin()  a number for the load of the next trace
 *     batch_put()          a block of a table's rows; the largest tables are sent when too much is held
 *     batch_trace_end()    the trace is complete: its line waits for the commit
 *     batch_commit()       sends what is left to every replica, then the lines
 *
 * Before rows of a load are sent, NAME_local.begun says so on each replica: what never gets a commit can be found and
 * taken away. After a failure the batch takes nothing more, and none of its traces count. */
#ifndef MERIDIAN_FLEET_LOAD_BATCH_H
#define MERIDIAN_FLEET_LOAD_BATCH_H

#include "export/buffer.h"
#include "fleet/fleet_private.h"

/* How long a batch may take from its first row to its commit. What was begun earlier than FLEET_ABANDONED_S ago is
 * taken away by others (fleet_repair()), so a commit must not come that late. */
enum { BATCH_SECONDS = 1800, FLEET_ABANDONED_S = 3600 };

struct batch_load {
    int64_t load;
    uint32_t file; /* the caller's number */
    bool announced, complete;
    char trace[FLEET_ID_SIZE];
};

struct batch {
    const struct fleet *fleet;
    unsigned shard;
    const struct fleet_node *nodes;
    size_t n_nodes;
    struct batch_table {
        struct batch *batch;
        struct export_buffer out; /* into the piece at hand; bytes NULL: there is none */
        VEC(struct slice) full;   /* pieces before it, of EXPORT_BUFFER_BYTES each */
    } * tables;                   /* by the schema's number */
    VEC(uint8_t *) idle;          /* pieces that were sent, for what comes next */
    uint64_t held;                /* bytes in tables */
    uint64_t sent;                /* to each replica so far */
    uint64_t limit;               /* of held */
    int64_t begun_ns;             /* CLOCK_BOOTTIME of the first announcement; 0: none */
    VEC(struct batch_load) loads;
    struct click_text commits; /* lines of TabSeparated */
    const char *host;
    int failed; /* 0, or the code of what went wrong */
    struct error why;
    int64_t *constant; /* EXPORT_BLOCK_ROWS numbers */
    void *nothing;     /* as many zeros: of whichever type */
    uint32_t *codes;
    uint8_t *ones;
    VEC(struct export_text) dictionary;
    VEC(struct export_vector) vectors;
};

int batch_open(struct batch *b, const struct fleet *f, unsigned shard, uint64_t limit, const char *host);
void batch_close(struct batch *b);

/* Asks every replica whether it answers. A batch whose shard does not is failed. */
int batch_ping(struct batch *b);

int batch_trace_begin(struct batch *b, uint32_t file, const char *trace, struct error *err);

/* A block of source `from`'s rows, as rows of the schema's table `table`. -MRD_EINVALID: it does not fit the table. */
int batch_put(struct batch *b, size_t table, int64_t month, const struct export_schema *from,
              const struct export_block *block, struct error *err);

/* `line`: the values of the commit, from uuid on, with a newline behind them. */
int batch_trace_end(struct batch *b, const char *line, struct error *err);

/* 0: the traces count on all replicas. 1: they count, but the commit did not reach all replicas (why says which).
 * Negative: they do not count (or it is not known whether they do). */
int batch_commit(struct batch *b);

#endif
