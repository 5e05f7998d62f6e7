/* CTF metadata and streams: what is refused and where, what lies are counted as. What is read right is compared with
 * other readers by cli.ctf. */
#include "importer/ctf/ctf_stream.h"

#include <check.h>
#include <stdlib.h>

#define CTF "/* CTF 1.8 */\n"

static const struct {
    const char *text, *error; /* NULL: it is read */
} metadata[] = {
    {CTF "trace { byte_order = le; };", NULL},
    {CTF "typealias integer { size = 7; } := u7; struct { u7 a; u7 b[3]; };", NULL},
    {CTF "clock { name = \"a\"; freq = 0; };", "frequency 0"},
    {CTF "event { name = \"e\"; fields := struct { nothing x; }; };", "line 2"},
    {CTF "event { name = \"e\"; fields := struct { integer { size = 65; } x; }; };", "65 bits"},
    {CTF "event { name = \"e\"; fields := struct { integer { size = 0; } x; }; };", "0 bits"},
    {CTF "event { name = \"e\"; fields := struct { integer { size = 8; align = 3; } x; }; };", "power of two"},
    {CTF "event { name = \"e\"; fields := struct { floating_point { exp_dig = 5; mant_dig = 11; } x; }; };", "IEEE"},
    {CTF "event { name = \"e\"; fields := struct { string a[n]; }; };", "'n'"},
    {CTF "event { name = \"e\"; fields := struct { string n; string a[n]; }; };", "not an integer"},
    {CTF "event { name = \"e\"; fields := struct { integer { size = 8; } n; variant <n> { string a; } v; }; };",
     "not an enum"},
    {CTF "event { name = \"e\"; fields := struct { struct { } a[n]; }; };", "take no space"},
    {CTF "event { name = \"e\"; fields := struct { string a[n]; integer { size = 8; } n; }; };", "before its use"},
    {CTF "event { name = e; fields := struct { string a[event.fields.n]; integer { size = 8; } n; }; };", "before its"},
    {CTF "event { name = \"e", "line 2 column 16"},
    {CTF "event { name = \"e\"; ", "expected"},
    {CTF "/* never ends", "line 2"},
    {CTF "stream { id = 99999999999999999999999; };", "expected"},
    {CTF "nonsense { };", "expected a block"},
};

START_TEST(metadata_is_read_or_refused)
{
    struct ctf_metadata m;
    struct error err = {0};
    int rc = tsdl_parse(&m, metadata[_i].text, strlen(metadata[_i].text), &err);
    if (metadata[_i].error) {
        ck_assert_int_eq(rc, -MRD_EFORMAT);
        ck_assert_msg(strstr(err.text, metadata[_i].error) != NULL, "\"%s\" does not say \"%s\"", err.text,
                      metadata[_i].error);
        ck_assert_msg(strncmp(err.text, "metadata line ", 14) == 0, "%s", err.text);
    } else {
        ck_assert_msg(rc == 0, "%s", err.text);
    }
    ctf_metadata_free(&m);
}
END_TEST

/* A stream of 32-bit words: content_size, packet_size and events_discarded and packet_seq_num, then events of an id
 * byte and a stamp byte that maps the clock. */
static const char small[] = CTF
    "clock { name = c; freq = 1000; offset_s = 5; }; trace { byte_order = le; };"
    "typealias integer { size = 32; align = 8; } := u32;"
    "stream { packet.context := struct { u32 content_size; u32 packet_size; u32 events_discarded; u32 packet_seq_num; "
    "};"
    " event.header := struct { integer { size = 8; } id; integer { size = 8; map = clock.c.value; } timestamp; }; };"
    "event { name = \"tick\"; id = 1; fields := struct { }; };"
    "event { name = \"text\"; id = 2; fields := struct { string s; }; };";

enum { HEAD = 16 };

struct packet {
    uint32_t content, size, discarded, seq; /* bytes; 0: as it is */
    const char *events;
    size_t n;
};

static size_t put_packet(uint8_t *out, const struct packet *p)
{
    uint32_t content = p->content ? p->content : (uint32_t)(HEAD + p->n), size = p->size ? p->size : content;
    uint32_t words[] = {content * 8, size * 8, p->discarded, p->seq};
    memset(out, 0, HEAD + p->n);
    memcpy(out, words, sizeof words);
    memcpy(out + HEAD, p->events, p->n);
    return HEAD + p->n;
}

#define EVENTS(text) .events = text, .n = sizeof text - 1

