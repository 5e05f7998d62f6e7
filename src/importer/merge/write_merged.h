/* Separate recordings, written as one trace once their clocks are related. For importer only. */
#ifndef MERIDIAN_IMPORTER_MERGE_WRITE_MERGED_H
#define MERIDIAN_IMPORTER_MERGE_WRITE_MERGED_H

#include "importer/clock/remote_sync.h"
#include "importer/ctf/ctf_import.h"
#include "importer/input/reader_private.h"

/* See importer_write_merged(). */
int reader_write_merged(struct reader *r, const char *path, struct error *err);

#endif
