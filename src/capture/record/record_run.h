/* One recording by one command, from its start to its end: the daemons that it needs, other machines, a workload. */
#ifndef MERIDIAN_CAPTURE_RECORD_RECORD_RUN_H
#define MERIDIAN_CAPTURE_RECORD_RECORD_RUN_H

#include "capture/client/perfetto.h"
#include "capture/record/daemons.h"
#include "capture/record/presets.h"
#include "capture/record/ssh_machine.h"
#include "capture/record/workload.h"
#include "wire/pb_writer.h"

struct record {
    const char *name;         /* of the command, in front of what it says */
    const char *needs;        /* the data source that a running service must offer to be used */
    Mrd__TraceConfig *config; /* what every machine records */
    bool perf;                /* the config has linux.perf: traced_perf is needed */
    bool heap;                /* it has android.heapprofd: heapprofd is needed, and the command loads its library */
    uint64_t perf_ms;         /* processor time that our own traced_perf took */
    struct perfetto_options perfetto;
    struct remote_options remote;
    const char *const *targets;
    unsigned n;
    bool no_host, direct;
    bool own;             /* a service of its own does it, whatever runs here */
    bool shared;          /* a service that runs here anyway does it */
    bool timed;           /* the user has said how long */
    char *const *command; /* NULL: none */
    char binary[PATH_MAX + 16];
    uint64_t random;   /* makes names that nobody else has */
    char scratch[32];  /* such a name, for a machine */
    char relay_to[32]; /* where relays connect to, here */
    struct daemons daemons;
    struct presets presets;
    struct workload workload;
    struct remote remotes[REMOTES_MAX];
    unsigned n_remotes; /* started */
    bool say_next;      /* what to do with the trace */
    char *own_sources;  /* memory of perfetto.sources, for who makes them */
    bool recorded;      /* the trace is there, and not empty */
    bool nothing;       /* of what was asked for has started */
};

/* Records. `choose` says what, once it is known who does it (r->shared): it fills r->perfetto. The exit status; r is to
 * be freed with record_free() then. */
int record_run(struct record *r, int (*choose)(struct record *r, const void *flags, struct error *err),
               const void *flags);
void record_free(struct record *r);

/* For `choose`: the text in `w`, with a NUL, is the data sources, beside the standard ones. It is the record's then, or
 * gone. */
int record_own_sources(struct record *r, struct pb_writer *w, struct error *err);

/* What is wrong with the machines of a command line; NULL: nothing. */
const char *record_check_machines(const struct text_list *machines, bool no_host);

#endif
