/* Tests track events from bytes to tables: what each kind becomes, what is counted, and what is left when packets are
 * lost. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/u64map.h"
#include "bench/sdk_trace.h"
#include "importer/importer.h"
#include "proto/pb_cursor.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* --- a trace in memory and its import ---------------------------------------------------------------------------- */

static struct storage st;
static struct importer *im;
static struct pb_writer trace;
static size_t packet_mark;

static void import_begin(void)
{
    struct import_options options = {0};
    struct error err;
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &options, &err), 0);
}

static void import_end(void)
{
    importer_close(im);
    storage_free(&st);
}

static void setup(void)
{
    trace = (struct pb_writer){0};
    import_begin();
}

static void teardown(void)
{
    import_end();
    pb_writer_free(&trace);
}

/* Imports what was written. */
static void load(void)
{
    struct error err;
    ck_assert(!trace.failed);
    ck_assert_msg(importer_feed(im, trace.p, trace.n, &err) == 0, "%s", err.text);
    ck_assert_msg(importer_finish(im, &err) == 0, "%s", err.text);
}

#define SLICE(column, row) ROW_GET(&st, slice, column, row)
#define STAT(name)         stats_get(&st.stats, 0, STAT_##name)
#define ROWS(table)        (st.t[T_##table].n_rows)

static const char *text(int64_t id)
{
    return id ? strpool_cstr(&st.strings, (strid)id) : "(null)";
}

static void packet_begin(int64_t ts, uint32_t sequence, unsigned flags)
{
    packet_mark = pb_begin(&trace, 1);
    if (ts >= 0)
        pb_put_i64(&trace, 8, ts);
    pb_put_varint(&trace, 10, sequence);
    if (flags)
        pb_put_varint(&trace, 13, flags);
}

static void packet_end(void)
{
    pb_end(&trace, packet_mark);
}

static size_t in(uint32_t field)
{
    return pb_begin(&trace, field);
}

static void out(size_t mark)
{
    pb_end(&trace, mark);
}

/* A TrackDescriptor with a name and a parent; `more` (may be NULL) adds fields. */
static void describe(uint64_t uuid, uint64_t parent, const char *name, void (*more)(void))
{
    packet_begin(0, 1, 0);
    size_t d = in(60);
    pb_put_varint(&trace, 1, uuid);
    if (parent)
        pb_put_varint(&trace, 5, parent);
    if (name)
        pb_put_str(&trace, 2, name);
    if (more)
        more();
    out(d);
    packet_end();
}

/* A TrackEvent of a type on a track; its packet stays open for more fields until event_end(). */
static size_t event_mark;

static void event(int64_t ts, unsigned type, uint64_t uuid, const char *name)
{
    packet_begin(ts, 1, 0);
    event_mark = in(11);
    if (type)
        pb_put_varint(&trace, 9, type);
    if (uuid)
        pb_put_varint(&trace, 11, uuid);
    if (name)
        pb_put_str(&trace, 23, name);
}

static void event_end(void)
{
    out(event_mark);
    packet_end();
}

static void simple_event(int64_t ts, unsigned type, uint64_t uuid, const char *name)
{
    event(ts, type, uuid, name);
    event_end();
}

enum { BEGIN = 1, END, INSTANT, COUNTER, STATE };

/* The value of an arg as text; NULL when the set has no such key. */
static const char *arg_text(int64_t set, const char *key)
{
    static char buffer[128];
    struct arg_list list = {0};
    const char *found = NULL;
    if (set != COL_NULL)
        args_values(&st.args, (uint32_t)set, &list);
    for (size_t i = 0; i < list.n && !found; i++) {
        const struct arg *a = &list.p[i];
        if (strcmp(text(a->key), key) != 0)
            continue;
        if (a->type == ARG_STRING || a->type == ARG_JSON)
            snprintf(buffer, sizeof buffer, "%s", text(a->word));
        else if (a->type == ARG_REAL)
            snprintf(buffer, sizeof buffer, "%g", column_f64(a->word));
        else
            snprintf(buffer, sizeof buffer, "%lld", (long long)a->word);
        found = buffer;
    }
    arg_list_free(&list);
    return found;
}

