/* Sorts events that stand in memory. */
#ifndef MERIDIAN_IMPORTER_SORT_MERGE_SORT_H
#define MERIDIAN_IMPORTER_SORT_MERGE_SORT_H

#include "importer/sort/sorter.h"

#include <stddef.h>

/* Brings e[0, n) into the order of time. Events of one time keep their order, but from `tie_from` on they go by b
 * (INT64_MAX: never). `tmp` has room for n / 2 + 1. What is in order already costs little: runs that follow each other
 * a comparison, and of runs that overlap only what overlaps is moved. */
void merge_sort_events(struct sort_event *e, size_t n, struct sort_event *tmp, int64_t tie_from);

#endif
