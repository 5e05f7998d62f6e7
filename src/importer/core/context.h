/* What the parts of the importer share: the import as a whole, and one context per machine.
 *
 * Each module keeps its state behind a pointer of its own type, made by its *_open and freed by its *_close; nobody
 * else looks inside. Trackers belong to a machine because pids, cpus and sequences do. */
#ifndef MERIDIAN_IMPORTER_CORE_CONTEXT_H
#define MERIDIAN_IMPORTER_CORE_CONTEXT_H

#include "base/u64map.h"
#include "base/vec.h"
#include "importer/core/clock_id.h"
#include "importer/core/import_options.h"
#include "storage/storage.h"
#include "storage/ucpu.h"

struct seq_generation;

struct machine_ctx {
    struct importer *im;
    struct storage *st; /* == im->st */
    uint32_t id;        /* row of `machine`; 0 is the host */
    uint64_t raw_id;    /* TracePacket.machine_id; 0 for the host; from 2^32 up for machines that a manifest names */
    uint32_t boot;      /* how often it was seen to reboot and keep its id: each boot has a context of its own */

    /* Set once system_info is seen; 0 when unknown. Task-state letters depend on it. */
    uint32_t kernel_major;
    uint32_t kernel_minor;
    strid arch; /* as in `machine` (machine_set_arch()); 0 when unknown */

    uint32_t clock_file; /* file of its clocks in the clock graph: 0, or the trace's that brought it */
    bool keeps_name;     /* a manifest named it, and finds it by that name: SystemInfo does not replace it */
    bool clock_related;  /* its clock was related to the others without a relay: no comparisons are missed */

    uint64_t cpu_seen[CPUS_PER_MACHINE / 64]; /* whose row of `cpu` is visible */

    uint32_t packet_queue;                   /* importer/proto: whole packets, in the sorter */
    struct sequences *sequences;             /* sequence.h */
    struct process_tracker *processes;       /* importer/track */
    struct sched_tracker *sched;             /* importer/track: sched_slice and thread_state */
    struct ftrace_machine *ftrace;           /* importer/ftrace: per-cpu state, generic event descriptors */
    struct track_event_machine *track_event; /* importer/track_event */
    struct system_machine *system;           /* importer/system */
    struct profiling_machine *profiling;     /* importer/profiling */
    struct android_machine *android;         /* importer/android */
    struct winscope_machine *winscope;       /* importer/winscope */
};

/* What a manifest declares about the machines of a trace. */
struct declared_machine {
    uint32_t id; /* as in the trace's packets */
    const char *name;
};
struct declared_trace {
    bool given;
    const char *path;
    const char *machine; /* the whole trace belongs to it; NULL when not given */
    const struct declared_machine *machines;
    size_t n_machines;
};

/* The trace that is being read, when there are several. */
struct trace_input {
    uint32_t serial;       /* counts them; the file of its private clock and its sequences' clocks */
    uint32_t clock_file;   /* of its builtin clocks: 0 when they are the first trace's, else serial */
    uint32_t base_machine; /* row of the machine of packets without machine_id */
    bool private_clock;    /* packets that name no clock are on the trace's private clock */
    bool pinned;           /* the manifest relates it by one clock: it must not bring snapshots */
    bool still_written;    /* the file was open for writing when the import began */
    bool has_ftrace_clock; /* bundles of kernel events that name no clock are in this one, not in BOOTTIME */
    struct clock_id ftrace_clock;
    bool ftrace_rows_only; /* kernel events become rows of ftrace_event, and nothing else */
    struct declared_trace declared;
};

/* The parts that each machine has of its own: opened with it, closed with it. open() cleans nothing up: close() does,
 * whatever has been opened. */
struct machine_parts {
    bool (*open)(struct machine_ctx *m);
    void (*close)(struct machine_ctx *m);
};

