/* What the files behind source.h share. */
#ifndef MERIDIAN_EXPORT_SOURCE_PRIVATE_H
#define MERIDIAN_EXPORT_SOURCE_PRIVATE_H

#include "base/arena.h"
#include "base/vec.h"
#include "export/source.h"
#include "sql/args_json.h"
#include "sql/runtime_table.h"
#include "storage/storage.h"

/* What the readable columns of a row are found by. */
enum export_key { KEY_TRACK, KEY_UTID, KEY_UPID, KEY_UCPU, KEY_MACHINE, KEY_COUNT, KEY_NONE };

enum column_how {
    FROM_TRACE, /* the trace's name */
    FROM_ROW,   /* the row number, or what stands for it */
    FROM_TABLE, /* a column of the table */
    FROM_KEY,   /* a column of the table that a key names the row of */
    FROM_CPU,   /* the number of a CPU on its machine */
    FROM_ARGS,  /* the args of a set that a column names */
};

/* Texts of one column of one block, each once. */
struct text_column {
    VEC(struct export_text)
    texts;
    VEC(uint32_t)
    marked; /* what has a code in the shared map */
};

struct source_column {
    enum column_how how;
    enum export_key key;
    uint8_t type; /* enum col_type */
    uint32_t column;
    const struct table *table;
    int64_t *ints; /* a block's: whichever the kind needs */
    double *doubles;
    uint32_t *codes;
    uint8_t *null;
    struct text_column text;
};

/* The code of a number (a strid, an args set) in the column that is being made: its place plus 1; 0: none yet. */
struct code_map {
    uint32_t *codes;
    size_t cap;
};

/* The words of a column that rows are looked up in, unpacked. */
struct flat_column {
    const struct column *column;
    int64_t *words;
};

struct export_source {
    struct engine *e; /* NULL: the rows need none */
    struct storage *st;
    const struct table *table;
    const struct table_def *declared; /* what a query's columns are known to be; NULL: nothing is */
    struct runtime_table *runtime;    /* of a query: holds `table` */
    struct export_schema schema;
    char *name;
    struct arena names; /* of columns, and the trace's */
    struct export_text trace;
    VEC(struct export_column)
    columns;
    VEC(struct source_column)
    made;
    VEC(struct export_vector)
    vectors;
    bool implicit_id;
    const uint32_t *ids; /* by row; NULL: the row number */
    uint32_t next_row;
    uint32_t block_rows;      /* room of each array below, and of the columns */
    int64_t *keys[KEY_COUNT]; /* of the rows of the block; NULL: not known for this table */
    int64_t *words;           /* a column being read */
    VEC(struct flat_column) flat;
    strid *machine_names; /* by row of machine */
    uint32_t n_machines;
    struct code_map strings, sets;
    struct args_json json;
    struct arena texts; /* of this block */
    VEC(char)
    text; /* one being made */
};

/* ---- readable.c ---- */

/* Which keys the table's rows have; adds the readable columns. */
int readable_plan(struct export_source *s, struct error *err);
/* Finds the keys of rows [first, first + n). */
void readable_find(struct export_source *s, uint32_t first, uint32_t n);
void readable_free(struct export_source *s);
/* The words of a FROM_KEY column for the block's rows. */
void readable_words(struct export_source *s, const struct source_column *c, uint32_t n, int64_t *out);

/* ---- source.c ---- */

/* Adds a column. False when out of memory. */
bool source_add(struct export_source *s, const char *name, enum export_kind kind, bool nullable, bool distinct,
                struct source_column how);
bool source_has(const struct export_source *s, const char *name);
/* The words of a column of the table, rows [first, first + n). */
void source_unpack(const struct table *t, uint32_t column, uint32_t first, uint32_t n, int64_t *out);

/* ---- text_column.c ---- */

/* Fills codes and texts of a column of strings (words are strids), or of args sets (cells); null[] is set where there
 * is none, *any_null tells of it. */
int text_column_strings(struct export_source *s, struct source_column *c, uint32_t n, bool *any_null);
int text_column_args(struct export_source *s, struct source_column *c, uint32_t n, bool *any_null);
/* A text that is UTF-8: the one given, or a copy with U+FFFD for each byte that is not. False when out of memory. */
bool text_valid(struct arena *a, const char *bytes, size_t n, struct export_text *out);

#endif
