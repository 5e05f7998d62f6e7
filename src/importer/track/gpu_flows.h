/* Arrows to and from the stages of a GPU's work. Stages have numbers that hold in the whole trace, and whoever names
 * one may come before it. */
#ifndef MERIDIAN_IMPORTER_TRACK_GPU_FLOWS_H
#define MERIDIAN_IMPORTER_TRACK_GPU_FLOWS_H

#include "importer/core/context.h"

enum gpu_flow_side {
    GPU_FLOW_TO_STAGE,   /* the slice submitted the stage */
    GPU_FLOW_FROM_STAGE, /* the slice waited for it */
};

/* A stage has its slice: those that named it get their arrows. */
void gpu_flows_stage(struct importer *im, uint64_t stage, uint32_t slice);
/* An arrow between a slice and the stage, now or when that has come. */
void gpu_flows_connect(struct importer *im, uint64_t stage, uint32_t slice, enum gpu_flow_side side);

void gpu_flows_close(struct gpu_flows *f);

#endif
