/* Lines of ftrace's text on their way into the tables: from files, and from inside Chrome JSON. */
#ifndef MERIDIAN_IMPORTER_TEXT_SYSTRACE_H
#define MERIDIAN_IMPORTER_TEXT_SYSTRACE_H

#include "importer/input/format_reader.h"

struct systrace;

/* `to_ns` turns the time of a line into trace time; false drops the line. `tid0_is_thread`: tid 0 is a thread like
 * others, as in JSON. `anchor` may be NULL. NULL when out of memory. */
typedef bool (*systrace_clock_fn)(void *ctx, int64_t ns, int64_t *trace_ns);
/* Takes what a marker says: at the time `ns` of its line it was `there` on that clock of the system. */
typedef void (*systrace_anchor_fn)(void *ctx, int64_t ns, uint32_t clock, int64_t there);
struct systrace *systrace_open(struct importer *im, systrace_clock_fn to_ns, systrace_anchor_fn anchor, void *ctx,
                               bool tid0_is_thread);
void systrace_close(struct systrace *s);

/* Reads one line without its line feed. False when it is none (nothing is counted). The bytes are copied unless they
 * stay as long as the importer. */
bool systrace_add_line(struct systrace *s, struct slice line);

/* What a page tells of processes: lines of its PROCESS DUMP. False for ids that are no numbers. */
struct systrace_dump {
    bool threads; /* the columns are those of threads */
};
bool systrace_dump_line(struct systrace *s, struct systrace_dump *d, struct slice line);

extern const struct format_reader systrace_format_reader;

#endif
