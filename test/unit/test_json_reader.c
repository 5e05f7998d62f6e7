/* The JSON reader: shapes, strings, numbers against strtod, containers against a byte-by-byte scan. */
#include "base/json_reader.h"
#include "base/json_scan.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct json_reader of(const char *text)
{
    return json_reader(slice_str(text));
}

/* A text, and what json_check() says of it. `at`: where the error is. */
static const struct {
    const char *text;
    enum json_status status;
    int at;
} shapes[] = {
    {"{}", JSON_OK, 0},
    {" [ ] ", JSON_OK, 0},
    {"{\"a\":[1,2,{\"b\":null}],\"c\":\"\\\"\"}", JSON_OK, 0},
    {"[1,2", JSON_MORE, 0},
    {"[1,", JSON_MORE, 0},
    {"{\"a\"", JSON_MORE, 0},
    {"{\"a\":", JSON_MORE, 0},
    {"{\"a\":\"x", JSON_MORE, 0},
    {"{\"a\":\"x\\", JSON_MORE, 0},
    {"[tru", JSON_MORE, 0},
    {"[-", JSON_MORE, 0},
    {"[1e", JSON_MORE, 0},
    {"[1,,2]", JSON_BAD, 3},
    {"[,1]", JSON_BAD, 1},
    {"[1,]", JSON_BAD, 3},
    {"{\"a\":1,}", JSON_BAD, 7},
    {"{\"a\" 1}", JSON_BAD, 5},
    {"{a:1}", JSON_BAD, 1},
    {"[1 2]", JSON_BAD, 3},
    {"[01]", JSON_BAD, 1},
    {"[1.]", JSON_BAD, 1},
    {"[.5]", JSON_BAD, 1},
    {"[+1]", JSON_BAD, 1},
    {"[1e+]", JSON_BAD, 1},
    {"[NaN]", JSON_BAD, 1},
    {"[nul0]", JSON_BAD, 1},
    {"{\"a\":1]", JSON_BAD, 6},
};

START_TEST(test_shapes)
{
    struct json_reader r = of(shapes[_i].text);
    bool ok = json_check(&r);
    ck_assert_msg(ok == (shapes[_i].status == JSON_OK) && r.status == shapes[_i].status, "%s: status %d",
                  shapes[_i].text, r.status);
    if (r.status == JSON_BAD)
        ck_assert_int_eq(r.p - (const uint8_t *)shapes[_i].text, shapes[_i].at);
}
END_TEST

START_TEST(test_nul_is_no_value)
{
    static const char *const texts[] = {"[1,\0]", "{\"a\":\0}", "\0", "[\0"};
    static const size_t lens[] = {5, 7, 1, 2};
    struct json_reader r = json_reader(slice_of(texts[_i], lens[_i]));
    ck_assert(!json_check(&r));
    ck_assert_int_eq(r.status, JSON_BAD);
}
END_TEST

START_TEST(test_every_prefix_wants_more)
{
    static const char text[] = "{\"k\" : [1.5e3, true, \"a\\u00e9\\n\", {\"x\":{}}], \"z\":-12 }";
    struct json_reader whole = of(text);
    ck_assert(json_check(&whole));
    for (size_t n = 0; n + 1 < sizeof text - 1; n++) {
        char *copy = malloc(n ? n : 1); /* of just that size: reading behind it is found */
        memcpy(copy, text, n);
        struct json_reader r = json_reader(slice_of(copy, n));
        ck_assert(!json_check(&r));
        ck_assert_int_eq(r.status, JSON_MORE);
        r = json_reader(slice_of(copy, n));
        ck_assert(!json_skip(&r, NULL));
        ck_assert_int_eq(r.status, JSON_MORE);
        free(copy);
    }
}
END_TEST

