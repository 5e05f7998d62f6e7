/* The stream of TraceProcessorRpc messages from a client: cut and handed to the worker. */
#include "server/loop.h"

bool conn_take_messages(struct conn *c, struct slice bytes)
{
    struct rpc_message message;
    while (bytes.len) {
        enum framer_step step = framer_next(&c->framer, &bytes, &message);
        if (!conn_hold(c)) {
            if (step == FRAMER_MESSAGE)
                mem_free(message.p);
            return false;
        }
        switch (step) {
        case FRAMER_MESSAGE:
            c->requests++;
            if (!conn_push(c, REQUEST_RPC, NULL, message.p, message.len))
                return false;
            break;
        case FRAMER_MORE:
            return true;
        case FRAMER_BROKEN:
            framer_free(&c->framer);
            conn_hold(c);
            return conn_push(c, REQUEST_BROKEN, NULL, NULL, 0);
        case FRAMER_NOMEM:
            return false;
        }
    }
    return true;
}
