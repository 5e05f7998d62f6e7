/* The table-valued operators: virtual-table modules and table functions written in C. */
#ifndef MERIDIAN_SQL_OPERATORS_OPERATORS_H
#define MERIDIAN_SQL_OPERATORS_OPERATORS_H

#include "sql/engine.h"

int operators_attach(struct engine *e, struct error *err);

extern const sqlite3_module span_join_module;
extern const sqlite3_module span_left_join_module;
extern const sqlite3_module span_outer_join_module;
extern const sqlite3_module window_module;
extern const sqlite3_module counter_mipmap_module;
extern const sqlite3_module slice_mipmap_module;
extern const sqlite3_module table_ptr_module;
extern const sqlite3_module flamegraph_module;

/* Sets the text of a virtual table's error and returns SQLITE_ERROR. */
int operator_error(sqlite3_vtab *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The plan that `plan` has built becomes info->idxStr (NULL when it is empty), and frees it. SQLITE_NOMEM when memory
 * ran out on the way: a plan that lacks letters would be read behind its end. */
int operator_set_plan(sqlite3_index_info *info, sqlite3_str *plan);

/* xOpen: a zeroed struct of `size` bytes, which begins with a sqlite3_vtab_cursor. */
int operator_open_cursor(size_t size, sqlite3_vtab_cursor **out);

/* Shared by modules without state of their own: xDisconnect/xDestroy that only free. */
int operator_disconnect(sqlite3_vtab *t);

#endif
