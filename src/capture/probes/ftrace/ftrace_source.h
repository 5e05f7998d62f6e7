/* The data source linux.ftrace: sessions over instances, and when to read.
 *
 * Each instance has one timer at the shortest drain period of its sessions; a tick reads at most 256 pages of each cpu
 * and comes back at once when there is more. With drain_buffer_percent the kernel wakes us when a buffer is that full,
 * and the timer slows down. Every page is parsed once for each session while it is in the cache. */
#ifndef MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_SOURCE_H
#define MERIDIAN_CAPTURE_PROBES_FTRACE_FTRACE_SOURCE_H

#include "capture/probes/common/data_source.h"
#include "capture/probes/ftrace/ring_reader.h"

struct ftrace_source;

struct ftrace_source_options {
    const char *tracefs_root;  /* NULL: where tracefs is mounted */
    const char *run_directory; /* of undo logs */
    enum ring_mode mode;
};

/* State of all sessions of a producer; put it into probes_host.ftrace. Strings are copied. NULL: out of memory. */
struct ftrace_source *ftrace_source_create(const struct ftrace_source_options *options);
/* All sessions must be freed before. */
void ftrace_source_free(struct ftrace_source *s);

/* Counters of one session, for tests and for metatrace. */
struct ftrace_session_counts {
    const struct ftrace_bundle_counts *bundles;
    uint64_t records; /* data records seen on pages */
    uint64_t lost;    /* events that the pages say were lost */
    uint64_t pages;
};
void ftrace_session_counts(const void *state, struct ftrace_session_counts *counts);

#endif
