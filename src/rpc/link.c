/* Connections to servers. */
#include "rpc/link.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEFAULT_PORT = 9001 };

static int connect_unix(struct link *l, const char *path, struct error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return error_set(err, -MRD_EINVALID, "%s: the socket path is too long", path);
    memcpy(a.sun_path, path, strlen(path));
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&a, sizeof a) < 0)
        return error_set_errno(err, errno, "%s", path);
    return 0;
}

/* Milliseconds until the deadline; INT64_MAX: there is none. */
static int64_t left_ms(const struct link *l)
{
    return l->deadline_ns ? (l->deadline_ns - clock_now_ns(CLOCK_MONOTONIC)) / 1000000 : INT64_MAX;
}

static int too_late(struct error *err)
{
    return error_set(err, -MRD_ETIMEOUT, "the server has not come to an end in time");
}

static int failed_io(const struct link *l, int failure, struct error *err)
{
    if (failure != EAGAIN && failure != EINPROGRESS)
        return error_set_errno(err, failure, "the server");
    return left_ms(l) <= 0
               ? too_late(err)
               : error_set(err, -MRD_ETIMEOUT, "the server has not answered for %u s", l->timeout_ms / 1000);
}

static void limit_waits(const struct link *l, unsigned ms)
{
    const struct timeval t = {ms / 1000, (ms % 1000) * 1000};
    setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t); /* of connect(), too */
    setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

/* Before the connection is waited for `ms` (0: without end): no longer than until the deadline. */
static int keep_deadline(const struct link *l, unsigned ms, struct error *err)
{
    const int64_t left = left_ms(l);
    if (left <= 0)
        return too_late(err);
    if (l->deadline_ns || l->patient)
        limit_waits(l, ms && ms < left ? ms : left < UINT_MAX ? (unsigned)left : ms);
    return 0;
}

