/* Strings, mappings, frames and call stacks of a data source: each has a number, and is told once, with the first call
 * stack that refers to it. */
#ifndef MERIDIAN_CAPTURE_PERF_PERF_INTERN_H
#define MERIDIAN_CAPTURE_PERF_PERF_INTERN_H

#include "base/strpool.h"
#include "base/vec.h"
#include "wire/pb_writer.h"

/* The lists of InternedData that share the numbers of strings. */
enum perf_strings { PERF_STRINGS_BUILD_IDS = 1, PERF_STRINGS_PATHS = 2, PERF_STRINGS_FUNCTIONS = 4 };

struct perf_mapping {
    struct slice build_id, path;
    uint64_t start, end, offset, load_bias;
};

/* A zeroed struct is empty. Running out of memory latches `failed` of one of the pools, see perf_intern_failed(). */
struct perf_intern {
    struct strpool strings, mappings, frames;
    struct strpool nodes; /* of the tree of call stacks, from the outermost frame on: the node above, and the frame */
    VEC(uint8_t)
    told_strings; /* by number: the lists that it is in */
    VEC(uint8_t)
    told_mappings, told_frames, told_nodes; /* by number: 1 */
    VEC(uint32_t)
    path;                /* of the call stack that is being told */
    uint64_t first_node; /* numbers of call stacks are never used again, though all was forgotten */
};

/* Numbers. */
uint32_t perf_intern_mapping(struct perf_intern *in, const struct perf_mapping *m);
/* `kind`: Frame.Kind; 0: it goes without saying. */
uint32_t perf_intern_frame(struct perf_intern *in, struct slice function, uint32_t mapping, uint64_t rel_pc,
                           uint32_t kind);
/* `frames`: the innermost first. */
uint64_t perf_intern_callstack(struct perf_intern *in, const uint32_t *frames, size_t n);

/* Tells of a call stack, and of what it refers to, unless that was told before. The messages go into `w`, where
 * InternedData is open. */
void perf_intern_tell(struct perf_intern *in, struct pb_writer *w, uint64_t callstack);

/* All is told again, when it is referred to next; the numbers stay. */
void perf_intern_tell_anew(struct perf_intern *in);

bool perf_intern_failed(const struct perf_intern *in);

/* So much is numbered that it had better be forgotten: recordings that last for days go on meeting new programs. */
enum { PERF_INTERN_MAX = 1 << 20 };
bool perf_intern_is_large(const struct perf_intern *in);

/* Forgets everything but how many call stacks there were. */
void perf_intern_clear(struct perf_intern *in);

#endif
