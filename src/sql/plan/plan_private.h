/* What the parts of a plan share.
 *
 * A plan answers one core of a SELECT, with the ORDER BY and LIMIT of its query. Its life: names.c and expr.c read the
 * tree (what is not understood ends the attempt), build.c makes operators of it, and each time the statement runs
 * run.c drives them into a table. Everything of a plan lies in its own arena, since statements outlive their text. */
#ifndef MERIDIAN_SQL_PLAN_PLAN_PRIVATE_H
#define MERIDIAN_SQL_PLAN_PLAN_PRIVATE_H

#include "sql/plan/plan.h"
#include "sql/planner/planner_private.h"

enum {
    PLAN_MAX_SOURCES = 16,
    PLAN_MAX_ITEMS = 64,
    PLAN_FEW_ITEMS = 10, /* of most statements: vtab.c */
    PLAN_MAX_TESTS = 24,
    PLAN_MAX_LOOKED_UP = 16,
    PLAN_MAX_KEYS = 8,
    PLAN_MAX_AGGREGATES = 40,
    PLAN_MAX_LEVELS = 8,
    PLAN_MAX_RANGES = 4,
    PLAN_MAX_PARAMETERS = ENGINE_MAX_PARAMETERS,
    PLAN_MAX_LOOKUPS = 12,
    PLAN_MAX_CALL_ARGS = 24,
    PLAN_MAX_VARYING = 4,           /* of those, that are no constants: results are kept by them */
    PLAN_MAX_ARMS = 40,             /* of a compound */
    PLAN_MAX_DEPTH = 12,            /* queries within queries */
    PLAN_GROUPS = PLAN_MAX_SOURCES, /* sources that are stages of the plan itself */
    PLAN_WINDOWS = PLAN_MAX_SOURCES + 1,
    PLAN_ALL_SOURCES,
    BATCH = COL_CHUNK_ROWS,
    NO_ROW = -1 /* in a batch, as uint32_t: the row of a left join that found none */
};

/* The values of the $names in a text that SQLite runs. Texts are of the string pool. */
struct plan_arguments {
    uint32_t n;
    struct {
        const char *name;
        uint8_t type; /* enum plan_type */
        int64_t word;
    } of[PLAN_MAX_PARAMETERS];
};

/* A type is known before a row is seen; each value is a word as in a column of that type. */
enum plan_type { PLAN_NULL, PLAN_INT, PLAN_REAL, PLAN_TEXT };

enum expr_op {
    X_CONST,
    X_COLUMN,   /* of a source; VTAB_ROW: its row number */
    X_RESULT,   /* of a window, by the place of the row */
    X_NULL_ROW, /* the argument, NULL where the source of a left join has no row */
    X_NEGATE,
    X_BIT_NOT,
    X_NOT,
    X_IS_NULL,
    X_ARITHMETIC, /* sql: SQL_ADD … */
    X_COMPARE,    /* sql: SQL_EQ … SQL_ISNOT */
    X_AND,
    X_OR,
    X_IN,   /* list */
    X_CASE, /* when, then, …, else */
    X_COALESCE,
    X_TO_REAL,
    X_TO_INT,
    X_ABS,
    X_LEAST, /* of two; negated: the greatest */
    X_CALL,  /* SQLite computes text; results are kept by argument */
    X_ARG,   /* of the set that the argument numbers; word: the key */
    X_LOOKUP /* in the rows of a query: are the arguments there, or which value stands beside them */
};

enum lookup_kind {
    LOOKUP_IN,     /* the arguments, with what SQL says of NULL */
    LOOKUP_EXISTS, /* 1 or 0 */
    LOOKUP_VALUE   /* of the first row that has the arguments */
};

/* A query within an expression. Its rows are made once in each run: keys, then the value, then what ranges compare. The
 * arguments are those of the keys, then those of the ranges. */
struct plan_lookup {
    uint8_t kind; /* enum lookup_kind */
    struct query_plan *sub;
    uint32_t n_keys, n_ranges;
    uint8_t ops[PLAN_MAX_RANGES]; /* by range: SQL_NE … SQL_GE, `inner op outer` */
    uint8_t aggregate; /* enum aggregate_kind, of the values within the ranges; AGG_KINDS: the first of them */
    uint32_t n_ties;   /* the last columns order its rows: equals of one key must not have other values */
    bool last;         /* the last row is meant where others take the first */
    bool one;          /* a second row of a key is an error */
    int64_t missing;   /* the value where no row has the keys */
};

