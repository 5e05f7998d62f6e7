/* What a plan is: sources, expressions, steps of the join, groups, windows, and the answer. */
#ifndef MERIDIAN_SQL_PLAN_QUERY_PLAN_H
#define MERIDIAN_SQL_PLAN_QUERY_PLAN_H

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
    PLAN_MAX_NAMES = 4,             /* of a source, in EXPLAIN QUERY PLAN */
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
    X_VARIED,     /* of one type: varied.h */
    X_COMPARABLE, /* a varied value as it is compared */
    X_SUMMAND,    /* a varied value as a mixed number */
    X_ABS,
    X_LEAST, /* of two; negated: the greatest */
    X_CALL,  /* SQLite computes text; results are kept by argument */
    X_ARG,   /* of the set that the argument numbers; word: the key */
    X_LOOKUP /* in the rows of a query: are the arguments there, or which value stands beside them */
};

/* Functions of reals whose results are exact, whoever computes them. */
enum math_call { MATH_NONE, MATH_CEIL, MATH_FLOOR, MATH_SQRT };

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
    bool by_rounds;    /* the rows that ask are a source of the query, and the keys its columns: correlated.c */
    int64_t missing;   /* the value where no row has the keys */
};

struct plan_expr {
    uint8_t op;   /* enum expr_op */
    uint8_t type; /* enum plan_type */
    uint8_t sql;  /* enum sql_op */
    bool negated, list_has_null;
    bool rounds;  /* X_CALL: round() of reals to few digits */
    uint8_t math; /* X_CALL: enum math_call, of a real */
    bool mixed;   /* an integer in some rows: mixed.h */
    bool varied;  /* numbers in some rows and texts in others; then `mixed`, too: varied.h */
    char letter;  /* the affinity that SQLite would see: 'i', 'd', 't', or 'c' for none */
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
    const char *query; /* X_CALL of (SELECT …): the query itself, which has one row or none. NULL: another call */
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

/* Slices above or below another one: ancestor_slice(), descendant_slice(). Flows that can be reached from it. */
enum plan_kin { KIN_NONE, KIN_ABOVE, KIN_BELOW, KIN_FLOW };

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
    uint8_t directions; /* of flows: FLOW_OUTGOING … */
    bool relatives;
    uint32_t n_columns; /* of that one */
    struct sql_name
        printed[PLAN_MAX_NAMES]; /* as EXPLAIN QUERY PLAN may call it: by its name, or that of a view around it */
    const struct scope_entry
        *entries[PLAN_MAX_NAMES]; /* by name, while the plan is made: of a query or a view; else NULL */
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
    bool by_equal;  /* the first two ranges are both ends of an equality, of expressions */
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
    struct sql_name bounds[PLAN_MAX_NAMES]; /* tables of one row whose columns are constants: bounds.c */
    uint32_t n_bounds;
    bool bare_constant; /* of one row, as bounds are: it is NULL where an aggregate has no rows */
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
    bool limited;   /* its only source is a query with LIMIT and no order: a sort around it may choose which rows */
    bool gave_up;   /* it has been run, and SQLite's own rows are wanted */
    bool unordered; /* the order of rows is not known, and must not matter */

    bool grouped; /* aggregates or GROUP BY */
    struct plan_expr *keys[PLAN_MAX_KEYS];
    bool keys_desc[PLAN_MAX_KEYS];
    int16_t key_orders[PLAN_MAX_KEYS]; /* columns of `groups` by which these are ordered */
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

#endif
