/* The generic virtual table over `struct table`: planning, filtering, sorting and walking rows natively.
 *
 * Inside of src/sql/vtab only, except vtab_register_*(). The parts:
 *   connect.c  schema text, connecting, registration        plan.c   xBestIndex; the plan as text in idxStr
 *   test.c     a constraint with its value -> a test        scan.c   tests over packed chunks
 *   index.c    rows by value, built when lookups repeat     order.c  sorting of selected rows
 *   named_index.c  CREATE PERFETTO INDEX                    cursor.c xFilter, xNext, xColumn
 *
 * A SQL column is a column of the table, the row number (`id`, `_auto_id`), or an argument of a table function. */
#ifndef MERIDIAN_SQL_VTAB_H
#define MERIDIAN_SQL_VTAB_H

#include "base/vec.h"
#include "sql/engine.h"

enum { VTAB_ROW = -1, VTAB_ARG = -2 }; /* argument k is VTAB_ARG - k */

enum { PLAN_MAX_TERMS = 60, PLAN_MAX_ORDER = 12 };

struct plan_order {
    int16_t column; /* as vtab_columns.at */
    bool desc;
};

/* What CREATE PERFETTO INDEX made. */
struct named_index {
    char *name;
    struct plan_order columns[PLAN_MAX_ORDER]; /* of the table; no doubles */
    uint32_t n_columns;
    uint32_t *rows; /* all rows, ordered by the columns; NULL until looked into */
};

/* Where the rows of a SQL name come from. Outlives the vtab, which SQLite takes down and connects again whenever a
 * statement that changes the schema fails. */
struct vtab_source {
    uint32_t refs; /* each vtab made of it has one: SQLite may keep an old vtab beside a new one */
    struct engine *engine;
    const struct table_def *def;
    struct table *table;                          /* the rows; NULL: computed at each xFilter */
    const struct engine_table_function *function; /* how; its arguments are the last columns */
    struct runtime_table *runtime;                /* one reference, when `table` is inside it */
    bool implicit_id;                             /* SQL column 0 is the row number, the table's columns follow */
    bool auto_id;                                 /* a hidden column _auto_id behind the table's columns */
    bool untyped;                                 /* the columns are declared without types */
    bool is_args;                                 /* `args`: one set on demand, or all of them */
    VEC(struct named_index)
    named;
};

struct vtab;
/* The name of a column as SQL numbers them; "" of an argument. */
const char *vtab_column_name(const struct vtab *v, uint32_t i, bool *hidden);

struct vtab_columns { /* the columns of a source as SQL numbers them */
    uint32_t n;
    int16_t *at; /* column of the table, VTAB_ROW or VTAB_ARG - k */
};

/* Rows by value: a counting sort of one column. */
struct column_index {
    uint32_t *rows;   /* all rows that are not NULL, by value, then by number */
    uint32_t *starts; /* dense: where the rows of value min + i begin; n_keys + 1 */
    uint32_t n_rows;
    uint32_t n_keys; /* 0: not dense, look up by binary search */
    int64_t min;
};

struct vtab {
    sqlite3_vtab base;
    struct engine *engine;
    struct vtab_source *source; /* borrowed from the module, or owned */
    struct vtab_columns columns;
    struct column_index **indexes; /* by table column; NULL where there is none */
    uint64_t *scanned;             /* by table column: rows passed over for want of an index */
    uint32_t indexed_rows;         /* state of the table when the indexes were made */
    uint32_t indexed_generation;
};

/* ---- plan ---- */

enum plan_op {
#define PLAN_OP(name, text, precedence, constraint) PLAN_##name,
#define SQL_OP(name, text, precedence)
#define SQL_ALIAS(name, text)
#include "base/sql_operators.def"
    PLAN_OP_COUNT
};

struct plan_term {
    int16_t column; /* as vtab_columns.at */
    uint8_t op;
};

struct plan {
    struct plan_term terms[PLAN_MAX_TERMS]; /* in the order of argv */
    uint32_t n_terms;
    struct plan_order order[PLAN_MAX_ORDER];
    uint32_t n_order;
    bool grouped; /* equal rows together is enough, in any order */
    bool dedupe;  /* one row of each group of equal ones is enough */
    bool one_set; /* args: decode the set of the equality on arg_set_id, its row numbers are not wanted */
};

