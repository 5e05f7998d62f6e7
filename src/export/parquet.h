/* Parquet files. */
#ifndef MERIDIAN_EXPORT_PARQUET_H
#define MERIDIAN_EXPORT_PARQUET_H

#include "export/formats.h"

int export_parquet_begin(struct export_writer *w, struct error *err);
int export_parquet_block(struct export_writer *w, const struct export_block *block, struct error *err);
int export_parquet_end(struct export_writer *w, struct error *err);
void export_parquet_free(struct export_writer *w);

#endif
