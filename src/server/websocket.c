/* WebSocket frames: written by hand, read by libwslay. */
#include "server/websocket.h"

#include "base/alloc.h"

#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <wslay/wslay.h>

enum { MAX_CONTROL = 125 };

struct websocket {
    wslay_frame_context_ptr frames;
    struct websocket_events events;
    struct slice in; /* bytes not yet read by wslay */
    uint64_t got;    /* payload bytes of the frame that is coming */
    uint8_t control[MAX_CONTROL];
};

void websocket_accept(struct slice key, char accept[WEBSOCKET_ACCEPT_LEN + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 1.3 */
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx sha1;
    sha1_init(&sha1);
    sha1_update(&sha1, key.len, key.p);
    sha1_update(&sha1, sizeof guid - 1, (const uint8_t *)guid);
    sha1_digest(&sha1, sizeof digest, digest);
    base64_encode_raw(accept, sizeof digest, digest);
    accept[WEBSOCKET_ACCEPT_LEN] = '\0';
}

size_t websocket_head(uint8_t head[WEBSOCKET_MAX_HEAD], enum websocket_opcode opcode, uint64_t len)
{
    size_t n_len = len < 126 ? 0 : len <= 0xffff ? 2 : 8;
    head[0] = (uint8_t)(0x80 | opcode);
    head[1] = n_len == 0 ? (uint8_t)len : n_len == 2 ? 126 : 127;
    for (size_t i = 0; i < n_len; i++)
        head[2 + i] = (uint8_t)(len >> 8 * (n_len - 1 - i));
    return 2 + n_len;
}

static ssize_t give_bytes(uint8_t *buf, size_t len, int flags, void *ctx)
{
    (void)flags;
    struct websocket *w = ctx;
    size_t n = w->in.len < len ? w->in.len : len;
    if (n == 0)
        return -1; /* wslay asks again when more have come */
    memcpy(buf, w->in.p, n);
    w->in.p += n;
    w->in.len -= n;
    return (ssize_t)n;
}

struct websocket *websocket_open(const struct websocket_events *events)
{
    struct websocket *w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->events = *events;
    struct wslay_frame_callbacks callbacks = {.recv_callback = give_bytes};
    if (wslay_frame_context_init(&w->frames, &callbacks, w) != 0) {
        mem_free(w);
        return NULL;
    }
    return w;
}

void websocket_close(struct websocket *w)
{
    if (!w)
        return;
    wslay_frame_context_free(w->frames);
    mem_free(w);
}

/* Clients must mask; opcodes and bits that nobody agreed on are not for us. */
static int check(const struct wslay_frame_iocb *f)
{
    bool known = f->opcode <= WSLAY_BINARY_FRAME || (f->opcode >= WEBSOCKET_CLOSE && f->opcode <= WEBSOCKET_PONG);
    if (!f->mask || f->rsv || !known)
        return WEBSOCKET_PROTOCOL_ERROR;
    return f->payload_length >= WEBSOCKET_MAX_PAYLOAD ? WEBSOCKET_TOO_BIG : 0;
}

static void take_control(struct websocket *w, const struct wslay_frame_iocb *f, bool whole)
{
    memcpy(w->control + w->got - f->data_length, f->data, f->data_length);
    if (whole && f->opcode != WEBSOCKET_PONG)
        w->events.control(w->events.ctx, f->opcode, slice_of(w->control, (size_t)w->got));
}

int websocket_take(struct websocket *w, struct slice bytes)
{
    w->in = bytes;
    for (;;) {
        struct wslay_frame_iocb f = {0};
        ssize_t n = wslay_frame_recv(w->frames, &f);
        if (n == WSLAY_ERR_WANT_READ)
            return 0;
        if (n < 0)
            return WEBSOCKET_PROTOCOL_ERROR;
        int refused = check(&f);
        if (refused)
            return refused;
        w->got += f.data_length;
        bool whole = w->got == f.payload_length;
        if (wslay_is_ctrl_frame(f.opcode))
            take_control(w, &f, whole);
        else if (f.data_length)
            w->events.data(w->events.ctx, slice_of(f.data, f.data_length));
        if (whole)
            w->got = 0;
    }
}