struct plan_expr {
    uint8_t op;   /* enum expr_op */
    uint8_t type; /* enum plan_type */
    uint8_t sql;  /* enum sql_op */
    bool negated, list_has_null;
    bool rounds; /* X_CALL: round() of reals to few digits */
    bool mixed;  /* an integer in some rows: mixed.h */
    char letter; /* the affinity that SQLite would see: 'i', 'd', 't', or 'c' for none */
    uint8_t source;
    int16_t column;
    uint16_t n_args;
    uint32_t n_list;
    uint32_t sources; /* bit by source it looks at */
    uint32_t slot;    /* of its values while running */
    int64_t word;
    struct plan_expr **args;
    int64_t *list;                          /* sorted */
    const char *text;                       /* X_CALL: SELECT f(?1, …) */
    const struct plan_arguments *arguments; /* of the $names in it; NULL: there are none */
    const struct plan_lookup *lookup;
    const struct plan_format *format; /* X_CALL: how to make the text without SQLite; NULL: ask SQLite */
};

/* Rows of constants: VALUES, or the one row of a SELECT without FROM. */
struct plan_values {
    uint32_t n_rows, n_columns; /* at least one of each */
    enum plan_type *types;
    int64_t *words; /* row by row */
};

/* The rows that the step of a recursion is to go on from. */
struct plan_round {
    const struct table *rows; /* while it runs */
};

/* Slices above or below another one: ancestor_slice(), descendant_slice(). */
enum plan_kin { KIN_NONE, KIN_ABOVE, KIN_BELOW };

/* A source of rows: a table, or a plan whose answer is one. */
struct plan_source {
    struct plan_table table;      /* name NULL: `sub` or a stage */
    struct query_plan *sub;       /* or a compound's: arms by next_arm */
    uint64_t batches;             /* of an operator: its serial; 0: another source */
    struct plan_pointer *pointer; /* a table that a function gives */
    struct plan_values *values;
    const struct plan_round *round;
    uint8_t kin; /* enum plan_kin; its rows are those of the slice that `kin_of` numbers: */
    struct plan_expr *kin_of;
    uint32_t n_columns;         /* of that one */
    struct sql_name printed[4]; /* as EXPLAIN QUERY PLAN may call it: by its name, or that of a view around it */
    const struct scope_entry *entries[4]; /* by name, while the plan is made: of a query or a view; else NULL */
    uint32_t n_printed;
    bool left;  /* of a left join: rows before it stay without one of it */
    bool right; /* of a right join: its rows stay without any of those before it; with `left`, of a full one */
    struct plan_expr *on[PLAN_MAX_TESTS];
    uint32_t n_on;
};

/* A condition `own op other`: what the step's source has, and what those before it have. */
struct plan_range {
    struct plan_expr *own, *other;
    uint8_t op; /* SQL_LT … SQL_GE */
};

/* One step that adds a source to the rows: the first scans, the others join. */
struct plan_step {
    uint8_t source;
    bool by_row;                           /* keys[0] is the row number */
    struct plan_expr *keys[PLAN_MAX_KEYS]; /* over the sources before */
    int16_t columns[PLAN_MAX_KEYS];        /* equal to them */
    uint32_t n_keys;
    struct plan_expr *tests[PLAN_MAX_TESTS]; /* of this source alone */
    uint32_t n_tests;
    struct plan_expr *after[PLAN_MAX_TESTS]; /* of the ON of a left join, over several sources */
    uint32_t n_after;
    struct plan_expr *where[PLAN_MAX_TESTS]; /* what can be checked from here on */
    uint32_t n_where;
    struct plan_range ranges[PLAN_MAX_RANGES]; /* of `where` and `after`: they leave out what need not be tested */
    uint32_t n_ranges;
    bool by_sorted; /* the ranges are of one column, by which the table is sorted */
};

enum aggregate_kind {
    AGG_COUNT_ROWS,
    AGG_COUNT,
    AGG_SUM,
    AGG_TOTAL,
    AGG_AVG,
    AGG_MIN,
    AGG_MAX,
    AGG_CONCAT,
    AGG_PERCENTILE, /* `fraction` */
    AGG_PERCENTILE_DISC,
    AGG_KINDS
};

struct plan_aggregate {
    uint8_t kind;
    bool distinct; /* each value of a group once */
    struct plan_expr *arg, *filter;
    double fraction;
    struct slice separator;
};

/* A table between two parts of a core: groups, or rows with windows. Columns are expressions over what comes before,
 * then what the part computes. */
struct plan_stage {
    struct plan_expr *columns[PLAN_MAX_ITEMS];
    uint32_t n_columns;
};

enum window_kind {
    WIN_ROW_NUMBER,
    WIN_RANK,
    WIN_DENSE_RANK,
    WIN_PERCENT_RANK,
    WIN_CUME_DIST,
    WIN_NTILE,
    WIN_LAG,
    WIN_LEAD,
    WIN_FIRST,
    WIN_LAST,
    WIN_NTH,
    WIN_COUNT_ROWS,
    WIN_COUNT,
    WIN_SUM,
    WIN_TOTAL,
    WIN_AVG,
    WIN_MIN,
    WIN_MAX,
    WIN_CONCAT, /* `separator` */
    WIN_KINDS
};

