/* Traces that come in an archive, on one timeline. For importer only. */
#ifndef MERIDIAN_IMPORTER_MERGE_MERGE_H
#define MERIDIAN_IMPORTER_MERGE_MERGE_H

#include "importer/input/reader.h"

/* Reads every trace of an archive; checks a manifest that is in none. */
extern const struct reader_merging merge_archives;

#endif
