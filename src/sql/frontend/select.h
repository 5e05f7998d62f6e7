/* A SELECT as a tree: the grammar of SQLite 3.40, parsed from the tokens of a statement.
 *
 *     struct sql_tree tree;
 *     if (sql_tree_parse(&tree, &arena, tokens, n)) … tree.query …
 *
 * What is not in the grammar (another statement, an error, nesting deeper than SQL_TREE_MAX_DEPTH) gives no tree, and
 * never an error: such text goes to SQLite as it stands, which knows how to complain. Nodes, lists and names lie in the
 * arena; names and positions point into the tokens, which must outlive the tree. Each node knows the tokens it was made
 * of; sql_tree_text() gives them back as written.
 *
 * Lists are linked by `next`, in the order of the text. */
#ifndef MERIDIAN_SQL_FRONTEND_SELECT_H
#define MERIDIAN_SQL_FRONTEND_SELECT_H

#include "sql/frontend/text.h"

enum { SQL_TREE_MAX_DEPTH = 200, SQL_TREE_MAX_HEIGHT = 1000 };

enum sql_op {
#define PLAN_OP(name, text, precedence, constraint) SQL_##name,
#define SQL_OP(name, text, precedence)              SQL_##name,
#define SQL_ALIAS(name, text)
#include "base/sql_operators.def"
    SQL_OP_COUNT
};

struct sql_span { /* tokens [first, end) of the statement, without blanks at the ends */
    uint32_t first, end;
};

struct sql_name { /* without quotes; len 0: there is none */
    const char *p;
    uint32_t len;
    uint32_t at; /* token */
};

bool sql_name_is(struct sql_name a, const char *text); /* names compare without case */
bool sql_name_equal(struct sql_name a, struct sql_name b);

enum expr_kind {
    EXPR_NULL,
    EXPR_INTEGER, /* the text is the value, of literals */
    EXPR_FLOAT,
    EXPR_STRING,
    EXPR_BLOB,
    EXPR_CURRENT,   /* CURRENT_TIME, CURRENT_DATE, CURRENT_TIMESTAMP */
    EXPR_PARAMETER, /* ?, ?1, $a, :a, @a */
    EXPR_COLUMN,    /* [[schema.]table.]name */
    EXPR_UNARY,     /* op: SUBTRACT, ADD, BIT_NOT, NOT, ISNULL, NOTNULL */
    EXPR_BINARY,    /* op; IS and ISNOT also with `distinct`: IS [NOT] DISTINCT FROM */
    EXPR_MATCH,     /* op: LIKE, GLOB, REGEXP, MATCH; args: value, pattern, escape character if any */
    EXPR_BETWEEN,   /* args: value, low, high */
    EXPR_IN,        /* args: value, then the list; or `query`; or `in_table` */
    EXPR_EXISTS,    /* query */
    EXPR_SELECT,    /* query: its first value */
    EXPR_CASE,      /* args: [base,] when, then, when, then … [, else] */
    EXPR_CAST,      /* args: value; type */
    EXPR_COLLATE,   /* args: value; name */
    EXPR_FUNCTION,  /* name, args, distinct, star, filter, over */
    EXPR_ROW,       /* (a, b): args */
};

struct sql_expr {
    uint8_t kind;  /* enum expr_kind */
    uint8_t op;    /* enum sql_op */
    bool negated;  /* NOT LIKE, NOT IN, NOT BETWEEN */
    bool distinct; /* f(DISTINCT x) */
    bool star;     /* f(*) */
    bool has_base, has_else;
    bool quoted;     /* a column whose name is in double quotes: a string when there is no such column */
    uint16_t height; /* of the tree below */
    uint32_t n_args;
    struct sql_span at;
    struct sql_name schema, table, name;
    struct sql_span type; /* of CAST */
    struct sql_expr *args, *next;
    struct sql_expr *filter;
    struct sql_window *over;
    struct sql_query *query;
    struct sql_from *in_table; /* x IN name, x IN f(…) */
};

struct sql_order { /* a term of ORDER BY */
    struct sql_expr *expr;
    bool desc, nulls_first, nulls_last;
    struct sql_order *next;
};

enum frame_bound { BOUND_NONE, BOUND_UNBOUNDED, BOUND_CURRENT, BOUND_PRECEDING, BOUND_FOLLOWING };
enum frame_end { FRAME_PRECEDING, FRAME_FOLLOWING };

