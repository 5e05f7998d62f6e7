/* Blocks of a handle's tables, for libraries of this tree that write them elsewhere than into files. */
#ifndef MERIDIAN_API_EXPORT_SOURCE_H
#define MERIDIAN_API_EXPORT_SOURCE_H

#include "export/source.h"
#include "meridian/tp.h"

/* As tp_finish(), but without SQL: the tables are there, and no query can be asked. A small recording takes less than
 * half of the CPU. */
int tp_finish_tables(struct tp *tp);

/* What has been loaded, once it is finished. Lives as long as the handle. */
struct storage *tp_tables(struct tp *tp);

/* As export_open_table(). */
int tp_export_table(struct tp *tp, const char *name, const char *trace, struct export_source **out);

#endif
