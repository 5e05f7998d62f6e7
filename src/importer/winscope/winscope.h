/* What Android's window system says of itself: windows, layers, views, transitions, input and input methods. Messages
 * become args by one mechanism, from built-in descriptors. */
#ifndef MERIDIAN_IMPORTER_WINSCOPE_WINSCOPE_H
#define MERIDIAN_IMPORTER_WINSCOPE_WINSCOPE_H

#include "importer/core/packet.h"

struct winscope_machine *winscope_machine_open(struct machine_ctx *m);
/* Writes what is only known once no more packets come. */
void winscope_machine_finish(struct winscope_machine *w);
void winscope_machine_close(struct winscope_machine *w);

extern const struct packet_handler winscope_packet_handlers[];

#endif