struct sql_bound {
    uint8_t kind; /* enum frame_bound */
    uint8_t side; /* UNBOUNDED: enum frame_end */
    struct sql_expr *offset;
};

struct sql_window {
    struct sql_name name; /* of a WINDOW clause; OVER name */
    struct sql_name base; /* (base …) */
    struct sql_expr *partition;
    struct sql_order *order;
    struct sql_name frame; /* ROWS, RANGE or GROUPS; len 0: the default frame */
    struct sql_bound from, to;
    struct sql_name exclude; /* NO, CURRENT, GROUP or TIES */
    struct sql_span at;
    struct sql_window *next;
};

enum source_form { SOURCE_TABLE, SOURCE_FUNCTION, SOURCE_QUERY, SOURCE_GROUP };
enum { JOIN_COMMA = 1, JOIN_INNER = 2, JOIN_CROSS = 4, JOIN_LEFT = 8, JOIN_RIGHT = 16, JOIN_NATURAL = 32 };

struct sql_from { /* of a FROM clause */
    uint8_t form; /* enum source_form */
    uint8_t join; /* bits: how it joins what stands before; FULL: LEFT and RIGHT; 0: the first */
    bool indexed; /* INDEXED BY or NOT INDEXED is there */
    struct sql_name schema, name, alias;
    struct sql_expr *args;   /* SOURCE_FUNCTION */
    struct sql_query *query; /* SOURCE_QUERY */
    struct sql_from *group;  /* SOURCE_GROUP: (a JOIN b) */
    struct sql_expr *on;
    struct sql_expr *using_columns; /* EXPR_COLUMN each */
    struct sql_span at;
    struct sql_from *next;
};

struct sql_item { /* of the list behind SELECT */
    struct sql_expr *expr;
    bool star;             /* * or table.* */
    struct sql_name table; /* table.* */
    struct sql_name alias;
    struct sql_span at; /* of the expression: SQLite names a column without alias after this text */
    struct sql_item *next;
};

enum compound { COMPOUND_NONE, COMPOUND_UNION, COMPOUND_UNION_ALL, COMPOUND_INTERSECT, COMPOUND_EXCEPT };

struct sql_select {   /* one core */
    uint8_t compound; /* how it joins the core before it */
    bool distinct;
    struct sql_item *items;
    uint32_t n_items;
    struct sql_from *from;
    struct sql_expr *where, *group, *having;
    struct sql_window *windows;
    struct sql_expr *rows;   /* VALUES: EXPR_ROW each; then nothing else is there */
    struct sql_query *query; /* whose core it is */
    struct sql_span at;
    struct sql_span from_at; /* FROM and its sources */
    struct sql_select *next; /* of the compound */
    struct sql_select *next_core;
};

struct sql_cte {
    struct sql_name name;
    struct sql_expr *columns; /* EXPR_COLUMN each */
    struct sql_query *query;
    bool materialized, not_materialized;
    struct sql_cte *next, *next_cte;
};

struct sql_query {
    bool recursive; /* WITH RECURSIVE */
    struct sql_cte *ctes;
    struct sql_select *selects;
    struct sql_order *order;
    struct sql_expr *limit, *offset;
    struct sql_span at;
};

struct sql_tree {
    const struct sql_token *tokens;
    uint32_t n_tokens;
    struct sql_query *query;
    struct sql_select *cores; /* all, by next_core */
    struct sql_cte *ctes;     /* all, by next_cte */
    uint32_t n_parameters, n_windows;
};

/* The tree of p[0, n), one SELECT (with its `;` or without); false when it is none, or memory is short. */
bool sql_tree_parse(struct sql_tree *out, struct arena *arena, const struct sql_token *p, size_t n);

/* The text of some tokens, in the arena; NULL when out of memory. */
const char *sql_tree_text(const struct sql_tree *t, struct arena *arena, struct sql_span span, size_t *len);
/* What SQLite calls an item without alias that is no column: its text, with comments that stand behind it. */
const char *sql_item_text(const struct sql_tree *t, struct arena *arena, struct sql_span item, size_t *len);

/* The text of an operator ("<="), and how tightly it binds; 0: it does not stand between operands. */
const char *sql_op_text(enum sql_op op);

#endif
