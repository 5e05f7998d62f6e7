/* Programs that turn one kernel event into protobuf: compiled once from a format file, run for every event.
 *
 * A program is a list of steps {where in the event, how wide, which field of the message}; nothing is looked up by name
 * at run time. Three sorts: typed (a row of wire/ftrace_events.def matches), generic (field numbers 1.. in the order
 * of the format file, described by a descriptor in the bundle), and kprobes (a constant message). */
#ifndef MERIDIAN_KERNEL_EVENT_PROGRAM_H
#define MERIDIAN_KERNEL_EVENT_PROGRAM_H

#include "base/arena.h"
#include "kernel/format_file.h"
#include "kernel/symbols.h"
#include "wire/ftrace_events.h"

enum step_code {
    STEP_U8,
    STEP_U16,
    STEP_U32,
    STEP_U64,
    STEP_S8, /* the signed ones are widened to 64 bits, as protobuf wants them */
    STEP_S16,
    STEP_S32,
    STEP_S64,
    STEP_DEV,       /* kernel dev_t (12 + 20 bits) to the C library's */
    STEP_ADDRESS32, /* kernel pointer → number of address_table */
    STEP_ADDRESS,
    STEP_CHARS,     /* char[n], ends at NUL */
    STEP_BYTES,     /* n bytes as they are */
    STEP_LOC_CHARS, /* __data_loc: u32 of offset | length << 16 */
    STEP_LOC_BYTES,
    STEP_REL_CHARS, /* __rel_loc: the same, counted from behind the u32 */
    STEP_REL_BYTES,
    STEP_TAIL_CHARS, /* char[] that ends the event */
    STEP_STRING_PTR, /* address of a string of printk_formats */
    STEP_SYMBOL,     /* kernel pointer → name of the function, or the number in hexadecimal */
    STEP_ARRAY_U64,  /* n × 8 bytes, one field each */
    STEP_ARRAY_U32,
};

enum { STEP_STRING_MAX = 1024 }; /* longer strings of printk_formats are cut */

struct program_step {
    uint8_t code; /* enum step_code */
    uint8_t tag_len;
    uint8_t tag[3];    /* field number and wire type, ready to copy */
    uint8_t truncate;  /* the message field has 32 bits: drop the rest */
    uint16_t offset;   /* in the event, from common_type on */
    uint16_t size;     /* bytes of STEP_CHARS, STEP_BYTES, STEP_STRING_PTR and STEP_SYMBOL, elements of an array */
    uint16_t field_no; /* field number, for generic events in the old encoding */
    const char *name;  /* the same */
};

enum program_kind {
    PROGRAM_FIELDS,         /* steps; typed and generic events */
    PROGRAM_GENERIC_LEGACY, /* steps wrapped into GenericFtraceEvent.Field */
    PROGRAM_CONSTANT,       /* kprobes: the same bytes every time */
    PROGRAM_COMPACT_SWITCH, /* into the compact lists of the bundle */
    PROGRAM_COMPACT_WAKING,
};

/* What an event says about the thread that one of its fields names. */
enum tid_effect { TID_EFFECT_NONE, TID_EFFECT_SEEN, TID_EFFECT_STALE };

struct event_filter;