/* --- tracks ------------------------------------------------------------------------------------------------------- */

static void as_process(void)
{
    size_t p = in(3);
    pb_put_varint(&trace, 1, 100);
    pb_put_str(&trace, 6, "app");
    out(p);
}

static void as_thread(void)
{
    size_t t = in(4);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    pb_put_str(&trace, 5, "worker");
    out(t);
}

static void as_counter(void)
{
    size_t c = in(8);
    pb_put_varint(&trace, 4, 10); /* unit_multiplier */
    pb_put_varint(&trace, 5, 1);  /* is_incremental */
    pb_put_str(&trace, 6, "requests");
    out(c);
}

static void as_state(void)
{
    out(in(18));
}

static void merge_by_key(void)
{
    pb_put_varint(&trace, 15, 3);
    pb_put_str(&trace, 16, "key");
}

static const char *track_type(int64_t track)
{
    return text(ROW_GET(&st, track, type, (uint32_t)track));
}

START_TEST(a_thread_track_is_the_threads_own)
{
    describe(1, 0, NULL, as_process);
    describe(2, 1, NULL, as_thread);
    simple_event(10, BEGIN, 2, "outer");
    simple_event(20, BEGIN, 2, "inner");
    simple_event(30, END, 2, NULL);
    simple_event(40, END, 2, NULL);
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_int_eq(SLICE(dur, 0), 30);
    ck_assert_int_eq(SLICE(dur, 1), 10);
    ck_assert_int_eq(SLICE(parent_id, 1), 0);
    ck_assert_str_eq(track_type(SLICE(track_id, 0)), "thread_execution");
    uint32_t utid = (uint32_t)ROW_GET(&st, track, utid, (uint32_t)SLICE(track_id, 0));
    ck_assert_str_eq(text(ROW_GET(&st, thread, name, utid)), "worker");
    ck_assert_int_eq(ROW_GET(&st, thread, tid, utid), 101);
    ck_assert_str_eq(text(ROW_GET(&st, process, name, (uint32_t)ROW_GET(&st, thread, upid, utid))), "app");
}
END_TEST

START_TEST(siblings_merge_by_key_and_overlap_on_two_rows)
{
    describe(1, 0, NULL, as_process);
    describe(10, 1, "a", merge_by_key);
    describe(11, 1, "b", merge_by_key);
    describe(12, 1, "c", NULL);
    simple_event(10, BEGIN, 10, "x");
    simple_event(11, BEGIN, 11, "y");
    simple_event(12, END, 10, NULL);
    simple_event(13, END, 11, NULL);
    simple_event(14, INSTANT, 11, "z");
    simple_event(15, INSTANT, 12, "w");
    load();
    ck_assert_uint_eq(ROWS(slice), 4);
    ck_assert_int_ne(SLICE(track_id, 0), SLICE(track_id, 1));
    ck_assert_int_eq(SLICE(dur, 0), 2);
    ck_assert_int_eq(SLICE(dur, 1), 2);
    ck_assert_int_eq(SLICE(track_id, 2), SLICE(track_id, 1)); /* the uuid keeps its row while it is free */
    ck_assert_str_eq(track_type(SLICE(track_id, 0)), "process_merged_track_event");
    ck_assert_int_ne(SLICE(track_id, 3), SLICE(track_id, 0));
}
END_TEST

START_TEST(an_unknown_uuid_is_a_track_of_its_own)
{
    simple_event(10, INSTANT, 77, "first");
    simple_event(11, INSTANT, 77, "second");
    simple_event(12, INSTANT, 0, "third");
    load();
    ck_assert_int_eq(SLICE(track_id, 0), SLICE(track_id, 1));
    ck_assert_str_eq(text(ROW_GET(&st, track, name, (uint32_t)SLICE(track_id, 0))), "first");
    ck_assert_str_eq(text(ROW_GET(&st, track, name, (uint32_t)SLICE(track_id, 2))), "Default Track");
}
END_TEST

