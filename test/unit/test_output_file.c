/* Tests output that replaces a file in one step: full disks, short writes, interrupts, links, and who writes by it. */
#include "base/file.h"
#include "base/output_file.h"
#include "sql_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[160];

static void setup(void)
{
    snprintf(dir, sizeof dir, "/tmp/output_file.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/out", dir);
}

static void teardown(void)
{
    file_set_write_hook(NULL);
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));) {
        char one[512];
        snprintf(one, sizeof one, "%s/%s", dir, e->d_name);
        unlink(one);
    }
    closedir(d);
    rmdir(dir);
}

static int files(void)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void expect_text(const char *text)
{
    char *got;
    size_t len;
    struct error err = {0};
    ck_assert_msg(file_read_all(path, 1 << 20, &got, &len, &err) == 0, "%s", err.text);
    ck_assert_str_eq(got, text);
    mem_free(got);
}

static int writes_left, calls;
static struct engine *to_interrupt;

static ssize_t full_disk(int fd, const void *buf, size_t len)
{
    if (writes_left-- <= 0) {
        errno = ENOSPC;
        return -1;
    }
    return write(fd, buf, len);
}

static ssize_t short_writes(int fd, const void *buf, size_t len)
{
    if (++calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(fd, buf, len > 7 ? 7 : len);
}

static ssize_t interrupting(int fd, const void *buf, size_t len)
{
    engine_interrupt(to_interrupt);
    calls++;
    return write(fd, buf, len);
}

static int put(const char *text, int times, struct error *err)
{
    struct output_file o;
    int rc = output_file_open(&o, path, err);
    for (int i = 0; i < times && rc == 0; i++)
        rc = output_file_write(&o, text, strlen(text), err);
    return output_file_close(&o, rc, err);
}

START_TEST(whole_or_not_at_all)
{
    struct error err = {0};
    static char block[40001];
    memset(block, 'x', sizeof block - 1);
    for (int k = 0; k < 4; k++) {
        file_set_write_hook(full_disk);
        writes_left = k;
        err = (struct error){0};
        if (k < 3) {
            ck_assert_int_lt(put(block, 4, &err), 0);
            ck_assert_msg(strstr(err.text, path) && strstr(err.text, "No space"), "%s", err.text);
            ck_assert_int_eq(files(), k > 0); /* what was there before, and nothing else */
        }
        writes_left = 100;
        ck_assert_int_eq(put("before", 1, &err), 0);
        expect_text("before");
        ck_assert_int_eq(files(), 1);
    }
    file_set_write_hook(short_writes);
    ck_assert_int_eq(put("short and interrupted writes ", 3, &err), 0);
    expect_text("short and interrupted writes short and interrupted writes short and interrupted writes ");
}
END_TEST

START_TEST(what_is_at_the_path_decides)
{
    struct error err = {0};
    struct stat st;
    char link[140], target[160];
    ck_assert_int_eq(put("one", 1, &err), 0);
    ck_assert_int_eq(chmod(path, 0640), 0);
    snprintf(link, sizeof link, "%s/link", dir);
    memcpy(target, path, sizeof target);
    ck_assert_int_eq(symlink("out", link), 0);
    snprintf(path, sizeof path, "%s", link);
    ck_assert_int_eq(put("two", 1, &err), 0);
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode)); /* the link stays, the file behind it is new */
    memcpy(path, target, sizeof path);
    expect_text("two");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(chmod(path, 06711), 0);
    ck_assert_int_eq(put("two", 1, &err), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0711); /* nothing new runs as its owner */
    snprintf(path, sizeof path, "%s/nowhere/out", dir);
    ck_assert_int_lt(put("x", 1, &err), 0);
    ck_assert_msg(strstr(err.text, path), "%s", err.text);
    snprintf(path, sizeof path, "/dev/full");
    ck_assert_int_lt(put("x", 1, &err), 0);
    ck_assert_int_eq(files(), 2);
}
END_TEST

START_TEST(permissions_are_kept)
{
    struct error err = {0};
    struct stat st;
    ck_assert_int_eq(put("one", 1, &err), 0);
    ck_assert_int_eq(chmod(path, 04755), 0);
    ck_assert_int_eq(put("two", 1, &err), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0755); /* set-uid was granted to what was there */
    ck_assert_int_eq(chmod(path, 0444), 0);
    const bool root = geteuid() == 0;
    ck_assert_int_eq(chmod(dir, 0777), 0);
    if (root) {
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        ck_assert_int_eq(seteuid(65534), 0);
    }
    int rc = put("three", 1, &err);
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(err.text, "Permission denied"), "%s", err.text);
    expect_text("two");
    ck_assert_int_eq(files(), 1);
    if (root) {
        ck_assert_int_eq(put("four", 1, &err), 0);
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_int_eq(st.st_uid, 65534);
    }
}
END_TEST

START_TEST(a_link_to_nothing_is_followed)
{
    struct error err = {0};
    struct stat st;
    char target[160];
    memcpy(target, path, sizeof target);
    snprintf(path, sizeof path, "%s/link", dir);
    ck_assert_int_eq(symlink("out", path), 0);
    ck_assert_int_eq(put("made", 1, &err), 0);
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    memcpy(path, target, sizeof path);
    expect_text("made");
    ck_assert_int_eq(files(), 2);
}
END_TEST

/* ---- export_json() ---- */

static struct sql_fixture f;

static void fill(void)
{
    sql_open(&f);
    engine_allow_files(f.e, true);
    for (uint32_t i = 0; i < 5000; i++)
        process_insert(&f.st, &(struct process_row){.pid = i, .name = strpool_intern(&f.st.strings, "p", 1)});
    struct error err = {0};
    ck_assert_int_eq(engine_loaded(f.e, &err), 0);
}

static void export_must_fail(const char *part)
{
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT export_json('%s')", path);
    sql_must_fail(&f, sql, part);
    ck_assert_int_eq(files(), 1);
    expect_text("before");
}

START_TEST(export_json_leaves_no_half)
{
    struct error err = {0};
    char sql[256];
    fill();
    ck_assert_int_eq(put("before", 1, &err), 0);
    file_set_write_hook(full_disk);
    for (writes_left = 0; writes_left < 3;) {
        int left = writes_left;
        export_must_fail("No space");
        writes_left = left + 1;
    }
    to_interrupt = f.e;
    calls = 0;
    file_set_write_hook(interrupting);
    export_must_fail("interrupted");
    ck_assert_int_eq(calls, 1);
    file_set_write_hook(NULL);
    snprintf(sql, sizeof sql, "SELECT export_json('%s')", path);
    sql_run(&f, sql);
    ck_assert_int_eq(files(), 1);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, 200000);
    snprintf(sql, sizeof sql, "SELECT __intrinsic_file_write('%s', 'blob')", path);
    file_set_write_hook(full_disk);
    writes_left = 0;
    sql_must_fail(&f, sql, "No space");
    ck_assert_int_eq(files(), 1);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, 200000);
    sql_close(&f);
}
END_TEST

Suite *output_file_suite(void);
Suite *output_file_suite(void)
{
    Suite *s = suite_create("output_file");
    TCase *t = tcase_create("output_file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, whole_or_not_at_all);
    tcase_add_test(t, what_is_at_the_path_decides);
    tcase_add_test(t, permissions_are_kept);
    tcase_add_test(t, a_link_to_nothing_is_followed);
    tcase_add_test(t, export_json_leaves_no_half);
    suite_add_tcase(s, t);
    return s;
}
