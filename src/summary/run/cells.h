/* The cells of a row as fields of a summary: dimensions with their types, values. */
#ifndef MERIDIAN_SUMMARY_RUN_CELLS_H
#define MERIDIAN_SUMMARY_RUN_CELLS_H

#include "schema/summary.pb-c.h"
#include "sql/engine.h"
#include "wire/pb_writer.h"

/* Field numbers of what is written row by row (a test compares them with the schema). */
enum {
    SUMMARY_METADATA = 2,
    SUMMARY_BUNDLES = 3,
    METADATA_KEY = 1,
    METADATA_VALUE = 2,
    BUNDLE_ID = 1,
    BUNDLE_ROW = 2,
    BUNDLE_SPECS = 3,
    BUNDLE_INTERNED = 4,
    ROW_VALUES = 1,
    ROW_DIMENSION = 2,
    VALUE_NULL = 1,
    VALUE_DOUBLE = 2,
    DIMENSION_STRING = 1,
    DIMENSION_INT64 = 2,
    DIMENSION_DOUBLE = 3,
    DIMENSION_NULL = 4,
    DIMENSION_BOOL = 5,
    INTERNED_ROWS = 2,
    INTERNED_KEY = 1,
    INTERNED_VALUES = 2,
};

typedef Mrd__TraceMetricV2Spec__DimensionType dimension_type;

/* Writes a cell as field `id`, a Row.Dimension. NULL fits every type; type 0 takes what the cell is. -MRD_EINVALID says
 * what the cell is instead. */
int cell_put_dimension(struct pb_writer *w, uint32_t id, sqlite3_stmt *row, int column, dimension_type type,
                       struct error *err);

/* Writes a cell as field `id`, a Row.Value. -MRD_EINVALID: it is not a number. */
int cell_put_value(struct pb_writer *w, uint32_t id, sqlite3_stmt *row, int column, struct error *err);

/* The column of that name, or -1. The first of several. */
int result_column(const struct engine_result *r, const char *name);

#endif
