/* What the files of this folder share: the state of a machine, and the handlers named in the table of profiling.c. */
#ifndef MERIDIAN_IMPORTER_PROFILING_PROFILING_INTERNAL_H
#define MERIDIAN_IMPORTER_PROFILING_PROFILING_INTERNAL_H

#include "base/by_id.h"
#include "importer/core/packet.h"
#include "importer/profiling/profiling.h"
#include "importer/profiling/samples.h"
#include "importer/profiling/stack_profile.h"
#include "importer/track/process_tracker.h"

#include "base/u64map.h"
#include "base/vec.h"

/* Lists of rows, each under a key. */
struct row_lists {
    struct u64map heads; /* key -> one of `links` + 1 */
    VEC(struct row_link {
        uint32_t row;
        uint32_t next; /* one of `links` + 1, 0: the last */
    })
    links;
};

struct heap_dumps;
struct heap_graphs;
struct jit;
struct v8;
struct memory_snapshots;

/* Contexts that samples stood in lately. */
enum { RECENT_CONTEXTS = 256 };
struct recent_task {
    int64_t async_context;
    uint32_t utid, upid;
    uint32_t row_plus_one; /* 0: none yet */
};
struct recent_execution {
    int64_t ucpu;
    strid mode;
    uint32_t row_plus_one;
};

/* A sequence of samples whose writer says how far it is. */
struct perf_run {
    uint32_t session; /* row of profiler_session */
    int64_t began, whole_until;
    bool ended;
};

/* A callsite that was looked for not long ago. */
struct known_callsite {
    uint64_t key;          /* of its parent and frame */
    uint32_t row_plus_one; /* 0: none yet */
};
enum { KNOWN_CALLSITES = 2048 };

/* A callsite in the list of those that its parent has called. Numbers are rows + 1, 0: none. */
struct callsite_links {
    uint32_t frame, next;
    uint32_t called; /* the newest of its own list */
};

struct profiling_machine {
    struct machine_ctx *m;
    uint64_t secret;    /* goes into hashes that stand for what they were made of: no file knows which are equal */
    struct arena arena; /* copies of bytes that do not stay */

    /* stack_profile.c: hash of a row's key -> row */
    struct u64map mappings, frames, callsites;
    BY_ID(struct callsite_links)
    callsite_links;                                         /* by row */
    struct known_callsite known_callsites[KNOWN_CALLSITES]; /* by a hash of the key */
    struct row_lists at_address;                            /* hash of file, build id and rel_pc: frames, but for */
    VEC(uint32_t)
    frame_rows;             /* those that came since somebody asked */
    struct u64map interned; /* hash of interned table, kind, iid -> row */
    uint64_t read_again;    /* bytes of stacks that were read for further processes */

    /* samples.c */
    struct u64map sessions;   /* sequence -> row of profiler_session */
    struct u64map tasks;      /* upid, utid, async context -> row of profiler_task_context */
    struct u64map executions; /* cpu, mode -> row of profiler_execution_context */
    struct recent_task recent_tasks[RECENT_CONTEXTS];
    struct recent_execution recent_executions[RECENT_CONTEXTS];
    struct u64map async; /* interned table, iid -> row of profiler_async_context */

    /* What samples have in common, read once: nothing bounds how many name it, or how long it is. */
    struct u64map sampling;                    /* perf_sample.c: generation -> struct sampling * */
    struct u64map cpu_tracks;                  /* perf_sample.c: session, cpu -> struct cpu_tracks * */
    struct u64map stack_defaults;              /* stack_sample.c: generation -> struct sample_defaults * */
    struct u64map tasks_read, executions_read; /* stack_sample.c: an interned message's address -> what it says */
    struct u64map counters_read;

    uint32_t sample_queue; /* in the sorter: samples with times of their own; UINT32_MAX until needed */

    struct heap_dumps *dumps;        /* heap_profile.c; NULL until needed */
    struct heap_graphs *graphs;      /* heap_graph.c; NULL until needed */
    struct jit *jit;                 /* jit.c; NULL while no process is known to make code as it runs */
    struct v8 *v8;                   /* v8_interned.c; NULL until needed */
    struct memory_snapshots *memory; /* memory_snapshot.c; NULL until needed */

    /* perf_progress.c */
    VEC(struct perf_run)
    perf_runs;
    struct u64map perf_run_of; /* session → place in perf_runs */

    /* deobfuscation.c */
    VEC(struct slice)
    obfuscation_maps;          /* DeobfuscationMapping messages */
    struct u64map packages;    /* strid of a name -> nothing */
    struct u64map uid_package; /* uid -> strid of the first package told */
};

