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

/* Merges e[0, half) with e[half, n), each in order. The smaller part of what overlaps is moved out of the way. Which of
 * two events comes first is not guessed: the events of two CPUs take turns as they like. */
static void merge_forward(struct sort_event *e, size_t stay, size_t half, size_t end, struct sort_event *tmp,
                          int64_t tie_from)
{
    size_t moved = half - stay, a = 0, b = half, out = stay;
    memcpy(tmp, e + stay, moved * sizeof *e);
    while (a < moved && b < end) {
        bool later = comes_after(&tmp[a], &e[b], tie_from);
        const struct sort_event *next = later ? &e[b] : &tmp[a];
        e[out++] = *next;
        b += later;
        a += !later;
    }
    memcpy(e + out, tmp + a, (moved - a) * sizeof *e);
}

static void merge_backward(struct sort_event *e, size_t stay, size_t half, size_t end, struct sort_event *tmp,
                           int64_t tie_from)
{
    size_t moved = end - half, a = half, b = moved, out = end;
    memcpy(tmp, e + half, moved * sizeof *e);
    while (a > stay && b > 0) {
        bool later = comes_after(&e[a - 1], &tmp[b - 1], tie_from);
        const struct sort_event *last = later ? &e[a - 1] : &tmp[b - 1];
        e[--out] = *last;
        a -= later;
        b -= !later;
    }
    memcpy(e + stay, tmp, b * sizeof *e);
}

static void merge(struct sort_event *e, size_t half, size_t n, struct sort_event *tmp, int64_t tie_from)
{
    if (!comes_after(&e[half - 1], &e[half], tie_from))
        return;
    size_t stay = not_after(e, half, &e[half], tie_from);
    size_t end = half + before(e + half, n - half, &e[half - 1], tie_from);
    if (half - stay <= end - half)
        merge_forward(e, stay, half, end, tmp, tie_from);
    else
        merge_backward(e, stay, half, end, tmp, tie_from);
}

/* How many of e[0, n) are in order. */
static size_t in_order(const struct sort_event *e, size_t from, size_t n, int64_t tie_from)
{
    size_t i = from;
    while (i < n && !comes_after(&e[i - 1], &e[i], tie_from))
        i++;
    return i;
}

/* Brings the first so many runs of e[0, n) into order; how many events that are. A run is what is in order already, or
 * INSERTION_RUN events and what follows those. */
static size_t sort_runs(struct sort_event *e, size_t n, size_t runs, struct sort_event *tmp, int64_t tie_from)
{
    if (runs == 1) {
        size_t run = in_order(e, 1, n, tie_from), least = n < INSERTION_RUN ? n : INSERTION_RUN;
        if (run >= least)
            return run;
        insertion_sort(e, least, tie_from);
        return in_order(e, least, n, tie_from);
    }
    size_t half = sort_runs(e, n, runs / 2, tmp, tie_from);
    if (half == n)
        return n;
    size_t end = half + sort_runs(e + half, n - half, runs - runs / 2, tmp, tie_from);
    merge(e, half, end, tmp, tie_from);
    return end;
}

void merge_sort_events(struct sort_event *e, size_t n, struct sort_event *tmp, int64_t tie_from)
{
    if (!n)
        return;
    size_t done = sort_runs(e, n, 1, tmp, tie_from);
    for (size_t runs = 1; done < n; runs *= 2) {
        size_t end = done + sort_runs(e + done, n - done, runs, tmp, tie_from);
        merge(e, done, end, tmp, tie_from);
        done = end;
    }
}
