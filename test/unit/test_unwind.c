/* Tests the unwinder: its rows against those of libdw, stacks of this process, and tables that are damaged. */
#include "unwind/cfi.h"

#include "base/alloc.h"
#include "base/file.h"

#include <check.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <lzma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if MERIDIAN_HAS_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#endif

static struct unwind_file *open_path(const char *path)
{
    struct unwind_file *f;
    struct error err = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_msg(unwind_file_read(&f, fd, UNWIND_FILE_BYTES, &err) == 0, "%s: %s", path, err.text);
    close(fd);
    return f;
}

/* ---- beside libdw ---- */

#if MERIDIAN_HAS_LIBDW && defined(__x86_64__)

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R15 = 15, RA = 16 };

static bool is_compared(unsigned column, const struct cfi_column *c)
{
    /* of the others libdw says that nobody knows them, and we that they are as they were */
    return column == RBX || column == RBP || (column >= R12 && column <= RA) ||
           (c->rule != CFI_UNCHANGED && c->rule != CFI_UNDEFINED);
}

/* The first byte of an expression of libdw: its place in the section. */
static bool same_expression(const struct cfi_section *s, int32_t at, const Dwarf_Op *op)
{
    struct cfi_reader r = {s->bytes + at, s->bytes + s->len, false};
    cfi_uleb(&r);
    return *r.p == op->atom;
}

static bool same_column(const struct cfi_section *s, const struct cfi_column *c, const Dwarf_Op *ops, size_t n)
{
    if (n == 0) /* it does not tell unchanged registers of which nothing is said from unknown ones */
        return c->rule == CFI_UNDEFINED || c->rule == CFI_UNCHANGED;
    if (c->rule == CFI_AT_CFA)
        return ops[0].atom == DW_OP_call_frame_cfa &&
               (n == 1 ? c->value == 0 : ops[1].atom == DW_OP_plus_uconst && (int32_t)ops[1].number == c->value);
    if (c->rule == CFI_CFA_PLUS)
        return ops[0].atom == DW_OP_call_frame_cfa;
    if (c->rule == CFI_REGISTER)
        return ops[0].atom == DW_OP_regx && ops[0].number == (Dwarf_Word)c->value;
    if (c->rule == CFI_EXPRESSION || c->rule == CFI_VALUE)
        return ops[0].atom == DW_OP_call_frame_cfa ? n > 1 && same_expression(s, c->value, &ops[1])
                                                   : same_expression(s, c->value, &ops[0]);
    return false;
}

/* As ck_assert_msg(), which writes a file each time: a million times is too often. */
#define WANT(condition, ...)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)

static void compare_row(const char *path, const struct unwind_file *file, Dwarf_Frame *frame, uint64_t address)
{
    struct cfi_row row;
    int64_t work = INT64_MAX;
    Dwarf_Op *ops, memory[3];
    size_t n;
    bool signal;
    cfi_row_find(&row, file, address, &work);
    const struct cfi_section *s = row.section;
    WANT(row.good, "%s: no row at %#" PRIx64, path, address);
    WANT(dwarf_frame_info(frame, NULL, NULL, &signal) == row.return_column, "%s: another column at %#" PRIx64, path,
         address);
    WANT(signal == row.signal, "%s: a signal at %#" PRIx64, path, address);
    WANT(dwarf_frame_cfa(frame, &ops, &n) == 0, "%s: no CFA at %#" PRIx64, path, address);
    if (row.cfa_rule == CFI_REGISTER) {
        WANT(n == 1 && ops[0].number == row.cfa_register && (int64_t)ops[0].number2 == row.cfa_offset,
             "%s: another CFA at %#" PRIx64, path, address);
    } else {
        WANT(same_expression(s, row.cfa_offset, &ops[0]), "%s: another CFA at %#" PRIx64, path, address);
    }
    for (unsigned i = 0; i <= RA; i++) {
        const struct cfi_column *c = &row.columns[i];
        if (!is_compared(i, c))
            continue;
        WANT(dwarf_frame_register(frame, (int)i, memory, &ops, &n) == 0, "%s: register %u", path, i);
        WANT(same_column(s, c, ops, n), "%s: register %u at %#" PRIx64 ": rule %u, %d; libdw has %zu, %#x", path, i,
             address, c->rule, c->value, n, n ? ops[0].atom : 0);
    }
}

