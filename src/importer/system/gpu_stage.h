/* What the files that import render stages share: an event, and what it refers to by number. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_GPU_STAGE_H
#define MERIDIAN_IMPORTER_SYSTEM_GPU_STAGE_H

#include "importer/system/gpu_work.h"
#include "wire/fields.h"

#define FIELD(name)    GPU_RENDER_STAGE_EVENT_##name
#define HAS(event, id) ((event)->has >> (id)&1)

struct stage_event {
    uint32_t has;                      /* bits: fields that are there */
    uint64_t value[FIELD(LAUNCH) + 1]; /* numbers, by field */
    struct slice bytes, name, launch, specifications;
};

strid gpu_text_field(struct machine_ctx *m, struct slice message, uint32_t field); /* 0: not there */
uint64_t gpu_number_field(struct slice message, uint32_t field);                   /* 0: not there */

/* The args of an event's slice. */
argset gpu_stage_args(struct packet *p, const struct stage_event *e, uint32_t upid);

/* ---- gpu_interned.c: interned entries. Each is read once, since it may be long and every event may refer to it. */

struct gpu_specification { /* of a queue or a stage */
    strid name, description;
    uint64_t category;
};

struct gpu_context {
    uint64_t pid, api;
};

/* An arg of a kernel or a launch, as its message has it: the names and texts of numbers are looked up when it is used.
 */
struct gpu_arg {
    uint64_t name_iid, text_iid;
    strid name;
    bool has_name_iid, has_text_iid;
    uint8_t type; /* enum arg_type; ARG_NULL: no value */
    int64_t word;
};
struct gpu_arg gpu_arg_read(struct machine_ctx *m, struct slice bytes);

enum { GPU_MAX_KERNEL_ARGS = 64 /* each event has those of its kernel, which is described once */ };

struct gpu_kernel {
    strid name, demangled, arch;
    bool has_name, has_demangled, has_arch;
    uint32_t n_args, left_out;
    struct gpu_arg args[];
};

/* NULL: nothing describes the number, or memory is out (im->failed). */
const struct gpu_specification *gpu_specification(struct packet *p, uint64_t iid);
const struct gpu_context *gpu_context(struct packet *p, uint64_t iid);
const struct gpu_kernel *gpu_kernel(struct packet *p, uint64_t iid);

#endif
