/* Tests the files in memory that SQLite's sorter spills to. */
#include "sql/engine/memory_file.h"

#include "sql/engine/heap.h"

#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MODEL = 1 << 20, PIECE = 4096, TURNS = 4000 };

static sqlite3_file *file;

static void setup(void)
{
    file = calloc(1, (size_t)memory_file_size());
    ck_assert_ptr_nonnull(file);
    sql_heap_limit(INT64_MAX);
    memory_file_open(file);
}

static void teardown(void)
{
    file->pMethods->xClose(file);
    ck_assert_int_eq(sql_heap_held(), 0);
    free(file);
}

static int64_t size_of(sqlite3_file *f)
{
    sqlite3_int64 size = -1;
    ck_assert_int_eq(f->pMethods->xFileSize(f, &size), SQLITE_OK);
    return size;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed >> 33;
}

enum { LEAST_ON_A_DISK = 5 };

/* Writes, reads and cuts at random places are what they are in an array; also when the file goes to a disk on the way.
 */
START_TEST(a_file_is_what_was_written)
{
    bool to_disk = _i >= LEAST_ON_A_DISK, moved = false;
    if (to_disk)
        sql_heap_limit((int64_t)MODEL / 2 * (_i - LEAST_ON_A_DISK + 1) / 4);
    static uint8_t model[MODEL + PIECE], piece[PIECE];
    uint64_t seed = (uint64_t)_i + 1;
    int64_t size = 0;
    memset(model, 0, sizeof model);
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t at = (int64_t)(next_random(&seed) % (turn % 3 ? (uint64_t)size + 1 : MODEL));
        int n = (int)(next_random(&seed) % PIECE);
        switch (next_random(&seed) % 8) {
        case 0:
            ck_assert_int_eq(file->pMethods->xTruncate(file, at), SQLITE_OK);
            if (at < size) {
                memset(model + at, 0, (size_t)(size - at));
                size = at;
            }
            break;
        case 1:
        case 2: {
            int rc = file->pMethods->xRead(file, piece, n, at);
            ck_assert_int_eq(rc, at + n <= size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ);
            ck_assert_int_eq(memcmp(piece, model + at, (size_t)n), 0);
            break;
        }
        default:
            for (int i = 0; i < n; i++)
                piece[i] = (uint8_t)next_random(&seed);
            ck_assert_int_eq(file->pMethods->xWrite(file, piece, n, at), SQLITE_OK);
            memcpy(model + at, piece, (size_t)n);
            size = at + n > size ? at + n : size;
        }
        ck_assert_int_eq(size_of(file), size);
        moved |= sql_heap_held() != size;
        ck_assert_int_eq(sql_heap_held(), moved ? 0 : size);
    }
    ck_assert_int_eq(moved, to_disk);
}
END_TEST

/* SQLite makes no allocation of more than 2 GiB. */
START_TEST(a_file_may_be_larger_than_an_allocation)
{
    const int64_t far = INT64_C(5) << 30;
    char text[16] = "";
    ck_assert_int_eq(file->pMethods->xWrite(file, "near", 4, 0), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xWrite(file, "far away", 8, far), SQLITE_OK);
    ck_assert_int_eq(size_of(file), far + 8);
    ck_assert_int_eq(file->pMethods->xRead(file, text, 8, far), SQLITE_OK);
    ck_assert_str_eq(text, "far away");
    ck_assert_int_eq(file->pMethods->xRead(file, text, 8, 0), SQLITE_OK);
    ck_assert_int_eq(memcmp(text, "near\0\0\0\0", 8), 0);
}
END_TEST

START_TEST(what_is_fetched_stays_where_it_is)
{
    void *p = NULL, *beyond = file;
    ck_assert_int_eq(file->pMethods->xWrite(file, "here", 4, 0), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xFetch(file, 0, 5, &beyond), SQLITE_OK);
    ck_assert_ptr_null(beyond);
    ck_assert_int_eq(file->pMethods->xFetch(file, 0, 4, &p), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xWrite(file, "far", 3, 1 << 24), SQLITE_FULL);
    ck_assert_int_eq(memcmp(p, "here", 4), 0);
    ck_assert_int_eq(file->pMethods->xUnfetch(file, 0, p), SQLITE_OK);
    ck_assert_int_eq(file->pMethods->xWrite(file, "far", 3, 1 << 24), SQLITE_OK);
}
END_TEST

static void has_text(const char *text, int64_t at)
{
    char found[16] = "";
    int n = (int)strlen(text);
    ck_assert_int_eq(file->pMethods->xRead(file, found, n, at), SQLITE_OK);
    ck_assert_str_eq(found, text);
}

/* Where no file of this process may be written, which is what a disk without room is. */
START_TEST(the_limit_of_memory_holds_for_files)
{
    struct rlimit before, none;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(file->pMethods->xWrite(file, "some", 4, 0), SQLITE_OK);
    sql_heap_limit(1 << 20);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    ck_assert_int_eq(file->pMethods->xWrite(file, "more", 4, 1 << 20), SQLITE_IOERR_NOMEM);
    ck_assert_int_eq(size_of(file), 4);
    ck_assert_int_eq(sql_heap_held(), 4);
    has_text("some", 0);
    ck_assert_int_eq(file->pMethods->xWrite(file, "more", 4, 600000), SQLITE_OK); /* more than half */
    ck_assert_int_eq(sql_heap_held(), 600004);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    /* There is a disk again; and then none, when it is there already. */
    ck_assert_int_eq(file->pMethods->xWrite(file, "disk", 4, 1 << 20), SQLITE_OK);
    ck_assert_int_eq(sql_heap_held(), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    ck_assert_int_eq(file->pMethods->xWrite(file, "full", 4, 1 << 24), SQLITE_FULL);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    has_text("some", 0);
    has_text("more", 600000);
    has_text("disk", 1 << 20);
}
END_TEST

Suite *memory_file_suite(void);
Suite *memory_file_suite(void)
{
    Suite *s = suite_create("memory_file");
    TCase *c = tcase_create("files");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, a_file_is_what_was_written, 0, 10);
    tcase_add_test(c, a_file_may_be_larger_than_an_allocation);
    tcase_add_test(c, what_is_fetched_stays_where_it_is);
    tcase_add_test(c, the_limit_of_memory_holds_for_files);
    suite_add_tcase(s, c);
    return s;
}
