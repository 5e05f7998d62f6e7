/* Reads records out of a ring that a process writes. */
#include "capture/heap/heap_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int map_ring(struct heap_reader *r, int fd, struct error *err)
{
    void *header = mmap(NULL, HEAP_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        return error_set_errno(err, errno, "mapping a ring");
    r->header = header;
    uint8_t *at = mmap(NULL, 2 * r->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return error_set_errno(err, errno, "mapping a ring");
    r->data = at;
    for (unsigned i = 0; i < 2; i++)
        if (mmap(at + i * r->bytes, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, HEAP_HEADER_BYTES) ==
            MAP_FAILED)
            return error_set_errno(err, errno, "mapping a ring");
    return 0;
}

int heap_reader_open(struct heap_reader *r, uint64_t bytes, int *fd, struct error *err)
{
    *r = (struct heap_reader){.bytes = bytes};
    *fd = memfd_create("meridian-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return error_set_errno(err, errno, "making a ring");
    int rc = 0;
    if (ftruncate(*fd, (off_t)(HEAP_HEADER_BYTES + bytes)) != 0 ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        rc = error_set_errno(err, errno, "making a ring");
    if (!rc)
        rc = map_ring(r, *fd, err);
    if (rc) {
        close(*fd);
        *fd = -1;
        heap_reader_close(r);
    }
    return rc;
}

void heap_reader_close(struct heap_reader *r)
{
    if (r->header)
        munmap(r->header, HEAP_HEADER_BYTES);
    if (r->data)
        munmap(r->data, 2 * r->bytes);
    *r = (struct heap_reader){0};
}

uint64_t heap_reader_waiting(const struct heap_reader *r)
{
    return r->header ? atomic_load_explicit(&r->header->head, memory_order_acquire) - r->at : 0;
}

/* The fields of the copy. */
static bool read_entry(const uint8_t *scratch, uint64_t size, struct heap_entry *e)
{
    struct heap_sample x;
    memcpy(&x.head, scratch, sizeof x.head);
    *e = (struct heap_entry){.kind = x.head.kind, .generation = x.head.generation, .address = x.head.address};
    if (e->kind == HEAP_FREED)
        return size == sizeof x.head;
    if (e->kind != HEAP_ALLOCATED || size < sizeof x)
        return false;
    memcpy(&x, scratch, sizeof x);
    e->weight = x.weight;
    e->regs = scratch + offsetof(struct heap_sample, regs);
    e->stack = slice_of(scratch + sizeof x, (size_t)x.stack_bytes);
    return x.stack_bytes == size - sizeof x;
}

enum heap_peek heap_reader_peek(struct heap_reader *r, bool ended, uint8_t *scratch, struct heap_entry *entry)
{
    for (;;) {
        uint64_t waiting = heap_reader_waiting(r);
        if (!waiting)
            return HEAP_PEEK_NONE;
        if (waiting > r->bytes)
            return HEAP_PEEK_BROKEN;
        const uint8_t *at = r->data + (r->at & (r->bytes - 1));
        uint64_t word = atomic_load_explicit(&((const struct heap_head *)(const void *)at)->size, memory_order_acquire);
        uint64_t size = word & ~(uint64_t)7;
        if (!word) { /* reserved, no more; of a process that has ended there is no knowing where the next one begins */
            r->size_here = waiting;
            return ended ? HEAP_PEEK_GAP : HEAP_PEEK_NONE;
        }
        if (size < sizeof(struct heap_head) || size > waiting || size > HEAP_RECORD_MAX)
            return HEAP_PEEK_BROKEN;
        r->size_here = size;
        if (!(word & HEAP_WRITTEN))
            return ended ? HEAP_PEEK_GAP : HEAP_PEEK_NONE;
        if (!(word & HEAP_VOID)) {
            memcpy(scratch, at, (size_t)size);
            return read_entry(scratch, size, entry) ? HEAP_PEEK_ENTRY : HEAP_PEEK_BROKEN;
        }
        heap_reader_pass(r);
    }
}

void heap_reader_pass(struct heap_reader *r)
{
    memset(r->data + (r->at & (r->bytes - 1)), 0, (size_t)r->size_here);
    r->at += r->size_here;
    atomic_store_explicit(&r->header->tail, r->at, memory_order_release);
}
