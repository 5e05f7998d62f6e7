/* How interrupts show up, whatever format told of them: the tracks of a cpu and the names of slices on them. */
#ifndef MERIDIAN_IMPORTER_TRACK_IRQ_TRACKS_H
#define MERIDIAN_IMPORTER_TRACK_IRQ_TRACKS_H

#include "importer/core/context.h"

enum irq_track_kind { IRQ_TRACK, SOFTIRQ_TRACK, HRTIMER_TRACK, IRQ_TRACK_KINDS };

/* The track of a cpu, made when new; UINT32_MAX when out of memory. */
uint32_t irq_track(struct machine_ctx *m, enum irq_track_kind kind, uint32_t cpu);

/* "IRQ (handler)". */
strid irq_slice_name(struct machine_ctx *m, struct slice handler);

/* The kernel's softirq_to_name; NULL for a number it does not have. */
const char *softirq_name(uint64_t vec);

#endif
