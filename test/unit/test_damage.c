/* Damaged recordings through the public API: what is before the damage is there, memory that runs out is an error. */
#include "base/alloc.h"
#include "base/file.h"
#include "importer/importer.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include "tp_ask.h"

#include <check.h>
#include <stdio.h>

static char *recording;
static size_t recording_len;

/* Compressed packets, small: every layer of the reader is on its way. */
static void read_recording(void)
{
    struct error err = {0};
    ck_assert_msg(file_read_all(MERIDIAN_SOURCE_DIR "/test/data/linux-deflate.pftrace", 1 << 24, &recording,
                                &recording_len, &err) == 0,
                  "%s", err.text);
}

static void free_recording(void)
{
    mem_free(recording);
}

struct counts {
    int64_t events, slices, states, threads, stats;
};

/* Loads bytes in pieces of `piece`; *loaded tells whether that went without an error. What was read can be asked. */
static struct counts load(const void *bytes, size_t len, size_t piece, bool *loaded)
{
    struct tp *tp;
    struct tp_config config = {.ignore_ftrace_parse_errors = true};
    ck_assert_int_eq(tp_open(&tp, &config), 0);
    int rc = 0;
    for (size_t at = 0; at < len && rc == 0; at += piece)
        rc = tp_feed(tp, (const char *)bytes + at, len - at < piece ? len - at : piece);
    if (rc != 0)
        ck_assert_str_ne(tp_error(tp), "");
    int finished = tp_finish(tp);
    if (finished != 0)
        ck_assert_str_ne(tp_error(tp), "");
    *loaded = rc == 0 && finished == 0;
    struct counts c = {
        .events = ask(tp, "select count(*) from ftrace_event"),
        .slices = ask(tp, "select count(*) from sched"),
        .states = ask(tp, "select count(*) from thread_state"),
        .threads = ask(tp, "select count(*) from thread"),
        .stats = ask(tp, "select count(*) from stats"),
    };
    tp_close(tp);
    return c;
}

/* The end of the last whole packet in the first `len` bytes. */
static size_t whole_packets(const char *bytes, size_t len)
{
    struct pb_cursor c = pb_cursor(slice_of(bytes, len));
    struct pb_field f;
    size_t end = 0;
    while (pb_next(&c, &f))
        end = (size_t)((const char *)c.p - bytes);
    return end;
}

START_TEST(cut_off_anywhere)
{
    /* _i of 8: different cuts, all over the file */
    for (size_t k = 0; k < 8; k++) {
        size_t cut = recording_len * ((size_t)_i * 8 + k) / 64 + k * 7;
        if (cut == 0 || cut > recording_len)
            continue;
        bool loaded, whole_loaded;
        size_t whole = whole_packets(recording, cut);
        struct counts damaged = load(recording, cut, cut, &loaded);
        struct counts want = load(recording, whole, recording_len, &whole_loaded);
        /* A file that is cut inside its first packet may not look like a trace at all. */
        ck_assert_msg(loaded || whole == 0, "cut at %zu", cut);
        ck_assert_msg(damaged.events == want.events && damaged.slices == want.slices && damaged.states == want.states &&
                          damaged.threads == want.threads,
                      "cut at %zu: %lld events of %lld", cut, (long long)damaged.events, (long long)want.events);
    }
}
END_TEST

START_TEST(pieces_of_any_size_give_the_same)
{
    static const size_t pieces[] = {1, 7, 100, 4096, 1 << 20};
    bool loaded;
    struct counts want = load(recording, recording_len, recording_len, &loaded);
    ck_assert(loaded);
    ck_assert_uint_gt(want.events, 1000);
    struct counts got = load(recording, recording_len, pieces[_i], &loaded);
    ck_assert(loaded);
    ck_assert_mem_eq(&got, &want, sizeof got);
}
END_TEST

