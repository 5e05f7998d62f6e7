/* A service and probes of our own: in a scratch directory, for one recording, gone with it. */
#ifndef MERIDIAN_CAPTURE_RECORD_DAEMONS_H
#define MERIDIAN_CAPTURE_RECORD_DAEMONS_H

#include "capture/record/child.h"

#include <limits.h>
#include <stdint.h>

struct daemons {
    char self[PATH_MAX]; /* this program */
    char dir[64];        /* their sockets and logs; empty: none */
    struct child traced, probes, perf, heap;
    char heap_env[2][PATH_MAX + 32]; /* see daemons_heap_env() */
};

/* Finds this program. */
int daemons_init(struct daemons *d, struct error *err);

/* True when the service that PERFETTO_CONSUMER_SOCK_NAME (or its default) names runs and offers a data source. */
bool daemons_offered(const struct daemons *d, const char *data_source);

/* Starts a service with a relay endpoint on `relay_addresses` (a list, with commas; NULL: none), and sets
 * PERFETTO_CONSUMER_SOCK_NAME to it. It is ready on return. */
int daemons_start_service(struct daemons *d, const char *relay_addresses, struct error *err);
int daemons_start_probes(struct daemons *d, struct error *err);
int daemons_start_perf(struct daemons *d, struct error *err);
int daemons_start_heap(struct daemons *d, struct error *err);

/* Ends heapprofd. False: it had ended before, or was killed. */
bool daemons_end_heap(struct daemons *d);

/* What a program needs in its environment to be sampled by our heapprofd, which is where the library is. Borrowed. */
enum { DAEMONS_HEAP_ENV = 2 };
int daemons_heap_env(struct daemons *d, const char **env, struct error *err);

/* Processor time that traced_perf has taken so far, in milliseconds; 0 when it is none of ours. */
uint64_t daemons_perf_ms(const struct daemons *d);

/* Producers that offer something. One that has just connected does not yet: it waits for the service to answer. */
unsigned daemons_count_producers(const struct daemons *d);

/* Ends both and removes the directory. `tell`: shows the end of the service's log first. */
void daemons_stop(struct daemons *d, bool tell);

#endif
