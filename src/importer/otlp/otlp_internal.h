/* What the parts of the import of OTLP share: the records that the files' bytes become. */
#ifndef MERIDIAN_IMPORTER_OTLP_OTLP_INTERNAL_H
#define MERIDIAN_IMPORTER_OTLP_OTLP_INTERNAL_H

#include "base/arena.h"
#include "importer/clock/file_clock.h"
#include "importer/otlp/otlp.h"
#include "importer/sort/sorter.h"

enum { OTLP_NONE = UINT32_MAX, OTLP_NEVER = 0 /* a time that is not there */ };

/* A span among all: bytes as they are in the file. All zero: none. */
struct otlp_key {
    uint8_t trace[16];
    uint8_t span[8];
};

struct otlp_file {
    struct slice bytes; /* stay as long as the importer */
    struct trace_input input;
    uint32_t trace_file; /* row */
    bool json;
    bool declared; /* a manifest says whose machine all of it is */
};

/* What the attributes of a resource mean. */
enum otlp_fact {
    FACT_SERVICE,
    FACT_NAMESPACE,
    FACT_INSTANCE,
    FACT_HOST_ID,
    FACT_HOST_NAME,
    FACT_NODE,
    FACT_ARCH,
    FACT_OS,
    FACT_OS_TEXT,
    FACT_EXECUTABLE,
    FACT_COMMAND,
    FACT_COMMAND_LINE,
    FACT_CONTAINER,
    FACT_LANGUAGE,
    FACT_PID,
    OTLP_FACTS
};

struct otlp_resource {
    struct slice raw;
    argset args; /* otel.resource.… */
    strid facts[OTLP_FACTS];
    strid command_args; /* joined */
    int64_t pid;        /* 0: not known */
    uint32_t file;
    uint32_t same_hash; /* the next one, OTLP_NONE */
    bool used;          /* a span is of it */
    /* Once placed: */
    struct machine_ctx *m;
    uint32_t clock;   /* index in clocks */
    uint32_t service; /* index in services */
};

struct otlp_scope {
    struct slice raw;
    strid name, version;
    uint32_t resource;
};

/* A process that spans are of: one with a pid, or a service's instance without. */
struct otlp_process {
    struct machine_ctx *m;
    int64_t pid; /* 0: none */
    uint32_t resource;
    uint32_t upid;             /* once its first span has come; UPID_NONE before */
    struct u64map tids, names; /* of threads: index in threads */
};

struct otlp_interval {
    int64_t ts, end; /* end INT64_MAX: never */
    uint32_t span;
};
typedef VEC(struct otlp_interval) otlp_stack;

/* A thread, or what a runtime calls one. */
struct otlp_thread {
    uint32_t process;
    int64_t tid;   /* of the system; 0: a runtime's thread */
    strid name;    /* of the thread; 0: not known */
    uint32_t utid; /* once its first span has come */
    uint32_t track;
    otlp_stack open;
};

/* A track on which spans lie that overlap nothing. */
struct otlp_lane {
    otlp_stack open;
    uint32_t track;
};

struct otlp_busy {
    int64_t end;
    uint32_t lane;
};

struct otlp_service {
    uint32_t process, resource;
    uint32_t root; /* track */
    VEC(struct otlp_lane)
    lanes;
    VEC(struct otlp_busy)
    busy; /* a heap: the lane that is free first is at the top */
    VEC(uint32_t)
    idle; /* a heap: the first lane that is free */
};

struct otlp_span {
    struct otlp_key key;
    uint8_t parent[8]; /* zero: a root */
    int64_t ts, end;   /* of the file until it is placed, then trace time; end OTLP_NEVER: none */
    const uint8_t *raw;
    int64_t tid; /* 0: not known */
    uint32_t raw_len;
    uint32_t scope;
    strid name, thread_name;
    uint32_t first_event, n_events, first_link, n_links;
    uint32_t flags;
    uint32_t parent_span; /* index, OTLP_NONE */
    uint32_t same_hash;   /* the next one in the table of keys */
    uint32_t thread;      /* where it lies: a thread, else a lane of its service */
    uint32_t lane;
    uint32_t slice, track;
    uint32_t row; /* of otel_span */
    uint8_t kind; /* SpanKind */
    uint8_t status;
    bool dropped; /* the same span came before */
    bool second;  /* another span has this key */
};

struct otlp_event {
    const uint8_t *raw;
    uint32_t raw_len;
    uint32_t span;
    int64_t ts;
    strid name;
    uint32_t slice;
};

struct otlp_link {
    const uint8_t *raw;
    uint32_t raw_len;
    uint32_t span;
    struct otlp_key to;
};

/* The wall clock of a machine, as a file has it. */
struct otlp_clock {
    struct machine_ctx *m;
    uint32_t file;
    struct file_clock clock;
};

struct otlp {
    struct importer *im;
    uint32_t queue;           /* of the sorter */
    bool only_otlp;           /* no other recording was loaded */
    uint32_t machines_before; /* how many machines the other recordings have */
    VEC(struct otlp_file)
    files;
    VEC(struct otlp_resource)
    resources;
    VEC(struct otlp_scope)
    scopes;
    VEC(struct otlp_span)
    spans;
    VEC(struct otlp_event)
    events;
    VEC(struct otlp_link)
    links;
    VEC(struct otlp_clock)
    clocks;
    VEC(struct otlp_process)
    processes;
    VEC(struct otlp_thread)
    threads;
    VEC(struct otlp_service)
    services;
    VEC(uint32_t)
    order; /* spans by time */
    VEC(uint8_t *)
    copies;                    /* bytes that would have gone */
    struct u64map by_resource; /* hash of the bytes -> resource + 1 */
    struct u64map by_key;      /* hash of the key -> span */
    struct u64map groups;      /* strid of what makes a process or a service one -> index */
    uint64_t seed;
    VEC(char)
    text; /* for strings with escapes */
};