enum window_frame {
    FRAME_PEERS,   /* from the first row of the partition to the last equal one */
    FRAME_ROWS,    /* to the row itself */
    FRAME_WHOLE,   /* the partition */
    FRAME_SLIDING, /* ROWS BETWEEN n PRECEDING AND m FOLLOWING; either may be unbounded */
    FRAME_RANGE,   /* RANGE BETWEEN n PRECEDING AND m FOLLOWING, over one term of integers */
    FRAME_GROUPS   /* GROUPS BETWEEN n PRECEDING AND m FOLLOWING: of equal rows */
};

#define FRAME_FAR (1ll << 40)

enum window_exclude { EXCLUDE_NONE, EXCLUDE_ROW, EXCLUDE_GROUP, EXCLUDE_TIES };

struct plan_window {
    uint8_t kind, frame, type;
    uint8_t exclude; /* enum window_exclude */
    uint8_t level;
    int16_t arg, fallback, filter; /* columns of the stage; -1: none */
    int64_t offset;                /* of lag, lead, ntile, nth_value */
    int64_t from, to;              /* from FRAME_SLIDING on: relative to the row; FRAME_FAR: unbounded */
    struct slice separator;
};

/* What windows that are computed together have in common. */
struct plan_level {
    struct plan_order order[PLAN_MAX_ORDER];
    uint32_t n, n_partition;
    int64_t frame[5]; /* as SQLite tells levels apart */
};

enum group_order {
    GROUPS_SORTED,  /* by their keys */
    GROUPS_BY_CODE, /* by the words of their keys: texts by their numbers */
    GROUPS_AS_FOUND /* as their first rows come */
};

struct plan_item {
    struct plan_expr *expr;
    char *name; /* as SQLite names the column */
};

struct query_plan {
    struct engine *e;
    struct query_plan *next_arm; /* its rows follow, in the source that both are of */
    struct query_plan *step;     /* its rows follow, again and again, made of those before: */
    struct plan_round *rows;
    struct arena arena;
    struct plan_source sources[PLAN_ALL_SOURCES];
    uint32_t n_sources;
    struct plan_expr *where[PLAN_MAX_TESTS];
    uint32_t n_where;
    uint32_t right;   /* the source of the only right join; 0: there is none */
    uint32_t n_inner; /* of `where`, that are checked before it */
    struct plan_lookup lookups[PLAN_MAX_LOOKUPS];
    uint32_t n_lookups;
    struct plan_step steps[PLAN_MAX_SOURCES];
    uint32_t n_steps;
    bool restore_order;              /* rows are to be sorted by the rows of `loops` */
    bool picks_first;                /* only which row of equals stands for a group shows order: `loops` tell it */
    uint8_t loops[PLAN_MAX_SOURCES]; /* sources from the outermost loop of SQLite to the innermost */
    uint32_t n_loops;
    struct plan_expr *index_terms[PLAN_MAX_ORDER]; /* by which rows of a loop come, in the place of their numbers */
    uint8_t index_loops[PLAN_MAX_ORDER];           /* by term: the loop, ascending */
    uint32_t n_index_terms;
    struct plan_expr
        *arms[PLAN_MAX_LOOKED_UP]; /* of an OR that SQLite looks up one by one; rows come by the first that holds */
    uint32_t n_arms;
    bool order_unknown;
    bool gave_up;   /* it has been run, and SQLite's own rows are wanted */
    bool unordered; /* the order of rows is not known, and must not matter */

    bool grouped; /* aggregates or GROUP BY */
    struct plan_expr *keys[PLAN_MAX_KEYS];
    bool keys_desc[PLAN_MAX_KEYS];
    uint32_t n_keys;
    uint8_t group_order; /* enum group_order */
    struct plan_aggregate aggregates[PLAN_MAX_AGGREGATES];
    uint32_t n_aggregates, n_listed; /* of those, in the list behind SELECT */
    int extreme;                     /* the min() or max() whose row gives bare columns, or -1 */
    struct plan_stage groups;        /* keys, bare columns; aggregates behind them */
    struct plan_expr *having;

    struct plan_window windows[PLAN_MAX_AGGREGATES];
    uint32_t n_windows;
    struct plan_stage window_rows;
    struct plan_level levels[PLAN_MAX_LEVELS]; /* computed from the last to the first */
    uint32_t n_levels;

    struct plan_item items[PLAN_MAX_ITEMS];
    uint32_t n_items;
    bool distinct;
    struct plan_expr *orders[PLAN_MAX_ORDER];
    bool orders_desc[PLAN_MAX_ORDER];
    uint32_t n_orders;
    int64_t limit, offset; /* limit -1: none */
    uint32_t n_slots;

    const char *text; /* the statement SQLite answers when the plan gives up */
    const struct plan_arguments *arguments;
};

