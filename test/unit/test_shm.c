/* Tests the producer's side of the shared memory: what trace writers write comes out of a trace buffer as it went in,
 * for every layout, over shared and over emulated memory, with and without losses. */
#include "capture/ipc/ports.h"
#include "capture/service/late_lengths.h"
#include "capture/shm/chunk.h"
#include "capture/shm/trace_writer.h"
#include "wire/pb_cursor.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

/* The service's half, in a few lines: applies the commits to a buffer. */
struct service {
    struct shm_arbiter *a;
    uint8_t *base;
    size_t size;
    uint32_t page_size;
    bool emulated, frozen; /* frozen: does not get to run */
    struct trace_buffer *b;
    unsigned commits, registered, moved;
    uint64_t acknowledged;
    sem_t wanted; /* by threads that write: a commit */
    atomic_uint threads_done;
};

static struct trace_chunk chunk_of(const uint8_t *chunk, size_t size)
{
    uint32_t id;
    uint16_t writer, packets;
    memcpy(&id, chunk, 4);
    memcpy(&writer, chunk + 4, 2);
    memcpy(&packets, chunk + 6, 2);
    return (struct trace_chunk){.who = {.producer_id = 1, .writer_id = writer},
                                .chunk_id = id,
                                .num_fragments = packets & SHM_COUNT_MASK,
                                .flags = (uint8_t)(packets >> SHM_FLAGS_SHIFT),
                                .complete = true,
                                .payload = slice_of(chunk + SHM_CHUNK_HEADER, size - SHM_CHUNK_HEADER)};
}

static void store(struct service *s, const uint8_t *chunk, size_t size)
{
    struct trace_chunk c = chunk_of(chunk, size);
    trace_buffer_write(s->b, &c);
}

/* The fragments of a chunk, as its writer counts them, end where shm_chunk_filled() finds their end. */
static void check_filled(const uint8_t *chunk, size_t size, size_t filled)
{
    uint16_t packets;
    memcpy(&packets, chunk + 6, 2);
    ck_assert_uint_le(filled, size);
    ck_assert_uint_eq(shm_chunk_filled(chunk, size, packets & SHM_COUNT_MASK), filled);
    ck_assert_uint_eq(shm_chunk_filled(chunk, filled, packets & SHM_COUNT_MASK), filled);
    if (filled > SHM_CHUNK_HEADER) /* a length that leads beyond the end: the whole of it, for the reader to count */
        ck_assert_uint_eq(shm_chunk_filled(chunk, filled - 1, packets & SHM_COUNT_MASK), filled - 1);
}

static void apply_move(struct service *s, struct slice entry)
{
    struct pb_field page, chunk, data, filled;
    ck_assert(pb_find(entry, 1, &page));
    ck_assert(pb_find(entry, 2, &chunk));
    if (s->emulated) {
        ck_assert(pb_find(entry, 4, &data));
        uint16_t packets;
        memcpy(&packets, data.p + 6, 2);
        ck_assert_uint_le(data.u - shm_chunk_filled(data.p, (size_t)data.u, packets & SHM_COUNT_MASK), 3);
        store(s, data.p, (size_t)data.u);
        return;
    }
    struct shm_page_header *h = (void *)(s->base + page.u * s->page_size);
    ck_assert(shm_transition(h, (unsigned)chunk.u, SHM_COMPLETE, SHM_BEING_READ));
    uint32_t size = shm_chunk_size(s->page_size, shm_layout_chunks(h->bitmap));
    const uint8_t *bytes = (uint8_t *)h + SHM_PAGE_HEADER + chunk.u * size;
    ck_assert(pb_find(entry, MOVE_FIELD_FILLED, &filled));
    check_filled(bytes, size, (size_t)filled.u);
    store(s, bytes, (size_t)filled.u);
    ck_assert(shm_transition(h, (unsigned)chunk.u, SHM_BEING_READ, SHM_FREE));
}

