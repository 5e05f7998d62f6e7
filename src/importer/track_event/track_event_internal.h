/* What the files of this folder share: state of a machine, a sequence, a generation; descriptors of tracks; events on
 * their way from tokenizing to parsing. */
#ifndef MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_INTERNAL_H
#define MERIDIAN_IMPORTER_TRACK_EVENT_TRACK_EVENT_INTERNAL_H

#include "base/u64map.h"
#include "importer/clock/clock_graph.h"
#include "importer/core/metadata.h"
#include "importer/core/packet.h"
#include "importer/sort/sorter.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_compressor.h"
#include "importer/track_event/message_schema.h"
#include "importer/track_event/track_event.h"
#include "wire/fields.h"

enum {
    MAX_EXTRA_COUNTERS = 8,
    MAX_HIERARCHY = 100, /* a track and its parents are fewer */
    TRACKS_RECENT = 64,
};

enum track_scope { SCOPE_GLOBAL, SCOPE_PROCESS, SCOPE_THREAD };
enum track_use { USE_SLICES, USE_COUNTER, USE_STATE };
enum merge_by { MERGE_BY_NAME, MERGE_NONE, MERGE_BY_KEY }; /* in this order: dimensions of tracks say the number */
enum counter_kind { COUNTER_PLAIN, COUNTER_THREAD_TIME, COUNTER_THREAD_INSTRUCTIONS };

/* A track as TrackDescriptors tell of it, known by uuid. */
struct track_event_track {
    uint64_t uuid;
    uint64_t parent_uuid;
    strid name;
    strid description;
    bool described; /* a descriptor has come; else made for an event that names an unknown uuid */
    bool has_pid, has_tid;
    bool sandboxed; /* its tid is one of its process alone */
    int64_t pid, tid;
    uint32_t trusted_pid; /* of the process that described it, as the service saw it */
    bool own_track;       /* disallow_merging_with_system_tracks */
    uint8_t use;          /* enum track_use */
    uint8_t merge;        /* enum merge_by */
    strid merge_key;      /* a number as "sibling_merge_key_int:N" */
    uint8_t child_ordering;
    bool has_rank;
    int32_t rank;
    /* counters */
    uint8_t counter; /* enum counter_kind */
    bool incremental;
    int64_t multiplier;
    strid unit, category, share_key;
    /* resolved on first use */
    bool resolved;
    uint32_t unsound_at;   /* its parents did not lead to the top when there were so many changes, + 1; 0: they may */
    enum stat_key unsound; /* why */
    uint8_t scope;         /* enum track_scope */
    strid named;           /* the name its row got */
    struct track_event_track *parent_track;
    uint32_t utid, upid;
    uint32_t row;       /* of `track`; UINT32_MAX until made, or for tracks of a set */
    uint32_t set;       /* of the track compressor, TRACK_SET_NONE */
    uint32_t state_row; /* the open state, + 1 */
};

enum track_event_hash_kind { HASH_HISTOGRAM, HASH_USER_EVENT, HASH_MARK_SITE, HASH_MARK, HASH_STUDY, N_HASH_KINDS };

/* Names that the trace gives for hashes, obfuscated names and addresses; one set of tables for the whole import. */
struct track_event_translations {
    struct u64map hashes[N_HASH_KINDS]; /* hash -> strid */
    struct u64map slice_names;          /* strid -> strid */
    struct u64map track_names;
    struct u64map functions; /* hash of (build id, address) -> strid */
    struct u64map classes;   /* strid -> strid */
};

/* What a sequence's thread descriptor says, for events that name no track. */
struct track_event_sequence {
    bool has_thread;
    bool times_valid; /* since the thread descriptor, unless `losses` moved on */
    bool broken;      /* a time ran over: the deltas after it mean nothing */
    uint32_t epoch;   /* clears of the sequence's state before this: each has its own track_event_sequence */
    uint32_t serial;  /* unique on its machine */
    uint32_t losses;
    int64_t pid, tid;
    int64_t ts_ns, thread_ts_ns, thread_instructions;
};

