/* The life of a daemon that is a producer of data sources: signals, a loop, a watchdog, the sandbox. */
#ifndef MERIDIAN_CAPTURE_PROBES_PROBES_RUN_H
#define MERIDIAN_CAPTURE_PROBES_PROBES_RUN_H

#include "capture/probes/probes.h"

struct probes_run {
    struct probes_options options;
    uint64_t keep; /* capabilities, see sandbox_enter() */
    uint32_t max_memory_mb;
    uint32_t stuck_ms;                                           /* without a turn of the loop; 0: any */
    int (*begin)(void *ctx, uv_loop_t *loop, struct error *err); /* once there is a loop; NULL: nothing */
    void (*end)(void *ctx);                                      /* … and before it goes */
    void *ctx;
};

/* Runs until a signal ends it; the exit status. */
int probes_run(const struct probes_run *r);

/* The values of --max-memory and --service-user; NULL leaves what is there. */
int probes_run_memory(struct probes_run *r, const char *text, struct error *err);
int probes_run_service_user(struct probes_run *r, const char *name, struct error *err);

#endif
