/* What a machine says about itself: process tree, process and system statistics, system information, cpus. */
#ifndef MERIDIAN_IMPORTER_SYSTEM_SYSTEM_H
#define MERIDIAN_IMPORTER_SYSTEM_SYSTEM_H

#include "importer/core/packet.h"

/* State of a machine; NULL when out of memory. */
struct system_machine *system_machine_open(struct machine_ctx *m);
/* After the last event. */
void system_machine_finish(struct system_machine *s);
void system_machine_close(struct system_machine *s);

/* The gpu's row in `gpu` (its ugpu), made when new. */
uint32_t system_gpu(struct machine_ctx *m, uint32_t gpu);

/* The process is in this control group: args of it, and of the container and unit that the path names. */
void process_set_cgroup(struct machine_ctx *m, uint32_t upid, struct slice path);

extern const struct packet_handler system_packet_handlers[];

#endif
