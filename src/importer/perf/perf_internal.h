/* What the files of this folder share: one file while it is imported. */
#ifndef MERIDIAN_IMPORTER_PERF_PERF_INTERNAL_H
#define MERIDIAN_IMPORTER_PERF_PERF_INTERNAL_H

#include "importer/clock/file_clock.h"
#include "importer/perf/perf_file.h"
#include "importer/perf/perf_import.h"
#include "importer/perf/perf_maps.h"
#include "importer/profiling/sample_writer.h"
#include "importer/profiling/samples.h"
#include "importer/sort/sorter.h"
#include "kernel/bundle.h"

enum {
    PERF_MODES = 6,
    PERF_KNOWN_FRAMES = 16384,
    PERF_KNOWN_STACKS = 1024,
    PERF_KNOWN_COUNTERS = 256,
    PERF_KNOWN_CPUS = 64,
    PERF_KNOWN_SAMPLES = 1024
};

/* What a sample or the trailer of another record says of where and when. */
struct perf_where {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu;
    bool has_tid, has_time, has_cpu;
};

/* A SAMPLE, decoded. Views are in the byte order of the file. What it has not is any number. */
struct perf_sample_record {
    struct perf_where where;
    uint64_t ip, period;
    bool has_ip, has_period;
    struct slice read;      /* of READ, whole */
    struct slice callchain; /* n × u64 */
    struct slice raw;
    struct slice regs; /* of user space, n × u64 */
    uint64_t regs_abi; /* 0: there are none */
    struct slice stack;
    uint64_t cgroup;
    bool has_cgroup;
};

/* What an event has counted on a CPU. */
struct perf_counter {
    double total;
    uint32_t track;
};

/* A counter that was looked for: its place in `counters` + 1, 0: none yet. */
struct perf_known_counter {
    uint64_t key;
    uint32_t counter;
};

/* A call chain that was looked for: its bytes stay. Stale as frames are. */
struct perf_known_stack {
    struct slice chain;
    uint64_t hash;
    uint32_t pid, version, callsite, dummies; /* dummies: frames in no known file */
    uint8_t mode;
};

/* Code that the kernel made (of BPF programs, trampolines). Its mapping is made when a stack goes through it. */
struct perf_symbol {
    strid name;
    uint64_t start, end;
    uint32_t mapping; /* UINT32_MAX: none yet */
};

/* A sample whose stack in user space is told later. */
struct perf_deferred {
    uint32_t sample; /* row of profiler_sample */
    struct slice chain;
    uint8_t mode;
    uint32_t next; /* with the same cookie and thread, index + 1; 0: last */
};

/* A sample of an event, a thread, a CPU, a mode and an address as one before: nothing has to be looked up. Stale when
 * threads or maps have changed since. */
struct perf_sample_key {
    uint64_t ip, pid_tid, attr_mode_cpu;
    uint64_t epoch; /* how often threads or maps had changed */
};
struct perf_known_sample {
    struct perf_sample_key key;
    uint32_t tid, utid;
    uint32_t counter; /* its place in `counters` + 1; 0: there is nothing known */
    uint32_t dummies; /* 1: its address is in no known file */
    struct sample_known_place at;
};

/* A kernel's event that came with a sample. */
struct perf_kernel_sample {
    struct slice raw;
    int64_t ts;
    uint32_t cpu, tid, utid;
};

/* A frame that was looked for. Stale when other files lie there since (`version`). */
struct perf_known_frame {
    uint64_t ip;
    uint32_t pid, version, frame;
    uint8_t mode;
    bool dummy; /* in no known file */
};

/* A record that waits for the first time of the file. */
struct perf_waiting {
    const uint8_t *record;
    uint32_t attr;
};

/* Events on their way to the sorter: those of the last rounds. */
struct perf_window {
    VEC(struct sort_event)
    events;
    VEC(struct sort_event)
    room;                   /* for sorting */
    int64_t max, round_max; /* the latest so far, and up to the end of the round before */
};