/* TrackEventDefaults of a generation. */
struct track_event_defaults {
    bool has_track;
    uint64_t track_uuid;
    uint32_t n_extra, n_extra_double;
    uint64_t extra[MAX_EXTRA_COUNTERS], extra_double[MAX_EXTRA_COUNTERS];
};

struct track_event_generation { /* seq_generation.track_event */
    struct track_event_sequence *sequence;
    bool defaults_read;
    struct track_event_defaults defaults;
};

struct track_event_counter_value {
    struct track_event_track *track;
    double value;
};

/* An event that needs more than its bytes: what tokenizing worked out in file order. From a free list. */
struct track_event_extra {
    struct track_event_extra *next_free;
    const uint8_t *bytes;
    uint32_t len;
    uint32_t generation;
    int64_t thread_ts, thread_instructions; /* COL_NULL when absent */
    double counter_value;
    uint32_t n_counters;
    struct track_event_counter_value counters[MAX_EXTRA_COUNTERS];
};

struct track_event_machine {
    struct machine_ctx *m;
    uint64_t secret; /* goes into hashes that stand for what they were made of: no file knows which are equal */
    uint32_t queue;  /* in the sorter, UINT32_MAX until the first event */
    struct arena arena;
    struct u64map tracks;                            /* uuid -> struct track_event_track * */
    uint32_t track_changes;                          /* tracks made and described: what may mend a hierarchy */
    struct track_event_track *recent[TRACKS_RECENT]; /* looked up last, by uuid: writers take turns */
    struct track_event_extra *free_extras;
    uint32_t n_sequences;       /* that got a serial */
    struct u64map running;      /* (serial of a sequence, uuid) -> bits of an incremental counter's latest value */
    bool from_first_packet;     /* the event that is parsed comes from a sequence whose beginning was recorded */
    struct u64map uuid_of_utid; /* the descriptor that claimed a thread or a process: a second one means reuse */
    struct u64map uuid_of_upid;
    struct schema *schema;                         /* of the host's machine; NULL on others */
    struct track_event_translations *translations; /* likewise */
    bool has_range;                                /* events before range_start may be cropped */
    int64_t range_start;
    struct u64map legacy_async;                /* (id, scope, process) -> set of tracks + 1 */
    struct u64map legacy_names;                /* (id, process) -> name of the first event */
    strid message;                             /* "perfetto.protos.TrackEvent" */
    bool process_ordering, thread_ordering;    /* ranks of processes and threads count */
    struct chrome_processes *chrome_processes; /* chrome_processes.c; NULL until needed */
    struct u64map android_processes;           /* upid -> row of android_track_event_process */
    struct arg_list args;                      /* scratch */
    /* Whether payloads repeat: when they do not, looking for equal ones is given up. */
    uint32_t share_tried, share_hit;
};

/* Texts with a character between them; what is past the room is left out. */
struct joined_text {
    size_t n;
    char text[4096];
};

static inline void joined_text_add(struct joined_text *j, char between, struct slice s)
{
    if (j->n && j->n < sizeof j->text)
        j->text[j->n++] = between;
    size_t take = s.len < sizeof j->text - j->n ? s.len : sizeof j->text - j->n;
    if (take)
        memcpy(j->text + j->n, s.p, take);
    j->n += take;
}

/* NULL when nothing was added. */
static inline strid joined_text_intern(struct strpool *strings, const struct joined_text *j)
{
    return j->n ? strpool_intern(strings, j->text, j->n) : 0;
}

/* --- sequences.c --- */
/* Adds the numbers of a field, packed or single, to the *n that were told before: all are counted, the first
 * MAX_EXTRA_COUNTERS kept. */
