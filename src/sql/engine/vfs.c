/* Where SQLite puts its files: named databases (ATTACH, export) on disk, what the sorter spills in memory.
 *
 * Sorted runs in memory instead of files make large sorts three times as fast; but a connection has one VFS for all its
 * files, so this one chooses by what is opened. */
#include "sql/engine/vfs.h"

#include "sql/engine/memory_file.h"

#include <pthread.h>
#include <sqlite3.h>

/* SQLite keeps registered VFSs for the life of the process: written once, before any use. */
static sqlite3_vfs vfs;
static sqlite3_vfs *disk;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    (void)self;
    const int named = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL | SQLITE_OPEN_SUPER_JOURNAL;
    if (name && flags & named)
        return disk->xOpen(disk, name, file, flags, out_flags);
    memory_file_open(file);
    if (out_flags)
        *out_flags = flags | SQLITE_OPEN_MEMORY;
    return SQLITE_OK;
}

static void make(void)
{
    disk = sqlite3_vfs_find(NULL);
    if (!disk)
        return;
    vfs = *disk;
    vfs.zName = "meridian";
    vfs.pNext = NULL;
    vfs.xOpen = open_file;
    if (memory_file_size() > vfs.szOsFile)
        vfs.szOsFile = memory_file_size();
    sqlite3_vfs_register(&vfs, 0);
}

const char *sql_vfs_name(void)
{
    pthread_once(&once, make);
    return vfs.zName;
}
