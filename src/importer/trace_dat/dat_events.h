/* The events of a trace.dat: the format files in it, made into programs. */
#ifndef MERIDIAN_IMPORTER_TRACE_DAT_DAT_EVENTS_H
#define MERIDIAN_IMPORTER_TRACE_DAT_DAT_EVENTS_H

#include "importer/trace_dat/dat_file.h"
#include "kernel/page_parser.h"

enum { DAT_EVENT_IDS = 65536 };

struct dat_events {
    struct arena arena;
    const struct event_program *programs[DAT_EVENT_IDS]; /* by id; NULL: the file has no format of it */
    const struct swap_program *swaps[DAT_EVENT_IDS];
    uint32_t n_bad; /* formats that could not be read */
};

/* `next_dynamic_id` numbers the events that have no message of their own, over all files of a load. NULL when out of
 * memory. */
struct dat_events *dat_events_open(const struct dat_file *f, uint32_t *next_dynamic_id);
void dat_events_close(struct dat_events *e);

#endif
