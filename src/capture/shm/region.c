/* Makes and maps shared memory. */
#include "capture/shm/region.h"

#include "capture/shm/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map_fd(struct shm_region *r, int fd, size_t size, struct error *err)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int rc = error_set_errno(err, errno, "cannot map %zu bytes of shared memory", size);
        close(fd);
        return rc;
    }
    *r = (struct shm_region){p, size, fd};
    return 0;
}

int shm_region_create(struct shm_region *r, size_t size, struct error *err)
{
    *r = (struct shm_region){.fd = -1};
    int fd = memfd_create("perfetto_shmem", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot create shared memory");
    if (ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        int rc = error_set_errno(err, errno, "cannot size shared memory");
        close(fd);
        return rc;
    }
    return map_fd(r, fd, size, err);
}

int shm_region_private(struct shm_region *r, size_t size, struct error *err)
{
    *r = (struct shm_region){.fd = -1};
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return error_set_errno(err, errno, "cannot map %zu bytes", size);
    r->p = p;
    r->size = size;
    return 0;
}

int shm_region_map(struct shm_region *r, int fd, struct error *err)
{
    struct stat st;
    *r = (struct shm_region){.fd = -1};
    if (fstat(fd, &st) != 0 || st.st_size <= 0 || (uint64_t)st.st_size > SHM_MAX_SIZE) {
        close(fd);
        return error_set(err, -MRD_EFORMAT, "the size of the shared memory is invalid");
    }
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        close(fd);
        return error_set(err, -MRD_EDENIED, "the shared memory is not sealed");
    }
    return map_fd(r, fd, (size_t)st.st_size, err);
}

void shm_region_close(struct shm_region *r)
{
    if (r->p) {
        munmap(r->p, r->size);
        if (r->fd >= 0)
            close(r->fd);
    }
    *r = (struct shm_region){.fd = -1};
}
