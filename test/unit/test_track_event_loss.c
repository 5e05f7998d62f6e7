/* Tests what is left of track events when packets or memory are missing. */
#include "base/file.h"
#include "base/u64map.h"
#include "bench/sdk_trace.h"
#include "gate.h"
#include "track_event_fixture.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>

/* --- packets ------------------------------------------------------------------------------------------------------ */

enum { MAX_SEQUENCES = 16 };

struct kept_packet {
    size_t at, len;
    uint32_t sequence;
    unsigned flags;
    int64_t ts;
    bool begins; /* a slice */
};

static struct {
    struct pb_writer bytes;
    struct kept_packet p[2048];
    size_t n;
    int64_t tid[MAX_SEQUENCES]; /* of the thread whose slices a sequence has; 0: it has none */
} recorded;

/* The number in a field of a message in fields of messages: path ends with 0. */
static int64_t number_at(struct slice message, const uint32_t *path)
{
    struct pb_field f;
    if (!pb_find(message, *path, &f))
        return 0;
    return path[1] ? number_at(pb_bytes(&f), path + 1) : pb_i64(&f);
}

static void keep_packet(void *ctx, struct slice packet, uint32_t sequence, unsigned flags, uint64_t ts)
{
    static const uint32_t event_type[] = {11, 9, 0}, thread_tid[] = {60, 4, 2, 0};
    (void)ctx;
    ck_assert_uint_lt(recorded.n, sizeof recorded.p / sizeof *recorded.p);
    recorded.p[recorded.n++] = (struct kept_packet){
        recorded.bytes.n, packet.len, sequence, flags, (int64_t)ts, number_at(packet, event_type) == BEGIN};
    if (sequence < MAX_SEQUENCES && number_at(packet, thread_tid))
        recorded.tid[sequence] = number_at(packet, thread_tid);
    pb_put_raw(&recorded.bytes, packet.p, packet.len);
}

static void forget_packets(void)
{
    pb_writer_free(&recorded.bytes);
    memset(&recorded, 0, sizeof recorded);
}

/* Takes the packets of a file. False when there is no such file. */
static bool take_trace(const char *path)
{
    struct mapped_file map;
    struct pb_field f, g;
    if (mapped_file_open(&map, path, NULL) != 0)
        return false;
    struct pb_cursor c = pb_cursor(map.bytes);
    while (pb_next(&c, &f)) {
        unsigned flags = 0;
        uint32_t sequence = 0;
        uint64_t ts = 0;
        struct pb_cursor packet = pb_sub(&f);
        while (pb_next(&packet, &g)) {
            if (g.id == 8)
                ts = pb_u64(&g);
            if (g.id == 10)
                sequence = pb_u32(&g);
            flags |= (g.id == 13 && (pb_u64(&g) & 1)) || (g.id == 41 && pb_bool(&g)) ? SDK_CLEARS : 0;
            flags |= g.id == 13 && (pb_u64(&g) & 2) ? SDK_NEEDS : 0;
            flags |= g.id == 12 ? SDK_INTERNS : 0;
        }
        keep_packet(NULL, pb_bytes(&f), sequence, flags, ts);
    }
    mapped_file_close(&map);
    return true;
}

/* Hash of the slices on a sequence's own thread that begin at or after `from`: their times, names and args, but not
 * their depth (a slice whose end was lost stays open below them). */
static uint64_t digest(uint32_t sequence, int64_t from, uint32_t *n)
{
    uint64_t h = 14695981039346656037u;
    struct arg_list list = {0};
    *n = 0;
    for (uint32_t row = 0; row < ROWS(slice); row++) {
        int64_t utid = ROW_GET(&st, track, utid, (uint32_t)SLICE(track_id, row));
        if (SLICE(ts, row) < from || utid == COL_NULL ||
            ROW_GET(&st, thread, tid, (uint32_t)utid) != recorded.tid[sequence])
            continue;
        char line[256];
        int len = snprintf(line, sizeof line, "%lld %lld %s %s;", (long long)SLICE(ts, row), (long long)SLICE(dur, row),
                           text(SLICE(category, row)), text(SLICE(name, row)));
        for (int i = 0; i < len; i++)
            h = (h ^ (uint8_t)line[i]) * 1099511628211u;
        list.n = 0;
        args_values(&st.args, argset_of_cell(SLICE(arg_set_id, row)), &list);
        for (size_t i = 0; i < list.n; i++) {
            for (const char *c = text(list.p[i].key); *c; c++)
                h = (h ^ (uint8_t)*c) * 1099511628211u;
            if (list.p[i].type != ARG_STRING) /* string ids differ between imports */
                h = (h ^ (uint64_t)list.p[i].word) * 1099511628211u;
        }
        ++*n;
    }
    arg_list_free(&list);
    return h;
}

