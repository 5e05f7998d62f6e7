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

/* ---- values.c ---- */

/* What writes records has numbers of its own for strings and threads. */
struct fxt_provider {
    uint64_t ticks_per_second;
    uint32_t index; /* in fxt.list */
};

enum value_kind {
    VALUE_NULL,
    VALUE_I32,
    VALUE_U32,
    VALUE_I64,
    VALUE_U64,
    VALUE_DOUBLE,
    VALUE_STRING,
    VALUE_POINTER,
    VALUE_KOID,
    VALUE_BOOL
};

/* An argument. */
struct fxt_value {
    strid name;   /* of the argument */
    uint8_t kind; /* enum value_kind */
    union {
        int64_t i;
        uint64_t u;
        double d;
        strid text;
    };
};

enum { FXT_MAX_ARGS = 15 };

struct fxt_values {
    struct fxt_value p[FXT_MAX_ARGS];
    uint32_t n;
};

/* The words of a record behind its header. Reading beyond them latches `cut`. */
struct fxt_words {
    const uint8_t *p;
    size_t n;
    bool cut;
};

uint64_t fxt_word_at(const uint8_t *p);
uint64_t fxt_next_word(struct fxt_words *w);
/* `len` bytes, padded to whole words. */
struct slice fxt_next_bytes(struct fxt_words *w, size_t len);
uint32_t fxt_bits(uint64_t word, int from, int n);
void fxt_count(struct fxt *f, enum stat_key stat);
/* Of a string or thread of the provider at hand, in the maps of `fxt`. */
uint64_t fxt_key_of(const struct fxt *f, uint32_t number);
/* By its number, or from the words of the record; 0: nothing has told it (counted). */
strid fxt_string_of(struct fxt *f, uint32_t ref, struct fxt_words *w);
/* As above; false: nothing has told it. */
bool fxt_thread_of(struct fxt *f, uint32_t ref, struct fxt_words *w, struct fxt_thread *out);
/* Arguments; those without a name, or of types that are not known, are counted and left out. */
void fxt_read_values(struct fxt *f, struct fxt_words *w, uint32_t n, struct fxt_values *out);
argset fxt_keep_args(struct fxt *f, const struct fxt_values *all);
/* False: it is no number. */
bool fxt_number_of(const struct fxt_value *a, double *out);
/* By its name; NULL: there is none. */
const struct fxt_value *fxt_find_value(const struct fxt *f, const struct fxt_values *all, const char *name);

/* ---- events.c ---- */

/* Rows of the events, in the order of time. */
void fxt_parse_events(void *owner, const struct sort_event *events, size_t n);

#endif