START_TEST(hierarchies_without_end_are_counted)
{
    describe(1, 2, "a", NULL);
    describe(2, 1, "b", NULL);
    for (uint64_t i = 0; i < 150; i++)
        describe(1000 + i, 1001 + i, "deep", NULL);
    simple_event(10, INSTANT, 1, "x");
    simple_event(11, INSTANT, 1000, "y");
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_int_ge(STAT(track_event_track_hierarchy_loop), 1);
    ck_assert_int_ge(STAT(track_event_track_hierarchy_too_deep), 1);
}
END_TEST

START_TEST(broken_descriptors_are_counted)
{
    packet_begin(0, 1, 0);
    size_t d = in(60);
    pb_put_str(&trace, 2, "no uuid");
    out(d);
    packet_end();
    packet_begin(0, 1, 0);
    d = in(60);
    pb_put_varint(&trace, 1, 5);
    size_t t = in(4);
    pb_put_varint(&trace, 1, 100); /* no tid */
    out(t);
    out(d);
    packet_end();
    packet_begin(0, 1, 0);
    d = in(60);
    pb_put_varint(&trace, 1, 6);
    out(in(3)); /* no pid */
    out(d);
    packet_end();
    describe(7, 0, "counter", as_counter);
    describe(7, 0, "slices", NULL);
    describe(0, 7, NULL, NULL);
    packet_begin(0, 1, 0); /* uuid 0 with a parent, said explicitly */
    d = in(60);
    pb_put_varint(&trace, 1, 0);
    pb_put_varint(&trace, 5, 7);
    out(d);
    packet_end();
    load();
    ck_assert_int_eq(STAT(track_descriptor_missing_uuid), 1);
    ck_assert_int_eq(STAT(track_descriptor_thread_missing_pid_tid), 1);
    ck_assert_int_eq(STAT(track_descriptor_process_missing_pid), 1);
    ck_assert_int_eq(STAT(track_descriptor_conflicting_reservation), 1);
    ck_assert_int_ge(STAT(track_descriptor_default_track_with_parent), 1);
}
END_TEST

/* --- counters and states ------------------------------------------------------------------------------------------ */

START_TEST(counters_add_up)
{
    describe(1, 0, NULL, as_process);
    describe(5, 1, "served", as_counter);
    for (int i = 1; i <= 3; i++) {
        event(10 * i, COUNTER, 5, NULL);
        pb_put_varint(&trace, 30, (uint64_t)i);
        event_end();
    }
    event(50, COUNTER, 99, NULL); /* nobody described it */
    pb_put_varint(&trace, 30, 1);
    event_end();
    simple_event(60, COUNTER, 5, NULL); /* no value */
    event(70, COUNTER, 0, NULL);        /* no track */
    pb_put_varint(&trace, 30, 1);
    event_end();
    load();
    ck_assert_uint_eq(ROWS(counter), 3);
    ck_assert(column_f64(ROW_GET(&st, counter, value, 2)) == 60);
    uint32_t track = (uint32_t)ROW_GET(&st, counter, track_id, 0);
    ck_assert_str_eq(text(ROW_GET(&st, track, counter_unit, track)), "requests");
    ck_assert_str_eq(track_type(track), "process_counter_track_event");
    ck_assert_int_eq(STAT(track_event_counter_invalid_track_uuid), 1);
    ck_assert_int_eq(STAT(track_event_counter_missing_value), 1);
    ck_assert_int_eq(STAT(track_event_counter_missing_track_uuid), 1);
}
END_TEST

