/* The HTTP routes. */
#ifndef MERIDIAN_SERVER_ROUTES_H
#define MERIDIAN_SERVER_ROUTES_H

#include "base/slice.h"

#include <stdbool.h>

struct pb_writer;
struct session;
struct worker;

enum route_kind {
    ROUTE_HELP,      /* the loop answers */
    ROUTE_STATUS,    /* likewise */
    ROUTE_WEBSOCKET, /* becomes a stream of messages */
    ROUTE_RPC,       /* the body is a stream of messages */
    ROUTE_CALL,      /* the worker: one result message */
    ROUTE_STREAM,    /* the worker: a chunked answer */
};

struct route {
    const char *path;
    enum route_kind kind;
    const char *help;
    bool acts;  /* changes what the server has, or costs: browsers are to POST it */
    bool forms; /* a GET has the arguments in the address, as the body of a POST has them */
    /* ROUTE_CALL: writes the result; nothing written: an empty answer */
    void (*call)(struct worker *w, struct session *s, struct slice body, struct pb_writer *out);
    /* ROUTE_STREAM: begins the answer */
    void (*begin)(struct worker *w, struct session *s, struct slice body);
};

extern const struct route routes[];
extern const size_t n_routes;

/* The route of a path, or NULL. */
const struct route *route_find(struct slice path);

/* Runs a request on the worker's thread. */
void route_run(struct worker *w, struct session *s, const struct route *r, struct slice body);

/* Answers with a line of text. On the worker's thread. */
void route_reply_text(struct session *s, int status, const char *text);

#define TYPE_PROTOBUF "application/x-protobuf"
#define TYPE_TEXT     "text/plain"

#endif
