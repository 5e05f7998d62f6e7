/* Merges the queues into batches of events in time order, and hands those to the parsers.
 *
 * Merging needs nothing that parsing makes, so that it can run ahead in a thread of its own: it fills a ring of
 * batches, which the caller's thread parses in their order. The queues belong to the merging side until it is joined;
 * what is to happen between two events (memory that may go) stands in the batch. With a thread or without, the batches
 * are the same. */
#include "base/alloc.h"
#include "importer/sort/sorter_internal.h"
#include "storage/stats.h"

#include <pthread.h>
#include <string.h>

enum {
    RELEASE_EVERY = 256, /* blocks emptied between two looks for the oldest epoch, at least */
    BATCH_EVENTS = 2048, /* 48 KiB */
    RING = 8,            /* batches: half of them are emptied before the merging side is woken */
    LOOK_AHEAD = 16,     /* events whose bytes are asked for before they are parsed */
};

struct run {
    const struct sort_queue *q;
    uint32_t n;
};

struct batch {
    uint32_t n_events;
    uint32_t n_runs;
    bool releases; /* once it is parsed, blocks of input before `oldest` may go */
    uint64_t oldest;
    struct sort_event events[BATCH_EVENTS];
    struct run runs[BATCH_EVENTS];
};

/* --- merging ------------------------------------------------------------------------------------------------------ */

static void note_released(struct sorter *s, struct batch *b)
{
    uint64_t oldest = s->epoch;
    size_t visited = s->busy.n;
    s->freed = 0;
    if (!s->released)
        return;
    for (size_t i = 0; i < s->busy.n; i++) {
        const struct sort_queue *q = s->busy.p[i];
        for (size_t k = q->first_block; k < q->blocks.n; k++)
            if (q->blocks.p[k].epoch < oldest)
                oldest = q->blocks.p[k].epoch;
        if (q->n_fresh && q->fresh_epoch < oldest)
            oldest = q->fresh_epoch;
        visited += q->blocks.n - q->first_block;
    }
    s->release_after =
        visited / 4 > RELEASE_EVERY ? visited / 4 : RELEASE_EVERY; /* amortised, however many there are */
    b->releases = true;
    b->oldest = oldest;
}

/* Appends n events of the queue, but for those that are late. */
static inline void take(struct sorter *s, const struct sort_queue *q, const struct sort_event *e, uint32_t n,
                        struct batch *b)
{
    s->emitted = true;
    if (__builtin_expect(e->ts < s->emitted_ts, 0))
        for (; n && e->ts < s->emitted_ts; e++, n--)
            s->late++;
    if (!n)
        return;
    s->emitted_ts = e[n - 1].ts;
    memcpy(&b->events[b->n_events], e, n * sizeof *e);
    b->n_events += n;
    b->runs[b->n_runs++] = (struct run){q, n};
}

/* Unpacks the next block of the leaf; false when it has none, or memory ran out. */
static bool next_block(struct sorter *s, struct leaf *l)
{
    uint32_t n;
    if (l->q->head >= l->q->limit)
        return false;
    l->at = sort_queue_front(l->q, &n, &s->bytes);
    s->failed |= !l->at;
    l->end = l->at ? l->at + n : NULL;
    return l->at;
}

static void drop_block(struct sorter *s, struct leaf *l)
{
    sort_queue_drop_front(l->q, &s->bytes);
    l->at = l->end = NULL;
    s->freed++;
}

enum taken { TAKEN_NONE, TAKEN_SOME, TAKEN_FULL /* the batch has no room for the rest of the run */ };

/* Moves events of the leaf that are not later than `until` to the batch. */
static enum taken take_run(struct sorter *s, struct leaf *l, int64_t until, struct batch *b)
{
    enum taken taken = TAKEN_NONE;
    while (l->at || next_block(s, l)) {
        const struct sort_event *e = l->at, *end = e + (BATCH_EVENTS - b->n_events);
        if (e->ts > until)
            return taken;
        if (e == end)
            return TAKEN_FULL;
        end = end < l->end ? end : l->end;
        do
            e++;
        while (e < end && e->ts <= until);
        take(s, l->q, l->at, (uint32_t)(e - l->at), b);
        l->at = e;
        if (e == l->end)
            drop_block(s, l);
        taken = TAKEN_SOME;
    }
    return taken;
}

