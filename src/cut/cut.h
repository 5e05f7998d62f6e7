/* Writes the packets of a recording that a window of trace time needs.
 *
 * Events outside of the window go, but those at the times in `kept` (where rows that reach into the window begin and
 * end) and those that later ones are read by: names and lives of threads, running totals. Everything that is not an
 * event stays: clocks, process trees, descriptors, interned data. Packed packets come out unpacked. A packet whose time
 * cannot be told stays as it is. */
#ifndef MERIDIAN_CUT_CUT_H
#define MERIDIAN_CUT_CUT_H

#include "base/output_file.h"
#include "wire/packet_file.h"

struct importer;
struct redactor;

struct cut_window {
    int64_t from, to;    /* trace time, [from, to) */
    const int64_t *kept; /* sorted times outside of it */
    size_t n_kept;
    const uint32_t *machines; /* rows of `machine` whose events stay; n 0: all */
    size_t n_machines;
    const uint64_t *threads; /* sorted cut_thread_key()s of those whose events stay, pids among them; n 0: all */
    size_t n_threads;
    struct redactor *redactor; /* as it was opened; NULL: names stay */
};

static inline uint64_t cut_thread_key(uint32_t machine, int64_t tid)
{
    return (uint64_t)machine << 32 | (uint32_t)tid;
}

/* Whether what happens at `ts` stays. */
bool cut_wants(const struct cut_window *w, int64_t ts);

struct cut_counts {
    uint64_t packets_in, packets_out;
    uint64_t events_in, events_out; /* kernel events */
    uint64_t timeless;              /* packets with events whose time cannot be told: they stay */
    uint64_t damaged;               /* packets that cannot be read: they stay as they are, or go (redactor) */
    size_t tail;                    /* bytes at the end that are no packet: they go */
};

/* `im` has imported `in`: it tells the clocks. */
int cut_write(struct importer *im, const struct packet_file *in, const struct cut_window *window,
              struct output_file *out, struct cut_counts *counts, struct error *err);

#endif