/* What reads a message: where it is, and what it has found. */
struct otlp_reading {
    struct otlp *o;
    uint32_t file;
    uint32_t resource; /* of the ResourceSpans at hand */
    uint32_t scope;
    uint64_t spans, other_signals; /* read so far */
    uint64_t strangers;            /* in the message at hand: neither spans nor anything that resembles one */
};

/* --- otlp_json.c, otlp_proto.c: reads one message. False when it is damaged or cut: *at is how far it went --- */

bool otlp_json_message(struct otlp_reading *r, struct slice bytes, size_t *used, bool *cut);
bool otlp_proto_message(struct otlp_reading *r, struct slice message);

/* --- otlp_records.c --- */

struct otlp *otlp_of(struct importer *im);

/* Keeps bytes of mem_alloc() as long as the importer. False when they are NULL, or when out of memory: they are freed.
 */
bool otlp_keep(struct otlp *o, uint8_t *copy);
void otlp_count(const struct otlp_reading *r, enum stat_key stat, int64_t n);
/* A resource that begins; it is filled by otlp_resource_end(), and then perhaps turned out to be one that was there.
 * `first_scope`: those from here on are its. */
bool otlp_resource_begin(struct otlp_reading *r);
void otlp_resource_end(struct otlp_reading *r, struct slice raw, uint32_t first_scope);
bool otlp_scope_begin(struct otlp_reading *r);
/* Adds a span with the events and links that were pushed since; it is counted when it cannot be. */
void otlp_span_add(struct otlp_reading *r, struct otlp_span *s, bool bad_id, size_t first_event, size_t first_link);

/* Enters the spans from `first` on into the table of keys, once their resources are complete. */
void otlp_spans_enter(struct otlp_reading *r, size_t first);

/* Whether the bytes of a record are JSON: a message does not begin so. A file of protobuf may have messages of JSON in
 * frames of zstd. */
static inline bool otlp_is_json(struct slice raw)
{
    return raw.len && raw.p[0] == '{';
}

static inline bool otlp_is_zero(const uint8_t *p, size_t n)
{
    uint8_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= p[i];
    return !all;
}
/* The record of a key, OTLP_NONE. */
uint32_t otlp_find(const struct otlp *o, const struct otlp_key *key);

/* --- otlp_args.c, otlp_args_json.c: attributes as args --- */

enum { ARGS_KIND_OTLP = 9 /* aux: index << 2 | enum otlp_args_of */ };
enum otlp_args_of { OTLP_ARGS_SPAN, OTLP_ARGS_EVENT, OTLP_ARGS_LINK, OTLP_ARGS_MAX = 1 << (ARGS_AUX_BITS - 2) };

/* The key of an arg, grown and cut as the walk through nested values goes. */
struct otlp_walk {
    struct importer *im;
    struct arg_list *out;
    VEC(char)
    key;
    VEC(char)
    flat;
    VEC(char)
    text;
    bool failed;
};
bool otlp_key_append(struct otlp_walk *w, struct slice text, bool flat_too);
void otlp_leaf(struct otlp_walk *w, enum arg_type type, int64_t word);
void otlp_leaf_int(struct otlp_walk *w, int64_t v);
void otlp_leaf_bytes(struct otlp_walk *w, struct slice bytes);
enum { OTLP_NESTING = 64 /* of values; what is deeper is left out */ };

void otlp_args_open(struct otlp *o);
argset otlp_args_set(struct otlp *o, enum otlp_args_of of, uint32_t index);
void otlp_args_values(struct otlp *o, enum otlp_args_of of, uint32_t index, struct arg_list *out);
/* Appends the attributes of a list (JSON: the text of an array; else: the fields `id` of a message). */
void otlp_attributes(struct otlp_walk *w, bool json, struct slice list, uint32_t id);
void otlp_json_attributes(struct otlp_walk *w, struct slice array);
void otlp_walk_free(struct otlp_walk *w);

/* What a span, an event or a link says beside its attributes. */
struct otlp_details {
    strid status_message, trace_state;
    uint64_t dropped_attributes, dropped_events, dropped_links;
    struct slice attributes; /* JSON: the array's text */
};
void otlp_json_details(struct otlp *o, struct slice raw, struct otlp_details *d);
void otlp_proto_details(struct otlp *o, enum otlp_args_of of, struct slice raw, struct otlp_details *d);

/* The attributes of a resource or scope, which is the text of an object or a message. */
struct slice otlp_json_member(struct slice object, const char *name);

/* 2n digits for n bytes. */
void otlp_hex(char *to, const uint8_t *p, size_t n);
const char *otlp_kind_name(unsigned kind);
const char *otlp_status_name(unsigned status);

/* --- otlp_machine.c: whose resources they are; otlp_layout.c: where spans lie; otlp_emit.c: slices --- */

void otlp_find_machines(struct otlp *o);
void otlp_find_services(struct otlp *o);
/* The thread of a span, OTLP_NONE. */
uint32_t otlp_thread_of(struct otlp *o, const struct otlp_span *s);
/* Where each span lies, in o->order: by time, what is around it first. */
void otlp_layout(struct otlp *o);
void otlp_parse(void *owner, const struct sort_event *events, size_t n);

#endif
