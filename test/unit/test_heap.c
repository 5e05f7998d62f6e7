/* Tests heap profiles: the gaps between samples, what is booked, configs, and rings that hold anything. */
#include "ck_slice.h"

#include "base/alloc.h"
#include "capture/heap/client/heap_random.h"
#include "capture/heap/heap_book.h"
#include "capture/heap/heap_config.h"
#include "capture/heap/heap_reader.h"
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- gaps ---- */

START_TEST(logarithms_are_right)
{
    for (double x = 1; x > 1e-16; x *= 0.937)
        ck_assert_double_le(fabs(heap_random_ln(x) - log(x)), 1e-9 * fabs(log(x)) + 1e-15);
    static const uint64_t intervals[] = {2, 3, 10, 4096, 1u << 20, 1u << 30};
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        double want = log1p(-1.0 / (double)intervals[i]);
        ck_assert_double_le(fabs(heap_random_log_keep(intervals[i]) - want), 1e-9 * fabs(want));
    }
}
END_TEST

/* Geometric: mean I and variance I * (I - 1). Five deviations of the mean of N. */
START_TEST(gaps_have_their_mean)
{
    static const uint64_t intervals[] = {1, 2, 7, 100, 4096, 1u << 24};
    enum { N = 200000 };
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        double interval = (double)intervals[i], sum = 0, ones = 0;
        uint64_t state = 42;
        for (int k = 0; k < N; k++) {
            int64_t gap = heap_random_gap(heap_random_next(&state), heap_random_log_keep(intervals[i]));
            ck_assert_int_ge(gap, 1);
            sum += (double)gap;
            ones += gap == 1;
        }
        double p = 1 / interval;
        ck_assert_double_le(fabs(sum / N - interval), 5 * sqrt(interval * (interval - 1) / N) + 1e-9);
        ck_assert_double_le(fabs(ones / N - p), 5 * sqrt(p * (1 - p) / N) + 1e-9);
    }
    ck_assert_int_ge(heap_random_gap(0, heap_random_log_keep(1u << 30)), 1);
    ck_assert_int_ge(heap_random_gap(UINT64_MAX, heap_random_log_keep(1u << 30)), 1);
}
END_TEST

/* ---- the book ---- */

START_TEST(books_add_up)
{
    struct heap_book b = {0};
    uint64_t n;
    ck_assert(heap_book_allocated(&b, 7, 0x1000, 100));
    ck_assert(heap_book_allocated(&b, 7, 0x2000, 50));
    ck_assert(heap_book_allocated(&b, 8, 0x3000, 30)); /* 180: the most */
    heap_book_freed(&b, 0x1000);
    heap_book_freed(&b, 0x1000); /* not known any more */
    heap_book_freed(&b, 0x9999);
    ck_assert(heap_book_allocated(&b, 8, 0x2000, 20)); /* was freed unseen */
    ck_assert_uint_eq(b.kept, 50);
    ck_assert_uint_eq(b.sites.n, 2);
    const struct heap_site *seven = &b.sites.p[0], *eight = &b.sites.p[1];
    ck_assert_uint_eq(seven->allocated, 150);
    ck_assert_uint_eq(seven->freed, 150);
    ck_assert_uint_eq(seven->frees, 2);
    ck_assert_uint_eq(eight->allocated - eight->freed, 50);
    ck_assert_uint_eq(b.most, 180);
    ck_assert_uint_eq(heap_book_at_most(&b, seven, &n), 150);
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(heap_book_at_most(&b, eight, &n), 30);
    ck_assert_uint_eq(n, 1);
    ck_assert(heap_book_allocated(&b, 7, 0x5000, 1000)); /* the most again */
    ck_assert_uint_eq(heap_book_at_most(&b, seven, &n), 1000);
    ck_assert_uint_eq(heap_book_at_most(&b, eight, &n), 50);
    heap_book_free_all(&b);
    ck_assert_uint_eq(b.kept, 0);
    ck_assert_uint_eq(b.live.n, 0);
    ck_assert_uint_eq(heap_book_at_most(&b, eight, &n), 50);
    heap_book_close(&b);
}
END_TEST