void track_event_add_uuids(const struct pb_field *f, uint64_t *uuids, uint32_t *n);
bool track_event_says_sequence(const struct packet *p);
static inline bool track_event_has_sequence(const struct packet *p) /* it names its sequence */
{
    return p->gen->seq->id || track_event_says_sequence(p); /* 0 is a number as well, if it is said */
}
struct track_event_generation *track_event_new_generation(struct track_event_machine *t, struct seq_generation *g);
/* NULL when out of memory. */
static inline struct track_event_generation *track_event_generation(struct track_event_machine *t,
                                                                    struct seq_generation *g)
{
    return g->track_event ? g->track_event : track_event_new_generation(t, g);
}
struct track_event_sequence *track_event_sequence(struct packet *p);
const struct track_event_defaults *track_event_read_defaults(struct track_event_machine *t, struct seq_generation *g);
static inline const struct track_event_defaults *track_event_defaults(struct track_event_machine *t,
                                                                      struct seq_generation *g)
{
    const struct track_event_generation *own = g->track_event;
    return own && own->defaults_read ? &own->defaults : track_event_read_defaults(t, g);
}
bool track_event_times_valid(const struct track_event_sequence *s, const struct sequence *seq);
/* Adds a delta in microseconds to *ns; false when that runs over (then the sequence is broken). */
bool track_event_advance(struct track_event_sequence *s, int64_t *ns, int64_t delta, int64_t unit);
void track_event_set_thread_descriptor(struct packet *p, struct slice thread, bool sandboxed);

/* Threads in a sandbox have numbers of their own: those of two processes are not to be mixed up. */
static inline int64_t track_event_sandboxed_tid(int64_t pid, int64_t tid)
{
    return (int64_t)((uint64_t)pid << 32 | (uint32_t)tid);
}

static inline bool track_event_is_sandboxed_tid(int64_t tid)
{
    return (uint64_t)tid > UINT32_MAX;
}
/* MONOTONIC to trace time; the value itself where no clock relates the two. */
int64_t track_event_monotonic(struct packet *p, int64_t ns);

