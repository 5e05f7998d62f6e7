/* Arrow's IPC formats. */
#ifndef MERIDIAN_EXPORT_ARROW_H
#define MERIDIAN_EXPORT_ARROW_H

#include "base/arena.h"
#include "export/formats.h"

int export_arrow_begin(struct export_writer *w, struct error *err);
int export_arrow_stream_begin(struct export_writer *w, struct error *err);
int export_arrow_block(struct export_writer *w, const struct export_block *block, struct error *err);
int export_arrow_end(struct export_writer *w, struct error *err);
void export_arrow_free(struct export_writer *w);

#endif
