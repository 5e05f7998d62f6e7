/* SQL for the names that a user may write. */
#ifndef MERIDIAN_SHELL_NAMES_H
#define MERIDIAN_SHELL_NAMES_H

/* All tables and views: what was created, and the virtual tables that need no CREATE; not SQLite's own modules. */
#define SHELL_TABLE_NAMES                                                                                              \
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') UNION SELECT name FROM pragma_module_list WHERE "  \
    "name NOT GLOB 'fts[0-9]*' AND name NOT GLOB 'rtree*' AND name NOT GLOB 'pragma_*' AND name NOT GLOB 'json_*' "    \
    "AND name NOT IN ('dbstat', 'sqlite_stmt', 'bytecode', 'tables_used', '__intrinsic_dataframe', "                   \
    "'runtime_table_function')"

#define SHELL_FUNCTION_NAMES "SELECT name FROM pragma_function_list WHERE name GLOB '[a-zA-Z]*'"

/* Modules that INCLUDE PERFETTO MODULE takes. */
#define SHELL_MODULE_NAMES "SELECT DISTINCT module FROM __intrinsic_stdlib_objects"

#endif