/* Bytes of a packet that may be looked at until the end of the import. Empty when out of memory (im->failed). */
struct slice profiling_keep(struct profiling_machine *s, struct slice bytes);

/* The row of `t` whose first n_key columns hold `words`, appended when there is none; `salt` tells apart rows that
 * differ in what no column says. *added may be NULL. UINT32_MAX when out of memory (im->failed). */
uint32_t row_intern(struct profiling_machine *s, struct u64map *index, struct table *t, const int64_t *words,
                    uint32_t n_key, uint64_t salt, bool *added);

/* --- stack_profile.c --- */
/* Calls `each` for the frames at an address of the files with this name and build id; for the newest ones only, should
 * there be more of them than any file has. */
void stack_profile_frames_at(struct machine_ctx *m, strid path, strid build_id, int64_t rel_pc,
                             void (*each)(void *ctx, uint32_t frame), void *ctx);

/* A frame that lies in code made while the program ran: two pieces of code have frames of their own, whatever their
 * addresses. *added tells whether it is new. */
uint32_t stack_profile_frame_of_code(struct machine_ctx *m, const struct stack_profile_frame_row *r, uint32_t code,
                                     int64_t symbol_set, bool *added);

/* --- stack_messages.c --- */
/* Messages that a ProfilePacket brings itself instead of interning them; see stack_messages.c. */
struct own_messages {
    struct u64map index; /* field << 56 ^ iid -> one of `messages` + 1 */
    VEC(struct slice)
    messages;
    struct u64map rows; /* what the messages were found to be, see remember() */
    bool later;         /* not the first dump of the sequence */
};
/* Makes the rows of what a packet explains itself, whoever uses it; its messages are in `own` already. */
void stack_messages_read_own(struct machine_ctx *m, struct slice profile_packet, struct own_messages *own);
/* A message of three fields, whatever its name: 1 the function, 2 its file, 3 the line. */
struct source_line source_line_read(struct machine_ctx *m, struct slice message);
uint32_t stack_messages_callsite(struct machine_ctx *m, struct seq_generation *g, uint32_t upid,
                                 struct own_messages *own, uint64_t callstack_iid);

/* --- samples.c: samples.h, and --- */
/* The session of a sequence, made when new. */
uint32_t sample_session(struct profiling_machine *s, const struct sequence *seq, strid source, strid unit);

/* --- java_names.c --- */
/* A method as Java prints it, "int a.B.c(long)", without its result and parameters. */
struct slice java_method_name(struct slice printed);
/* The package that a file belongs to by its path, 0 when the path does not tell. *bad is set when it should. */
strid package_of_path(struct machine_ctx *m, struct slice path, bool *bad);
/* A class without the wrapping of arrays and class objects: "java.lang.Class<a[]>" is "a". */
struct slice java_bare_class(struct slice name);

void heap_profile_parse(struct packet *p);
void heap_profile_finish(struct profiling_machine *s);
void heap_profile_close(struct heap_dumps *d);
void heap_graph_parse(struct packet *p);
void heap_graph_finish(struct profiling_machine *s);
void heap_graph_close(struct heap_graphs *all);
uint32_t heap_graph_row(struct profiling_machine *s, int64_t ts, uint32_t upid);
void perf_sample_parse(struct packet *p);
/* The session that a packet of linux.perf belongs to: its row. -1: out of memory. */
int64_t perf_sample_session(struct packet *p);
void perf_progress_parse(struct packet *p);
void perf_progress_finish(struct profiling_machine *s);
void stack_sample_parse(struct packet *p);
void smaps_parse(struct packet *p);
void packages_list_parse(struct packet *p);
void package_add(struct profiling_machine *s, strid name, int64_t uid, bool debuggable, bool profileable,
                 int64_t version);
void art_process_metadata_parse(struct packet *p);
void module_symbols_parse(struct packet *p);
void v8_js_code_parse(struct packet *p);
void v8_internal_code_parse(struct packet *p);
void v8_wasm_code_parse(struct packet *p);
void v8_reg_exp_code_parse(struct packet *p);
void v8_code_move_parse(struct packet *p);
void v8_close(struct v8 *v);
void memory_snapshot_parse(struct packet *p);
void memory_snapshots_finish(struct profiling_machine *s);
void memory_snapshots_close(struct memory_snapshots *x);
enum tokenize_result deobfuscation_tokenize(struct packet *p);
void deobfuscation_finish(struct profiling_machine *s);

#endif
