/* The rows of a report's part, read into memory. */
#ifndef MERIDIAN_SHELL_COMPARE_REPORT_DATA_H
#define MERIDIAN_SHELL_COMPARE_REPORT_DATA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "meridian/tp.h"

#include <stdbool.h>

struct report_cell {
    bool is_number;
    double number;
    const char *text; /* as it is shown */
};

struct report_table {
    struct arena arena;
    const char **headings;
    size_t n_columns;
    VEC(struct report_cell) cells; /* row by row */
    const char *problem;           /* why there are none: the text of an error; NULL: there was none */
};

/* Reads the result of the last statement of `sql`. A statement that fails is not an error, but a table with a problem;
 * an interrupt is an error. Free in any case. */
int report_read(struct report_table *t, struct tp *tp, const char *sql, struct error *err);
void report_table_free(struct report_table *t);

static inline size_t report_rows(const struct report_table *t)
{
    return t->n_columns ? t->cells.n / t->n_columns : 0;
}

static inline const struct report_cell *report_cell(const struct report_table *t, size_t row, size_t column)
{
    return &t->cells.p[row * t->n_columns + column];
}

#endif
