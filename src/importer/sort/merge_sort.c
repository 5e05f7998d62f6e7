/* A stable merge sort of events, quick where most of them are in order. */
#include "importer/sort/merge_sort.h"

#include "base/bisect.h"

#include <stdbool.h>
#include <string.h>

enum { INSERTION_RUN = 24 };

/* Whether x comes after y, which arrived later. */
static inline bool comes_after(const struct sort_event *x, const struct sort_event *y, int64_t tie_from)
{
    return x->ts > y->ts || (x->ts == y->ts && x->ts >= tie_from && x->b > y->b);
}

static void insertion_sort(struct sort_event *e, size_t n, int64_t tie_from)
{
    for (size_t i = 1; i < n; i++) {
        if (!comes_after(&e[i - 1], &e[i], tie_from))
            continue;
        struct sort_event x = e[i];
        size_t j = i;
        for (; j > 0 && comes_after(&e[j - 1], &x, tie_from); j--)
            e[j] = e[j - 1];
        e[j] = x;
    }
}

/* How many of e[0, n), which is in order, do not come after x, which arrived later. */
static size_t not_after(const struct sort_event *e, size_t n, const struct sort_event *x, int64_t tie_from)
{
    BISECT(n, i, !comes_after(&e[i], x, tie_from));
    return n;
}

/* How many of e[0, n), which is in order, x comes after, which arrived earlier. */
static size_t before(const struct sort_event *e, size_t n, const struct sort_event *x, int64_t tie_from)
{
    BISECT(n, i, comes_after(x, &e[i], tie_from));
    return n;
}

void merge_sort_events(struct sort_event *e, size_t n, struct sort_event *tmp, int64_t tie_from)
{
    if (n <= INSERTION_RUN) {
        insertion_sort(e, n, tie_from);
        return;
    }
    size_t half = n / 2;
    merge_sort_events(e, half, tmp, tie_from);
    merge_sort_events(e + half, n - half, tmp, tie_from);
    if (!comes_after(&e[half - 1], &e[half], tie_from))
        return;
    size_t stay = not_after(e, half, &e[half], tie_from), moved = half - stay;
    size_t end = half + before(e + half, n - half, &e[half - 1], tie_from);
    memcpy(tmp, e + stay, moved * sizeof *e);
    size_t a = 0, b = half, out = stay;
    while (a < moved && b < end)
        e[out++] = comes_after(&tmp[a], &e[b], tie_from) ? e[b++] : tmp[a++];
    memcpy(e + out, tmp + a, (moved - a) * sizeof *e);
}
