/* Fuzzes the ring of a profiled process, all that is made of its records, and the config of the data source. The first
 * bytes say where the ring begins and how far the process claims to have written. */
#include "capture/heap/heap_session.h"

#include "base/alloc.h"
#include "fuzz.h"
#include "fuzz_packet.h"

#include <unistd.h>

enum { NOT_HERE = 0x400000 /* above pid_max */, HEAD_BYTES = 6 };

static void fill(struct heap_peer *p, const uint8_t *data, size_t size)
{
    uint64_t begin = (uint64_t)(data[0] | data[1] << 8) * 8 % p->ring.bytes;
    uint32_t claimed;
    memcpy(&claimed, data + 2, sizeof claimed);
    p->ring.at = begin;
    p->control->generation = p->profile.first_generation = 1;
    data += HEAD_BYTES;
    size -= HEAD_BYTES;
    size = size < p->ring.bytes ? size : (size_t)p->ring.bytes;
    memcpy(p->ring.data + begin, data, size); /* mapped twice: round the end */
    atomic_store(&p->ring.header->head, begin + (claimed & 1 ? size : claimed));
}

static void read_ring(struct heap_session *s, struct heap_peer *p, bool ended)
{
    for (int i = 0; i < 1000 && !heap_session_read(s, p, ended, true, 1000, INT64_MAX); i++)
        continue;
    uint64_t kept = 0;
    for (size_t i = 0; i < p->profile.book.sites.n; i++) {
        const struct heap_site *x = &p->profile.book.sites.p[i];
        if (x->freed > x->allocated || x->frees > x->allocations)
            __builtin_trap();
        kept += x->allocated - x->freed;
    }
    if (kept != p->profile.book.kept || (!p->profile.broken && heap_reader_waiting(&p->ring) > p->ring.bytes))
        __builtin_trap();
    heap_packets_dump(&s->packets, p, HEAP_DUMP_NOW);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_shared shared = {.kallsyms = -1};
    struct packet_sink sink = {.write = fuzz_packet_is_whole};
    struct heap_control control = {0};
    struct heap_peer p = {.socket = -1, .pid = NOT_HERE, .control = &control};
    struct heap_session *s = mem_zalloc(sizeof *s);
    int fd;
    if (!s || size < HEAD_BYTES || heap_reader_open(&p.ring, HEAP_RING_MIN, &fd, NULL) != 0)
        goto out;
    close(fd);
    heap_config_parse(&s->config, slice_of(data + HEAD_BYTES, size - HEAD_BYTES), NULL);
    heap_session_init(s, &shared, &sink);
    heap_packets_begin(&s->packets);
    fill(&p, data, size);
    read_ring(s, &p, data[0] & 1);
    heap_reader_close(&p.ring);
    heap_book_close(&p.profile.book);
    heap_session_free(s);
    perf_shared_free(&shared);
out:
    mem_free(s);
    return 0;
}
