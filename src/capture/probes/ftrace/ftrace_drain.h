/* Instances in use: who uses them, and when their buffers are read. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_DRAIN_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_DRAIN_H

#include "capture/probes/ftrace/ftrace_source.h"
#include "capture/probes/ftrace/ftrace_stats.h"

struct ftrace_source;

/* An instance in use, with its timer and, for watermarks, one poll a cpu. */
struct drained_instance {
    struct ftrace_instance in;
    struct ftrace_source *source;
    const struct probes_host *host;
    uv_timer_t timer;
    uv_poll_t **polls; /* [n_polls] one a cpu while readers are open, where the kernel can poll; entries may be NULL */
    uint32_t n_polls;
    uint32_t users;
    uint32_t period_ms;
    uint64_t drained_ns; /* BOOTTIME when the last drain began that read all there was */
};

struct ftrace_source {
    char *tracefs_root, *run_directory;
    enum ring_mode mode;
    uint32_t next_dynamic_id;
    struct kernel_symbols symbols;
    uint32_t symbol_users;
    bool retain_symbols; /* a session has asked to keep them for the next one */
    VEC(struct drained_instance *)
    instances;
};

struct ftrace_session {
    const struct probes_host *host;
    struct ftrace_source *source;
    struct drained_instance *instance;
    struct ftrace_config config;
    struct event_selection selection;
    struct packet_sink sink;
    struct symbol_output symbols;
    struct tid_tracker tids;
    struct inode_tracker inodes;
    struct ftrace_bundle *bundle;
    uint64_t *previous_end;       /* [n_cpus] */
    struct pb_writer start_stats; /* the START packet, sent again with each flush */
    uint64_t session_id;
    uint64_t records, lost, pages;
    bool started, symbolizing;
    struct error refused; /* why there is no instance, told in the trace when the session starts */
    bool refused_by_others;
};

/* The instance of that name, opened when nobody uses it yet. */
int instance_get(struct ftrace_source *source, const struct probes_host *host, const struct ftrace_config *config,
                 const char *name, struct drained_instance **out, struct error *err);
void instance_release(struct drained_instance *d);

/* Reads what is in the buffers now, but not for ever what a busy machine adds meanwhile. */
void instance_drain(struct drained_instance *d);

/* Has the kernel tell when buffers are as full as the config says. */
int instance_start_polls(struct drained_instance *d, const struct probes_host *host, struct error *err);
void instance_stop_polls(struct drained_instance *d);

/* To be called when sessions have started or stopped: the timer ticks as the most impatient of them wants. */
void instance_set_period(struct drained_instance *d);

#endif
