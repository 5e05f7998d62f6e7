/* What a daemon gives up once it runs: root's capabilities but a few, new privileges, and system calls that it never
 * makes.
 *
 * A hole in it is then worth less: no program can be started, no file system mounted, no module loaded, no other
 * process touched. Files, sockets and memory stay as they are; who starts the daemon decides about those (see
 * systemd/). */
#ifndef MERIDIAN_BASE_SANDBOX_H
#define MERIDIAN_BASE_SANDBOX_H

#include "base/error.h"

#include <stdint.h>

/* A set of capabilities: 1 << CAP_… of linux/capability.h. */
#define SANDBOX_CAP(n) (UINT64_C(1) << (n))

/* For the whole process; before it has more than one thread, and behind everything that needs more (binding sockets,
 * their owners, going to the background). `keep`: capabilities that stay, as far as they are there; with CAP_PERFMON
 * perf_event_open() stays as well. It fails with an error where the kernel refuses; kernels without seccomp and other
 * architectures have the rest alone. */
int sandbox_enter(uint64_t keep, struct error *err);

/* For a process that works on files which are open already, and may be anybody's: it can read and write those, take
 * memory, and end. Everything else answers EPERM. Before it has more than one thread. */
int sandbox_only_compute(struct error *err);

#endif