static void apply_patches(struct service *s, struct slice entry)
{
    struct pb_field writer, chunk, more, f, g;
    ck_assert(pb_find(entry, 2, &writer));
    ck_assert(pb_find(entry, 3, &chunk));
    bool has_more = pb_find(entry, 5, &more) && more.u;
    struct trace_patch patches[1024];
    size_t n = 0;
    for (struct pb_cursor c = pb_cursor(entry); pb_next(&c, &f);) {
        if (f.id != 4)
            continue;
        ck_assert(pb_find(pb_bytes(&f), 1, &g));
        patches[n].offset = (uint32_t)g.u;
        ck_assert(pb_find(pb_bytes(&f), 2, &g));
        ck_assert_uint_eq(g.u, 4);
        memcpy(patches[n++].bytes, g.p, 4);
    }
    ck_assert(trace_buffer_patch(s->b, 1, (uint16_t)writer.u, (uint32_t)chunk.u, patches, n, has_more));
}

/* Takes one IPC; false: there is none. */
static bool take_one(struct service *s)
{
    struct pb_writer w = {0};
    struct pb_field f;
    enum shm_ipc kind = shm_arbiter_next_commit(s->a, &w);
    ck_assert(!w.failed);
    ck_assert_uint_le(w.n, 128 * 1024 - 512);
    s->registered += kind == SHM_IPC_REGISTER_WRITER;
    s->commits += kind == SHM_IPC_COMMIT;
    for (struct pb_cursor c = pb_cursor(pb_written(&w)); kind == SHM_IPC_COMMIT && pb_next(&c, &f);) {
        if (f.id == 1)
            apply_move(s, pb_bytes(&f));
        else if (f.id == 2)
            apply_patches(s, pb_bytes(&f));
        else if (f.id == 3)
            s->acknowledged = f.u;
        s->moved += f.id == 1;
    }
    pb_writer_free(&w);
    return kind != SHM_IPC_NONE;
}

static void pump(struct service *s)
{
    while (!s->frozen && take_one(s))
        continue;
}

static void on_wake(void *ctx, bool urgent)
{
    if (urgent)
        pump(ctx);
}

static void on_stalled(void *ctx)
{
    pump(ctx);
}

static const struct shm_arbiter_ops ops = {on_wake, on_stalled};

static void open_service_with(struct service *s, size_t size, uint32_t page_size, bool emulated, enum shm_layout layout,
                              const struct shm_arbiter_ops *with)
{
    struct shm_region region;
    struct error err;
    *s = (struct service){.size = size, .page_size = page_size, .emulated = emulated};
    ck_assert_int_eq(emulated ? shm_region_private(&region, size, &err) : shm_region_create(&region, size, &err), 0);
    s->base = region.p;
    sem_init(&s->wanted, 0, 0);
    s->a = shm_arbiter_new(&region, page_size, emulated, layout, with, s);
    s->b = trace_buffer_new(64u << 20, TRACE_BUFFER_RING);
}

static void open_service(struct service *s, size_t size, uint32_t page_size, bool emulated, enum shm_layout layout)
{
    open_service_with(s, size, page_size, emulated, layout, &ops);
}

static void close_service(struct service *s)
{
    shm_arbiter_shut(s->a);
    shm_arbiter_unref(s->a);
    trace_buffer_free(s->b);
    sem_destroy(&s->wanted);
}

/* Packet n: its number, a nested message of two levels, a string of `size` bytes. */
static void write_packet(struct trace_writer *w, uint32_t n, size_t size)
{
    static _Thread_local char text[300000];
    memset(text, 'a' + (int)(n % 26), size);
    trace_writer_begin_packet(w);
    trace_writer_varint(w, 8, n);
    trace_writer_begin(w, 11);
    trace_writer_fixed64(w, 4, n * 3);
    trace_writer_begin(w, 5);
    uint8_t *p = trace_writer_reserve(w, 12), *q = p;
    *q++ = 1 << 3;
    q += pb_encode_varint(q, n + 1);
    trace_writer_commit(w, q);
    trace_writer_bytes(w, 2, text, size);
    trace_writer_end(w);
    trace_writer_fixed32(w, 6, n);
    trace_writer_end(w);
    trace_writer_end_packet(w);
}

