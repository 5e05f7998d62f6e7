/* Binder transactions: slices of caller and callee, arrows between them, the driver's lock. */
#ifndef MERIDIAN_IMPORTER_FTRACE_BINDER_H
#define MERIDIAN_IMPORTER_FTRACE_BINDER_H

#include "importer/ftrace/ftrace_internal.h"

struct binder_transaction {
    int32_t id, node, pid, tid; /* where it goes; tid 0: any thread */
    uint32_t flags;
    bool reply;
    struct slice code; /* as text */
};

enum binder_lock_step { BINDER_LOCK, BINDER_LOCKED, BINDER_UNLOCK };

void binder_begin(const struct ftrace_event *e, const struct binder_transaction *t);
void binder_received(const struct ftrace_event *e, int32_t id);
void binder_alloc(const struct ftrace_event *e, uint64_t data_size, uint64_t offsets_size);
void binder_lock(const struct ftrace_event *e, enum binder_lock_step step);
/* What a thread says to the driver, and hears from it. */
void binder_command(const struct ftrace_event *e, uint32_t cmd);
void binder_return(const struct ftrace_event *e, uint32_t cmd);

#endif
