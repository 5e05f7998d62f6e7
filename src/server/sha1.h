/* SHA-1, only for the answer to a WebSocket handshake (RFC 6455 4.2.2). */
#ifndef MERIDIAN_SERVER_SHA1_H
#define MERIDIAN_SERVER_SHA1_H

#include "base/slice.h"

void sha1(struct slice bytes, uint8_t digest[20]);

#endif
