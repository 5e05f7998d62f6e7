/* Heads of HTTP requests and responses, and chunked bodies. */
#include "rpc/http.h"

#include "base/hex.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

/* ---- requests ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static struct slice trim(struct slice s)
{
    while (s.len && is_blank(s.p[0]))
        s.p++, s.len--;
    while (s.len && is_blank(s.p[s.len - 1]))
        s.len--;
    return s;
}

static bool same_word(struct slice s, const char *word)
{
    return s.len == strlen(word) && strncasecmp((const char *)s.p, word, s.len) == 0;
}

/* Is `word` in a list with commas, in any case? */
static bool list_has(struct slice list, const char *word)
{
    while (list.len) {
        const uint8_t *comma = memchr(list.p, ',', list.len);
        size_t n = comma ? (size_t)(comma - list.p) : list.len;
        if (same_word(trim(slice_of(list.p, n)), word))
            return true;
        n += comma != NULL;
        list.p += n;
        list.len -= n;
    }
    return false;
}

/* A name or a method: the characters of a token (RFC 9110 5.6.2). */
static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 127 || strchr("\"(),/:;<=>?@[\\]{}", s.p[i]))
            return false;
    return s.len > 0;
}

static int take_length(struct http_request *r, struct slice value)
{
    uint64_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return -400;
        if (n < UINT32_MAX)
            n = n * 10 + (uint64_t)(value.p[i] - '0');
    }
    bool again = r->content_length != UINT64_MAX;
    if (value.len == 0 || (again && r->content_length != n))
        return -400;
    r->content_length = n;
    return n > HTTP_MAX_BODY ? -413 : 0;
}

static int take_coding(struct http_request *r, struct slice value)
{
    r->chunked = same_word(value, "chunked");
    return r->chunked ? 0 : -501;
}

static int take_connection(struct http_request *r, struct slice value)
{
    if (list_has(value, "close"))
        r->keep_alive = false;
    else if (list_has(value, "keep-alive"))
        r->keep_alive = true;
    return 0;
}

static int take_upgrade(struct http_request *r, struct slice value)
{
    r->upgrade_websocket = list_has(value, "websocket");
    return 0;
}

static int take_expect(struct http_request *r, struct slice value)
{
    r->expects_continue = same_word(value, "100-continue");
    return r->expects_continue ? 0 : -417;
}

/* A second one does not hide the first. */
static int take_fetch_site(struct http_request *r, struct slice value)
{
    r->cross_site |= !slice_eq_str(value, "same-origin") && !slice_eq_str(value, "none");
    r->browser = true;
    return 0;
}

static int take_referer(struct http_request *r, struct slice value)
{
    (void)value;
    r->browser = true;
    return 0;
}

static int take_agent(struct http_request *r, struct slice value)
{
    static const char browsers[] = "Mozilla/";
    r->browser |= value.len >= strlen(browsers) && memcmp(value.p, browsers, strlen(browsers)) == 0;
    return 0;
}

static int take_host(struct http_request *r, struct slice value)
{
    if (r->host.p)
        return -400;
    r->host = value;
    return 0;
}

/* A second one must not hide the first from whoever checks it. */
static int take_origin(struct http_request *r, struct slice value)
{
    if (r->origin.p)
        return -400;
    r->origin = value;
    return 0;
}

static int take_key(struct http_request *r, struct slice value)
{
    r->websocket_key = value;
    return 0;
}

static int take_version(struct http_request *r, struct slice value)
{
    r->websocket_version = value;
    return 0;
}

static bool is_address(struct slice name)
{
    unsigned dots = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.p[i] == '.')
            dots++;
        else if (name.p[i] < '0' || name.p[i] > '9')
            return false;
    }
    return dots == 3;
}

bool http_host_is_ours(struct slice host, const char *own)
{
    if (host.len && host.p[0] == '[') /* no name: an IPv6 address */
        return true;
    const uint8_t *colon = host.len ? memchr(host.p, ':', host.len) : NULL;
    struct slice name = slice_of(host.p, colon ? (size_t)(colon - host.p) : host.len);
    static const char local[] = ".localhost";
    const size_t n = strlen(local);
    bool dotless = !name.len || !memchr(name.p, '.', name.len);
    return dotless || is_address(name) || (own && same_word(name, own)) ||
           (name.len > n && same_word(slice_of(name.p + name.len - n, n), local));
}