/* The number of a packet that must be well-formed down to the last byte. `size_of` may be NULL. */
static uint32_t check_packet(const struct trace_packet *p, size_t (*size_of)(uint32_t n))
{
    struct pb_writer whole = {0};
    struct pb_field f, m;
    for (size_t i = 0; i < p->slices.n; i++)
        pb_put_raw(&whole, p->slices.p[i].p, p->slices.p[i].len);
    ck_assert(pb_find(pb_written(&whole), 8, &f));
    uint32_t n = (uint32_t)f.u;
    ck_assert(pb_find(pb_written(&whole), 11, &m));
    struct slice message = pb_bytes(&m);
    ck_assert(pb_find(message, 4, &f));
    ck_assert_uint_eq(f.u, n * 3);
    ck_assert(pb_find(message, 6, &f));
    ck_assert_uint_eq(f.u, n);
    ck_assert(pb_find(message, 5, &m));
    ck_assert(pb_find(pb_bytes(&m), 1, &f));
    ck_assert_uint_eq(f.u, n + 1);
    ck_assert(pb_find(pb_bytes(&m), 2, &f));
    if (size_of)
        ck_assert_uint_eq(f.u, size_of(n));
    bool same = true; /* an assertion a byte would be a system call a byte */
    for (size_t i = 0; i < f.u; i++)
        same &= f.p[i] == 'a' + n % 26;
    ck_assert(same);
    pb_writer_free(&whole);
    return n;
}

static size_t small(uint32_t n)
{
    return n * 37 % 300;
}
static size_t large(uint32_t n)
{
    return n % 7 ? n * 997 % 9000 : 20000 + n % 5 * 50000;
}

static size_t size_of_all;
static size_t one_size(uint32_t n)
{
    (void)n;
    return size_of_all;
}

static const struct {
    enum shm_layout layout;
    uint32_t page_size;
    bool emulated;
    size_t (*size_of)(uint32_t n);
} kinds[] = {
    {SHM_DIV1, 4096, false, small},  {SHM_DIV2, 4096, false, small},          {SHM_DIV4, 8192, false, small},
    {SHM_DIV7, 4096, false, small},  {SHM_DIV14, 4096, false, small},         {SHM_DIV14, 32768, false, small},
    {SHM_DIV1, 32768, false, large}, {SHM_DIV14, 4096, false, large},         {SHM_DIV1, 4096, true, small},
    {SHM_DIV1, 32768, true, large},  {SHM_UNPARTITIONED, 4096, false, small},
};

START_TEST(packets_come_out_as_they_went_in)
{
    struct service s;
    struct trace_writer *w[4];
    struct trace_packet p = {0};
    open_service(&s, 256 * 1024, kinds[_i].page_size, kinds[_i].emulated, kinds[_i].layout);
    for (unsigned i = 0; i < 4; i++)
        w[i] = trace_writer_new(s.a, 1, SHM_STALL_THEN_DROP);
    for (uint32_t n = 0; n < 800; n++)
        write_packet(w[n % 4], n, kinds[_i].size_of(n));
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(w[i]->stats.dropped, 0);
        ck_assert_uint_eq(w[i]->stats.packets, 200);
        trace_writer_free(w[i]);
    }
    shm_arbiter_ack_flush(s.a, 9);
    pump(&s);
    ck_assert_uint_eq(s.registered, 4);
    ck_assert_uint_eq(s.acknowledged, 9);
    uint32_t next[5] = {0}, count = 0;
    trace_buffer_begin_read(s.b, false);
    while (trace_buffer_read(s.b, &p)) {
        uint32_t n = check_packet(&p, kinds[_i].size_of), writer = p.who.writer_id;
        ck_assert_uint_eq(n, next[writer] * 4 + writer - 1);
        ck_assert_uint_eq(p.loss, next[writer] ? 0 : LOSS_PRESENT);
        next[writer]++;
        count++;
    }
    ck_assert_uint_eq(count, 800);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->abi_violations, 0);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

/* What the service finds in the memory of a process that is gone: each chunk that is complete, or whose last fragment
 * is whole. */
