/* Native aggregation: SELECTs that only count, sum, or take the smallest and largest of columns of one table, by
 * groups.
 *
 * SQLite hands each row through its virtual machine, some 20 ns a column and aggregate. A statement of the shape
 *     SELECT {column | count(*) | count(column) | sum(column) | min(column) | max(column)} [AS name], ...
 *     FROM table [WHERE column OP literal AND ...] [GROUP BY column, ...] [ORDER BY ... [DESC], ...] [LIMIT n [OFFSET
 * n]] where the table, or a view that only renames columns, is one of ours, is answered from packed columns instead: it
 * is rewritten onto the table function __intrinsic_aggregate (table.c). Whatever does not fit that shape exactly, or
 * could come out differently, stays with SQLite. Answers, names and order are those of SQLite (tested side by side). */
#ifndef MERIDIAN_SQL_AGGREGATE_H
#define MERIDIAN_SQL_AGGREGATE_H

#include "sql/engine.h"

enum { AGGREGATE_MAX_COLUMNS = 16, AGGREGATE_MAX_VALUES = 12, AGGREGATE_MIN_ROWS = 2000 };

/* The most groups that are kept in a plain array. */
enum { AGGREGATE_MAX_GROUPS = 1 << 18 };

/* A statement that does the same natively, to be sqlite3_finalize()d; NULL when `original` (its prepared form, for the
 * names of the result) does not have the shape, the table is small, or memory is short. */
sqlite3_stmt *aggregate_prepare(struct engine *e, struct slice sql, sqlite3_stmt *original);

/* The same for statements in which a select takes values of the row before or behind, from one table:
 *     SELECT {expression over columns, lag(column) and lead(column) OVER ([PARTITION BY columns] ORDER BY columns)},
 * ... FROM table It may be the statement or one in parentheses, whatever stands around it. SQLite keeps each row of a
 * window in a b-tree, some 400 ns a row; here the rows are sorted natively and their neighbours stand beside them. */
sqlite3_stmt *neighbours_prepare(struct engine *e, struct slice sql, sqlite3_stmt *original);

#endif
