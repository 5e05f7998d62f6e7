/* Tests batches of packets: how they lie in the bytes of a file, and how they are compressed. */
#include "capture/service/batch.h"
#include "wire/fields.h"
#include "wire/inflate.h"
#include "wire/pb_cursor.h"

#include "ck_slice.h"

#include <check.h>

START_TEST(packets_are_put_together)
{
    struct batch b = {0};
    uint8_t big[300] = {7};
    struct slice pieces[] = {slice_str("one "), slice_str("packet")};
    batch_add(&b, pieces, 2, slice_str(", tail"));
    batch_add(&b, NULL, 0, slice_of(NULL, 0));
    batch_add(&b, NULL, 0, slice_of(big, sizeof big));
    ck_assert_uint_eq(b.packets.n, 3);
    ck_assert(!b.bytes.failed);
    ck_assert_slice_eq(slice_of(b.bytes.p, 18), "\x0a\x10one packet, tail");
    ck_assert_uint_eq(b.packets.p[0].at, 2);
    ck_assert_uint_eq(b.packets.p[0].len, 16);
    ck_assert_mem_eq(b.bytes.p + 18, "\x0a\0\x0a\xac\x02\x07", 6);
    ck_assert_uint_eq(b.packets.p[1].at, 20);
    ck_assert_uint_eq(b.packets.p[1].len, 0);
    ck_assert_uint_eq(b.packets.p[2].at, 23);
    ck_assert_uint_eq(b.packets.p[2].len, 300);
    ck_assert_uint_eq(b.bytes.n, 323);
    batch_clear(&b);
    ck_assert_uint_eq(b.packets.n + b.bytes.n, 0);
    batch_free(&b);
}
END_TEST

/* Adds packets of these sizes, whose bytes can be squeezed and told apart. */
static void add_packets(struct batch *b, const size_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t *p = mem_alloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            p[k] = (uint8_t)((k * k >> 7) + i);
        batch_add(b, NULL, 0, slice_of(p, sizes[i]));
        mem_free(p);
    }
}

/* Decompresses one packet of a compressed batch to the end of `to`. */
static void unpack(struct slice packet, uint32_t field, enum inflate_kind kind, struct pb_writer *to)
{
    static uint8_t raw[2 << 20];
    struct pb_field f;
    struct error err = {0};
    size_t n = 0;
    ck_assert(pb_find(packet, field, &f));
    struct inflater *z = inflater_open(kind);
    struct slice in = pb_bytes(&f);
    ck_assert_int_eq(inflater_run(z, &in, raw, sizeof raw, &n, &err), 0);
    ck_assert_uint_eq(in.len, 0);
    ck_assert(inflater_at_end(z));
    inflater_close(z);
    pb_put_raw(to, raw, n);
}

static const struct {
    enum batch_compression how;
    enum inflate_kind kind;
    uint32_t field;
    int level;
} kinds[] = {
    {BATCH_DEFLATE, INFLATE_DEFLATE, TRACE_PACKET_COMPRESSED_PACKETS, 0},
    {BATCH_ZSTD, INFLATE_ZSTD, TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, 3},
};

/* What comes out is what went in, in pieces of at most 512 KiB; only a packet that is larger goes alone. */
START_TEST(compressed_packets_read_back)
{
    const size_t sizes[] = {100, 0, 400000, 100000, 30000, 700000, 300000, 300000, 5}, n = sizeof sizes / sizeof *sizes;
    const size_t pieces = 5; /* 100 0 400000 100000 | 30000 | 700000 | 300000 | 300000 5 */
    struct batch b = {0};
    struct error err = {0};
    struct pb_writer all = {0}, before = {0};
    add_packets(&b, sizes, n);
    pb_put_raw(&before, b.bytes.p, b.bytes.n);
    ck_assert_int_eq(batch_compress(&b, kinds[_i].how, kinds[_i].level, &err), 0);
    ck_assert_uint_eq(b.packets.n, pieces);
    ck_assert_uint_lt(b.bytes.n, before.n / 2);
    for (size_t i = 0; i < b.packets.n; i++) {
        struct slice packet = slice_of(b.bytes.p + b.packets.p[i].at, b.packets.p[i].len);
        size_t from = all.n;
        unpack(packet, kinds[_i].field, kinds[_i].kind, &all);
        if (i != 2)
            ck_assert_uint_le(all.n - from, 512 * 1024);
    }
    ck_assert_uint_eq(all.n, before.n);
    ck_assert_mem_eq(all.p, before.p, all.n);
    pb_writer_free(&all);
    pb_writer_free(&before);
    batch_free(&b);
}
END_TEST

START_TEST(nothing_compresses_to_nothing)
{
    struct batch b = {0};
    struct error err = {0};
    ck_assert_int_eq(batch_compress(&b, kinds[_i].how, kinds[_i].level, &err), 0);
    ck_assert_uint_eq(b.packets.n + b.bytes.n, 0);
    batch_free(&b);
}
END_TEST

static unsigned calls, fail_at;

static bool gate(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return ++calls < fail_at;
}

/* Whenever memory is short, the packets stay as they were, and the caller hears of it. */
START_TEST(without_memory_packets_stay_plain)
{
    const size_t sizes[] = {400000, 400000, 10};
    bool failed = true;
    for (fail_at = 1; failed; fail_at++) {
        struct batch b = {0};
        struct error err = {0};
        add_packets(&b, sizes, 3);
        uint8_t *p = b.bytes.p;
        size_t n = b.bytes.n;
        calls = 0;
        alloc_set_gate(gate, NULL);
        failed = batch_compress(&b, kinds[_i].how, kinds[_i].level, &err) != 0;
        alloc_set_gate(NULL, NULL);
        ck_assert_uint_eq(b.packets.n, failed ? 3 : 2);
        if (failed) {
            ck_assert_int_eq(err.code, -MRD_ENOMEM);
            ck_assert_ptr_eq(b.bytes.p, p);
            ck_assert_uint_eq(b.bytes.n, n);
        }
        batch_free(&b);
    }
    ck_assert_uint_gt(fail_at, 3);
}
END_TEST

/* A packet for which there is no memory is left out whole, and the failure can be seen until the next clear. */
START_TEST(without_memory_a_packet_is_left_out)
{
    struct batch b = {0};
    static uint8_t big[100000];
    batch_add(&b, NULL, 0, slice_of(big, 60));
    batch_add(&b, NULL, 0, slice_of(big, 10)); /* now there is room for the head of another one */
    size_t n = b.bytes.n;
    calls = 0;
    fail_at = 1;
    alloc_set_gate(gate, NULL);
    batch_add(&b, NULL, 0, slice_of(big, sizeof big));
    alloc_set_gate(NULL, NULL);
    ck_assert(b.bytes.failed);
    ck_assert_uint_eq(b.packets.n, 2);
    ck_assert_uint_eq(b.bytes.n, n);
    batch_clear(&b);
    ck_assert(!b.bytes.failed);
    batch_free(&b);
}
END_TEST

Suite *batch_suite(void);

Suite *batch_suite(void)
{
    Suite *s = suite_create("batch");
    TCase *t = tcase_create("core");
    tcase_add_test(t, packets_are_put_together);
    tcase_add_loop_test(t, compressed_packets_read_back, 0, 2);
    tcase_add_loop_test(t, nothing_compresses_to_nothing, 0, 2);
    tcase_add_loop_test(t, without_memory_packets_stay_plain, 0, 2);
    tcase_add_test(t, without_memory_a_packet_is_left_out);
    suite_add_tcase(s, t);
    return s;
}