/* The most of each site by the slow way: all sites are written down whenever there is a new most. */
START_TEST(the_most_is_that_of_one_moment)
{
    enum { SITES = 5, ADDRESSES = 40, STEPS = 5000 };
    struct heap_book b = {0};
    uint64_t live[ADDRESSES] = {0}, kept[SITES] = {0}, at_most[SITES] = {0}, all = 0, most = 0, state = 1, n;
    unsigned site_of[ADDRESSES] = {0};
    for (int step = 0; step < STEPS; step++) {
        uint64_t r = heap_random_next(&state);
        unsigned a = r % ADDRESSES, site = (r >> 8) % SITES;
        kept[site_of[a]] -= live[a];
        all -= live[a];
        live[a] = 0;
        if (r >> 16 & 1) {
            live[a] = 1 + (r >> 20) % 1000;
            site_of[a] = site;
            kept[site] += live[a];
            all += live[a];
            ck_assert(heap_book_allocated(&b, 100 + site, a, live[a]));
        } else {
            heap_book_freed(&b, a);
        }
        ck_assert_uint_eq(b.kept, all);
        if (all > most) {
            most = all;
            memcpy(at_most, kept, sizeof kept);
        }
    }
    for (size_t i = 0; i < b.sites.n; i++)
        ck_assert_uint_eq(heap_book_at_most(&b, &b.sites.p[i], &n), at_most[b.sites.p[i].callstack - 100]);
    heap_book_close(&b);
}
END_TEST

START_TEST(books_are_bounded)
{
    struct heap_book b = {0};
    ck_assert(!heap_book_allocated(&b, 1, 1, UINT64_C(1) << 40));
    for (uint64_t i = 0; i < HEAP_LIVE_MAX; i++)
        ck_assert(heap_book_allocated(&b, i % 10, i, 1));
    ck_assert(!heap_book_allocated(&b, 1, HEAP_LIVE_MAX, 1));
    heap_book_freed(&b, 5);
    ck_assert(heap_book_allocated(&b, 1, HEAP_LIVE_MAX, 1));
    ck_assert_uint_eq(b.sites.n, 10);
    heap_book_free_all(&b);
    for (uint64_t i = b.sites.n; i < HEAP_SITES_MAX; i++) {
        ck_assert(heap_book_allocated(&b, i, 1, 1));
    }
    ck_assert(!heap_book_allocated(&b, HEAP_SITES_MAX, 2, 1));
    ck_assert(heap_book_allocated(&b, 3, 2, 1));
    heap_book_close(&b);
}
END_TEST

static bool gate(void *ctx, size_t size)
{
    (void)size;
    int *left = ctx;
    return (*left)-- > 0;
}

START_TEST(books_without_memory)
{
    for (int room = 0; room < 8; room++) {
        struct heap_book b = {0};
        int left = room;
        alloc_set_gate(gate, &left);
        uint64_t kept = 0;
        for (uint64_t i = 0; i < 100; i++)
            kept += heap_book_allocated(&b, i, i, 1);
        alloc_set_gate(NULL, NULL);
        ck_assert_uint_eq(b.kept, kept);
        heap_book_close(&b);
    }
}
END_TEST

/* ---- configs ---- */

static int parse(struct heap_config *c, const struct pb_writer *w, struct error *err)
{
    memset(err, 0, sizeof *err);
    return heap_config_parse(c, pb_written(w), err);
}

