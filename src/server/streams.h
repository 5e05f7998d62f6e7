/* Standard input and output as one socket. */
#ifndef MERIDIAN_SERVER_STREAMS_H
#define MERIDIAN_SERVER_STREAMS_H

#include "base/error.h"

#include <pthread.h>

/* Begins to carry bytes between the standard streams and *server_fd, which is the caller's. *out is to be joined: it
 * ends when *server_fd is closed and everything written to it is out. */
int stdio_start(pthread_t *out, int *server_fd, struct error *err);

#endif
