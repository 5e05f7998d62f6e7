/* Aggregates over frames with EXCLUDE: each frame is gone through anew, as SQLite does it, since what is left out is
 * another part of it from row to row. */
#include "sql/plan/window_private.h"

/* What is left out of the frame of a row: [lo, hi), but not the row `kept`. */
struct hole {
    int64_t lo, hi, kept;
};

static bool is_better(const struct partition *p, int64_t word, int64_t best)
{
    return p->of->kind == WIN_MAX ? window_less(p, best, word) : window_less(p, word, best);
}

static int64_t extreme(const struct partition *p, int64_t lo, int64_t hi, const struct hole *h)
{
    int64_t best = p->null;
    for (int64_t at = lo; at < hi; at++) {
        int64_t word = p->args[at];
        if ((at >= h->lo && at < h->hi && at != h->kept) || word == p->null || (p->filter && p->filter[at] != 1))
            continue;
        best = best == p->null || is_better(p, word, best) ? word : best;
    }
    return best;
}

static int64_t sum(const struct partition *p, bool real, int64_t lo, int64_t hi, const struct hole *h)
{
    struct window_running s = {0};
    for (int64_t at = lo; at < hi; at++)
        if (at < h->lo || at >= h->hi || at == h->kept)
            window_add(&s, p, real, at, 1);
    if (s.sizes >= WINDOW_EXACT)
        window_fail(p->w->r, RUN_GAVE_UP);
    return window_result(&s, p, real);
}

void window_exclude(const struct partition *p, bool real)
{
    enum { MANY = 1 << 20 };
    struct walk walk = {.peers_end = p->from};
    int64_t peers = p->from, peers_end = p->from, looked_at = 0;
    for (uint32_t i = p->from; i < p->to && !p->w->r->rc; i++) {
        int64_t lo, hi;
        window_frame_of(p, i, &walk, &lo, &hi);
        if (i >= peers_end) {
            peers = i;
            peers_end = window_peers_end(p, i);
        }
        struct hole h = {peers, peers_end, -1};
        if (p->of->exclude == EXCLUDE_ROW)
            h = (struct hole){i, (int64_t)i + 1, -1};
        else if (p->of->exclude == EXCLUDE_TIES)
            h.kept = i;
        bool extremes = p->of->kind == WIN_MIN || p->of->kind == WIN_MAX;
        p->out[i] = extremes ? extreme(p, lo, hi, &h) : sum(p, real, lo, hi, &h);
        looked_at += hi - lo;
        if (looked_at > MANY) {
            looked_at = 0;
            run_stopped(p->w->r);
        }
    }
}
