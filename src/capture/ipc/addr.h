/* Socket addresses as traced, traced_probes and perfetto write them, and the sockets behind them.
 *
 * The form decides the family, in this order: "@name" abstract unix, "vsock://CID:PORT", "[v6]:port" and
 * "host:port" TCP, anything else a path of the filesystem. */
#ifndef MERIDIAN_CAPTURE_IPC_ADDR_H
#define MERIDIAN_CAPTURE_IPC_ADDR_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/socket.h>

struct ipc_addr {
    int family;                   /* AF_UNIX, AF_INET, AF_INET6, AF_VSOCK; 0 when invalid */
    struct sockaddr_storage addr; /* ready for bind/connect */
    socklen_t len;
    bool is_path; /* AF_UNIX with a file behind it */
};

/* Parses (and, for a host name, resolves: this may block). -MRD_EINVALID with a text for what nobody could connect to.
 */
int ipc_addr_parse(struct ipc_addr *a, const char *text, struct error *err);

/* TCP that others than this machine can reach. */
bool ipc_addr_is_exposed(const struct ipc_addr *a);

/* A listening, non-blocking, close-on-exec socket: the one that systemd handed over for the address, else a new one. A
 * stale socket file is removed first; one that somebody listens on,
 * and a file that is not a socket, are not touched (-MRD_EEXISTS). TCP gets SO_REUSEADDR and TCP_NODELAY, vsock
 * SO_REUSEADDR. Negative -MRD_E… on failure.
 */
int ipc_addr_listen(const char *text, struct ipc_addr *out, struct error *err);

/* A non-blocking socket with a connect under way (*in_progress) or done. Negative -MRD_E… on failure. */
int ipc_addr_connect(const char *text, bool *in_progress, struct ipc_addr *out, struct error *err);

/* A TCP peer that vanishes without a word (a machine that lost power, a network that was cut) is noticed within
 * `silent_ms` or a few seconds; sockets that a listener accepts inherit this. The sockets made here have 30 s. */
void ipc_addr_notice_death(int fd, unsigned silent_ms);

/* The text of the local end of a connected socket without its port: the machine id of a peer without a hint is the hash
 * of it. */
void ipc_addr_local_name(int fd, char *buf, size_t size);

/* A readable name of the other end for logs: "unix uid=0 pid=12", "10.0.0.2:4511", "vsock 3:1024". */
void ipc_addr_peer_name(int fd, char *buf, size_t size);

/* Where producers and consumers meet the service: the environment variable, else /run/perfetto/…, else /tmp/…
 * `producer` may be a comma-separated list. Borrowed from the environment or constant. */
const char *ipc_producer_socket(void);
const char *ipc_consumer_socket(void);

/* The one address of a producer: the first of the list in ipc_producer_socket(). */
void ipc_producer_socket_first(char *buf, size_t size);

/* Group and octal mode of a socket of the file system; nothing to do for other sockets. */
int ipc_addr_permissions(const char *address, const char *group, const char *mode, struct error *err);

#endif