START_TEST(extra_counters_must_fit_their_tracks)
{
    describe(5, 0, "served", as_counter);
    event(10, INSTANT, 1, "two values, one track");
    pb_put_varint(&trace, 31, 5);
    pb_put_varint(&trace, 12, 1);
    pb_put_varint(&trace, 12, 2);
    event_end();
    event(20, INSTANT, 1, "no track");
    pb_put_varint(&trace, 12, 1);
    event_end();
    event(30, INSTANT, 1, "not a counter");
    pb_put_varint(&trace, 31, 1);
    pb_put_varint(&trace, 12, 1);
    event_end();
    event(40, INSTANT, 1, "nine of them");
    for (int i = 0; i < 9; i++) {
        pb_put_varint(&trace, 31, 5);
        pb_put_varint(&trace, 12, 1);
    }
    event_end();
    event(50, INSTANT, 1, "good");
    pb_put_varint(&trace, 31, 5);
    pb_put_varint(&trace, 12, 7);
    event_end();
    load();
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_uint_eq(ROWS(counter), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_missing_track_uuids), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_invalid_track), 1);
    ck_assert_int_eq(STAT(track_event_extra_counter_track_uuid_mismatch) + STAT(track_event_extra_counter_exceeds_max),
                     2);
}
END_TEST

START_TEST(a_state_lasts_until_the_next)
{
    describe(8, 0, "mode", as_state);
    simple_event(10, STATE, 8, "idle");
    simple_event(25, STATE, 8, "busy");
    simple_event(40, STATE, 8, NULL); /* ends it */
    simple_event(50, STATE, 8, "idle");
    load();
    ck_assert_uint_eq(ROWS(state), 3);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 0), 15);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 1), 15);
    ck_assert_int_eq(ROW_GET(&st, state, dur, 2), -1);
    ck_assert_str_eq(text(ROW_GET(&st, state, value, 1)), "busy");
    ck_assert_str_eq(track_type(ROW_GET(&st, state, track_id, 0)), "global_state_track_event");
}
END_TEST

/* --- args --------------------------------------------------------------------------------------------------------- */

static void annotation(const char *name, uint32_t field, int64_t value)
{
    size_t a = in(4);
    pb_put_str(&trace, 10, name);
    pb_put_i64(&trace, field, value);
    out(a);
}

START_TEST(annotations_nest)
{
    event(10, INSTANT, 1, "x");
    annotation("i", 4, -5);
    annotation("u", 3, 6);
    annotation("with.dots[0]", 2, 1);
    size_t a = in(4);
    pb_put_str(&trace, 10, "dict");
    size_t b = in(11);
    pb_put_str(&trace, 10, "list");
    for (int i = 0; i < 2; i++) {
        size_t c = in(12);
        pb_put_varint(&trace, 4, (uint64_t)(10 + i));
        out(c);
    }
    out(b);
    out(a);
    a = in(4);
    pb_put_str(&trace, 10, "json");
    pb_put_str(&trace, 9, "{\"k\": [true, \"\\u0041\\n\", {\"deep\": 1.5}], \"none\": null}");
    out(a);
    a = in(4);
    pb_put_str(&trace, 10, "not_json");
    pb_put_str(&trace, 9, "{\"k\": ");
    out(a);
    event_end();
    load();
    int64_t set = SLICE(arg_set_id, 0);
    ck_assert_str_eq(arg_text(set, "debug.i"), "-5");
    ck_assert_str_eq(arg_text(set, "debug.u"), "6");
    ck_assert_str_eq(arg_text(set, "debug.with_dots_0_"), "1");
    ck_assert_str_eq(arg_text(set, "debug.dict.list[1]"), "11");
    ck_assert_str_eq(arg_text(set, "debug.json.k[0]"), "1");
    ck_assert_str_eq(arg_text(set, "debug.json.k[1]"), "A\n");
    ck_assert_str_eq(arg_text(set, "debug.json.k[2].deep"), "1.5");
    ck_assert_str_eq(arg_text(set, "debug.not_json"), "{\"k\": ");
}
END_TEST

/* A FieldDescriptorProto. */
static void field(uint32_t in_field, const char *name, unsigned number, unsigned type, const char *type_name,
                  const char *extendee, bool repeated)
{
    size_t f = in(in_field);
    pb_put_str(&trace, 1, name);
    if (extendee)
        pb_put_str(&trace, 2, extendee);
    pb_put_varint(&trace, 3, number);
    pb_put_varint(&trace, 4, repeated ? 3 : 1);
    pb_put_varint(&trace, 5, type);
    if (type_name)
        pb_put_str(&trace, 6, type_name);
    out(f);
}

