/* What the files of this folder share: an event, and the state of one file. */
#ifndef MERIDIAN_IMPORTER_JSON_CHROME_JSON_H
#define MERIDIAN_IMPORTER_JSON_CHROME_JSON_H

#include "base/json_reader.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "importer/clock/file_clock.h"
#include "importer/core/context.h"
#include "importer/sort/sorter.h"

enum { ARGS_KIND_JSON = 8 /* args that are the text of an object; see also ftrace.h and track_event/args.c */ };

enum chrome_flag {
    CHROME_HAS_DUR = 0x1,
    CHROME_HAS_TTS = 0x2,
    CHROME_HAS_TDUR = 0x4,
    CHROME_HAS_PID = 0x8,
    CHROME_HAS_TID = 0x10,
    CHROME_HAS_ARGS = 0x20,   /* an object, empty or not */
    CHROME_ARGS_EMPTY = 0x40, /* it says nothing */
    CHROME_ENCLOSING = 0x80,  /* bp: "e" */
    CHROME_FLOW_IN = 0x100,
    CHROME_FLOW_OUT = 0x200,
    CHROME_HAS_IDS = 0x400,  /* one of the ids is there */
    CHROME_HAS_NAME = 0x800, /* in records only */
    CHROME_HAS_CAT = 0x1000, /* in records only */
};

/* An id as it is written: 1 and "1" are two. */
enum chrome_id_kind { CHROME_NO_ID, CHROME_ID_INT, CHROME_ID_TEXT };
struct chrome_id {
    uint8_t kind;
    int64_t value; /* the integer, or the strid of the text */
};

struct chrome_event {
    int64_t ts; /* trace time */
    int64_t dur, tts, tdur;
    uint32_t flags;
    uint32_t thread; /* index into `threads` */
    strid name, cat; /* 0: none */
    char phase;
    char scope; /* s: its first letter, 0: none */
    struct chrome_id id, id2_global, id2_local, bind_id;
    struct slice args; /* the object's text */
};

/* A pid and tid as events name them. */
struct chrome_thread {
    int64_t pid, tid;
    strid pid_name, tid_name; /* 0: they are numbers */
    uint32_t upid, utid;      /* once `known` */
    uint32_t track;           /* of the thread's slices, UINT32_MAX until needed */
    bool known;
};

struct chrome_records; /* chrome_records.c */
struct chrome_async;   /* chrome_async.c */
struct v8_profiles;    /* v8_profile.c */

/* Members of a document that is a V8 CPU profile itself. */
enum v8_part { V8_NODES, V8_SAMPLES, V8_DELTAS, V8_START, V8_PARTS };

/* Where in the document the reader stands. */
enum chrome_place {
    PLACE_START,
    PLACE_ARRAY,  /* the document is an array of events */
    PLACE_OBJECT, /* among the members of the document */
    PLACE_EVENTS, /* in its traceEvents */
    PLACE_DONE,
};

struct chrome {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    int64_t base_ns; /* what times count from on a clock that the user chose */

    /* reading: chrome_file.c */
    enum chrome_place at;
    bool in_object;
    uint64_t n_events;
    uint64_t base_offset;  /* of the buffer's first byte in the file */
    const uint8_t *buffer; /* what is being read */
    const uint8_t *placed; /* `place` is of this byte of the buffer */
    struct json_place place;
    VEC(uint8_t)
    carry;             /* of pieces: what was cut */
    size_t carry_try;  /* bytes from which on another try is worth it */
    struct slice rest; /* of bytes that stay: what was cut */
    bool stable;
    bool final;                /* no more bytes come */
    const uint8_t *file_first; /* of bytes that stay; args lie behind it */
    bool any_error;
    char problem[128]; /* the first one, with its place */

    /* chrome_event.c */
    struct arena kept; /* args of events out of bytes that go */
    struct u64map thread_index;
    VEC(struct chrome_thread)
    threads;
    uint32_t last_thread;
    int64_t max_ts, tie_from; /* see order_of() */
    bool seen_complete;
    VEC(char)
    text; /* a string without escapes */

    struct chrome_records *records;
    struct chrome_async *async;
    uint32_t serial;      /* of the file: 0 for the first */
    struct u64map tracks; /* utid -> track of its slices, where the file has its own */
    struct u64map lanes;  /* chrome_phases.c: utid -> 1 + index into lane_lists */
    VEC(struct chrome_lanes {
        VEC(uint32_t)
        tracks;
    })
    lane_lists;
    argset source_chrome;
    struct v8_profiles *v8;
    struct slice profile[V8_PARTS]; /* of a document that is a profile; in bytes that stay, or in `kept` */
    struct systrace *system;        /* NULL until there is one */
};