/* Every row of every function. */
static unsigned compare_file(const char *path)
{
    struct unwind_file *file = open_path(path);
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
    ck_assert_ptr_nonnull(cfi);
    ck_assert_int_eq(cfi_list_functions(file, false, UNWIND_FILE_BYTES, NULL), 0);
    unsigned rows = 0;
    for (size_t i = 0; i < file->eh_entries.n; i++) {
        for (uint64_t at = file->eh_entries.p[i].start; at < file->eh_entries.p[i].end; rows++) {
            Dwarf_Frame *frame;
            Dwarf_Addr start, end;
            WANT(dwarf_cfi_addrframe(cfi, at, &frame) == 0, "%s: libdw has no row at %#" PRIx64, path, at);
            dwarf_frame_info(frame, &start, &end, NULL);
            compare_row(path, file, frame, at);
            compare_row(path, file, frame, end - 1);
            free(frame);
            at = end;
        }
    }
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
    unwind_file_free(file);
    return rows;
}

START_TEST(rows_are_those_of_libdw)
{
    Dl_info libc;
    ck_assert(dladdr((void *)(uintptr_t)&getauxval, &libc));
    ck_assert_uint_gt(compare_file(libc.dli_fname), 20000);
    ck_assert_uint_gt(compare_file("/lib64/ld-linux-x86-64.so.2"), 1000);
    ck_assert_uint_gt(compare_file("/proc/self/exe"), 20000);
}
END_TEST
#endif

/* ---- stacks of this process ---- */

enum { MAPS_MAX = 64, COPY_MAX = 65280 };

struct maps {
    struct {
        uint64_t start, end, offset;
        struct unwind_file *file;
    } p[MAPS_MAX];
    size_t n;
};

static void read_maps(struct maps *m)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[4500], perms[5], path[4200];
    while (m->n < MAPS_MAX && fgets(line, sizeof line, f)) {
        path[0] = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4199s", &m->p[m->n].start, &m->p[m->n].end,
                   perms, &m->p[m->n].offset, path) < 4 ||
            perms[2] != 'x')
            continue;
        if (strcmp(path, "[vdso]") == 0)
            ck_assert_int_eq(
                unwind_file_image(&m->p[m->n].file,
                                  slice_of((const void *)getauxval(AT_SYSINFO_EHDR), m->p[m->n].end - m->p[m->n].start),
                                  UNWIND_FILE_BYTES, NULL),
                0);
        else if (path[0] == '/')
            m->p[m->n].file = open_path(path);
        m->n++;
    }
    fclose(f);
}

static void free_maps(struct maps *m)
{
    for (size_t i = 0; i < m->n; i++)
        unwind_file_free(m->p[i].file);
}

static bool find(void *ctx, uint64_t pc, struct unwind_place *place)
{
    const struct maps *m = ctx;
    for (size_t i = 0; i < m->n; i++)
        if (m->p[i].start <= pc && pc < m->p[i].end) {
            *place = unwind_place_of(m->p[i].file, m->p[i].start, m->p[i].offset);
            return true;
        }
    return false;
}

/* What the signal's handler saw. */
static struct snapshot {
    struct unwind_task interrupted, handler;
    uint8_t copy[COPY_MAX], handler_copy[COPY_MAX];
    void *glibc[100];
    int n_glibc;
} shot;

#if defined(__x86_64__)
__attribute__((no_sanitize("address"))) static void copy_stack(struct unwind_task *t, uint64_t sp, uint8_t *copy)
{
    extern char **environ; /* beyond main's frame */
    uint64_t end = (uint64_t)(uintptr_t)environ;
    size_t n = end > sp && end - sp < COPY_MAX ? (size_t)(end - sp) : COPY_MAX;
    for (size_t i = 0; i + 8 <= n; i += 8) /* sanitizers watch memcpy() */
        *(volatile uint64_t *)(copy + i) = *(const volatile uint64_t *)(uintptr_t)(sp + i);
    t->stack = slice_of(copy, n);
}

/* The registers as perf_event_open would have them. */
static void set_registers(struct unwind_task *t, const greg_t *g)
{
    static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    uint8_t values[sizeof order / sizeof *order * 8];
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        memcpy(values + 8 * i, &g[order[i]], 8);
    t->arch = UNWIND_X86_64;
    unwind_set_registers(t, 0xff01ff, values);
}

