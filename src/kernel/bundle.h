/* Collects the events of one cpu into an FtraceEventBundle and hands it on as a packet.
 *
 * Events are encoded once, straight behind each other; the compact lists of sched_switch and sched_waking grow beside
 * them. A bundle goes out when the cpu's batch ends, when it is big enough for one shared-memory chunk, when the comm
 * table is full, and in front of a page that follows a loss (so that lost_events marks the right place). */
#ifndef MERIDIAN_KERNEL_BUNDLE_H
#define MERIDIAN_KERNEL_BUNDLE_H

#include "kernel/event_program.h"
#include "kernel/packet_sink.h"
#include "kernel/tid_tracker.h"

/* FtraceParseStatus of the trace format. */
enum ftrace_status {
    FTRACE_STATUS_OK = 1,
    FTRACE_STATUS_UNEXPECTED_READ_ERROR,
    FTRACE_STATUS_PARTIAL_PAGE_READ,
    FTRACE_STATUS_ABI_INVALID_PAGE_HEADER,
    FTRACE_STATUS_ABI_SHORT_EVENT_HEADER,
    FTRACE_STATUS_ABI_NULL_PADDING,
    FTRACE_STATUS_ABI_SHORT_PADDING_LENGTH,
    FTRACE_STATUS_ABI_INVALID_PADDING_LENGTH,
    FTRACE_STATUS_ABI_SHORT_TIME_EXTEND,
    FTRACE_STATUS_ABI_SHORT_TIME_STAMP,
    FTRACE_STATUS_ABI_SHORT_DATA_LENGTH,
    FTRACE_STATUS_ABI_ZERO_DATA_LENGTH,
    FTRACE_STATUS_ABI_INVALID_DATA_LENGTH,
    FTRACE_STATUS_ABI_SHORT_EVENT_ID,
    FTRACE_STATUS_ABI_END_OVERFLOW,
    FTRACE_STATUS_SHORT_COMPACT_EVENT,
    FTRACE_STATUS_INVALID_EVENT,
    FTRACE_STATUS_COUNT,
};

/* The default clock of packets, which is not on the wire (enum ftrace_clock). */
#define FTRACE_CLOCK_BOOT FTRACE_CLOCK_UNSPECIFIED

/* A file as events name it. */
struct inode_key {
    uint64_t device; /* as the C library has it, see makedev() */
    uint64_t inode;
};

/* The symbols of a session, shared by all its bundles. */
struct symbol_output {
    struct address_table addresses;
    const struct kernel_symbols *kernel; /* NULL: numbers only, no names */
    bool announced;                      /* a packet with INCREMENTAL_STATE_CLEARED has gone out */
};

/* Files that the events of a session have named. A zeroed struct is empty. */
struct inode_tracker {
    struct u64map seen; /* hash of device and inode */
    VEC(struct inode_key)
    fresh;
};

struct ftrace_bundle;

/* Makes the working memory of one session (about 500 KiB of address space, touched as needed). NULL: out of memory. */
struct ftrace_bundle *ftrace_bundle_create(const struct packet_sink *sink, const struct printk_formats *printk,
                                           struct symbol_output *symbols, const struct compact_offsets *compact);
void ftrace_bundle_free(struct ftrace_bundle *b);

/* Tells `tids` (NULL: nobody) of every thread that the events name. */
void ftrace_bundle_set_tids(struct ftrace_bundle *b, struct tid_tracker *tids);
/* The same for files. */
void ftrace_bundle_set_inodes(struct ftrace_bundle *b, struct inode_tracker *inodes);

/* Kernel addresses in the events that follow are so much below those of the symbols. */
void ftrace_bundle_set_address_shift(struct ftrace_bundle *b, uint64_t shift);

/* How to translate the events' clock, sent with every bundle unless it is the boot clock. */
void ftrace_bundle_set_clock(struct ftrace_bundle *b, enum ftrace_clock clock, int64_t ftrace_now, int64_t boot_now);

/* Starts a batch of `cpu`. `previous_end`: last timestamp of the previous bundle of this cpu (0: none), updated when
 * bundles go out. */
void ftrace_bundle_begin(struct ftrace_bundle *b, uint32_t cpu, uint64_t *previous_end);

/* Adds one event of `size` bytes. */
void ftrace_bundle_event(struct ftrace_bundle *b, const struct event_program *p, const uint8_t *event, uint32_t size,
                         uint64_t timestamp);

/* Events were lost in front of what comes next. */
void ftrace_bundle_lost(struct ftrace_bundle *b);

/* A page or event could not be used. */
void ftrace_bundle_error(struct ftrace_bundle *b, uint64_t page_timestamp, enum ftrace_status status);

/* debug_ftrace_abi: the page that an error was about goes out whole, to be looked at by a person. */
void ftrace_bundle_broken_page(struct ftrace_bundle *b, struct slice page);
void ftrace_bundle_set_debug(struct ftrace_bundle *b, bool debug);

/* The time up to which the cpu has been read. */
void ftrace_bundle_seen(struct ftrace_bundle *b, uint64_t timestamp);

/* Ends the batch: what is there goes out. */
void ftrace_bundle_end(struct ftrace_bundle *b);

struct ftrace_bundle_counts {
    uint64_t events;  /* written, in either encoding */
    uint64_t bytes;   /* of packets */
    uint64_t bundles; /* packets */
    uint64_t errors[FTRACE_STATUS_COUNT];
};

/* What went out since the start (view; lasts as long as the bundle). */
const struct ftrace_bundle_counts *ftrace_bundle_counts(const struct ftrace_bundle *b);

#endif
