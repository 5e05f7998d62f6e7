/* What the files of window functions share. */
#ifndef MERIDIAN_SQL_PLAN_WINDOW_PRIVATE_H
#define MERIDIAN_SQL_PLAN_WINDOW_PRIVATE_H

#include "sql/plan/plan_private.h"

struct windows {
    struct sink base;
    struct run *r;
    struct table *t;
    uint32_t *rows, n;
    uint8_t *starts; /* by place: 1 a partition begins, 2 rows that are no equals of those before */
    const struct plan_level *level;
    uint64_t n_texts, text_bytes; /* new to the string pool */
};

struct partition {
    struct windows *w;
    const struct plan_window *of;
    const int64_t *args, *fallbacks, *filter;
    const int64_t *keys; /* FRAME_RANGE: what orders the rows, ascending */
    uint32_t *groups;    /* FRAME_GROUPS: where they begin in the partition; then its end */
    uint32_t n_groups;
    int64_t null, *out;
    uint32_t from, to; /* rows [from, to) */
};

/* How far the frames have come; they only go forward. */
struct walk {
    uint32_t peers_end;
    int64_t lo, hi, group;
};

/* A sum and how it came about. */
struct window_running {
    __int128 i;
    double d, sizes;
    int64_t n;
};

#define WINDOW_EXACT 9007199254740992.0 /* integers below are sums of reals, too */

/* Adds the argument of a row (sign 1), or takes it away. */
void window_add(struct window_running *s, const struct partition *p, bool real, int64_t at, int sign);
int64_t window_result(const struct window_running *s, const struct partition *p, bool real);
/* Is one value of the function's type below another? */
bool window_less(const struct partition *p, int64_t a, int64_t b);
/* Ends the run, unless it has ended; false. */
bool window_fail(struct run *r, int rc);
/* Behind the equals of a row. */
uint32_t window_peers_end(const struct partition *p, uint32_t at);
/* Aggregates with EXCLUDE: window_exclude.c. */
void window_exclude(const struct partition *p, bool real);
/* The frame of a row, [*lo, *hi). */
void window_frame_of(const struct partition *p, uint32_t i, struct walk *w, int64_t *lo, int64_t *hi);
/* The results of group_concat(): window_concat.c. */
void window_concat(const struct partition *p, enum plan_type arg);

#endif
