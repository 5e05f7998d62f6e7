/* What the files of importer/ftrace share: the state of a machine, an event on its way to a handler, field access. */
#ifndef MERIDIAN_IMPORTER_FTRACE_FTRACE_INTERNAL_H
#define MERIDIAN_IMPORTER_FTRACE_FTRACE_INTERNAL_H

#include "base/by_id.h"
#include "importer/clock/clock_graph.h"
#include "importer/core/kept_args.h"
#include "importer/core/packet.h"
#include "importer/ftrace/bundle_split.h"
#include "importer/ftrace/ftrace.h"
#include "importer/sort/sorter.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"
#include "importer/track/track_tracker.h"
#include "wire/ftrace_events.h"

enum {
    FTRACE_MAX_CPUS = 1024,  /* a bundle of a higher cpu is damage */
    FTRACE_MAX_FIELDS = 64,  /* field numbers above this are not read */
    FTRACE_MAX_EVENT = 1024, /* typed events have lower field numbers */
};

/* Strings that frequent events use. */
#define FTRACE_TEXT_LIST(X)                                                                                            \
    X(CPU, "cpu")                                                                                                      \
    X(HANDLED, "handled")                                                                                              \
    X(HRTIMER, "hrtimer")                                                                                              \
    X(IRQ, "irq")                                                                                                      \
    X(LEN, "len")                                                                                                      \
    X(NAPI_GRO, "napi_gro")                                                                                            \
    X(RET, "ret")                                                                                                      \
    X(UNHANDLED, "unhandled")                                                                                          \
    X(UTID, "utid")                                                                                                    \
    X(VEC, "vec")                                                                                                      \
    X(WORKQUEUE, "workqueue")
enum ftrace_text {
#define X(name, text) TEXT_##name,
    FTRACE_TEXT_LIST(X)
#undef X
        FTRACE_TEXTS
};

/* One event, as its handler sees it. */
struct ftrace_event {
    struct ftrace_machine *f;
    struct machine_ctx *m;
    int64_t ts;
    struct slice payload; /* the message of the event's own type */
    uint32_t id;          /* field number in FtraceEvent */
    uint32_t cpu;
    uint32_t pid;         /* common_pid: the thread that was running */
    uint32_t gen;         /* index of the generation, for interned kernel symbols */
    uint32_t line_thread; /* utid + 1 that a line of text gives for pid; 0: not from text */
    uint32_t line_file;   /* serial of the text's file; 0: the first one, or not from text */
    uint32_t call_args;   /* see ftrace_now */
    argset *known_args;   /* `args` of it */
};

struct ftrace_handler {
    uint32_t id;
    const char *name; /* as in ftrace_events.def; for the reader, and checked by a test */
    void (*fn)(const struct ftrace_event *e);
};

/* The families, each ended by fn NULL. */
extern const struct ftrace_handler ftrace_handlers_binder[], ftrace_handlers_block[], ftrace_handlers_cpu[],
    ftrace_handlers_device[], ftrace_handlers_dma[], ftrace_handlers_drm[], ftrace_handlers_gpu[],
    ftrace_handlers_irq[], ftrace_handlers_mali[], ftrace_handlers_marker[], ftrace_handlers_media[],
    ftrace_handlers_mm[], ftrace_handlers_net[], ftrace_handlers_power[], ftrace_handlers_task[],
    ftrace_handlers_thermal[], ftrace_handlers_trusty[], ftrace_handlers_v4l2[];
extern const struct ftrace_handler *const ftrace_families[]; /* ended by NULL */

/* What is known of each kind of event while it is parsed. */
struct ftrace_kind {
    const struct ftrace_event_desc *desc; /* NULL: no such event */
    void (*handler)(const struct ftrace_event *e);
    strid name; /* interned at first use */
    struct kept_sharing sharing;
    bool no_pid;      /* recorded by the hypervisor: belongs to no thread */
    bool has_symbols; /* a field is a kernel function: decoding needs the generation */
};

/* A thread's name that was met not long ago: by bytes_ends(). */
enum { FTRACE_COMM_BITS = 7, FTRACE_COMM_BYTES = 16 };
struct ftrace_comm {
    uint64_t first, last;
    uint32_t len; /* 0: none yet */
    strid id;
};

