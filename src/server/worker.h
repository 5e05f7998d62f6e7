/* The thread that owns the traces and runs the requests of all sessions. */
#ifndef MERIDIAN_SERVER_WORKER_H
#define MERIDIAN_SERVER_WORKER_H

#include "server/batches.h"
#include "server/client_session.h"
#include "server/recording_files.h"
#include "server/trace.h"

#include <stdatomic.h>

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    bool busy; /* a session has its turn */
    struct session *first_all;
    struct session *first_run, *last_run; /* sessions that can go on */
    struct session *first_ready;          /* sessions with something for the loop */
    struct session *current;              /* the one whose query may be interrupted */
    struct tp *running;                   /* and the handle that it runs on; NULL: the trace's */
    size_t held_bytes, max_held_bytes;    /* of requests, all sessions together */
    void (*notify)(void *ctx);            /* sessions have become ready; from the worker's thread */
    void *notify_ctx;
    int64_t last_request_ns;  /* when the last one ended */
    int64_t waiting_since_ns; /* of the first of those that can go on */
    atomic_bool overdue;      /* they have: the statement is being ended */
    int64_t blocked_ns;       /* so long others wait for a statement */

    /* the thread's own */
    struct trace *trace;
    const struct recordings *recordings; /* those that clients may name */
    struct batch_pools pools;
    unsigned n_exports; /* files that clients read */
};

/* Readies a worker; `max_held_bytes` bounds what requests hold. Its thread is started by worker_start() (0 or
 * negative), and ended by worker_close(), which every session must have left before. */
void worker_init(struct worker *w, struct trace *trace, size_t max_held_bytes, void (*notify)(void *), void *ctx);
int worker_start(struct worker *w);
void worker_close(struct worker *w);

/* Frees what worker_init() made, for a worker without a thread. */
void worker_free(struct worker *w);

/* For requests that are still coming: takes or gives back bytes of what requests may hold. */
bool worker_hold(struct worker *w, size_t bytes);
bool worker_has_room(struct worker *w, size_t bytes);
void worker_release(struct worker *w, size_t bytes);

/* Calls `each` for every session with new answers, or with room for requests again. On the loop's thread. */
void worker_each_ready(struct worker *w, void (*each)(struct session *s));

/* Interrupts the query that runs when its client has left, or when others have waited long for it (again: an interrupt
 * between two statements may be lost). */
void worker_interrupt(struct worker *w);

/* Time since the last request was answered; 0 while one runs. */
int64_t worker_idle_ms(struct worker *w);

/* For the session's side: ends the query that runs; the lock is held. */
void worker_interrupt_current(struct worker *w);
/* For the session's side: puts it into the queue of those that can go on; the lock is held. */
void worker_queue(struct worker *w, struct session *s);
/* Tells the loop that the session has something for it; the lock is held. */
void worker_ready(struct worker *w, struct session *s);

/* Tables go away because `by` wants that: answers from them that are on their way end with an error, and pages that
 * asked them get it for all they ask until they begin anew. On the worker's thread. */
enum tables_gone {
    TABLES_SHARED, /* those that all share */
    TABLES_ALL,    /* with the trace, and with every view */
};
void worker_tables_gone(struct worker *w, struct session *by, enum tables_gone which, const char *error);

/* Do other pages use the tables that all share? */
bool worker_has_other_pages(struct worker *w, const struct session *than);

/* Around a query: from here on the client's leaving interrupts it. False: it has left already. */
bool worker_begin_query(struct worker *w, struct session *s);
/* The same of a query on another handle than the trace's; worker_end_query() comes before it is closed. */
bool worker_begin_query_on(struct worker *w, struct session *s, struct tp *tp);
void worker_end_query(struct worker *w);

#endif
