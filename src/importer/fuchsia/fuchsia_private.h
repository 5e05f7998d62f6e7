/* What the two parts of the reader of Fuchsia traces share. */
#ifndef MERIDIAN_IMPORTER_FUCHSIA_FUCHSIA_PRIVATE_H
#define MERIDIAN_IMPORTER_FUCHSIA_FUCHSIA_PRIVATE_H

#include "importer/clock/file_clock.h"
#include "importer/fuchsia/fuchsia.h"
#include "importer/sort/sorter.h"

enum { FXT_WORD = 8 };

/* Types of events, as in their headers; behind them those that come from other records. */
enum fxt_event_type {
    FXT_INSTANT,
    FXT_COUNTER,
    FXT_BEGIN,
    FXT_END,
    FXT_COMPLETE,
    FXT_ASYNC_BEGIN,
    FXT_ASYNC_INSTANT,
    FXT_ASYNC_END,
    FXT_FLOW_BEGIN,
    FXT_FLOW_STEP,
    FXT_FLOW_END,
    FXT_EVENT_TYPES,
    FXT_SWITCH = FXT_EVENT_TYPES,
    FXT_WAKEUP,
    FXT_LOG
};

/* An event until its time comes. Threads are rows of `thread`. */
struct fxt_event {
    uint8_t type;
    uint8_t state; /* FXT_SWITCH: of the thread that leaves */
    uint16_t cpu;
    uint32_t utid, upid; /* FXT_SWITCH: utid leaves, UINT32_MAX when the processor was idle */
    strid category, name;
    argset args;
    union {
        uint64_t id;  /* of asynchronous slices and flows */
        int64_t end;  /* FXT_COMPLETE */
        double value; /* FXT_COUNTER */
        struct {
            uint32_t next; /* FXT_SWITCH: who comes, UINT32_MAX: nobody */
            int32_t priority;
        };
    };
};

struct fxt_thread {
    uint64_t pid, tid;
};

struct fxt_cpu {
    uint32_t row; /* of sched_slice, + 1; 0: nobody is known to run */
    uint32_t utid;
};

struct fxt {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    VEC(struct fxt_event)
    events;
    VEC(struct fxt_cpu)
    cpus;
    struct u64map states;             /* utid -> row of thread_state + 1 */
    struct u64map providers;          /* id -> index + 1 */
    struct u64map strings, thread_of; /* provider << 16 | number -> strid, index in `threads` */
    VEC(struct fxt_thread)
    threads;
    VEC(struct fxt_provider *)
    list;
    struct fxt_provider *now; /* of the records that follow */
};

/* Rows of the events, in the order of time. */
void fxt_parse_events(void *owner, const struct sort_event *events, size_t n);

#endif
