/* Tests what reads files with symbols: headers of ELF files, functions by address, Breakpad's files, names. */
#include "base/alloc.h"
#include "demangle/demangle.h"
#include "symbols/breakpad.h"
#include "symbols/elf_image.h"
#include "symbols/function_table.h"
#include "symbols/range_list.h"
#include "symbols/safe_file.h"
#include "symbols/symbol_worker.h"

#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- names -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *mangled, *readable; /* NULL: it is none */
} names[] = {
    {"_ZN3foo3barEv", "foo::bar()"},
    {"__ZN3foo3barEv", "foo::bar()"},
    {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
    {"_ZN4test10_$LT$A$GT$4drop17h0123456789abcdefE", "test::<A>::drop"},
    {"_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example"},
    {"_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_7Example3foo", "<mycrate::Example>::foo"},
    {"_ZL3fooi.llvm.123", "foo(int) (.llvm.123)"},
    {"_Z3foov.cold", "foo() (.cold)"},
    {"_ZN3foo3barEv.constprop.0", "foo::bar() (.constprop.0)"},
    {"main.main", NULL},
    {"foo", NULL},
    {"_Z", NULL},
    {"_R", NULL},
    {"_ZN3foo", NULL},
    {"", NULL},
    {"?foo@@YAHXZ", NULL},
};

START_TEST(readable_names)
{
    char out[256];
    size_t n = demangle(slice_str(names[_i].mangled), false, out, sizeof out);
    if (names[_i].readable)
        ck_assert_str_eq(out, names[_i].readable);
    ck_assert_uint_eq(n, names[_i].readable ? strlen(names[_i].readable) : 0);
    for (size_t room = 0; names[_i].readable && room <= n; room++)
        ck_assert_uint_eq(demangle(slice_str(names[_i].mangled), false, out, room), 0);
    ck_assert_uint_eq(demangle(slice_str(names[_i].mangled), true, out, sizeof out), n);
}
END_TEST

START_TEST(names_that_explode)
{
    /* every part stands for all before it: some hundred bytes that are as many as there are atoms in the world */
    char mangled[DEMANGLE_MAX_MANGLED_DEEP + 64] = "_Z1fP1xS_", *out = mem_alloc(DEMANGLE_MAX_TEXT);
    ck_assert_ptr_nonnull(out);
    for (size_t n = strlen(mangled); n < 800; n++)
        mangled[n] = "FvS0_S0_E"[n % 9];
    ck_assert_uint_lt(demangle(slice_str(mangled), false, out, DEMANGLE_MAX_TEXT), DEMANGLE_MAX_TEXT);
    memset(mangled, 'P', sizeof mangled - 1); /* deep, and longer than what is looked at */
    memcpy(mangled, "_Z1f", 4);
    mangled[sizeof mangled - 1] = 0;
    ck_assert_uint_eq(demangle(slice_str(mangled), false, out, DEMANGLE_MAX_TEXT), 0);
    ck_assert_uint_eq(demangle(slice_str(mangled), true, out, DEMANGLE_MAX_TEXT), 0);
    mem_free(out);
}
END_TEST

/* --- ELF ---------------------------------------------------------------------------------------------------------- */

static int file_of(const void *bytes, size_t n)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    return fd;
}

struct small_elf {
    Elf64_Ehdr head;
    Elf64_Phdr note, code;
    uint32_t notes[14]; /* a property of 8-byte alignment, then the build id */
};

static struct small_elf small_elf(void)
{
    struct small_elf e = {
        .head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                 .e_phoff = offsetof(struct small_elf, note),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 2},
        .note = {.p_type = PT_NOTE, .p_offset = offsetof(struct small_elf, notes), .p_filesz = 56, .p_align = 8},
        .code = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x15d0, .p_offset = 0x5d0, .p_align = 0x1000},
    };
    const uint32_t notes[] = {4, 8, 5, 0x554e47, 0, 0, 4, 8, NT_GNU_BUILD_ID, 0x554e47, 0x44332211, 0x88776655, 0, 0};
    memcpy(e.notes, notes, sizeof notes);
    return e;
}

START_TEST(headers)
{
    static const uint8_t id[] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    struct small_elf whole = small_elf();
    struct elf_image e;
    struct error err = {0};
    int fd = file_of(&whole, sizeof whole);
    ck_assert_int_eq(elf_image_open(&e, fd, &err), 0);
    ck_assert_int_eq(elf_image_sections(&e, &err), 0);
    ck_assert_uint_eq(e.build_id_len, sizeof id);
    ck_assert_mem_eq(e.build_id, id, sizeof id);
    ck_assert(e.executable);
    ck_assert_int_eq(e.wealth, ELF_HAS_NOTHING);
    /* a recorder that takes the difference of addresses and offsets for the bias, and one that knows of none */
    ck_assert_uint_eq(elf_image_address(&e, 0x1796, 0, 0x1000), 0x1796);
    ck_assert_uint_eq(elf_image_address(&e, 0x796, 0, 0), 0x1796);
    elf_image_close(&e);
    close(fd);
}
END_TEST

