/* The table functions in C, by subject; and what they share. */
#ifndef MERIDIAN_SQL_OPERATORS_TABLE_FUNCTIONS_H
#define MERIDIAN_SQL_OPERATORS_TABLE_FUNCTIONS_H

#include "base/vec.h"
#include "sql/engine.h"
#include "sql/slice_tree.h"

/* X(subject): each file defines subject_table_functions[] and subject_table_functions_n. */
#define TABLE_FUNCTION_FILES(X)                                                                                        \
    X(flow)                                                                                                            \
    X(layout)                                                                                                          \
    X(profile_tree)                                                                                                    \
    X(slice)                                                                                                           \
    X(weighted)                                                                                                        \
    X(winscope)

#define X(subject)                                                                                                     \
    extern const struct engine_table_function subject##_table_functions[];                                             \
    extern const size_t subject##_table_functions_n;
TABLE_FUNCTION_FILES(X)
#undef X

/* The row that an argument names: UINT32_MAX for NULL; errors for what is not a row. */
int start_row(sqlite3_value *v, uint32_t n_rows, uint32_t *row, struct error *err);

#endif
