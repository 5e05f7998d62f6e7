/* Times the statements of a list with plans of our own and with SQLite alone, and compares their answers:
 *
 *     bench_shapes [-r RUNS] [-t SECONDS] TRACE SHAPES.sql [NAME…]
 *
 * A statement begins behind a line `-- shape: NAME`; INCLUDE statements in front of it are not measured. Each run is a
 * process of its own that begins where the loaded trace is, so that what is made on first use counts. Prints the
 * milliseconds of processor time of both and their ratio, worst first; then the geometric mean and the least ratio of
 * those that take SQLite two milliseconds or more. What is short is run more often, and measured in time of the wall,
 * since some machines count processor time in ticks. SQLite is stopped after SECONDS. Exit 1: the answers are not the
 * same.
 */
#include "base/hash.h"
#include "meridian/tp.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SHAPES = 512, SHORT_MS = 60, SHORT_RUNS = 5 };

struct shape {
    char name[64];
    char *sql;
};

struct figure {
    double ms;
    uint64_t rows, hash;
    bool done, failed;
    char text[200];
};

struct result {
    const struct shape *shape;
    struct figure with, without;
};

static double clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the list ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, cap = 1 << 20;
    char *text = malloc(cap);
    if (f && text)
        n = fread(text, 1, cap - 1, f);
    if (f)
        fclose(f);
    if (text)
        text[n] = 0;
    return f ? text : NULL;
}

static uint32_t read_shapes(char *text, struct shape *shapes)
{
    static const char mark[] = "-- shape: ";
    uint32_t n = 0;
    for (char *at = strstr(text, mark), *next; at && n < MAX_SHAPES; at = next) {
        char *name = at + strlen(mark), *end = strchr(name, '\n');
        if (!end)
            break;
        next = strstr(end, mark);
        snprintf(shapes[n].name, sizeof shapes[n].name, "%.*s", (int)(end - name), name);
        shapes[n].sql = end + 1;
        if (next)
            next[-1] = 0;
        n++;
    }
    return n;
}

/* ---- one run ---- */

static void add_row(struct figure *f, const struct tp_result *r)
{
    f->rows++;
    for (int k = 0; k < tp_columns(r); k++) {
        enum tp_type type = tp_column_type(r, k);
        double d = type == TP_DOUBLE ? tp_double(r, k) : 0;
        uint64_t word = (uint64_t)type;
        size_t len = 0;
        const char *text = type == TP_TEXT ? tp_text(r, k, &len) : NULL;
        if (type == TP_INT64)
            word += (uint64_t)tp_int64(r, k) << 3;
        else if (type == TP_DOUBLE)
            memcpy(&word, &d, sizeof word);
        else if (text)
            word += hash_bytes(text, len);
        f->hash = hash_combine(f->hash, word);
    }
}

static bool is_include(const char *sql)
{
    while (isspace((unsigned char)*sql))
        sql++;
    return strncasecmp(sql, "include", 7) == 0;
}

static void measure(struct tp *tp, const char *sql, struct figure *f)
{
    struct tp_result *r;
    double start = clock_ms(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ms(CLOCK_MONOTONIC);
    for (size_t at = 0, before = 0;; before = at) {
        bool include = is_include(sql + before);
        int rc = tp_query_next(tp, NULL, sql, strlen(sql), &at, &r);
        while (rc == 1 && (rc = tp_step(r)) == 1)
            add_row(f, r);
        if (rc == 0 && at == before)
            break;
        if (rc < 0) {
            f->failed = true;
            snprintf(f->text, sizeof f->text, "%s", tp_error(tp));
            break;
        }
        tp_result_close(r);
        if (sql[at] == 0 || sql[at + strspn(sql + at, "; \n")] == 0)
            break;
        if (include) {
            start = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
            wall = clock_ms(CLOCK_MONOTONIC);
        }
    }
    f->ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
    if (f->ms < SHORT_MS)
        f->ms = clock_ms(CLOCK_MONOTONIC) - wall;
    f->done = true;
}

/* In a process of its own. */
static struct figure run(struct tp *tp, const char *sql, unsigned seconds)
{
    struct figure f = {.ms = seconds * 1e3};
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {seconds, seconds};
        setrlimit(RLIMIT_CPU, &limit);
        measure(tp, sql, &f);
        _exit(write(ends[1], &f, sizeof f) != (ssize_t)sizeof f);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &f, sizeof f);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    if (got != (ssize_t)sizeof f)
        f = (struct figure){.ms = seconds * 1e3};
    return f;
}