static const struct {
    const char *name;
    int (*take)(struct http_request *r, struct slice value);
} headers[] = {
    {"connection", take_connection},
    {"content-length", take_length},
    {"expect", take_expect},
    {"host", take_host},
    {"origin", take_origin},
    {"referer", take_referer},
    {"sec-fetch-site", take_fetch_site},
    {"sec-websocket-key", take_key},
    {"sec-websocket-version", take_version},
    {"transfer-encoding", take_coding},
    {"upgrade", take_upgrade},
    {"user-agent", take_agent},
};

static int take_header(struct http_request *r, struct slice line)
{
    const uint8_t *colon = memchr(line.p, ':', line.len);
    if (!colon || !is_token(slice_of(line.p, (size_t)(colon - line.p))))
        return -400;
    struct slice name = slice_of(line.p, (size_t)(colon - line.p));
    struct slice value = trim(slice_of(colon + 1, line.len - name.len - 1));
    if (memchr(value.p, '\r', value.len) || memchr(value.p, '\0', value.len))
        return -400;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (same_word(name, headers[i].name))
            return headers[i].take(r, value);
    return 0;
}

static int take_request_line(struct http_request *r, struct slice line)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {{"GET", HTTP_GET}, {"POST", HTTP_POST}, {"OPTIONS", HTTP_OPTIONS}};
    const uint8_t *space = memchr(line.p, ' ', line.len);
    if (!space)
        return -400;
    struct slice method = slice_of(line.p, (size_t)(space - line.p));
    struct slice target = slice_of(space + 1, line.len - method.len - 1);
    space = memchr(target.p, ' ', target.len);
    if (!is_token(method) || !space || target.p[0] != '/')
        return -400;
    struct slice version = slice_of(space + 1, target.len - (size_t)(space - target.p) - 1);
    if (version.len != 8 || !slice_starts(version, "HTTP/1."))
        return slice_starts(version, "HTTP/") ? -505 : -400;
    r->method = HTTP_OTHER;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (slice_eq_str(method, methods[i].name))
            r->method = methods[i].method;
    r->http_1_0 = version.p[7] == '0';
    r->keep_alive = !r->http_1_0;
    r->path = slice_of(target.p, (size_t)(space - target.p));
    const uint8_t *query = memchr(r->path.p, '?', r->path.len);
    if (query) {
        size_t n = (size_t)(query - r->path.p);
        r->query = slice_of(query + 1, r->path.len - n - 1);
        r->path.len = n;
    }
    return 0;
}

/* The next line without its end, or false when it is not whole yet. */
static bool next_line(struct slice *rest, struct slice *line)
{
    const uint8_t *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    if (!end)
        return false;
    *line = slice_of(rest->p, (size_t)(end - rest->p));
    rest->len -= line->len + 1;
    rest->p = end + 1;
    if (line->len && line->p[line->len - 1] == '\r')
        line->len--;
    return true;
}

int http_parse_head(struct slice bytes, struct http_request *r)
{
    struct slice rest = bytes, line;
    size_t n_lines = 0;
    *r = (struct http_request){.content_length = UINT64_MAX};
    if (rest.len > HTTP_MAX_HEAD)
        rest.len = HTTP_MAX_HEAD;
    while (next_line(&rest, &line)) {
        if (line.len == 0 && n_lines == 0)
            continue; /* blank lines in front are let pass (RFC 9112 2.2) */
        if (line.len == 0) {
            /* Both lengths at once is how requests are smuggled past somebody in between. */
            if (r->chunked && r->content_length != UINT64_MAX)
                return -400;
            if (r->content_length == UINT64_MAX)
                r->content_length = 0;
            return (int)(rest.p - bytes.p);
        }
        int rc = n_lines++ == 0 ? take_request_line(r, line) : take_header(r, line);
        if (rc < 0)
            return rc;
    }
    return bytes.len >= HTTP_MAX_HEAD ? -413 : 0;
}

