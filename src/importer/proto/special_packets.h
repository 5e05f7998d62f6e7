/* Packets that the reader itself acts on, in file order, before any handler sees the next one. */
#ifndef MERIDIAN_IMPORTER_PROTO_SPECIAL_PACKETS_H
#define MERIDIAN_IMPORTER_PROTO_SPECIAL_PACKETS_H

#include "importer/core/packet.h"

/* ClockSnapshot: into the clock graph and the clock_snapshot table; chooses the trace clock. */
void clock_snapshot_packet(struct packet *p);
/* RemoteClockSync: relates the packet's machine to the host. */
void remote_clock_sync_packet(struct packet *p);
/* TraceStats: every traced_* stat; runs again for each later packet, the last values stay. */
void trace_stats_packet(struct packet *p);
/* MachineLosses (ours): what broken links to the packet's machine lost, as machine_* stats. */
enum tokenize_result machine_losses_packet(struct packet *p);
/* RecordingProblem (ours): what could not be recorded, as recording_* stats and a row of trace_diagnostics. */
enum tokenize_result recording_problem_packet(struct packet *p);
/* TracingServiceEvent: life of the recording as metadata; drives windowed sorting. `clock` is the packet's
 * timestamp_clock_id (0: BOOTTIME), p->ts its raw timestamp. */
void service_event_packet(struct packet *p, uint32_t clock);
/* TraceAttributes: metadata trace_attribute.<key>. */
void trace_attributes_packet(struct packet *p);

/* The two halves of a uuid as metadata has it. */
strid trace_uuid_text(struct importer *im, uint64_t msb, uint64_t lsb);

#endif
