/* What the client's connection and its rows share. */
#ifndef MERIDIAN_API_REMOTE_INTERNAL_H
#define MERIDIAN_API_REMOTE_INTERNAL_H

#include "api/remote.h"
#include "base/vec.h"
#include "rpc/framer.h"
#include "rpc/link.h"
#include "rpc/wire.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <stdatomic.h>

struct remote {
    char *address;
    struct link *idle;     /* a connection that nobody uses, or NULL */
    atomic_int waiting_fd; /* the connection that is being read; -1: none */
    atomic_bool interrupted;
    char *error;
};

/* One answer on its way. */
struct exchange {
    struct remote *remote;
    struct link *link; /* NULL once it is over */
    struct framer framer;
    struct slice in; /* read and not yet cut into messages */
};

/* Sends a request: the method with its arguments' fields (may be empty). */
int exchange_begin(struct exchange *x, struct remote *r, int method, struct slice args, struct error *err);

/* The next message of the answer, to be mem_free()d. */
int exchange_next(struct exchange *x, struct rpc_message *message, struct error *err);

/* `whole`: the last message has been read, and the connection may serve again. */
void exchange_end(struct exchange *x, bool whole);

#endif
