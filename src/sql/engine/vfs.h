/* Where SQLite puts its files: named databases on disk, temporary ones in memory. */
#ifndef MERIDIAN_SQL_ENGINE_VFS_H
#define MERIDIAN_SQL_ENGINE_VFS_H

/* The name to open connections with; registered on first use. NULL (SQLite's default) when it cannot be made. */
const char *sql_vfs_name(void);

#endif