/* Imports what was recorded without packet `lost` (SIZE_MAX: all of it), as the service would hand it on. */
static void import_without(size_t lost)
{
    import_end();
    import_begin();
    trace.n = 0;
    bool told = lost == SIZE_MAX;
    for (size_t i = 0; i < recorded.n; i++) {
        if (i == lost)
            continue;
        size_t m = in(1);
        pb_put_raw(&trace, recorded.bytes.p + recorded.p[i].at, recorded.p[i].len);
        if (!told && i > lost && recorded.p[i].sequence == recorded.p[lost].sequence) {
            pb_put_varint(&trace, 42, 1);
            told = true;
        }
        out(m);
    }
    load();
}

/* What the rules of incremental state say about a trace without one packet. */
struct expected {
    int64_t skipped, unread; /* packets that need state, interned data: without valid state */
    uint32_t slices;         /* begun by packets that are there and not skipped */
    size_t clear;            /* the next packet of the sequence that clears its state; SIZE_MAX: none */
};

static struct expected expect_without(size_t lost)
{
    struct expected e = {.clear = SIZE_MAX};
    struct u64map valid = {0}; /* sequence -> its state is valid */
    bool told = lost == SIZE_MAX;
    for (size_t i = 0; i < recorded.n; i++) {
        const struct kept_packet *p = &recorded.p[i];
        struct pb_field f;
        bool dropped = pb_find(slice_of(recorded.bytes.p + p->at, p->len), 42, &f) && pb_u64(&f);
        if (i == lost)
            continue;
        if (!told && i > lost && p->sequence == recorded.p[lost].sequence)
            dropped = told = true;
        if (lost != SIZE_MAX && i > lost && e.clear == SIZE_MAX && p->sequence == recorded.p[lost].sequence &&
            p->flags & SDK_CLEARS)
            e.clear = i;
        uint64_t *state = u64map_put(&valid, p->sequence, NULL);
        *state = p->flags & SDK_CLEARS ? 1 : dropped ? 0 : *state;
        bool skipped = p->flags & SDK_NEEDS && !*state;
        e.skipped += skipped;
        e.unread += p->flags & SDK_INTERNS && !*state;
        e.slices += p->begins && !skipped;
    }
    u64map_free(&valid);
    return e;
}

/* Loses each packet in turn: exactly what depended on it is missing and counted, other sequences do not notice, and
 * what comes after the next clear is whole. Returns how many clears that was seen for. */
