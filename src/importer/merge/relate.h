/* Before separate recordings are read: whose packets meet whose. For importer/input and importer/merge only. */
#ifndef MERIDIAN_IMPORTER_MERGE_RELATE_H
#define MERIDIAN_IMPORTER_MERGE_RELATE_H

#include "importer/input/reader_private.h"

/* Adds every proto trace that waits in r->pending and every CTF trace to the recordings, solves, gives related traces
 * machines of their own (pending_trace.machine) and joins their clocks. Nothing when there is only one of all. */
int relate_recordings(struct reader *r, struct error *err);

#endif
