/* Files that are memory. SQLite's own ("memdb") are one allocation each, of which it makes none above 2 GiB, doubled
 * whenever it is full: a sort of more than 1 GiB failed. These are mappings, which grow without being copied. */
#include "sql/engine/memory_file.h"

#include "base/alloc.h"
#include "sql/engine/heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { STEP = 64 << 10, SECTOR = 4096 };

struct memory_file {
    sqlite3_file base;
    uint8_t *p;
    int64_t size, room; /* bytes of the file; of the mapping */
    int fetched;        /* pieces that SQLite points into: the mapping must not move */
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
    sql_heap_give(f->size);
    *f = (struct memory_file){.p = NULL};
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

static bool make_room(struct memory_file *f, int64_t size)
{
    int64_t room = f->room + f->room / 4;
    room = ((room > size ? room : size) + STEP - 1) / STEP * STEP;
    void *p =
        f->p ? mremap(f->p, (size_t)f->room, (size_t)room, MREMAP_MAYMOVE)
             : mmap(NULL, (size_t)room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    f->p = p;
    f->room = room;
    return true;
}

/* Bytes behind the old end are 0. */
static int grow(struct memory_file *f, int64_t size)
{
    if (size > f->room && f->fetched)
        return SQLITE_FULL;
    if (!sql_heap_take(size - f->size))
        return SQLITE_IOERR_NOMEM;
    if (size > f->room && !make_room(f, size)) {
        sql_heap_give(size - f->size);
        return SQLITE_IOERR_NOMEM;
    }
    f->size = size;
    return SQLITE_OK;
}

static int write_file(sqlite3_file *file, const void *p, int n, sqlite3_int64 at)
{
    struct memory_file *f = file_of(file);
    int rc = at + n > f->size ? grow(f, at + n) : SQLITE_OK;
    if (rc == SQLITE_OK)
        memcpy(f->p + at, p, (size_t)n);
    return rc;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    struct memory_file *f = file_of(file);
    if (size >= f->size)
        return SQLITE_OK;
    int64_t whole = (size + SECTOR - 1) / SECTOR * SECTOR;
    int64_t here = whole < f->size ? whole : f->size;
    memset(f->p + size, 0, (size_t)(here - size));
    if (whole < f->size && madvise(f->p + whole, (size_t)(f->room - whole), MADV_DONTNEED) != 0)
        memset(f->p + whole, 0, (size_t)(f->size - whole));
    sql_heap_give(f->size - size);
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
    *file_of(file) = (struct memory_file){.base.pMethods = &methods};
}
