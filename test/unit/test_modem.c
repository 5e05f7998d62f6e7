/* Events of a modem, and the database of their texts. */
#include "unit/trace_fixture.h"

#include "importer/importer.h"

static struct trace_fixture f;

static void setup(void)
{
    trace_fixture_open(&f);
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))

static const struct {
    uint32_t token, removed;
    const char *text;
} texts[] = {
    {1, UINT32_MAX, "plain %d and %u x=%08llx %s %c %.2f %5d|%-5d|%%"},
    {2, UINT32_MAX,
     "\xe2\x96\xa0"
     "domain\xe2\x99\xa6"
     "Radio\xe2\x96\xa0"
     "format\xe2\x99\xa6"
     "state %i of %*d"},
    {3, 5, "old"},
    {4, UINT32_MAX, "%"},
    {5, UINT32_MAX, "%99999999d%.99999999f"},
};
enum { TEXTS = sizeof texts / sizeof *texts };

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

/* A packet with the database, less its last `cut` bytes. */
static void put_database(size_t cut)
{
    uint8_t db[1024] = "TOKENS";
    size_t n = 16;
    put_u32(db + 8, TEXTS);
    for (size_t i = 0; i < TEXTS; i++, n += 8) {
        put_u32(db + n, texts[i].token);
        put_u32(db + n + 4, texts[i].removed);
    }
    for (size_t i = 0; i < TEXTS; i++) {
        memcpy(db + n, texts[i].text, strlen(texts[i].text) + 1);
        n += strlen(texts[i].text) + 1;
    }
    size_t packet = pb_begin(&f.w, 1);
    size_t field = pb_begin(&f.w, 111);
    pb_put_bytes(&f.w, 1, db, n - cut);
    pb_end(&f.w, field);
    pb_end(&f.w, packet);
}

/* A packet at 50 with an event of the token and the bytes behind it, `delta` after 0. */
static void put_event(uint32_t token, const void *values, size_t n, uint64_t delta)
{
    uint8_t bytes[64];
    put_u32(bytes, token);
    memcpy(bytes + 4, values, n);
    packet_begin(&f, 50);
    size_t field = pb_begin(&f.w, 110);
    pb_put_bytes(&f.w, 1, bytes, n + 4);
    pb_put_varint(&f.w, 2, delta);
    pb_end(&f.w, field);
    packet_end(&f);
}

START_TEST(events_become_texts_with_their_values)
{
    /* -5, -1, 511, 'A', 1.5f, 7, 8 */
    static const uint8_t all[] = {0x09, 0x01, 0xfe, 0x07, 0x82, 0x01, 0x00, 0x00, 0xc0, 0x3f, 0x0e, 0x10};
    static const uint8_t three[] = {0x06, 0x08, 0x12}; /* 3, then 9 in 4 places */
    put_event(1, all, sizeof all, 100);                /* before the database comes */
    put_event(2, three, 3, 110);
    put_event(2, three, 1, 120);
    put_event(3, "", 0, 130);
    put_event(4, "", 0, 140);
    put_event(1, "", 0, (uint64_t)-5);
    put_database(0);
    trace_fixture_load(&f);
    static const char *const names[] = {"plain -5 and 4294967295 x=000001ff %s A 1.50     7|8    |%", "state 3 of    9",
                                        "state 3 of <ERROR>", "Token not found", "%"};
    ck_assert_uint_eq(ROWS(slice), 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_str_eq(TEXT(slice, name, i), names[i]);
        ck_assert_int_eq(GET(slice, ts, i), 100 + 10 * (int64_t)i);
        ck_assert_int_eq(GET(slice, dur, i), 0);
    }
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, 1)),
                     "raw_template=\xe2\x96\xa0"
                     "domain\xe2\x99\xa6"
                     "Radio\xe2\x96\xa0"
                     "format\xe2\x99\xa6"
                     "state %i of %*d token_id=2 token_id_hex=0x02 packet_ts=50 pw_token_2.arg_0=3 pw_token_2.arg_1=9");
    uint32_t plain = (uint32_t)GET(slice, track_id, 0), radio = (uint32_t)GET(slice, track_id, 1);
    ck_assert_str_eq(TEXT(track, name, plain), "Pixel Modem Events");
    ck_assert_str_eq(TEXT(track, name, radio), "Pixel Modem Events: Radio");
    ck_assert_int_eq(GET(slice, track_id, 2), radio);
    ck_assert_int_eq(GET(slice, track_id, 3), plain);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_pixel_modem_negative_timestamp), 1);
}
END_TEST

START_TEST(widths_have_bounds)
{
    static const uint8_t values[] = {0x02, 0x00, 0x00, 0x80, 0x3f}; /* 1, 1.0f */
    put_database(0);
    put_event(5, values, sizeof values, 100);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_uint_eq(strlen(TEXT(slice, name, 0)), 255 + 2 + 255);
}
END_TEST

/* A database that ends early: in the last text, in the rows, in its head. */
START_TEST(databases_that_are_cut_are_refused)
{
    struct error err;
    if (_i == 0) {
        put_database(1);
    } else {
        size_t packet = pb_begin(&f.w, 1);
        size_t field = pb_begin(&f.w, 111);
        pb_put_bytes(&f.w, 1, _i == 1 ? "TOKENS\0\0\1\0\0\0\0\0\0\0rest" : "TOKENS\0", _i == 1 ? 20 : 7);
        pb_end(&f.w, field);
        pb_end(&f.w, packet);
    }
    int rc = importer_feed(f.im, f.w.p, f.w.n, &err);
    if (rc == 0)
        rc = importer_finish(f.im, &err);
    ck_assert_int_eq(rc, -MRD_EFORMAT);
    ck_assert_msg(strstr(err.text, "token database of the modem"), "%s", err.text);
}
END_TEST

Suite *modem_suite(void);

Suite *modem_suite(void)
{
    Suite *s = suite_create("modem");
    TCase *c = tcase_create("modem");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, events_become_texts_with_their_values);
    tcase_add_test(c, widths_have_bounds);
    tcase_add_loop_test(c, databases_that_are_cut_are_refused, 0, 3);
    suite_add_tcase(s, c);
    return s;
}
