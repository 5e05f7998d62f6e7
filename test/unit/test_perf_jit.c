/* Tests names of code without a file: lines and records that are hostile, and files that are not the process's own. */
#include "ck_slice.h"

#include "capture/perf/perf_files.h"
#include "capture/perf/perf_process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- lines ---- */

static const struct line_case {
    const char *text;
    uint64_t address;
    const char *name;
} line_cases[] = {
    {"1000 10 fun\n", 0x100f, "fun"},
    {"1000 10 fun\n", 0x1010, ""},
    {"1000 10 fun\n", 0xfff, ""},
    {"0x1000 0x10 with blanks in it\n", 0x1000, "with blanks in it"},
    {"1000 10 windows\r\n", 0x1000, "windows"},
    {"1000 10 unfinished", 0x1000, ""},
    {"1000 10 old\n1000 10 new\n", 0x1000, "new"},
    {"1000 100 outer\n1010 10 inner\n", 0x1018, "inner"},
    {"1000 100 outer\n1010 10 inner\n", 0x1028, "outer"},
    {"zzz\n\n 1000\n1000 10\n1000 x y\n2000 10 good\n", 0x2000, "good"},
    {"ffffffffffffffff ffffffffffffffff beyond\n", 0xffffffffffffffff, ""},
    {"11111111111111111 10 seventeen digits\n", 0x1000, ""},
    {"1000 0 nothing\n", 0x1000, ""},
};

START_TEST(lines_name_addresses)
{
    const struct line_case *x = &line_cases[_i];
    struct perf_jit j = {.pid = 1};
    perf_jit_parse_map(&j, slice_str(x->text));
    perf_jit_sort(&j);
    ck_assert_slice_eq(perf_jit_name(&j, x->address), x->name);
    perf_jit_free(&j);
}
END_TEST

START_TEST(lines_come_in_pieces)
{
    struct perf_jit j = {.pid = 1};
    ck_assert_uint_eq(perf_jit_parse_map(&j, slice_str("1000 10 a\n2000 1")), 10);
    ck_assert_uint_eq(perf_jit_parse_map(&j, slice_str("2000 10 b\n")), 10);
    perf_jit_sort(&j);
    ck_assert_slice_eq(perf_jit_name(&j, 0x2001), "b");
    perf_jit_free(&j);
}
END_TEST

START_TEST(functions_are_bounded)
{
    enum { LINES = PERF_JIT_FUNCTIONS + 1000 };
    struct perf_jit j = {.pid = 1};
    char *text = malloc(LINES * 16);
    size_t n = 0;
    for (unsigned i = 0; i < LINES; i++)
        n += (size_t)sprintf(text + n, "%x 10 f\n", 0x1000 + 16 * i);
    perf_jit_parse_map(&j, slice_of(text, n));
    perf_jit_sort(&j);
    ck_assert(j.full);
    ck_assert_uint_eq(j.functions.n, PERF_JIT_FUNCTIONS);
    ck_assert_slice_eq(perf_jit_name(&j, 0x1000 + 16 * 77), "f");
    perf_jit_free(&j);
    free(text);
}
END_TEST

/* ---- jitdump ---- */

struct dump {
    uint8_t bytes[4096];
    size_t n;
};

static void put(struct dump *d, uint64_t v, size_t bytes)
{
    memcpy(d->bytes + d->n, &v, bytes);
    d->n += bytes;
}

static void put_head(struct dump *d)
{
    d->n = 0;
    put(d, 0x4a695444, 4);
    put(d, 1, 4);
    put(d, 40, 4); /* its size */
    put(d, 62, 4);
    put(d, 0, 8);
    put(d, 0, 8);
    put(d, 0, 8);
}

static void put_load(struct dump *d, uint64_t address, uint64_t index, const char *name)
{
    static const uint8_t code[16] = {0x90};
    put(d, 0, 4);
    put(d, 16 + 40 + strlen(name) + 1 + sizeof code, 4);
    put(d, 0, 8);
    put(d, 0, 8); /* pid, tid */
    put(d, address, 8);
    put(d, address, 8);
    put(d, sizeof code, 8);
    put(d, index, 8);
    memcpy(d->bytes + d->n, name, strlen(name) + 1);
    d->n += strlen(name) + 1;
    memcpy(d->bytes + d->n, code, sizeof code);
    d->n += sizeof code;
}

static void put_move(struct dump *d, uint64_t from, uint64_t to, uint64_t index)
{
    put(d, 1, 4);
    put(d, 16 + 48, 4);
    put(d, 0, 8);
    put(d, 0, 8);
    put(d, to, 8);
    put(d, from, 8);
    put(d, to, 8);
    put(d, 16, 8);
    put(d, index, 8);
}