START_TEST(configs_have_defaults)
{
    struct heap_config c;
    struct error err;
    struct pb_writer w = {0};
    ck_assert_int_lt(parse(&c, &w, &err), 0);
    heap_config_free(&c);
    pb_put_varint(&w, HEAPPROFD_CONFIG_PID, 12);
    pb_put_str(&w, HEAPPROFD_CONFIG_PROCESS_CMDLINE, "a*");
    ck_assert_int_eq(parse(&c, &w, &err), 0);
    ck_assert_uint_eq(c.interval, 4096);
    ck_assert_uint_eq(c.ring_bytes, 8 << 20);
    ck_assert_uint_eq(c.block_us, 10000000);
    ck_assert_int_eq(c.scope.target_pids.p[0], 12);
    ck_assert_slice_eq(c.scope.target_cmdlines.p[0], "a*");
    heap_config_free(&c);
    pb_put_str(&w, HEAPPROFD_CONFIG_HEAPS, "other");
    pb_put_varint(&w, HEAPPROFD_CONFIG_HEAP_SAMPLING_INTERVALS, 10);
    pb_put_str(&w, HEAPPROFD_CONFIG_HEAPS, "libc.malloc");
    pb_put_varint(&w, HEAPPROFD_CONFIG_HEAP_SAMPLING_INTERVALS, 20);
    pb_put_varint(&w, HEAPPROFD_CONFIG_SHMEM_SIZE_BYTES, 5000000);
    ck_assert_int_eq(parse(&c, &w, &err), 0);
    ck_assert_uint_eq(c.interval, 20);
    ck_assert_uint_eq(c.ring_bytes, 8 << 20);
    heap_config_free(&c);
    pb_put_varint(&w, HEAPPROFD_CONFIG_SHMEM_SIZE_BYTES, UINT64_MAX);
    ck_assert_int_lt(parse(&c, &w, &err), 0);
    heap_config_free(&c);
    pb_put_varint(&w, HEAPPROFD_CONFIG_SHMEM_SIZE_BYTES, HEAP_RING_MAX);
    ck_assert_int_eq(parse(&c, &w, &err), 0);
    ck_assert_uint_eq(c.ring_bytes, HEAP_RING_MAX);
    heap_config_free(&c);
    pb_put_str(&w, HEAPPROFD_CONFIG_EXCLUDE_HEAPS, "libc.malloc");
    ck_assert_int_lt(parse(&c, &w, &err), 0);
    heap_config_free(&c);
    pb_writer_free(&w);
}
END_TEST

/* ---- rings ---- */

static uint8_t scratch[HEAP_RECORD_MAX];

static void put(struct heap_reader *r, uint64_t at, uint64_t word, uint32_t kind, uint64_t address)
{
    struct heap_head h = {.kind = kind, .generation = 1, .address = address};
    atomic_store(&h.size, word);
    memcpy(r->data + (at & (r->bytes - 1)), &h, sizeof h);
}

START_TEST(records_go_round_the_ring)
{
    struct heap_reader r;
    struct heap_entry e;
    int fd;
    ck_assert_int_eq(heap_reader_open(&r, HEAP_RING_MIN, &fd, NULL), 0);
    ck_assert_int_ne(ftruncate(fd, 0), 0); /* sealed */
    close(fd);
    for (uint64_t i = 0, at = 0; i < 3 * HEAP_RING_MIN / sizeof(struct heap_head);
         i++, at += sizeof(struct heap_head)) {
        atomic_store(&r.header->head, at + sizeof(struct heap_head));
        ck_assert_int_eq(heap_reader_peek(&r, false, scratch, &e), HEAP_PEEK_NONE); /* nothing of the round before */
        put(&r, at, sizeof(struct heap_head), HEAP_FREED, i);
        ck_assert_int_eq(heap_reader_peek(&r, false, scratch, &e), HEAP_PEEK_NONE);
        put(&r, at, sizeof(struct heap_head) | HEAP_WRITTEN, HEAP_FREED, i);
        ck_assert_int_eq(heap_reader_peek(&r, false, scratch, &e), HEAP_PEEK_ENTRY);
        ck_assert_uint_eq(e.address, i);
        heap_reader_pass(&r);
        ck_assert_uint_eq(atomic_load(&r.header->tail), at + sizeof(struct heap_head));
    }
    heap_reader_close(&r);
}
END_TEST

