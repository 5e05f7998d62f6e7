/* The client's connection to a server: requests out, a stream of answers in, over a Unix socket or HTTP. Blocking. */
#ifndef MERIDIAN_RPC_LINK_H
#define MERIDIAN_RPC_LINK_H

#include "base/error.h"
#include "rpc/http.h"

struct link {
    int fd;              /* -1: not connected */
    bool http;           /* each request is a POST; its answer comes in chunks */
    char host[128];      /* for the Host header */
    unsigned timeout_ms; /* how long connecting, sending and waiting for bytes may take each; 0: as long as they do */
    bool patient;        /* the first byte of an answer may take as long as the connection lives */
    int64_t deadline_ns; /* CLOCK_MONOTONIC, at which a server that goes on byte by byte is given up; 0: none */
    int status;          /* of the last answer */
    char reason[64];     /* its first line */
    struct http_chunks chunks;
    bool answering; /* HTTP: the answer is not at its end */
    bool chunked;
    bool until_close;   /* without a length: up to the end of the connection */
    uint64_t body_left; /* of an answer of known length */
    uint8_t buf[64 << 10];
    struct slice in; /* of buf: read and not yet handed out */
};

/* Connects to "host:port", "http://host:port" or the path of a Unix socket (with a '/'). Zero the struct before. */
int link_open(struct link *l, const char *address, struct error *err);
void link_close(struct link *l);

/* Sends messages of the stream; the whole of an answer must have been read before. */
int link_send(struct link *l, struct slice request, struct error *err);

/* One request over HTTP: `head` is its first line and its headers, each with CR LF, without Host, Content-Length and
 * the empty line. l->status is the answer's, and link_read() gives its body, whatever the status. */
int link_request(struct link *l, const char *head, struct slice body, struct error *err);
/* The same with a body in pieces. */
int link_request_pieces(struct link *l, const char *head, const struct slice *body, size_t n, struct error *err);

/* The next bytes of the answer, a view until the next call: 1; 0: it is at its end (HTTP), or the server has gone. */
int link_read(struct link *l, struct slice *bytes, struct error *err);

#endif
