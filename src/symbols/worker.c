/* The worker: names the addresses of one file. */
#include "symbols/symbol_worker.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/sandbox.h"
#include "demangle/demangle.h"
#include "symbols/dwarf_lines.h"
#include "symbols/function_table.h"
#include "symbols/worker_private.h"
#include "wire/fields.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 20, FLUSH_BYTES = 1 << 18 };

struct worker {
    struct worker_job job;
    uint64_t *addresses;
    struct libdw libdw;
    bool has_libdw, deep_stack;
    struct elf_image file, debug;
    struct function_table functions;
    struct dwarf_lines *lines; /* NULL: none */
    struct pb_writer out;
    char readable[DEMANGLE_MAX_TEXT], path[PATH_MAX];
};

static bool read_all(int fd, void *to, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = file_read(fd, (char *)to + got, n - got);
        if (r <= 0)
            return false;
        got += (size_t)r;
    }
    return true;
}

static int read_job(struct worker *w)
{
    if (!read_all(WORKER_JOB_FD, &w->job, sizeof w->job) || w->job.n > WORKER_MAX_ADDRESSES)
        return WORKER_BAD_JOB;
    w->addresses = mem_alloc((w->job.n + 1) * sizeof *w->addresses);
    if (!w->addresses)
        return WORKER_NO_MEMORY;
    return read_all(WORKER_JOB_FD, w->addresses, w->job.n * sizeof *w->addresses) ? WORKER_OK : WORKER_BAD_JOB;
}

static void limit(int what, uint64_t n)
{
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)what, &r) != 0)
        return;
    r.rlim_cur = r.rlim_max = r.rlim_max < n ? r.rlim_max : n;
    (void)setrlimit((__rlimit_resource_t)what, &r);
}

/* The bounds, and then the rights. */
static int confine(struct worker *w)
{
    struct rlimit stack;
    struct error err = {0};
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && (stack.rlim_max == RLIM_INFINITY || stack.rlim_max >= STACK_BYTES)) {
        stack.rlim_cur = STACK_BYTES;
        w->deep_stack = setrlimit(RLIMIT_STACK, &stack) == 0;
    }
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CPU, w->job.cpu_s);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their shadow is a part of all addresses */
    limit(RLIMIT_AS, w->job.memory_bytes);
#endif
    if (sandbox_enter(0, &err) < 0 || sandbox_only_compute(&err) < 0)
        return WORKER_NO_SANDBOX;
    return WORKER_OK;
}

/* Where the file's code begins: below lie the addresses of what was left out when it was linked. */
static uint64_t lowest_address(const struct elf_image *e)
{
    return e->executable && e->address ? e->address & ~UINT64_C(0xfff) : 0;
}

static bool open_image(struct elf_image *e, int fd)
{
    struct error err = {0};
    return elf_image_open(e, fd, &err) == 0 && elf_image_sections(e, &err) == 0;
}

static int open_files(struct worker *w)
{
    struct error err = {0};
    bool passed_over;
    if (!open_image(&w->file, WORKER_FILE_FD) || (w->job.has_debug && !open_image(&w->debug, WORKER_DEBUG_FD)))
        return WORKER_BAD_FILE;
    const struct elf_image *rich = w->debug.wealth >= ELF_HAS_SYMBOLS ? &w->debug : &w->file;
    if (function_table_read_elf(&w->functions, rich, &passed_over, &err) < 0)
        return err.code == -MRD_ENOMEM ? WORKER_NO_MEMORY : WORKER_BAD_FILE;
    const struct elf_image *dwarf = w->debug.wealth == ELF_HAS_LINES ? &w->debug : &w->file;
    if (dwarf->wealth != ELF_HAS_LINES)
        return passed_over ? WORKER_NO_PACKED : WORKER_OK;
    if (!w->has_libdw)
        return WORKER_NO_LIBDW;
    if (dwarf_lines_open(&w->lines, &w->libdw, dwarf->fd, w->job.has_alt ? WORKER_ALT_FD : -1, lowest_address(dwarf),
                         &err) == 0)
        return WORKER_OK;
    dwarf_lines_close(w->lines);
    w->lines = NULL;
    return err.code == -MRD_ENOMEM ? WORKER_NO_MEMORY : WORKER_NO_DWARF;
}

