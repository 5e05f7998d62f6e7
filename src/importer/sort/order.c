/* The merging side: which queue's events come next, by their times alone. It needs nothing that parsing makes, so that
 * it can run ahead in a thread of its own. */
#include "base/alloc.h"
#include "importer/sort/sorter_internal.h"

enum { RELEASE_EVERY = 256 /* blocks passed between two looks for the oldest epoch, at least */ };

static void note_released(struct sort_order *o, struct sort_batch *b)
{
    uint64_t oldest = o->epoch;
    size_t visited = o->leaves.n;
    o->passed = 0;
    if (!o->tells_released)
        return;
    for (size_t i = 0; i < o->leaves.n; i++) {
        const struct leaf *l = &o->leaves.p[i];
        for (size_t k = l->block; k < l->q->blocks.n; k++)
            if (l->q->blocks.p[k].epoch < oldest)
                oldest = l->q->blocks.p[k].epoch;
        visited += l->q->blocks.n - l->block;
    }
    o->release_after =
        visited / 4 > RELEASE_EVERY ? visited / 4 : RELEASE_EVERY; /* amortised, however many there are */
    b->releases = true;
    b->oldest = oldest;
}

static inline void put_run(struct sort_batch *b, size_t leaf, uint32_t flags, size_t n)
{
    if (!n)
        return;
    b->runs[b->n_runs++] = (sort_run)leaf << RUN_LEAF_SHIFT | flags | (uint32_t)(n - 1);
    b->n_events += (uint32_t)n;
}

/* Puts down the leaf's events up to `end`, which are those of one block. */
static inline void take(struct sort_order *o, struct leaf *l, const int64_t *end, struct sort_batch *b)
{
    size_t leaf = (size_t)(l - o->leaves.p);
    const int64_t *t = l->at;
    o->emitted = true;
    if (__builtin_expect(*t < o->emitted_ts, 0)) {
        while (t < end && *t < o->emitted_ts)
            t++;
        o->late += (uint64_t)(t - l->at);
        put_run(b, leaf, RUN_LATE, (size_t)(t - l->at));
    }
    if (t < end)
        o->emitted_ts = end[-1];
    put_run(b, leaf, 0, (size_t)(end - t));
    l->at = end;
}

/* Begins with the next block of the leaf; false when it has none, or memory ran out. */
static bool next_block(struct sort_order *o, struct leaf *l)
{
    uint32_t n;
    if (!sort_queue_more(l->q, l->block))
        return false;
    l->at = sort_queue_times(l->q, l->block, &l->times, &n, &o->bytes);
    l->end = l->at ? l->at + n : NULL;
    o->failed |= !l->at;
    return l->at;
}

static void pass_block(struct sort_order *o, struct leaf *l)
{
    l->at = l->end = NULL;
    l->block++;
    o->passed++;
    if (!sort_queue_more(l->q, l->block)) {
        mem_free(l->times.p);
        l->times.p = NULL;
        l->times.cap = 0;
    }
}

enum taken { TAKEN_NONE, TAKEN_SOME, TAKEN_FULL /* the batch has no room for the rest of the run */ };

/* Puts down the events of the leaf that are not later than `until`. */
static enum taken take_run(struct sort_order *o, struct leaf *l, int64_t until, struct sort_batch *b)
{
    enum taken taken = TAKEN_NONE;
    while (l->at || next_block(o, l)) {
        const int64_t *t = l->at;
        if (*t > until)
            return taken;
        if (b->n_events >= BATCH_EVENTS || b->n_runs + 2 > BATCH_RUNS)
            return TAKEN_FULL;
        do
            t++;
        while (t < l->end && *t <= until);
        take(o, l, t, b);
        if (t == l->end)
            pass_block(o, l);
        taken = TAKEN_SOME;
    }
    return taken;
}

/* The earliest of what may be emitted and of what arrived after the limit. False when there is neither. */
static inline bool leaf_ts(const struct leaf *l, int64_t *ts)
{
    *ts = l->suffix_min;
    if (l->at) {
        *ts = *l->at < *ts ? *l->at : *ts;
        return true;
    }
    if (sort_queue_more(l->q, l->block) && sort_queue_block_ts(l->q, l->block) < *ts)
        *ts = sort_queue_block_ts(l->q, l->block);
    return l->block < l->q->blocks.n;
}

bool sort_order_fill(struct sort_order *o, struct sort_batch *b)
{
    uint32_t winner;
    int64_t ts, second;
    b->n_events = b->n_runs = 0;
    b->releases = false;
    while (o->in_run || merge_tree_first(&o->tree, &winner, &second)) {
        struct leaf *l = o->in_run;
        if (!l) {
            l = &o->leaves.p[winner];
            o->until = l->suffix_min < second ? l->suffix_min : second;
        }
        enum taken taken = take_run(o, l, o->until, b);
        if (taken == TAKEN_FULL) {
            o->in_run = l;
            return true;
        }
        if (taken == TAKEN_NONE && !o->in_run)
            break; /* the earliest event of all arrived after the limit */
        o->in_run = NULL;
        bool live = leaf_ts(l, &ts);
        merge_tree_replace_first(&o->tree, ts, live);
        if (__builtin_expect(o->passed >= o->release_after, 0))
            note_released(o, b);
    }
    note_released(o, b);
    return false;
}

bool sort_order_begin(struct sorter *s, uint64_t *events)
{
    struct sort_order *o = &s->order;
    *events = 0;
    o->in_run = NULL;
    o->passed = o->bytes = 0;
    o->epoch = s->epoch;
    o->tells_released = s->released != NULL;
    vec_clear(&o->leaves);
    for (size_t i = 0; i < s->busy.n && !o->failed; i++) {
        struct sort_queue *q = s->busy.p[i];
        struct leaf l = {.q = q};
        if (sort_queue_empty(q))
            continue;
        *events += q->limit > q->head ? q->limit - q->head : 0;
        o->failed = !sort_queue_seal(q, &s->bytes);
        if (o->failed)
            break;
        sort_queue_begin(q, &l.suffix_min);
        l.block = q->first_block;
        l.times.head = q->head;
        o->failed = o->leaves.n == RUN_LEAVES || !vec_push(&o->leaves, l);
    }
    if (o->failed || !o->leaves.n)
        return false;
    if (!merge_tree_reserve(&o->tree, (uint32_t)o->leaves.n)) {
        o->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < o->leaves.n; i++) {
        int64_t ts;
        bool live = leaf_ts(&o->leaves.p[i], &ts);
        merge_tree_set(&o->tree, i, ts, live);
    }
    merge_tree_build(&o->tree);
    return true;
}

void sort_order_end(struct sort_order *o)
{
    for (size_t i = 0; i < o->leaves.n; i++)
        mem_free(o->leaves.p[i].times.p);
    vec_clear(&o->leaves);
}