/* The earliest of what may be emitted and of what arrived after the limit. False when there is neither. */
static inline bool leaf_ts(const struct leaf *l, int64_t *ts)
{
    const struct sort_queue *q = l->q;
    if (l->at) {
        *ts = l->at->ts < l->suffix_min ? l->at->ts : l->suffix_min;
        return true;
    }
    *ts = l->suffix_min;
    if (q->head < q->limit && sort_queue_front_ts(q) < *ts)
        *ts = sort_queue_front_ts(q);
    return !sort_queue_empty(q);
}

/* Fills the batch with what comes next; false when that is all. */
static bool fill(struct sorter *s, struct batch *b)
{
    uint32_t winner;
    int64_t ts, second;
    b->n_events = b->n_runs = 0;
    b->releases = false;
    while (s->in_run || merge_tree_first(&s->tree, &winner, &second)) {
        struct leaf *l = s->in_run;
        if (!l) {
            l = &s->leaves.p[winner];
            s->until = l->suffix_min < second ? l->suffix_min : second;
        }
        enum taken taken = take_run(s, l, s->until, b);
        if (taken == TAKEN_FULL) {
            s->in_run = l;
            return true;
        }
        if (taken == TAKEN_NONE && !s->in_run)
            break; /* the earliest event of all arrived after the limit */
        s->in_run = NULL;
        bool live = leaf_ts(l, &ts);
        merge_tree_replace_first(&s->tree, ts, live);
        if (__builtin_expect(s->freed >= s->release_after, 0))
            note_released(s, b);
    }
    note_released(s, b);
    return false;
}

/* Begins with each queue and builds the tree; false when all are empty or memory ran out. */
static bool begin(struct sorter *s, uint64_t *events)
{
    *events = 0;
    s->in_run = NULL;
    s->freed = 0;
    vec_clear(&s->leaves);
    for (size_t i = 0; i < s->busy.n && !s->failed; i++) {
        struct sort_queue *q = s->busy.p[i];
        struct leaf l = {.q = q};
        if (sort_queue_empty(q))
            continue;
        *events += q->limit > q->head ? q->limit - q->head : 0;
        s->failed = !sort_queue_seal(q, &s->bytes);
        if (s->failed)
            break;
        sort_queue_begin(q, &l.suffix_min);
        s->failed = !vec_push(&s->leaves, l);
    }
    if (s->failed || !s->leaves.n)
        return false;
    if (!merge_tree_reserve(&s->tree, (uint32_t)s->leaves.n)) {
        s->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < s->leaves.n; i++) {
        int64_t ts;
        bool live = leaf_ts(&s->leaves.p[i], &ts);
        merge_tree_set(&s->tree, i, ts, live);
    }
    merge_tree_build(&s->tree);
    return true;
}

/* --- parsing ------------------------------------------------------------------------------------------------------ */

/* Bytes of events lie where they were recorded, one cpu's beside each other: in order of time each is on another page,
 * and asked for early they come while others are parsed. */
static void ask_for_bytes(const struct run *run, const struct sort_event *e)
{
    enum { CACHE_LINE = 64 };
    for (uint32_t i = 0; run->q->points_to_bytes && i < run->n; i++)
        for (uint32_t at = 0; at < run->q->points_to_bytes; at += CACHE_LINE)
            __builtin_prefetch((const void *)(uintptr_t)(e[i].a + at));
}

