/* Measures the trace buffer alone: bytes per CPU second through it, chunks per second, for several chunk sizes;
 * written, read back and checked as the service does. And the same through a trace writer.
 *
 *     bench_buffer [MEGABYTES]        default 2000 */
#include "capture/service/batch.h"
#include "capture/service/packet_check.h"
#include "capture/service/trace_buffer.h"
#include "capture/shm/trace_writer.h"
#include "wire/pb_cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Fills `payload` with packets of 60 bytes; returns how many. */
static uint16_t fill(uint8_t *payload, size_t size)
{
    uint16_t n = 0;
    for (size_t at = 0; at + 61 <= size && n < SHM_MAX_PACKETS; at += 61, n++) {
        payload[at] = 60;
        payload[at + 1] = 0x5a;
        payload[at + 2] = 58;
        for (int i = 0; i < 58; i++)
            payload[at + 3 + (size_t)i] = (uint8_t)(i + n);
    }
    return n;
}

static void bench_chunks(size_t chunk_size, uint64_t total, bool read)
{
    static uint8_t payload[32768];
    struct trace_buffer *b = trace_buffer_new(64u << 20, TRACE_BUFFER_RING);
    struct trace_packet p = {0};
    struct batch batch = {0};
    uint16_t n = fill(payload, chunk_size - 8);
    uint64_t bytes = 0, chunks = 0, out = 0;
    double start = cpu_seconds();
    while (bytes < total) {
        struct trace_chunk c = {
            .who = {.producer_id = (uint16_t)(1 + chunks % 8), .writer_id = (uint16_t)(1 + chunks % 16)},
            .chunk_id = (uint32_t)(chunks / 16),
            .num_fragments = n,
            .complete = true,
            .payload = slice_of(payload, chunk_size - 8)};
        trace_buffer_write(b, &c);
        bytes += chunk_size;
        chunks++;
        if (!read || chunks * chunk_size % (32u << 20) >= chunk_size)
            continue;
        trace_buffer_begin_read(b, false);
        while (trace_buffer_read(b, &p)) {
            if (!packet_check(p.slices.p, p.slices.n))
                abort();
            batch_add(&batch, p.slices.p, p.slices.n, slice_of("\x18\0\x50\2", 4));
            if (batch.bytes.n > 1u << 20) {
                out += batch.bytes.n;
                batch_clear(&batch);
            }
        }
    }
    double t = cpu_seconds() - start;
    printf("chunks of %5zu bytes, %s: %7.0f MB/s, %9.0f chunks/s\n", chunk_size,
           read ? "written and read" : "written only    ", (double)bytes / t / 1e6, (double)chunks / t);
    vec_free(&p.slices);
    batch_free(&batch);
    trace_buffer_free(b);
    (void)out;
}

static void nothing(void *ctx, bool urgent)
{
    (void)ctx;
    (void)urgent;
}

static void never(void *ctx)
{
    (void)ctx;
}

/* A trace writer into shared memory, its commits applied as the service would. */
static void bench_writer(uint64_t total)
{
    static const struct shm_arbiter_ops ops = {nothing, never};
    struct shm_region region;
    struct error err;
    if (shm_region_private(&region, 256 * 1024, &err))
        return;
    uint8_t *base = region.p;
    struct shm_arbiter *a = shm_arbiter_new(&region, 4096, false, SHM_DIV1, &ops, NULL);
    struct trace_writer *w = trace_writer_new(a, 1, SHM_DROP);
    struct trace_buffer *b = trace_buffer_new(64u << 20, TRACE_BUFFER_RING);
    struct pb_writer commit = {0};
    uint64_t bytes = 0, packets = 0;
    double start = cpu_seconds();
    while (bytes < total) {
        for (int i = 0; i < 200; i++, packets++) {
            trace_writer_begin_packet(w);
            trace_writer_varint(w, 8, 1234567890123u + packets);
            trace_writer_begin(w, 11);
            trace_writer_varint(w, 9, 1);
            trace_writer_varint(w, 11, 77);
            trace_writer_str(w, 23, "a slice with a name");
            trace_writer_end(w);
            bytes += trace_writer_packet_bytes(w);
            trace_writer_end_packet(w);
        }
        pb_writer_clear(&commit);
        if (shm_arbiter_next_commit(a, &commit) != SHM_IPC_COMMIT)
            continue;
        struct pb_cursor c = pb_cursor(pb_written(&commit));
        struct pb_field f, g;
        while (pb_next(&c, &f)) {
            if (f.id != 1 || !pb_find(pb_bytes(&f), 1, &g))
                continue;
            uint8_t *page = base + g.u * 4096;
            const struct shm_chunk_header *h = (const void *)(page + SHM_PAGE_HEADER);
            struct trace_chunk t = {.who = {.producer_id = 1, .writer_id = h->writer_id},
                                    .chunk_id = h->chunk_id,
                                    .num_fragments = h->packets & SHM_COUNT_MASK,
                                    .flags = (uint8_t)(h->packets >> SHM_FLAGS_SHIFT),
                                    .complete = true,
                                    .payload = slice_of(page + 16, 4096 - 16)};
            trace_buffer_write(b, &t);
            shm_transition((void *)page, 0, SHM_COMPLETE, SHM_FREE);
        }
    }
    double t = cpu_seconds() - start;
    printf("trace writer to buffer: %7.0f MB/s, %9.0f packets/s, %llu dropped\n", (double)bytes / t / 1e6,
           (double)packets / t, (unsigned long long)w->stats.dropped);
    trace_writer_free(w);
    shm_arbiter_unref(a);
    pb_writer_free(&commit);
    trace_buffer_free(b);
}

int main(int argc, char **argv)
{
    uint64_t total = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2000) * 1000000;
    static const size_t sizes[] = {256, 1024, 4096, 16384, 32768};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bench_chunks(sizes[i], total, false);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bench_chunks(sizes[i], total, true);
    bench_writer(total / 4);
    return 0;
}
