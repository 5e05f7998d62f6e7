/* Files of SQLite's that are memory: what its sorter spills. */
#ifndef MERIDIAN_SQL_ENGINE_MEMORY_FILE_H
#define MERIDIAN_SQL_ENGINE_MEMORY_FILE_H

#include <sqlite3.h>

/* Bytes that a sqlite3_file must have room for. */
int memory_file_size(void);

/* An empty file of its own, for one thread at a time. It grows as far as SQLite's memory may (engine/heap.h). */
void memory_file_open(sqlite3_file *file);

#endif