static struct figure best(struct tp *tp, const char *sql, unsigned seconds, int runs)
{
    struct figure least = run(tp, sql, seconds);
    for (int k = 1; k < (least.ms < SHORT_MS ? SHORT_RUNS : least.ms > 2000 ? 1 : runs); k++) {
        struct figure f = run(tp, sql, seconds);
        if (f.ms < least.ms)
            least = f;
    }
    return least;
}

static struct tp *load(const char *path, bool plans)
{
    struct tp_config config = {.no_native_plans = !plans};
    struct tp *tp;
    struct tp_result *r;
    if (tp_open(&tp, &config) || tp_load(tp, path) || tp_finish(tp) || tp_query(tp, "SELECT 1", &r)) {
        fprintf(stderr, "%s: %s\n", path, tp_error(tp));
        exit(1);
    }
    tp_result_close(r);
    return tp;
}

/* ---- all of them ---- */

static double ratio(const struct result *r)
{
    return r->without.ms / r->with.ms;
}

static int by_ratio(const void *a, const void *b)
{
    double x = ratio(a), y = ratio(b);
    return (x > y) - (x < y);
}

static bool wanted(const char *name, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return n == 0;
}

static bool same(const struct result *r)
{
    if (!r->with.done || !r->without.done)
        return true;
    return r->with.failed == r->without.failed && r->with.rows == r->without.rows && r->with.hash == r->without.hash;
}

static int report(struct result *results, uint32_t n)
{
    double sum = 0, least = INFINITY;
    uint32_t counted = 0, bad = 0;
    qsort(results, n, sizeof *results, by_ratio);
    for (uint32_t i = 0; i < n; i++) {
        const struct result *r = &results[i];
        bool counts = r->without.ms >= 2 && !r->with.failed;
        printf("%9.2f %9.2f %8.2f %10llu  %s%s%s%s\n", r->with.ms, r->without.ms, ratio(r),
               (unsigned long long)r->with.rows, r->shape->name, same(r) ? "" : "  OTHER ANSWER",
               r->without.done ? "" : "  (SQLite was stopped)", r->with.done ? "" : "  (stopped)");
        if (r->with.failed)
            printf("    %s\n", r->with.text);
        bad += !same(r);
        if (counts) {
            sum += log(ratio(r));
            counted++;
            least = ratio(r) < least ? ratio(r) : least;
        }
    }
    printf("%u statements of two milliseconds or more: geometric mean %.2f, least %.2f; %u other answers\n", counted,
           counted ? exp(sum / counted) : 0, least, bad);
    return bad != 0;
}

int main(int argc, char **argv)
{
    static struct shape shapes[MAX_SHAPES];
    static struct result results[MAX_SHAPES];
    unsigned seconds = 30, n = 0;
    int runs = 2;
    for (int option; (option = getopt(argc, argv, "r:t:")) != -1;) {
        if (option == 'r')
            runs = atoi(optarg);
        else if (option == 't')
            seconds = (unsigned)atoi(optarg);
    }
    char *text = argc > optind + 1 ? read_file(argv[optind + 1]) : NULL;
    if (!text) {
        fprintf(stderr, "usage: bench_shapes [-r RUNS] [-t SECONDS] TRACE SHAPES.sql [NAME...]\n");
        return 1;
    }
    uint32_t n_shapes = read_shapes(text, shapes);
    struct tp *with = load(argv[optind], true), *without = load(argv[optind], false);
    for (uint32_t i = 0; i < n_shapes; i++) {
        if (!wanted(shapes[i].name, argv + optind + 2, argc - optind - 2))
            continue;
        struct result *r = &results[n++];
        r->shape = &shapes[i];
        r->with = best(with, shapes[i].sql, seconds * 2, runs);
        r->without = best(without, shapes[i].sql, seconds, runs);
    }
    int rc = report(results, n);
    tp_close(with);
    tp_close(without);
    free(text);
    return rc;
}
