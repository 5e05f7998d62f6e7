/* The inside of a recording; for record*.c only. */
#ifndef MERIDIAN_CAPTURE_CLIENT_RECORD_PRIVATE_H
#define MERIDIAN_CAPTURE_CLIENT_RECORD_PRIVATE_H

#include "capture/client/left_out.h"
#include "capture/client/perfetto.h"
#include "capture/client/report.h"
#include "capture/client/trace_output.h"
#include "capture/ipc/client.h"
#include "schema/service.pb-c.h"

#include <uv.h>

#define CONNECT_GRACE_MS 60000 /* to connect, and beyond the expected duration */
#define DATA_STALL_MS    3000
#define CLONE_TIMEOUT_MS 30000
#define REPORT_DELAY_MS  300 /* a producer that has just begun may still come */

enum task { TASK_RECORD, TASK_ATTACH, TASK_STOP, TASK_DETACH, TASK_IS_DETACHED, TASK_CLONE };

/* What a clone on a trigger has to say about it. */
struct clone_trigger {
    char *name, *producer;
    uint32_t uid;
    uint64_t boot_time_ns, delay_ms;
};

struct recorder {
    uv_loop_t *loop;
    const struct perfetto_options *o;
    enum task task;
    Mrd__TraceConfig *config; /* borrowed; NULL for attach and clone */
    struct ipc_client *client;
    uv_timer_t timeout, stall, status, announce;
    struct report report;
    uv_signal_t signals[2];
    bool has_signals;
    uv_poll_t until;
    bool has_until;
    struct trace_output out;
    bool service_writes; /* write_into_file */
    bool stopping, signalled, reading, done, notified;
    int exit_code;
    uint64_t started_ns, recorded_bytes;
    uint64_t session_id;
    struct left_out left_out;
    struct clone_trigger *trigger;
    struct recorder *parent; /* of a clone on a trigger */
    struct recorder *children;
    struct recorder *next; /* sibling */
    unsigned n_children;
    uv_timer_t delay; /* before connecting: cmd_trace_start_delay; of a clone, the trigger's */
};

enum { OBSERVE_INSTANCES = 1, OBSERVE_ALL_STARTED = 2, OBSERVE_CLONE_TRIGGERS = 4 };

/* ---- record.c ---- */

/* A trigger asked for a copy of the session: on a connection of its own, into a file of its own. */
void record_start_clone(struct recorder *r, const Mrd__ObservableEvents__CloneTriggerHit *hit);

/* ---- record_status.c ---- */

void record_on_status(uv_timer_t *t);

/* Asks the service to tell what happens; a set of OBSERVE_*. */
void record_observe(struct recorder *r, unsigned bits);

/* ---- record_end.c ---- */

/* Calls the service; false: that failed, which has been said. */
bool record_call(struct recorder *r, unsigned method, struct slice args, int fd, ipc_reply_fn fn);
/* Tells whoever started it in the background. */
void record_notify(struct recorder *r, char status);
bool record_on_terminal(const struct recorder *r);
void record_finish(struct recorder *r, int code);
void record_read_trace(struct recorder *r);
/* Flush, stop, read what there is. */
void record_stop(struct recorder *r);
/* The answer to EnableTracing: the session has ended. */
void record_on_disabled(void *ctx, bool success, bool has_more, struct slice reply);
void record_on_timeout(uv_timer_t *t);
void record_on_signal(uv_signal_t *h, int signum);
/* What the recording was made for has ended. */
void record_on_until(uv_poll_t *h, int status, int events);

#endif