__attribute__((no_sanitize("address"))) static void on_signal(int sig, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    ucontext_t here;
    (void)sig;
    (void)info;
    set_registers(&shot.interrupted, u->uc_mcontext.gregs);
    copy_stack(&shot.interrupted, (uint64_t)u->uc_mcontext.gregs[REG_RSP], shot.copy);
    getcontext(&here);
    set_registers(&shot.handler, here.uc_mcontext.gregs);
    copy_stack(&shot.handler, (uint64_t)here.uc_mcontext.gregs[REG_RSP], shot.handler_copy);
    shot.n_glibc = backtrace(shot.glibc, 100);
}

__attribute__((noinline)) static int recurse(int n, volatile int *sink)
{
    volatile char room[40];
    room[n % 40] = (char)n;
    if (n == 0)
        raise(SIGUSR2);
    else
        *sink += recurse(n - 1, sink);
    return *sink + room[n % 40];
}

static int compare_ints(const void *a, const void *b)
{
    static volatile int sink;
    recurse(5, &sink);
    return *(const int *)a - *(const int *)b;
}

/* Through qsort() of libc, recursion, raise(), the frame of a signal and its handler. */
START_TEST(stacks_are_those_of_the_compiler)
{
    struct maps maps = {0};
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    enum unwind_end end;
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    int two[] = {2, 1};
    backtrace(shot.glibc, 1); /* loads libgcc */
    sigaction(SIGUSR2, &act, NULL);
    qsort(two, 2, sizeof *two, compare_ints);
    read_maps(&maps);
    struct unwind_cache *cache = unwind_cache_new();
    shot.interrupted.find = shot.handler.find = find;
    shot.interrupted.ctx = shot.handler.ctx = &maps;

    /* glibc's list begins in the handler (with sanitizers in theirs), then the trampoline, then what was interrupted */
    size_t first = 0, all = (size_t)shot.n_glibc;
    while (first < all && (uint64_t)(uintptr_t)shot.glibc[first] != shot.interrupted.regs[16])
        first++;
    ck_assert_uint_gt(all, first + 10);
    size_t n = unwind_stack(cache, &shot.interrupted, frames, UNWIND_MAX_FRAMES, &end);
    ck_assert_int_eq(end, UNWIND_WHOLE);
    ck_assert(frames[0].exact && !frames[1].exact);
    ck_assert_uint_eq(n, all - first);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(frames[i].pc, (uint64_t)(uintptr_t)shot.glibc[first + i]);

    n = unwind_stack(cache, &shot.handler, frames, UNWIND_MAX_FRAMES, &end);
    ck_assert_int_eq(end, UNWIND_WHOLE);
    ck_assert_uint_eq(n, all - first + 2);
    for (size_t i = 1; i < n; i++)
        ck_assert_uint_eq(frames[i].pc, (uint64_t)(uintptr_t)shot.glibc[first - 2 + i]);
    ck_assert(frames[2].exact); /* where the signal came */
    unwind_cache_free(cache);
    free_maps(&maps);
}
END_TEST

/* The same stack, with a copy that ends early: as far as it goes, and the reason. */
START_TEST(a_copy_that_ends_is_told)
{
    struct maps maps = {0};
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    int two[] = {2, 1};
    size_t last = 0;
    sigaction(SIGUSR2, &act, NULL);
    qsort(two, 2, sizeof *two, compare_ints);
    read_maps(&maps);
    struct unwind_cache *cache = unwind_cache_new();
    size_t whole = shot.interrupted.stack.len;
    for (size_t len = 0; len < 1024 && len < whole; len += 4) {
        enum unwind_end end;
        struct unwind_task t = shot.interrupted;
        t.find = find;
        t.ctx = &maps;
        t.stack.len = len;
        size_t n = unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES, &end);
        ck_assert_int_eq(end, UNWIND_OUTSIDE);
        ck_assert_uint_ge(n, last);
        ck_assert_uint_ge(n, 1);
        last = n;
    }
    ck_assert_uint_gt(last, 3);
    struct unwind_task t = shot.interrupted;
    enum unwind_end end;
    t.find = find;
    t.ctx = &maps;
    ck_assert_uint_eq(unwind_stack(cache, &t, frames, 3, &end), 3);
    ck_assert_int_eq(end, UNWIND_TOO_DEEP);
    unwind_cache_free(cache);
    free_maps(&maps);
}
END_TEST
#endif

