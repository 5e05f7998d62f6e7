/* A producer of data sources of the system: `tracebox traced_probes`, `tracebox traced_perf`.
 *
 * One producer connection, one instance of a data source for each session that asks for it. A lost connection ends all
 * instances, so that nothing stays set up; the connection comes back by itself. */
#ifndef MERIDIAN_CAPTURE_PROBES_PROBES_H
#define MERIDIAN_CAPTURE_PROBES_PROBES_H

#include "base/error.h"
#include "capture/probes/ftrace/ring_reader.h"

#include <stdbool.h>
#include <uv.h>

struct probes;
struct data_source_type;
struct perf_shared;
struct heap_hub;

struct probes_options {
    const char *name;                              /* of the program, in front of what it logs */
    const char *producer_name;                     /* what the service calls it */
    const struct data_source_type *const *sources; /* NULL-terminated */
    struct perf_shared *perf;                      /* of linux.perf */
    struct heap_hub *heap;                         /* of android.heapprofd */
    bool scraping;                                 /* the service may read what was not handed over */
    const char *notify_env;    /* names a descriptor that gets a "1" when the data sources are registered; NULL: none */
    const char *socket;        /* NULL: the environment's */
    uint32_t service_uid;      /* the service may run as this user, besides root and us */
    const char *tracefs_root;  /* NULL: where tracefs is mounted */
    const char *run_directory; /* of undo logs of ftrace; NULL: no data source is of ftrace */
    const char *sysroot;       /* in front of /proc and /sys, see probes_host; NULL: nothing */
    enum ring_mode mode;       /* how kernel pages are read */
};

int probes_open(struct probes **out, uv_loop_t *loop, const struct probes_options *options, struct error *err);

/* Stops all instances, restores what they changed, ends the connection. */
void probes_close(struct probes *p);

int traced_probes_main(int argc, char **argv);

#endif
