/* Puts the last lengths of a killed producer where they belong. */
#include "capture/service/late_lengths.h"

#include "base/alloc.h"
#include "capture/shm/abi.h"

#include <string.h>

/* Entries from i on that are of the same chunk. */
static size_t run_of(const struct shm_late_length *l, size_t n, size_t i)
{
    size_t k = i + 1;
    while (k < n && l[k].chunk_id == l[i].chunk_id)
        k++;
    return k - i;
}

static void apply(const struct shm_late_length *l, size_t n, struct trace_patch *patches, struct session_ring *ring,
                  const struct trace_writer_identity *who)
{
    for (size_t i = 0, run; i < n; i += run) {
        run = run_of(l, n, i);
        if (!session_ring_lacks_patches(ring, who, l[i].chunk_id)) /* they have been sent, too */
            continue;
        for (size_t k = 0; k < run; k++) {
            patches[k].offset = l[i + k].offset;
            memcpy(patches[k].bytes, l[i + k].bytes, sizeof patches[k].bytes);
        }
        session_ring_patch(ring, who, l[i].chunk_id, patches, run, false);
    }
}

void late_lengths_apply(const uint8_t *chunk, size_t size, struct session_ring *ring,
                        const struct trace_writer_identity *who)
{
    if (size < SHM_CHUNK_HEADER + sizeof(struct shm_late_footer))
        return;
    const struct shm_late_footer *footer = shm_late_footer(chunk, size);
    if (atomic_load_explicit(&footer->magic, memory_order_acquire) != SHM_LATE_MAGIC)
        return;
    size_t n = *(const volatile uint32_t *)&footer->n, room = size - SHM_CHUNK_HEADER - sizeof *footer;
    if (!n || n > room / sizeof(struct shm_late_length))
        return;
    struct shm_late_length *l = mem_alloc(n * sizeof *l);
    struct trace_patch *patches = mem_alloc(n * sizeof *patches);
    if (l && patches) {
        memcpy(l, (const uint8_t *)footer - n * sizeof *l, n * sizeof *l);
        apply(l, n, patches, ring, who);
    }
    mem_free(patches);
    mem_free(l);
}