/* ---- made tables ---- */

struct made {
    uint8_t bytes[512];
    size_t n;
};

static void put(struct made *m, uint64_t v, size_t bytes)
{
    memcpy(m->bytes + m->n, &v, bytes);
    m->n += bytes;
}

static void put_bytes(struct made *m, const char *bytes, size_t n)
{
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

/* A .eh_frame with one function at 0x1000 … 0x1100, whose instructions are `program`. */
static void make_table(struct made *m, const char *program, size_t n)
{
    m->n = 0;
    put(m, 16, 4); /* common: length, id, version, augmentation */
    put(m, 0, 4);
    put_bytes(m, "\1\0", 2);
    put_bytes(m, "\1\x78\x10", 3);      /* alignments 1 and -8, return address 16 */
    put_bytes(m, "\x0c\7\x8\x90\1", 5); /* CFA: rsp + 8; 16: CFA - 8 */
    put_bytes(m, "\0\0", 2);
    size_t at = m->n;
    put(m, 0, 4);
    put(m, at + 4, 4); /* to the common part */
    put(m, 0x1000, 8);
    put(m, 0x100, 8);
    put_bytes(m, program, n);
    uint32_t len = (uint32_t)(m->n - at - 4);
    memcpy(m->bytes + at, &len, 4);
    put(m, 0, 4);
}

static void use_table(struct unwind_file *f, struct made *m)
{
    *f = (struct unwind_file){.arch = UNWIND_X86_64, .eh = {m->bytes, m->n, 0x5000, true}};
    ck_assert_int_eq(cfi_list_functions(f, false, 1 << 20, NULL), 0);
}

static bool find_made(void *ctx, uint64_t pc, struct unwind_place *place)
{
    *place = (struct unwind_place){ctx, 0};
    return pc >= 0x1000 && pc < 0x1200;
}

/* One step from 0x1080 with a stack at 0x7000 that holds the numbers 0x7000, 0x7008 … but for `first` at its begin. */
static enum unwind_end step_from(struct unwind_file *f, uint64_t first, uint64_t *pc, uint64_t *sp)
{
    static uint64_t words[64];
    enum unwind_end end;
    struct unwind_frame frames[2];
    struct unwind_cache *cache = unwind_cache_new();
    for (unsigned i = 0; i < 64; i++)
        words[i] = 0x7000 + 8 * i;
    words[0] = first;
    struct unwind_task t = {.arch = UNWIND_X86_64, .known = 0x1ffff, .find = find_made, .ctx = f};
    t.stack = slice_of(words, sizeof words);
    t.regs[7] = 0x7000;
    t.regs[16] = 0x1080;
    unwind_stack(cache, &t, frames, 1, &end);
    *pc = t.regs[16];
    *sp = t.regs[7];
    unwind_cache_free(cache);
    return end;
}

static const struct program_case {
    const char *what, *bytes;
    size_t n;
    enum unwind_end end; /* UNWIND_TOO_DEEP: there is a caller */
    uint64_t pc, sp;
} program_cases[] = {
#define PROGRAM(bytes) bytes, sizeof bytes - 1
    {"nothing beside the common part", PROGRAM(""), UNWIND_TOO_DEEP, 0x1234, 0x7008},
    {"behind the address", PROGRAM("\x02\x90\x0e\x50"), UNWIND_TOO_DEEP, 0x1234, 0x7008},
    {"a larger frame", PROGRAM("\x02\x10\x0e\x20"), UNWIND_TOO_DEEP, 0x7018, 0x7020},
    {"remembered and restored", PROGRAM("\x0a\x02\x10\x0e\x20\x02\x10\x0b"), UNWIND_TOO_DEEP, 0x1234, 0x7008},
    {"restored without being remembered", PROGRAM("\x0b"), UNWIND_BAD_TABLES, 0, 0},
    {"remembered without end", PROGRAM("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"), UNWIND_BAD_TABLES, 0, 0},
    {"no caller", PROGRAM("\x07\x10"), UNWIND_WHOLE, 0, 0},
    {"an instruction that nobody knows", PROGRAM("\x3f"), UNWIND_BAD_TABLES, 0, 0},
    {"a frame outside of the copy", PROGRAM("\x0e\xff\x7f"), UNWIND_OUTSIDE, 0, 0},
    {"an address without end", PROGRAM("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), UNWIND_BAD_TABLES, 0, 0},
    {"CFA by an expression: rsp + 16", PROGRAM("\x0f\x02\x77\x10"), UNWIND_TOO_DEEP, 0x7008, 0x7010},
    {"an expression that loops", PROGRAM("\x0f\x03\x2f\xfd\xff"), UNWIND_BAD_TABLES, 0, 0},
    {"an expression that leaves itself", PROGRAM("\x0f\x03\x2f\x7f\x00"), UNWIND_BAD_TABLES, 0, 0},
    {"an expression without a result", PROGRAM("\x0f\x01\x96"), UNWIND_BAD_TABLES, 0, 0},
    {"an expression that takes from nothing", PROGRAM("\x0f\x01\x22"), UNWIND_BAD_TABLES, 0, 0},
    {"a division by zero", PROGRAM("\x0f\x03\x31\x30\x1b"), UNWIND_BAD_TABLES, 0, 0},
    {"an expression longer than the table", PROGRAM("\x0f\xff\x7f\x30"), UNWIND_BAD_TABLES, 0, 0},
    {"an offset behind a CFA by an expression", PROGRAM("\x0f\x02\x77\x10\x0e\xff\xff\xff\xff\x03"), UNWIND_BAD_TABLES,
     0, 0},
    {"an offset in front of it", PROGRAM("\x0f\x02\x77\x10\x13\xff\xff\xff\x1f"), UNWIND_BAD_TABLES, 0, 0},
    {"the return address by an expression", PROGRAM("\x10\x10\x02\x77\x18"), UNWIND_TOO_DEEP, 0x7018, 0x7008},
    {"the return address in a register", PROGRAM("\x09\x10\x03"), UNWIND_WHOLE, 0, 0}, /* rbx is 0 */
    {"the stack where it was", PROGRAM("\x0e\x00\x14\x10\x01\x14\x07\x00"), UNWIND_TOO_DEEP, 0x7000 - 8, 0x7000},
};

START_TEST(programs_do_what_they_say)
{
    const struct program_case *x = &program_cases[_i];
    struct made m;
    struct unwind_file f;
    uint64_t pc, sp;
    make_table(&m, x->bytes, x->n);
    use_table(&f, &m);
    enum unwind_end end = step_from(&f, 0x1234, &pc, &sp);
    ck_assert_msg(end == x->end, "%s: ended with %d", x->what, end);
    if (end == UNWIND_TOO_DEEP) {
        ck_assert_msg(pc == x->pc, "%s: pc %#" PRIx64, x->what, pc);
        ck_assert_msg(sp == x->sp, "%s: sp %#" PRIx64, x->what, sp);
    }
    vec_free(&f.eh_entries);
}
END_TEST

/* A frame that is its own caller does not go on. */
START_TEST(a_frame_that_repeats_ends)
{
    struct made m;
    struct unwind_file f;
    enum unwind_end end;
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    uint64_t words[4] = {0x1080};
    make_table(&m, "\x16\x10\x03\x0a\x80\x10\x14\x07\x01", 9); /* pc is 0x1080, rsp CFA - 8 */
    use_table(&f, &m);
    struct unwind_cache *cache = unwind_cache_new();
    struct unwind_task t = {.arch = UNWIND_X86_64, .known = 0x1ffff, .find = find_made, .ctx = &f};
    t.stack = slice_of(words, sizeof words);
    t.regs[7] = 0x7000;
    t.regs[16] = 0x1080;
    ck_assert_uint_eq(unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES, &end), 1);
    ck_assert_int_eq(end, UNWIND_REPEATS);
    unwind_cache_free(cache);
    vec_free(&f.eh_entries);
}
END_TEST

/* Instructions that move on by nothing, as many as a file may hold: each stack has an end of its work. */
START_TEST(work_is_bounded)
{
    enum { LONG = 8 << 20 };
    struct made m;
    struct unwind_file f;
    uint64_t pc, sp;
    make_table(&m, "", 0);
    uint8_t *bytes = malloc(LONG);
    size_t at = m.n - 4 - 24; /* of the function */
    memset(bytes, 0x40, LONG);
    memcpy(bytes, m.bytes, m.n - 4);
    uint32_t len = (uint32_t)(LONG - at - 4);
    memcpy(bytes + at, &len, 4);
    f = (struct unwind_file){.arch = UNWIND_X86_64, .eh = {bytes, LONG, 0x5000, true}};
    ck_assert_int_eq(cfi_list_functions(&f, false, 1 << 20, NULL), 0);
    ck_assert_uint_eq(f.eh_entries.n, 1);
    ck_assert_int_eq(step_from(&f, 0x1234, &pc, &sp), UNWIND_BAD_TABLES);
    vec_free(&f.eh_entries);
    free(bytes);
}
END_TEST

/* Numbers of megabytes, which each look-up would read again. */
START_TEST(long_numbers_have_no_value)
{
    uint8_t bytes[64];
    memset(bytes, 0x80, sizeof bytes);
    struct cfi_reader r = {bytes, bytes + sizeof bytes, false};
    cfi_uleb(&r);
    ck_assert(r.bad);
    ck_assert_int_le(r.p - bytes, 16);
    bytes[12] = 0; /* padded by compilers and linkers */
    r = (struct cfi_reader){bytes, bytes + sizeof bytes, false};
    ck_assert_uint_eq(cfi_uleb(&r), 0);
    ck_assert(!r.bad);
}
END_TEST

/* An expression that goes back and back: all of a stack have one end of their work. */
START_TEST(expressions_are_work)
{
    static const uint8_t loop[] = {5, 0x31, 0x12, 0x28, 0xfc, 0xff}; /* lit1; dup; bra -4 */
    uint8_t bytes[sizeof loop];
    memcpy(bytes, loop, sizeof loop);
    struct cfi_section s = {.bytes = bytes, .len = sizeof bytes};
    struct unwind_task t = {.arch = UNWIND_X86_64};
    uint64_t v;
    int64_t work = 1 << 20;
    ck_assert(!cfi_expression(&t, 0, &s, 0, NULL, &work, &v));
    ck_assert_int_lt(work, 1 << 20);
    int64_t each = (1 << 20) - work;
    work = each / 2;
    ck_assert(!cfi_expression(&t, 0, &s, 0, NULL, &work, &v));
    ck_assert_int_eq(work, 0);
}
END_TEST

/* ---- tables that are packed ---- */

/* An ELF file with a section `name` of `bytes`, and that of the names. */
static size_t make_elf(uint8_t *to, const char *name, const void *bytes, size_t n)
{
    char names[32] = "";
    size_t names_len = strlen(name) + 2, at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
    strcpy(names + 1, name);
    Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                    .e_machine = EM_X86_64,
                    .e_shoff = sizeof h,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = 3,
                    .e_shstrndx = 2};
    Elf64_Shdr sections[3] = {{0},
                              {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at, .sh_size = n},
                              {.sh_type = SHT_STRTAB, .sh_offset = at + n, .sh_size = names_len}};
    memcpy(to, &h, sizeof h);
    memcpy(to + sizeof h, sections, sizeof sections);
    memcpy(to + at, bytes, n);
    memcpy(to + at + n, names, names_len);
    return at + n + names_len;
}

static size_t pack(uint8_t *to, size_t room, const uint8_t *bytes, size_t n)
{
    size_t packed = 0;
    ck_assert_int_eq(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, bytes, n, to, &packed, room), LZMA_OK);
    return packed;
}