static void take_over(struct service *s)
{
    for (size_t page = 0; page < 64; page++) {
        struct shm_page_header *h = (void *)(s->base + page * s->page_size);
        if (shm_state(h->bitmap, 0) == SHM_FREE)
            continue;
        uint8_t *bytes = (uint8_t *)h + SHM_PAGE_HEADER;
        size_t size = shm_chunk_size(s->page_size, 1);
        uint16_t packets;
        memcpy(&packets, bytes + 6, 2);
        size_t filled = shm_chunk_filled(bytes, size, packets & SHM_COUNT_MASK);
        ck_assert_uint_lt(filled, size);
        store(s, bytes, filled);
    }
}

/* What it finds there of packets that were handed over in parts, too: the memory as it is now, in a ring of its own. */
static struct session_ring *ring_of_the_dead(struct service *s)
{
    struct session_ring *ring = session_ring_new(4u << 20, 0, TRACE_BUFFER_RING);
    for (int lengths = 0; lengths < 2; lengths++)
        for (size_t page = 0; page < s->size / s->page_size; page++) {
            struct shm_page_header *h = (void *)(s->base + page * s->page_size);
            uint8_t *bytes = (uint8_t *)h + SHM_PAGE_HEADER;
            size_t size = shm_chunk_size(s->page_size, 1);
            if (shm_state(h->bitmap, 0) == SHM_FREE)
                continue;
            struct trace_chunk c = chunk_of(bytes, size);
            if (lengths)
                late_lengths_apply(bytes, size, ring, &c.who);
            else if (c.num_fragments)
                session_ring_write(ring, &c);
        }
    return ring;
}

/* Packets beyond TRACE_WRITER_MAX_KEPT chunks, and shorter ones where chunks are scarce: nothing that is sent comes. */
START_TEST(a_packet_that_was_handed_over_in_parts_is_whole_in_the_memory)
{
    static const struct {
        size_t size, step;
        unsigned others;
    } kinds_of_packets[] = {{66000, 997, 0}, {150000, 4093, 0}, {3000, 41, 80}, {9000, 173, 80}};
    enum { PAGES = 256, PACKETS = 60 };
    struct service s;
    struct trace_writer *others[PAGES];
    struct trace_packet p = {0};
    open_service(&s, PAGES * 4096, 4096, false, SHM_DIV1);
    for (unsigned i = 0; i < kinds_of_packets[_i].others; i++)
        write_packet(others[i] = trace_writer_new(s.a, 1, SHM_DROP), 0, 10);
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_DROP);
    for (uint32_t n = 0; n < PACKETS; n++) {
        s.frozen = true;
        size_of_all = kinds_of_packets[_i].size + n * kinds_of_packets[_i].step % 5000;
        write_packet(w, n, size_of_all);
        struct session_ring *ring = ring_of_the_dead(&s);
        bool found = false;
        session_ring_begin_read(ring, true);
        while (session_ring_read(ring, &p))
            if (p.who.writer_id == w->writer_id)
                found = check_packet(&p, NULL) == n;
        ck_assert_msg(found, "packet %u of %zu bytes is not there", n, size_of_all);
        ck_assert_uint_eq(session_ring_stats(ring).patches_failed, 0);
        session_ring_free(ring);
        s.frozen = false;
        pump(&s);
    }
    trace_writer_free(w);
    for (unsigned i = 0; i < kinds_of_packets[_i].others; i++)
        trace_writer_free(others[i]);
    pump(&s);
    uint32_t next = 0;
    trace_buffer_begin_read(s.b, true);
    while (trace_buffer_read(s.b, &p))
        if (p.who.writer_id == kinds_of_packets[_i].others + 1)
            ck_assert_uint_eq(check_packet(&p, NULL), next++);
    ck_assert_uint_eq(next, PACKETS);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->abi_violations, 0);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

