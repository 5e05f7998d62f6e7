/* CREATE OR REPLACE: an old table, view or table function stands aside while the new one is made, and comes back when
 * that fails. */
#ifndef MERIDIAN_SQL_DIALECT_REPLACE_H
#define MERIDIAN_SQL_DIALECT_REPLACE_H

#include "sql/dialect/exec.h"

struct replaced {
    char *name;
    char *sql;                  /* how it was made; NULL: nothing stood there */
    struct runtime_table *rows; /* of a table made by CREATE PERFETTO TABLE */
    struct sql_function *f;     /* a table function */
    bool view, aside;           /* a table of SQLite's own goes by another name meanwhile */
};

/* Makes room for `name`. An error when something is there and may not be replaced, or cannot be (a query reads it). */
int replaced_take(struct exec *x, const struct parsed *p, const char *name, struct replaced *r);

/* rc 0: the new one stands, the old one goes. Else the old one comes back; hands rc on. */
int replaced_settle(struct exec *x, struct replaced *r, int rc);

/* What kind of thing has this name: 't' a table, 'v' a view, 0 nothing. */
char object_kind(struct exec *x, const char *name);

#endif
