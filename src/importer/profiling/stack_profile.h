/* Mappings, frames and callsites, each once: the rows that samples and allocations stand on.
 *
 * A callsite is a frame with the callsite that called it, so equal beginnings of stacks share their rows. Rows belong
 * to the machine that they were seen on. */
#ifndef MERIDIAN_IMPORTER_PROFILING_STACK_PROFILE_H
#define MERIDIAN_IMPORTER_PROFILING_STACK_PROFILE_H

#include "importer/core/packet.h"

#define CALLSITE_NONE UINT32_MAX

/* A line of source code. */
struct source_line {
    strid function;
    strid file;   /* 0: not known */
    int64_t line; /* COL_NULL: not known */
};

/* The row of an equal mapping, made when new. UINT32_MAX when out of memory, as below. */
uint32_t stack_profile_mapping(struct machine_ctx *m, const struct stack_profile_mapping_row *mapping);
/* The same for what lies in the memory of one process: it shares the row with no other one. A recorder that tells all
 * again gets the rows that it had. */
uint32_t stack_profile_mapping_of_process(struct machine_ctx *m, uint32_t upid,
                                          const struct stack_profile_mapping_row *mapping);
/* The mapping of frames that lie in no file, by a name of ours for where they come from. */
uint32_t stack_profile_no_mapping(struct machine_ctx *m, const char *name);

/* The row of a frame by its name, mapping and rel_pc; `source` (NULL: not known) is part of what makes it another one,
 * and becomes its symbol. */
uint32_t stack_profile_frame(struct machine_ctx *m, const struct stack_profile_frame_row *frame,
                             const struct source_line *source);
/* Asks for the memory that looking for such a frame will read. */
void stack_profile_frame_ahead(struct machine_ctx *m, const struct stack_profile_frame_row *frame,
                               const struct source_line *source);

/* The row of `frame` as called by `parent` (CALLSITE_NONE: the stack's first frame). */
uint32_t stack_profile_callsite(struct machine_ctx *m, uint32_t parent, uint32_t frame);
/* The same in files that count the depth of a stack's first frame from `first`. */
uint32_t stack_profile_callsite_from(struct machine_ctx *m, uint32_t parent, uint32_t frame, uint32_t first);

/* Adds the functions at one address, the innermost inlined one first; the symbol_set_id for frames. */
uint32_t stack_profile_symbols(struct machine_ctx *m, const struct source_line *lines, size_t n);

/* A name of build_ids or ModuleSymbols as the tables show it: hexadecimal. One of 33 bytes is Breakpad's (32 digits and
 * the age), a text already, and stays as it is (spec: symbols.md §5). */
strid build_id_text(struct machine_ctx *m, struct slice raw);

/* The callsite of an interned callstack, or of one written out where it is used (InlineCallstack). CALLSITE_NONE when
 * there is none; what is wrong with it is counted (stackprofile_*). upid: the process whose stack it is, for code that
 * it made itself, and for the rows of what lies in its memory (spec: perf_sampling.md §9); UPID_NONE when unknown. */
uint32_t stack_profile_interned(struct machine_ctx *m, struct seq_generation *g, uint32_t upid, uint64_t callstack_iid);
uint32_t stack_profile_inline(struct machine_ctx *m, struct slice callstack, const char *mapping);
/* The row of an interned mapping of a process (or UPID_NONE), UINT32_MAX when there is none. */
uint32_t stack_profile_interned_mapping(struct machine_ctx *m, struct seq_generation *g, uint32_t upid,
                                        uint64_t mapping_iid);

/* A sample of a StreamingProfilePacket, whose times are those of the sequence's track events: at `ts`, into time order.
 */
void streaming_profile_add(struct packet *p, int64_t ts, uint64_t callstack_iid, int32_t priority);

#endif