void plan_free(void *plan);
/* ---- names.c, expr.c: from the tree ---- */

struct scope_column {
    struct sql_name name;
    struct plan_expr *expr;
    struct plan_expr *merged; /* of USING of a right join: what the bare name and `*` mean; NULL: `expr` */
    bool hidden;              /* `*` does not stand for it */
    bool used;                /* the core names it */
    bool joined;              /* of USING, on the right: `*` and bare names do not mean it */
};

/* What its name means: `bare`, without that of a table. */
static inline struct plan_expr *scope_column_value(const struct scope_column *c, bool bare)
{
    return bare && c->merged ? c->merged : c->expr;
}

struct scope_entry {
    struct sql_name alias;
    struct scope_column *columns;
    uint32_t n_columns;
};

struct scope {
    struct scope_entry entries[PLAN_MAX_SOURCES];
    uint32_t n_entries;
};

/* WITH tables that a query sees. */
struct cte_scope {
    const struct sql_query *query;
    const struct sql_tree *tree;
    const struct cte_scope *up;
};

/* What the arguments of a function's call are, while its body is read. */
struct parameters {
    const struct query_plan *plan; /* in which the values are */
    const char *names[PLAN_MAX_PARAMETERS];
    struct plan_expr *values[PLAN_MAX_PARAMETERS];
    uint32_t n;
    int depth; /* calls within calls */
};

/* A recursion whose step is being read. */
struct recursion {
    const struct sql_cte *cte;
    const struct sql_select *core; /* of the step */
    const struct query_plan *first;
    struct plan_round *rows;
};

struct reader {
    struct query_plan *plan;
    struct planner *planner; /* its engine, and the arena of the statement */
    const struct sql_tree *tree;
    const struct cte_scope *ctes;
    struct scope *scope;
    const struct sql_select *core;
    const struct sql_select *left_core;  /* one in the place of a left join's right side: its source is one, too */
    const struct parameters *parameters; /* in the body of a function; else NULL */
    const struct recursion *recursion;   /* NULL: none */
    const struct sql_expr *known;        /* an expression that has been read: known_as; NULL: none */
    struct plan_expr *known_as;
    int depth;
    bool whole;  /* the plan is that of a statement, not of a query in one */
    bool always; /* worth it, however simple */
    bool direct; /* rows go to the caller without SQLite in between */
    bool in_aggregate, aggregates_allowed, windows_allowed, aliases_allowed;
    bool mixed_allowed;           /* in the expression that is read next */
    bool any_order;               /* of the rows will do */
    bool once;                    /* so will one of equal rows */
    bool below_any;               /* the order of what it reads is not to show: settle.c sees to that */
    struct loops *loops;          /* what SQLite would do; NULL: not known */
    const struct reader *loop_up; /* the query around this one; NULL: none */
    struct sql_name loop_name;    /* how that one calls it */
    bool loop_flat;               /* SQLite may have taken it apart */
    uint32_t loop_arm;            /* of a compound, from 1; 0: of none */
    int compounds;                /* that are arms of others around */
    uint32_t *rows;               /* of the largest table; for all plans */
};

struct run;
struct plan_expr *plan_expr_new(struct query_plan *p, enum expr_op op, enum plan_type type, uint32_t n_args);
struct plan_expr *plan_const(struct query_plan *p, enum plan_type type, int64_t word);
struct plan_expr *plan_column(struct query_plan *p, uint8_t source, int16_t column, enum plan_type type);
bool plan_expr_equal(const struct plan_expr *a, const struct plan_expr *b);
int64_t plan_null(enum plan_type type);
/* A real as an integer: cut towards zero, the nearest one there is. */
static inline int64_t plan_integer_of(double d)
{
    if (d >= 9223372036854775807.0)
        return INT64_MAX;
    return d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}
enum col_type plan_col_type(enum plan_type type);
enum plan_type plan_type_of(enum col_type type);

/* NULL: not understood. */
struct plan_expr *read_expr(struct reader *r, const struct sql_expr *x);
struct plan_expr *read_function(struct reader *r, const struct sql_expr *x);
struct plan_expr *read_window(struct reader *r, const struct sql_expr *x);
struct plan_expr *read_compare(struct reader *r, uint8_t op, struct plan_expr *a, struct plan_expr *b);
/* collate.c: how values are compared. */
enum collation { COLLATE_NONE, COLLATE_BINARY, COLLATE_NOCASE, COLLATE_UNKNOWN };
/* Takes COLLATE off the outside of an expression. */
enum collation collate_take(const struct sql_expr **x);
/* What is to be compared in the place of x; NULL: not understood. */
struct plan_expr *collate_value(struct reader *r, enum collation c, struct plan_expr *x);
/* Both sides of a comparison: a COLLATE on the left counts before one on the right. */
bool collate_pair(struct reader *r, const struct sql_expr *x, const struct sql_expr *y, struct plan_expr **a,
                  struct plan_expr **b);
