/* What the parts of the cut share. */
#ifndef MERIDIAN_CUT_CUT_INTERNAL_H
#define MERIDIAN_CUT_CUT_INTERNAL_H

#include "base/u64map.h"
#include "base/vec.h"
#include "cut/cut.h"
#include "importer/core/context.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

/* A clock of one sequence, by the snapshot that came last. */
struct cut_clock {
    uint32_t id;
    uint32_t ref; /* a clock of the machine read together with it, 0: none */
    bool incremental;
    int64_t multiplier;
    int64_t now;    /* ns; of an incremental clock: the sum so far */
    int64_t delta;  /* ref - clock, ns */
    uint64_t carry; /* of an incremental clock: the steps of packets that went */
};

struct cut_sequence {
    uint32_t default_clock; /* 0: the machine's */
    VEC(struct cut_clock) clocks;
    uint64_t default_track; /* of its track events; 0: none */
    bool has_pid;           /* it is of one thread, of this process */
    int32_t pid;
    uint32_t number;     /* counts the sequences */
    uint32_t generation; /* how often its state was cleared */
};

/* What is read of a packet before its content. */
struct cut_head {
    uint32_t machine_id, sequence_id, clock_id, flags;
    bool has_timestamp, cleared, bad;
    bool droppable; /* holds an event, or counters of its time */
    uint64_t timestamp;
    struct slice snapshot, defaults, descriptor, thread, ftrace;
};

/* Who runs on a cpu, in the file that is written and in truth. A reader takes the thread that a switch left to be the
 * one of the switch before. Where switches go, the cpu is told to be idle: from the first that went, until right before
 * the next that stays. */
struct cut_cpu {
    bool written; /* a switch was */
    bool gap;     /* switches went since then */
    bool known;   /* who runs in truth */
    int32_t runs;
    int32_t pid, prio;
    uint8_t comm_len;
    char comm[64]; /* who ran when the last one went */
};

/* A track that a descriptor tells of. */
struct cut_track {
    bool has_pid;
    int32_t pid;
    uint64_t parent; /* 0: none */
};

struct cut {
    struct importer *im;
    const struct cut_window *w;
    struct cut_counts *counts;
    struct output_file *file;
    struct error *err;
    struct pb_writer out;
    struct pb_writer redacted; /* scratch: a packet with pseudonyms */
    struct u64map by_id;       /* machine_id, sequence_id -> index in sequences */
    VEC(struct cut_sequence) sequences;
    struct u64map comms; /* machine, cpu, pid -> hash of the name seen last */
    struct u64map mms;   /* machine, cpu, mm_id -> pid that said it was its own */
    struct u64map cpus;  /* machine, cpu -> index in runs */
    VEC(struct cut_cpu) runs;
    struct u64map track_of; /* uuid -> index in tracks; filled when threads are chosen */
    VEC(struct cut_track) tracks;
    uint64_t secret;    /* of the hashes of names and their numbers: no file knows which are equal */
    struct u64map used; /* numbers of interned names that what stays uses */
    bool looking;       /* the first time over the file: nothing is written */
    bool counter_steps; /* a track with counters that are given as steps was seen */
};

/* ---- cut_clock.c ---- */

struct cut_sequence *cut_sequence_of(struct cut *c, const struct cut_head *h);

/* Reads the clocks and defaults that the packet brings. False when out of memory. */
bool cut_sequence_update(struct cut *c, struct cut_sequence *s, const struct cut_head *h);

/* The machine's row; false when its clock cannot be told (it is not known, or was started anew meanwhile). */
bool cut_machine(const struct cut *c, uint32_t machine_id, uint32_t *row);

/* Trace time of a reading of a machine's clock. */
bool cut_machine_time(const struct cut *c, uint32_t row, uint32_t clock, int64_t value, int64_t *ts);

/* Trace time of the packet; *steps is the incremental clock it is given in, NULL for others. Call it once a packet. */
bool cut_packet_time(struct cut *c, struct cut_sequence *s, const struct cut_head *h, int64_t *ts,
                     struct cut_clock **steps);

/* ---- cut_keep.c ---- */

/* Whether a kernel event outside of the window stays, since later ones are read by it. */
struct cut_event {
    uint32_t machine, cpu, id;
    int32_t pid;          /* who was running */
    struct slice payload; /* its own message */
};
bool cut_keeps_event(struct cut *c, const struct cut_event *e);

/* Whether the name of a thread is another than the one seen last. */
bool cut_comm_changed(struct cut *c, uint32_t machine, uint32_t cpu, int32_t pid, struct slice comm);

/* Whether a track event is given as steps from the one before. */
bool cut_is_step(const struct cut *c, struct slice track_event);

/* ---- cut_process.c ---- */

bool cut_wants_thread(const struct cut_window *w, uint32_t machine, int64_t tid);

/* Whether a kernel event is one of the threads that are kept, or about one of them. */
bool cut_is_about(const struct cut *c, const struct cut_event *e);

/* Notes whose a track is. False when out of memory. */
bool cut_note_track(struct cut *c, struct slice descriptor);

/* Notes whose the sequence is from here on. */
void cut_sequence_owner(struct cut_sequence *s, const struct cut_head *h);

/* Whether the field is an event of a process that goes. */
bool cut_goes_with_process(const struct cut *c, const struct cut_sequence *s, uint32_t machine,
                           const struct pb_field *f);

/* Appends field `process_stats` with the processes that are kept; false: none is in it. */
bool cut_process_stats(struct cut *c, uint32_t machine, struct slice stats);

/* ---- cut_interned.c ---- */

/* Notes the names that the packet uses which begins at `before` in c->out. */
void cut_interned_use(struct cut *c, const struct cut_sequence *s, size_t before);

/* Takes the names out of it that nothing uses. */
void cut_interned_prune(struct cut *c, const struct cut_sequence *s, size_t before);

/* ---- cut_ftrace.c ---- */

/* Appends field `ftrace_events` with what stays of a bundle; false: nothing stays. */
bool cut_bundle(struct cut *c, uint32_t machine, bool selected, struct slice bundle);

/* ---- cut_switch.c ---- */

struct cut_switch {
    struct slice event, payload; /* FtraceEvent, its SchedSwitch */
    uint32_t cpu;
};

/* Appends FTRACE_EVENT_BUNDLE_EVENTs for a switch, which stays or goes; false: none. */
bool cut_plain_switch(struct cut *c, struct cut_cpu *run, const struct cut_switch *s, bool stays);

/* The name of the idle thread of a cpu. */
struct slice cut_idle_name(uint32_t cpu, char buf[24]);

#endif
