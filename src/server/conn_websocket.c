/* A connection that has become a WebSocket. */
#include "server/loop.h"
#include "server/websocket.h"

static void send_control(struct conn *c, enum websocket_opcode opcode, struct slice payload)
{
    uint8_t head[WEBSOCKET_MAX_HEAD];
    size_t n = websocket_head(head, opcode, payload.len);
    conn_write(c, slice_of(head, n), NULL, payload);
}

/* Says why, and goes. */
static void refuse(struct conn *c, int status)
{
    uint8_t code[] = {(uint8_t)(status >> 8), (uint8_t)status};
    conn_drop_request(c);
    send_control(c, WEBSOCKET_CLOSE, slice_of(code, sizeof code));
    if (!c->closing)
        conn_part(c);
}

static void on_data(void *ctx, struct slice bytes)
{
    struct conn *c = ctx;
    if (c->closing || c->close_when_written)
        return;
    if (!conn_take_messages(c, bytes))
        refuse(c, WEBSOCKET_NO_RESOURCES);
}

static void on_control(void *ctx, enum websocket_opcode opcode, struct slice payload)
{
    struct conn *c = ctx;
    if (c->closing || c->close_when_written)
        return;
    if (opcode == WEBSOCKET_PING) {
        if (c->writes < ENOUGH_WRITES) /* else it does not read: its pongs would pile up */
            send_control(c, WEBSOCKET_PONG, payload);
        return;
    }
    /* Whoever says goodbye does not wait for answers: what runs for it is interrupted. */
    send_control(c, WEBSOCKET_CLOSE, slice_of(payload.p, payload.len >= 2 ? 2 : 0));
    if (c->closing)
        return;
    session_leave(c->session);
    c->session = NULL;
    conn_part(c);
}

void conn_websocket_begin(struct conn *c, const struct http_request *r)
{
    char accept[WEBSOCKET_ACCEPT_LEN + 1], head[HTTP_MAX_RESPONSE_HEAD];
    struct websocket_events events = {c, on_data, on_control};
    c->websocket = websocket_open(&events);
    if (!c->websocket) {
        conn_close(c);
        return;
    }
    websocket_accept(r->websocket_key, accept);
    struct http_response response = {
        .status = 101, .length = HTTP_NO_BODY, .origin = r->origin, .websocket_accept = accept};
    size_t n = http_write_head(&response, head, sizeof head);
    c->protocol = CONN_WEBSOCKET;
    session_is_page(c->session);
    c->session->stream = true;
    conn_write(c, slice_of(head, n), NULL, slice_of(NULL, 0));
}

void conn_websocket_take(struct conn *c, struct slice bytes)
{
    int refused = websocket_take(c->websocket, bytes);
    if (refused && !c->closing && !c->close_when_written)
        refuse(c, refused);
}

void conn_websocket_send(struct conn *c, struct reply *r)
{
    uint8_t head[WEBSOCKET_MAX_HEAD];
    if (r->kind == REPLY_BYTES) {
        size_t n = websocket_head(head, WEBSOCKET_BINARY, r->len);
        conn_write(c, slice_of(head, n), r, slice_of(NULL, 0));
        return;
    }
    session_sent(c->session, r);
    send_control(c, WEBSOCKET_CLOSE, slice_of(NULL, 0));
    if (!c->closing)
        conn_part(c);
}
