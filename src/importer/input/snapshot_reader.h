/* Snapshots among the formats that are read: their bytes are kept until the import ends, and then take the place of
 * everything imported. */
#ifndef MERIDIAN_IMPORTER_INPUT_SNAPSHOT_READER_H
#define MERIDIAN_IMPORTER_INPUT_SNAPSHOT_READER_H

#include "importer/input/format_reader.h"

extern const struct format_reader snapshot_format_reader;

/* Once everything is read: 0 when there was no snapshot, 1 when the storage is now that of one. -MRD_EUNSUPPORTED when
 * other traces came with it; the errors of snapshot_attach(). */
int snapshot_reader_attach(struct importer *im, struct error *err);

#endif