static const struct {
    const char *name;
    const char *bytes;
    size_t len;
} odd[] = {
#define ODD(name, text)                                                                                                \
    {                                                                                                                  \
        name, text, sizeof text - 1                                                                                    \
    }
    ODD("empty", ""),
    ODD("one byte", "\x0a"),
    ODD("length of 2^63", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
                          "abc"),
    ODD("length of 2^64 - 1", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                              "abc"),
    ODD("length of 2^31", "\x0a\x80\x80\x80\x80\x08"
                          "abc"),
    ODD("endless varint", "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
    ODD("zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    ODD("empty packets", "\x0a\0\x0a\0\x0a\0\x0a\0\x0a\0\x0a\0"),
    ODD("group", "\x0a\x02\x0b\x0b\x0a\x02\x0c\x0c"),
    ODD("cut gzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03\xe3"),
    ODD("cut zstd", "\x28\xb5\x2f\xfd\x04\x58"),
    ODD("deflate packet of nonsense", "\x0a\x07\x92\x03\x04\x78\x9c\xff\xff"),
#undef ODD
};

START_TEST(odd_bytes)
{
    bool loaded;
    struct counts c = load(odd[_i].bytes, odd[_i].len, odd[_i].len ? odd[_i].len : 1, &loaded);
    ck_assert_msg(c.events == 0 && c.stats > 0, "%s", odd[_i].name);
}
END_TEST

/* ---- memory that runs out ---- */

struct gate {
    uint64_t calls;
    uint64_t fail_at; /* this call and all after it fail; 0: none */
    int64_t answer;
};

static bool gate(void *ctx, size_t size)
{
    (void)size;
    struct gate *g = ctx;
    return ++g->calls < g->fail_at || !g->fail_at;
}

/* One load and one question; an error where memory is short. */
static int load_and_ask(struct gate *g)
{
    struct tp *tp;
    struct tp_result *r;
    alloc_set_gate(gate, g);
    int rc = tp_open(&tp, NULL);
    if (rc == 0)
        rc = tp_feed(tp, recording, recording_len);
    if (rc == 0)
        rc = tp_finish(tp);
    if (rc == 0 && (rc = tp_query(tp, "select count(*) from sched join thread using (utid)", &r)) == 0) {
        rc = tp_step(r) < 0 ? TP_NOMEM : 0;
        g->answer = rc == 0 ? tp_int64(r, 0) : -1;
        tp_result_close(r);
    }
    if (rc != 0)
        ck_assert_str_ne(tp_error(tp), "");
    tp_close(tp);
    alloc_set_gate(NULL, NULL);
    return rc;
}

START_TEST(failing_allocation)
{
    struct gate g = {0};
    ck_assert_int_eq(load_and_ask(&g), 0);
    uint64_t all = g.calls;
    int64_t answer = g.answer;
    ck_assert_uint_gt(all, 100);
    ck_assert_int_gt(answer, 0);
    /* The first ones singly, then spread over the rest; _i of 4 takes every fourth. */
    for (uint64_t k = 1 + (uint64_t)_i; k <= all; k += k < 120 ? 4 : all / 60 + 4) {
        g = (struct gate){.fail_at = k};
        /* An error, or the right answer by a slower way: an index that does not fit is done without. */
        ck_assert_msg(load_and_ask(&g) != 0 || g.answer == answer, "allocation %llu of %llu failed without an error",
                      (unsigned long long)k, (unsigned long long)all);
    }
}
END_TEST

static void put_packet(struct pb_writer *w, uint32_t machine, uint32_t sequence, unsigned dropped)
{
    size_t packet = pb_begin(w, TRACE_PACKET);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, sequence);
    if (machine)
        pb_put_varint(w, TRACE_PACKET_MACHINE_ID, machine);
    if (dropped)
        pb_put_varint(w, TRACE_PACKET_PREVIOUS_PACKET_DROPPED, dropped);
    pb_end(w, packet);
}

static void put_stats(struct pb_writer *w, uint32_t sequence)
{
    size_t packet = pb_begin(w, TRACE_PACKET), stats = pb_begin(w, TRACE_PACKET_TRACE_STATS);
    size_t writer = pb_begin(w, TRACE_STATS_WRITER_STATS);
    pb_put_varint(w, TRACE_STATS_WRITER_STATS_SEQUENCE_ID, sequence);
    pb_end(w, writer);
    pb_end(w, stats);
    pb_end(w, packet);
}

/* A killed service writes no TraceStats, and earlier ones know nothing of what came after them: each gap counts, once.
 */
START_TEST(every_gap_counts)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    struct pb_writer w = {0};
    put_packet(&w, 0, 7, 1); /* what was before the first packet was never meant to be there */
    put_packet(&w, 0, 7, 3);
    put_packet(&w, 0, 8, 0);
    put_packet(&w, 0, 8, 3);
    put_stats(&w, 7);
    put_packet(&w, 0, 7, 0);
    put_packet(&w, 0, 7, 3);
    put_packet(&w, 5, 9, 0);
    put_packet(&w, 5, 9, 3);
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, NULL, &err), 0);
    ck_assert_int_eq(importer_feed(im, w.p, w.n, &err), 0);
    ck_assert_int_eq(importer_finish(im, &err), 0);
    const int64_t *told = stats_get_idx(&st.stats, 0, STAT_traced_buf_sequence_packet_loss, 0);
    ck_assert_ptr_nonnull(told);
    ck_assert_int_eq(*told, 1);
    static const struct {
        uint32_t machine;
        int32_t sequence;
    } unlisted[] = {{0, 7}, {0, 8}, {1, 9}};
    for (size_t i = 0; i < sizeof unlisted / sizeof *unlisted; i++) {
        told = stats_get_idx(&st.stats, unlisted[i].machine, STAT_sequence_packet_loss_unlisted, unlisted[i].sequence);
        ck_assert_ptr_nonnull(told);
        ck_assert_int_eq(*told, 1);
    }
    importer_close(im);
    storage_free(&st);
    pb_writer_free(&w);
}
END_TEST

Suite *damage_suite(void);
Suite *damage_suite(void)
{
    Suite *s = suite_create("damage");
    TCase *t = tcase_create("damage");
    tcase_set_timeout(t, 240);
    tcase_add_checked_fixture(t, read_recording, free_recording);
    tcase_add_loop_test(t, cut_off_anywhere, 0, 8);
    tcase_add_loop_test(t, pieces_of_any_size_give_the_same, 0, 5);
    tcase_add_loop_test(t, odd_bytes, 0, sizeof odd / sizeof *odd);
    tcase_add_loop_test(t, failing_allocation, 0, 4);
    tcase_add_test(t, every_gap_counts);
    suite_add_tcase(s, t);
    return s;
}
