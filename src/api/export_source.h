/* Blocks of a handle's tables, for libraries of this tree that write them elsewhere than into files. */
#ifndef MERIDIAN_API_EXPORT_SOURCE_H
#define MERIDIAN_API_EXPORT_SOURCE_H

#include "export/source.h"
#include "meridian/tp.h"

/* As tp_finish(), but for the views of a whole trace, `slice` or `machine`: queries find tables alone
 * (__intrinsic_slice), and `stats` and `metadata`. A small recording takes a quarter less CPU. */
int tp_finish_tables(struct tp *tp);

/* As export_open_table() and export_open_query(). */
int tp_export_table(struct tp *tp, const char *name, const char *trace, struct export_source **out);
int tp_export_query(struct tp *tp, const char *name, const char *sql, const char *trace, struct export_source **out);

/* As export_table_rows(). */
uint32_t tp_export_rows(const struct tp *tp, size_t table);

#endif