START_TEST(messages_are_read_by_descriptors_in_the_trace)
{
    packet_begin(-1, 1, 0);
    size_t e = in(72), set = in(1), file = in(1);
    pb_put_str(&trace, 2, "my.app");
    size_t m = in(4);
    pb_put_str(&trace, 1, "Request");
    field(2, "url", 1, 9, NULL, NULL, false);
    field(2, "sizes", 2, 13, NULL, NULL, true);
    field(2, "kind", 3, 14, ".my.app.Request.Kind", NULL, false);
    size_t kind = in(4);
    pb_put_str(&trace, 1, "Kind");
    size_t v = in(2);
    pb_put_str(&trace, 1, "GET");
    pb_put_varint(&trace, 2, 7);
    out(v);
    out(kind);
    out(m);
    field(7, "request", 9901, 11, ".my.app.Request", ".perfetto.protos.TrackEvent", false);
    out(file);
    out(set);
    out(e);
    packet_end();

    for (int extension = 0; extension < 2; extension++) {
        event(10 + extension, INSTANT, 1, "x");
        size_t a = extension ? 0 : in(4);
        if (!extension) {
            pb_put_str(&trace, 10, "req");
            pb_put_str(&trace, 16, ".my.app.Request");
        }
        size_t r = in(extension ? 9901 : 14);
        pb_put_str(&trace, 1, "/index");
        size_t packed = in(2);
        pb_put_raw_varint(&trace, 100);
        pb_put_raw_varint(&trace, 200);
        out(packed);
        pb_put_varint(&trace, 2, 300);
        pb_put_varint(&trace, 3, 7);
        out(r);
        if (!extension)
            out(a);
        event_end();
    }
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    static const char *const prefixes[] = {"debug.req", "request"};
    for (uint32_t i = 0; i < 2; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.url", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "/index");
        snprintf(key, sizeof key, "%s.sizes[1]", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "200");
        snprintf(key, sizeof key, "%s.sizes[2]", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "300");
        snprintf(key, sizeof key, "%s.kind", prefixes[i]);
        ck_assert_str_eq(arg_text(SLICE(arg_set_id, i), key), "GET");
    }
}
END_TEST

START_TEST(categories_join_and_unknown_ones_show)
{
    event(10, INSTANT, 1, "x");
    pb_put_varint(&trace, 3, 9);
    pb_put_str(&trace, 22, "net");
    event_end();
    event(11, INSTANT, 1, "y");
    pb_put_varint(&trace, 3, 9);
    event_end();
    load();
    ck_assert_str_eq(text(SLICE(category, 0)), "unknown(9),net");
    ck_assert_str_eq(text(SLICE(category, 1)), "unknown(9)");
}
END_TEST

START_TEST(log_messages_are_logs)
{
    packet_begin(10, 1, 1);
    size_t d = in(12), i = in(20);
    pb_put_varint(&trace, 1, 3);
    pb_put_str(&trace, 2, "disk is full");
    out(i);
    out(d);
    size_t e = in(11), l;
    pb_put_varint(&trace, 9, INSTANT);
    pb_put_varint(&trace, 11, 1);
    l = in(21);
    pb_put_varint(&trace, 2, 3);
    pb_put_varint(&trace, 3, 6);
    out(l);
    out(e);
    packet_end();
    load();
    ck_assert_uint_eq(ROWS(logs), 1);
    ck_assert_str_eq(text(ROW_GET(&st, logs, msg, 0)), "disk is full");
    ck_assert_int_eq(ROW_GET(&st, logs, prio, 0), 6);
    ck_assert_str_eq(arg_text(SLICE(arg_set_id, 0), "track_event.log_message"), "disk is full");
}
END_TEST

/* --- times -------------------------------------------------------------------------------------------------------- */