/* Each byte of the headers, with each of some values: nothing is believed. */
START_TEST(headers_damaged)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < sizeof(struct small_elf); at++)
        for (size_t k = 0; k < sizeof values; k++) {
            struct small_elf damaged = small_elf();
            struct elf_image e;
            struct error err = {0};
            ((uint8_t *)&damaged)[at] = values[k];
            int fd = file_of(&damaged, sizeof damaged);
            if (elf_image_open(&e, fd, &err) == 0)
                (void)elf_image_sections(&e, &err);
            ck_assert_uint_le(e.build_id_len, sizeof e.build_id);
            elf_image_close(&e);
            close(fd);
        }
}
END_TEST

START_TEST(this_program)
{
    struct elf_image e;
    struct function_table t = {0};
    struct error err = {0};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(elf_image_open(&e, fd, &err), 0);
    ck_assert_int_eq(elf_image_sections(&e, &err), 0);
    ck_assert_int_ge(e.wealth, ELF_HAS_SYMBOLS);
    ck_assert_int_eq(function_table_read_elf(&t, &e, NULL, &err), 0);
    size_t main_at = 0;
    while (main_at < t.list.n && strcmp(t.list.p[main_at].name, "main") != 0)
        main_at++;
    ck_assert_uint_lt(main_at, t.list.n);
    const struct function *f = &t.list.p[main_at];
    ck_assert_ptr_eq(function_table_find(&t, f->address), f);
    ck_assert_ptr_eq(function_table_find(&t, f->address + f->size - 1), f);
    ck_assert_ptr_ne(function_table_find(&t, f->address + f->size), f);
    ck_assert_ptr_null(function_table_find(&t, 0));
    function_table_free(&t);
    elf_image_close(&e);
    close(fd);
}
END_TEST

/* --- addresses ---------------------------------------------------------------------------------------------------- */

