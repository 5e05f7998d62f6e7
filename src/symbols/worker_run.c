/* Starts the worker, bounds it, and checks what it says. */
#include "symbols/symbol_worker.h"
#include "symbols/worker_private.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CPU_BASE_S = 10,
    CPU_BYTES_PER_S = 8 << 20, /* of the files: of debug information 50 MB are read in one second */
    CPU_ADDRESSES_PER_S = 10000,
    WALL_FACTOR = 4, /* a machine with other work to do */
    MEMORY_FACTOR = 16,
    MAX_LINES = 64,
    MAX_OUT_PER_ADDRESS = 1 << 16,
    MAX_OUT = 1 << 30,
};
#define MEMORY_BASE (UINT64_C(1) << 30)
#define MEMORY_MOST (UINT64_C(1) << 36)

struct run {
    const struct symbol_job *job;
    struct worker_job head;
    int job_fd, out[2];
    pid_t pid;
    uint8_t *said; /* by the worker */
    size_t n, cap;
};

static uint64_t bytes_of(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static void set_bounds(struct run *r)
{
    const struct symbol_job *j = r->job;
    uint64_t bytes = bytes_of(j->fd) + bytes_of(j->debug_fd) + bytes_of(j->alt_fd);
    uint64_t most = (MEMORY_MOST - MEMORY_BASE) / MEMORY_FACTOR;
    r->head = (struct worker_job){
        .n = j->n,
        .has_debug = j->debug_fd >= 0,
        .has_alt = j->alt_fd >= 0,
        .memory_bytes = MEMORY_BASE + MEMORY_FACTOR * (bytes < most ? bytes : most),
        .cpu_s = j->cpu_s ? (uint64_t)j->cpu_s : CPU_BASE_S + bytes / CPU_BYTES_PER_S + j->n / CPU_ADDRESSES_PER_S,
    };
}

/* The addresses in memory that the worker reads as a file. */
static int write_job(struct run *r, struct error *err)
{
    r->job_fd = memfd_create("addresses", MFD_CLOEXEC);
    if (r->job_fd < 0)
        return error_set_errno(err, errno, "memory for a worker");
    int rc = file_write_all(r->job_fd, &r->head, sizeof r->head, err);
    if (rc == 0)
        rc = file_write_all(r->job_fd, r->job->addresses, r->job->n * sizeof *r->job->addresses, err);
    if (rc == 0 && lseek(r->job_fd, 0, SEEK_SET) != 0)
        rc = error_set_errno(err, errno, "memory for a worker");
    return rc;
}

/* Files keep their places below WORKER_ALT_FD free for the copies that the worker gets. */
static int high_copy(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, WORKER_ALT_FD + 1);
}

static int start(struct run *r, struct error *err)
{
    const struct symbol_job *j = r->job;
    const struct {
        int from, to;
    } given[] = {{r->job_fd, WORKER_JOB_FD},
                 {r->out[1], WORKER_OUT_FD},
                 {j->fd, WORKER_FILE_FD},
                 {j->debug_fd, WORKER_DEBUG_FD},
                 {j->alt_fd, WORKER_ALT_FD}};
    enum { N = sizeof given / sizeof *given };
    int copies[N];
    char *argv[] = {(char *)(uintptr_t)SYMBOL_WORKER_NAME, NULL};
    const char *program = j->program ? j->program : "/proc/self/exe";
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setpgroup(&attr, 0); /* Ctrl-C is for the one who started it */
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = 0;
    for (size_t i = 0; i < N; i++) {
        copies[i] = given[i].from >= 0 ? high_copy(given[i].from) : -1;
        if (given[i].from >= 0 && copies[i] < 0 && !rc)
            rc = errno;
        if (copies[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, copies[i], given[i].to);
    }
    if (!rc)
        rc = posix_spawn(&r->pid, program, &actions, &attr, argv, environ);
    for (size_t i = 0; i < N; i++)
        if (copies[i] >= 0)
            close(copies[i]);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc ? error_set_errno(err, rc, "starting a worker") : 0;
}

/* Reads what the worker says until it is done. */
static int listen_to(struct run *r, struct error *err)
{
    int64_t deadline_ns = clock_now_ns(CLOCK_MONOTONIC) + (int64_t)(r->head.cpu_s * WALL_FACTOR) * 1000000000;
    size_t most = r->job->n < MAX_OUT / MAX_OUT_PER_ADDRESS ? (r->job->n + 1) * MAX_OUT_PER_ADDRESS : MAX_OUT;
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_now_ns(CLOCK_MONOTONIC)) / 1000000;
        struct pollfd p = {.fd = r->out[0], .events = POLLIN};
        int ready = left_ms > 0 ? poll(&p, 1, left_ms < 1000 ? (int)left_ms : 1000) : 0;
        if (left_ms <= 0)
            return error_set(err, -MRD_ETIMEOUT, "it takes too long");
        if (ready < 0 && errno != EINTR)
            return error_set_errno(err, errno, "waiting for a worker");
        if (ready <= 0)
            continue;
        if (r->cap - r->n < 1 << 16) {
            size_t cap = r->cap ? 2 * r->cap : 1 << 18;
            uint8_t *grown = mem_realloc(r->said, cap);
            if (!grown)
                return error_set(err, -MRD_ENOMEM, "out of memory");
            r->said = grown;
            r->cap = cap;
        }
        ssize_t got = file_read(r->out[0], r->said + r->n, r->cap - r->n);
        if (got < 0)
            return error_set_errno(err, errno, "reading from a worker");
        if (got == 0)
            return 0;
        r->n += (size_t)got;
        if (r->n > most)
            return error_set(err, -MRD_ELIMIT, "its names are too long");
    }
}

