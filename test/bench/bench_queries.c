/* Times SQL files on a loaded trace, in processor time so that a busy machine matters less:
 * bench_queries TRACE FILE.sql ... prints milliseconds (best of three, first run) of each. */
#include "meridian/tp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (f && text && fread(text, 1, (1 << 16) - 1, f) == 0)
        text[0] = 0;
    if (f)
        fclose(f);
    return text;
}

/* Runs every statement to its end; false on failure. */
static bool run(struct tp *tp, const char *sql)
{
    struct tp_result *r;
    int rc;
    for (size_t at = 0; (rc = tp_query_next(tp, NULL, sql, strlen(sql), &at, &r)) == 1;) {
        while ((rc = tp_step(r)) == 1)
            ;
        tp_result_close(r);
        if (rc < 0)
            return false;
    }
    return rc == 0;
}

int main(int argc, char **argv)
{
    struct tp *tp;
    if (argc < 3 || tp_open(&tp, NULL) || tp_load(tp, argv[1]) || tp_finish(tp)) {
        fprintf(stderr, "usage: bench_queries TRACE FILE.sql ...\n");
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        char *sql = read_text(argv[i]);
        const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        double best = 1e18, first = 0;
        bool creates = strstr(sql, "create ") != NULL; /* only once */
        for (int k = 0; k < (creates ? 1 : 3); k++) {
            double start = cpu_ms();
            if (!run(tp, sql)) {
                fprintf(stderr, "%s: %s\n", name, tp_error(tp));
                break;
            }
            double took = cpu_ms() - start;
            best = took < best ? took : best;
            first = k ? first : took;
        }
        printf("%9.1f %9.1f  %s\n", best, first, name);
        fflush(stdout);
        free(sql);
    }
    tp_close(tp);
    return 0;
}
