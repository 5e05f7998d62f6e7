/* Separate recordings and loaded together: the clock of each, related by the packets that they exchanged.
 *
 * Whoever reads a recording adds it and its packets before anything of it is converted. Solving matches the packets of
 * all and gives every recording a map to the reference of its group; the maps go into the clock graph, the figures into
 * clock_sync, clock_sync_pair and clock_sync_point. */
#ifndef MERIDIAN_IMPORTER_CLOCK_RECORDINGS_H
#define MERIDIAN_IMPORTER_CLOCK_RECORDINGS_H

#include "importer/clock/clock_graph.h"
#include "importer/core/context.h"
#include "importer/sync/sync_session.h"

/* Adds a recording; its number goes to *number. The name is what --reference chooses it by. -MRD_ENOMEM, -MRD_ELIMIT.
 */
int recordings_add(struct importer *im, const char *name, uint32_t *number);

/* A packet that it saw, at a time of its own clock. */
int recordings_packet(struct importer *im, uint32_t number, enum packet_direction direction, int64_t ts,
                      struct packet_key key);

/* After all packets: matches and solves. Nothing happens when there is one recording only. `preferred` is the reference
 * unless the user has named one; SYNC_NO_HOST leaves it to the least total error. */
int recordings_solve(struct importer *im, int preferred);
/* An error when the user named a reference that is none of the hosts. */
int recordings_check_reference(const struct importer *im, struct error *err);

/* Whether packets relate it to another one. */
bool recordings_related(const struct importer *im, uint32_t number);

/* Its machine and the clock that its packets' times are of. */
void recordings_place(struct importer *im, uint32_t number, uint32_t machine, struct clock_id clock);

/* Once all are placed: the clock of the reference becomes trace time, the others are joined to it, the tables are
 * written. Recordings that nothing joins to the reference are left as they are, and logged. */
int recordings_relate(struct importer *im);

/* The largest error of a trace time on a machine that is a recording's. 0; -MRD_ENOTFOUND when it is none that packets
 * relate to another; -MRD_ELIMIT when nothing is proven. */
int recordings_error(const struct importer *im, uint32_t machine, int64_t trace_ns, int64_t *error_ns);

/* After everything is read: machines that say no more of themselves than their system's name get their recording's. */
void recordings_name_machines(struct importer *im);

void recordings_close(struct importer *im);

#endif