/* Asks the other machine now and then whether it is there, so that one that is gone ends a wait without end. */
static void watch_peer(const struct link *l)
{
    const int on = 1, idle_s = 60, every_s = 20, times = 6;
    setsockopt(l->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(l->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(l->fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(l->fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

static int connect_tcp(struct link *l, const char *host, const char *port, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int gai = getaddrinfo(host, port, &hints, &found), one = 1, failed = 0;
    if (gai != 0)
        return error_set(err, -MRD_ENOTFOUND, "%s:%s: %s", host, port, gai_strerror(gai));
    for (struct addrinfo *a = found; a && l->fd < 0; a = a->ai_next) {
        l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (l->fd >= 0 && l->timeout_ms)
            limit_waits(l, l->timeout_ms);
        if (l->fd >= 0 && connect(l->fd, a->ai_addr, a->ai_addrlen) == 0)
            break;
        failed = errno == EINPROGRESS ? ETIMEDOUT : errno;
        link_close(l);
    }
    freeaddrinfo(found);
    if (l->fd < 0)
        return error_set_errno(err, failed, "%s:%s", host, port);
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (l->patient)
        watch_peer(l);
    return 0;
}

int link_open(struct link *l, const char *address, struct error *err)
{
    static const char scheme[] = "http://";
    bool url = strncmp(address, scheme, sizeof scheme - 1) == 0;
    char host[128], port[16];
    l->fd = -1;
    l->in = slice_of(NULL, 0);
    l->answering = false;
    if (!url && strchr(address, '/'))
        return connect_unix(l, address, err);
    l->http = true;
    const char *at = url ? address + sizeof scheme - 1 : address;
    snprintf(l->host, sizeof l->host, "%.*s", (int)strcspn(at, "/"), at);
    const char *colon = strrchr(l->host, ':');
    bool v6_alone = l->host[0] == '[' && colon && strchr(colon, ']');
    if (v6_alone)
        colon = NULL;
    snprintf(port, sizeof port, "%s", colon ? colon + 1 : "");
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - l->host) : (int)strlen(l->host), l->host);
    if (host[0] == '[') { /* [::1] */
        memmove(host, host + 1, strlen(host));
        host[strcspn(host, "]")] = '\0';
    }
    if (!port[0])
        snprintf(port, sizeof port, "%d", DEFAULT_PORT);
    return connect_tcp(l, host[0] ? host : "localhost", port, err);
}

void link_close(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* `more` follows at once: what is small waits for it, so that it does not go in a packet of its own. */
static int send_part(struct link *l, struct slice bytes, bool more, struct error *err)
{
    while (bytes.len) {
        int rc = keep_deadline(l, l->timeout_ms, err);
        if (rc < 0)
            return rc;
        ssize_t n = send(l->fd, bytes.p, bytes.len, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed_io(l, errno, err);
        bytes.p += n;
        bytes.len -= (size_t)n;
    }
    return 0;
}

static int send_all(struct link *l, struct slice bytes, struct error *err)
{
    return send_part(l, bytes, false, err);
}

/* More of the connection into the buffer, that is waited for `ms`: 1; 0: its end. */
static int fill_within(struct link *l, unsigned ms, struct error *err)
{
    int rc = keep_deadline(l, ms, err);
    if (rc < 0)
        return rc;
    ssize_t n = file_read(l->fd, l->buf, sizeof l->buf);
    if (n < 0)
        return failed_io(l, errno, err);
    l->in = slice_of(l->buf, (size_t)n);
    return n > 0;
}

static int fill(struct link *l, struct error *err)
{
    return fill_within(l, l->timeout_ms, err);
}

/* The value of a header in the head of a response, or an empty slice. */
static struct slice header(const char *head, const char *name)
{
    const char *at = strcasestr(head, name);
    if (!at)
        return slice_of(NULL, 0);
    at += strlen(name);
    at += strspn(at, " \t");
    return slice_of(at, strcspn(at, "\r\n"));
}

/* Reads the head of an answer. */
static int read_head(struct link *l, struct error *err)
{
    char head[HTTP_MAX_HEAD + 1];
    size_t n = 0;
    head[0] = '\0';
    while (!strstr(head, "\r\n\r\n")) {
        int rc = l->in.len ? 1 : fill_within(l, l->patient && n == 0 ? 0 : l->timeout_ms, err);
        if (rc <= 0)
            return rc < 0 ? rc : error_set(err, -MRD_ECLOSED, "the server has closed the connection");
        if (n == HTTP_MAX_HEAD || l->in.p[0] == '\0')
            return error_set(err, -MRD_EFORMAT, "the server does not use HTTP");
        head[n++] = (char)*l->in.p++;
        head[n] = '\0';
        l->in.len--;
    }
    l->status = strncmp(head, "HTTP/1.", 7) == 0 ? atoi(head + 8) : 0;
    snprintf(l->reason, sizeof l->reason, "%.*s", (int)strcspn(head, "\r\n"), head);
    struct slice coding = header(head, "\ntransfer-encoding:"), length = header(head, "\ncontent-length:");
    l->chunked = coding.len == 7 && strncasecmp((const char *)coding.p, "chunked", 7) == 0;
    l->until_close = !l->chunked && !length.p;
    l->body_left = length.p ? strtoull((const char *)length.p, NULL, 10) : 0;
    l->chunks = (struct http_chunks){0};
    return 0;
}

int link_request(struct link *l, const char *head, struct slice body, struct error *err)
{
    return link_request_pieces(l, head, &body, 1, err);
}

int link_request_pieces(struct link *l, const char *head, const struct slice *body, size_t n, struct error *err)
{
    char rest[256];
    struct error ignored;
    uint64_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += body[i].len;
    int len = snprintf(rest, sizeof rest, "Host: %s\r\nContent-Length: %" PRIu64 "\r\n\r\n", l->host, size);
    int rc = send_part(l, slice_str(head), true, err);
    if (rc == 0)
        rc = send_part(l, slice_of(rest, (size_t)len), size > 0, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = send_part(l, body[i], i + 1 < n, err);
    /* A server that refuses answers before it has read all, and closes: what it said counts for more. */
    if (rc == 0)
        rc = read_head(l, err);
    else if (rc != -MRD_ETIMEOUT && read_head(l, &ignored) == 0)
        rc = 0;
    l->answering = rc == 0;
    return rc;
}

int link_send(struct link *l, struct slice request, struct error *err)
{
    if (!l->http)
        return send_all(l, request, err);
    int rc = link_request(l, "POST /rpc HTTP/1.1\r\nContent-Type: application/x-protobuf\r\n", request, err);
    if (rc == 0 && l->status != 200) {
        l->answering = false;
        return error_set(err, -MRD_EIO, "the server replied %s", l->reason);
    }
    return rc;
}

/* Takes from what has been read: 1 bytes of the body, 0 its end, 2 more must be read. */
static int take_body(struct link *l, struct slice *bytes, struct error *err)
{
    if (l->chunked) {
        switch (http_chunks_next(&l->chunks, &l->in, bytes)) {
        case HTTP_CHUNKS_DATA:
            return 1;
        case HTTP_CHUNKS_MORE:
            return 2;
        case HTTP_CHUNKS_END:
            return 0;
        case HTTP_CHUNKS_BROKEN:
            return error_set(err, -MRD_EFORMAT, "the server's reply is malformed");
        }
    }
    if (!l->until_close && l->body_left == 0)
        return 0;
    if (l->in.len == 0)
        return 2;
    size_t n = !l->until_close && l->body_left < l->in.len ? (size_t)l->body_left : l->in.len;
    *bytes = slice_of(l->in.p, n);
    l->in.p += n;
    l->in.len -= n;
    l->body_left -= l->until_close ? 0 : n;
    return 1;
}

/* More of an answer: 1; 0: its end. An answer that says how long it is and ends before that has broken off. */
static int more(struct link *l, struct error *err)
{
    int rc = fill(l, err);
    if (rc == 0 && !l->until_close)
        return error_set(err, -MRD_ECLOSED, "the server has closed the connection in the middle of its answer");
    return rc;
}

int link_read(struct link *l, struct slice *bytes, struct error *err)
{
    *bytes = slice_of(NULL, 0);
    if (!l->http) {
        int rc = fill(l, err);
        *bytes = l->in;
        return rc;
    }
    while (l->answering) {
        int rc = take_body(l, bytes, err);
        if (rc == 1 || rc < 0)
            return rc;
        if (rc == 2)
            rc = more(l, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            l->answering = false;
    }
    return 0;
}
