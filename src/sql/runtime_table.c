/* Tables made by SQL: describes them, detects column types, counts references. */
#include "sql/runtime_table.h"

#include "base/alloc.h"

#include <string.h>

static const char *const type_names[] = {"NULL", "int64", "double", "string"};
static const uint8_t column_types[] = {COL_I64, COL_I64, COL_F64, COL_STR};

struct runtime_table *runtime_table_ref(struct runtime_table *t)
{
    t->refs++;
    return t;
}

void runtime_table_unref(struct runtime_table *t)
{
    if (!t || --t->refs > 0)
        return;
    if (t->table.def)
        table_free(&t->table);
    for (uint32_t i = 0; t->columns && i < t->def.n_columns; i++)
        mem_free((void *)(uintptr_t)t->columns[i].name);
    mem_free(t->columns);
    mem_free(t);
}

static bool is_name(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *s && !(*s >= '0' && *s <= '9') && strspn(s, letters) == strlen(s);
}

enum { MAX_COLUMNS = 2000 }; /* SQLite's own limit; the hidden _auto_id takes one */

static int check_names(uint32_t n, const char *const *names, struct error *err)
{
    if (n >= MAX_COLUMNS)
        return error_set(err, -MRD_ESQL, "a table has less than %d columns, not %u", MAX_COLUMNS, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_name(names[i]))
            return error_set(err, -MRD_ESQL,
                             "Column name '%s' has to start with a letter and can only consist of "
                             "alphanumeric characters and underscores.",
                             names[i]);
        if (sqlite3_stricmp(names[i], "_auto_id") == 0)
            return error_set(err, -MRD_ESQL, "column name '_auto_id' is reserved for row numbers; use another name");
        for (uint32_t k = 0; k < i; k++)
            if (sqlite3_stricmp(names[i], names[k]) == 0)
                return error_set(err, -MRD_ESQL, "multiple columns are named: %s", names[i]);
    }
    return 0;
}

int table_builder_init(struct table_builder *b, struct storage *st, uint32_t n, const char *const *names,
                       const uint8_t *types, struct error *err)
{
    *b = (struct table_builder){.strings = &st->strings};
    int rc = check_names(n, names, err);
    if (rc)
        return rc;
    struct runtime_table *t = b->t = mem_zalloc(sizeof *t);
    b->types = mem_zalloc(n + 1);
    b->row = mem_zalloc(((size_t)n + 1) * sizeof *b->row);
    bool ok = t && b->types && b->row;
    if (ok) {
        t->refs = 1;
        t->columns = mem_zalloc(((size_t)n + 1) * sizeof *t->columns);
        ok = t->columns != NULL;
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        b->types[i] = types ? types[i] : RUNTIME_ANY;
        t->columns[i] = (struct column_def){mem_strdup(names[i]), column_types[b->types[i]], COL_NULLABLE, ""};
        t->def.n_columns = i + 1;
        ok = t->columns[i].name != NULL;
    }
    if (ok) {
        t->def = (struct table_def){"", t->columns, n, ""};
        ok = table_init(&t->table, &t->def) == 0;
    }
    if (!ok) {
        table_builder_abort(b);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < n; i++) {
        b->row[i] = column_null(column_types[b->types[i]]);
        t->table.columns[i].spill = st->spill;
    }
    return 0;
}

static int mismatch(const struct table_builder *b, uint32_t column, enum runtime_type got, struct error *err)
{
    return error_set(err, -MRD_ESQL, "Type mismatch in column '%s' at row %u. Existing type: %s, fetched type: %s",
                     b->t->columns[column].name, b->t->table.n_rows, type_names[b->types[column]], type_names[got]);
}

/* The first value that is not NULL decides the type of a column. */
static void decide(struct table_builder *b, uint32_t column, enum runtime_type type)
{
    struct table *t = &b->t->table;
    struct column *c = &t->columns[column];
    b->types[column] = (uint8_t)type;
    b->t->columns[column].type = column_types[type];
    column_retype(c, column_types[type], t->n_rows - (c->n_chunks << COL_CHUNK_SHIFT));
}

int table_builder_int(struct table_builder *b, uint32_t column, int64_t v, struct error *err)
{
    if (b->types[column] == RUNTIME_ANY)
        decide(b, column, RUNTIME_LONG);
    if (b->types[column] == RUNTIME_LONG)
        b->row[column] = v;
    else if (b->types[column] == RUNTIME_DOUBLE)
        b->row[column] = column_f64_word((double)v);
    else
        return mismatch(b, column, RUNTIME_LONG, err);
    return 0;
}

/* Appends what `from` has in its first `n` rows to the one column of `to`, as doubles. The row whose number no double
 * is, or n. */
