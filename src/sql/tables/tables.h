/* Tables and table functions about the engine itself: its stats, its tables, its modules. */
#ifndef MERIDIAN_SQL_TABLES_TABLES_H
#define MERIDIAN_SQL_TABLES_TABLES_H

#include "sql/engine.h"

/* X(subject): each file defines subject_table_functions[] and subject_table_functions_n. */
#define ENGINE_TABLE_FILES(X)                                                                                          \
    X(info)                                                                                                            \
    X(stats)                                                                                                           \
    X(stdlib_docs)

#define X(subject)                                                                                                     \
    extern const struct engine_table_function subject##_table_functions[];                                             \
    extern const size_t subject##_table_functions_n;
ENGINE_TABLE_FILES(X)
#undef X

#endif