START_TEST(deltas_need_a_thread_descriptor)
{
    packet_begin(-1, 1, 1);
    size_t e = in(11);
    pb_put_varint(&trace, 1, 5);
    pb_put_varint(&trace, 9, INSTANT);
    out(e);
    packet_end();
    packet_begin(-1, 1, 0);
    size_t t = in(44);
    pb_put_varint(&trace, 1, 100);
    pb_put_varint(&trace, 2, 101);
    pb_put_varint(&trace, 6, 1000);
    out(t);
    packet_end();
    for (int i = 0; i < 2; i++) {
        packet_begin(-1, 1, 0);
        e = in(11);
        pb_put_varint(&trace, 1, 5);
        pb_put_varint(&trace, 9, INSTANT);
        out(e);
        packet_end();
    }
    packet_begin(-1, 1, 0); /* no time at all */
    e = in(11);
    pb_put_varint(&trace, 9, INSTANT);
    out(e);
    packet_end();
    packet_begin(10, 1, 0); /* neither type nor phase */
    out(in(11));
    packet_end();
    load();
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_int_eq(SLICE(ts, 0), 1005000);
    ck_assert_int_eq(SLICE(ts, 1), 1010000);
    ck_assert_int_eq(STAT(track_event_skipped_timestamp_delta_without_valid_state), 1);
    ck_assert_int_eq(STAT(track_event_missing_timestamp), 1);
    ck_assert_int_eq(STAT(track_event_parser_errors), 1);
}
END_TEST

/* --- loss --------------------------------------------------------------------------------------------------------- */

struct kept_packet {
    size_t at, len;
    uint32_t sequence;
    unsigned flags;
    uint64_t ts;
};

static struct {
    struct pb_writer bytes;
    struct kept_packet p[2048];
    size_t n;
} recorded;

static void keep_packet(void *ctx, struct slice packet, uint32_t sequence, unsigned flags, uint64_t ts)
{
    (void)ctx;
    ck_assert_uint_lt(recorded.n, sizeof recorded.p / sizeof *recorded.p);
    recorded.p[recorded.n++] = (struct kept_packet){recorded.bytes.n, packet.len, sequence, flags, ts};
    pb_put_raw(&recorded.bytes, packet.p, packet.len);
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
            ROW_GET(&st, thread, tid, (uint32_t)utid) != 4242 + (int64_t)sequence)
            continue;
        char line[256];
        int len = snprintf(line, sizeof line, "%lld %lld %s %s;", (long long)SLICE(ts, row), (long long)SLICE(dur, row),
                           text(SLICE(category, row)), text(SLICE(name, row)));
        for (int i = 0; i < len; i++)
            h = (h ^ (uint8_t)line[i]) * 1099511628211u;
        list.n = 0;
        if (SLICE(arg_set_id, row) != COL_NULL)
            args_values(&st.args, (uint32_t)SLICE(arg_set_id, row), &list);
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

