/* Inside the span joins: what a table of that kind is, made by span_join_table.c and read by span_join.c. */
#ifndef MERIDIAN_SQL_OPERATORS_SPAN_JOIN_H
#define MERIDIAN_SQL_OPERATORS_SPAN_JOIN_H

#include "sql/frontend/select.h"
#include "sql/operators/operators.h"

enum { SHADOW_NONE = 0, SHADOW_LEFT = 1, SHADOW_RIGHT = 2 };

struct span_input {
    char *table;
    char *partition; /* column, or NULL */
    char **columns;  /* all of the table's */
    char **types;    /* as declared */
    int n_columns;
    int ts, dur, part; /* column numbers; dur and part may be -1 */
};

struct span_join_table {
    sqlite3_vtab base;
    struct engine *e;
    const char *module;
    unsigned shadows;
    struct span_input in[2];
    int first[2];   /* number of the first column of each side behind ts, dur, partition */
    int *source[2]; /* [column of the side's part] -> column of the input */
    int n_source[2];
    bool partitioned; /* at least one side is */
};

/* Operators that constraints are pushed with; idxStr has their letters. */
enum { SPAN_JOIN_SOURCE_GEQ = SQLITE_INDEX_CONSTRAINT_FUNCTION };
struct span_join_op {
    int op;
    char letter;
    enum sql_op sql;
};
extern const struct span_join_op span_join_ops[];
extern const int span_join_n_ops;

int span_join_connect(sqlite3 *db, struct engine *e, int argc, const char *const *argv, unsigned shadows,
                      sqlite3_vtab **out, char **err);
int span_join_disconnect(sqlite3_vtab *base);
int span_join_best_index(sqlite3_vtab *base, sqlite3_index_info *info);
int span_join_find_function(sqlite3_vtab *base, int argc, const char *name,
                            void (**f)(sqlite3_context *, int, sqlite3_value **), void **arg);

#endif