struct perf_import {
    struct importer *im;
    struct machine_ctx *m;
    struct perf_file file;
    uint8_t *copy; /* of a file whose bytes do not stay */
    struct file_clock clock;
    uint32_t queue, early_queue; /* early: records that say what was there when recording began */
    struct perf_window window;
    VEC(struct perf_waiting)
    early; /* those, until the first time is known */
    uint64_t first_time;
    struct u64map counter_of;                                      /* attr, cpu -> one of `counters` */
    struct perf_known_counter known_counters[PERF_KNOWN_COUNTERS]; /* by a hash of attr and cpu */
    VEC(struct perf_counter)
    counters;
    struct sample_writer *samples;
    bool events_in_packets;                           /* of some attr: PERF_EVENT_IN_PACKETS */
    strid source, nothing, modes[PERF_MODES];         /* texts that samples have in common */
    uint32_t executions[PERF_KNOWN_CPUS][PERF_MODES]; /* where they ran: sample_execution() + 1; 0: not asked for yet */
    strid cpu_model;                                  /* 0: not told */
    uint32_t first_session;                           /* row of profiler_session of the first attr */
    struct perf_spaces spaces;
    struct perf_known_frame known_frames[PERF_KNOWN_FRAMES];    /* by a hash of their address */
    struct perf_known_stack known_stacks[PERF_KNOWN_STACKS];    /* by a hash of the chain */
    struct perf_known_sample known_samples[PERF_KNOWN_SAMPLES]; /* by a hash of all that they have in common */
    const uint32_t *threads_epoch;                              /* process_tracker_epoch() */
    uint32_t maps_epoch;                                        /* records so far that may change where things lie */
    VEC(struct perf_symbol)
    symbols;
    struct u64map cgroups;   /* id -> strid of its path */
    struct u64map cgroup_of; /* pid -> id of the group that its process was last seen in */
    struct u64map by_cookie; /* hash of thread and cookie -> first of `deferred` that waits, + 1 */
    VEC(struct perf_deferred)
    deferred;
    bool has_kernel_map;
    bool has_switches;                    /* a tracepoint tells them */
    struct perf_tracepoints *tracepoints; /* NULL: none in the file */
    struct perf_unwinder *unwinder;       /* NULL: stacks are not unwound (perf_unwind.h) */
};

/* The parts of other lengths. */
bool perf_sample_read_more(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                           struct perf_sample_record *s);

/* Twice in the code, for each byte order: asking once, not for each part, takes 0.99 of the time of tracepoints. */
static inline __attribute__((always_inline)) bool perf_sample_read_as(const struct perf_file *f,
                                                                      const struct perf_attr *a,
                                                                      const struct perf_record *r,
                                                                      struct perf_sample_record *s, bool big)
{
    const struct perf_layout *l = &a->layout;
    const uint8_t *p = r->bytes.p;
    if (r->bytes.len < l->sample.size)
        return false;
    *s = (struct perf_sample_record){.where = {.pid = perf_half_word(p + l->sample.tid, big),
                                               .tid = perf_half_word(p + l->sample.tid + 4, big),
                                               .time = perf_word(p + l->sample.time, big),
                                               .cpu = perf_half_word(p + l->sample.cpu, big),
                                               .has_tid = l->sample.tid,
                                               .has_time = l->sample.time,
                                               .has_cpu = l->sample.cpu},
                                     .ip = perf_word(p + l->sample.ip, big),
                                     .period = perf_word(p + l->sample.period, big),
                                     .has_ip = l->sample.ip,
                                     .has_period = l->sample.period};
    if (l->more == PERF_RAW_MORE && r->bytes.len - l->sample.size >= sizeof(uint32_t)) {
        s->raw = slice_of(p + l->sample.size + sizeof(uint32_t), perf_half_word(p + l->sample.size, big));
        return s->raw.len <= r->bytes.len - l->sample.size - sizeof(uint32_t);
    }
    return l->more == PERF_NOTHING_MORE || perf_sample_read_more(f, a, r, s);
}

/* The fields of a sample. False when it is not all there. A part that the attr does not ask for is at 0, where the
 * record has a header: it is loaded all the same, which costs less than asking. */