/* A footer may say anything. */
START_TEST(late_lengths_are_not_believed)
{
    static const uint32_t counts[] = {0, 1, 2, 341, 342, 0x15555556, 0x80000000, UINT32_MAX};
    static _Alignas(8) uint8_t chunk[4088];
    struct trace_writer_identity who = {.producer_id = 1, .writer_id = 1};
    struct session_ring *ring = session_ring_new(1u << 20, 0, TRACE_BUFFER_RING);
    struct trace_chunk c = {.who = who, .num_fragments = 1, .complete = true, .payload = slice_of("\x05hello", 6)};
    c.flags = SHM_NEEDS_PATCHING;
    session_ring_write(ring, &c);
    for (uint32_t size = 0; size < sizeof chunk; size += size < 64 ? 4 : 1000)
        for (size_t i = 0; i < sizeof counts / sizeof *counts && size >= sizeof(struct shm_late_footer); i++) {
            memset(chunk, 0xff, sizeof chunk);
            memset(chunk, 0, size); /* chunk 0, at offset 0 */
            struct shm_late_footer *f = shm_late_footer(chunk, size);
            f->magic = SHM_LATE_MAGIC;
            f->n = counts[i];
            late_lengths_apply(chunk, size, ring, &who);
        }
    late_lengths_apply(chunk, 4, ring, &who);
    ck_assert_uint_eq(session_ring_stats(ring).patches_failed, 0);
    session_ring_free(ring);
}
END_TEST

START_TEST(a_packet_that_is_finished_is_whole_in_the_memory)
{
    static const size_t sizes[] = {10, 300, 5000, 9000, 50000};
    struct service s;
    struct trace_packet p = {0};
    open_service(&s, 256 * 1024, 4096, false, SHM_DIV1);
    s.frozen = true; /* nothing is committed, and nothing patched */
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_DROP);
    size_of_all = sizes[_i];
    for (uint32_t n = 0; n < 100000 / (sizes[_i] + 1000); n++) {
        write_packet(w, n, sizes[_i]);
        trace_buffer_free(s.b);
        s.b = trace_buffer_new(1u << 20, TRACE_BUFFER_RING);
        take_over(&s);
        uint32_t next = 0;
        trace_buffer_begin_read(s.b, true);
        while (trace_buffer_read(s.b, &p)) {
            ck_assert_uint_eq(check_packet(&p, one_size), next++);
            ck_assert_uint_eq(p.loss, next == 1 ? LOSS_PRESENT : 0);
        }
        ck_assert_uint_eq(next, n + 1);
    }
    vec_free(&p.slices);
    trace_writer_free(w);
    close_service(&s);
}
END_TEST

/* So many chunks wait that a commit cannot hold them all. Whoever is killed behind it has lost nothing of the packets
 * whose last chunk, with the lengths that it kept, is gone. */
START_TEST(patches_go_with_the_chunk_that_their_packet_ends_in)
{
    enum { PACKETS = 600, BYTES = 10000 };
    struct service s;
    struct trace_packet p = {0};
    uint32_t last_chunk[PACKETS], whole = 0, found = 0;
    open_service(&s, 16 << 20, 4096, false, SHM_DIV14);
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_DROP);
    s.frozen = true;
    for (uint32_t n = 0; n < PACKETS; n++) {
        write_packet(w, n, BYTES);
        last_chunk[n] = w->next_chunk_id - 1;
    }
    trace_writer_free(w);
    while (take_one(&s)) {
        while (whole < PACKETS && last_chunk[whole] < s.moved)
            whole++;
        trace_buffer_begin_read(s.b, false);
        for (; trace_buffer_read(s.b, &p); found++) {
            ck_assert_uint_eq(check_packet(&p, NULL), found);
            ck_assert_uint_eq(p.loss, found ? 0 : LOSS_PRESENT);
        }
        ck_assert_uint_ge(found + 1, whole); /* the next one may begin in that chunk, which waits for its lengths */
    }
    ck_assert_uint_gt(s.commits, 2);
    ck_assert_uint_eq(found, PACKETS);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

