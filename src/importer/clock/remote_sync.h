/* Relates the clocks of remote machines to the host's by the rounds of RemoteClockSync.
 *
 * Compatible model: one constant offset a clock, the average over the rounds of a packet, bit for bit. Linear model:
 * all rounds of a machine together make a clock_line. A line needs all rounds before the first event is converted, so
 * they are looked for in the file beforehand (remote_sync_note()); where that cannot be done (a pipe, packets inside
 * compressed ones) packets of remote machines wait for the end of the file. */
#ifndef MERIDIAN_IMPORTER_CLOCK_REMOTE_SYNC_H
#define MERIDIAN_IMPORTER_CLOCK_REMOTE_SYNC_H

#include "importer/clock/clock_graph.h"
#include "importer/clock/clock_line.h"
#include "importer/core/context.h"

enum { CLOCK_ROUND_MAX = 16 /* clocks in one reading; the services send seven */ };

/* One exchange: the client's clocks as it sent, the host's as it received. Machine rows are filled in on use. */
struct clock_round {
    struct clock_reading client[CLOCK_ROUND_MAX];
    struct clock_reading host[CLOCK_ROUND_MAX];
    size_t n_client;
    size_t n_host;
    uint32_t source_period; /* of the two kernels' clock sources; 0: unknown */
    bool first;             /* of its packet */
    bool extra;             /* our service's own: not for averages */
};

struct clock_rounds {
    struct clock_round *p;
    size_t n;
    size_t cap;
};

struct remote_sync;

struct remote_sync *remote_sync_open(struct importer *im); /* NULL when out of memory */
void remote_sync_close(struct remote_sync *s);

/* Looking ahead: the payload of a RemoteClockSync of machine `raw_id`, in file order. Then remote_sync_known() says
 * that none was missed, or that it cannot be told: then what was noted is forgotten. */
void remote_sync_note(struct remote_sync *s, uint64_t raw_id, struct slice payload);
void remote_sync_known(struct remote_sync *s, bool known);

/* A machine row has been made. */
void remote_sync_machine(struct remote_sync *s, struct machine_ctx *m);

/* A RemoteClockSync in its turn. */
void remote_sync_packet(struct remote_sync *s, struct machine_ctx *m, struct slice payload);

/* A machine whose clock starts anew under the same id is a machine of its own from then on: its processes are others
 * too. The context of the boot that a TracePacket of machine `m` is of: told by its sequence, which ends with the boot,
 * and for the first packet of a sequence by the time in it. NULL when there is no room for another machine. */
struct machine_ctx *remote_sync_boot(struct remote_sync *s, struct machine_ctx *m, uint32_t sequence,
                                     struct slice packet);

/* Whether packets of this machine wait for the end of the file. */
bool remote_sync_waits(const struct remote_sync *s, const struct machine_ctx *m);

/* The end of the file: nothing waits any more. */
void remote_sync_end_file(struct remote_sync *s);

/* After the last file: rows of clock_sync, stats. */
void remote_sync_finish(struct remote_sync *s);

/* The machine that another was compared with; itself when it was not compared. */
uint32_t remote_sync_host(const struct remote_sync *s, uint32_t machine);

/* For SQL. The bound of the error of `trace_ns` on a machine; false when nothing is proven. The host's error is 0. */
bool remote_sync_error(const struct remote_sync *s, uint32_t machine, int64_t trace_ns, int64_t *error_ns);

#endif
