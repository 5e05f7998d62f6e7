/* What the parts of the planner share. */
#ifndef MERIDIAN_SQL_PLANNER_PRIVATE_H
#define MERIDIAN_SQL_PLANNER_PRIVATE_H

#include "sql/planner/planner.h"
#include "sql/planner/schema.h"
#include "sql/vtab/vtab.h"

enum { AGGREGATE_MAX_GROUPED = 4, AGGREGATE_MAX_COLUMNS = 16, AGGREGATE_MAX_TESTS = 12 };
enum { AGGREGATE_MAX_GROUPS = 1 << 18 }; /* that are kept in a plain array */

/* The table of a plan. Statements outlive tables: a runtime table is kept, any other is looked for again. */
struct plan_table {
    char *name;
    const struct table *table;
    struct runtime_table *runtime; /* one reference; NULL: a built-in table */
    bool outline;                  /* of args that are not decoded yet: args_outline() in their place */
};

/* Of a name that schema_find() knows; false when memory is short or the table is gone. */
bool plan_table_open(struct plan_table *t, struct engine *e, const char *name);
void plan_table_close(struct plan_table *t);
/* The rows, all of them final; NULL when they are not those the plan was made for. */
const struct table *plan_table_rows(const struct plan_table *t, struct engine *e);
/* Is `at` a column of the table, or its row number? */
bool plan_column_is_valid(const struct table *t, int at);

/* Plans go to their table functions as pointers, which no SQL text can make up. */
#define AGGREGATE_PLAN "meridian-aggregate"

struct aggregate_plan {
    struct plan_table table;
    struct {
        int16_t at;
        bool desc;
    } groups[AGGREGATE_MAX_GROUPED];
    uint32_t n_groups;
    struct {
        int16_t at;
        char function; /* '*' count(*), 'c' count, 's' sum, 'm' min, 'x' max */
    } aggregates[AGGREGATE_MAX_COLUMNS];
    uint32_t n_aggregates;
    struct plan_term tests[AGGREGATE_MAX_TESTS]; /* their values are the other arguments */
    uint32_t n_tests;
};
void aggregate_plan_free(void *plan);

struct parameters; /* of a body, in sql/plan */

/* A tree being planned. */
struct planner {
    struct engine *e;
    const struct parameters *parameters; /* what its $names mean; NULL: it has none */
    struct arena *arena;
    const struct sql_tree *tree;
    uint32_t n_retries; /* cores that were read once more */
    uint32_t n_lookups; /* queries in expressions that were read, each time */
};

/* A statement that gives what the tree says, to be sqlite3_finalize()d; NULL: not of the shape. */
sqlite3_stmt *aggregate_prepare(struct planner *p);

/* Does the word still mean SQLite's own function? */
enum {
    FUNCTION_COUNT = 1,
    FUNCTION_SUM = 2,
    FUNCTION_MIN = 4,
    FUNCTION_MAX = 8,
    FUNCTION_LEAD = 16,
    FUNCTION_LAG = 32,
    FUNCTION_OTHER = 64 /* any that sql/plan knows */
};
unsigned planner_function(const struct planner *p, struct sql_name name); /* one of those, or 0 */

/* A word of a column as the result of a column. */
void planner_result(const struct engine *e, sqlite3_context *ctx, enum col_type type, int64_t word);

extern const sqlite3_module aggregate_module;

#endif
