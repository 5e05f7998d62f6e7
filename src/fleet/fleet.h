/* Many recordings as tables of a ClickHouse cluster, which answers SQL over all of them.
 *
 *     struct fleet *f;
 *     int rc = fleet_open(&f, &where, err);                  // a fleet that fleet_init() has made
 *     if (rc == 0)
 *         rc = fleet_add(f, &what, &counts, err);
 *     fleet_close(f);
 *
 * What counts, and what a server has: fleet/fleet_schema.h. A recording is what its bytes are: `trace` of every row is
 * a UUID made of the SHA-256 of the file, so that the same file is added once from wherever it comes, and two files
 * that say the same UUID are two recordings. A replica gets what the others of its shard get; a recording counts when
 * all have it. */
#ifndef MERIDIAN_FLEET_FLEET_H
#define MERIDIAN_FLEET_FLEET_H

#include "base/error.h"
#include "meridian/tp.h"

struct fleet;

struct fleet_where {
    const char *const *servers; /* addresses (click.h); the first that answers tells the rest of the fleet */
    size_t n_servers;
    const char *database; /* NULL: "fleet" */
    const char *user, *password;
    unsigned user_ms;  /* that SQL of users may take in all; 0: as long as the connection lives, until it answers */
    unsigned limit_ms; /* that a server may take for an answer of ours, in place of the usual; 0: the usual */
    uint64_t limit_bytes, limit_rows;
};

/* Makes the databases and tables on all servers, or what is missing of them. `cluster`: the name that all servers'
 * configuration has for them; NULL: there is one server, which is alone. -MRD_EEXISTS: there is a fleet of another
 * version. */
int fleet_init(const struct fleet_where *where, const char *cluster, struct error *err);

/* -MRD_ENOTFOUND: there is no fleet; -MRD_EEXISTS: its schema is of another version. *out is NULL on failure. */
int fleet_open(struct fleet **out, const struct fleet_where *where, struct error *err);
void fleet_close(struct fleet *f); /* NULL is fine */

/* ---- adding ---- */

struct fleet_progress {
    size_t files, added, known, failed, waiting; /* waiting: to be tried again */
    uint64_t bytes;                              /* of the files added */
    int64_t seconds;
};

struct fleet_add {
    const char *const *paths; /* files, directories, globs */
    size_t n_paths;
    const struct tp_config *config; /* of imports */
    unsigned jobs;                  /* imports at a time; 0: as many as there are CPUs */
    uint64_t memory;                /* bytes that all imports may have together; 0: half of the machine's */
    unsigned wait_s;                /* how long a server that does not answer is waited for */
    unsigned batch;                 /* recordings after which a worker commits at the latest; 0: 500 */
    const char *build;              /* NULL: what the recording says of its system */
    const char *const *labels;      /* "name=value" each */
    size_t n_labels;
    bool (*stopped)(void *ctx); /* true: no more begin, those that have begun are committed; may be NULL */
    void (*progress)(void *ctx, const struct fleet_progress *p); /* now and then; may be NULL */
    void (*tell)(void *ctx, const char *text);                   /* a line about one file */
    void *ctx;
};

struct fleet_added {
    size_t files, added, known, copies; /* copies: the same bytes under another name in this run */
    size_t failed;                      /* cannot be imported: a row of fleet_errors each */
    size_t same_uuid;                   /* of those added: another recording says the same UUID */
    size_t postponed;                   /* a server did not take it; adding again goes on */
    uint64_t bytes, rows;
};

/* Adds what is not there. Negative: it could not go on at all; else 0, and `counts` says what became of each file. */
int fleet_add(struct fleet *f, const struct fleet_add *what, struct fleet_added *counts, struct error *err);

/* ---- asking ---- */

/* Runs a statement that reads; the result's errors are with `tp`. */
int fleet_query(struct fleet *f, struct tp *tp, const char *sql, struct tp_result **out, struct error *err);

/* PerfettoSQL over each of many recordings alone, on the machines that have their files: tp_shell server (--traces)
 * runs there, and ClickHouse asks it by its table function url(). */
struct fleet_perfetto {
    const char *sql;       /* PerfettoSQL; every recording must give the same columns */
    const char *condition; /* of ClickHouse, over fleet_traces: which recordings; NULL: all */
    const char *then;      /* SQL of ClickHouse over the table `perfetto` (trace, row, the columns); NULL: all of it */
    const char *const *files; /* "HOST=URL": the server that has the files of a host; several share the work. Without:
                                 port 9001 on the loopback of a fleet's server that is on the host */
    size_t n_files;
    void (*tell)(void *ctx, const char *text); /* a line about a recording that has no answer; may be NULL */
    void *ctx;
};

/* The result as by fleet_query(). *failed: recordings that did not answer; their rows are left out. */
int fleet_perfetto(struct fleet *f, struct tp *tp, const struct fleet_perfetto *what, struct tp_result **out,
                   size_t *failed, struct error *err);

struct fleet_server_state {
    const char *url;
    unsigned shard, replica;
    bool reachable;
    char why[200]; /* it is not */
    uint64_t traces, rows, disk_bytes;
    uint64_t errors;  /* rows of fleet_errors */
    uint64_t begun;   /* loads that were begun and never committed */
    uint64_t missing; /* traces that other replicas of the shard have and this one does not */
};
int fleet_states(struct fleet *f, void (*each)(void *ctx, const struct fleet_server_state *s), void *ctx,
                 struct error *err);

/* The same of shards with several replicas alone, as far as it tells whether they have the same (traces, missing). */
int fleet_compare_replicas(struct fleet *f, void (*each)(void *ctx, const struct fleet_server_state *s), void *ctx,
                           struct error *err);

/* ---- keeping ---- */

struct fleet_dropped {
    uint64_t traces;
};
/* Drops the traces that were recorded more than `older_s` seconds ago, and that `condition` (SQL over fleet_traces;
 * NULL: all) holds for: they count no more when this returns, and their rows are gone from the disks. Every server must
 * answer. */
int fleet_drop(struct fleet *f, int64_t older_s, const char *condition, struct fleet_dropped *out, struct error *err);

struct fleet_repaired {
    uint64_t copied;  /* traces that a replica was given from another */
    uint64_t settled; /* traces whose commit a replica lacked, with all their rows there */
    uint64_t removed; /* loads whose rows were taken away, because they were never committed */
    uint64_t rows;    /* that were copied */
};
struct fleet_repair_step {
    const char *what;        /* "copying" */
    unsigned shard, replica; /* to which, from 0 */
    uint64_t done, of;       /* loads */
    uint64_t rows;           /* copied so far, in all */
};
struct fleet_repair {
    int64_t older_s;  /* what was begun longer ago and never committed is removed */
    unsigned limit_s; /* that all of it may take; 0: a day */
    void (*progress)(void *ctx, const struct fleet_repair_step *step); /* often; may be NULL */
    void *ctx;
};
/* Brings the replicas of each shard to the same, and removes what does not count. Every server must answer. What it has
 * done before a failure stays done. */
int fleet_repair(struct fleet *f, const struct fleet_repair *how, struct fleet_repaired *out, struct error *err);

#endif