static inline bool perf_sample_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                                    struct perf_sample_record *s)
{
    return f->big ? perf_sample_read_as(f, a, r, s, true) : perf_sample_read_as(f, a, r, s, false);
}
/* The trailer of another record; where the attr has none, the time that the record itself holds, if it does. */
void perf_trailer_read(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                       struct perf_where *w);
/* The time of a sample. False when it has none. */
static inline bool perf_sample_time(const struct perf_file *f, const struct perf_attr *a, const struct perf_record *r,
                                    uint64_t *time)
{
    const struct perf_layout *l = &a->layout;
    if (r->bytes.len < l->sample.size || !l->sample.time)
        return false;
    *time = perf_load64(f, r->bytes.p + l->sample.time);
    return true;
}

/* Where a record keeps the id of its event, from its begin; 0: it has none. All attrs agree on it. */
static inline size_t perf_id_at(const struct perf_file *f, const struct perf_record *r)
{
    enum { HEADER = 8, WORD = 8 };
    const struct perf_layout *l = &f->attrs.p->layout;
    size_t n = r->bytes.len, at = l->sample.id;
    if (r->type != PERF_RECORD_SAMPLE)
        at = l->trailer.id && l->trailer.id <= n ? n - l->trailer.id : 0;
    return at < HEADER || n < WORD || at > n - WORD ? 0 : at;
}

/* The attr with an id, NULL when there is no such. */
const struct perf_attr *perf_attr_by_id(struct perf_file *f, uint64_t id);

/* The attr of a record, NULL when there is no such. */
static inline const struct perf_attr *perf_attr_of(struct perf_file *f, const struct perf_record *r)
{
    if (f->attrs.n <= 1)
        return f->attrs.n ? f->attrs.p : NULL;
    if (r->type != PERF_RECORD_SAMPLE && !perf_flag(f->attrs.p, PERF_FLAG_SAMPLE_ID_ALL))
        return f->attrs.p;
    size_t at = perf_id_at(f, r);
    if (!at)
        return NULL;
    uint64_t id = perf_load64(f, r->bytes.p + at);
    size_t slot = id % PERF_KNOWN_IDS;
    return f->known_ids[slot].attr && f->known_ids[slot].id == id ? f->known_ids[slot].attr : perf_attr_by_id(f, id);
}

/* perf_queue.c: brings records into the order of time. perf_queue_take() is called once for each record in the order of
 * the file, perf_queue_end() when there are no more. */
void perf_queue_open(struct perf_import *p);
void perf_queue_take(struct perf_import *p, const struct perf_record *r);
/* Takes the samples that come next in the file as long as nothing is special about them, for less than it costs to take
 * each by itself. */
void perf_queue_take_plain(struct perf_import *p);
void perf_queue_end(struct perf_import *p);
void perf_queue_close(struct perf_import *p); /* also where reading has failed; twice is fine */

/* perf_sample.c: in time order. */
int perf_samples_open(struct perf_import *p); /* -MRD_ENOMEM */
/* perf_stack.c: the callsite of a sample, and of those whose stack in user space came later. */
struct perf_stack {
    uint32_t callsite; /* CALLSITE_NONE: none */
    strid unwind_error;
    uint32_t dummies; /* frames in no known file */
};
struct perf_stack perf_stack_of(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s,
                                const uint8_t *record, unsigned mode);
void perf_defer(struct perf_import *p, const struct perf_sample_record *s, unsigned mode, uint32_t sample);
void perf_deferred_chain(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts);
/* Parses events until one is no sample; how many there were before that. */
size_t perf_parse_samples(struct perf_import *p, const struct sort_event *events, size_t n);
/* perf_tasks.c: the others; false when this type is not one of them. */
bool perf_parse_record(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r, int64_t ts);

/* perf_tracepoints.c: kernel events in the samples. Most go into their tables when their sample does
 * (perf_tracepoints.h); some kinds go through packets, which they have to in the order of the file. */
int perf_tracepoints_open(struct perf_import *p);
void perf_tracepoints_take(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r);
void perf_tracepoints_end(struct perf_import *p);
void perf_tracepoints_close(struct perf_tracepoints *t);
/* The function that lies at an address of the kernel, NULL when the file does not tell. */
const char *perf_kernel_symbol(const struct perf_import *p, uint64_t address);

#endif
