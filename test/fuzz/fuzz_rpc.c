/* The protocol: any message is answered, by messages that can be read, or the client is parted with. */
#include "rpc/framer.h"
#include "server/worker.h"

#include "base/alloc.h"
#include "fuzz.h"
#include "wire/pb_cursor.h"

#include <stdlib.h>

enum { MAX_PIECES = 200 }; /* of one answer */

static void nobody(void *ctx)
{
    (void)ctx;
}

/* Takes what has been answered; every piece must be whole protobuf. */
static void drain(struct session *s)
{
    struct reply *r;
    while ((r = session_take_reply(s))) {
        struct pb_cursor c = pb_cursor(slice_of(r->p, r->len));
        struct pb_field f;
        while (pb_next(&c, &f))
            ;
        if (c.bad)
            abort();
        session_sent(s, r);
    }
}

static void run(struct worker *w, struct slice bytes)
{
    struct session *s = session_open(w, NULL);
    struct framer framer = {0};
    struct rpc_message m;
    if (!s)
        return;
    while (framer_next(&framer, &bytes, &m) == FRAMER_MESSAGE) {
        rpc_handle(w, s, slice_of(m.p, m.len));
        for (int i = 0; i < MAX_PIECES && s->rpc.active != ANSWER_NONE; i++) {
            rpc_continue(w, s);
            drain(s);
        }
        mem_free(m.p);
        drain(s);
        if (s->rpc.active != ANSWER_NONE)
            break;
    }
    framer_free(&framer);
    client_session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tp_config config = {.threads = 1};
    struct trace trace;
    struct worker w;
    trace_init(&trace, NULL, NULL, &config);
    worker_init(&w, &trace, 1 << 20, nobody, NULL);
    run(&w, slice_of(data, size));
    trace_free(&trace);
    worker_free(&w);
    return 0;
}
