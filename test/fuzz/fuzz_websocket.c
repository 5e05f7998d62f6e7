/* WebSocket frames and the messages in them: any bytes, in one piece and byte by byte, give the same stream. */
#include "rpc/framer.h"
#include "server/websocket.h"

#include "base/alloc.h"
#include "fuzz.h"

#include <stdlib.h>

struct seen {
    uint64_t hash;
    size_t messages;
    struct framer framer;
    bool broken;
};

static void mix(struct seen *s, const void *p, size_t len)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < len; i++)
        s->hash = (s->hash ^ bytes[i]) * 0x100000001b3u;
}

static void on_data(void *ctx, struct slice bytes)
{
    struct seen *s = ctx;
    struct rpc_message m;
    while (bytes.len && !s->broken) {
        switch (framer_next(&s->framer, &bytes, &m)) {
        case FRAMER_MESSAGE:
            mix(s, m.p, m.len);
            s->messages++;
            mem_free(m.p);
            break;
        case FRAMER_MORE:
            if (bytes.len)
                abort();
            break;
        default:
            s->broken = true;
        }
    }
}

static void on_control(void *ctx, enum websocket_opcode opcode, struct slice payload)
{
    struct seen *s = ctx;
    if (payload.len > 125)
        abort();
    s->hash += opcode;
    mix(s, payload.p, payload.len);
}

static int take(struct slice in, size_t step, struct seen *s)
{
    struct websocket_events events = {s, on_data, on_control};
    struct websocket *w = websocket_open(&events);
    int status = 0;
    while (w && in.len && status == 0) {
        struct slice piece = slice_of(in.p, in.len < step ? in.len : step);
        in.p += piece.len;
        in.len -= piece.len;
        status = websocket_take(w, piece);
    }
    websocket_close(w);
    framer_free(&s->framer);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, pieces = {0};
    int a = take(slice_of(data, size), size + 1, &whole), b = take(slice_of(data, size), 1, &pieces);
    if (a != b || whole.hash != pieces.hash || whole.messages != pieces.messages)
        abort();
    struct seen bare = {0}; /* the same bytes as a stream without frames */
    on_data(&bare, slice_of(data, size));
    framer_free(&bare.framer);
    return 0;
}