/* What is to order rows before `x` does, where NULLS FIRST or LAST says otherwise than usual; NULL: nothing. */
struct plan_expr *read_null_order(struct reader *r, const struct sql_order *o, struct plan_expr *x);
/* json_object(), json_array(); json_group_array(): json.c. What they give is JSON to a function that takes it, and mere
 * text once it has been a value of a plan: they are read where nobody else sees it. */
struct plan_expr *read_json_item(struct reader *r, const struct sql_expr *x);
bool is_json_call(const struct plan_expr *x);
/* What json_group_array() lists of a row, as it stands in the list; NULL: not understood. */
struct plan_expr *read_json_value(struct reader *r, const struct sql_expr *x);
/* group_concat(value, ',') over the rows of a group, of values that `read` reads: function.c. */
struct plan_expr *read_concat(struct reader *r, const struct sql_expr *x,
                              struct plan_expr *(*read)(struct reader *r, const struct sql_expr *x));
/* x IN (SELECT …), EXISTS (SELECT …), (SELECT …): lookup.c. */
struct plan_expr *read_lookup(struct reader *r, const struct sql_expr *x);
/* The same of a function's body: its value, of one row at most, or the run gives up. */
struct plan_expr *read_lookup_of_one(struct reader *r, const struct sql_expr *x);
/* Functions made by SQL: inline.c. A call; `$name` in a body, or a constant; a table. */
struct plan_expr *read_sql_function(struct reader *r, const struct sql_expr *x);
struct plan_expr *read_argument(struct reader *r, const struct sql_expr *x);
/* What the $names around mean, for texts that SQLite is to run; NULL: one is no constant, or no memory. */
const struct plan_arguments *read_arguments(const struct reader *r, struct arena *arena);
/* Binds all $names of a statement that are known. */
void plan_bind_arguments(struct engine *e, sqlite3_stmt *stmt, const struct plan_arguments *a);
void plan_bind_word(struct engine *e, sqlite3_stmt *stmt, int at, enum plan_type type, int64_t word);
bool read_sql_table(struct reader *r, const struct sql_from *from, struct sql_name alias, bool left);
/* A text as a tree whose tokens lie in the statement's arena; NULL: not understood. */
const struct sql_tree *plan_parse_text(const struct reader *r, const char *sql);
struct plan_expr *plan_make_call(struct query_plan *p, enum plan_type type, const char *text, struct plan_expr **args,
                                 uint32_t n);
/* A literal or a text of SQL without columns as a constant. */
struct plan_expr *read_constant(struct reader *r, const struct sql_expr *x);

/* Comparisons of row values, as terms of a conjunction: rows.c. Is it one? False: not understood, or too many. */
bool rows_are_compared(const struct sql_expr *x);
bool read_rows_compared(struct reader *r, const struct sql_expr *x, struct plan_expr **terms, uint32_t *n);

bool read_from(struct reader *r, const struct sql_from *from);
/* kin.c: ancestor_slice(f), descendant_slice(f) of what stands before; false: another function, or not understood. */
bool read_kin(struct reader *r, const struct sql_from *f, bool left);
/* The rows of the slices above or below one; false: r->rc. */
struct row_list;
bool kin_find(struct run *r, const struct plan_source *s, int64_t slice, struct row_list *out);
/* The rows of VALUES; `rows` NULL: one row without columns. values.c */
bool read_values(struct reader *r, const struct sql_expr *rows);
/* The table of a source; NULL: r->rc. */
struct table *values_run(struct run *r, const struct plan_values *v);
/* pointer.c: __intrinsic_table_ptr(f(…)); NULL: not understood. */
struct plan_pointer *pointer_read(struct reader *r, const struct sql_from *from);
void pointer_free(struct plan_pointer *p);
/* The column of the source that c0, c1, … by its number is; its type is PLAN_NULL when there is none. */
uint32_t pointer_column(const struct plan_pointer *p, uint32_t place, enum plan_type *type);
/* Is the condition one that names a column of such a table? It has been read. */
bool pointer_is_bound(const struct reader *r, const struct sql_expr *x);
const struct scope_column *scope_column_of(const struct reader *r, const struct sql_expr *x);
/* The column that a name means: 1, 0 (none), -1 (not clear). */
int scope_find(const struct reader *r, const struct sql_expr *x, struct plan_expr **out);
/* The column of a stage that holds an expression, added when there is none; -1: too many. */
int plan_stage_column(struct query_plan *p, struct plan_stage *s, struct plan_expr *x);
/* One more entry with room for n columns; NULL: too many. */
struct scope_entry *scope_add_entry(struct reader *r, struct sql_name alias, uint32_t n_columns);
/* Adds a conjunction term by term; false: not understood, or too many. */
bool read_conjunction(struct reader *r, const struct sql_expr *x, struct plan_expr **terms, uint32_t *n);