/* A packet grows, and other writers hold the rest of the memory: the chunks that it has filled are what is missing. */
START_TEST(a_writer_that_waits_keeps_no_chunk)
{
    enum { PAGES = 16, MANY = 12000 };
    static uint8_t bytes[MANY];
    struct service s;
    struct trace_writer *others[PAGES];
    struct trace_packet p = {0};
    unsigned n = 0;
    open_service(&s, PAGES * 4096, 4096, false, SHM_DIV1);
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_STALL_THEN_DROP);
    trace_writer_begin_packet(w);
    trace_writer_begin(w, 5);
    trace_writer_bytes(w, 2, bytes, MANY);
    while (shm_arbiter_chunks_out(s.a) < PAGES) {
        others[n] = trace_writer_new(s.a, 1, SHM_DROP);
        write_packet(others[n++], 0, 10);
    }
    ck_assert_uint_eq(n, PAGES - 3);
    trace_writer_bytes(w, 2, bytes, MANY);
    trace_writer_end_packet(w);
    ck_assert_uint_eq(w->stats.dropped, 0);
    trace_writer_free(w);
    while (n)
        trace_writer_free(others[--n]);
    pump(&s);
    trace_buffer_begin_read(s.b, true);
    for (; trace_buffer_read(s.b, &p); n++)
        ck_assert_uint_eq(p.loss, LOSS_PRESENT);
    ck_assert_uint_eq(n, PAGES - 3 + 1);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

START_TEST(a_full_memory_drops_and_says_so)
{
    struct service s;
    struct trace_packet p = {0};
    size_t (*size_of)(uint32_t) = _i % 2 ? large : small;
    open_service(&s, 64 * 1024, 4096, false, SHM_DIV1);
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_DROP);
    unsigned seed = (unsigned)_i + 1;
    for (uint32_t n = 0; n < 3000; n++) {
        if (n % 100 == 0)
            s.frozen = (n >= 500 && n < 1200) || rand_r(&seed) % 2; /* the service runs now and then */
        write_packet(w, n, size_of(n));
        if (rand_r(&seed) % 8 == 0)
            pump(&s);
        if (rand_r(&seed) % 16 == 0) /* no chunk at hand when the memory is found full: the mark comes later */
            trace_writer_flush(w);
    }
    s.frozen = false;
    pump(&s);
    trace_writer_flush(w);
    struct trace_writer_stats stats = *trace_writer_get_stats(w);
    uint64_t dropped = stats.dropped;
    trace_writer_free(w);
    pump(&s);
    uint32_t expected = 0, missing = 0, marks = 0;
    trace_buffer_begin_read(s.b, false);
    while (trace_buffer_read(s.b, &p)) {
        uint32_t n = check_packet(&p, size_of);
        struct pb_field f;
        bool told = p.slices.n && pb_find(p.slices.p[0], 42, &f) && f.u == (1 | 256);
        ck_assert_uint_ge(n, expected);
        ck_assert_msg(n == expected || told || p.loss, "%u..%u missing without a mark", expected, n - 1);
        missing += n - expected;
        marks += told;
        expected = n + 1;
    }
    missing += 3000 - expected;
    ck_assert_uint_eq(missing, dropped);
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_gt(marks, 0);
    ck_assert_uint_gt(stats.loss_marks, 0);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->trace_writer_packet_loss, stats.loss_marks);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->abi_violations, 0);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

/* ---- many threads ---- */

enum { THREADS = 4, PER_THREAD = 1500 };

struct thread {
    struct service *s;
    unsigned number;
    enum shm_policy policy;
    struct trace_writer_stats stats;
    uint16_t writer_id;
};

static void on_wake_elsewhere(void *ctx, bool urgent)
{
    (void)urgent;
    sem_post(&((struct service *)ctx)->wanted);
}

static void on_stalled_elsewhere(void *ctx)
{
    sem_post(&((struct service *)ctx)->wanted);
}

static void *write_many(void *arg)
{
    struct thread *t = arg;
    struct trace_writer *w = trace_writer_new(t->s->a, 1, t->policy);
    unsigned seed = t->number + 1;
    t->writer_id = w->writer_id;
    for (uint32_t n = 0; n < PER_THREAD; n++) {
        write_packet(w, n, small(n));
        if (rand_r(&seed) % 64 == 0)
            trace_writer_flush(w);
    }
    trace_writer_flush(w);
    while (t->policy == SHM_DROP && w->owes_mark) { /* until there is room for the mark of the last loss */
        usleep(100);
        trace_writer_flush(w);
    }
    t->stats = w->stats;
    trace_writer_free(w);
    atomic_fetch_add(&t->s->threads_done, 1);
    sem_post(&t->s->wanted);
    return NULL;
}

