/* Unpacks what xz has packed, all at once. */
#ifndef MERIDIAN_WIRE_UNXZ_H
#define MERIDIAN_WIRE_UNXZ_H

#include "base/error.h"
#include "base/slice.h"

/* Unpacks all of `packed` into mem_alloc()ed memory; errors speak of `what`. -MRD_EFORMAT when it is damaged or cut,
 * -MRD_ELIMIT when more than `max_bytes` come out, or the window that unpacking needs is larger than xz makes it. */
int unxz(struct slice packed, size_t max_bytes, const char *what, uint8_t **bytes, size_t *len, struct error *err);

#endif
