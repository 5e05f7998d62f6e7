/* The JSON writer: commas and white space, and strings of any bytes, which the reader must give back. */
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/utf8.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    char text[4096];
    size_t len, room; /* room: where the disk is full, 0: nowhere */
};

static int to_buffer(void *ctx, const void *bytes, size_t len)
{
    struct buffer *b = ctx;
    ck_assert_uint_lt(b->len + len, sizeof b->text);
    if (b->room && b->len + len > b->room)
        return -7;
    memcpy(b->text + b->len, bytes, len);
    b->len += len;
    b->text[b->len] = '\0';
    return 0;
}

static void put_example(struct json_writer *w)
{
    json_put_open(w, '{');
    json_put_key(w, "a");
    json_put_int(w, INT64_MIN);
    json_put_key(w, "b");
    json_put_open(w, '[');
    json_put_uint(w, UINT64_MAX);
    json_put_break(w, "\n ");
    json_put_bool(w, true);
    json_put_open(w, '{');
    json_put_close(w, '}');
    json_put_str(w, NULL);
    json_put_raw(w, "1e3", 3);
    json_put_break(w, "\n");
    json_put_close(w, ']');
    json_put_break(w, "\n");
    json_put_key(w, "c");
    json_put_text_open(w);
    json_put_escaped(w, "x\n", 2);
    json_put_escaped(w, "y", 1);
    json_put_text_close(w);
    json_put_close(w, '}');
}

START_TEST(commas)
{
    struct buffer b = {0};
    struct json_writer w = {.put = to_buffer, .ctx = &b};
    put_example(&w);
    ck_assert_str_eq(b.text, "{\"a\":-9223372036854775808,\"b\":[18446744073709551615,\n true,{},null,1e3\n],\n"
                             "\"c\":\"x\\ny\"}");
    b = (struct buffer){0};
    w = (struct json_writer){.put = to_buffer, .ctx = &b, .spaced = true};
    put_example(&w);
    ck_assert_str_eq(b.text, "{\"a\": -9223372036854775808, \"b\": [18446744073709551615,\n true, {}, null, 1e3\n],\n"
                             "\"c\": \"x\\ny\"}");
}
END_TEST

/* The first put that fails is the last one. */
START_TEST(failing_sink)
{
    for (size_t room = 1; room < 80; room++) {
        struct buffer b = {.room = room};
        struct json_writer w = {.put = to_buffer, .ctx = &b};
        put_example(&w);
        ck_assert_int_eq(w.rc, -7);
        ck_assert_uint_le(b.len, room);
    }
}
END_TEST

/* What goes in as UTF-8 comes back; what is not becomes U+FFFD, byte by byte. */
static void check_string(const char *text, size_t len)
{
    struct buffer b = {0};
    struct json_writer w = {.put = to_buffer, .ctx = &b};
    json_put_bytes(&w, text, len);
    ck_assert_uint_eq(utf8_prefix(b.text, b.len), b.len);
    char want[256], got[1024];
    size_t n = 0;
    for (size_t i = 0, step; i < len; i += step ? step : 1) {
        step = utf8_sequence(text + i, len - i);
        memcpy(want + n, step ? text + i : "\xef\xbf\xbd", step ? step : 3);
        n += step ? step : 3;
    }
    struct json_reader r = json_reader(slice_of(b.text, b.len));
    struct json_text read;
    ck_assert_msg(json_string(&r, &read), "%s", b.text);
    ck_assert_uint_eq(json_unescape(read, JSON_STRICT, got), n);
    ck_assert_int_eq(memcmp(got, want, n), 0);
    ck_assert_ptr_eq(r.p, (const uint8_t *)b.text + b.len);
}

START_TEST(any_bytes)
{
    char text[64];
    for (int c = 0; c < 256; c++) {
        memset(text, 'a', sizeof text);
        text[0] = text[7] = (char)c;
        check_string(text, 1);
        check_string(text, 8);
        check_string(text, 20);
    }
    unsigned seed = 7;
    for (int round = 0; round < 2000; round++) {
        static const char some[] = "\"\\\n\t\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\xc0 az";
        size_t n = (size_t)rand_r(&seed) % sizeof text;
        for (size_t i = 0; i < n; i++)
            text[i] = some[(size_t)rand_r(&seed) % sizeof some];
        check_string(text, n);
    }
}
END_TEST

START_TEST(raw_is_repaired)
{
    struct buffer b = {0};
    struct json_writer w = {.put = to_buffer, .ctx = &b};
    json_put_raw(&w, "{\"a\":\"\xffz\xe2\x82\"}", 12);
    ck_assert_str_eq(b.text, "{\"a\":\"\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"}");
}
END_TEST

Suite *json_writer_suite(void);
Suite *json_writer_suite(void)
{
    Suite *s = suite_create("json_writer");
    TCase *t = tcase_create("json_writer");
    tcase_add_test(t, commas);
    tcase_add_test(t, failing_sink);
    tcase_add_test(t, any_bytes);
    tcase_add_test(t, raw_is_repaired);
    suite_add_tcase(s, t);
    return s;
}