static unsigned lose_each_packet(void)
{
    uint32_t n;
    unsigned clears_seen = 0;
    import_without(SIZE_MAX);
    bool all_slices = expect_without(SIZE_MAX).slices == ROWS(slice); /* no packet makes slices in another way */
    uint64_t *whole = calloc(recorded.n, sizeof *whole), untouched[MAX_SEQUENCES] = {0};
    for (size_t i = 0; i < recorded.n; i++)
        if (recorded.p[i].flags & SDK_CLEARS && recorded.p[i].sequence < MAX_SEQUENCES)
            whole[i] = digest(recorded.p[i].sequence, recorded.p[i].ts, &n);
    for (uint32_t s = 0; s < MAX_SEQUENCES; s++)
        untouched[s] = recorded.tid[s] ? digest(s, 0, &n) : 0;

    for (size_t lost = 0; lost < recorded.n; lost++) {
        struct expected e = expect_without(lost);
        uint32_t sequence = recorded.p[lost].sequence;
        import_without(lost);
        ck_assert_msg(STAT(packet_skipped_seq_needs_incremental_state_invalid) == e.skipped,
                      "without packet %zu: %lld packets skipped, %lld depend on it", lost,
                      (long long)STAT(packet_skipped_seq_needs_incremental_state_invalid), (long long)e.skipped);
        ck_assert_int_eq(STAT(interned_data_skipped_incremental_state_invalid), e.unread);
        ck_assert_msg(!all_slices || ROWS(slice) == e.slices, "without packet %zu: %u slices, expected %u", lost,
                      ROWS(slice), e.slices);
        for (uint32_t s = 0; s < MAX_SEQUENCES; s++)
            if (s != sequence && recorded.tid[s])
                ck_assert_uint_eq(digest(s, 0, &n), untouched[s]);
        if (e.clear != SIZE_MAX && sequence < MAX_SEQUENCES && recorded.tid[sequence]) {
            ck_assert_msg(digest(sequence, recorded.p[e.clear].ts, &n) == whole[e.clear],
                          "without packet %zu: not all is as it was after the clear at %zu", lost, e.clear);
            ck_assert_uint_gt(n, 0);
            clears_seen++;
        }
    }
    free(whole);
    return clears_seen;
}

START_TEST(every_packet_may_be_lost)
{
    static const struct sdk_trace_options options = {420, 2, 48};
    ck_assert(sdk_trace_write(&options, keep_packet, NULL));
    ck_assert_uint_gt(lose_each_packet(), 200);
    ck_assert_uint_gt(ROWS(slice), 150);
    forget_packets();
}
END_TEST

/* Recorded from examples/interned_events by the daemons. */
START_TEST(every_packet_of_a_recording_may_be_lost)
{
    ck_assert(take_trace(MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace"));
    ck_assert_uint_gt(recorded.n, 300);
    ck_assert_uint_gt(lose_each_packet(), 250);
    ck_assert_uint_gt(ROWS(slice), 150);
    forget_packets();
}
END_TEST

START_TEST(every_packet_of_a_trace_at_hand_may_be_lost)
{
    static const char *const names[] = {
        "synth-parser-track_event-track_event_counters_counters_machine_id.pftrace",
        "synth-parser-track_event-track_event_tracks_machine_id.pftrace",
        "synth-parser-parsing-sequence_all_incremental_dropped.pftrace",
        "synth-parser-profiling-cpu_profiling_samples_timebase_filter.pftrace",
    };
    const char *shared = getenv("MERIDIAN_SHARED");
    char path[512];
    snprintf(path, sizeof path, "%s/conformance/traces/%s", shared ? shared : MERIDIAN_SOURCE_DIR "/../shared",
             names[_i]);
    if (!take_trace(path)) {
        fprintf(stderr, "skipped: %s is not here (MERIDIAN_SHARED)\n", names[_i]);
        return;
    }
    ck_assert_uint_gt(recorded.n, 1);
    memset(recorded.tid, 0, sizeof recorded.tid); /* their threads are those of several machines */
    lose_each_packet();
    forget_packets();
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

START_TEST(memory_may_run_out_anywhere)
{
    static const struct sdk_trace_options options = {60, 2, 24};
    ck_assert(sdk_trace_write(&options, keep_packet, NULL));
    for (size_t i = 0; i < recorded.n; i++) {
        size_t m = in(1);
        pb_put_raw(&trace, recorded.bytes.p + recorded.p[i].at, recorded.p[i].len);
        out(m);
    }
    ck_assert_uint_gt(import_without_memory(pb_written(&trace)), 100);
    forget_packets();
}
END_TEST

Suite *track_event_loss_suite(void);

Suite *track_event_loss_suite(void)
{
    Suite *s = suite_create("track_event_loss");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, every_packet_may_be_lost);
    tcase_add_test(c, every_packet_of_a_recording_may_be_lost);
    tcase_add_loop_test(c, every_packet_of_a_trace_at_hand_may_be_lost, 0, 4);
    tcase_add_test(c, memory_may_run_out_anywhere);
    suite_add_tcase(s, c);
    return s;
}
