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
    char *name;
    uint64_t serial; /* as a source of plans; 0: it is none */
};

/* Times and partitions of kept rows, read some at a time. */
enum { SPAN_JOIN_AHEAD = 64 };
struct span_ahead {
    uint32_t first, n; /* rows; n is 0 before the first */
    int64_t ts[SPAN_JOIN_AHEAD], dur[SPAN_JOIN_AHEAD], part[SPAN_JOIN_AHEAD];
};

/* A side while it is read. */
struct side {
    const struct span_input *in;
    sqlite3_stmt *stmt;         /* rows as they come, or ... */
    struct runtime_table *kept; /* ... kept rows, of a plan or of a side that is read once a partition */
    uint32_t kept_row;
    struct span_ahead ahead;
    bool in_order; /* kept rows that may be passed over where the other side has nothing */
    bool eof;      /* no row stands ready */
    int64_t row_partition, row_ts, row_end, row_adjusted; /* of the row that stands ready */
    /* the segment */
    bool real, done; /* done: nothing more in this partition */
    int64_t start, end, adjusted;
    int64_t last_end; /* of the span before, to find overlaps */
    bool has_last;
    bool shadows;
};

struct span_join_cursor {
    sqlite3_vtab_cursor base;
    struct side side[2];
    int64_t partition;
    bool eof;
    bool keep_all;      /* both sides become columns */
    const bool *wanted; /* of those, what is read: by columns of the join. NULL: all */
};

int span_join_filter(struct span_join_cursor *c, const char *plan, int argc, sqlite3_value **argv);
/* Goes to the next overlap. Within a statement that reads the table only: it does not watch how deep joins nest. */
int span_join_next(struct span_join_cursor *c);
void span_join_close(struct span_join_cursor *c);

/* A kept row's integer; 0 where it is NULL, or there is no such column (-1). */
int64_t span_join_kept_word(const struct side *s, int column, uint32_t row);
/* The words of row s->kept_row: NULLs as they are, but for the duration, which is 0 then. */
struct span_words {
    int64_t ts, dur, part;
};
struct span_words span_join_kept_words(struct side *s);
/* Where a span ends for the purposes of the merge: one without an end where it begins, a time behind itself. */
int64_t span_join_adjusted(const struct span_input *in, int64_t ts, int64_t dur);
/* Does each kept span of the side begin where the one before has ended, or later? */
bool span_join_stands_in_order(const struct side *s);
/* The row that is read next becomes the last that ends before `ts`, if that is ahead. In steps that grow: as many as
 * the distance has digits. */
void span_join_pass(struct side *s, int64_t ts);
/* Of all columns of the row that the cursor stands on, however it is read. */
uint64_t span_join_row_hash(const struct span_join_cursor *c);

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
/* Makes the table a source of plans, where it can be; taken down by span_join_disconnect(). */
void span_join_offer(struct span_join_table *t);
int span_join_disconnect(sqlite3_vtab *base);
int span_join_best_index(sqlite3_vtab *base, sqlite3_index_info *info);
int span_join_find_function(sqlite3_vtab *base, int argc, const char *name,
                            void (**f)(sqlite3_context *, int, sqlite3_value **), void **arg);

#endif
