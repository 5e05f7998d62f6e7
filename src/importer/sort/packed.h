/* A run of sort events, packed: each of their words as an offset to its minimum, in as few bytes as the largest needs.
 *
 * Events of one source lie close together in time and in the file, so 24 bytes become eight or so; packing and
 * unpacking are plain loops over columns. (Measured on 8.7 M scheduler events: the pages that are not touched save more
 * time than the loops take.) */
#ifndef MERIDIAN_IMPORTER_SORT_PACKED_H
#define MERIDIAN_IMPORTER_SORT_PACKED_H

#include "importer/sort/sorter.h"

#include <stdbool.h>

enum packed_column { PACKED_TS, PACKED_A, PACKED_HIGH_B, PACKED_LOW_B, PACKED_COLUMNS };

struct packed_events {
    uint32_t n;
    uint32_t bytes; /* of data */
    uint64_t base[PACKED_COLUMNS];
    uint8_t width[PACKED_COLUMNS]; /* bytes an offset: 0, 1, 2, 3, 4 or 8 */
    _Alignas(8) uint8_t data[];
};

/* Packs n events (n > 0) into memory of its own; NULL when out of memory. */
struct packed_events *packed_events_make(const struct sort_event *events, uint32_t n);

/* The events, into room for p->n. */
void packed_events_unpack(const struct packed_events *p, struct sort_event *events);

/* Their times alone. */
void packed_events_times(const struct packed_events *p, int64_t *times);

static inline size_t packed_events_size(const struct packed_events *p)
{
    return sizeof *p + p->bytes;
}

#endif
