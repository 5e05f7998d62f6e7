/* Cells by their types. */
#include "summary/run/cells.h"

static const char *const cell_names[] = {
    [SQLITE_INTEGER] = "an integer", [SQLITE_FLOAT] = "a double", [SQLITE_TEXT] = "a string",
    [SQLITE_BLOB] = "a blob",        [SQLITE_NULL] = "NULL",
};

/* Which cells a dimension of each type takes. */
static const struct {
    const char *name;
    int cell;
} types[] = {
    [MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__STRING] = {"STRING", SQLITE_TEXT},
    [MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__INT64] = {"INT64", SQLITE_INTEGER},
    [MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__DOUBLE] = {"DOUBLE", SQLITE_FLOAT},
    [MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__BOOLEAN] = {"BOOLEAN", SQLITE_INTEGER},
};

static int check_type(sqlite3_stmt *row, int column, int cell, dimension_type type, struct error *err)
{
    if (cell == SQLITE_NULL)
        return 0;
    if (cell == SQLITE_BLOB)
        return error_set(err, -MRD_EINVALID, "a row has a blob, which no dimension takes");
    if (type && types[type].cell != cell)
        return error_set(err, -MRD_EINVALID, "its type is %s, and a row has %s", types[type].name, cell_names[cell]);
    if (type == MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__BOOLEAN) {
        long long v = sqlite3_column_int64(row, column);
        if (v != 0 && v != 1)
            return error_set(err, -MRD_EINVALID, "its type is BOOLEAN, and a row has %lld (0 and 1 are)", v);
    }
    return 0;
}

int cell_put_dimension(struct pb_writer *w, uint32_t id, sqlite3_stmt *row, int column, dimension_type type,
                       struct error *err)
{
    int cell = sqlite3_column_type(row, column);
    int rc = check_type(row, column, cell, type, err);
    if (rc < 0)
        return rc;
    size_t mark = pb_begin(w, id);
    if (cell == SQLITE_NULL) {
        pb_put_bytes(w, DIMENSION_NULL, NULL, 0);
    } else if (cell == SQLITE_TEXT) {
        const unsigned char *text = sqlite3_column_text(row, column);
        pb_put_text(w, DIMENSION_STRING, slice_of(text, text ? (size_t)sqlite3_column_bytes(row, column) : 0));
    } else if (cell == SQLITE_FLOAT) {
        pb_put_double(w, DIMENSION_DOUBLE, sqlite3_column_double(row, column));
    } else if (type == MRD__TRACE_METRIC_V2_SPEC__DIMENSION_TYPE__BOOLEAN) {
        pb_put_varint(w, DIMENSION_BOOL, (uint64_t)sqlite3_column_int64(row, column));
    } else {
        pb_put_i64(w, DIMENSION_INT64, sqlite3_column_int64(row, column));
    }
    pb_end(w, mark);
    return 0;
}

int cell_put_value(struct pb_writer *w, uint32_t id, sqlite3_stmt *row, int column, struct error *err)
{
    int cell = sqlite3_column_type(row, column);
    if (cell == SQLITE_TEXT || cell == SQLITE_BLOB)
        return error_set(err, -MRD_EINVALID,
                         "a row has %s, and a value is a number (count texts, or make them a dimension)",
                         cell_names[cell]);
    size_t mark = pb_begin(w, id);
    if (cell == SQLITE_NULL)
        pb_put_bytes(w, VALUE_NULL, NULL, 0);
    else
        pb_put_double(w, VALUE_DOUBLE, sqlite3_column_double(row, column));
    pb_end(w, mark);
    return 0;
}

int result_column(const struct engine_result *r, const char *name)
{
    for (int i = 0; i < r->n_columns; i++)
        if (strcmp(engine_result_column_name(r, i), name) == 0)
            return i;
    return -1;
}
