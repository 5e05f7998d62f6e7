/* ProtoVM: producers that write what has changed instead of their whole state. The recorder hands on, at its end, a
 * program for each such producer and the state that the oldest packet left in the buffers builds on; each packet of the
 * producer (a patch) is then applied to the state, and the whole state imported in its place.
 *
 * Sequences are those of one trace file; what they are, the recorder's TraceProvenance says, in front of ProtoVms. */
#ifndef MERIDIAN_IMPORTER_PROTOVM_PROTOVM_H
#define MERIDIAN_IMPORTER_PROTOVM_PROTOVM_H

#include "importer/core/packet.h"

struct protovms;

/* NULL when out of memory. */
struct protovms *protovms_open(void);
void protovms_close(struct protovms *v);

/* TraceProvenance: which sequences are of which producer. False when out of memory. */
bool protovms_provenance(struct protovms *v, struct slice provenance);

/* ProtoVms: programs, states, and whose packets they serve. Producers without a sequence are counted in
 * stats.protovm_registration_error. False when out of memory. */
bool protovms_add(struct protovms *v, struct machine_ctx *m, struct slice vms, int64_t byte_offset);

/* A packet of this sequence: when it is a patch that a program took, the TracePacket to import in its place, which
 * lasts until the next call; empty when the packet is to be imported as it is. Programs that do not fit are counted in
 * stats.protovm_abort. States of 200 times the bytes of all patches (and 256 MiB) are an import error: what comes then
 * is imported as it is. */
struct slice protovms_apply(struct protovms *v, struct machine_ctx *m, struct slice packet, uint32_t sequence,
                            int64_t byte_offset);

/* trace_provenance and protovms. */
extern const struct packet_handler protovm_early_handlers[];

#endif
