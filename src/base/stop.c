/* Sorts, and stops when it is told to. */
#include "base/stop.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 12 }; /* elements sorted without a look; merges look as often */

struct sorter {
    size_t size;
    int (*compare)(const void *, const void *, void *);
    void *ctx;
    stop_flag *f;
};

/* Merges the sorted [a, a_end) and [a_end, b_end) to `to`. */
static bool merge(const struct sorter *s, const char *a, const char *a_end, const char *b_end, char *to)
{
    const char *b = a_end;
    for (size_t i = 0; a < a_end && b < b_end; i++) {
        if (i % BLOCK == 0 && stop_asked(s->f))
            return false;
        const char **least = s->compare(a, b, s->ctx) <= 0 ? &a : &b;
        memcpy(to, *least, s->size);
        *least += s->size;
        to += s->size;
    }
    memcpy(to, a, (size_t)(a_end - a));
    memcpy(to + (a_end - a), b, (size_t)(b_end - b));
    return true;
}

bool stop_sort_r(void *p, size_t n, size_t size, int (*compare)(const void *, const void *, void *), void *ctx,
                 stop_flag *f)
{
    struct sorter s = {size, compare, ctx, f};
    if (n <= BLOCK) {
        if (n)
            qsort_r(p, n, size, compare, ctx);
        return !stop_asked(f);
    }
    char *from = p, *spare = mem_alloc(n * size), *to = spare;
    bool ok = spare != NULL;
    for (size_t i = 0; ok && i < n; i += BLOCK) {
        qsort_r(from + i * size, n - i < BLOCK ? n - i : BLOCK, size, compare, ctx);
        ok = !stop_asked(f);
    }
    for (size_t run = BLOCK; ok && run < n; run *= 2) {
        for (size_t i = 0; ok && i < n; i += 2 * run) {
            size_t middle = n - i < run ? n : i + run, end = n - i < 2 * run ? n : i + 2 * run;
            ok = merge(&s, from + i * size, from + middle * size, from + end * size, to + i * size);
        }
        if (!ok)
            break; /* all of them are still in `from` */
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != p)
        memcpy(p, from, n * size);
    mem_free(spare);
    return ok;
}

struct plain {
    int (*compare)(const void *, const void *);
};

static int compare_plain(const void *a, const void *b, void *ctx)
{
    return ((const struct plain *)ctx)->compare(a, b);
}

bool stop_sort(void *p, size_t n, size_t size, int (*compare)(const void *, const void *), stop_flag *f)
{
    struct plain plain = {compare};
    return stop_sort_r(p, n, size, compare_plain, &plain, f);
}