START_TEST(records_that_are_void_or_never_end)
{
    enum { BYTES = sizeof(struct heap_head) };
    struct heap_reader r;
    struct heap_entry e;
    int fd;
    ck_assert_int_eq(heap_reader_open(&r, HEAP_RING_MIN, &fd, NULL), 0);
    close(fd);
    put(&r, 0, BYTES | HEAP_WRITTEN | HEAP_VOID, HEAP_FREED, 1);
    put(&r, BYTES, BYTES, HEAP_FREED, 2);
    put(&r, 2 * BYTES, BYTES | HEAP_WRITTEN, HEAP_FREED, 3);
    atomic_store(&r.header->head, 5 * BYTES);
    ck_assert_int_eq(heap_reader_peek(&r, false, scratch, &e), HEAP_PEEK_NONE);
    ck_assert_int_eq(heap_reader_peek(&r, true, scratch, &e), HEAP_PEEK_GAP);
    heap_reader_pass(&r);
    ck_assert_int_eq(heap_reader_peek(&r, true, scratch, &e), HEAP_PEEK_ENTRY);
    ck_assert_uint_eq(e.address, 3);
    heap_reader_pass(&r);
    ck_assert_int_eq(heap_reader_peek(&r, true, scratch, &e), HEAP_PEEK_GAP);
    heap_reader_pass(&r);
    ck_assert_int_eq(heap_reader_peek(&r, true, scratch, &e), HEAP_PEEK_NONE);
    heap_reader_close(&r);
}
END_TEST

static const struct broken {
    uint64_t head, word;
    uint32_t kind;
} broken_rings[] = {
    {UINT64_MAX, 0, 0},
    {HEAP_RING_MIN + 8, 0, 0},
    {64, 8 | HEAP_WRITTEN, HEAP_FREED},
    {64, 72 | HEAP_WRITTEN, HEAP_FREED},
    {64, UINT64_MAX, HEAP_FREED},
    {64, 24 | HEAP_WRITTEN, HEAP_ALLOCATED},
    {64, 24 | HEAP_WRITTEN, 3},
    {64, 32 | HEAP_WRITTEN, HEAP_FREED},
    {4096, 4096 | HEAP_WRITTEN, HEAP_ALLOCATED}, /* stack_bytes 0 */
};

START_TEST(rings_that_hold_no_records)
{
    const struct broken *x = &broken_rings[_i];
    struct heap_reader r;
    struct heap_entry e;
    int fd;
    ck_assert_int_eq(heap_reader_open(&r, HEAP_RING_MIN, &fd, NULL), 0);
    close(fd);
    put(&r, 0, x->word, x->kind, 1);
    atomic_store(&r.header->head, x->head);
    ck_assert_int_eq(heap_reader_peek(&r, false, scratch, &e), HEAP_PEEK_BROKEN);
    ck_assert_int_eq(heap_reader_peek(&r, true, scratch, &e), HEAP_PEEK_BROKEN);
    heap_reader_close(&r);
}
END_TEST

Suite *heap_suite(void);
Suite *heap_suite(void)
{
    Suite *s = suite_create("heap");
    TCase *t = tcase_create("heap");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, logarithms_are_right);
    tcase_add_test(t, gaps_have_their_mean);
    tcase_add_test(t, books_add_up);
    tcase_add_test(t, the_most_is_that_of_one_moment);
    tcase_add_test(t, books_are_bounded);
    tcase_add_test(t, books_without_memory);
    tcase_add_test(t, configs_have_defaults);
    tcase_add_test(t, records_go_round_the_ring);
    tcase_add_test(t, records_that_are_void_or_never_end);
    tcase_add_loop_test(t, rings_that_hold_no_records, 0, sizeof broken_rings / sizeof *broken_rings);
    suite_add_tcase(s, t);
    return s;
}
