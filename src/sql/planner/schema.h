/* What the names of a statement mean: tables of ours, and views that hand on columns of one.
 *
 * A view `SELECT a, b AS c, a + b AS d FROM t` is table t with its columns renamed; d is computed, and may not be named
 * by who wants the table. Views over such views, too. What is a join, filters or groups is no table here. Views are
 * parsed once: what they mean is kept until the schema changes. */
#ifndef MERIDIAN_SQL_PLANNER_SCHEMA_H
#define MERIDIAN_SQL_PLANNER_SCHEMA_H

#include "sql/engine_private.h"
#include "sql/frontend/select.h"

enum { SCHEMA_COMPUTED = INT16_MIN };

struct schema_column {
    const char *name; /* as it is declared; "" of a computed one without a name */
    int16_t at;       /* column of the table, VTAB_ROW, or SCHEMA_COMPUTED */
    uint8_t type;     /* enum col_type */
    bool hidden;      /* `*` does not stand for it */
};

struct schema_table {
    const char *name;  /* asked for */
    const char *table; /* the table behind it; NULL: it is none of ours */
    const struct schema_column *columns;
    uint32_t n_columns;
};

/* NULL when the name is no table of ours in that sense, or memory is short. Lasts until the next call. */
const struct schema_table *schema_find(struct engine *e, struct sql_name name);

/* Versions of the main and of the temporary schema: they change with every object that is made or dropped. False:
 * SQLite gave none, for want of memory most likely. */
bool schema_versions(struct engine *e, int64_t out[2]);
/* Calls `take` with every view of both schemas; its strings last until it returns. False: `take` said so, or SQLite did
 * not answer. */
bool schema_each_view(struct engine *e, bool (*take)(void *ctx, const char *name, const char *sql), void *ctx);

/* *sql: the text of the view of that name, in the arena; NULL when it is none. False: who is meant depends on where the
 * name stands (a temporary view or table hides another, but not from views that are not temporary), or memory is short.
 */
bool schema_view(struct engine *e, struct arena *arena, struct sql_name name, const char **sql);
/* Has nobody made a table or a view of that name? False where that is not known. */
bool schema_has_none(struct engine *e, struct sql_name name);
/* Behind CREATE VIEW name AS: where the SELECT begins, or 0. */
size_t schema_view_body(const struct sql_tokens *t);

/* The column of that name, unless it is computed; or NULL. */
const struct schema_column *schema_column(const struct schema_table *t, struct sql_name name);

/* Is the value of the expression one of its row alone, with no aggregate, window or query in it? */
bool schema_is_rowwise(struct engine *e, const struct sql_expr *expr);

/* The same of a call alone, whatever its arguments are. */
bool schema_is_rowwise_call(struct engine *e, const struct sql_expr *call);

/* What tables, views and functions are now: equal stamps, and nothing was made or dropped between them. False: memory
 * is short. */
struct schema_stamp {
    int64_t versions[2]; /* of the main and of the temporary schema */
    uint64_t functions;  /* that were made */
};
bool schema_stamp(struct engine *e, struct schema_stamp *out);
bool schema_stamp_is_equal(const struct schema_stamp *a, const struct schema_stamp *b);

void schema_free(struct engine *e); /* before SQLite is closed */

#endif
