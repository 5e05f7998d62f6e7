/* What packets about a GPU's work share: names of its objects, queues and stages. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_GPU_WORK_H
#define MERIDIAN_IMPORTER_SYSTEM_GPU_WORK_H

#include "importer/system/system_internal.h"

#include "base/arena.h"
#include "base/vec.h"

struct gpu_described {
    strid name, description;
    bool known;
};

/* A VulkanMemoryEvent, until its own time has come. */
struct gpu_memory_event {
    uint32_t source, operation, scope;
    uint32_t type; /* of memory */
    uint32_t pid;
    uint64_t size;
};

/* Interned entries that were read (gpu_interned.c). */
struct gpu_interned {
    struct u64map read; /* where the entry lies -> what it says */
    struct arena arena;
};
void gpu_interned_free(struct gpu_interned *g);

struct gpu_work {
    VEC(struct gpu_described)
    queues; /* by number */
    VEC(struct gpu_described)
    stages;                  /* by number */
    struct u64map contexts;  /* that have their row */
    struct u64map unnamed;   /* gpu << 32 | queue -> set of tracks of the queue that nothing has described yet */
    struct u64map objects;   /* hash of (type, handle) -> name */
    struct u64map allocated; /* hash of (what, scope or memory type) -> bytes */
    struct gpu_interned interned;
    VEC(struct gpu_memory_event)
    memory_events;
    uint32_t memory_queue; /* of the sorter, for those events; UINT32_MAX when there is none */
};

/* That of a machine, made when there is none; NULL when out of memory. */
struct gpu_work *gpu_work_of(struct machine_ctx *m);

enum gpu_object { /* numbers of VkObjectType */
                  GPU_OBJECT_COMMAND_BUFFER = 6,
                  GPU_OBJECT_RENDER_PASS = 18,
                  GPU_OBJECT_FRAMEBUFFER = 24,
};
/* The name that debug tools gave to an object, 0 when it has none. */
strid gpu_object_name(const struct machine_ctx *m, enum gpu_object type, uint64_t handle);

#endif