START_TEST(test_members)
{
    struct json_reader r = of("{\"name\":\"a\\\"b\",\"n\":[1,2.5],\"t\":true,\"skip\":{\"x\":[{}]},\"last\":null,}");
    struct json_text key, text;
    struct json_number n;
    int literal;
    r.lenient = true;
    ck_assert(json_enter(&r, '{'));
    ck_assert(json_member(&r, &key) && json_text_is(key, "name") && json_string(&r, &text));
    ck_assert(text.escaped && text.raw.len == 4);
    ck_assert(json_member(&r, &key) && json_enter(&r, '['));
    ck_assert(json_element(&r) && json_read_number(&r, &n) && n.integer && n.whole == 1);
    ck_assert(json_element(&r) && json_read_number(&r, &n) && !n.integer && n.fraction == 5);
    ck_assert(!json_element(&r) && r.status == JSON_OK);
    ck_assert(json_member(&r, &key) && json_literal(&r, &literal) && literal == 1);
    struct slice raw;
    ck_assert(json_member(&r, &key) && json_skip(&r, &raw) && slice_eq_str(raw, "{\"x\":[{}]}"));
    ck_assert(json_member(&r, &key) && json_literal(&r, &literal) && literal == -1);
    ck_assert(!json_member(&r, &key));
    ck_assert_int_eq(r.status, JSON_OK);
    ck_assert_int_eq(r.depth, 0);
    ck_assert_ptr_eq(r.p, r.end);
}
END_TEST

START_TEST(test_depth)
{
    enum { N = 100000 };
    char *deep = malloc(N);
    memset(deep, '[', N);
    struct json_reader r = json_reader(slice_of(deep, N));
    ck_assert(!json_check(&r));
    ck_assert_int_eq(r.status, JSON_BAD);
    ck_assert_int_eq(r.p - (uint8_t *)deep, JSON_MAX_DEPTH);
    memset(deep + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    r = json_reader(slice_of(deep, (size_t)2 * JSON_MAX_DEPTH));
    ck_assert(json_check(&r));
    free(deep);
}
END_TEST

static const struct {
    const char *text, *tolerant, *strict; /* NULL: an error */
} strings[] = {
    {"plain", "plain", "plain"},
    {"a\\n\\t\\\"\\\\\\/\\b\\f\\r", "a\n\t\"\\/\b\f\r", "a\n\t\"\\/\b\f\r"},
    {"\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac", "A\xc3\xa9\xe2\x82\xac"},
    {"\\uD83D\\uDE00", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    {"\\uD83Dx", "\xef\xbf\xbdx", "\xef\xbf\xbdx"},
    {"\\uDE00", "\xef\xbf\xbd", "\xef\xbf\xbd"},
    {"\\uD83D\\uD83D\\uDE00", "\xef\xbf\xbd\xf0\x9f\x98\x80", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"a\\xb", "ab", NULL},
    {"\\u12", "12", NULL},
    {"a\nb", "a\nb", NULL},
    {"\xff\xfe", "\xff\xfe", "\xff\xfe"},
};

START_TEST(test_strings)
{
    struct json_text t = {slice_str(strings[_i].text), true};
    char out[64];
    size_t n = json_unescape(t, JSON_TOLERANT, out);
    ck_assert_msg(slice_eq_str(slice_of(out, n), strings[_i].tolerant), "%s: %.*s", strings[_i].text, (int)n, out);
    n = json_unescape(t, JSON_STRICT, out);
    if (strings[_i].strict)
        ck_assert(slice_eq_str(slice_of(out, n), strings[_i].strict));
    else
        ck_assert(n == SIZE_MAX);
}
END_TEST

static const struct {
    const char *text;
    int scale;
    bool ok;
    int64_t value;
} scaled[] = {
    {"1", 3, true, 1000},
    {"1.5", 3, true, 1500},
    {"-1.5", 0, true, -2},
    {"0.0004", 3, true, 0},
    {"0.0005", 3, true, 1},
    {"-0.0005", 3, true, -1},
    {"0.00049999999999999999999", 3, true, 0},
    {"1700000000000000.123", 3, true, 1700000000000000123},
    {"1700000000000000.1239", 3, true, 1700000000000000124},
    {"1e3", 3, true, 1000000},
    {"1.25e-2", 3, true, 13},
    {"9223372036854775.807", 3, true, INT64_MAX},
    {"-9223372036854775.808", 3, true, INT64_MIN},
    {"9223372036854775.808", 3, false, 0},
    {"1e400", 0, false, 0},
    {"1e-400", 3, true, 0},
    {"0e400", 3, true, 0},
    {"99999999999999999999999", 0, false, 0},
    {"0.30000000000000000000000000000000000000000000001", 3, true, 300},
};

START_TEST(test_scaled)
{
    struct json_number n;
    int64_t v = 0;
    ck_assert(json_number_of(slice_str(scaled[_i].text), &n));
    ck_assert_msg(json_number_scaled(&n, scaled[_i].scale, &v) == scaled[_i].ok, "%s", scaled[_i].text);
    if (scaled[_i].ok)
        ck_assert_int_eq(v, scaled[_i].value);
}
END_TEST

START_TEST(test_doubles_round_as_strtod)
{
    static const char *const forms[] = {"%.17g", "%.6f", "%.3e", "%.25g", "%.1f"};
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 40000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        double d;
        uint64_t bits = i % 3 ? seed : (seed & 0x000fffffffffffff) | 0x4300000000000000;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d))
            continue;
        char text[512];
        snprintf(text, sizeof text, forms[i % 5], i % 2 ? d : fmod(d, 1e6));
        struct json_number n;
        ck_assert_msg(json_number_of(slice_str(text), &n), "%s", text);
        double want = strtod(text, NULL), got = json_number_f64(&n);
        ck_assert_msg(memcmp(&got, &want, sizeof got) == 0, "%s: %.17g, not %.17g", text, got, want);
    }
}
END_TEST