/* A file whose .gnu_debugdata is one with `section`. */
static size_t make_packed(uint8_t to[8192], const char *section, const void *bytes, size_t n)
{
    static uint8_t inner[1 << 21], packed[4096];
    size_t inner_len = make_elf(inner, section, bytes, n);
    return make_elf(to, ".gnu_debugdata", packed, pack(packed, sizeof packed, inner, inner_len));
}

START_TEST(packed_tables_are_read)
{
    struct made m;
    struct unwind_file *f;
    uint8_t image[8192];
    uint64_t pc, sp;
    make_table(&m, "", 0);
    memset(m.bytes + 4, 0xff, 4); /* as .debug_frame has it: the mark of the common part, and where it is */
    memset(m.bytes + 24, 0, 4);
    size_t n = make_packed(image, ".debug_frame", m.bytes, m.n);
    ck_assert_int_eq(unwind_file_image(&f, slice_of(image, n), UNWIND_FILE_BYTES, NULL), 0);
    step_from(f, 0x1150, &pc, &sp);
    ck_assert_uint_eq(pc, 0x1150);
    ck_assert_uint_eq(sp, 0x7008);
    ck_assert_uint_gt(unwind_file_memory(f), unwind_file_memory(f->packed));
    unwind_file_free(f);
    for (size_t i = 0; i < n; i++) { /* whatever is damaged, the file is read, or it is said why not */
        struct error err = {0};
        image[i] ^= 0x55;
        if (unwind_file_image(&f, slice_of(image, n), UNWIND_FILE_BYTES, &err) == 0)
            step_from(f, 0x1150, &pc, &sp);
        ck_assert(f || err.text[0]);
        unwind_file_free(f);
        image[i] ^= 0x55;
    }
}
END_TEST

