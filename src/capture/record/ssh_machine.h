/* One other machine of a recording, over one ssh connection: the recorder's own relay link goes through it, a script at
 * its far end starts the relay and the probes, and ends them and leaves nothing behind when its input ends, which it
 * does whatever happens here. */
#ifndef MERIDIAN_CAPTURE_RECORD_SSH_MACHINE_H
#define MERIDIAN_CAPTURE_RECORD_SSH_MACHINE_H

#include "capture/record/child.h"

#include <stddef.h>

enum { REMOTES_MAX = 64 };

enum remote_state {
    REMOTE_STARTING,
    REMOTE_COPYING, /* our binary is on its way: the machine has none */
    REMOTE_READY,
    REMOTE_FAILED,
};

struct remote {
    const char *target; /* [USER@]HOST, as ssh takes it */
    char name[64];      /* of the machine, in the trace */
    enum remote_state state;
    char why[256]; /* REMOTE_FAILED */
    struct child ssh;
    const char *binary; /* to be copied; NULL: none at hand */
    int binary_fd;      /* -1 */
    char line[512];     /* of its output, not whole yet */
    size_t line_len;
    char block[16384]; /* of the binary, not sent yet */
    size_t block_len, block_sent;
};

struct remote_options {
    const char *ssh;      /* the command, words separated by blanks; NULL: ssh */
    const char *binary;   /* a static tracebox for machines that have none; NULL: none */
    bool always_copy;     /* also to machines that have one */
    const char *relay_to; /* HOST:PORT here, to forward relays to through ssh; NULL: they connect directly */
    unsigned direct_port; /* … to this port, at the address that the ssh connection comes from */
    bool perf;            /* traced_perf is needed there as well */
    const char *scratch;  /* a name for files on the machine that nobody else has */
};

int remote_start(struct remote *r, const char *target, const struct remote_options *o, struct error *err);

/* Reads what `n` of them say and feeds them; waits up to `timeout_ms` for something to happen. */
void remotes_step(struct remote *r, unsigned n, int timeout_ms);

/* Ends all of them, at the same time. */
void remotes_stop(struct remote *r, unsigned n);

#endif
