/* Messages over a long time, cut into windows in each of which one line satisfies them all.
 *
 * Drift is not constant for ever: where no single line fits, the window ends and a new one begins (greedy: each window
 * is as long as it can be). Within a window everything is proven as in hull.h; between two windows the map is joined so
 * that it never goes backwards. */
#ifndef MERIDIAN_IMPORTER_SYNC_WINDOWS_H
#define MERIDIAN_IMPORTER_SYNC_WINDOWS_H

#include "importer/sync/transform.h"

struct sync_message {
    int64_t x;
    int64_t y;
    enum sync_kind kind;
};

struct sync_window {
    int64_t x_begin; /* first and last message of the window, by x */
    int64_t x_end;
    size_t first; /* index of its messages */
    size_t n;
    struct sync_hull hull; /* solved */
    struct sync_transform transform;
    bool has_transform; /* the hull is ACCURATE */
    int64_t y_floor;    /* what the windows before have reached where this one takes over; INT64_MIN for the first */
    int64_t y_begin;    /* the map at x_begin */
};

struct sync_windows {
    VEC(struct sync_message)
    messages; /* sorted by x once solved */
    VEC(struct sync_window)
    windows;
};

int sync_windows_add(struct sync_windows *w, enum sync_kind kind, int64_t x, int64_t y);

/* Cuts and solves. O(n log^2 n). A window that has no transform of its own (too few messages at a cut) is merged into
 * its neighbour's map by the reader: sync_windows_at() skips it. -MRD_ENOMEM. */
int sync_windows_solve(struct sync_windows *w, const struct sync_limits *limits);

/* The window whose map holds at x: the last one with a transform that begins at or before x, else the first one with
 * one. NULL when no window has a transform. */
const struct sync_window *sync_windows_at(const struct sync_windows *w, int64_t x);

/* y of x along all windows: each window's own map from its first message to the next window's, but never below what the
 * windows before have reached, so that the whole never decreases. *error (may be NULL) is the bound there: INT64_MAX
 * where nothing is proven. */
bool sync_windows_apply(const struct sync_windows *w, int64_t x, int64_t *y, int64_t *error);

/* The smallest x that maps to at least y. False when no window has a transform. */
bool sync_windows_invert(const struct sync_windows *w, int64_t y, int64_t *x);

void sync_windows_free(struct sync_windows *w);

#endif