START_TEST(records_name_addresses)
{
    struct dump d;
    struct perf_jit j = {.pid = 1};
    put_head(&d);
    put_load(&d, 0x1000, 7, "first");
    put(&d, 2, 4); /* lines of source, which are passed over */
    put(&d, 24, 4);
    put(&d, 0, 8);
    put(&d, 0, 8);
    put_move(&d, 0x1000, 0x3000, 7);
    size_t whole = d.n;
    put_load(&d, 0x5000, 8, "second");
    ck_assert_uint_eq(perf_jit_parse_dump(&j, slice_of(d.bytes, d.n - 1), true), whole); /* the last is being written */
    ck_assert_uint_eq(perf_jit_parse_dump(&j, slice_of(d.bytes + whole, d.n - whole), false), d.n - whole);
    perf_jit_sort(&j);
    ck_assert_slice_eq(perf_jit_name(&j, 0x100f), "first");
    ck_assert_slice_eq(perf_jit_name(&j, 0x3000), "first");
    ck_assert_slice_eq(perf_jit_name(&j, 0x5000), "second");
    perf_jit_free(&j);
}
END_TEST

START_TEST(damaged_records_end_the_file)
{
    struct dump d;
    for (size_t at = 0; at < 120; at++) {
        struct perf_jit j = {.pid = 1};
        put_head(&d);
        put_load(&d, 0x1000, 7, "first");
        d.bytes[at] = 0xff;
        ck_assert_uint_le(perf_jit_parse_dump(&j, slice_of(d.bytes, d.n), true), d.n);
        ck_assert_uint_le(j.functions.n, 1);
        perf_jit_free(&j);
    }
}
END_TEST

/* ---- files ---- */

static char map_path[64];

static void write_map(const char *text)
{
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
    FILE *f = fopen(map_path, "we");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static bool finds(struct perf_jit *j, uint64_t address, const char *name)
{
    perf_jit_read(j);
    return slice_eq_str(perf_jit_name(j, address), name);
}

START_TEST(files_are_read_on)
{
    struct perf_jit j = {.pid = getpid()};
    write_map("1000 10 a\n");
    ck_assert(finds(&j, 0x1000, "a"));
    FILE *f = fopen(map_path, "ae");
    fputs("2000 10 b\n3000 1", f);
    fclose(f);
    ck_assert(finds(&j, 0x2000, "b"));
    f = fopen(map_path, "ae");
    fputs("0 c\n", f);
    fclose(f);
    ck_assert(finds(&j, 0x3000, "c"));
    ck_assert(finds(&j, 0x1000, "a"));
    write_map("4000 10 d\n"); /* it begins anew */
    ck_assert(finds(&j, 0x4000, "d"));
    ck_assert(finds(&j, 0x1000, ""));
    unlink(map_path);
    perf_jit_free(&j);
}
END_TEST

START_TEST(links_pipes_and_files_of_others_are_not_read)
{
    struct perf_jit j = {.pid = getpid()};
    char other[80];
    write_map("1000 10 a\n");
    snprintf(other, sizeof other, "%s.other", map_path);
    ck_assert_int_eq(rename(map_path, other), 0);
    ck_assert_int_eq(symlink(other, map_path), 0);
    ck_assert(finds(&j, 0x1000, ""));
    unlink(map_path);
    ck_assert_int_eq(mkfifo(map_path, 0600), 0); /* opening it would wait for a writer */
    ck_assert(finds(&j, 0x1000, ""));
    unlink(map_path);
    ck_assert_int_eq(mkdir(map_path, 0700), 0);
    ck_assert(finds(&j, 0x1000, ""));
    rmdir(map_path);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(other, 1, 1), 0);
        ck_assert_int_eq(link(other, map_path), 0); /* somebody else's, by another name */
        ck_assert(finds(&j, 0x1000, ""));
        ck_assert_int_eq(chown(other, 0, 0), 0);
        ck_assert(finds(&j, 0x1000, "a"));
        unlink(map_path);
    }
    unlink(other);
    perf_jit_free(&j);
}
END_TEST

START_TEST(large_files_are_read_up_to_a_bound)
{
    struct perf_jit j = {.pid = getpid()};
    write_map("1000 10 a\n");
    ck_assert_int_eq(truncate(map_path, INT64_C(1) << 40), 0); /* sparse: zeros without a line's end */
    ck_assert(finds(&j, 0x1000, "a"));
    ck_assert_uint_le(j.map.read, PERF_JIT_BYTES);
    ck_assert_uint_le(perf_jit_memory(&j), 1 << 20);
    unlink(map_path);
    perf_jit_free(&j);
}
END_TEST

