/* Measures the unwinder: frames a second of processor time, with its cache and with the cache emptied before each
 * stack, and what reading the tables of a file takes.
 *
 *   bench_unwind [ELF FILE …]        files whose tables are read
 *
 * The stack is one of this process: recursion under qsort() of libc, as many as `DEPTH` times. */
#include "unwind/unwind.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MAPS_MAX = 64, COPY_MAX = 65280, DEPTH = 8, WARM = 200000, COLD = 500 };

struct maps {
    struct {
        uint64_t start, end, offset;
        struct unwind_file *file;
    } p[MAPS_MAX];
    size_t n;
};

static struct unwind_task task;
static uint8_t copy[COPY_MAX];

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct unwind_file *read_file(const char *path)
{
    struct unwind_file *f = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)unwind_file_read(&f, fd, UNWIND_FILE_BYTES, NULL);
        close(fd);
    }
    return f;
}

static void read_maps(struct maps *m)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[4500], perms[5], path[4200];
    while (f && m->n < MAPS_MAX && fgets(line, sizeof line, f)) {
        path[0] = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %4199s", &m->p[m->n].start, &m->p[m->n].end,
                   perms, &m->p[m->n].offset, path) < 4 ||
            perms[2] != 'x')
            continue;
        m->p[m->n].file = path[0] == '/' ? read_file(path) : NULL;
        m->n++;
    }
    if (f)
        fclose(f);
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

static void on_signal(int sig, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
    static const int order[] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    extern char **environ;
    const ucontext_t *u = context;
    uint8_t values[sizeof order / sizeof *order * 8];
    uint64_t sp = (uint64_t)u->uc_mcontext.gregs[REG_RSP], end = (uint64_t)(uintptr_t)environ;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        memcpy(values + 8 * i, &u->uc_mcontext.gregs[order[i]], 8);
    task.arch = UNWIND_X86_64;
    unwind_set_registers(&task, 0xff01ff, values);
    size_t n = end - sp < COPY_MAX ? (size_t)(end - sp) : COPY_MAX;
    memcpy(copy, (const void *)(uintptr_t)sp, n);
    task.stack = slice_of(copy, n);
#else
    (void)context;
#endif
    (void)sig;
    (void)info;
}

static int depth;
static int compare(const void *a, const void *b)
{
    int two[] = {2, 1};
    if (depth++ < DEPTH)
        qsort(two, 2, sizeof *two, compare);
    else
        raise(SIGUSR2);
    return *(const int *)a - *(const int *)b;
}

static void measure(const char *what, struct unwind_cache *cache, unsigned rounds, bool clear)
{
    struct unwind_frame frames[UNWIND_MAX_FRAMES];
    uint64_t all = 0;
    enum unwind_end end = UNWIND_UNSUPPORTED;
    double before = cpu_s();
    for (unsigned i = 0; i < rounds; i++) {
        struct unwind_task t = task;
        if (clear)
            unwind_cache_clear(cache);
        all += unwind_stack(cache, &t, frames, UNWIND_MAX_FRAMES, &end);
    }
    double s = cpu_s() - before;
    printf("%s: %.0f frames a second (%.1f frames a stack, %s)\n", what, (double)all / s, (double)all / rounds,
           end == UNWIND_WHOLE ? "whole" : "not whole");
}

int main(int argc, char **argv)
{
    struct maps maps = {0};
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    int two[] = {2, 1};
    sigaction(SIGUSR2, &act, NULL);
    qsort(two, 2, sizeof *two, compare);
    read_maps(&maps);
    task.find = find;
    task.ctx = &maps;
    struct unwind_cache *cache = unwind_cache_new();
    if (!cache)
        return 1;
    measure("rows in the cache", cache, WARM, false);
    measure("cache emptied before each stack", cache, COLD, true);
    for (int i = 1; i < argc; i++) {
        double before = cpu_s();
        struct unwind_file *f = read_file(argv[i]);
        printf("%s: its tables take %.1f ms and %.2f MB\n", argv[i], 1000 * (cpu_s() - before),
               f ? (double)unwind_file_memory(f) / 1e6 : 0.0);
        unwind_file_free(f);
    }
    for (size_t i = 0; i < maps.n; i++)
        unwind_file_free(maps.p[i].file);
    unwind_cache_free(cache);
    return 0;
}
