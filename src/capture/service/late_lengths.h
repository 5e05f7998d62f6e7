/* Reads the lengths of a finished packet that a killed producer has left at the end of a chunk (capture/shm/abi.h). */
#ifndef MERIDIAN_CAPTURE_SERVICE_LATE_LENGTHS_H
#define MERIDIAN_CAPTURE_SERVICE_LATE_LENGTHS_H

#include "capture/service/session_ring.h"

/* Writes those of the chunk into what the ring holds of the writer and what still waits for them. The bytes are
 * untrusted and may change meanwhile. `chunk`: at its header. */
void late_lengths_apply(const uint8_t *chunk, size_t size, struct session_ring *ring,
                        const struct trace_writer_identity *who);

#endif