/* ---- chunked bodies ---- */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_DATA, CHUNK_TRAILER, CHUNK_OVER };
enum { MAX_CHUNK_LINE = 4096 };

/* A byte of the line with the size; false: broken. */
static bool take_size_byte(struct http_chunks *c, uint8_t byte)
{
    int digit = hex_digit(byte);
    if (c->state == CHUNK_SIZE && digit >= 0) {
        c->size = c->size << 4 | (uint64_t)digit;
        c->any = true;
        return c->size <= HTTP_MAX_BODY;
    }
    if (!c->any)
        return false;
    c->state = CHUNK_EXTENSION;
    if (byte == '\n') {
        c->state = c->size ? CHUNK_DATA : CHUNK_TRAILER;
        c->line = 0;
    }
    return true;
}

/* A byte of the lines behind the last chunk, which end with an empty one. */
static void take_trailer_byte(struct http_chunks *c, uint8_t byte)
{
    if (byte == '\n' && !c->any)
        c->state = CHUNK_OVER;
    else if (byte == '\n')
        c->any = false;
    else if (byte != '\r')
        c->any = true;
}

enum http_chunks_step http_chunks_next(struct http_chunks *c, struct slice *in, struct slice *data)
{
    while (in->len && c->state != CHUNK_OVER) {
        if (c->state == CHUNK_DATA && c->size) {
            *data = slice_of(in->p, c->size < in->len ? (size_t)c->size : in->len);
            c->size -= data->len;
            in->p += data->len;
            in->len -= data->len;
            return HTTP_CHUNKS_DATA;
        }
        uint8_t byte = *in->p++;
        in->len--;
        if (c->state == CHUNK_DATA) { /* the line end behind the data */
            if (byte == '\n')
                *c = (struct http_chunks){0};
            else if (byte != '\r')
                return HTTP_CHUNKS_BROKEN;
            continue;
        }
        if (++c->line > MAX_CHUNK_LINE)
            return HTTP_CHUNKS_BROKEN;
        if (c->state == CHUNK_TRAILER)
            take_trailer_byte(c, byte);
        else if (!take_size_byte(c, byte))
            return HTTP_CHUNKS_BROKEN;
        else if (c->state == CHUNK_TRAILER)
            c->any = false;
    }
    return c->state == CHUNK_OVER ? HTTP_CHUNKS_END : HTTP_CHUNKS_MORE;
}

/* ---- responses ---- */

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {403, "Origin not allowed"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {413, "Payload Too Large"},
        {417, "Expectation Failed"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

struct text {
    char *p;
    size_t n;
    size_t room;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->p + t->n, t->room - t->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->n = t->n + (size_t)n < t->room ? t->n + (size_t)n : t->room - 1;
}

size_t http_write_head(const struct http_response *r, char *to, size_t room)
{
    struct text t = {to, 0, room};
    put(&t, "HTTP/1.1 %d %s\r\n", r->status, http_reason(r->status));
    if (r->websocket_accept)
        put(&t, "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n", r->websocket_accept);
    else
        put(&t, "Connection: %s\r\n", r->keep_alive ? "keep-alive" : "close");
    if (r->origin.p)
        put(&t, "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n",
            r->origin.len < HTTP_MAX_ORIGIN ? (int)r->origin.len : HTTP_MAX_ORIGIN, (const char *)r->origin.p);
    if (r->preflight)
        put(&t, "Access-Control-Allow-Methods: POST, GET, OPTIONS\r\nAccess-Control-Allow-Headers: *\r\n"
                "Access-Control-Max-Age: 86400\r\nAccess-Control-Allow-Private-Network: true\r\n");
    if (r->type)
        put(&t, "Content-Type: %s\r\nCache-Control: no-cache\r\n", r->type);
    if (r->length >= 0)
        put(&t, "Content-Length: %" PRId64 "\r\n", r->length);
    else if (r->length == HTTP_CHUNKED)
        put(&t, "Transfer-Encoding: chunked\r\n");
    put(&t, "\r\n");
    return t.n;
}