static void put_line(struct worker *w, const struct code_line *line)
{
    struct slice name = slice_str(line->function);
    size_t n = demangle(name, w->deep_stack, w->readable, sizeof w->readable);
    size_t mark = pb_begin(&w->out, ADDRESS_SYMBOLS_LINES);
    pb_put_text(&w->out, LINE_FUNCTION_NAME, n ? slice_of(w->readable, n) : name);
    if (line->file && line->file[0] != '/' && line->dir) {
        int len = snprintf(w->path, sizeof w->path, "%s/%s", line->dir, line->file);
        pb_put_text(&w->out, LINE_SOURCE_FILE_NAME,
                    slice_of(w->path, (size_t)len < sizeof w->path ? (size_t)len : sizeof w->path - 1));
    } else if (line->file) {
        pb_put_text(&w->out, LINE_SOURCE_FILE_NAME, slice_str(line->file));
    }
    if (line->file && line->line)
        pb_put_varint(&w->out, LINE_LINE_NUMBER, line->line);
    pb_end(&w->out, mark);
}

/* The linker knows which copy or part of a function it is (foo.cold, foo.constprop.0). */
static bool is_part_of(const char *symbol, const char *function)
{
    size_t n = function ? strlen(function) : 0;
    return n && strncmp(symbol, function, n) == 0 && symbol[n] == '.';
}

static void put_address(struct worker *w, uint64_t address)
{
    struct code_line lines[DWARF_MAX_INLINED + 1] = {{0}};
    size_t n = w->lines ? dwarf_lines_at(w->lines, address, lines) : 0;
    const struct function *f = function_table_find(&w->functions, address);
    if (!n)
        n = 1;
    struct code_line *outer = &lines[n - 1];
    if (f && (!outer->function || is_part_of(f->name, outer->function)))
        outer->function = f->name;
    if (!outer->function)
        return;
    size_t mark = pb_begin(&w->out, MODULE_SYMBOLS_ADDRESS_SYMBOLS);
    pb_put_varint(&w->out, ADDRESS_SYMBOLS_ADDRESS, address);
    for (size_t i = 0; i < n; i++)
        if (lines[i].function)
            put_line(w, &lines[i]);
    pb_end(&w->out, mark);
}

static bool flush(struct worker *w, size_t above)
{
    struct error err = {0};
    if (w->out.n <= above)
        return true;
    int rc = file_write_all(WORKER_OUT_FD, w->out.p, w->out.n, &err);
    pb_writer_clear(&w->out);
    return rc == 0;
}

static int work(struct worker *w)
{
    int status = read_job(w);
    struct error err = {0};
    if (status != WORKER_OK)
        return status;
    w->has_libdw = libdw_open(&w->libdw, &err) == 0;
    status = confine(w);
    if (status == WORKER_OK)
        status = open_files(w);
    if (status >= WORKER_BAD_JOB)
        return status;
    for (uint64_t i = 0; i < w->job.n; i++) {
        put_address(w, w->addresses[i]);
        if (w->out.failed)
            return WORKER_NO_MEMORY;
        if (!flush(w, FLUSH_BYTES))
            return WORKER_BAD_JOB;
    }
    return flush(w, 0) ? status : WORKER_BAD_JOB;
}

int symbol_worker_main(void)
{
    signal(SIGPIPE, SIG_IGN);
    struct worker *w = mem_zalloc(sizeof *w);
    int status = w ? work(w) : WORKER_NO_MEMORY;
    _exit(status); /* nothing is given back: the process is all that it had */
}