/* A thread as the end of a sched_switch names it: name, pid, priority. The same bytes mean the same, whenever they
 * come. */
enum { FTRACE_RUNNER_BITS = 7 };
struct ftrace_runner {
    uint64_t first, last;    /* the name, by bytes_ends() */
    uint64_t next_who;       /* the fields of pid and priority, and zeros behind them */
    uint64_t prev_who, mask; /* the same as the next switch begins with them, and which bits are theirs */
    uint32_t name_len;       /* 0: nobody yet */
    uint32_t who_len;
    int32_t pid, prio;
    strid name;
};

struct ftrace_cpu {
    struct ftrace_machine *f;
    uint32_t cpu;
    uint32_t queue_events; /* queues of the sorter */
    uint32_t queue_switch;
    uint32_t queue_waking;
    bool seen_bundle;
    const struct ftrace_runner *runner;                           /* whom the last switch led to; NULL: not met yet */
    int64_t ucpu;                                                 /* row of cpu, -1 until an event is inserted */
    struct sched_cpu *sched;                                      /* what runs there; NULL until a switch tells */
    uint32_t track_irq, track_softirq, track_hrtimer, track_napi; /* + 1; 0: not made yet */
};

/* An event whose time on the timeline is not when it was recorded. */
struct ftrace_retimed {
    int64_t raw_ts;
    const uint8_t *bytes; /* in the arena */
    uint32_t len;
    uint32_t gen;
};

struct ftrace_machine {
    struct machine_ctx *m;
    struct importer *im;
    VEC(struct ftrace_cpu_slot {
        struct ftrace_cpu *cpu; /* NULL: not met yet */
        uint32_t queues;        /* the first of its three */
    })
    cpus;                          /* by number; grown to the highest seen */
    BY_ID(uint32_t) thread_tracks; /* by utid: track + 1 of the thread's own slices; 0: not made yet */
    struct u64map file_tracks;     /* serial of a file of text and utid -> its track of that thread */
    struct ftrace_kind kinds[FTRACE_MAX_EVENT];
    struct arena arena;

    /* tokenizing */
    int64_t last_clock_snapshot; /* ftrace_timestamp of the last one added; several bundles carry the same */
    VEC(strid)
    comms;                 /* intern tables of all bundles, one behind the other */
    uint32_t split_misses; /* bundles that were split ahead of their turn for nothing, lately */
    VEC(struct ftrace_retimed)
    retimed;
    struct u64map gpu_sync;    /* adreno: timestamp -> index in gpu_sync_points */
    struct u64map gpu_pending; /* adreno: timestamp -> index in gpu_retired */
    VEC(struct gpu_sync_point {
        int64_t ts;
        uint64_t ticks;
    })
    gpu_sync_points;
    VEC(struct gpu_retired {
        struct ftrace_retimed at;
        uint32_t cpu;
        uint64_t start;
    })
    gpu_retired;
    struct u64map setup_errors_seen; /* sequences whose FtraceStats told them */
    bool preserve_buffer;            /* FtraceStats said so: nothing is dropped */

    /* parsing */
    bool seen_event;
    int64_t drop_before;      /* events before are dropped (and counted) */
    int64_t soft_drop_before; /* events before only become rows */
    strid name_switch, name_waking;
    strid text[FTRACE_TEXTS]; /* by enum ftrace_text; interned when the machine is made */
    struct u64map formatted;  /* what was formatted to a name -> that name (see ftrace_formatted()) */

    struct ftrace_comm recent_comms[1 << FTRACE_COMM_BITS];
    struct ftrace_runner runners[1 << FTRACE_RUNNER_BITS];
    struct kept_args kept;

    struct generic_events *generic;   /* generic.c */
    struct syscalls *syscalls;        /* syscalls.c */
    struct pending_counters *pending; /* pending.c */
    struct atrace *atrace;            /* atrace.c */
    struct line_kinds *lines;         /* line_kinds.c: NULL until there is text */
    void *family[16];                 /* state of handler families, by enum ftrace_family; freed by family_free */
    void (*family_free[16])(void *);
};