/* Two megabytes of zeros in some hundred bytes, and a file in a file in a file. */
START_TEST(packed_tables_are_bounded)
{
    static uint8_t zeros[(1 << 21) - 4096];
    struct unwind_file *f;
    uint8_t image[8192], twice[8192];
    size_t n = make_packed(image, ".debug_frame", zeros, sizeof zeros);
    ck_assert_int_eq(unwind_file_image(&f, slice_of(image, n), 1 << 20, NULL), 0);
    ck_assert_ptr_null(f->packed);
    unwind_file_free(f);
    ck_assert_int_eq(unwind_file_image(&f, slice_of(image, n), 1 << 24, NULL), 0);
    ck_assert_ptr_nonnull(f->packed);
    unwind_file_free(f);
    n = make_packed(image, ".debug_frame", zeros, 64);
    n = make_packed(twice, ".gnu_debugdata", image + sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr), n);
    ck_assert_int_eq(unwind_file_image(&f, slice_of(twice, n), 1 << 24, NULL), 0);
    ck_assert_ptr_null(f->packed);
    unwind_file_free(f);
}
END_TEST

/* ---- files that are cut ---- */

START_TEST(cut_files_are_told)
{
    struct unwind_file *f;
    struct error err;
    size_t len, good = 0;
    char *bytes;
    Dl_info libc;
    ck_assert(dladdr((void *)(uintptr_t)&getauxval, &libc));
    ck_assert_int_eq(file_read_all(libc.dli_fname, 1 << 24, &bytes, &len, NULL), 0);
    for (size_t n = 0; n < len; n += n < 4096 ? 7 : 16381) {
        err = (struct error){0};
        int rc = unwind_file_image(&f, slice_of(bytes, n), UNWIND_FILE_BYTES, &err);
        ck_assert(rc == 0 || err.text[0]);
        good += rc == 0; /* only the headers of sections are gone */
        unwind_file_free(f);
    }
    ck_assert_uint_lt(good, 40); /* the tables are near the end */
    ck_assert_int_eq(unwind_file_image(&f, slice_of(bytes, len), 4096, &err), -MRD_ELIMIT);
    bytes[EI_CLASS] = ELFCLASS32;
    ck_assert_int_eq(unwind_file_image(&f, slice_of(bytes, len), UNWIND_FILE_BYTES, &err), -MRD_EUNSUPPORTED);
    mem_free(bytes);
}
END_TEST

Suite *unwind_suite(void);
Suite *unwind_suite(void)
{
    Suite *s = suite_create("unwind");
    TCase *t = tcase_create("unwind");
    tcase_set_timeout(t, 120);
#if MERIDIAN_HAS_LIBDW && defined(__x86_64__)
    tcase_add_test(t, rows_are_those_of_libdw);
#endif
#if defined(__x86_64__)
    tcase_add_test(t, stacks_are_those_of_the_compiler);
    tcase_add_test(t, a_copy_that_ends_is_told);
#endif
    tcase_add_loop_test(t, programs_do_what_they_say, 0, sizeof program_cases / sizeof *program_cases);
    tcase_add_test(t, a_frame_that_repeats_ends);
    tcase_add_test(t, work_is_bounded);
    tcase_add_test(t, long_numbers_have_no_value);
    tcase_add_test(t, expressions_are_work);
    tcase_add_test(t, packed_tables_are_read);
    tcase_add_test(t, packed_tables_are_bounded);
    tcase_add_test(t, cut_files_are_told);
    suite_add_tcase(s, t);
    return s;
}
