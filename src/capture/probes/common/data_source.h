/* What a data source is to the producer, and what the producer is to a data source.
 *
 * A data source is a table of functions; each tracing session that asks for it makes an instance. Everything runs on
 * the one loop of the producer. */
#ifndef MERIDIAN_CAPTURE_PROBES_COMMON_DATA_SOURCE_H
#define MERIDIAN_CAPTURE_PROBES_COMMON_DATA_SOURCE_H

#include "base/error.h"
#include "kernel/bundle.h"
#include "kernel/packet_sink.h"

#include <stdint.h>
#include <uv.h>

struct ftrace_source;
struct metatrace;
struct perf_shared;
struct heap_hub;

struct probes_host {
    uv_loop_t *loop;
    void (*log)(void *ctx, const char *text); /* one line for the user, without a newline */
    /* Threads that ftrace of a tracing session has met for the first time. */
    void (*new_tids)(void *ctx, uint64_t session_id, const int32_t *tids, size_t n);
    /* A thread's name has changed or the thread has ended: what is known about it is old. */
    void (*stale_tids)(void *ctx, uint64_t session_id, const int32_t *tids, size_t n);
    /* Files that events of a tracing session name by device and inode. */
    void (*new_inodes)(void *ctx, uint64_t session_id, const struct inode_key *inodes, size_t n);
    void *ctx;
    struct ftrace_source *ftrace; /* what all ftrace sessions share */
    struct perf_shared *perf;     /* what all sessions of linux.perf share */
    struct heap_hub *heap;        /* the processes that android.heapprofd may sample */
    struct metatrace *metatrace;  /* may be NULL */
    const char *sysroot;          /* in front of /proc and /sys in sys_stats, system_info and sysfs_power; NULL: "" */
};

/* The parts of DataSourceConfig that data sources need; views into bytes that last for setup() only. */
struct data_source_config {
    uint64_t session_id;   /* tracing_session_id */
    uint32_t duration_ms;  /* trace_duration_ms */
    struct slice bytes;    /* the whole DataSourceConfig */
    struct slice specific; /* the field of the data source, empty when it is absent */
};

struct data_source_type {
    const char *name;
    uint32_t config_field;          /* of DataSourceConfig, for `specific`; 0: none */
    bool handles_incremental_clear; /* announced to the service: clear_incremental() is called */
    /* Makes an instance; it must not write yet. `sink` is copied. */
    int (*setup)(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err);
    int (*start)(void *state, struct error *err);
    /* After start(): tells what of the config cannot be recorded, one text each; may be NULL. */
    void (*tell_incomplete)(void *state, void (*tell)(void *ctx, const char *text), void *ctx);
    void (*flush)(void *state); /* may be NULL: everything is in the sink already */
    uint64_t (*whole_until)(
        void *state); /* BOOTTIME: what happened before is in the sink. 0: unknown; NULL: always all */
    void (*clear_incremental)(void *state);                       /* may be NULL */
    void (*stop)(void *state);                                    /* writes what is left; may be NULL */
    void (*free)(void *state);                                    /* after stop(), or instead of start() */
    void (*new_tids)(void *state, const int32_t *tids, size_t n); /* may be NULL: see probes_host */
    void (*stale_tids)(void *state, const int32_t *tids, size_t n);
    void (*new_inodes)(void *state, const struct inode_key *inodes, size_t n); /* may be NULL */
};

/* The data source types of traced_probes, NULL-terminated. */
extern const struct data_source_type *const data_source_types[];

extern const struct data_source_type ftrace_data_source;
extern const struct data_source_type frozen_ftrace_data_source;
extern const struct data_source_type process_stats_data_source;
extern const struct data_source_type sys_stats_data_source;
extern const struct data_source_type system_info_data_source;
extern const struct data_source_type inode_file_map_data_source;
extern const struct data_source_type journald_data_source;
extern const struct data_source_type metatrace_data_source;
extern const struct data_source_type sysfs_power_data_source;

/* CLOCK_BOOTTIME in nanoseconds: the timestamp of packets. */
uint64_t probes_boot_ns(void);

/* Milliseconds until the wall clock is next at a multiple of `period_ms`: ticks of all data sources and machines fall
 * together. */
uint64_t probes_until_tick(uint32_t period_ms);

/* A timer that is not running yet, with `data` for its callback. NULL: out of memory. */
uv_timer_t *probes_timer_new(uv_loop_t *loop, void *data);
/* Stops and frees it, once the loop has turned; NULL is fine. */
void probes_timer_free(uv_timer_t *timer);

/* Starts the timer for the next tick. The loop's time is brought up to date first: after work that took long the timer
 * would be counted from before it, and tick twice. */
void probes_arm_tick(uv_timer_t *timer, uv_timer_cb fn, uint32_t period_ms);

#endif