static const struct {
    struct packet packets[3];
    size_t n_events;
    struct ctf_losses losses;
} streams[] = {
    {{{EVENTS("\1\1\1\2")}, {EVENTS("\1\3"), .seq = 1}}, 3, {0}},
    {{{EVENTS("\1\1"), .discarded = 3}, {EVENTS("\1\2"), .seq = 5, .discarded = 10}},
     2,
     {.events_discarded = 10, .packets_lost = 4}},
    {{{EVENTS("\1\1\7\2\1\3")}, {EVENTS("\1\4"), .seq = 1}}, 2, {.packets_damaged = 1}},  /* an unknown event */
    {{{EVENTS("\1\1\2\2never")}, {EVENTS("\1\4"), .seq = 1}}, 2, {.packets_damaged = 1}}, /* a text without end */
    {{{EVENTS("\1\1"), .size = 4000}}, 1, {.packets_damaged = 1}},                        /* cut short */
    {{{EVENTS("\1\1")}, {EVENTS("\1\1"), .content = 4, .size = 18}},
     1,
     {.bytes_damaged = 18}}, /* smaller than its head */
    {{{EVENTS("\1\1")}, {EVENTS("\1\1"), .content = 40, .size = 18}},
     1,
     {.bytes_damaged = 18}},                                                              /* more inside than out */
    {{{EVENTS("\1\1")}, {EVENTS("\1\2"), .seq = 1}, {EVENTS("\1\3"), .seq = 1}}, 3, {0}}, /* a number twice */
};

START_TEST(lies_are_counted)
{
    struct ctf_metadata m;
    struct error err = {0};
    uint8_t bytes[256];
    size_t len = 0, n = 0;
    ck_assert_msg(tsdl_parse(&m, small, sizeof small - 1, &err) == 0, "%s", err.text);
    for (int i = 0; i < 3 && streams[_i].packets[i].events; i++)
        len += put_packet(bytes + len, &streams[_i].packets[i]);
    uint8_t *exact = malloc(len); /* so that a read behind it is seen */
    memcpy(exact, bytes, len);
    struct ctf_stream s;
    const struct ctf_event *e;
    int64_t before = 0;
    ck_assert_int_eq(ctf_stream_open(&s, &m, slice_of(exact, len)), 0);
    for (; (e = ctf_stream_next(&s)); n++) {
        ck_assert_str_eq(e->class->name, "tick");
        ck_assert_int_ge(e->ts_ns, before);
        before = e->ts_ns;
    }
    ck_assert_uint_eq(n, streams[_i].n_events);
    ck_assert_uint_eq(s.losses.events_discarded, streams[_i].losses.events_discarded);
    ck_assert_uint_eq(s.losses.packets_lost, streams[_i].losses.packets_lost);
    ck_assert_uint_eq(s.losses.packets_damaged, streams[_i].losses.packets_damaged);
    ck_assert_uint_eq(s.losses.bytes_damaged, streams[_i].losses.bytes_damaged);
    ctf_stream_close(&s);
    ctf_metadata_free(&m);
    free(exact);
}
END_TEST

static const struct {
    struct ctf_clock clock;
    uint64_t cycles;
    int64_t ns;
} clocks[] = {
    {{.freq = 1000000000}, 7, 7},
    {{.freq = 1000000000, .offset_s = 3, .offset = -5}, 7, 3000000002},
    {{.freq = 3, .offset = 1}, 1, 666666666},
    {{.freq = 1000}, UINT64_MAX / 2, INT64_MAX}, /* saturates */
    {{.freq = 1, .offset_s = INT64_MIN}, 0, INT64_MIN},
};

START_TEST(clocks_become_ns)
{
    ck_assert_int_eq(ctf_clock_ns(&clocks[_i].clock, clocks[_i].cycles), clocks[_i].ns);
}
END_TEST

/* --- files that end at any byte: what came before the cut is read, and the loss is told --- */

static const char texts[] = CTF "typealias integer { size = 8; } := u8;"
                                "clock { name = c; freq = 1000; }; trace { byte_order = le; };"
                                "stream { packet.context := struct { u8 content_size; u8 packet_size; };"
                                " event.header := struct { u8 id; integer { size = 8; map = clock.c.value; } t; }; };"
                                "event { name = \"text\"; id = 1; fields := struct { string s; u8 n; u8 list[n]; }; };";

START_TEST(streams_cut_at_every_byte)
{
    /* Two packets of two events each. */
    enum { FIRST = 18, SECOND = 15 };
    static const uint8_t file[FIRST + SECOND] = {
        16 * 8,          FIRST * 8, 1,      1,          'a', 'b', 0, 2, 7, 8,      /**/ 1, 2,   'c', 0, 1, 9,
        /* padding */ 1, 3,         14 * 8, SECOND * 8, 1,   4,   0, 1, 5, /**/ 1, 5,      'd', 0,   2, 6, 7,
        /* padding */ 0};
    static const size_t ends[] = {10, 16, FIRST + 7, FIRST + 14};
    struct ctf_metadata m;
    struct error err = {0};
    ck_assert_msg(tsdl_parse(&m, texts, sizeof texts - 1, &err) == 0, "%s", err.text);
    for (size_t cut = 0; cut <= sizeof file; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);
        memcpy(exact, file, cut);
        struct ctf_stream s;
        size_t n = 0, want = 0;
        ck_assert_int_eq(ctf_stream_open(&s, &m, slice_of(exact, cut)), 0);
        while (ctf_stream_next(&s))
            n++;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            want += ends[i] <= cut;
        bool told = s.losses.packets_damaged || s.losses.bytes_damaged;
        ck_assert_msg(n == want, "%zu bytes: %zu events, %zu were there", cut, n, want);
        ck_assert_msg(told == (cut != 0 && cut != FIRST && cut != sizeof file), "%zu bytes", cut);
        ctf_stream_close(&s);
        free(exact);
    }
    ctf_metadata_free(&m);
}
END_TEST

