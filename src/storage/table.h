/* A table: a description, and columns of equal length. Row numbers are the ids.
 *
 * Built-in tables are declared in tables.def; tables that SQL creates have a description made at run time. Appending is
 * one store per column; chunks are packed as they fill. When memory runs out a row is not added and `failed` is
 * latched. */
#ifndef MERIDIAN_STORAGE_TABLE_H
#define MERIDIAN_STORAGE_TABLE_H

#include "storage/column.h"

enum col_flag {
    COL_NULLABLE = 1,
    COL_SORTED = 2,      /* declared to be non-decreasing; what really holds is in column.sorted */
    COL_SET_ID = 4,      /* sorted; rows of one set are adjacent */
    COL_HIDDEN = 8,      /* not part of SELECT * */
    COL_ARG_SET = 16,    /* sets of args: ROW_ARGS() */
    COL_ARG_PLACE = 128, /* places of sets of args, which say what a set was made of */
    COL_TOLD_FULL = 32,  /* perfetto_table_info() says that it is never NULL, as Perfetto declares it */
};

struct column_def {
    const char *name;
    uint8_t type; /* enum col_type */
    uint8_t flags;
    const char *doc;
};

struct table_def {
    const char *name; /* as SQL knows it */
    const struct column_def *columns;
    uint32_t n_columns;
    const char *doc;
};

struct table {
    const struct table_def *def;
    struct column *columns; /* def->n_columns */
    uint32_t n_rows;
    uint32_t tail_cap; /* rows for which every column's tail has room */
    bool failed;       /* a row was lost for want of memory */
    bool final;        /* table_finalize() was called and nothing was added or changed since */
};

int table_init(struct table *t, const struct table_def *def); /* -MRD_ENOMEM */
void table_free(struct table *t);

/* Takes out all rows; memory for the next ones is kept. */
void table_clear(struct table *t);

/* Makes room for one more row; false (and `failed` latched) when out of memory or at 2^32 - 2 rows. */
bool table_grow(struct table *t);

/* True when the next row's values may be stored at columns[i].tail[n_rows & COL_CHUNK_MASK]; n_rows++ then adds it. */
static inline bool table_room(struct table *t)
{
    uint32_t at = t->n_rows & COL_CHUNK_MASK;
    t->final = false;
    return __builtin_expect(at != 0 && at < t->tail_cap, 1) || table_grow(t);
}

/* Appends a row of def->n_columns words; the row number, or UINT32_MAX when out of memory. */
uint32_t table_append(struct table *t, const int64_t *words);

/* What several rows have in a column: words of their own, or `first`, first + step, … */
struct table_words {
    const int64_t *p; /* NULL: a sequence */
    int64_t first, step;
};

/* Appends `n` rows, column after column: columns[i] is of column i. False (and `failed`
 * latched) when out of memory: the first of them may be there. */
bool table_append_columns(struct table *t, const struct table_words *columns, uint32_t n);

/* Appends COL_CHUNK_ROWS rows that are the same, without a pass over them; rows so far must be a multiple of that.
 * False (and `failed` latched) when out of memory, or when there is no room for them. */
bool table_append_chunk(struct table *t, const int64_t *words);

static inline int64_t table_get(const struct table *t, uint32_t col, uint32_t row)
{
    return column_get(&t->columns[col], row);
}

static inline void table_set(struct table *t, uint32_t col, uint32_t row, int64_t word)
{
    t->final = false;
    if (!column_set(&t->columns[col], row, word))
        t->failed = true;
}

/* Computes summaries (sortedness, NULLs, ranges) once rows stop coming. May be called again after more rows. */
void table_finalize(struct table *t);

/* The first row whose value in the sorted column `col` is >= (or >, when `after`) word; n_rows when there is none. */
uint32_t table_lower_bound(const struct table *t, uint32_t col, int64_t word, bool after);

#endif
