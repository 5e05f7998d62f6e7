/* Tests HTTP as the server reads and writes it: heads, chunked bodies, responses; whole, cut anywhere, and broken. */
#include "ck_slice.h"
#include "rpc/form.h"
#include "rpc/http.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- heads ---- */

START_TEST(a_head_is_read)
{
    static const char text[] = "POST /query?x=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n"
                               "Origin: https://ui.perfetto.dev\r\nExpect: 100-continue\r\n\r\nbody";
    struct http_request r;
    ck_assert_int_eq(http_parse_head(slice_str(text), &r), (int)(sizeof text - 1 - strlen("body")));
    ck_assert_int_eq(r.method, HTTP_POST);
    ck_assert_slice_eq(r.path, "/query");
    ck_assert_slice_eq(r.query, "x=1");
    ck_assert_slice_eq(r.origin, "https://ui.perfetto.dev");
    ck_assert_uint_eq(r.content_length, 12);
    ck_assert(r.keep_alive);
    ck_assert(r.expects_continue);
    ck_assert(!r.chunked);
    ck_assert(!r.upgrade_websocket);
    ck_assert_ptr_null(r.websocket_key.p);
}
END_TEST

START_TEST(a_websocket_asks_for_an_upgrade)
{
    struct http_request r;
    ck_assert_int_gt(
        http_parse_head(slice_str("GET /websocket HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n"
                                  "Upgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
                        &r),
        0);
    ck_assert(r.upgrade_websocket);
    ck_assert_slice_eq(r.websocket_key, "dGhlIHNhbXBsZSBub25jZQ==");
    ck_assert_slice_eq(r.websocket_version, "13");
}
END_TEST

static const struct {
    const char *head;
    bool keep_alive;
} connections[] = {
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
    {"GET / HTTP/1.0\r\n\r\n", false},
    {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
};

START_TEST(connections_stay_open_as_the_version_says)
{
    struct http_request r;
    ck_assert_int_eq(http_parse_head(slice_str(connections[_i].head), &r), (int)strlen(connections[_i].head));
    ck_assert_int_eq(r.keep_alive, connections[_i].keep_alive);
}
END_TEST

START_TEST(a_head_that_is_cut_needs_more)
{
    static const char text[] = "GET /status HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    struct http_request r;
    for (size_t len = 0; len < sizeof text - 1; len++)
        ck_assert_msg(http_parse_head(slice_of((const uint8_t *)text, len), &r) == 0, "with %zu bytes", len);
}
END_TEST

static const char *const bad_heads[] = {
    "GET /\r\n\r\n",
    "GET / HTTP/2.0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\n folded: a\r\n\r\n",
    "GET / HTTP/1.1\r\nno colon\r\n\r\n",
};

START_TEST(a_bad_head_is_refused_with_a_status)
{
    struct http_request r;
    int rc = http_parse_head(slice_str(bad_heads[_i]), &r);
    ck_assert_msg(rc <= -400 && rc > -600, "%d for %s", rc, bad_heads[_i]);
    ck_assert_str_ne(http_reason(-rc), http_reason(999));
}
END_TEST

START_TEST(a_head_without_end_is_refused)
{
    static char text[HTTP_MAX_HEAD + 64];
    int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nX: ");
    struct http_request r;
    memset(text + n, 'a', sizeof text - (size_t)n);
    ck_assert_int_eq(http_parse_head(slice_of((const uint8_t *)text, sizeof text), &r), -413);
}
END_TEST

/* ---- chunked bodies ---- */

/* Gives `text` in pieces of `step` bytes; returns the last step, with the body in `body`. */
static enum http_chunks_step take(const char *text, size_t step, char *body, size_t *rest)
{
    struct http_chunks c = {0};
    size_t len = strlen(text), n = 0;
    for (size_t at = 0; at < len;) {
        size_t piece = len - at < step ? len - at : step;
        struct slice in = slice_of((const uint8_t *)text + at, piece), data;
        enum http_chunks_step s;
        while ((s = http_chunks_next(&c, &in, &data)) == HTTP_CHUNKS_DATA) {
            memcpy(body + n, data.p, data.len);
            n += data.len;
        }
        body[n] = 0;
        at += piece;
        *rest = len - at + in.len;
        if (s != HTTP_CHUNKS_MORE)
            return s;
    }
    return HTTP_CHUNKS_MORE;
}

static const struct {
    const char *text, *body;
    enum http_chunks_step end;
    size_t rest;
} bodies[] = {
    {"5\r\nhello\r\n0\r\n\r\n", "hello", HTTP_CHUNKS_END, 0},
    {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nNEXT", "hello world", HTTP_CHUNKS_END, 4},
    {"A;ext=1\r\n0123456789\r\n0\r\n\r\n", "0123456789", HTTP_CHUNKS_END, 0},
    {"0\r\n\r\n", "", HTTP_CHUNKS_END, 0},
    {"5\r\nhel", "hel", HTTP_CHUNKS_MORE, 0},
    {"g\r\n", "", HTTP_CHUNKS_BROKEN, SIZE_MAX},
    {"\r\n", "", HTTP_CHUNKS_BROKEN, SIZE_MAX},
    {"ffffffffffffffffff\r\n", "", HTTP_CHUNKS_BROKEN, SIZE_MAX},
    {"5\r\nhelloX\r\n", "hello", HTTP_CHUNKS_BROKEN, SIZE_MAX},
};

/* However the network cuts it, the body is the same. */
START_TEST(chunks_make_a_body)
{
    for (size_t step = 1; step <= strlen(bodies[_i].text); step++) {
        char body[64] = "";
        size_t rest = 0;
        ck_assert_int_eq(take(bodies[_i].text, step, body, &rest), bodies[_i].end);
        ck_assert_str_eq(body, bodies[_i].body);
        if (bodies[_i].rest != SIZE_MAX)
            ck_assert_uint_eq(rest, bodies[_i].rest);
    }
}
END_TEST

/* ---- arguments ---- */

static const struct {
    const char *text, *read; /* each as name(value), the value decoded; or ! when it cannot be */
} forms[] = {
    {"", ""},
    {"a=1", "a(1)"},
    {"a=1&b=2", "a(1)b(2)"},
    {"a", "a()"},
    {"a=", "a()"},
    {"=x", "(x)"},
    {"&&a=1&", "()()a(1)"},
    {"a=b=c", "a(b=c)"},
    {"sql=select+%27x%27%2b1", "sql(select 'x'+1)"},
    {"a=%C3%bC", "a(\xc3\xbc)"},
    {"a=%", "a!"},
    {"a=%4", "a!"},
    {"a=%4x", "a!"},
    {"a=%x4", "a!"},
    {"a=x%00y", "a!"},
    {"a=%26b=1", "a(&b=1)"},
};

START_TEST(arguments_are_read)
{
    struct slice rest = slice_str(forms[_i].text), name, value;
    char all[200] = "", one[100];
    while (form_next(&rest, &name, &value)) {
        int64_t n = form_decode(value, one);
        ck_assert_int_le(n, (int64_t)value.len);
        snprintf(all + strlen(all), sizeof all - strlen(all), n < 0 ? "%.*s!" : "%.*s(%s)", (int)name.len,
                 (const char *)name.p, one);
    }
    ck_assert_str_eq(all, forms[_i].read);
}
END_TEST

/* ---- responses ---- */

START_TEST(a_response_says_what_was_asked)
{
    char head[HTTP_MAX_RESPONSE_HEAD];
    struct http_response r = {
        .status = 200, .type = "text/plain", .length = 7, .origin = slice_str("http://a.b"), .keep_alive = true};
    size_t len = http_write_head(&r, head, sizeof head);
    ck_assert_uint_lt(len, sizeof head);
    head[len] = 0;
    ck_assert_ptr_eq(strstr(head, "HTTP/1.1 200 OK\r\n"), head);
    ck_assert_ptr_nonnull(strstr(head, "\r\nContent-Type: text/plain\r\n"));
    ck_assert_ptr_nonnull(strstr(head, "\r\nContent-Length: 7\r\n"));
    ck_assert_ptr_nonnull(strstr(head, "\r\nAccess-Control-Allow-Origin: http://a.b\r\n"));
    ck_assert_str_eq(head + len - 4, "\r\n\r\n");
    r.length = HTTP_CHUNKED;
    len = http_write_head(&r, head, sizeof head);
    head[len] = 0;
    ck_assert_ptr_nonnull(strstr(head, "\r\nTransfer-Encoding: chunked\r\n"));
    ck_assert_ptr_null(strstr(head, "Content-Length"));
}
END_TEST

Suite *http_suite(void);

Suite *http_suite(void)
{
    Suite *s = suite_create("http");
    TCase *t = tcase_create("core");
    tcase_add_test(t, a_head_is_read);
    tcase_add_test(t, a_websocket_asks_for_an_upgrade);
    tcase_add_loop_test(t, connections_stay_open_as_the_version_says, 0, sizeof connections / sizeof *connections);
    tcase_add_test(t, a_head_that_is_cut_needs_more);
    tcase_add_loop_test(t, a_bad_head_is_refused_with_a_status, 0, sizeof bad_heads / sizeof *bad_heads);
    tcase_add_test(t, a_head_without_end_is_refused);
    tcase_add_loop_test(t, chunks_make_a_body, 0, sizeof bodies / sizeof *bodies);
    tcase_add_loop_test(t, arguments_are_read, 0, sizeof forms / sizeof *forms);
    tcase_add_test(t, a_response_says_what_was_asked);
    suite_add_tcase(s, t);
    return s;
}