/* Its end, as a text when it is not a good one. */
static int judge(struct run *r, struct symbol_job_result *result, struct error *err)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {
#define X(name, value, text) {value, text},
        WORKER_STATUSES(X)
#undef X
    };
    int status = 0;
    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR) {
    }
    r->pid = 0;
    if (WIFSIGNALED(status)) {
        int s = WTERMSIG(status);
        if (s == SIGXCPU || s == SIGKILL)
            return error_set(err, -MRD_ETIMEOUT, "it takes too long");
        return error_set(err, -MRD_EFORMAT, "failed to parse (%s)", strsignal(s));
    }
    for (size_t i = 0; WIFEXITED(status) && i < sizeof texts / sizeof *texts; i++) {
        if (WEXITSTATUS(status) != texts[i].status)
            continue;
        if (texts[i].status >= WORKER_BAD_JOB)
            return error_set(err, -MRD_EFORMAT, "%s", texts[i].text);
        result->no_lines = texts[i].status != WORKER_OK;
        strncpy(result->note, texts[i].text, sizeof result->note - 1);
        return 0;
    }
    return error_set(err, -MRD_EFORMAT, "the worker failed (status %d)",
                     WIFEXITED(status) ? WEXITSTATUS(status) : status);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool put_lines(struct slice address, struct pb_writer *w)
{
    struct pb_cursor c = pb_cursor(address);
    struct pb_field f, g;
    size_t n = 0;
    while (n < MAX_LINES && pb_next(&c, &f)) {
        if (f.id != ADDRESS_SYMBOLS_LINES || !pb_find(pb_bytes(&f), LINE_FUNCTION_NAME, &g) || !g.u)
            continue;
        size_t mark = pb_begin(w, ADDRESS_SYMBOLS_LINES);
        pb_put_text(w, LINE_FUNCTION_NAME, pb_bytes(&g));
        pb_put_text(w, LINE_SOURCE_FILE_NAME,
                    pb_find(pb_bytes(&f), LINE_SOURCE_FILE_NAME, &g) ? pb_bytes(&g) : slice_of("", 0));
        pb_put_varint(w, LINE_LINE_NUMBER, pb_find(pb_bytes(&f), LINE_LINE_NUMBER, &g) ? pb_u32(&g) : 0);
        pb_end(w, mark);
        n++;
    }
    return n > 0;
}

/* Takes over the addresses that were asked for, each once. */
static int take_over(const struct run *r, struct pb_writer *w, struct symbol_job_result *result, struct error *err)
{
    const struct symbol_job *j = r->job;
    struct pb_cursor c = pb_cursor(slice_of(r->said, r->n));
    struct pb_field f, a;
    uint64_t last = 0;
    bool wrong = false, any = false;
    while (!wrong && pb_next(&c, &f)) {
        wrong = f.id != MODULE_SYMBOLS_ADDRESS_SYMBOLS || !pb_find(pb_bytes(&f), ADDRESS_SYMBOLS_ADDRESS, &a) ||
                (any && a.u <= last) || !bsearch(&a.u, j->addresses, j->n, sizeof *j->addresses, compare);
        if (wrong)
            break;
        any = true;
        last = a.u;
        size_t before = w->n, mark = pb_begin(w, MODULE_SYMBOLS_ADDRESS_SYMBOLS);
        pb_put_varint(w, ADDRESS_SYMBOLS_ADDRESS, last - j->shift);
        if (put_lines(pb_bytes(&f), w)) {
            pb_end(w, mark);
            result->named++;
        } else {
            w->n = before;
        }
    }
    if (w->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return wrong || c.bad ? error_set(err, -MRD_EFORMAT, "failed to parse (the worker's answer is damaged)") : 0;
}

int symbol_job_run(const struct symbol_job *job, struct pb_writer *w, struct symbol_job_result *result,
                   struct error *err)
{
    struct run r = {.job = job, .job_fd = -1, .out = {-1, -1}};
    size_t before = w->n;
    *result = (struct symbol_job_result){0};
    set_bounds(&r);
    int rc = job->n > WORKER_MAX_ADDRESSES ? error_set(err, -MRD_ELIMIT, "too many addresses") : write_job(&r, err);
    if (rc == 0 && pipe2(r.out, O_CLOEXEC) != 0)
        rc = error_set_errno(err, errno, "a pipe for a worker");
    if (rc == 0)
        rc = start(&r, err);
    if (r.out[1] >= 0)
        close(r.out[1]);
    if (rc == 0) {
        rc = listen_to(&r, err);
        if (rc < 0)
            kill(r.pid, SIGKILL);
        int judged = judge(&r, result, rc == 0 ? err : NULL);
        rc = rc == 0 ? judged : rc;
    }
    if (rc == 0)
        rc = take_over(&r, w, result, err);
    if (rc < 0) {
        w->n = before;
        result->named = 0;
    }
    if (r.out[0] >= 0)
        close(r.out[0]);
    if (r.job_fd >= 0)
        close(r.job_fd);
    mem_free(r.said);
    return rc;
}
