/* Checks a packet that came out of a buffer before it goes into a trace. */
#ifndef MERIDIAN_CAPTURE_SERVICE_PACKET_CHECK_H
#define MERIDIAN_CAPTURE_SERVICE_PACKET_CHECK_H

#include "base/slice.h"

/* True when the bytes, in `n` pieces, are a well-formed message on the top level and hold no field that only the
 * service may write: who sent it, which sequence it is of, and what the service says in its own name. */
bool packet_check(const struct slice *pieces, size_t n);

#endif