/* Families that keep state between events. */
enum ftrace_family {
    FAMILY_MM,
    FAMILY_NET,
    FAMILY_POWER,
    FAMILY_GPU,
    FAMILY_DRM,
    FAMILY_MALI,
    FAMILY_DEVICE,
    FAMILY_MEDIA,
    FAMILY_BLOCK,
    FAMILY_V4L2,
    FAMILY_BINDER,
    FAMILY_COUNT
};

/* The zeroed state of a family, made at first use; `release` (may be NULL) frees what it holds, not the state itself.
 * NULL when out of memory. */
void *ftrace_family_state(struct ftrace_machine *f, enum ftrace_family which, size_t size, void (*release)(void *));

/* --- tokenizing -------------------------------------------------------------------------------------------------- */

struct ftrace_cpu *ftrace_make_cpu(struct ftrace_machine *f, uint32_t cpu);
static inline struct ftrace_cpu *ftrace_cpu(struct ftrace_machine *f, uint32_t cpu)
{
    if (__builtin_expect(cpu < f->cpus.n && f->cpus.p[cpu].cpu, 1))
        return f->cpus.p[cpu].cpu;
    return cpu < FTRACE_MAX_CPUS ? ftrace_make_cpu(f, cpu) : NULL;
}
/* True when timestamps of `clock` are trace time as they are, for all of a bundle. */
bool ftrace_clock_is_trace_time(const struct packet *p, struct clock_id clock);
enum tokenize_result ftrace_tokenize_bundle(struct packet *p);
enum tokenize_result ftrace_tokenize_stats(struct packet *p);

/* Deals with the kinds of events that are re-timed; false for all others. `ts` is when it was recorded. */
bool ftrace_retime(struct packet *p, struct ftrace_cpu *c, int64_t ts, uint32_t id, struct slice event);

/* --- parsing ----------------------------------------------------------------------------------------------------- */

void ftrace_parse_events(void *owner, const struct sort_event *events, size_t n);
void ftrace_parse_switches(void *owner, const struct sort_event *events, size_t n);
void ftrace_parse_wakings(void *owner, const struct sort_event *events, size_t n);

/* Adds the ftrace_event row of a typed event. */
void ftrace_add_row(const struct ftrace_event *e, struct ftrace_cpu *c, uint32_t utid, uint32_t common_flags);
void ftrace_add_switch_row(struct ftrace_machine *f, struct ftrace_cpu *c, int64_t ts, const struct sched_prev *prev,
                           int64_t prev_state, int32_t next_pid, int32_t next_prio, strid next_comm);
void ftrace_add_waking_row(struct ftrace_machine *f, struct ftrace_cpu *c, int64_t ts, uint32_t utid, uint32_t pid,
                           uint16_t prio, uint16_t target_cpu, strid comm, uint16_t common_flags);
static inline int64_t ftrace_ucpu(struct ftrace_cpu *c)
{
    if (__builtin_expect(c->ucpu < 0, 0))
        c->ucpu = machine_ucpu(c->f->m, c->cpu);
    return c->ucpu;
}
/* NULL as of sched_tracker_cpu(). */
static inline struct sched_cpu *ftrace_sched_cpu(struct ftrace_cpu *c)
{
    if (__builtin_expect(!c->sched, 0))
        c->sched = sched_tracker_cpu(c->f->m->sched, c->cpu);
    return c->sched;
}
void ftrace_args_init(struct ftrace_machine *f);

/* sched_switch and sched_waking with all their fields (handlers_sched.c). */
void ftrace_sched_switch(const struct ftrace_event *e, struct ftrace_cpu *c);
void ftrace_sched_waking(const struct ftrace_event *e);

/* Events described in the trace itself (generic.c). */
struct generic_events *generic_events_open(struct ftrace_machine *f);
void generic_events_close(struct generic_events *g);
void generic_events_add_descriptor(struct generic_events *g, uint32_t id, struct slice descriptor);
/* Row (if `row`) and, if `parse`, kernel track events. */
void generic_events_parse(struct generic_events *g, const struct ftrace_event *e, struct ftrace_cpu *c, bool row,
                          bool parse, uint32_t common_flags);
