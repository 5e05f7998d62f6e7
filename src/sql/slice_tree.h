/* Slices inside others, for table functions and for plans. */
#ifndef MERIDIAN_SQL_SLICE_TREE_H
#define MERIDIAN_SQL_SLICE_TREE_H

#include "sql/engine.h"

struct row_list {
    uint32_t *p;
    size_t n, cap;
};

/* Appends the slices inside a slice of its track, in order of rows. */
int slice_descendants(const struct table *slices, uint32_t row, struct row_list *out, stop_flag *stop);

/* The columns that functions of slices give: the row, then those of the table. */
enum { SLICE_FUNCTION_COLUMNS = 13 };
extern const struct column_def slice_function_columns[SLICE_FUNCTION_COLUMNS];

#endif
