/* A mapped shared-memory region: made by the service (or a producer), mapped by the other side. */
#ifndef MERIDIAN_CAPTURE_SHM_REGION_H
#define MERIDIAN_CAPTURE_SHM_REGION_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct shm_region {
    uint8_t *p; /* NULL: not mapped */
    size_t size;
    int fd; /* -1: private memory */
};

/* A sealed memfd of `size` bytes, mapped read-write. */
int shm_region_create(struct shm_region *r, size_t size, struct error *err);

/* Private memory with the same layout, for producers that cannot share any. */
int shm_region_private(struct shm_region *r, size_t size, struct error *err);

/* Maps what the other side made; takes `fd` over (also on failure). The size is that of the file. Only a
 * sealed memfd: what could still shrink would kill who looks at it. */
int shm_region_map(struct shm_region *r, int fd, struct error *err);

void shm_region_close(struct shm_region *r);

#endif
