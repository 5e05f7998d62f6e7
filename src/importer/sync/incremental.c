/* The incremental hull rules that agree with Trace Compass. */
#include "importer/sync/incremental.h"

#include "base/error.h"

typedef __int128 wide;

void incremental_sync_init(struct incremental_sync *s)
{
    *s = (struct incremental_sync){.quality = SYNC_ABSENT, .alpha = 1};
}

void incremental_sync_free(struct incremental_sync *s)
{
    vec_free(&s->hull[0]);
    vec_free(&s->hull[1]);
    incremental_sync_init(s);
}

/* The sign of (b - a) x (c - a). */
static int cross(struct sync_point a, struct sync_point b, struct sync_point c)
{
    wide l = (wide)(b.x - a.x) * (c.y - a.y), r = (wide)(b.y - a.y) * (c.x - a.x);
    return (l > r) - (l < r);
}

static bool same(struct sync_point a, struct sync_point b)
{
    return a.x == b.x && a.y == b.y;
}

static bool index_of(const sync_points *list, struct sync_point p, size_t *at)
{
    for (size_t i = 0; i < list->n; i++) {
        if (same(list->p[i], p)) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* Finds the old point of a line again, on the hull `on`. The walk ends one short of the newest point, as theirs does.
 */
static void refit(struct incremental_line *l, const sync_points *on, int sign)
{
    size_t at = 0;
    if (l->has_old && !index_of(on, l->old_point, &at))
        at = 0;
    bool examined = false, settled = false;
    for (; !settled && at + 1 < on->n;) {
        struct sync_point cur = on->p[at], next = on->p[at + 1];
        examined = true;
        if (cross(cur, next, l->new_point) * sign > 0) {
            if (next.x < l->new_point.x) {
                at++;
            } else {
                l->has_old = false;
                settled = true;
            }
        } else {
            l->old_point = cur;
            l->has_old = true;
            settled = true;
        }
    }
    if (!l->has_old && examined) {
        l->old_point = on->p[at];
        l->has_old = true;
    }
    if (l->has_old && l->old_point.x > l->new_point.x)
        l->has_old = false;
}

static long double slope_of(const struct incremental_line *l)
{
    if (!l->has_old || l->new_point.x == l->old_point.x)
        return 1;
    return (long double)(l->new_point.y - l->old_point.y) / (long double)(l->new_point.x - l->old_point.x);
}

static void update(struct incremental_sync *s)
{
    const struct incremental_line *flat = &s->line[SYNC_BELOW], *steep = &s->line[SYNC_ABOVE];
    if (s->quality == SYNC_FAIL)
        return;
    if (!flat->has_old && !steep->has_old) {
        if (!s->hull[0].n || !s->hull[1].n)
            s->quality = SYNC_INCOMPLETE;
        return;
    }
    s->alpha_max = slope_of(steep);
    s->alpha_min = slope_of(flat);
    if (!flat->has_old || !steep->has_old) {
        s->quality = SYNC_APPROXIMATE;
    } else if (s->alpha_max > s->alpha_min) {
        s->quality = SYNC_ACCURATE;
    } else {
        s->quality = SYNC_FAIL;
        return;
    }
    s->beta_min = (long double)steep->new_point.y - s->alpha_max * (long double)steep->new_point.x;
    s->beta_max = (long double)flat->new_point.y - s->alpha_min * (long double)flat->new_point.x;
    s->alpha = (s->alpha_max + s->alpha_min) / 2;
    s->beta = (s->beta_min + s->beta_max) / 2;
}

int incremental_sync_add(struct incremental_sync *s, enum sync_kind kind, int64_t x, int64_t y)
{
    const int64_t limit = (int64_t)1 << 62;
    if (x <= -limit || x >= limit || y <= -limit || y >= limit)
        return -MRD_ELIMIT;
    struct sync_point p = {x, y};
    sync_points *own = &s->hull[kind], *across = &s->hull[!kind];
    struct incremental_line *l = &s->line[kind], *other = &s->line[!kind];
    int sign = kind == SYNC_BELOW ? 1 : -1;
    s->n_messages++;
    bool qualifies = !l->has_old || !l->has_new || cross(p, l->old_point, l->new_point) * sign > 0;
    if (qualifies) {
        s->n_accurate++;
        while (own->n >= 2 && cross(p, own->p[own->n - 2], own->p[own->n - 1]) * sign > 0)
            own->n--;
        if (!vec_push(own, p))
            return -MRD_ENOMEM;
        l->new_point = p;
        l->has_new = true;
    }
    refit(l, across, sign);
    size_t at;
    if (other->has_new && !(other->has_old && index_of(own, other->old_point, &at)))
        refit(other, own, -sign);
    if (qualifies)
        update(s);
    return 0;
}