START_TEST(metadata_cut_at_every_byte)
{
    for (size_t cut = 1; cut < sizeof texts - 1; cut++) {
        char *exact = malloc(cut + 1);
        memcpy(exact, texts, cut);
        exact[cut] = 0;
        struct ctf_metadata m;
        struct error err = {0};
        int rc = tsdl_parse(&m, exact, cut, &err);
        ck_assert_msg(rc == 0 || (rc == -MRD_EFORMAT && err.text[0]), "%zu bytes: %d %s", cut, rc, err.text);
        ctf_metadata_free(&m);
        free(exact);
    }
}
END_TEST

/* CTF 2: a fragment that is not whole is not there yet. */
START_TEST(ctf2_metadata_cut_at_every_byte)
{
    static const struct {
        const char *text;
        unsigned clocks, streams, events; /* that it adds */
    } fragments[] = {
        {"\x1e{\"type\": \"preamble\", \"version\": 2, \"extensions\": {\"a.b\": {}}, \"attributes\": {\"a.b\": [1, "
         "{}]}}",
         0, 0, 0},
        {"\n\x1e{\"type\": \"field-class-alias\", \"name\": \"byte\", \"field-class\": {\"type\": "
         "\"fixed-length-unsigned-integer\", \"length\": 8, \"byte-order\": \"little-endian\", \"mappings\": {\"all\": "
         "[[0, 255]]}}}",
         0, 0, 0},
        {"\x1e{\"type\": \"trace-class\", \"uid\": \"\\u00e9\", \"environment\": {\"hostname\": \"h\", \"n\": -5}}", 0,
         0, 0},
        {"\x1e {\"type\": \"clock-class\", \"id\": \"c\", \"frequency\": 1000, \"origin\": \"unix-epoch\", "
         "\"offset-from-origin\": {\"seconds\": -1, \"cycles\": 5}}",
         1, 0, 0},
        {"\x1e{\"type\": \"data-stream-class\", \"default-clock-class-id\": \"c\"}", 0, 1, 0},
        {"\x1e{\"type\": \"event-record-class\", \"id\": 1, \"name\": \"a\", \"payload-field-class\": {\"type\": "
         "\"structure\", "
         "\"member-classes\": [{\"name\": \"n\", \"field-class\": \"byte\"}, {\"name\": \"v\", \"field-class\": "
         "{\"type\": \"optional\", "
         "\"field-class\": {\"type\": \"null-terminated-string\", \"encoding\": \"utf-16le\"}, "
         "\"selector-field-location\": "
         "{\"path\": [\"n\"]}, \"selector-field-ranges\": [[1, 18446744073709551615]]}}]}}",
         0, 0, 1},
        {"\n\x1e{\"type\": \"event-record-class\", \"id\": 2, \"name\": \"b\"}", 0, 0, 1},
    };
    enum { FRAGMENTS = sizeof fragments / sizeof *fragments };
    char text[2048] = "";
    size_t ends[FRAGMENTS];
    for (size_t i = 0; i < FRAGMENTS; i++)
        ends[i] = strlen(strcat(text, fragments[i].text));
    for (size_t cut = 1; cut <= ends[FRAGMENTS - 1]; cut++) {
        unsigned n_clocks = 0, n_streams = 0, n_events = 0;
        for (size_t i = 0; i < FRAGMENTS && ends[i] <= cut; i++) {
            n_clocks += fragments[i].clocks;
            n_streams += fragments[i].streams;
            n_events += fragments[i].events;
        }
        struct ctf_metadata m;
        struct error err = {0};
        char *exact = malloc(cut + 1); /* of this length, so that the sanitizer sees what is behind it */
        memcpy(exact, text, cut);
        exact[cut] = 0;
        int rc = ctf2_parse(&m, exact, cut, &err);
        ck_assert_msg(cut < ends[0] ? rc == -MRD_EFORMAT && *err.text : rc == 0, "at %zu: %d %s", cut, rc, err.text);
        ck_assert_msg(m.clocks.n == n_clocks && m.streams.n == n_streams && m.events.n == n_events, "at %zu", cut);
        ctf_metadata_free(&m);
        free(exact);
    }
}
END_TEST

#define COUNT(a) (int)(sizeof a / sizeof *a)

Suite *ctf_suite(void);
Suite *ctf_suite(void)
{
    Suite *s = suite_create("ctf");
    TCase *t = tcase_create("ctf");
    tcase_add_loop_test(t, metadata_is_read_or_refused, 0, COUNT(metadata));
    tcase_add_loop_test(t, lies_are_counted, 0, COUNT(streams));
    tcase_add_loop_test(t, clocks_become_ns, 0, COUNT(clocks));
    tcase_add_test(t, streams_cut_at_every_byte);
    tcase_add_test(t, metadata_cut_at_every_byte);
    tcase_add_test(t, ctf2_metadata_cut_at_every_byte);
    suite_add_tcase(s, t);
    return s;
}
