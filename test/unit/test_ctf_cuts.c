/* CTF traces whose streams or metadata end at any byte: whatever comes before the cut is read, and the loss is told. */
#include "importer/importer.h"
#include "made_up_files.h"

#include <string.h>

#define NUMBER(bits, more)                                                                                             \
    "{\"type\":\"fixed-length-unsigned-integer\",\"length\":" #bits ",\"byte-order\":\"little-endian\"" more "}"
#define MEMBER(name, bits, more) "{\"name\":\"" name "\",\"field-class\":" NUMBER(bits, more) "}"
#define STRUCT(members)          "{\"type\":\"structure\",\"member-classes\":[" members "]}"
#define ROLE(name)               ",\"roles\":[\"" name "\"]"

/* What an event is: a number of its kind, a time, a byte. */
#define EVENT_1_8                                                                                                      \
    " event.header := struct { u8 id; u8 timestamp; }; }; event { name = e; id = 1; fields := struct { u8 a; }; };"
#define TYPES_1_8                                                                                                      \
    "/* CTF 1.8 */ typealias integer { size = 8; } := u8; typealias integer { size = 16; align = 8; } := u16; stream " \
    "{"
#define EVENT_2                                                                                                        \
    "\"event-record-header-field-class\":" STRUCT(MEMBER("id", 8, ROLE("event-record-class-id")) "," MEMBER(           \
        "t", 8, "")) "}\n\x1e{\"type\":\"event-record-class\",\"id\":1,\"name\":\"e\",\"payload-field-"                \
                     "class\":" STRUCT(MEMBER("a", 8, "")) "}\n"
#define STREAM_2 "\x1e{\"type\":\"preamble\",\"version\":2}\n\x1e{\"type\":\"data-stream-class\","

enum {
    PACKETS = 3,
    EVENTS = 3,
    EVENT_BYTES = 3,
    CONTEXT_BYTES = 4,
    CONTENT = CONTEXT_BYTES + EVENTS * EVENT_BYTES,
    PACKET = 16
};

static const struct {
    const char *metadata;
    bool packets; /* that tell their sizes; else one is all of the stream */
} traces[] = {
    {TYPES_1_8 " packet.context := struct { u16 content_size; u16 packet_size; };" EVENT_1_8, true},
    {TYPES_1_8 EVENT_1_8, false},
    {STREAM_2 "\"packet-context-field-class\":" STRUCT(
         MEMBER("c", 16, ROLE("packet-content-length")) "," MEMBER("s", 16, ROLE("packet-total-length"))) "," EVENT_2,
     true},
    {STREAM_2 EVENT_2, false},
};

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s%s", made_up, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

struct outcome {
    int rc;
    uint32_t events;
    bool told;
};

static struct outcome import(void)
{
    static const enum stat_key keys[] = {STAT_ctf_packets_damaged, STAT_ctf_bytes_damaged};
    struct storage st;
    struct importer *im;
    struct error err = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(importer_open(&im, &st, &(struct import_options){0}, &err), 0);
    struct outcome o = {.rc = importer_add_file(im, made_up, &err)};
    int rc = importer_finish(im, o.rc ? NULL : &err);
    o.rc = o.rc ? o.rc : rc;
    ck_assert_msg(o.rc == 0 || err.text[0], "a failure without a text");
    o.events = st.t[T_ftrace_event].n_rows;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (int32_t idx = -1; idx < 4; idx++)
            o.told |= stats_get_idx(&st.stats, 0, keys[i], idx) != NULL;
    importer_close(im);
    storage_free(&st);
    return o;
}

/* A stream of nine events; where each of them ends. */
static size_t make_stream(bool packets, uint8_t *bytes, size_t ends[PACKETS * EVENTS])
{
    size_t n = 0, k = 0;
    for (int i = 0; i < PACKETS; i++) {
        const uint8_t context[CONTEXT_BYTES] = {CONTENT * 8, 0, PACKET * 8, 0};
        size_t begin = n;
        if (packets)
            memcpy(bytes + n, context, sizeof context);
        n += packets ? sizeof context : 0;
        for (int e = 0; e < EVENTS; e++) {
            bytes[n++] = 1;
            bytes[n++] = (uint8_t)(k + 1);
            bytes[n++] = (uint8_t)k;
            ends[k++] = n;
        }
        while (packets && n < begin + PACKET)
            bytes[n++] = 0;
    }
    return n;
}

START_TEST(a_stream_may_end_anywhere)
{
    uint8_t bytes[PACKETS * PACKET];
    size_t ends[PACKETS * EVENTS], n = make_stream(traces[_i].packets, bytes, ends);
    make_root();
    write_file("/metadata", traces[_i].metadata, strlen(traces[_i].metadata));
    for (size_t end = 0; end <= n; end++) {
        uint32_t there = 0;
        for (int k = 0; k < PACKETS * EVENTS; k++)
            there += ends[k] <= end;
        size_t left = traces[_i].packets ? end % PACKET : 0; /* of a packet; behind its contents nothing is lost */
        bool lost = traces[_i].packets ? left && left < CONTENT : end % EVENT_BYTES != 0;
        write_file("/stream", bytes, end);
        struct outcome o = import();
        ck_assert_msg(o.rc == 0 && o.events == there, "cut at %zu: rc %d, %u events, not %u", end, o.rc, o.events,
                      there);
        ck_assert_msg(o.told || !lost, "cut at %zu: no word of it", end);
        ck_assert_msg(!o.told || left || lost, "cut at %zu: a loss that is none", end);
    }
    remove_root();
}
END_TEST

/* Of metadata that end too early events may have no description. */
START_TEST(metadata_may_end_anywhere)
{
    uint8_t bytes[PACKETS * PACKET];
    size_t ends[PACKETS * EVENTS], n = make_stream(traces[_i].packets, bytes, ends);
    make_root();
    write_file("/stream", bytes, n);
    for (size_t end = 0; end <= strlen(traces[_i].metadata); end++) {
        write_file("/metadata", traces[_i].metadata, end);
        struct outcome o = import();
        bool all = o.events == PACKETS * EVENTS;
        ck_assert_msg(o.rc || all || o.told, "cut at %zu: %u events and no word of it", end, o.events);
        ck_assert_msg(all || end < strlen(traces[_i].metadata), "%u events", o.events);
    }
    remove_root();
}
END_TEST

Suite *ctf_cuts_suite(void);
Suite *ctf_cuts_suite(void)
{
    Suite *s = suite_create("ctf_cuts");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_stream_may_end_anywhere, 0, sizeof traces / sizeof *traces);
    tcase_add_loop_test(t, metadata_may_end_anywhere, 0, sizeof traces / sizeof *traces);
    suite_add_tcase(s, t);
    return s;
}
