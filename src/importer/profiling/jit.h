/* Code that programs make while they run: which code lay at an address when a stack was taken. */
#ifndef MERIDIAN_IMPORTER_PROFILING_JIT_H
#define MERIDIAN_IMPORTER_PROFILING_JIT_H

#include "importer/profiling/profiling_internal.h"

struct jit_new_code {
    int64_t ts;
    uint32_t upid, utid;
    uint64_t start, size; /* size: at least 1 */
    strid function, native_code_base64;
    int64_t symbol_set; /* of frames in it; COL_NULL: none */
};

void jit_close(struct jit *j);

/* The process makes code in [start, end), start < end. False when out of memory (im->failed), as below. */
bool jit_add_area(struct profiling_machine *s, uint32_t upid, uint64_t start, uint64_t end);

/* How many areas were told of; 0: the process makes no code. */
uint32_t jit_areas(const struct profiling_machine *s, uint32_t upid);

/* Code came into being, and what it overlaps is gone. Its row in jit_code; UINT32_MAX when out of memory. */
uint32_t jit_add_code(struct profiling_machine *s, const struct jit_new_code *code);

/* The code at `from` lies at `to` now; nothing when none lies there. */
void jit_move_code(struct profiling_machine *s, uint32_t upid, int64_t ts, uint64_t from, uint64_t to);

/* Does a mapping lie within an area of the process? */
bool jit_covers(const struct profiling_machine *s, uint32_t upid, uint32_t mapping);

/* The row of a frame in such a mapping: of the code that lies there now. Code that nobody told of keeps the frame's own
 * name, or is named by its address (counted). */
uint32_t jit_frame(struct profiling_machine *s, uint32_t upid, const struct stack_profile_frame_row *frame);

#endif