START_TEST(ranges_that_nest)
{
    struct range_list l = {0};
    ck_assert(range_list_add(&l, 100, 200, 1) && range_list_add(&l, 120, 130, 2) && range_list_add(&l, 150, 150, 3) &&
              range_list_add(&l, 300, 310, 4) && range_list_add(&l, 120, 180, 5));
    range_list_sort(&l);
    static const struct {
        uint64_t address;
        uint32_t id; /* 0: none */
    } want[] = {{99, 0},  {100, 1}, {119, 1}, {120, 2}, {129, 2}, {130, 5},
                {179, 5}, {180, 1}, {199, 1}, {200, 0}, {305, 4}, {310, 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct code_range *r = range_list_find(&l, want[i].address);
        ck_assert_uint_eq(r ? r->id : 0, want[i].id);
    }
    range_list_free(&l);
}
END_TEST

START_TEST(kernel_functions)
{
    struct function_table t;
    struct error err = {0};
    char *text = mem_strdup("ffffffff81000000 T _stext\nffffffff81000100 t first.cfi\nffffffff81000100 T better\n"
                            "ffffffff81000200 D data\nffffffffc0000000 t in_module\t[module]\nffffffffc0000100 t cut");
    ck_assert_int_eq(function_table_read_kallsyms(&t, text, strlen(text), &err), 0);
    ck_assert_uint_eq(t.list.n, 3);
    ck_assert_str_eq(function_table_find(&t, 0xffffffff81000150)->name, "better");
    ck_assert_str_eq(function_table_find(&t, 0xffffffffc0000001)->name, "in_module");
    ck_assert_ptr_null(function_table_find(&t, 0xffffffff80000000));
    function_table_free(&t);
    text = mem_strdup("0000000000000000 T _stext\n0000000000000000 t other\n");
    ck_assert_int_eq(function_table_read_kallsyms(&t, text, strlen(text), &err), -MRD_EDENIED);
    function_table_free(&t);
}
END_TEST

START_TEST(breakpad_files)
{
    static const uint64_t addresses[] = {0x500, 0x1000, 0x1008, 0x2010, 0x9001};
    static const char text[] =
        "MODULE Linux x86_64 0 x\nFILE 0 a.c\nFUNC 1000 20 0 first(int)\n1000 8 11 0\n1008 18 12 9\n"
        "PUBLIC 2000 0 open end\nPUBLIC 9000 0 last\nSTACK CFI\n";
    struct breakpad_line lines[5];
    struct error err = {0};
    ck_assert_int_eq(breakpad_lookup(slice_str(text), addresses, 5, lines, &err), 0);
    ck_assert_uint_eq(lines[0].function.len, 0);
    ck_assert(slice_eq_str(lines[1].function, "first(int)") && slice_eq_str(lines[1].file, "a.c") &&
              lines[1].line == 11);
    ck_assert(slice_eq_str(lines[2].function, "first(int)") && !lines[2].file.len && lines[2].line == 12);
    ck_assert(slice_eq_str(lines[3].function, "open end"));
    ck_assert_uint_eq(lines[4].function.len, 0);
    static const char *const bad[] = {"",
                                      "FILE 0 a\n",
                                      "MODULE x\nwhat\n",
                                      "MODULE x\nFUNC zz 1 0 f\n",
                                      "MODULE x\nFILE 99999999 a\n",
                                      "MODULE x\n1000 8 1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(breakpad_lookup(slice_str(bad[i]), addresses, 5, lines, &err), -MRD_EFORMAT);
}
END_TEST

/* --- the worker --------------------------------------------------------------------------------------------------- */

/* A program that says something else than the worker would, or nothing, or never ends. */
static int run_instead(const char *script, struct pb_writer *w, struct symbol_job_result *result, struct error *err)
{
    char path[] = "/tmp/symbol-worker-XXXXXX";
    static const uint64_t addresses[] = {0x10, 0x20};
    int fd = mkstemp(path), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    ck_assert_int_eq(fchmod(fd, 0700), 0);
    close(fd);
    struct symbol_job job = {.fd = zero,
                             .debug_fd = -1,
                             .alt_fd = -1,
                             .addresses = addresses,
                             .n = 2,
                             .shift = 0x10,
                             .cpu_s = 1,
                             .program = path};
    int rc = symbol_job_run(&job, w, result, err);
    close(zero);
    unlink(path);
    return rc;
}

START_TEST(answers_are_checked)
{
    /* address_symbols {address: 0x20 lines {function_name: "f"}}, then what is wrong */
    static const struct {
        const char *script;
        int rc;
        size_t named;
    } cases[] = {
        {"#!/bin/sh\nprintf '\\032\\007\\010\\040\\022\\003\\012\\001f'\n", 0, 1},
        {"#!/bin/sh\n", 0, 0},
        {"#!/bin/sh\nprintf '\\032\\007\\010\\041\\022\\003\\012\\001f'\n", -MRD_EFORMAT, 0}, /* nobody asked for it */
        {"#!/bin/sh\nprintf '\\032\\007\\010\\040\\022\\003\\012\\001f\\032\\007\\010\\040\\022\\003\\012\\001f'\n",
         -MRD_EFORMAT, 0},
        {"#!/bin/sh\nprintf '\\032\\177\\010'\n", -MRD_EFORMAT, 0},
        {"#!/bin/sh\nhead -c 300000 /dev/zero\n", -MRD_ELIMIT, 0},
        {"#!/bin/sh\nexit 13\n", -MRD_EFORMAT, 0},
        {"#!/bin/sh\nexit 99\n", -MRD_EFORMAT, 0},
        {"#!/bin/sh\nkill -SEGV $$\n", -MRD_EFORMAT, 0},
        {"#!/bin/sh\nexec sleep 1000\n", -MRD_ETIMEOUT, 0},
        {"", -MRD_EIO, 0},
    };
    struct pb_writer w = {0};
    struct symbol_job_result result;
    struct error err = {0};
    int rc = run_instead(cases[_i].script, &w, &result, &err);
    if (cases[_i].rc == -MRD_EIO)
        ck_assert_int_lt(rc, 0);
    else
        ck_assert_int_eq(rc, cases[_i].rc);
    ck_assert_uint_eq(result.named, cases[_i].named);
    ck_assert_uint_eq(w.n > 0, cases[_i].named > 0);
    ck_assert(rc == 0 || err.text[0]);
    pb_writer_free(&w);
}
END_TEST

/* --- files -------------------------------------------------------------------------------------------------------- */

static atomic_bool fifo_was_opened;

static void *wait_for_a_reader(void *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    atomic_store(&fifo_was_opened, true);
    close(fd);
    return NULL;
}

/* A name may be that of a device, for which it matters that it is opened: a writer that waits at a FIFO sees it. */
START_TEST(only_files_are_opened)
{
    char dir[] = "/tmp/unit-safe-XXXXXX", path[sizeof dir + 8];
    pthread_t writer;
    int fd;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/x", dir);
    ck_assert_int_eq(safe_file_open(path, false, &fd), SAFE_FILE_MISSING);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, wait_for_a_reader, path), 0);
    usleep(50000); /* until it waits */
    ck_assert_int_eq(safe_file_open(path, false, &fd), SAFE_FILE_NOT_REGULAR);
    ck_assert_int_eq(fd, -1);
    usleep(50000);
    ck_assert(!atomic_load(&fifo_was_opened));
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    pthread_join(writer, NULL);
    close(reader);
    unlink(path);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    ck_assert_int_eq(safe_file_open(path, true, &fd), SAFE_FILE_OPEN);
    ck_assert_int_ge(fd, 0);
    close(fd);
    unlink(path);
    rmdir(dir);
}
END_TEST

Suite *symbol_files_suite(void);
Suite *symbol_files_suite(void)
{
    Suite *s = suite_create("symbol_files");
    TCase *t = tcase_create("symbol_files");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, readable_names, 0, sizeof names / sizeof *names);
    tcase_add_test(t, names_that_explode);
    tcase_add_test(t, only_files_are_opened);
    tcase_add_test(t, headers);
    tcase_add_test(t, headers_damaged);
    tcase_add_test(t, this_program);
    tcase_add_test(t, ranges_that_nest);
    tcase_add_test(t, kernel_functions);
    tcase_add_test(t, breakpad_files);
    tcase_add_loop_test(t, answers_are_checked, 0, 11);
    suite_add_tcase(s, t);
    return s;
}