/* The plain way to find the end of a container. */
static const uint8_t *slow_container(const uint8_t *p, const uint8_t *end, char open, char close)
{
    long depth = 0;
    bool in_string = false;
    for (; p < end; p++) {
        if (in_string && *p == '\\')
            p++;
        else if (*p == '"')
            in_string = !in_string;
        else if (!in_string && *p == open)
            depth++;
        else if (!in_string && *p == close && --depth == 0)
            return p + 1;
    }
    return NULL;
}

START_TEST(test_containers)
{
    static const char alphabet[] = "{{}}[]\"\"\\\\ a,:";
    uint64_t seed = 1234567;
    for (int i = 0; i < 60000; i++) {
        char text[300];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t n = 1 + (seed >> 33) % (sizeof text - 1), inside = 0;
        text[0] = '{';
        for (size_t k = 1; k < n; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            char c = alphabet[(seed >> 40) % (sizeof alphabet - 1)];
            text[k] = c == '\\' && !inside ? 'x' : c; /* a backslash outside of strings is no JSON */
            inside ^= c == '"';
        }
        const uint8_t *p = (const uint8_t *)text;
        for (size_t k = 1, in = 0; k < n; k++) { /* keep backslashes inside of strings only */
            if (text[k] == '\\' && in)
                k++;
            else if (text[k] == '\\')
                text[k] = 'x';
            else if (text[k] == '"')
                in ^= 1;
        }
        ck_assert_ptr_eq(json_scan_container(p, p + n, '{', '}'), slow_container(p, p + n, '{', '}'));
    }
}
END_TEST

START_TEST(test_places)
{
    struct json_place place = JSON_PLACE_START;
    json_place_advance(&place, slice_str("ab\ncd"));
    json_place_advance(&place, slice_str("e\n\nxyz"));
    ck_assert_int_eq(place.line, 4);
    ck_assert_int_eq(place.column, 4);
    ck_assert_int_eq(place.byte, 11);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

Suite *json_reader_suite(void);
Suite *json_reader_suite(void)
{
    Suite *s = suite_create("json_reader");
    TCase *t = tcase_create("json_reader");
    tcase_add_loop_test(t, test_shapes, 0, COUNT(shapes));
    tcase_add_loop_test(t, test_nul_is_no_value, 0, 4);
    tcase_add_test(t, test_every_prefix_wants_more);
    tcase_add_test(t, test_members);
    tcase_add_test(t, test_depth);
    tcase_add_loop_test(t, test_strings, 0, COUNT(strings));
    tcase_add_loop_test(t, test_scaled, 0, COUNT(scaled));
    tcase_add_test(t, test_doubles_round_as_strtod);
    tcase_add_test(t, test_containers);
    tcase_add_test(t, test_places);
    suite_add_tcase(s, t);
    return s;
}
