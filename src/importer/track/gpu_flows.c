/* Arrows to and from the stages of a GPU's work. */
#include "importer/track/gpu_flows.h"

#include "importer/track/flow_tracker.h"

struct waiting {
    uint32_t slice;
    uint32_t next; /* index + 1, 0: last */
    enum gpu_flow_side side;
};

struct gpu_flows {
    struct u64map stages;  /* number -> slice */
    struct u64map waiting; /* number -> first << 32 | last, indices + 1 */
    VEC(struct waiting)
    list;
};

void gpu_flows_close(struct gpu_flows *f)
{
    if (!f)
        return;
    u64map_free(&f->stages);
    u64map_free(&f->waiting);
    vec_free(&f->list);
    mem_free(f);
}

static struct gpu_flows *flows_of(struct importer *im)
{
    if (!im->gpu_flows && !(im->gpu_flows = mem_zalloc(sizeof *im->gpu_flows)))
        im->failed = true;
    return im->gpu_flows;
}

static void draw(struct importer *im, uint32_t stage, uint32_t slice, enum gpu_flow_side side)
{
    if (side == GPU_FLOW_TO_STAGE)
        flow_between(im->flows, slice, stage);
    else
        flow_between(im->flows, stage, slice);
}

void gpu_flows_stage(struct importer *im, uint64_t stage, uint32_t slice)
{
    struct gpu_flows *f = flows_of(im);
    if (!f)
        return;
    im->failed |= !u64map_set(&f->stages, stage, slice);
    const uint64_t *waiting = u64map_get(&f->waiting, stage);
    if (!waiting)
        return;
    for (uint32_t i = (uint32_t)(*waiting >> 32); i; i = f->list.p[i - 1].next)
        draw(im, slice, f->list.p[i - 1].slice, f->list.p[i - 1].side);
    u64map_del(&f->waiting, stage);
}

void gpu_flows_connect(struct importer *im, uint64_t stage, uint32_t slice, enum gpu_flow_side side)
{
    struct gpu_flows *f = flows_of(im);
    if (!f)
        return;
    const uint64_t *known = u64map_get(&f->stages, stage);
    if (known) {
        draw(im, (uint32_t)*known, slice, side);
        return;
    }
    uint64_t *waiting = u64map_put(&f->waiting, stage, NULL);
    if (!waiting || !vec_push(&f->list, (struct waiting){.slice = slice, .side = side})) {
        im->failed = true;
        return;
    }
    uint32_t first = (uint32_t)(*waiting >> 32), last = (uint32_t)*waiting, own = (uint32_t)f->list.n;
    if (last)
        f->list.p[last - 1].next = own;
    *waiting = (uint64_t)(first ? first : own) << 32 | own;
}