struct importer {
    struct storage *st;
    uint16_t logged[STAT_COUNT]; /* rows of trace_import_logs */
    uint64_t secret; /* goes into hashes that stand for what they were made of: no file knows which are equal */
    const struct machine_parts *parts;
    struct trace_input input;
    struct import_options opt;
    struct clock_graph *clocks;          /* importer/clock */
    struct remote_sync *remote;          /* importer/clock: how remote machines' clocks relate to the host's */
    struct recordings *recordings;       /* importer/clock: separate recordings; NULL when none was added */
    struct sorter *sorter;               /* importer/sort */
    struct track_tracker *tracks;        /* importer/track: tracks by type and dimensions, for all machines */
    struct slice_tracker *slices;        /* importer/track: open slices of every track */
    struct flow_tracker *flows;          /* importer/track */
    struct gpu_flows *gpu_flows;         /* importer/track: NULL until something names a stage of a GPU */
    uint64_t input_bytes;                /* of the files that have come, packed as they are */
    uint64_t directory_bytes;            /* of CTF traces in directories */
    struct reader *reader;               /* importer/input: formats, archives, blobs */
    struct trace_dat_files *trace_dat;   /* importer/trace_dat: files of trace-cmd, hosts and guests */
    struct otlp *otlp;                   /* importer/otlp: spans collected so far; NULL when there are none */
    struct perf_folder *perf_folder;     /* importer/perf: files beside a perf.data; NULL when there are none */
    struct bundles_ahead *bundles_ahead; /* importer/ftrace: NULL until there are large bundles */
    struct ctf_import *ctf;              /* importer/ctf: CTF traces collected so far; NULL when there are none */
    VEC(struct machine_ctx *)
    machines;                         /* by machine row */
    struct proto_reader *proto;       /* importer/proto: the trace being read */
    struct protovms *protovms;        /* importer/protovm: programs of the trace being read; NULL when there are none */
    struct content_analysis *content; /* importer/proto: what the bytes are spent on; NULL until asked for */
    struct diagnostics *diagnostics;  /* importer/proto: configs; NULL when there are none */
    struct machine_losses *losses;    /* importer/proto: what its service said about its machines; NULL: nothing */
    VEC(struct seq_generation *)
    generations;                        /* of all sequences: events in the sorter refer to theirs by index */
    struct u64map machine_rows;         /* TracePacket.machine_id -> machine row */
    struct machine_ctx *recent_machine; /* the one that was found there last, by this id; NULL: none */
    uint32_t recent_machine_id;
    struct u64map metadata_rows; /* metadata.c: hash of what a row is found by -> row */
    int bugreport_year;          /* an archive of a bug report is being read: dates of logs are of this year; else 0 */
    int64_t log_zone_ns;         /* how far its local time is ahead of UTC, once that is known */
    uint8_t file_clocks[64];     /* --clock: by format; 0: that of the format */
    uint8_t file_format;         /* of the file that is being read (importer/input/format.h) */
    bool has_idle;               /* some trace is of a kind whose process 0 is the idle one */
    bool has_plain_zero;         /* some trace is not */
    bool has_uuid;               /* the trace, not its bytes, says what its uuid is */
    bool has_trigger;            /* metadata trace_trigger is set */
    bool has_clone_trigger;      /* by the trigger of a clone */
    bool host_seen;              /* the host has sent a packet: machine ids are not adopted any more */
    uint32_t idle_files;         /* files in which thread 0 is the idle one; */
    uint32_t other_files;        /* and in which it is not */
    struct slice snapshot;       /* importer/input: the bytes of a snapshot */
    uint8_t *snapshot_copy;      /* of a snapshot that was not mapped; NULL: none */
    unsigned n_snapshots;        /* … and how many came */
    bool clocks_restored;        /* clocks are those of a snapshot, and so are */
    VEC(uint32_t)
    clock_files;            /* machine_ctx.clock_file, by machine */
    uint32_t trace_file;    /* row of `trace_file` being read */
    uintptr_t stable_first; /* where the mapped file lies: see importer_bytes_stable() */
    size_t stable_len;
    bool failed;   /* memory ran out somewhere; importer_* return -MRD_ENOMEM */
    bool finished; /* all rows are there: what is decoded from now on was asked for, and counts no mistakes */
    struct error
        error; /* the first import error (one that makes the import as a whole fail), reported by importer_finish() */
};

/* True when the bytes at p stay mapped as long as the importer is open, so that a payload need not be copied. Bytes
 * from a pipe or out of compressed data are not stable: they go when everything in their block has been parsed. */
static inline bool importer_bytes_stable(const struct importer *im, const void *p)
{
    return (uintptr_t)p - im->stable_first < im->stable_len;
}

/* How many threads the import may use, this one among them: --threads, or up to 4 of the processors it may run on. */
unsigned importer_threads(const struct importer *im);

/* Notes an error that makes the import fail at its end (the first one is kept); what was imported stays. */
void importer_fail(struct importer *im, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The ucpu of a cpu (storage/ucpu.h); also makes its row of the table cpu visible (its column `cpu` is set). */
uint32_t machine_ucpu(struct machine_ctx *m, uint32_t cpu);

/* Is there room for a cpu of that number? False is counted (cpu_number_too_large). */
bool machine_has_cpu(struct machine_ctx *m, uint64_t cpu);
void machine_set_arch(struct machine_ctx *m, strid arch);

/* The context of a machine by TracePacket.machine_id, made (with all its trackers and its machine row) when new. NULL
 * when out of memory (im->failed) or at 65,535 machines. */
struct machine_ctx *importer_machine(struct importer *im, uint32_t raw_id);
/* The context of a later boot of a machine, made when there is none. */
struct machine_ctx *importer_machine_boot(struct importer *im, struct machine_ctx *m, uint32_t boot);

/* The machine that a manifest calls `name`, made when new. */
struct machine_ctx *importer_named_machine(struct importer *im, const char *name);
/* The same before anything is read: the first one takes row 0, and the host a row behind those that are named. */
struct machine_ctx *importer_first_named_machine(struct importer *im, const char *name);
/* The machine of what names none, made when it was pushed from row 0. */
struct machine_ctx *importer_host(struct importer *im);

/* For importer_close(). */
void machine_close(struct machine_ctx *m);

/* Notes an import problem: adds 1 to the stat (an indexed one: that of the trace) and a row to trace_import_logs (ts
 * may be COL_NULL, byte_offset -1). Of one stat the first IMPORT_LOGS_OF_STAT are noted in rows, all are counted:
 * import_log_has_room() tells whether args are worth making. */
enum { IMPORT_LOGS_OF_STAT = 10000 };
bool import_log_has_room(const struct machine_ctx *m, enum stat_key stat);
void import_log(struct machine_ctx *m, enum stat_key stat, int64_t ts, int64_t byte_offset, argset args);
/* The same with one arg, a number; key NULL: without args. */
void import_log_number(struct machine_ctx *m, enum stat_key stat, int64_t ts, int64_t byte_offset, const char *key,
                       uint64_t value);

static inline strid import_str(struct importer *im, const char *text)
{
    return strpool_intern_str(&im->st->strings, text);
}
/* The string of a field's bytes; NULL (0) for a field that is absent, which is not the empty text. */
static inline strid import_slice(struct importer *im, struct slice s)
{
    return s.p ? strpool_intern(&im->st->strings, s.p, s.len) : 0;
}

#endif
