/* Files of SQLite's that are memory while there is enough of it: what its sorter spills, and windows keep. */
#ifndef MERIDIAN_SQL_ENGINE_MEMORY_FILE_H
#define MERIDIAN_SQL_ENGINE_MEMORY_FILE_H

#include <sqlite3.h>

/* Bytes that a sqlite3_file must have room for. */
int memory_file_size(void);

/* An empty file of its own, for one thread at a time. When SQLite holds half of what it may (engine/heap.h), it goes to
 * a disk (base/spill.h); where there is none, it grows as far as SQLite's memory may. */
void memory_file_open(sqlite3_file *file);

#endif
