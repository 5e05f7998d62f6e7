/* Who may come in from other machines, and how much each may take: an allow list of names, a limit of connections and a
 * limit of bytes a second for each machine (its certificate's name, without TLS the id it claims). Over the limit of
 * bytes a machine is not cut off but read more slowly: its producers notice, and count what they drop. */
#ifndef MERIDIAN_CAPTURE_IPC_GUARD_H
#define MERIDIAN_CAPTURE_IPC_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct ipc_guard;

struct ipc_guard_options {
    const char *allow;        /* names, separated by commas; NULL: everybody */
    unsigned max_connections; /* of one machine; 0: no limit */
    uint64_t max_bytes_per_s; /* of one machine; 0: no limit */
};

struct ipc_guard *ipc_guard_new(uv_loop_t *loop, const struct ipc_guard_options *o); /* NULL when memory is out */
void ipc_guard_close(
    struct ipc_guard *g); /* after the last connection was left; run the loop afterwards; NULL is fine */

/* Whether names matter: then who does not give one is not let in. NULL is fine. */
bool ipc_guard_needs_name(const struct ipc_guard *g);

/* One connection of a machine. Zero it before use. */
struct ipc_guarded_conn {
    struct ipc_guarded_conn *next, **prev; /* of its machine */
    struct guarded_machine *machine;       /* NULL: not admitted */
    void (*pause)(struct ipc_guarded_conn *v, bool paused);
};

/* NULL when the machine may come in, else why not. `certified` is the name its certificate proves, NULL without TLS.
 * With a NULL guard everybody may whose name is the certified one. */
const char *ipc_guard_admit(struct ipc_guard *g, struct ipc_guarded_conn *v, uint32_t machine_id, const char *name,
                            const char *certified);
void ipc_guard_leave(struct ipc_guarded_conn *v); /* not admitted: nothing happens */

/* It has sent so many bytes: all of its machine's connections are paused when that was too much. */
void ipc_guard_count(struct ipc_guarded_conn *v, uint64_t bytes);

#endif
