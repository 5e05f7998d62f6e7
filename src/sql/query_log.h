/* The last queries of an engine and how long they took: what the table `sqlstats` shows.
 *
 *     uint64_t n = query_log_begin(e, text, started);   // 0 when memory is short: the two others take it as it comes
 *     query_log_first_row(e, n);
 *     query_log_end(e, n); */
#ifndef MERIDIAN_SQL_QUERY_LOG_H
#define MERIDIAN_SQL_QUERY_LOG_H

#include "sql/engine.h"

/* `started`: of CLOCK_BOOTTIME. */
uint64_t query_log_begin(struct engine *e, struct slice sql, int64_t started);
void query_log_first_row(struct engine *e, uint64_t query);
void query_log_end(struct engine *e, uint64_t query);

#endif
