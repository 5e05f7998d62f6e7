/* Cuts messages into windows that one line satisfies. */
#include "importer/sync/windows.h"

#include "base/bisect.h"
#include "base/error.h"

#include <stdlib.h>

int sync_windows_add(struct sync_windows *w, enum sync_kind kind, int64_t x, int64_t y)
{
    struct sync_hull probe = {0}; /* refuses what a hull would refuse */
    int rc = sync_hull_add(&probe, kind, x, y);
    sync_hull_free(&probe);
    if (rc)
        return rc;
    return vec_push(&w->messages, (struct sync_message){x, y, kind}) ? 0 : -MRD_ENOMEM;
}

static int by_x(const void *pa, const void *pb)
{
    const struct sync_message *a = pa, *b = pb;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static int solve_range(struct sync_hull *h, const struct sync_message *m, size_t n, const struct sync_limits *limits)
{
    sync_hull_clear(h);
    for (size_t i = 0; i < n; i++) {
        int rc = sync_hull_add(h, m[i].kind, m[i].x, m[i].y);
        if (rc)
            return rc;
    }
    return sync_hull_solve(h, limits);
}

/* The largest n such that the first n messages are feasible: doubling, then bisection. At least 1. */
static int longest(struct sync_hull *h, const struct sync_message *m, size_t left, const struct sync_limits *limits,
                   size_t *n)
{
    int rc = solve_range(h, m, left, limits); /* most recordings need no cut */
    if (rc || h->quality != SYNC_FAIL) {
        *n = left;
        return rc;
    }
    size_t good = 1, bad = 2;
    for (;; bad *= 2) {
        if (bad >= left) {
            bad = left;
            break;
        }
        rc = solve_range(h, m, bad, limits);
        if (rc)
            return rc;
        if (h->quality == SYNC_FAIL)
            break;
        good = bad;
    }
    while (good + 1 < bad) {
        size_t mid = good + (bad - good) / 2;
        rc = solve_range(h, m, mid, limits);
        if (rc)
            return rc;
        if (h->quality == SYNC_FAIL)
            bad = mid;
        else
            good = mid;
    }
    *n = good;
    return solve_range(h, m, good, limits);
}

static void set_floors(struct sync_windows *w)
{
    const struct sync_window *before = NULL;
    for (size_t i = 0; i < w->windows.n; i++) {
        struct sync_window *win = &w->windows.p[i];
        win->y_begin = before ? before->y_begin : INT64_MIN; /* in order even where there is no map */
        if (!win->has_transform)
            continue;
        win->y_floor = INT64_MIN;
        if (before) {
            int64_t reached = sync_transform_apply(&before->transform, win->x_begin - 1);
            win->y_floor = reached > before->y_floor ? reached : before->y_floor;
        }
        win->y_begin = sync_transform_apply(&win->transform, win->x_begin);
        if (win->y_begin < win->y_floor)
            win->y_begin = win->y_floor;
        before = win;
    }
}

int sync_windows_solve(struct sync_windows *w, const struct sync_limits *limits)
{
    for (size_t i = 0; i < w->windows.n; i++)
        sync_hull_free(&w->windows.p[i].hull);
    vec_clear(&w->windows);
    if (w->messages.n)
        qsort(w->messages.p, w->messages.n, sizeof *w->messages.p, by_x);
    for (size_t at = 0; at < w->messages.n;) {
        struct sync_window *win = vec_add(&w->windows);
        if (!win)
            return -MRD_ENOMEM;
        const struct sync_message *m = w->messages.p + at;
        int rc = longest(&win->hull, m, w->messages.n - at, limits, &win->n);
        if (rc)
            return rc;
        win->first = at;
        win->x_begin = m[0].x;
        win->x_end = m[win->n - 1].x;
        int64_t middle = win->x_begin + (win->x_end - win->x_begin) / 2;
        win->has_transform = sync_transform_middle(&win->hull, middle, &win->transform);
        at += win->n;
    }
    set_floors(w);
    return 0;
}

/* The last window that begins at or before x (by_y: whose map begins at or below y), or the first one. */
static size_t window_before(const struct sync_windows *w, int64_t v, bool by_y)
{
    size_t n = w->windows.n;
    BISECT(n, i, (by_y ? w->windows.p[i].y_begin : w->windows.p[i].x_begin) <= v);
    return n ? n - 1 : 0;
}

/* The nearest window with a map, at `i` or before it, else behind it. */
static const struct sync_window *mapped_near(const struct sync_windows *w, size_t i)
{
    for (size_t k = i + 1; k-- > 0 && k < w->windows.n;)
        if (w->windows.p[k].has_transform)
            return &w->windows.p[k];
    for (size_t k = i + 1; k < w->windows.n; k++)
        if (w->windows.p[k].has_transform)
            return &w->windows.p[k];
    return NULL;
}

const struct sync_window *sync_windows_at(const struct sync_windows *w, int64_t x)
{
    return w->windows.n ? mapped_near(w, window_before(w, x, false)) : NULL;
}

bool sync_windows_apply(const struct sync_windows *w, int64_t x, int64_t *y, int64_t *error)
{
    const struct sync_window *win = sync_windows_at(w, x);
    if (!win)
        return false;
    int64_t own = sync_transform_apply(&win->transform, x);
    *y = own < win->y_floor ? win->y_floor : own;
    if (error) {
        int64_t bound = sync_transform_error(&win->transform, &win->hull, x), moved = *y - own;
        *error = bound > INT64_MAX - moved ? INT64_MAX : bound + moved;
    }
    return true;
}

bool sync_windows_invert(const struct sync_windows *w, int64_t y, int64_t *x)
{
    const struct sync_window *win = w->windows.n ? mapped_near(w, window_before(w, y, true)) : NULL;
    if (!win)
        return false;
    *x = sync_transform_invert(&win->transform, y);
    if (win->y_floor != INT64_MIN && (*x < win->x_begin || y <= win->y_floor))
        *x = win->x_begin;
    const struct sync_window *end = w->windows.p + w->windows.n, *next = win + 1;
    while (next < end && !next->has_transform)
        next++;
    if (next<end && * x> next->x_begin) /* y lies where the clock jumped: the next window has reached it at once */
        *x = next->x_begin;
    return true;
}

void sync_windows_free(struct sync_windows *w)
{
    for (size_t i = 0; i < w->windows.n; i++)
        sync_hull_free(&w->windows.p[i].hull);
    vec_free(&w->windows);
    vec_free(&w->messages);
}