static void parse_batch(struct sorter *s, const struct batch *b)
{
    uint32_t at = 0, asked = 0, asked_runs = 0;
    for (uint32_t r = 0; r < b->n_runs; r++) {
        const struct run *run = &b->runs[r];
        for (; asked < b->n_events && asked < at + run->n + LOOK_AHEAD; asked += b->runs[asked_runs++].n)
            ask_for_bytes(&b->runs[asked_runs], &b->events[asked]);
        run->q->parse(run->q->owner, &b->events[at], run->n);
        at += run->n;
    }
    s->n_parsed += b->n_events;
    if (s->progress)
        s->progress(s->progress_ctx, s->n_parsed, s->n_events);
    if (b->releases)
        s->released(s->released_ctx, b->oldest);
}

static void run_alone(struct sorter *s, struct batch *b)
{
    bool more;
    do {
        more = fill(s, b);
        parse_batch(s, b);
    } while (more);
}

/* --- both at once ------------------------------------------------------------------------------------------------- */

struct pipeline {
    struct sorter *s;
    pthread_mutex_t lock;
    pthread_cond_t filled;  /* one more batch, or all */
    pthread_cond_t emptied; /* half of the ring */
    struct batch *ring[RING];
    uint32_t n_filled;
    uint32_t n_parsed;
    bool done;
};

static void *merge_ahead(void *ctx)
{
    struct pipeline *p = ctx;
    bool more = true;
    for (uint32_t k = 0; more; k++) {
        pthread_mutex_lock(&p->lock);
        if (p->n_filled - p->n_parsed == RING)
            while (p->n_filled - p->n_parsed > RING / 2)
                pthread_cond_wait(&p->emptied, &p->lock);
        pthread_mutex_unlock(&p->lock);
        more = fill(p->s, p->ring[k % RING]);
        pthread_mutex_lock(&p->lock);
        p->n_filled++;
        p->done = !more;
        pthread_cond_signal(&p->filled);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

static void parse_behind(struct pipeline *p)
{
    for (uint32_t k = 0;; k++) {
        pthread_mutex_lock(&p->lock);
        while (p->n_filled == k && !p->done)
            pthread_cond_wait(&p->filled, &p->lock);
        bool over = p->n_filled == k;
        pthread_mutex_unlock(&p->lock);
        if (over)
            return;
        parse_batch(p->s, p->ring[k % RING]);
        pthread_mutex_lock(&p->lock);
        p->n_parsed++;
        if (p->n_filled - p->n_parsed == RING / 2)
            pthread_cond_signal(&p->emptied);
        pthread_mutex_unlock(&p->lock);
    }
}

/* False when there is no thread, or no memory for it: nothing was done. */
static bool run_with_thread(struct sorter *s)
{
    struct pipeline p = {.s = s};
    pthread_t thread;
    bool ok = true;
    for (uint32_t i = 0; i < RING; i++)
        ok = ok && (p.ring[i] = mem_alloc(sizeof *p.ring[i]));
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.filled, NULL);
    pthread_cond_init(&p.emptied, NULL);
    ok = ok && pthread_create(&thread, NULL, merge_ahead, &p) == 0;
    if (ok) {
        parse_behind(&p);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&p.emptied);
    pthread_cond_destroy(&p.filled);
    pthread_mutex_destroy(&p.lock);
    for (uint32_t i = 0; i < RING; i++)
        mem_free(p.ring[i]);
    return ok;
}

void sorter_extract(struct sorter *s)
{
    uint64_t events;
    if (!begin(s, &events))
        return;
    s->n_events = events;
    s->n_parsed = 0;
    if (!s->thread_from || events < s->thread_from || !run_with_thread(s)) {
        struct batch *b = mem_alloc(sizeof *b);
        if (b)
            run_alone(s, b);
        else
            s->failed = true;
        mem_free(b);
    }
    if (s->late)
        stats_add(s->stats, 0, STAT_sorter_push_event_out_of_order, (int64_t)s->late);
    s->late = 0;
    for (size_t i = 0; i < s->leaves.n; i++)
        sort_queue_rest(s->leaves.p[i].q, (uint32_t)(s->leaves.p[i].end - s->leaves.p[i].at));
}
