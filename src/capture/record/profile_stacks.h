/* What call stacks of a recording refer to, and how much each of their functions has of what they stand for: read
 * straight out of the packets, without an import. */
#ifndef MERIDIAN_CAPTURE_RECORD_PROFILE_STACKS_H
#define MERIDIAN_CAPTURE_RECORD_PROFILE_STACKS_H

#include "base/file.h"
#include "base/strpool.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "capture/record/elf_names.h"

#include <stdio.h>

struct profile_mapping {
    strid path, build_id;
    bool opened;
    struct mapped_file file;
    struct elf_names names;
};

struct profile_frame {
    strid name;
    uint64_t mapping, rel_pc; /* mapping: its place */
    strid function;           /* as it is shown; 0: not made yet */
};

enum { PROFILE_WEIGHTS = 2 }; /* what a stack stands for: the caller's business */

struct profile_function {
    strid text; /* NAME, a tab, FILE */
    uint64_t self[PROFILE_WEIGHTS], total[PROFILE_WEIGHTS], samples;
    uint64_t last; /* the stack that counted it last: recursion counts once */
};

enum { PROFILE_KINDS = 4 };

struct profile_stacks {
    struct u64map index[PROFILE_KINDS]; /* by kind of message: hash of sequence and iid → number */
    struct u64map generations;          /* sequence → how often its state was cleared */
    struct strpool strings;
    VEC(struct profile_mapping)
    mappings;
    VEC(struct profile_frame)
    frames;
    VEC(uint64_t)
    stacks;                /* of each: number of frames, then their places, the outermost first */
    struct u64map by_text; /* text → 1 + index into functions */
    VEC(struct profile_function)
    functions;
    uint64_t sequence; /* and generation, of the packet */
    uint64_t counted;
    bool failed; /* out of memory */
};

/* The first scalar `id` of a message, 0: none. */
uint64_t profile_number(struct slice message, uint32_t id);

/* Gives each packet of a trace to `each`, as packet_file_walk() does. What that returns other than 0 ends it. */
int profile_stacks_read(const char *path, int (*each)(void *ctx, struct slice field), void *ctx, struct error *err);

/* The message of such a packet; false: it has none. */
bool profile_stacks_packet(struct profile_stacks *t, struct slice field, struct slice *message);
/* … and takes in its interned data. */
bool profile_stacks_take_interned(struct profile_stacks *t, struct slice message);

/* The place of the call stack with that number in the packet's sequence; false: there is none. */
bool profile_stacks_find(const struct profile_stacks *t, uint64_t iid, uint64_t *at);

/* Its function at `depth` from the innermost on, as its text; 0: it is not as deep. */
strid profile_stacks_function(struct profile_stacks *t, uint64_t at, uint64_t depth);

/* Counts a stack; the innermost `skip` functions are none of it. */
void profile_stacks_count(struct profile_stacks *t, uint64_t at, uint64_t skip, const uint64_t weights[PROFILE_WEIGHTS],
                          uint64_t samples);

/* NAME  [FILE], and a newline; what could move a cursor is a question mark. */
void profile_print_function(const struct profile_stacks *t, const struct profile_function *f, FILE *to);

void profile_stacks_free(struct profile_stacks *t);

#endif
