/* HTTP/1.1 (RFC 9112) as far as the server needs it: heads of requests, chunked bodies, heads of responses. Pure
 * functions over bytes that anybody may have sent. */
#ifndef MERIDIAN_RPC_HTTP_H
#define MERIDIAN_RPC_HTTP_H

#include "base/slice.h"

enum { HTTP_MAX_HEAD = 16 << 10, HTTP_MAX_BODY = 64 << 20 };

enum http_method { HTTP_GET, HTTP_POST, HTTP_OPTIONS, HTTP_OTHER };

/* Texts are views of the bytes parsed. A header that was not sent has p == NULL. */
struct http_request {
    enum http_method method;
    struct slice path;  /* without a query */
    struct slice query; /* behind the '?', as it came (rpc/form.h); empty when there is none */
    bool keep_alive;
    bool http_1_0; /* knows no chunks */
    bool chunked;
    bool expects_continue; /* "Expect: 100-continue" */
    bool upgrade_websocket;
    uint64_t content_length;
    bool cross_site; /* Sec-Fetch-Site: a browser asks for a page that is not of this origin */
    bool browser;    /* a browser sends it, not a script: Sec-Fetch-Site, Referer, or "User-Agent: Mozilla/…" */
    struct slice origin;
    struct slice host;
    struct slice websocket_key;
    struct slice websocket_version;
};

/* Reads the head at the beginning of `bytes`, which may be the beginning of one. Returns its length with the empty
 * line; 0: more is needed; negative: -(the status to refuse it with). */
int http_parse_head(struct slice bytes, struct http_request *r);

/* Is that the name of this machine? A page whose own name was made to point here (DNS rebinding) sends that name: only
 * addresses, localhost, names without a dot and `own` (NULL: none) are ours. */
bool http_host_is_ours(struct slice host, const char *own);

/* A chunked body, piece by piece. A zeroed struct is ready. */
struct http_chunks {
    int state;
    bool any; /* a digit of the size has come */
    size_t line;
    uint64_t size; /* bytes left of the chunk */
};
enum http_chunks_step { HTTP_CHUNKS_DATA, HTTP_CHUNKS_MORE, HTTP_CHUNKS_END, HTTP_CHUNKS_BROKEN };

/* Takes bytes from the front of *in: DATA with the next piece of the body (a view), MORE when they are used up, END
 * behind the last chunk. */
enum http_chunks_step http_chunks_next(struct http_chunks *c, struct slice *in, struct slice *data);

enum http_length { HTTP_NO_BODY = -1, HTTP_CHUNKED = -2 };

/* What a response's head says. */
struct http_response {
    int status;
    const char *type;    /* Content-Type; NULL: none */
    int64_t length;      /* or enum http_length */
    struct slice origin; /* allowed origin to be named; p NULL: none */
    bool keep_alive;
    bool preflight;               /* with what a preflight request asks */
    const char *websocket_accept; /* of a handshake; NULL: none */
};

/* Writes the head with the empty line; its length (always less than `room` when that is HTTP_MAX_RESPONSE_HEAD). */
enum { HTTP_MAX_RESPONSE_HEAD = 1024, HTTP_MAX_ORIGIN = 256 };
size_t http_write_head(const struct http_response *r, char *to, size_t room);

/* The reason phrase of a status. */
const char *http_reason(int status);

#endif