static uint32_t append_doubles(struct table *to, const struct column *from, uint32_t n)
{
    enum { WHOLE_BITS = 53 };
    const int64_t largest = INT64_C(1) << WHOLE_BITS;
    for (uint32_t row = 0; row < n && !to->failed; row++) {
        int64_t v = column_get(from, row);
        if (v != COL_NULL && (v < -largest || v > largest))
            return row;
        int64_t word = v == COL_NULL ? COL_NULL_F64 : column_f64_word((double)v);
        table_append(to, &word);
    }
    return n;
}

/* A column of integers, found or declared, becomes one of doubles when the first of those comes. */
static int widen(struct table_builder *b, uint32_t column, struct error *err)
{
    static const struct column_def one_column = {"", COL_F64, COL_NULLABLE, ""};
    static const struct table_def one = {"", &one_column, 1, ""};
    struct table *t = &b->t->table, doubles;
    if (table_init(&doubles, &one))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    doubles.columns[0].spill = t->columns[column].spill;
    uint32_t n = append_doubles(&doubles, &t->columns[column], t->n_rows);
    int64_t *tail =
        doubles.failed || !t->tail_cap ? NULL : mem_realloc(doubles.columns[0].tail, t->tail_cap * sizeof *tail);
    int rc = 0;
    if (n < t->n_rows)
        rc = error_set(err, -MRD_ESQL, "Column '%s': %lld at row %u is not a double, and doubles follow",
                       b->t->columns[column].name, (long long)column_get(&t->columns[column], n), n);
    else if (!tail && t->tail_cap)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    if (tail)
        doubles.columns[0].tail = tail;
    if (!rc) {
        struct column old = t->columns[column];
        t->columns[column] = doubles.columns[0];
        doubles.columns[0] = old;
        b->types[column] = RUNTIME_DOUBLE;
        b->t->columns[column].type = COL_F64;
    }
    table_free(&doubles);
    return rc;
}

int table_builder_double(struct table_builder *b, uint32_t column, double v, struct error *err)
{
    if (b->types[column] == RUNTIME_ANY)
        decide(b, column, RUNTIME_DOUBLE);
    int rc = b->types[column] == RUNTIME_LONG ? widen(b, column, err) : 0;
    if (rc)
        return rc;
    if (b->types[column] != RUNTIME_DOUBLE)
        return mismatch(b, column, RUNTIME_DOUBLE, err);
    b->row[column] = column_f64_word(v);
    return 0;
}

int table_builder_text(struct table_builder *b, uint32_t column, const char *s, size_t len, struct error *err)
{
    if (b->types[column] == RUNTIME_ANY)
        decide(b, column, RUNTIME_STRING);
    if (b->types[column] != RUNTIME_STRING)
        return mismatch(b, column, RUNTIME_STRING, err);
    if (s != b->cached_text[column % TABLE_BUILDER_CACHE] || !s ||
        s != strpool_cstr(b->strings, b->cached_id[column % TABLE_BUILDER_CACHE])) {
        strid id = strpool_intern(b->strings, s ? s : "", len);
        if (!id)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        b->cached_text[column % TABLE_BUILDER_CACHE] = strpool_cstr(b->strings, id);
        b->cached_id[column % TABLE_BUILDER_CACHE] = id;
    }
    b->row[column] = b->cached_id[column % TABLE_BUILDER_CACHE];
    return 0;
}

int table_builder_value(struct table_builder *b, uint32_t column, sqlite3_value *v, struct error *err)
{
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER:
        return table_builder_int(b, column, sqlite3_value_int64(v), err);
    case SQLITE_FLOAT:
        return table_builder_double(b, column, sqlite3_value_double(v), err);
    case SQLITE_TEXT: {
        const char *s = (const char *)sqlite3_value_text(v);
        return table_builder_text(b, column, s, (size_t)sqlite3_value_bytes(v), err);
    }
    case SQLITE_NULL:
        b->row[column] = column_null(b->t->table.columns[column].type);
        return 0;
    default:
        return error_set(err, -MRD_ESQL, "Column '%s' at row %u: blobs cannot be stored in a table",
                         b->t->columns[column].name, b->t->table.n_rows);
    }
}

int table_builder_commit(struct table_builder *b, struct error *err)
{
    if (stop_asked(b->stop))
        return error_set(err, -MRD_ECANCELLED, "interrupted");
    if (table_append(&b->t->table, b->row) == UINT32_MAX)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < b->t->def.n_columns; i++)
        b->row[i] = column_null(b->t->table.columns[i].type);
    return 0;
}

static void free_scratch(struct table_builder *b)
{
    mem_free(b->types);
    mem_free(b->row);
    *b = (struct table_builder){0};
}

int table_builder_finish(struct table_builder *b, struct runtime_table **out, struct error *err)
{
    if (b->t->table.failed) {
        table_builder_abort(b);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    table_finalize(&b->t->table);
    *out = b->t;
    free_scratch(b);
    return 0;
}

void table_builder_abort(struct table_builder *b)
{
    runtime_table_unref(b->t);
    free_scratch(b);
}
