/* Cuts a byte stream into TraceProcessorRpc messages: tag 0x0a, a length of up to 2^28 - 1, the message. Bytes come in
 * pieces of any size; memory grows only with bytes that have come. */
#ifndef MERIDIAN_RPC_FRAMER_H
#define MERIDIAN_RPC_FRAMER_H

#include "base/slice.h"

struct framer {
    uint8_t head[6]; /* tag and length, as far as they have come */
    size_t head_len;
    uint8_t *p; /* the message, as far as it has come */
    size_t n;
    size_t cap;
    size_t len; /* of the whole message, once the head is whole */
};

enum framer_step {
    FRAMER_MESSAGE, /* *message is whole: the caller takes it over and mem_free()s it */
    FRAMER_MORE,    /* the bytes are used up */
    FRAMER_BROKEN,  /* this is no such stream: give it up */
    FRAMER_NOMEM,
};

struct rpc_message {
    uint8_t *p; /* NULL when it is empty */
    size_t len;
};

/* Takes bytes from the front of *in until a message is whole or none are left. */
enum framer_step framer_next(struct framer *f, struct slice *in, struct rpc_message *message);
void framer_free(struct framer *f);

/* Bytes held. */
static inline size_t framer_held(const struct framer *f)
{
    return f->cap;
}

#endif
