/* Listening sockets that the program was started with (systemd's socket activation: LISTEN_FDS and LISTEN_PID of
 * sd_listen_fds(3)). They are told by their address, so that units need no names for them. */
#ifndef MERIDIAN_BASE_INHERITED_SOCKET_H
#define MERIDIAN_BASE_INHERITED_SOCKET_H

#include <sys/socket.h>

/* The one that listens at this address, close-on-exec and non-blocking; the caller owns it. -1: there is none. Ask once
 * for an address. */
int inherited_socket(const struct sockaddr *address, socklen_t len);

#endif