/* Each thread with a writer of its own into one small memory, while another one commits. */
START_TEST(many_threads_write)
{
    static const struct shm_arbiter_ops elsewhere = {on_wake_elsewhere, on_stalled_elsewhere};
    struct service s;
    struct thread threads[THREADS];
    pthread_t ids[THREADS];
    struct trace_packet p = {0};
    uint64_t dropped = 0, marks = 0;
    open_service_with(&s, 64 * 1024, 4096, false, SHM_DIV4, &elsewhere);
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.s = &s, .number = i, .policy = i % 2 ? SHM_STALL_THEN_DROP : SHM_DROP};
        ck_assert_int_eq(pthread_create(&ids[i], NULL, write_many, &threads[i]), 0);
    }
    while (atomic_load(&s.threads_done) < THREADS) {
        sem_wait(&s.wanted);
        pump(&s);
    }
    pump(&s);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        ck_assert_uint_eq(threads[i].stats.packets, PER_THREAD);
        ck_assert(threads[i].policy == SHM_DROP || threads[i].stats.dropped == 0);
        dropped += threads[i].stats.dropped;
        marks += threads[i].stats.loss_marks;
    }
    uint32_t next[SHM_MAX_WRITER_ID] = {0}, count = 0;
    bool good = true;
    trace_buffer_begin_read(s.b, true);
    while (trace_buffer_read(s.b, &p)) {
        uint32_t n = check_packet(&p, small), *expected = &next[p.who.writer_id];
        good &= n == *expected || (n > *expected && p.loss);
        *expected = n + 1;
        count++;
    }
    ck_assert_msg(good, "a packet out of order, or missing without a mark");
    ck_assert_uint_eq(count + dropped, THREADS * PER_THREAD);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->trace_writer_packet_loss, marks);
    ck_assert_uint_eq(trace_buffer_get_stats(s.b)->abi_violations, 0);
    vec_free(&p.slices);
    close_service(&s);
}
END_TEST

START_TEST(writers_outlive_the_connection)
{
    struct service s;
    open_service(&s, 64 * 1024, 4096, false, SHM_DIV1);
    struct trace_writer *w = trace_writer_new(s.a, 1, SHM_STALL_THEN_ABORT);
    write_packet(w, 0, 100);
    close_service(&s);
    for (uint32_t n = 1; n < 200; n++)
        write_packet(w, n, 5000); /* neither aborts nor waits: nobody will ever free a chunk */
    ck_assert_uint_gt(w->stats.dropped, 190);
    trace_writer_free(w);
}
END_TEST

START_TEST(writer_ids_run_out)
{
    struct service s;
    open_service(&s, 64 * 1024, 4096, false, SHM_DIV1);
    for (unsigned i = 0; i < SHM_MAX_WRITER_ID; i++)
        ck_assert_uint_ne(shm_arbiter_new_writer_id(s.a, 1), 0);
    ck_assert_uint_eq(shm_arbiter_new_writer_id(s.a, 1), 0);
    ck_assert_ptr_null(trace_writer_new(s.a, 1, SHM_DROP));
    shm_arbiter_free_writer_id(s.a, 77);
    ck_assert_uint_eq(shm_arbiter_new_writer_id(s.a, 1), 77);
    close_service(&s);
}
END_TEST

Suite *shm_suite(void);
Suite *shm_suite(void)
{
    Suite *s = suite_create("shm");
    TCase *t = tcase_create("writers");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, packets_come_out_as_they_went_in, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(t, a_packet_that_is_finished_is_whole_in_the_memory, 0, 5);
    tcase_add_loop_test(t, a_packet_that_was_handed_over_in_parts_is_whole_in_the_memory, 0, 4);
    tcase_add_test(t, late_lengths_are_not_believed);
    tcase_add_test(t, patches_go_with_the_chunk_that_their_packet_ends_in);
    tcase_add_test(t, a_writer_that_waits_keeps_no_chunk);
    tcase_add_loop_test(t, a_full_memory_drops_and_says_so, 0, 6);
    tcase_add_test(t, many_threads_write);
    tcase_add_test(t, writers_outlive_the_connection);
    tcase_add_test(t, writer_ids_run_out);
    suite_add_tcase(s, t);
    return s;
}
