/* Writes what is loaded as Chrome's trace event format, which chrome://tracing, Perfetto and other viewers read:
 * names of processes and threads, slices, flows, counters, and the scheduling of CPUs.
 *
 * That of the host goes along as the kernel's own lines (systemTraceEvents), from which viewers draw CPUs and states of
 * threads. Other machines' pids and tids are moved up by 10,000,000 for each row of `machine`, their processes say in
 * their names which machine it is, and what their CPUs ran are slices of a process of its own. */
#ifndef MERIDIAN_SQL_EXPORT_JSON_H
#define MERIDIAN_SQL_EXPORT_JSON_H

#include "sql/engine.h"

/* Takes the next bytes; anything but 0 ends the writing, and export_json() returns it. */
typedef int (*export_json_write)(void *ctx, const void *bytes, size_t len);

/* In pieces, in bounded memory. An SQLite code (sqlite3_errmsg() tells more), or what `write` returned when that was
 * negative. */
int export_json(sqlite3 *db, export_json_write write, void *ctx);

#endif