/* --- chrome_file.c --- */
/* Notes a problem of the text: json_tokenizer_failure at `to`, with the event's text [from, to). `problem`: NULL when
 * the text is all that is to be said. */
void chrome_text_error(struct chrome *c, const uint8_t *from, const uint8_t *to, const char *problem);
/* The same for another stat. */
void chrome_text_log(struct chrome *c, enum stat_key stat, const uint8_t *from, const uint8_t *to, const char *problem);
/* Notes what an event lacks: adds 1 to the stat, with the event's time, name and phase. */
void chrome_event_error(struct chrome *c, enum stat_key stat, const struct chrome_event *e);
/* The id of a string; unescaped when need be. */
strid chrome_string(struct chrome *c, struct json_text text);

/* --- chrome_event.c --- */
/* Reads the event at r->p, and queues it. False when the text is cut or wrong: see r->status. */
bool chrome_event_read(struct chrome *c, struct json_reader *r);
/* The index of a thread by its numbers. */
uint32_t chrome_thread_index(struct chrome *c, struct chrome_thread t);
/* Microseconds to ns; false when the number is no time. */
bool chrome_time(const struct json_number *n, int64_t *ns);

/* --- chrome_records.c --- */
struct chrome_records *chrome_records_open(void);
void chrome_records_close(struct chrome_records *r);
/* Adds a record; its address, UINT64_MAX when out of memory. `base`: args lie behind it; NULL: they are anywhere. */
uint64_t chrome_record_put(struct chrome_records *r, const struct chrome_event *e, const uint8_t *base);
/* The event of a record (but for ts); it is given up. */
void chrome_record_take(struct chrome_records *r, uint64_t address, const uint8_t *base, struct chrome_event *e);

/* --- chrome_phases.c --- */
void chrome_parse(void *owner, const struct sort_event *events, size_t n);
uint32_t chrome_thread_track(struct chrome *c, struct chrome_thread *t);
/* The thread of an event, made with its process when new. */
struct chrome_thread *chrome_thread_of(struct chrome *c, uint32_t index);
/* Args of tracks: source=chrome. */
argset chrome_source(struct chrome *c);
/* The name of a slice that must have one. */
strid chrome_name(struct chrome *c, const struct chrome_event *e);

/* --- chrome_args.c --- */
/* Whether the text of an object holds any value. */
bool chrome_args_any(struct slice object);
/* Appends the values of an object to *out as "args.…"; `merge`: *out holds those of a slice that they are added to. */
void chrome_args_append(struct importer *im, const char *prefix, struct slice value, bool merge, struct arg_list *out);
/* The set of an event's args, which stays text. */
argset chrome_args_set(struct chrome *c, const struct chrome_event *e);
void chrome_args_open(struct importer *im);
/* The args of an event that ends a slice go to those of the slice. */
void chrome_add_args(struct chrome *c, const struct chrome_event *e, uint32_t slice);

/* --- chrome_async.c --- */
void chrome_async_event(struct chrome *c, struct chrome_event *e);
void chrome_async_close(struct chrome_async *a);

/* --- chrome_flows.c --- */
void chrome_flow(struct chrome *c, struct chrome_event *e);
/* Flows of an event that became a slice. */
void chrome_bind(struct chrome *c, struct chrome_event *e, uint32_t slice);
/* A number in hexadecimal digits, with or without 0x. */
bool chrome_hex(struct slice text, uint64_t *value);

/* --- chrome_args_events.c: events whose args are read --- */
void chrome_counter(struct chrome *c, struct chrome_event *e);
void chrome_metadata_event(struct chrome *c, struct chrome_event *e);
void chrome_thread_state(struct chrome *c, struct chrome_event *e);

/* --- chrome_members.c --- */
/* The member "metadata" of the document. */
void chrome_document_metadata(struct chrome *c, struct slice object);
/* The text of systemTraceEvents. */
void chrome_system_trace(struct chrome *c, struct json_text text);

/* --- v8_profile.c --- */
/* An event of phase P, whose text is [from, to). */
void v8_profile_event(struct chrome *c, const uint8_t *from, const uint8_t *to, const struct chrome_event *e);
/* A document that is one profile (.cpuprofile), by its members; its thread has no number. */
void v8_profile_document(struct chrome *c, const struct slice parts[V8_PARTS]);
/* The queue of samples: behind all others of the file. */
bool v8_profiles_open(struct chrome *c);
void v8_profiles_close(struct v8_profiles *v);

#endif
