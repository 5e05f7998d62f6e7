/* Traces that come in pieces: bytes stay until what points into them has been parsed. */
#include "wire/fields.h"
#include "wire/pb_writer.h"

#include "pb_text.h"
#include "tp_ask.h"

#include <zlib.h>

enum { PIECE = 64 << 10, WINDOWS = 6, ROUNDS = 120, FOR_TESTING = 900 /* a field of TracePacket that nobody reads */ };

static void put_instant(struct pb_writer *w, int64_t ts, const char *kind, int number)
{
    put(w, "1{3:0 8:%lld 10:7 11{9:3 11:5 23'%s %d'}}", (long long)ts, kind, number);
}

/* Bytes that no handler wants, so that blocks end anywhere among the events. */
static void put_padding(struct pb_writer *w, size_t n)
{
    static const uint8_t zeros[20000];
    size_t packet = pb_begin(w, TRACE_PACKET), field = pb_begin(w, FOR_TESTING);
    pb_put_bytes(w, 1, zeros, n);
    pb_end(w, field);
    pb_end(w, packet);
}

/* A packet that holds others, deflated: blocks of what is unpacked are full as soon as those of the file. */
static void put_compressed_instant(struct pb_writer *w, int64_t ts, int number)
{
    struct pb_writer plain = {0};
    uint8_t packed[512];
    uLongf n = sizeof packed;
    put_padding(&plain, 20000);
    put_instant(&plain, ts, "compressed", number);
    ck_assert_int_eq(compress(packed, &n, plain.p, plain.n), Z_OK);
    size_t packet = pb_begin(w, TRACE_PACKET);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_UID, 0);
    pb_put_bytes(w, TRACE_PACKET_COMPRESSED_PACKETS, packed, n);
    pb_end(w, packet);
    pb_writer_free(&plain);
}

/* Two flushes and a reading of the buffers: what the window before had is parsed. */
static void end_window(struct pb_writer *w, int64_t ts)
{
    put(w, "1{3:0 8:%lld 10:1 69{3:1}} 1{3:0 8:%lld 10:1 69{3:1}} 1{3:0 8:%lld 10:1 69{4:1}}", (long long)ts,
        (long long)ts, (long long)ts);
}

/* Compressed and plain packets take turns, over many blocks and windows. The block of a plain packet was begun before
 * that of the compressed one in front of it. */
START_TEST(plain_packets_behind_compressed_ones)
{
    struct pb_writer w = {0};
    int64_t ts = 1000;
    int compressed = 0, plain = 0;
    put(&w, "1{3:0 10:7 13:1 60{1:5 2'track'}}");
    for (int window = 0; window < WINDOWS; window++) {
        for (int round = 0; round < ROUNDS; round++) {
            put_padding(&w, (size_t)(window * ROUNDS + round) * 7919 % 20000);
            put_compressed_instant(&w, ++ts, compressed++);
            put_instant(&w, ++ts, "plain", plain++);
            if (round % 10 == 0)
                end_window(&w, ++ts);
        }
    }
    struct tp *tp;
    struct tp_config config = {0};
    ck_assert_int_eq(tp_open(&tp, &config), 0);
    for (size_t at = 0; at < w.n; at += PIECE)
        ck_assert_int_eq(tp_feed(tp, w.p + at, w.n - at < PIECE ? w.n - at : PIECE), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    ck_assert_int_eq(ask(tp, "select count(distinct name) from slice where name glob 'compressed *'"), compressed);
    ck_assert_int_eq(ask(tp, "select count(distinct name) from slice where name glob 'plain *'"), plain);
    tp_close(tp);
    pb_writer_free(&w);
}
END_TEST

Suite *stream_suite(void);
Suite *stream_suite(void)
{
    Suite *s = suite_create("stream");
    TCase *t = tcase_create("windows");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, plain_packets_behind_compressed_ones);
    suite_add_tcase(s, t);
    return s;
}
