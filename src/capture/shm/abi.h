/* The layout of the memory that a producer shares with the service.
 *
 * N pages; each page: u32 header bitmap (atomic), u32 reserved, then equal chunks. Bits 30:28 of the bitmap are the
 * layout (how many chunks), bits 2i+1:2i the state of chunk i. Each chunk: u32 chunk id, u16 writer id, u16 packet
 * count (bits 0-9) and flags (bits 10-15), then fragments: a varint length and that many bytes. */
#ifndef MERIDIAN_CAPTURE_SHM_ABI_H
#define MERIDIAN_CAPTURE_SHM_ABI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_PAGE_UNIT        4096u
#define SHM_MAX_PAGE_SIZE    32768u /* what the service accepts; the ABI could do 64 KiB */
#define SHM_DEFAULT_PAGE     4096u
#define SHM_DEFAULT_SIZE     (256u * 1024)
#define SHM_MAX_SIZE         (32u << 20)
#define SHM_EMULATION_SIZE   (1u << 20)
#define SHM_PAGE_HEADER      8u
#define SHM_CHUNK_HEADER     8u
#define SHM_LAYOUT_SHIFT     28
#define SHM_LAYOUT_MASK      0x70000000u
#define SHM_CHUNKS_MASK      0x0fffffffu
#define SHM_MAX_CHUNKS       14u
#define SHM_MAX_WRITER_ID    32767u
#define SHM_COUNT_MASK       0x3ffu
#define SHM_MAX_PACKETS      1022u /* per chunk, as written by a producer */
#define SHM_FLAGS_SHIFT      10
#define SHM_DROP_PACKET_SIZE 0x0fffffffu /* a fragment of this length: the writer dropped the packet */

/* At the end of a chunk, behind a packet that was handed over in parts and is finished: its lengths that may not have
 * been sent yet, as many entries as the footer says and then the footer. No fragment reaches so far. Ours alone: others
 * neither write nor read them. */
struct shm_late_length {
    uint32_t chunk_id; /* of the same writer */
    uint32_t offset;   /* in the payload */
    uint8_t bytes[4];
};

struct shm_late_footer {
    _Atomic uint32_t magic; /* SHM_LATE_MAGIC, or something else: none */
    uint32_t n;
};

#define SHM_LATE_MAGIC 0x6c617465u

enum shm_chunk_state { SHM_FREE = 0, SHM_BEING_WRITTEN = 1, SHM_BEING_READ = 2, SHM_COMPLETE = 3 };
enum shm_layout { SHM_UNPARTITIONED = 0, SHM_DIV1 = 1, SHM_DIV2 = 2, SHM_DIV4 = 3, SHM_DIV7 = 4, SHM_DIV14 = 5 };
enum shm_chunk_flags {
    SHM_FIRST_CONTINUES = 1, /* the first fragment continues a packet of the chunk before */
    SHM_LAST_CONTINUES = 2,  /* the last fragment goes on in the next chunk */
    SHM_NEEDS_PATCHING = 4,  /* some length fields will come later */
};

struct shm_page_header {
    _Atomic uint32_t bitmap;
    uint32_t reserved;
};

struct shm_chunk_header {
    _Atomic uint32_t chunk_id;
    _Atomic uint16_t writer_id;
    _Atomic uint16_t packets; /* count and flags */
};

static inline unsigned shm_layout_chunks(uint32_t bitmap)
{
    static const uint8_t counts[8] = {0, 1, 2, 4, 7, 14, 0, 0};
    return counts[(bitmap & SHM_LAYOUT_MASK) >> SHM_LAYOUT_SHIFT];
}

static inline uint32_t shm_chunk_size(uint32_t page_size, unsigned n_chunks)
{
    return (page_size - SHM_PAGE_HEADER) / n_chunks & ~3u;
}

static inline enum shm_chunk_state shm_state(uint32_t bitmap, unsigned chunk)
{
    return (enum shm_chunk_state)(bitmap >> (2 * chunk) & 3);
}

static inline uint32_t shm_with_state(uint32_t bitmap, unsigned chunk, enum shm_chunk_state s)
{
    return (bitmap & ~(3u << (2 * chunk))) | (uint32_t)s << (2 * chunk);
}

static inline struct shm_late_footer *shm_late_footer(const uint8_t *chunk, size_t size)
{
    return (struct shm_late_footer *)((uintptr_t)chunk + size - sizeof(struct shm_late_footer));
}

/* Moves chunk `chunk` from state `from` to `to`; false when it is not in `from`. When the last chunk of a page becomes
 * free, the page loses its layout. */
static inline bool shm_transition(struct shm_page_header *page, unsigned chunk, enum shm_chunk_state from,
                                  enum shm_chunk_state to)
{
    uint32_t old = atomic_load_explicit(&page->bitmap, memory_order_acquire);
    for (unsigned attempt = 0; attempt < 64; attempt++) {
        if (chunk >= shm_layout_chunks(old) || shm_state(old, chunk) != from)
            return false;
        uint32_t want = shm_with_state(old, chunk, to);
        if (to == SHM_FREE && !(want & SHM_CHUNKS_MASK))
            want = 0;
        if (atomic_compare_exchange_strong_explicit(&page->bitmap, &old, want, memory_order_acq_rel,
                                                    memory_order_acquire))
            return true;
    }
    return false;
}

/* A multiple of 4 KiB by a power of two, at most 32 KiB. */
static inline bool shm_page_size_ok(uint32_t page_size)
{
    uint32_t units = page_size / SHM_PAGE_UNIT;
    return page_size && page_size % SHM_PAGE_UNIT == 0 && page_size <= SHM_MAX_PAGE_SIZE && (units & (units - 1)) == 0;
}

#endif