START_TEST(names_are_looked_for_again)
{
    struct perf_files f = {0};
    ck_assert_ptr_nonnull(perf_files_jit(&f, getpid(), perf_process_began(getpid()), NULL, 0, 0x1000, 1000));
    write_map("1000 10 a\n");
    const struct perf_jit *j = perf_files_jit(&f, getpid(), perf_process_began(getpid()), NULL, 0, 0x1000, 1500);
    ck_assert_slice_eq(perf_jit_name(j, 0x1000), ""); /* so soon nobody looks where there was none */
    j = perf_files_jit(&f, getpid(), perf_process_began(getpid()), NULL, 0, 0x1000, 2100);
    ck_assert_slice_eq(perf_jit_name(j, 0x1000), "a");
    write_map("1000 10 a\n2000 10 b\n");
    j = perf_files_jit(&f, getpid(), perf_process_began(getpid()), NULL, 0, 0x2000, 2210);
    ck_assert_slice_eq(perf_jit_name(j, 0x2000), "b");
    unlink(map_path);
    perf_files_free(&f);
}
END_TEST

/* A number that has been another process's: each has its own names, and those of one that is gone are not read. */
START_TEST(names_are_of_one_process)
{
    struct perf_files f = {0};
    uint64_t began = perf_process_began(getpid());
    ck_assert_uint_ne(began, UINT64_MAX);
    write_map("1000 10 a\n");
    ck_assert_slice_eq(perf_jit_name(perf_files_jit(&f, getpid(), began, NULL, 0, 0x1000, 1000), 0x1000), "a");
    ck_assert_slice_eq(perf_jit_name(perf_files_jit(&f, getpid(), began - 1, NULL, 0, 0x1000, 1000), 0x1000), "");
    ck_assert_slice_eq(perf_jit_name(perf_files_jit(&f, getpid(), UINT64_MAX, NULL, 0, 0x1000, 1000), 0x1000), "");
    unlink(map_path);
    perf_files_free(&f);
}
END_TEST

/* A child with this number; -1: this machine does not let one choose. */
static pid_t child_of_number(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    long got = syscall(SYS_clone3, &args, sizeof args);
    while (got == 0)
        pause();
    return (pid_t)got;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(names_that_an_earlier_process_left_are_not_read)
{
    enum { STALE_US = 1300000 };
    char path[64];
    pid_t number = fork();
    if (number == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(number, NULL, 0), number);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", number);
    write_text(path, "1000 10 old\n");
    usleep(STALE_US);
    pid_t child = child_of_number(number);
    if (child == number) {
        struct perf_jit j = {.pid = child, .began = perf_process_began(child)};
        ck_assert(finds(&j, 0x1000, ""));
        write_text(path, "1000 10 new\n");
        ck_assert(finds(&j, 0x1000, "new"));
        perf_jit_free(&j);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    unlink(path);
}
END_TEST

START_TEST(maps_of_made_code_are_known)
{
    static const char *const made[] = {"", "/memfd:v8 (deleted)", "[anon:JIT]", "/tmp/jit-123.dump",
                                       "/dev/zero (deleted)"},
                             *const others[] = {"/usr/bin/x", "[vdso]", "/tmp/jit-.dump", "/tmp/jit-1.txt"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        ck_assert_msg(perf_jit_is_code(made[i]), "%s", made[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!perf_jit_is_code(others[i]), "%s", others[i]);
}
END_TEST

Suite *perf_jit_suite(void);
Suite *perf_jit_suite(void)
{
    Suite *s = suite_create("perf_jit");
    TCase *t = tcase_create("perf_jit");
    tcase_add_loop_test(t, lines_name_addresses, 0, sizeof line_cases / sizeof *line_cases);
    tcase_add_test(t, lines_come_in_pieces);
    tcase_add_test(t, functions_are_bounded);
    tcase_add_test(t, records_name_addresses);
    tcase_add_test(t, damaged_records_end_the_file);
    tcase_add_test(t, files_are_read_on);
    tcase_add_test(t, links_pipes_and_files_of_others_are_not_read);
    tcase_add_test(t, large_files_are_read_up_to_a_bound);
    tcase_add_test(t, names_are_looked_for_again);
    tcase_add_test(t, names_are_of_one_process);
    tcase_add_test(t, names_that_an_earlier_process_left_are_not_read);
    tcase_add_test(t, maps_of_made_code_are_known);
    suite_add_tcase(s, t);
    return s;
}