START_TEST(every_packet_may_be_lost)
{
    static const struct sdk_trace_options options = {420, 2, 48};
    uint32_t n;
    recorded.n = 0;
    ck_assert(sdk_trace_write(&options, keep_packet, NULL));
    import_without(SIZE_MAX);
    ck_assert_int_eq(STAT(packet_skipped_seq_needs_incremental_state_invalid), 0);
    uint32_t all = ROWS(slice);
    ck_assert_uint_gt(all, 150);
    /* What is whole after each clear, of either sequence. */
    uint64_t *whole = calloc(recorded.n, sizeof *whole), untouched[3] = {0};
    for (size_t i = 0; i < recorded.n; i++)
        if (recorded.p[i].flags & SDK_CLEARS)
            whole[i] = digest(recorded.p[i].sequence, (int64_t)recorded.p[i].ts, &n);
    for (uint32_t s = 1; s <= 2; s++)
        untouched[s] = digest(s, 0, &n);
    unsigned clears_seen = 0;

    for (size_t lost = 0; lost < recorded.n; lost++) {
        uint32_t sequence = recorded.p[lost].sequence;
        int64_t skipped = 0, unread = 0;
        size_t clear = lost + 1;
        for (; clear < recorded.n; clear++) {
            const struct kept_packet *p = &recorded.p[clear];
            if (p->sequence != sequence)
                continue;
            if (p->flags & SDK_CLEARS)
                break;
            skipped += (p->flags & SDK_NEEDS) != 0;
            unread += (p->flags & SDK_INTERNS) != 0;
        }
        import_end();
        import_begin();
        import_without(lost);
        ck_assert_msg(STAT(packet_skipped_seq_needs_incremental_state_invalid) == skipped,
                      "without packet %zu: %lld packets skipped, %lld depend on it", lost,
                      (long long)STAT(packet_skipped_seq_needs_incremental_state_invalid), (long long)skipped);
        ck_assert_int_eq(STAT(interned_data_skipped_incremental_state_invalid), unread);
        ck_assert_uint_eq(digest(3 - sequence, 0, &n), untouched[3 - sequence]);
        if (clear < recorded.n) {
            ck_assert_msg(digest(sequence, (int64_t)recorded.p[clear].ts, &n) == whole[clear],
                          "without packet %zu: not all is as it was after the clear at %zu", lost, clear);
            ck_assert_uint_gt(n, 0);
            clears_seen++;
        }
    }
    ck_assert_uint_gt(clears_seen, 200);
    free(whole);
    pb_writer_free(&recorded.bytes);
}
END_TEST

/* Takes the packets of a recorded trace for what import_without() leaves out. False when there is no such file. */
static bool take_trace(const char *name)
{
    const char *shared = getenv("MERIDIAN_SHARED");
    char path[512];
    struct mapped_file map;
    struct pb_field f, g;
    snprintf(path, sizeof path, "%s/conformance/traces/%s", shared ? shared : MERIDIAN_SOURCE_DIR "/../shared", name);
    if (mapped_file_open(&map, path, NULL) != 0)
        return false;
    recorded.n = 0;
    recorded.bytes = (struct pb_writer){0};
    struct pb_cursor c = pb_cursor(map.bytes);
    while (pb_next(&c, &f)) {
        unsigned flags = 0;
        uint32_t sequence = 0;
        struct pb_cursor packet = pb_sub(&f);
        while (pb_next(&packet, &g)) {
            if (g.id == 10)
                sequence = pb_u32(&g);
            flags |= (g.id == 13 && (pb_u64(&g) & 1)) || (g.id == 41 && pb_bool(&g)) ? SDK_CLEARS : 0;
            flags |= g.id == 13 && (pb_u64(&g) & 2) ? SDK_NEEDS : 0;
            flags |= g.id == 12 ? SDK_INTERNS : 0;
        }
        keep_packet(NULL, pb_bytes(&f), sequence, flags, 0);
    }
    mapped_file_close(&map);
    return true;
}