/* ---- build.c ---- */

/* An expression of GROUP BY or ORDER BY (`order`), as it is compared: terms.c. A literal in it would mean a place. */
struct plan_expr *read_term(struct reader *r, const struct sql_select *s, const struct sql_expr *x, bool order);
/* A plan without anything in it, and a reader for it; NULL: out of memory. */
struct query_plan *plan_begin(struct reader *r, const struct reader *outer, const struct sql_tree *tree);
/* The plan of a query; NULL: not understood. */
struct query_plan *plan_build(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                              const struct cte_scope *ctes);
/* The arms of a compound, whose last operators are of one kind, with columns of the same types; NULL: not understood.
 */
struct query_plan *plan_build_arms(struct reader *outer, const struct sql_query *q, const struct sql_tree *tree,
                                   const struct cte_scope *ctes);
/* The kind of those operators. */
enum compound plan_last_kind(const struct sql_query *q);
/* A source of that plan for the reader's query, whose name is `alias`. */
bool read_from_plan(struct reader *r, struct query_plan *sub, struct sql_name alias, bool left);
/* What a core is asked for by keys: its conditions `inner = outer` have been taken out of it, and other comparisons. */
struct keyed {
    struct plan_expr *outer[PLAN_MAX_KEYS], *inner[PLAN_MAX_KEYS];
    uint32_t n;
    struct plan_range ranges[PLAN_MAX_RANGES];
    uint32_t n_ranges;
    uint8_t aggregate;            /* of the values within ranges; AGG_KINDS: none */
    bool last;                    /* of the rows, where the value is not an aggregate */
    bool ties;                    /* what orders the rows is to be listed, too */
    const struct sql_expr *value; /* NULL: none */
    const struct sql_expr *whole; /* what an aggregate is a part of, whose other parts look outside; NULL: nothing */
};
struct query_plan *plan_build_keyed(struct reader *outer, const struct sql_query *q, struct keyed *k);
/* A core's rows with these as their columns, in the place of its own list. */
struct list {
    const struct sql_expr *items[PLAN_MAX_KEYS];
    uint32_t n;
};
struct query_plan *plan_build_list(struct reader *outer, const struct sql_query *q, const struct list *list);
/* Do expressions of the plan read that column? run.c asks before it has operators compute it. */
bool plan_uses(const struct query_plan *p, uint8_t source, int16_t column);
/* Has the source conditions of its own, of ON and USING, that WHERE has no part in? */
static inline bool plan_has_on(const struct plan_source *s)
{
    return s->left || s->right;
}
/* Chooses the steps from the sources and conditions. */
bool plan_steps(struct query_plan *p);
/* Does the range compare a column by which the table is sorted? */
bool steps_is_sorted_range(const struct query_plan *p, const struct plan_range *r);
/* Rows of tables that the step of a recursion goes through in each round. */
uint64_t plan_rows_of_round(const struct query_plan *p);
/* Each expression to the part that computes it: lift.c. */
bool plan_lift(struct query_plan *p);
/* Turns DISTINCT into groups, before the expressions are lifted. */
void plan_settle_distinct(const struct reader *r);
/* Decides how rows are to be ordered; false when SQLite's order shows and cannot be told: settle.c. */
bool plan_settle_order(struct reader *r);
/* The order of a recursion's step: that of the rows before, then that of its other table. recursion.c */
bool recursion_settle(struct query_plan *p);
/* Which min() or max() gives bare columns their row; false when SQLite has rules of its own. */
bool plan_settle_extreme(struct query_plan *p);

/* Of args that are not decoded, how many rows the plan is likely to look at: args_rows.c. */
uint32_t args_rows_likely(const struct query_plan *p, uint8_t source);

/* ---- worth.c ---- */

/* Rows of one table, as they come; or the first of them, where they are asked for in that order. */
bool plan_is_scan(const struct query_plan *p);
/* The same by its own columns: their numbers are sorted, and nothing is copied. */
bool plan_sorts_rows(const struct query_plan *p);
/* `inner`: of a query within another; `direct`: its rows go straight to the caller. */
bool plan_is_worth_it(const struct query_plan *p, bool inner, bool direct);
/* Small tables are not worth it, unless a larger one is there. */
bool plan_is_small(const struct reader *r);
/* Groups that SQLite makes one by one, as the rows of a table come: it reads no more of them than LIMIT asks for. */
bool plan_stops_after_groups(const struct reader *r);

/* ---- prepare.c and subtree.c ---- */

