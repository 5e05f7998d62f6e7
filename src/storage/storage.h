/* Everything that is known about a loaded trace: tables, strings, argument sets, stats.
 *
 * The importer fills it, SQL reads it. For each table of tables.def this header makes:
 *     struct slice_row           one row: integers as int64_t (COL_NULL for NULL), strings as strid, doubles as
 *                                double, sets of args as argset
 *     enum { slice_c_ts, ... }   column numbers
 *     slice_insert(st, &row)     appends; the row number (= id), or UINT32_MAX when out of memory (latched)
 *     slice_insert_chunk(st, &row)  COL_CHUNK_ROWS rows that are the same (table_append_chunk())
 *     T_slice                    the table's number: st->t[T_slice]
 * ROW_GET(st, slice, ts, row) and ROW_SET(st, slice, dur, row, word) read and change words, ROW_ARGS(st, slice,
 * arg_set_id, row) and ROW_SET_ARGS(…, set) those of sets of args. A nullable double is given as
 * column_f64(COL_NULL_F64). */
#ifndef MERIDIAN_STORAGE_STORAGE_H
#define MERIDIAN_STORAGE_STORAGE_H

#include "base/error.h"
#include "base/vec.h"
#include "storage/args.h"
#include "storage/stats.h"
#include "storage/table.h"
#include "storage/tables.def"

enum table_id {
#define X(T, name, COLUMNS, doc) T_##T,
    TABLES(X)
#undef X
        T_COUNT
};

extern const struct table_def table_defs[T_COUNT];

struct storage {
    struct strpool strings;
    struct args args;
    struct stats stats;
    struct table t[T_COUNT];
    VEC(strid) video_data;  /* by row of video_frames: the picture, or the setup of the decoder */
    int64_t trace_start_ns; /* trace_bounds, set by storage_finalize() */
    int64_t trace_end_ns;
    struct spill *spill;       /* where what is large goes when memory is scarce; NULL: nowhere */
    struct snapshot *snapshot; /* all that is in a mapped file (snapshot.h); else NULL */
};

#define ROW_FIELD_U32    int64_t
#define ROW_FIELD_I32    int64_t
#define ROW_FIELD_I64    int64_t
#define ROW_FIELD_F64    double
#define ROW_FIELD_STR    strid
#define ROW_FIELD_ARGS   argset
#define ROW_WORD_U32(v)  (v)
#define ROW_WORD_I32(v)  (v)
#define ROW_WORD_I64(v)  (v)
#define ROW_WORD_F64(v)  column_f64_word(v)
#define ROW_WORD_STR(v)  ((int64_t)(v))
#define ROW_WORD_ARGS(v) argset_cell(v)

#define C_ENUM(T, column, type, flags, doc)  T##_c_##column,
#define C_FIELD(T, column, type, flags, doc) ROW_FIELD_##type column;
#define C_STORE(T, column, type, flags, doc) t->columns[T##_c_##column].tail[at] = ROW_WORD_##type(row->column);
#define C_WORD(T, column, type, flags, doc)  words[T##_c_##column] = ROW_WORD_##type(row->column);
#define X(T, name, COLUMNS, doc)                                                                                       \
    enum T##_column{COLUMNS(C_ENUM, T) T##_n_columns};                                                                 \
    struct T##_row {                                                                                                   \
        COLUMNS(C_FIELD, T)                                                                                            \
    };                                                                                                                 \
    static inline uint32_t T##_insert(struct storage *st, const struct T##_row *row)                                   \
    {                                                                                                                  \
        struct table *t = &st->t[T_##T];                                                                               \
        if (!table_room(t))                                                                                            \
            return UINT32_MAX;                                                                                         \
        uint32_t at = t->n_rows & COL_CHUNK_MASK;                                                                      \
        COLUMNS(C_STORE, T)                                                                                            \
        return t->n_rows++;                                                                                            \
    }                                                                                                                  \
    static inline bool T##_insert_chunk(struct storage *st, const struct T##_row *row)                                 \
    {                                                                                                                  \
        int64_t words[T##_n_columns];                                                                                  \
        COLUMNS(C_WORD, T)                                                                                             \
        return table_append_chunk(&st->t[T_##T], words);                                                               \
    }
TABLES(X)
#undef X
#undef C_ENUM
#undef C_FIELD
#undef C_STORE
#undef C_WORD

#define ROW_GET(st, T, column, row)           table_get(&(st)->t[T_##T], T##_c_##column, (row))
#define ROW_SET(st, T, column, row, word)     table_set(&(st)->t[T_##T], T##_c_##column, (row), (word))
#define ROW_ARGS(st, T, column, row)          argset_of_cell(ROW_GET(st, T, column, row))
#define ROW_SET_ARGS(st, T, column, row, set) ROW_SET(st, T, column, row, argset_cell(set))

int storage_init(struct storage *st); /* -MRD_ENOMEM */
void storage_free(struct storage *st);

/* Lets columns, also of tables that SQL makes, go to a file when they take more memory than `spill` allows; it is freed
 * with the storage. Call it before anything is inserted. */
void storage_spill(struct storage *st, struct spill *spill);

/* True when any part has lost something for want of memory: the load is to fail with -MRD_ENOMEM. */
bool storage_failed(const struct storage *st);

/* Once no more rows come: summaries of every table. Trace bounds are computed by the importer before. */
void storage_finalize(struct storage *st);

/* After that: gives sets of args the numbers that others give them (args_number()), in all tables, unless those are
 * large; sets that are in none are gone. Nothing may be inserted from here on. */
void storage_number_args(struct storage *st);

/* Tables that are in a snapshot turned out to be damaged, and answers are not to be trusted: what is damaged; else
 * NULL.
 */
const char *storage_damage(const struct storage *st);

/* The number of a built-in table by its SQL name, or -1. */
int storage_find_table(const char *name);

#endif
