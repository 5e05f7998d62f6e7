/* Archives of Android's bug reports: which of their many files are read. */
#ifndef MERIDIAN_IMPORTER_MERGE_BUGREPORT_H
#define MERIDIAN_IMPORTER_MERGE_BUGREPORT_H

#include "importer/input/format.h"

/* Whether a member is the report's text: bugreport-…-YYYY-MM-DD-HH-MM-SS.txt; then *year is that of its name. */
bool bugreport_is_text(const char *name, int *year);

/* Whether a member of such an archive is read: its text, logs kept by the system, recordings. */
bool bugreport_has_use(const char *name, enum trace_format format);

#endif