int vtab_best_index(sqlite3_vtab *base, sqlite3_index_info *info);
/* Reads back the text that vtab_best_index() made. */
void plan_parse(struct plan *p, const char *text);

/* ---- tests ---- */

enum test_kind {
    TEST_RANGE,    /* lo <= value <= hi, not NULL */
    TEST_NE,       /* value != lo, not NULL */
    TEST_ISNOT,    /* value != lo, NULL passes */
    TEST_NULL,     /* is NULL */
    TEST_NOT_NULL, /* is not NULL */
    TEST_SET,      /* one of the words of the set */
    TEST_STRING,   /* string that passes the predicate, not NULL */
};

struct test {
    int16_t column; /* of the table, or VTAB_ROW */
    uint8_t kind;
    uint8_t type;   /* of the column: doubles are tested by their order words, NULL differs */
    int64_t lo, hi; /* inclusive */
    /* TEST_SET */
    int64_t *set; /* sorted, distinct; owned */
    uint32_t n_set;
    uint8_t *bits; /* set[0] + i is in; NULL when the set is too wide; owned */
    /* TEST_STRING */
    uint8_t op;         /* PLAN_LT.. PLAN_GE, PLAN_GLOB, PLAN_NE */
    struct slice text;  /* owned copy, NUL-terminated */
    uint8_t *memo;      /* by strid: 0 not known, 1 fails, 2 passes; owned */
    uint32_t memo_size; /* strings known when it was made */
    const struct strpool *strings;
};

/* Makes the test of `op` on a column of type `type` (VTAB_ROW: COL_U32) and a value. 1: *out is a test; 0: everything
 * passes (or the value's type does not let us decide: SQLite checks again); TEST_FAILS: no row passes; negative: error.
 */
enum { TEST_FAILS = 2 };
int test_make(struct test *out, int16_t column, enum col_type type, enum plan_op op, sqlite3_value *v,
              const struct strpool *strings);
void test_free(struct test *t);

/* Makes the test of a column for words that words_sort() has sorted, one at least; it takes them. */
void test_make_set(struct test *out, int64_t *words, uint32_t n);

/* Sorts words, ascending, each once; how many are left. */
uint32_t words_sort(int64_t *words, uint32_t n);

/* Whether the column's least and greatest word tell that no row passes. Those of text are told apart by their ids: a
 * text that came later than the trace's is in no row of it. */
static inline bool test_is_outside(const struct test *test, const struct table *t)
{
    if (test->kind != TEST_RANGE || test->column < 0 || test->type == COL_F64 || !t->final)
        return false;
    const struct column *c = &t->columns[test->column];
    return test->lo > c->max || test->hi < c->min;
}

/* Does a word of the column pass? */
bool test_word(struct test *t, int64_t word);

/* ---- scan ---- */

/* Writes the numbers of the rows of [lo, hi) (within one chunk) that pass all tests to out, ascending; their count. */
uint32_t scan_chunk(const struct table *t, struct test *tests, uint32_t n_tests, uint32_t lo, uint32_t hi,
                    uint32_t *out);

/* Keeps those of rows[0..n) that pass; their count. */
uint32_t scan_rows(const struct table *t, struct test *tests, uint32_t n_tests, uint32_t *rows, uint32_t n);

/* ---- index ---- */

/* The index of a column, made now when there is none; NULL when out of memory. */
const struct column_index *index_get(struct vtab *v, const struct table *t, uint32_t column);
/* Drops indexes made before the table changed. */
void index_refresh(struct vtab *v, const struct table *t);
/* The same if it is there already. */
const struct column_index *index_peek(struct vtab *v, const struct table *t, uint32_t column);
/* Takes note that so many rows are about to be passed over; true: an index is to be made instead. */
bool index_is_due(struct vtab *v, const struct table *t, uint32_t column, uint32_t n_rows);
/* The rows of value `word`, ascending: *rows, and how many. */
uint32_t index_find(const struct column_index *x, const struct table *t, uint32_t column, int64_t word,
                    const uint32_t **rows);
