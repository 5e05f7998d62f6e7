/* Strings, mappings, frames and call stacks of a data source, each written once into the trace, under a number. */
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
    written; /* by the number of a string: in which lists it is */
    VEC(uint8_t)
    stacks;              /* by the number of a node: it was written as a call stack */
    uint64_t first_node; /* numbers of call stacks are never used again, though all was forgotten */
};

/* The messages go into `w`, where InternedData is open. */
uint32_t perf_intern_string(struct perf_intern *in, struct pb_writer *w, enum perf_strings list, struct slice text);
uint32_t perf_intern_mapping(struct perf_intern *in, struct pb_writer *w, const struct perf_mapping *m);
/* `kind`: Frame.Kind; 0: it goes without saying. */
uint32_t perf_intern_frame(struct perf_intern *in, struct pb_writer *w, struct slice function, uint32_t mapping,
                           uint64_t rel_pc, uint32_t kind);
/* `frames`: the innermost first. */
uint64_t perf_intern_callstack(struct perf_intern *in, struct pb_writer *w, const uint32_t *frames, size_t n);

bool perf_intern_failed(const struct perf_intern *in);

/* So much is numbered that it had better be forgotten: recordings that last for days go on meeting new programs. */
enum { PERF_INTERN_MAX = 1 << 20 };
bool perf_intern_is_large(const struct perf_intern *in);

/* Forgets everything but how many call stacks there were. */
void perf_intern_clear(struct perf_intern *in);

#endif
