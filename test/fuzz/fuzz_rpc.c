/* The protocol: any message is answered, by messages that can be read, or the client is parted with. */
#include "rpc/framer.h"
#include "server/worker.h"

#include "base/alloc.h"
#include "kept.h"
#include "wire/pb_cursor.h"

enum { MAX_PIECES = 200 /* of one answer */, LIMIT_MS = 20 };

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

static const struct tp_config config = {.threads = 1};
static struct trace loaded; /* once for all inputs that leave it as it is */

static bool load(void)
{
    trace_init(&loaded, NULL, NULL, &config);
    loaded.max_views = 4;
    return trace_reset(&loaded, NULL) == 0 &&
           tp_load(loaded.tp, MERIDIAN_SOURCE_DIR "/test/data/track-events.pftrace") == 0 && trace_finish(&loaded) == 0;
}

static void forget(void)
{
    trace_free(&loaded);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    kept_begin(argc, argv);
    kept_running = &loaded.tp;
    if (!load())
        exit(1);
    atexit(forget);
    return 0;
}

/* A client's bytes for a server without a trace, or with one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool empty = size && data[size - 1] & 1;
    struct trace none;
    struct worker w;
    struct trace *t = empty ? &none : &loaded;
    if (empty)
        trace_init(&none, NULL, NULL, &config);
    struct tp *before = loaded.tp;
    worker_init(&w, t, 1 << 20, nobody, NULL);
    kept_limit_ms(LIMIT_MS);
    run(&w, slice_of(data, size));
    kept_limit_ms(0);
    worker_free(&w);
    if (empty) {
        trace_free(&none);
        return 0;
    }
    if (loaded.tp != before || !loaded.finished) {
        trace_free(&loaded);
        if (!load())
            abort();
    } else {
        summarizers_clear(&loaded.summarizers);
        tp_interrupt_clear(loaded.tp);
        if (kept_changes(data, size))
            tp_restore_initial_tables(loaded.tp);
    }
    return 0;
}