/* SELECT i0 AS "utid", … FROM __intrinsic_plan(@plan<number>) AS "native plan: …" */
void plan_put_select(sqlite3_str *out, const struct query_plan *p, int number);
/* Gives the statement the plan, which is freed when that fails. */
int plan_bind(sqlite3_stmt *stmt, struct query_plan *p, int number);
/* plan_prepare() of a text whose $names have those values (NULL: there are none). They are to be bound, too. What the
 * engine knows of the statement around stays. */
sqlite3_stmt *plan_prepare_text(struct engine *e, struct arena *arena, const char *sql,
                                const struct parameters *parameters);
sqlite3_stmt *plan_prepare_arguments(struct engine *e, struct arena *arena, const char *sql,
                                     const struct plan_arguments *a);
/* The statement with plans for queries within it; NULL: there is none to be planned. */
sqlite3_stmt *subtrees_prepare(struct planner *planner, bool show);

/* ---- loops.c: the order of SQLite's loops, from EXPLAIN QUERY PLAN ---- */

/* `part`: the text is a part of the statement that SQLite runs. */
struct loops *loops_new(struct planner *planner, const char *text, bool part);
/* The step in which SQLite runs the query that is being read; -1: not known. */
int loops_parent(const struct reader *r);
/* The step in which SQLite computes the query of that name; -1: not known. */
int loops_child(struct loops *l, int parent, struct sql_name name);
/* Fills p->loops; false when SQLite's order cannot be told. */
bool loops_order(struct loops *l, int parent, struct query_plan *p);
/* Does SQLite compute no query of that name (len 0: without one) by itself, in any step? False where that is not known.
 */
bool loops_have_none(struct loops *l, struct sql_name name);
/* Does SQLite say so of the query in that step? */
bool loops_say(struct loops *l, int parent, const char *text);
/* The columns by whose words the rows of the outermost loop come, before those are looked through for the first of each
 * kind (*n 0: as they lie); false: not known. */
bool loops_order_of_codes(struct loops *l, int parent, int16_t columns[PLAN_MAX_ORDER], uint32_t *n);
/* Rows of the next loop come from an index that SQLite makes, of the query or view of that name, by columns that are
 * equal to others: index_order.c. False: their order is not known. */
bool index_order_add(struct query_plan *p, uint8_t source, struct sql_name name, const int16_t *keys, uint32_t n_keys);
/* True when the rows that the steps give are in that order. */
bool loops_agree(const struct query_plan *p);

/* ---- running ---- */

struct batch {
    uint32_t n;
    uint32_t at; /* place of the first row, for X_RESULT */
    uint64_t serial;
    const uint32_t *rows[PLAN_ALL_SOURCES]; /* by source */
};

enum { RUN_GAVE_UP = -1 }; /* SQLite shall answer */

struct run {
    struct engine *e;
    const struct query_plan *plan;
    int rc; /* 0, RUN_GAVE_UP or an SQLite code; once set, nothing more is done */
    const struct table *tables[PLAN_ALL_SOURCES];
    struct table *made[PLAN_ALL_SOURCES]; /* of those: ours */
    struct pointer_rows *pointers[PLAN_MAX_SOURCES];
    int64_t **values;             /* by slot: BATCH words */
    uint64_t *serials;            /* by slot: of which batch */
    struct call_memo **memos;     /* by slot */
    struct lookup_rows **lookups; /* by place in the plan */
    struct lookup_ranges **lookup_ranges;
    int64_t **results; /* by window */
    struct join *join; /* what the sources are joined by, between the rounds of a recursion */
    bool keeps;        /* it is to be kept until run_close() */
    uint64_t serial, bytes, most;
    uint64_t visited; /* rows of tables that were looked at */
};

bool run_alloc(struct run *r, uint64_t bytes); /* counts memory; false when it is too much */
bool run_stopped(struct run *r);

/* The words of an expression for the rows of a batch, which last until the next batch. Check r->rc afterwards. */
const int64_t *eval(struct run *r, const struct plan_expr *x, const struct batch *b);
/* Keeps the rows of the batch that pass; rows are moved in `kept`. */
uint32_t eval_filter(struct run *r, struct plan_expr *const *tests, uint32_t n, const struct batch *b, uint32_t *keep);
/* ---- format.c: texts that are put together of values ---- */

struct format_text {
    char *p; /* no NUL at its end, but room for one */
    size_t n, cap;
};

enum format_result { FORMAT_TEXT, FORMAT_NULL, FORMAT_ASK /* SQLite for it */, FORMAT_NO_MEMORY };

/* Finds out how the call puts its text together. False: SQLite is to be asked. */
bool format_read_printf(struct query_plan *p, const struct strpool *strings, struct plan_expr *x);
bool format_read_concat(struct query_plan *p, struct plan_expr *x);
bool format_read_json(struct query_plan *p, struct plan_expr *x, bool object);
bool format_read_quote(struct query_plan *p, struct plan_expr *x);
/* Appends what a call makes of one value; `text` is a constant of the call. */
typedef enum format_result format_call(struct format_text *t, const struct strpool *strings, enum plan_type type,
                                       int64_t word, struct slice text);