/* The old form: names and values in the event itself. */
void generic_events_parse_legacy(const struct ftrace_event *e, struct ftrace_cpu *c, uint32_t common_flags);

/* --- what handlers use ------------------------------------------------------------------------------------------- */

/* The fields of a message by number; the last occurrence of each. */
struct fields {
    uint64_t has; /* bit n: field n is there */
    uint64_t u[FTRACE_MAX_FIELDS];
    const uint8_t *p[FTRACE_MAX_FIELDS]; /* NULL unless length-delimited; u is the length then */
};

void fields_read(struct slice message, struct fields *f);

static inline bool field_has(const struct fields *f, unsigned n)
{
    return f->has >> n & 1;
}
static inline uint64_t field_u64(const struct fields *f, unsigned n)
{
    return field_has(f, n) && !f->p[n] ? f->u[n] : 0;
}
static inline int64_t field_i64(const struct fields *f, unsigned n)
{
    return (int64_t)field_u64(f, n);
}
static inline uint32_t field_u32(const struct fields *f, unsigned n)
{
    return (uint32_t)field_u64(f, n);
}
static inline int32_t field_i32(const struct fields *f, unsigned n)
{
    return (int32_t)field_u64(f, n);
}
static inline struct slice field_bytes(const struct fields *f, unsigned n)
{
    return field_has(f, n) && f->p[n] ? slice_of(f->p[n], (size_t)f->u[n]) : slice_of("", 0);
}
/* 0 when the event does not say it: then nothing is known, which is not the same as an empty text. */
static inline strid field_str(const struct ftrace_event *e, const struct fields *f, unsigned n)
{
    return field_has(f, n) ? import_slice(e->m->im, field_bytes(f, n)) : 0;
}

/* The thread that was running, made when new. */
static inline uint32_t event_utid(const struct ftrace_event *e)
{
    return e->line_thread ? e->line_thread - 1 : process_tracker_thread(e->m->processes, (int32_t)e->pid);
}

/* The track of a thread's own slices. */
uint32_t ftrace_make_thread_track(const struct ftrace_event *e, uint32_t utid); /* not met yet, or of a file of text */
static inline uint32_t ftrace_thread_track(const struct ftrace_event *e, uint32_t utid)
{
    const uint32_t *known = e->line_file ? NULL : by_id_find(&e->f->thread_tracks, utid);
    return __builtin_expect(known && *known, 1) ? *known - 1 : ftrace_make_thread_track(e, utid);
}
/* The name of a kernel function by its interned id, 0 when unknown. */
strid ftrace_symbol_of(const struct importer *im, uint32_t gen, uint64_t iid);
/* The same, or "0x…" of the number. */
strid ftrace_kernel_symbol(const struct ftrace_event *e, uint64_t iid);
/* What was made of a number or string before in the way `how` (a small number of the caller's own kind); *slot is 0
 * when it is new. NULL when out of memory. */
