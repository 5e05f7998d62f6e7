/* WebSocket (RFC 6455): the handshake's answer, heads of frames to clients, and frames from clients (libwslay). */
#ifndef MERIDIAN_SERVER_WEBSOCKET_H
#define MERIDIAN_SERVER_WEBSOCKET_H

#include "base/slice.h"

enum { WEBSOCKET_KEY_LEN = 24, WEBSOCKET_ACCEPT_LEN = 28, WEBSOCKET_MAX_HEAD = 10, WEBSOCKET_MAX_PAYLOAD = 64 << 20 };

enum websocket_opcode { WEBSOCKET_BINARY = 2, WEBSOCKET_CLOSE = 8, WEBSOCKET_PING = 9, WEBSOCKET_PONG = 10 };

enum websocket_status { WEBSOCKET_PROTOCOL_ERROR = 1002, WEBSOCKET_TOO_BIG = 1009, WEBSOCKET_NO_RESOURCES = 1013 };

/* The value of Sec-WebSocket-Accept for a client's key. */
void websocket_accept(struct slice key, char accept[WEBSOCKET_ACCEPT_LEN + 1]);

/* Writes the head of a whole frame without mask; the bytes written. */
size_t websocket_head(uint8_t head[WEBSOCKET_MAX_HEAD], enum websocket_opcode opcode, uint64_t payload_len);

struct websocket; /* the receiving side of one connection */

struct websocket_events {
    void *ctx;
    /* Bytes of text, binary and continuation frames, which are one stream. */
    void (*data)(void *ctx, struct slice bytes);
    /* A whole ping or close; up to 125 bytes. */
    void (*control)(void *ctx, enum websocket_opcode opcode, struct slice payload);
};

struct websocket *websocket_open(const struct websocket_events *events); /* NULL: out of memory */
void websocket_close(struct websocket *w);                               /* NULL is fine */

/* Takes all bytes and calls the events they make. 0, or what to close the connection with (websocket_status). */
int websocket_take(struct websocket *w, struct slice bytes);

#endif
