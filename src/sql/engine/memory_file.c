/* Files that are memory, until there is too much of them. SQLite's own ("memdb") are one allocation each, of which it
 * makes none above 2 GiB, doubled whenever it is full: a sort of more than 1 GiB failed. These are mappings, which grow
 * without being copied; of a file on a disk, when memory is scarce. */
#include "sql/engine/memory_file.h"

#include "base/alloc.h"
#include "base/spill.h"
#include "sql/engine/heap.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEP = 64 << 10, SECTOR = 4096 };

struct memory_file {
    sqlite3_file base;
    uint8_t *p;
    int64_t size, room; /* bytes of the file; of the mapping */
    int fetched;        /* pieces that SQLite points into: the mapping must not move */
    int disk;           /* the file that is mapped; -1: it is memory */
};

static struct memory_file *file_of(sqlite3_file *f)
{
    return (struct memory_file *)f;
}

static int close_file(sqlite3_file *file)
{
    struct memory_file *f = file_of(file);
    if (f->p)
        munmap(f->p, (size_t)f->room);
    if (f->disk < 0)
        sql_heap_give(f->size);
    else
        close(f->disk);
    *f = (struct memory_file){.disk = -1};
    return SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    const struct memory_file *f = file_of(file);
    int64_t there = at >= f->size ? 0 : f->size - at < n ? f->size - at : n;
    if (there)
        memcpy(out, f->p + at, (size_t)there);
    memset((uint8_t *)out + there, 0, (size_t)(n - there));
    return there == n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

/* From here on it is a file on a disk. False when there is none or no room on it, or SQLite points into it: it stays
 * what it is. */
static bool move_to_disk(struct memory_file *f)
{
    int disk = f->fetched ? -1 : spill_file_open();
    int64_t room = f->room > STEP ? f->room : STEP;
    void *p = disk >= 0 ? spill_file_map(disk, 0, (size_t)room) : NULL;
    if (!p) {
        if (disk >= 0)
            close(disk);
        return false;
    }
    if (f->p) {
        memcpy(p, f->p, (size_t)f->size);
        munmap(f->p, (size_t)f->room);
    }
    sql_heap_give(f->size);
    f->p = p;
    f->room = room;
    f->disk = disk;
    return true;
}

static bool make_room(struct memory_file *f, int64_t size)
{
    int64_t room = f->room + f->room / 4;
    room = ((room > size ? room : size) + STEP - 1) / STEP * STEP;
    if (f->disk >= 0 && posix_fallocate(f->disk, f->room, room - f->room) != 0)
        return false;
    void *p =
        f->p ? mremap(f->p, (size_t)f->room, (size_t)room, MREMAP_MAYMOVE)
             : mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    f->p = p;
    f->room = room;
    return true;
}

static int grow(struct memory_file *f, int64_t size)
{
    if (size > f->room && f->fetched)
        return SQLITE_FULL;
    if (f->disk < 0 && !sql_heap_take_half(size - f->size) && !move_to_disk(f) && !sql_heap_take(size - f->size))
        return SQLITE_IOERR_NOMEM;
    if (size > f->room && !make_room(f, size)) {
        if (f->disk >= 0)
            return SQLITE_FULL;
        sql_heap_give(size - f->size);
        return SQLITE_IOERR_NOMEM;
    }
    f->size = size;
    return SQLITE_OK;
}

static int write_file(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
    struct memory_file *f = file_of(file);
    int64_t end = f->size;
    int rc = at + n > end ? grow(f, at + n) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    if (f->disk >= 0 && at > end)
        memset(f->p + end, 0, (size_t)(at - end)); /* there may be what was cut off */
    memcpy(f->p + at, p, (size_t)n);
    return SQLITE_OK;
}

/* Memory from there on; what is behind the end is 0. */
static void give_back(struct memory_file *f, int64_t size)
{
    int64_t whole = (size + SECTOR - 1) / SECTOR * SECTOR;
    int64_t here = whole < f->size ? whole : f->size;
    memset(f->p + size, 0, (size_t)(here - size));
    if (whole < f->size && madvise(f->p + whole, (size_t)(f->room - whole), MADV_DONTNEED) != 0)
        memset(f->p + whole, 0, (size_t)(f->size - whole));
    sql_heap_give(f->size - size);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct memory_file *f = file_of(file);
    if (size >= f->size)
        return SQLITE_OK;
    if (f->disk < 0)
        give_back(f, size);
    f->size = size;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = file_of(file)->size;
    return SQLITE_OK;
}

static int sync_file(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int lock_file(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int is_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file)
{
    (void)file;
    return SECTOR;
}

static int characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_ATOMIC | SQLITE_IOCAP_POWERSAFE_OVERWRITE | SQLITE_IOCAP_SAFE_APPEND | SQLITE_IOCAP_SEQUENTIAL;
}

static int fetch(sqlite3_file *file, sqlite3_int64 at, int n, void **p)
{
    struct memory_file *f = file_of(file);
    bool there = at + n <= f->size;
    *p = there ? f->p + at : NULL;
    f->fetched += there;
    return SQLITE_OK;
}

/* Without a piece SQLite says that it points nowhere beyond. */
static int unfetch(sqlite3_file *file, sqlite3_int64 at, void *p)
{
    (void)at;
    file_of(file)->fetched -= p != NULL;
    return SQLITE_OK;
}

int memory_file_size(void)
{
    return sizeof(struct memory_file);
}

void memory_file_open(sqlite3_file *file)
{
    static const sqlite3_io_methods methods = {.iVersion = 3,
                                               .xClose = close_file,
                                               .xRead = read_file,
                                               .xWrite = write_file,
                                               .xTruncate = truncate_file,
                                               .xSync = sync_file,
                                               .xFileSize = file_size,
                                               .xLock = lock_file,
                                               .xUnlock = lock_file,
                                               .xCheckReservedLock = is_reserved,
                                               .xFileControl = control,
                                               .xSectorSize = sector_size,
                                               .xDeviceCharacteristics = characteristics,
                                               .xFetch = fetch,
                                               .xUnfetch = unfetch};
    *file_of(file) = (struct memory_file){.base.pMethods = &methods, .disk = -1};
}
