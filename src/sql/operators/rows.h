/* X(file): each file of operators that has functions defines `file_functions`. */
#ifndef MERIDIAN_SQL_OPERATORS_ROWS_H
#define MERIDIAN_SQL_OPERATORS_ROWS_H

#include "sql/functions/functions.h"

#define OPERATOR_FILES(X)                                                                                              \
    X(aggregates)                                                                                                      \
    X(counter_intervals)                                                                                               \
    X(dominator)                                                                                                       \
    X(flamegraph_config)                                                                                               \
    X(graph)                                                                                                           \
    X(graph_scan)                                                                                                      \
    X(intervals)                                                                                                       \
    X(slices)                                                                                                          \
    X(struct_value)                                                                                                    \
    X(table_ptr)                                                                                                       \
    X(tree)                                                                                                            \
    X(tree_value)                                                                                                      \
    X(wakeup)

#define X(file) extern const struct function_rows file##_functions;
OPERATOR_FILES(X)
#undef X

#endif
