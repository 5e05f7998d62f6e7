/* What a machine keeps about profiles: stacks, samples, heaps. */
#ifndef MERIDIAN_IMPORTER_PROFILING_PROFILING_H
#define MERIDIAN_IMPORTER_PROFILING_PROFILING_H

#include "importer/core/packet.h"

#include "wire/fields.h"

struct profiling_machine;

struct profiling_machine *profiling_machine_open(struct machine_ctx *m); /* NULL when out of memory */
/* Finishes dumps whose end never came, and puts readable names where obfuscated ones are. */
void profiling_machine_finish(struct profiling_machine *s);
void profiling_machine_close(struct profiling_machine *s);

/* Names frames of a machine by ModuleSymbols packets, after the import; how many. */
uint64_t module_symbols_apply(struct machine_ctx *m, struct slice packets);

extern const struct packet_handler profiling_packet_handlers[];

#endif
