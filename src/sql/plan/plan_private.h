/* What the parts of a plan share.
 *
 * A plan answers one core of a SELECT, with the ORDER BY and LIMIT of its query. Its life: names.c and expr.c read the
 * tree (what is not understood ends the attempt), build.c makes operators of it, and each time the statement runs
 * run.c drives them into a table. Everything of a plan lies in its own arena, since statements outlive their text. */
#ifndef MERIDIAN_SQL_PLAN_PLAN_PRIVATE_H
#define MERIDIAN_SQL_PLAN_PLAN_PRIVATE_H

#include "sql/plan/query_plan.h"

void plan_free(void *plan);

/* ---- scope.c, names.c, expr.c: from the tree ---- */

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

/* Does `*`, or `t.*`, stand for the column? Then it is used. */
bool scope_star_takes(struct scope_column *c, const struct sql_item *star);

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
    struct correlated *correlated;       /* NULL: none */
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
/* expr_make.c */
struct plan_expr *plan_expr_new(struct query_plan *p, enum expr_op op, enum plan_type type, uint32_t n_args);
/* What x is, with room for arguments of its own, and no sources yet. */
struct plan_expr *plan_expr_like(struct query_plan *p, const struct plan_expr *x);
/* Of one argument; NULL where that is. */
struct plan_expr *plan_unary(struct query_plan *p, enum expr_op op, enum plan_type type, struct plan_expr *a);
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
/* The same for those who see but its text: GROUP BY, ORDER BY, json_extract(). */
struct plan_expr *read_json(struct reader *r, const struct sql_expr *x);
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
/* (SELECT …) that looks at nothing outside: once.c */
struct plan_expr *read_query(struct reader *r, const struct sql_expr *x);
/* Functions made by SQL: inline.c. A call; `$name` in a body, or a constant; a table. */
struct plan_expr *read_sql_function(struct reader *r, const struct sql_expr *x);
bool is_sql_function(const struct reader *r, const struct sql_expr *x);
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
/* bounds.c: the bounds of the trace, which are no source but constants; false: another table, or not understood. */
bool read_bounds_table(struct reader *r, const struct sql_from *f, bool left);
/* Does SQLite call one of them so? */
bool bounds_are_named(const struct query_plan *p, struct sql_name printed);
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
/* One more column of it; false: SQLite would give it a name that is not known. */
bool scope_add_column(struct reader *r, struct scope_entry *e, struct sql_name name, struct plan_expr *x);
/* May a query within the expression have an aggregate that SQLite takes for one of the query around, of this scope?
 * owner.c */
bool owner_may_be(const struct reader *r, const struct sql_expr *x);
/* `joined`: those that USING has made one with another, too; NULL: none. */
struct scope_column *scope_find_in(const struct scope_entry *e, struct sql_name name, bool joined);
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
/* A query within an expression that reads columns of the rows outside: correlated.c. */
struct correlated {
    struct reader *outer;
    const struct sql_select *core;
    const struct sql_expr *value, *whole; /* as in struct keyed */
    struct plan_expr *args[PLAN_MAX_KEYS];
    uint32_t n;
};

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
/* NULL: it reads nothing outside, or is not understood. */
struct query_plan *plan_build_correlated(const struct sql_query *q, struct correlated *c);
/* A column of the rows outside; NULL: it is none. */
struct plan_expr *read_correlated_column(struct reader *r, const struct sql_expr *x);
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
/* Hands tests of the steps down into the queries that give their rows: push.c. */
void plan_push_tests(struct query_plan *p);
/* Does the range compare a column by which the table is sorted? */
bool steps_is_sorted_range(const struct query_plan *p, const struct plan_range *r);
/* Do the ranges bound from both ends what the first of them compares? Rows between them are few then. */
bool steps_has_both_bounds(const struct plan_step *s);
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
/* The same of a query that rows outside ask. correlated.c */
bool correlated_settle(struct query_plan *p);
/* Which min() or max() gives bare columns their row; false when SQLite has rules of its own. */
bool plan_settle_extreme(struct query_plan *p);

/* Of args that are not decoded, how many rows the plan is likely to look at: args_rows.c. */
uint32_t args_rows_likely(const struct query_plan *p, uint8_t source);

/* ---- worth.c ---- */

/* Rows of one table, as they come; or the first of them, where they are asked for in that order. */
bool plan_is_scan(const struct query_plan *p);
/* The same by its own columns: their numbers are sorted, and nothing is copied. */
bool plan_sorts_rows(const struct query_plan *p);
/* Is the least or greatest of columns that sort the only table all that is asked for? Two rows tell it. */
bool plan_looks_at_ends(const struct query_plan *p);
/* `inner`: of a query within another; `direct`: its rows go straight to the caller. */
bool plan_is_worth_it(const struct query_plan *p, bool inner, bool direct);
/* Small tables are not worth it, unless a larger one is there. */
bool plan_is_small(const struct reader *r);
/* Groups that SQLite makes one by one, as the rows of a table come: it reads no more of them than LIMIT asks for. */
bool plan_stops_after_groups(const struct reader *r);
/* The same of rows of a join, in an order that they come in. */
bool plan_stops_in_order(const struct reader *r);

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
/* True when the rows that the steps give are in that order. */
bool loops_agree(const struct query_plan *p);

/* ---- index_order.c: indexes that SQLite makes for one statement ---- */

struct made_indexes;
/* Those of a statement, from EXPLAIN; NULL: not known. */
const struct made_indexes *index_order_read(struct planner *planner, const char *text);
/* The rows of the next loop come from one of them. */
struct index_use {
    const struct made_indexes *made; /* NULL: not known */
    uint32_t nth;                    /* of them */
    uint8_t source;
    struct sql_name name;        /* of the query or view that it is made of */
    int16_t keys[PLAN_MAX_KEYS]; /* columns that are equal to others */
    uint32_t n_keys;
};
/* Adds by what they are sorted; false: that is not known. */
bool index_order_add(struct query_plan *p, const struct index_use *use);

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
    struct correlated_rows **correlated;
    int64_t **results; /* by window */
    struct join *join; /* what the sources are joined by, between the rounds of a recursion */
    bool keeps;        /* it is to be kept until run_close() */
    uint64_t serial, bytes, most;
    uint64_t most_found, found; /* rows that the sources may give, and have given; 0: any number */
    uint64_t visited;           /* rows of tables that were looked at */
};

bool run_alloc(struct run *r, uint64_t bytes); /* counts memory; false when it is too much */
bool run_stopped(struct run *r);
/* Counts the texts, of n bytes or a few each, that have entered the string pool since it had `before`. The pool gives
 * nothing back, so what all plans of an engine add to it is bounded: then the plan gives up. */
void run_note_texts(struct run *r, uint32_t before, size_t n);

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

/* Those that the rows of a batch ask: correlated_rows.c. */
void correlated_rows_free(struct correlated_rows *c);
void eval_correlated(struct run *r, const struct plan_expr *x, const struct batch *b, int64_t *out);

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
