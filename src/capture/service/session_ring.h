/* A buffer of a session: one ring for all, or one for this machine and one for each other machine.
 *
 * In one ring the chattiest machine decides how far back all of them reach. With rings of their own (the config's
 * buffers.machine_size_kb) each reaches back as far as its own events let it. A ring is made when a machine's first
 * chunk comes, and costs memory as far as it fills; machines beyond SESSION_RINGS_MAX share the first one.
 *
 * Everything else is the trace buffer's: see there for the contracts. */
#ifndef MERIDIAN_CAPTURE_SERVICE_SESSION_RING_H
#define MERIDIAN_CAPTURE_SERVICE_SESSION_RING_H

#include "capture/service/trace_buffer.h"

enum { SESSION_RINGS_MAX = 256 };

struct session_ring;

/* `machine_size`: bytes of the ring of each other machine; 0: they share one of `size`. NULL when memory is out. */
struct session_ring *session_ring_new(size_t size, size_t machine_size, enum trace_buffer_policy policy);
/* As `r`, and empty. */
struct session_ring *session_ring_new_like(const struct session_ring *r);
struct session_ring *session_ring_clone(const struct session_ring *r);
void session_ring_free(struct session_ring *r);

void session_ring_write(struct session_ring *r, const struct trace_chunk *c);
bool session_ring_patch(struct session_ring *r, const struct trace_writer_identity *who, uint32_t chunk_id,
                        const struct trace_patch *patches, size_t n, bool has_more);

bool session_ring_lacks_patches(const struct session_ring *r, const struct trace_writer_identity *who,
                                uint32_t chunk_id);

void session_ring_begin_read(struct session_ring *r, bool final);
bool session_ring_read(struct session_ring *r, struct trace_packet *p);

/* Of all rings together. */
struct trace_buffer_stats session_ring_stats(const struct session_ring *r);
/* The sequence at a place, which moves on, ring by ring, within each in order of (producer, writer); NULL at the end. A
 * zeroed place is the first. */
struct session_ring_place {
    size_t ring, sequence;
};
const struct trace_sequence_stats *session_ring_next(const struct session_ring *r, struct session_ring_place *at);
/* As trace_buffer_unfinished(), of all rings. */
bool session_ring_unfinished(const struct session_ring *r, struct u64map *by_machine);

#endif
