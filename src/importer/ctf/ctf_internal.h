/* What the files of the CTF import share. */
#ifndef MERIDIAN_IMPORTER_CTF_CTF_INTERNAL_H
#define MERIDIAN_IMPORTER_CTF_CTF_INTERNAL_H

#include "importer/core/kept_args.h"
#include "importer/ctf/ctf_import.h"

struct ctf_import;

struct ctf_class_use;

/* A parsed event on its way into tables. */
struct ctf_row {
    struct ctf_import *import;
    struct machine_ctx *m;
    struct ctf_class_use *use;
    int64_t ts; /* trace time */
    uint32_t cpu;
    uint32_t utid; /* whose event it is */
    const uint8_t *packet;
    uint64_t fields_at;   /* bits from there; packet is NULL when the event is not all there */
    struct slice payload; /* bytes of the fields; empty when they do not begin at a byte */
    const ctf_items *fields;
    const ctf_items *context;
    uint32_t track; /* of the slices of its thread; UINT32_MAX: it makes none */
    strid slice;    /* what they are called */
    argset args;    /* of the event */
};

enum { CTF_HANDLER_FIELDS = 10, CTF_SHORT_TEXT = 16 };

/* A row of the table of LTTng events that mean more than a row of ftrace_event. */
struct lttng_handler {
    const char *event; /* a name, or the beginning of names when `prefix` */
    void (*handle)(const struct ctf_row *e);
    const char *fields[CTF_HANDLER_FIELDS]; /* that it asks for, by their place here: ctf_row_int(), ctf_row_text() */
    bool prefix;
    bool of_thread;     /* slices of the thread, called by what follows the prefix */
    bool items;         /* it looks among the event's items for itself */
    const char *unless; /* nothing to do where this event was recorded as well, which tells the same */
};
/* NULL for other events. */
const struct lttng_handler *lttng_handler_of(const char *event_name);
/* What the thread's slices are called; 0: nothing says. */
strid lttng_slice_name(struct importer *im, const struct lttng_handler *h, const char *event_name);

/* What an event of user space becomes beside a row of ftrace_event. Events whose names pair are slices of their thread
 * (`x_entry` and `x_exit`, `x_begin` and `x_end`, calls of -finstrument-functions), others instants; what the tracer
 * says of itself is neither. */
enum ust_kind { UST_NONE, UST_BEGIN, UST_END, UST_INSTANT };

/* Finds out for a class of a trace; sets use->ust and use->slice_name. */
void ust_choose(struct importer *im, struct ctf_class_use *use);
void ust_handle(const struct ctf_row *e, const struct ctf_class_use *use);
/* The thread of an event by its contexts vtid, vpid and procname; UTID_NONE without them. */
uint32_t ust_thread(const struct ctf_row *e);

/* ust_logs.c: a line of a log. */
void ust_log(const struct ctf_row *e);

/* ust_programs.c: the files that a process has mapped, as rows of stack_profile_mapping; its name. */
void ust_program(const struct ctf_row *e);
void ust_build_id(const struct ctf_row *e);
void ust_process_name(const struct ctf_row *e);

#define CTF_NO_MAPPING UINT32_MAX
struct ctf_program {
    uint64_t process; /* machine << 32 | upid */
    int64_t address;
    uint32_t row; /* of stack_profile_mapping; CTF_NO_MAPPING: it was not told */
};
struct ctf_programs {
    struct u64map by_place; /* hash of process and address -> index of the list */
    VEC(struct ctf_program)
    list;
};
struct ctf_programs *ctf_programs(struct ctf_import *c);
void ctf_programs_free(struct ctf_programs *p);

/* Where a field lies in all payloads of a class: `type` NULL: there is none. */
struct ctf_place {
    const struct ctf_type *type;
    uint32_t bit;  /* from where the payload is aligned */
    uint8_t plain; /* a number of so many bits, 32 or 64, in whole bytes of the host's order; 0: another type */
};

/* ctf_clocks.c: relates the clocks of a host, as one of its traces has them; the one that its events show, which may be
 * the trace time. */
struct clock_id ctf_add_clocks(struct importer *im, uint32_t machine, const struct ctf_trace *trace,
                               bool is_trace_time);

/* Per event class of a trace. */
struct ctf_class_use {
    const struct ctf_event_class *class;
    const struct ctf_trace *trace;
    const struct ctf_packet_layout *packet;
    const struct lttng_handler *handler;
    const struct ftrace_event_desc *ftrace; /* means the same; NULL: `handler`, or nothing, does */
    strid name;
    strid slice_name;   /* of its thread; 0: it makes none, or nothing names them */
    bool thread_slices; /* it begins or ends some */
    uint8_t ust;        /* enum ust_kind */
    bool reads_fields;  /* when it is parsed; else their bytes become args, and that is all */
    bool user_space;
    uint64_t field_bits; /* what its fields take; 0: that differs */
    uint32_t id;         /* in ctf_import.classes: aux of the args decoder */
    bool on_demand;      /* fields can be decoded later from their bytes alone */
    bool placed;         /* the handler's fields lie at `places`; else they are among the items */
    struct ctf_place places[CTF_HANDLER_FIELDS];
    struct kept_sharing sharing, call_sharing; /* of the events' args, and of the slices' */
};

/* Finds the fields that use->handler asks for. */
void ctf_place_fields(struct ctf_class_use *use);
/* A field of the handler, by its place in the handler's list: false and 0 when there is no such. */
bool ctf_row_int(const struct ctf_row *e, unsigned field, int64_t *value);
strid ctf_row_text(const struct ctf_row *e, unsigned field);

/* A text of 16 bytes that was seen lately; id 0: none yet. */
struct ctf_known_text {
    uint64_t words[2];
    strid id;
};
struct ctf_known_text *ctf_known_text(struct ctf_import *c, const uint64_t words[2]);

/* lttng_ftrace.c: events that ftrace's handlers understand. */
struct ftrace_event_desc;
void lttng_choose_ftrace(struct ctf_class_use *use);
void lttng_handle_as_ftrace(const struct ctf_row *e);
struct pb_writer;
struct pb_writer *ctf_message(struct ctf_import *c); /* to be cleared before it is used */

/* A system call that has not returned. */
struct ctf_call {
    uint32_t slice; /* row + 1; 0: none */
    uint32_t class_id;
    struct slice payload; /* of its entry */
};
/* The call of a thread; NULL when out of memory. */
struct ctf_call *ctf_call_of(struct ctf_import *c, uint32_t utid);
void lttng_call_begin(const struct ctf_row *e);
void lttng_call_end(const struct ctf_row *e);
void lttng_decode_call(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out);

/* True when the fields of a class mean the same wherever they stand: byte-aligned, and nothing in them refers outside.
 */
bool ctf_fields_position_free(struct ctf_metadata *m, const struct ctf_event_class *class);

/* The arg set of an event: `payload` are the bytes of its fields; empty when they do not begin at a byte. */
argset ctf_args(struct ctf_import *c, struct ctf_class_use *use, struct slice payload, const ctf_items *fields);

/* Appends items as args: structs and lists by dotted and indexed keys. */
void ctf_items_to_args(struct args *a, const ctf_items *items, struct arg_list *out);

/* args_decode_fn; ctx is the import. */
void ctf_decode_args(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out);

struct ctf_class_use *ctf_class_by_id(struct ctf_import *c, uint32_t id);
struct importer *ctf_importer(struct ctf_import *c);
struct kept_args *ctf_kept_args(struct ctf_import *c);

#endif