struct event_program {
    uint8_t kind;           /* enum program_kind */
    uint8_t tag_len;        /* of the event's field in FtraceEvent */
    uint8_t tag[4];         /* as written: tag_len bytes */
    uint16_t kernel_id;     /* common_type */
    uint16_t min_size;      /* an event shorter than this is invalid */
    uint16_t pid_offset;    /* of common_pid */
    uint16_t tid_offset;    /* of the thread id that tid_effect is about */
    uint16_t inode_offset;  /* of an inode number, when has_inode */
    uint16_t device_offset; /* of its device */
    bool has_inode;
    uint16_t rss_key[2];               /* throttled rss_stat: offsets of mm_id and member, */
    uint16_t rss_size;                 /* and of size */
    bool of_words;                     /* its steps are numbers of 8 bytes, each with a tag of one; nothing else */
    bool throttled;                    /* written only when size has moved to another 512 KiB step */
    uint8_t tid_effect;                /* enum tid_effect */
    uint16_t n_steps;                  /* length of `steps` */
    uint16_t constant_len;             /* bytes that begin the message */
    uint16_t n_dynamic;                /* steps whose output depends on the event's length */
    uint32_t max_fixed;                /* most bytes of everything else, FtraceEvent header included */
    uint32_t proto_id;                 /* field number in FtraceEvent */
    const struct event_filter *filter; /* what of these events the session keeps; NULL: all */
    struct program_step *steps;
    const uint8_t *constant;
    struct slice descriptor; /* generic: FtraceEventBundle.GenericEventDescriptor; else empty */
    const char *group;
    const char *name;
};

/* Where compact sched finds its fields; the same for switch and waking where they share a meaning. */
struct compact_offsets {
    uint16_t prev_state, next_pid, next_prio, next_comm; /* sched_switch */
    uint16_t pid, target_cpu, prio, comm, common_flags;  /* sched_waking */
    bool prev_state_is_64;
};

enum program_flavour {
    PROGRAM_TYPED_OR_GENERIC, /* as the tables have it */
    PROGRAM_LEGACY,           /* untyped events as GenericFtraceEvent */
};

/* A kernel dev_t (major << 20 | minor) as makedev() of the C library has it. */
uint64_t event_program_device(uint32_t kernel_device);

/* Compiles `f` (of events/GROUP/...) into `p`, memory from `a`. `dynamic_id` is the FtraceEvent field number to use
 * when there is no typed row. -MRD_EFORMAT when the common fields are not what a page parser can rely on or the format
 * asks for something impossible; -MRD_ENOMEM. */
int event_program_compile(struct event_program *p, const struct format_file *f, const char *group,
                          enum program_flavour flavour, uint32_t dynamic_id, struct arena *a, struct error *err);

/* A program that writes FtraceEvent.kprobe_event {name, type} (enum KprobeEvent.KprobeType). */
int event_program_kprobe(struct event_program *p, const struct format_file *f, const char *group, const char *name,
                         unsigned type, struct arena *a, struct error *err);

/* Whether a format has the shape that the compact encoding relies on; fills the offsets if so. */
bool compact_switch_offsets(const struct format_file *f, struct compact_offsets *o);
bool compact_waking_offsets(const struct format_file *f, struct compact_offsets *o);

/* Makes `p` (of kmem/rss_stat) a throttled one; false when the format is not the known one. */
bool event_program_throttle_rss(struct event_program *p, const struct format_file *f);

struct program_context {
    struct address_table *addresses;     /* may be NULL: pointers become 0 */
    const struct printk_formats *printk; /* may be NULL: such strings are left out */
    const struct kernel_symbols *kernel; /* may be NULL: functions have no names */
    uint64_t address_shift; /* is added to pointers: what the kernel has moved by since it wrote the events */
};

/* Most bytes that event_program_run() writes for an event of `size` bytes. */
static inline size_t event_program_bound(const struct event_program *p, size_t size)
{
    return p->max_fixed + p->n_dynamic * (size + 8);
}

/* Writes FtraceEventBundle.event for one kernel event of `size` bytes, at q, where there are event_program_bound()
 * bytes and ENCODE_SLACK. Returns the end, or NULL when the event is too short or points outside itself. Not for
 * compact programs. */
uint8_t *event_program_run(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                           uint32_t size, uint64_t timestamp, uint8_t *q);

/* As above, but only the message of the event itself, which is the field `proto_id` of FtraceEvent. */
uint8_t *event_program_payload(const struct event_program *p, const struct program_context *ctx, const uint8_t *event,
                               uint32_t size, uint8_t *q);

#endif
