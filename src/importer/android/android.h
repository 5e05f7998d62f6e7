/* Android's own packets: settings, wakelocks, networks, buffers of frames and the like. */
#ifndef MERIDIAN_IMPORTER_ANDROID_ANDROID_H
#define MERIDIAN_IMPORTER_ANDROID_ANDROID_H

#include "importer/core/packet.h"

struct android_machine *android_machine_open(struct machine_ctx *m);
/* Writes what is only known once no more events come. */
void android_machine_finish(struct android_machine *a);
void android_machine_close(struct android_machine *a);

extern const struct packet_handler android_packet_handlers[];

#endif