void index_drop_all(struct vtab *v);

/* ---- named indexes ---- */

struct named_match {
    const uint32_t *rows; /* that pass the tests decided, by the columns of the index */
    uint32_t n;
    uint64_t decided; /* bit i: test i */
};

/* False when out of memory. Indexes that were made before the table grew are made anew when they are looked into. */
bool named_index_add(struct vtab_source *src, const char *name, const struct plan_order *columns, uint32_t n);
bool named_index_exists(const struct vtab_source *src, const char *name);
/* The oldest of that name. */
void named_index_drop(struct vtab_source *src, const char *name);
void named_index_forget_rows(struct vtab_source *src);
void named_index_free(struct vtab_source *src);
/* The fewest rows that an index gives for the tests; false when none helps. */
bool named_index_find(struct vtab *v, const struct table *t, const struct test *tests, uint32_t n_tests,
                      struct named_match *best);

/* ---- order ---- */

/* Sorts ascending rows by the terms (stable). `grouped`: equal ones together is enough. `limit`: only the first so many
 * need to be right. False when out of memory, or stopped: engine_gave_up() tells. */
bool order_rows(const struct table *t, const struct strpool *strings, const struct plan_order *terms, uint32_t n_terms,
                bool grouped, uint32_t limit, uint32_t *rows, uint32_t n, stop_flag *stop);
/* The same for rows in any order. */
bool order_rows_anew(const struct table *t, const struct strpool *strings, const struct plan_order *terms,
                     uint32_t n_terms, uint32_t *rows, uint32_t n, stop_flag *stop);
/* Sorts row numbers. False as above. */
bool order_ascending(uint32_t *rows, uint32_t n, stop_flag *stop);
/* Drops rows equal to the one before in all terms; the count left. */
uint32_t order_dedupe(const struct table *t, const struct plan_order *terms, uint32_t n_terms, uint32_t *rows,
                      uint32_t n);
/* How many leading terms are met by rows in ascending (*reverse false) or descending (true) number. */
bool order_is_natural(const struct table *t, const struct plan_order *terms, uint32_t n_terms, bool grouped,
                      bool *reverse);

/* ---- cursor ---- */

int vtab_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out);
int vtab_close(sqlite3_vtab_cursor *base);
int vtab_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv);
int vtab_next(sqlite3_vtab_cursor *base);
int vtab_eof(sqlite3_vtab_cursor *base);
int vtab_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column);
int vtab_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out);

/* ---- registration ---- */

/* Every built-in table of the storage, as eponymous modules. */
int vtab_register_builtin(struct engine *e, struct error *err);
/* The module behind engine_add_table(). */
int vtab_register_runtime(struct engine *e, struct error *err);
bool vtab_is_runtime(const struct engine *e, const char *name);
void vtab_free_runtime(struct engine *e); /* after SQLite has closed */
/* Table functions, as eponymous modules. */
int vtab_register_function(struct engine *e, const struct engine_table_function *fn, struct error *err);
/* A table made from `select` when its name is used for the first time. `types`: those of its n_types columns (enum
 * runtime_type), in their order. All is copied. */
int vtab_register_lazy(struct engine *e, const char *name, const char *select, const uint8_t *types, uint32_t n_types,
                       struct error *err);
bool vtab_is_lazy(const struct engine *e, const char *name);

/* Decoding argument sets into a table of T_args' shape: appends one set to `out`, or fills engine.all_args unless that
 * is done. An SQLite code. */
int args_one(struct engine *e, argset set, struct arg_list *scratch, struct table *out);
int args_all(struct engine *e);
/* Some of them, into a table that is not open yet: of the sets whose bit is set (NULL: of all), those whose `column`
 * has that key (-1: whatever it has). */
struct args_part {
    const uint64_t *sets;
    int column; /* args_c_key, args_c_flat_key */
    strid key;
};
int args_some(struct engine *e, const struct args_part *part, struct table *out);
/* What a plan is made for while nobody has had all args decoded: about as many rows, of which nothing is known. NULL:
 * no memory. */
const struct table *args_outline(struct engine *e);

#endif