/* --- descriptors.c, tracks.c --- */
struct track_event_track *track_event_track_look_up(struct track_event_machine *t, uint64_t uuid);
static inline struct track_event_track **track_event_track_recent(struct track_event_machine *t, uint64_t uuid)
{
    return &t->recent[(uuid * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (TRACKS_RECENT - 1)];
}
/* NULL when there is none. */
static inline struct track_event_track *track_event_track_find(struct track_event_machine *t, uint64_t uuid)
{
    struct track_event_track *recent = *track_event_track_recent(t, uuid);
    return recent && recent->uuid == uuid ? recent : track_event_track_look_up(t, uuid);
}
/* Made when new; NULL: out of memory. */
struct track_event_track *track_event_track_make(struct track_event_machine *t, uint64_t uuid);
static inline struct track_event_track *track_event_track_get(struct track_event_machine *t, uint64_t uuid)
{
    struct track_event_track *k = track_event_track_find(t, uuid);
    return k ? k : track_event_track_make(t, uuid);
}
/* Counts what is wrong with a track, and notes its uuid under `key` in the log. */
void track_event_track_error(struct track_event_machine *t, enum stat_key stat, const char *key, uint64_t uuid);
/* Gives the track its thread, process and parent; false, and counted, when its parents do not lead to the top (yet).
 * event_name: for tracks without a name. */
bool track_event_track_try_resolve(struct track_event_machine *t, struct track_event_track *k, strid event_name);
static inline bool track_event_track_resolve(struct track_event_machine *t, struct track_event_track *k,
                                             strid event_name)
{
    return k->resolved || track_event_track_try_resolve(t, k, event_name);
}
enum track_event_moment { AT_BEGIN, AT_END, AT_INSTANT };
/* The row of `track` for a slice of a resolved track. */
uint32_t track_event_track_make_row(struct track_event_machine *t, struct track_event_track *k,
                                    enum track_event_moment moment);
static inline uint32_t track_event_track_row(struct track_event_machine *t, struct track_event_track *k,
                                             enum track_event_moment moment)
{
    bool known = k->row != UINT32_MAX && k->set == TRACK_SET_NONE;
    return known ? k->row : track_event_track_make_row(t, k, moment);
}
/* The row that stands for the track itself: counters, states, parents. */
uint32_t track_event_track_own_row(struct track_event_machine *t, struct track_event_track *k);
/* Its name may have changed. */
void track_event_track_renamed(struct track_event_machine *t, struct track_event_track *k);
enum tokenize_result track_event_tokenize_descriptor(struct packet *p);
void track_event_parse_descriptor(struct packet *p);
enum tokenize_result track_event_tokenize_thread_descriptor(struct packet *p);
void track_event_parse_thread_descriptor(struct packet *p);
void track_event_parse_process_descriptor(struct packet *p);
const char *track_event_chrome_thread_name(int32_t type);
const char *track_event_chrome_process_name(int32_t type);

/* --- tokenize.c, event.c --- */
enum tokenize_result track_event_tokenize_event(struct packet *p);
enum tokenize_result track_event_tokenize_streaming_profile(struct packet *p);
/* Adds the event's packet to the analysis of the trace's bytes, when there is one. */
void track_event_analyze(struct packet *p);
void track_event_parse_events(void *owner, const struct sort_event *events, size_t n);

/* --- android_processes.c --- */
/* An event that tells of the start or the death of a process. */
void track_event_android_process(struct track_event_machine *t, int64_t ts, struct slice event);

/* --- chrome_processes.c --- */
/* A process described itself at `ts`. */
void track_event_process_described(struct track_event_machine *t, int64_t ts, uint32_t upid);
/* An event that may list processes. */
void track_event_processes_listed(struct track_event_machine *t, int64_t ts, struct slice event);
/* Fills the table of processes that lost data. */
void track_event_processes_finish(struct track_event_machine *t);
void track_event_processes_close(struct chrome_processes *c);

/* --- args.c --- */
/* What an event has beside its bytes that becomes args. */
struct track_event_marks {
    uint32_t utid;   /* of the thread that the event was written on when its track is not that thread's; UTID_NONE */
    char phase;      /* legacy_event.phase, 0: not told */
    bool has_source; /* of a legacy asynchronous event */
    bool no_log;     /* its log message is left out: it is on no thread */
    int64_t source_id;
};
/* What a key says of where its value stands: in annotations of that name, or in none at all. */
struct track_event_wanted {
    bool debug;
    struct slice name; /* as it stands in keys */
};
/* Appends the args of an event's bytes to a list that may have some already (arrays go on where those end). `marks`
 * (may be NULL): whose source id comes between what the event's fields say. `only`: NULL, or which fields. */
void track_event_append_args(struct importer *im, struct seq_generation *g, struct slice event,
                             const struct track_event_marks *marks, const struct track_event_wanted *only,
                             struct arg_list *list);
void track_event_append_source(struct args *args, const struct track_event_marks *m, struct arg_list *list);
/* True for fields of TrackEvent that become args. */
bool track_event_field_has_args(uint32_t field);

/* --- event_sets.c --- */
/* The arg set of an event, 0 when it has none. `has_args`: its bytes hold any. */
argset track_event_event_args(struct track_event_machine *t, struct seq_generation *g, struct slice event,
                              bool has_args, const struct track_event_marks *marks);
/* Announces the decoders. */
void track_event_args_open(struct importer *im);

/* --- translation.c --- */
struct track_event_translations *
track_event_translations(const struct importer *im); /* NULL while there is no machine */
struct track_event_translations *track_event_translations_open(void);
void track_event_translations_close(struct track_event_translations *t);
enum tokenize_result track_event_tokenize_translation(struct packet *p);
strid track_event_translate_track_name(const struct importer *im, strid name);
/* The name of a hash, 0 when it is not in the trace's tables. */
strid track_event_hash_name(const struct importer *im, enum track_event_hash_kind kind, uint64_t hash);
void track_event_parse_chrome_trigger(struct packet *p);

/* --- symbols.c --- */
enum tokenize_result track_event_tokenize_module_symbols(struct packet *p);
enum tokenize_result track_event_tokenize_deobfuscation(struct packet *p);
/* The function at an interned location, the class behind an obfuscated name; 0 when the trace does not tell. */
strid track_event_function_name(const struct importer *im, struct seq_generation *g, uint64_t location_iid);
strid track_event_class_name(const struct importer *im, strid obfuscated);

#endif