enum ftrace_formatted { FORMATTED_SYMBOL = 1, FORMATTED_IRQ };
uint64_t *ftrace_formatted(const struct ftrace_event *e, enum ftrace_formatted how, uint64_t what);
/* printf to an interned string. */
strid ftrace_name(const struct ftrace_event *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline strid ftrace_text(const struct ftrace_event *e, const char *text)
{
    return import_str(e->m->im, text);
}

/* A counter sample with args (0: none). */
void ftrace_counter_args(const struct ftrace_event *e, int64_t ts, uint32_t track, double value, argset args);
static inline void ftrace_counter(const struct ftrace_event *e, uint32_t track, double value)
{
    counter_push(e->m->im, e->ts, track, value);
}

/* Short forms for a track without or with a few dimensions. */
#define DIM_I(k, v)                                                                                                    \
    {                                                                                                                  \
        .key = (k), .kind = DIM_INT, .value = (int64_t)(v)                                                             \
    }
#define DIM_S(k, v)                                                                                                    \
    {                                                                                                                  \
        .key = (k), .kind = DIM_STR, .value = (int64_t)(v)                                                             \
    }
uint32_t ftrace_track(const struct ftrace_event *e, enum track_kind event_type, const char *type, strid name,
                      const struct track_dim *dims, uint32_t n_dims);
#define FTRACE_TRACK(e, event_type, type, name, ...)                                                                   \
    ftrace_track((e), (event_type), (type), (name), (const struct track_dim[]){__VA_ARGS__},                           \
                 sizeof((const struct track_dim[]){__VA_ARGS__}) / sizeof(struct track_dim))

/* A set of tracks for asynchronous slices. */
uint32_t ftrace_track_set(const struct ftrace_event *e, const char *type, strid name, const struct track_dim *dims,
                          uint32_t n_dims);

/* Slices on a track. `category` and `name` may be 0. */
static inline uint32_t ftrace_begin(const struct ftrace_event *e, uint32_t track, strid category, strid name,
                                    argset args)
{
    return slice_begin(e->m->im->slices, e->m->id, e->ts, track, category, name, args);
}
static inline uint32_t ftrace_end(const struct ftrace_event *e, uint32_t track, strid category, strid name,
                                  const struct arg_list *add)
{
    return slice_end(e->m->im->slices, e->m->id, e->ts, track, category, name, add);
}
static inline uint32_t ftrace_instant(const struct ftrace_event *e, uint32_t track, strid category, strid name,
                                      argset args)
{
    return slice_scoped(e->m->im->slices, e->m->id, e->ts, track, category, name, 0, args);
}

/* A few args built on the stack. */
struct small_args {
    struct arg items[20];
    uint32_t n;
};
void small_args_add(const struct ftrace_event *e, struct small_args *a, const char *key, enum arg_type type,
                    int64_t word);
/* The same with a key of ftrace_machine.text. */
static inline void small_args_put(struct small_args *a, strid key, enum arg_type type, int64_t word)
{
    if (a->n < sizeof a->items / sizeof *a->items)
        a->items[a->n++] = (struct arg){key, key, word, (uint8_t)type};
}
static inline argset small_args_set(const struct ftrace_event *e, const struct small_args *a)
{
    return args_intern(&e->m->st->args, a->items, a->n);
}
static inline struct arg_list small_args_list(struct small_args *a)
{
    return (struct arg_list){.p = a->items, .n = a->n, .cap = 0};
}

/* Counters of the process of a thread, whose track is found once the process is known (pending.c). */
enum pending_kind { PENDING_OOM_SCORE_ADJ, PENDING_MEMORY, PENDING_MM_EVENT };
struct pending_counters *pending_counters_open(struct ftrace_machine *f);
void pending_counters_close(struct pending_counters *p);
void pending_counters_resolve(struct pending_counters *p);
/* key: of memory ("rss.anon"), or of the mm_event type; metric: of mm_event; literals. */
void pending_counter(const struct ftrace_event *e, uint32_t utid, enum pending_kind kind, const char *key,
                     const char *metric, double value);

/* Events as text (line_kinds.c). */
void line_kinds_close(struct line_kinds *k);

/* Syscall slices (syscalls.c). */
struct syscalls *syscalls_open(struct ftrace_machine *f);
void syscalls_finish(struct syscalls *s);
void syscalls_close(struct syscalls *s);
/* Of the args of a thread's calls; NULL when out of memory. */
struct kept_sharing *syscalls_sharing(struct syscalls *s, uint32_t utid);
void syscalls_enter(const struct ftrace_event *e);
void syscalls_exit(const struct ftrace_event *e);
/* An atrace marker is written by write(2): the slice of the call ends where the marker's begins. */
void syscalls_truncate_write(const struct ftrace_event *e, uint32_t utid);

/* Systrace markers (atrace.c). */
struct atrace *atrace_open(struct ftrace_machine *f);
void atrace_close(struct atrace *a);
void atrace_parse_line(const struct ftrace_event *e, struct slice line);
struct atrace_point {
    char phase;
    uint32_t tgid;
    struct slice name;
    struct slice track; /* N, G, H */
    int64_t value;      /* counter value or cookie */
};
void atrace_point(const struct ftrace_event *e, const struct atrace_point *p);
/* A kernel event that mimics a marker; `type` 0: `begin` decides between B and E. */
void atrace_kernel_mark(const struct ftrace_event *e, char type, bool begin, struct slice name, uint32_t tgid,
                        int64_t value);

#endif