/* The text is what the call makes of arguments [first, first + n), one behind the other; `spreads`: NULL in one makes
 * NULL of all. */
bool format_read_values(struct query_plan *p, struct plan_expr *x, uint32_t first, uint32_t n, format_call *call,
                        struct slice text, bool spreads);
format_call format_hex, format_sql_literal, format_char; /* format_value.c */
format_call format_time;                                 /* format_time.c; of seconds; `text`: as strftime() has it */
bool format_is_of_time(struct slice format);             /* one that format_time() knows */
/* The same of length(), whose result is no text. */
bool format_read_length(struct query_plan *p, struct plan_expr *x);
bool format_counts(const struct plan_expr *x);
/* Appends a value of any type but NULL, as CAST AS TEXT gives it; false: no memory. */
bool format_put(struct format_text *t, const struct strpool *strings, enum plan_type type, int64_t word);
bool format_put_text(struct format_text *t, struct slice s);
enum format_result format_length(const struct plan_expr *x, const struct strpool *strings, const int64_t *const *args,
                                 uint32_t i, struct format_text *room, int64_t *out);
/* The expression itself where it is a chain of `||`, else NULL. */
const struct plan_expr *format_is_concat(const struct plan_expr *x);
/* Appends the text for row i of the arguments' words. */
enum format_result format_make(const struct plan_expr *x, const struct strpool *strings, const int64_t *const *args,
                               uint32_t i, struct format_text *out);

void call_memo_free(struct call_memo *m);
void eval_call(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out);
void lookup_rows_free(struct lookup_rows *l);
/* The values of `x IN (SELECT …)`, to be freed; NULL: there are more than that, or r->rc. */
int64_t *lookup_list(struct run *r, const struct plan_expr *x, uint32_t most, uint32_t *n);
void eval_lookup(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out);
/* Those with ranges: lookup_ranges.c. */
void lookup_ranges_free(struct lookup_ranges *l);
void eval_lookup_ranges(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out);

/* The rows of the sources, joined and filtered, are handed to `push`, in batches. */
struct sink {
    bool (*push)(struct sink *s, const struct batch *b); /* false: no more are wanted */
};
int join_run(struct run *r, struct sink *sink);
void join_close(struct run *r);

/* Hands the rows of the sources to `to`, whose numbers `t` holds, in this order. */
void run_replay(struct run *r, const struct table *t, const uint32_t *order, uint32_t n, struct sink *to);
/* ORDER BY with LIMIT: the list behind SELECT is computed for the rows that are left. top.c */
bool top_suits(const struct query_plan *p);
struct plan_answer;
void top_run(struct run *r, struct plan_answer *out);
/* Is the answer in its order as the rows come, so that the first are enough? */
bool top_comes_in_order(const struct run *r);
void run_sources(struct run *r, struct sink *to);
/* The part of `n` rows in `rows` that LIMIT and OFFSET leave, sorted by the columns of `t` from `first_order` on. */
bool run_order(struct run *r, struct plan_answer *out, const struct table *t, uint32_t first_order);

/* The rows that an operator gives: batches.c. */
struct table *run_batches(struct run *r, uint8_t source);
/* The rows of a table that a function gives; NULL: r->rc. */
struct table *pointer_run(struct run *r, uint8_t source);
void pointer_rows_free(struct pointer_rows *rows);

/* A table whose columns have these types. */
struct table *stage_new(struct run *r, const enum plan_type *types, uint32_t n);
void stage_free(struct table *t);
bool stage_append(struct run *r, struct table *t, const int64_t *const *columns, uint32_t n);

struct sink *group_open(struct run *r);
struct table *group_finish(struct sink *s); /* NULL: r->rc */
void group_close(struct sink *s);

struct sink *window_open(struct run *r);
/* Computes the windows; the order of the rows of the stage, `n` of them. */
uint32_t *window_finish(struct sink *s, uint32_t *n);
void window_close(struct sink *s);

struct plan_answer {
    struct table *table;
    uint32_t *rows; /* the order; NULL: as they are */
    uint32_t first, n;
};

/* The rows in their order, as a table with only the items; to be stage_free()d. */
int plan_run_to_table(const struct query_plan *p, struct table **out);
/* A run by hand: the memory, then the tables of the sources; r->rc tells of failures. */
bool run_open(struct run *r, const struct query_plan *p); /* false: no memory */
void run_close(struct run *r);
void run_open_sources(struct run *r);
/* 0, RUN_GAVE_UP, or an SQLite code. */
int plan_run(const struct query_plan *p, struct plan_answer *out);
void plan_answer_free(struct plan_answer *a);

extern const sqlite3_module plan_module;
#define PLAN_POINTER "meridian-plan"

#endif