START_TEST(every_packet_of_a_recorded_trace_may_be_lost)
{
    static const char *const names[] = {
        "synth-parser-track_event-track_event_counters_counters_machine_id.pftrace",
        "synth-parser-track_event-track_event_tracks_machine_id.pftrace",
        "synth-parser-parsing-sequence_all_incremental_dropped.pftrace",
        "synth-parser-profiling-cpu_profiling_samples_timebase_filter.pftrace",
    };
    if (!take_trace(names[_i])) {
        fprintf(stderr, "skipped: %s is not here (MERIDIAN_SHARED)\n", names[_i]);
        return;
    }
    ck_assert_uint_gt(recorded.n, 1);
    for (size_t lost = 0; lost < recorded.n; lost++) {
        struct u64map valid = {0}; /* sequence -> its state is valid */
        int64_t skipped = 0, unread = 0;
        bool told = false;
        for (size_t i = 0; i < recorded.n; i++) {
            const struct kept_packet *p = &recorded.p[i];
            struct pb_field f;
            bool dropped = pb_find(slice_of(recorded.bytes.p + p->at, p->len), 42, &f) && pb_u64(&f);
            if (i == lost)
                continue;
            if (!told && i > lost && p->sequence == recorded.p[lost].sequence)
                dropped = told = true;
            uint64_t *state = u64map_put(&valid, p->sequence, NULL);
            *state = p->flags & SDK_CLEARS ? 1 : dropped ? 0 : *state;
            skipped += (p->flags & SDK_NEEDS) && !*state;
            unread += (p->flags & SDK_INTERNS) && !*state;
        }
        u64map_free(&valid);
        import_end();
        import_begin();
        import_without(lost);
        ck_assert_int_eq(STAT(packet_skipped_seq_needs_incremental_state_invalid), skipped);
        ck_assert_int_eq(STAT(interned_data_skipped_incremental_state_invalid), unread);
    }
    pb_writer_free(&recorded.bytes);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

struct gate {
    unsigned calls, fail_at;
    bool for_good; /* every call from there on fails, not only one */
};

static bool gate_open(void *ctx, size_t size)
{
    struct gate *g = ctx;
    (void)size;
    g->calls++;
    return g->calls < g->fail_at || (!g->for_good && g->calls > g->fail_at);
}

/* Imports `trace` with memory running out at one call; true when that call was never reached. */
static bool import_with_gate(struct gate *g)
{
    struct import_options options = {0};
    struct error err;
    struct storage s;
    struct importer *i;
    bool failed = true;
    alloc_set_gate(gate_open, g);
    if (storage_init(&s) == 0) {
        if (importer_open(&i, &s, &options, &err) == 0) {
            failed = importer_feed(i, trace.p, trace.n, &err) != 0;
            failed |= importer_finish(i, &err) != 0;
            struct arg_list list = {0};
            for (uint32_t id = 1; id <= args_count(&s.args); id++) {
                list.n = 0;
                args_values(&s.args, id, &list);
            }
            arg_list_free(&list);
            importer_close(i);
        }
        storage_free(&s);
    }
    alloc_set_gate(NULL, NULL);
    return g->calls < g->fail_at && !failed;
}

START_TEST(memory_may_run_out_anywhere)
{
    static const struct sdk_trace_options options = {60, 2, 24};
    recorded.n = 0;
    recorded.bytes = (struct pb_writer){0};
    ck_assert(sdk_trace_write(&options, keep_packet, NULL));
    for (size_t i = 0; i < recorded.n; i++) {
        size_t m = in(1);
        pb_put_raw(&trace, recorded.bytes.p + recorded.p[i].at, recorded.p[i].len);
        out(m);
    }
    bool through = false;
    unsigned k = 1;
    for (; !through; k += 1 + k / 64) {
        struct gate g = {0, k, k % 2};
        through = import_with_gate(&g);
        ck_assert_uint_lt(k, 1000000);
    }
    ck_assert_uint_gt(k, 100);
    pb_writer_free(&recorded.bytes);
}
END_TEST

Suite *track_event_suite(void);

Suite *track_event_suite(void)
{
    Suite *s = suite_create("track_event");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_thread_track_is_the_threads_own);
    tcase_add_test(c, siblings_merge_by_key_and_overlap_on_two_rows);
    tcase_add_test(c, an_unknown_uuid_is_a_track_of_its_own);
    tcase_add_test(c, hierarchies_without_end_are_counted);
    tcase_add_test(c, broken_descriptors_are_counted);
    tcase_add_test(c, counters_add_up);
    tcase_add_test(c, extra_counters_must_fit_their_tracks);
    tcase_add_test(c, a_state_lasts_until_the_next);
    tcase_add_test(c, annotations_nest);
    tcase_add_test(c, messages_are_read_by_descriptors_in_the_trace);
    tcase_add_test(c, categories_join_and_unknown_ones_show);
    tcase_add_test(c, log_messages_are_logs);
    tcase_add_test(c, deltas_need_a_thread_descriptor);
    tcase_add_test(c, every_packet_may_be_lost);
    tcase_add_loop_test(c, every_packet_of_a_recorded_trace_may_be_lost, 0, 4);
    tcase_add_test(c, memory_may_run_out_anywhere);
    suite_add_tcase(s, c);
    return s;
}
