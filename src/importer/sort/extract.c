/* The parsing side: takes events from the queues in the order that the merging side found, and hands them to the
 * parsers.
 *
 * The merging side runs ahead in a thread of its own, where that is worth it: it fills a ring of batches, which the
 * caller's thread parses in their order. What is to happen between two events (memory that may go) stands in the batch.
 * With a thread or without, the batches are the same. */
#include "base/alloc.h"
#include "importer/sort/sorter_internal.h"
#include "storage/stats.h"

#include <pthread.h>

enum {
    RING = 8,       /* batches: half of them are emptied before the merging side is woken */
    LOOK_AHEAD = 4, /* events of a queue whose bytes are asked for before they are parsed; others come in between */
};

/* --- parsing ------------------------------------------------------------------------------------------------------ */

/* Bytes of events lie where they were recorded, one cpu's beside each other: in order of time each is on another page,
 * and asked for early they come while others are parsed. */
static inline void ask_for_bytes(const struct feed *f, uint32_t from, uint32_t to)
{
    enum { CACHE_LINE = 64 };
    to = to < f->left ? to : f->left;
    for (; from < to; from++)
        for (uint32_t at = 0; at < f->points_to_bytes; at += CACHE_LINE)
            __builtin_prefetch((const void *)(uintptr_t)(f->at[from].a + at));
}

/* Begins with the next block; false when out of memory. */
static bool next_events(struct feed *f)
{
    f->at = sort_queue_front(f->q, &f->left);
    if (!f->at)
        return false;
    ask_for_bytes(f, 0, LOOK_AHEAD);
    return true;
}

/* Once memory has run out, events are passed over: the load has failed. */
static void parse_batch(struct sorter *s, const struct sort_batch *b)
{
    for (uint32_t r = 0; r < b->n_runs && !s->failed; r++) {
        struct feed *f = &s->feeds.p[b->runs[r] >> RUN_LEAF_SHIFT];
        uint32_t n = (b->runs[r] & (RUN_LATE - 1)) + 1;
        if (!f->left && !next_events(f)) {
            s->failed = true;
            break;
        }
        if (f->points_to_bytes)
            ask_for_bytes(f, LOOK_AHEAD, LOOK_AHEAD + n);
        const struct sort_event *events = f->at;
        f->at += n;
        f->left -= n;
        if (!(b->runs[r] & RUN_LATE))
            f->parse(f->owner, events, n);
        if (!f->left) {
            sort_queue_drop_front(f->q, &s->bytes);
            f->at = NULL;
        }
    }
    if (s->failed)
        return;
    s->n_parsed += b->n_events;
    if (s->progress)
        s->progress(s->progress_ctx, s->n_parsed, s->n_events);
    if (b->releases)
        s->released(s->released_ctx, b->oldest);
}

static void run_alone(struct sorter *s, struct sort_batch *b)
{
    bool more;
    do {
        more = sort_order_fill(&s->order, b);
        parse_batch(s, b);
    } while (more);
}

/* --- both at once ------------------------------------------------------------------------------------------------- */

struct pipeline {
    struct sorter *s;
    pthread_mutex_t lock;
    pthread_cond_t filled;  /* one more batch, or all */
    pthread_cond_t emptied; /* half of the ring */
    struct sort_batch *ring[RING];
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
        more = sort_order_fill(&p->s->order, p->ring[k % RING]);
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

/* --- from the first event to the last ----------------------------------------------------------------------------- */

static bool begin_feeds(struct sorter *s)
{
    vec_clear(&s->feeds);
    s->failed = !vec_reserve(&s->feeds, s->order.leaves.n);
    if (s->failed)
        return false;
    for (size_t i = 0; i < s->order.leaves.n; i++) {
        struct sort_queue *q = s->order.leaves.p[i].q;
        s->feeds.p[s->feeds.n++] =
            (struct feed){.q = q, .points_to_bytes = q->points_to_bytes, .parse = q->parse, .owner = q->owner};
    }
    return true;
}

static void end_feeds(struct sorter *s)
{
    for (size_t i = 0; i < s->feeds.n; i++) {
        struct feed *f = &s->feeds.p[i];
        sort_queue_end(f->q, f->at, f->left);
    }
    vec_clear(&s->feeds);
}

/* Events that cost something to merge: all but those of the largest queue that stand there in order. The others are
 * less dear to take than to hand over: perf.data, which has one queue, takes 1.04 times the time with a thread. */
static uint64_t events_to_merge(const struct sorter *s)
{
    const struct sort_queue *largest = NULL;
    uint64_t unsorted = 0;
    for (size_t i = 0; i < s->feeds.n; i++) {
        const struct sort_queue *q = s->feeds.p[i].q;
        largest = !largest || q->pushed - q->head > largest->pushed - largest->head ? q : largest;
    }
    for (size_t k = largest ? largest->first_block : 0, mixed = k; largest && k < largest->blocks.n; k++) {
        const struct sort_block *b = &largest->blocks.p[k];
        mixed = k + b->unsorted > mixed ? k + b->unsorted : mixed;
        unsorted += k < mixed ? b->events->n : 0;
    }
    uint64_t in_order = largest ? largest->pushed - largest->head - unsorted : 0;
    return s->n_events > in_order ? s->n_events - in_order : 0;
}

static void run(struct sorter *s)
{
    s->n_parsed = 0;
    if (s->thread_from && s->n_events >= s->thread_from && events_to_merge(s) >= s->thread_from && run_with_thread(s))
        return;
    struct sort_batch *b = mem_alloc(sizeof *b);
    if (b)
        run_alone(s, b);
    s->failed |= !b;
    mem_free(b);
}

void sorter_extract(struct sorter *s)
{
    struct sort_order *o = &s->order;
    if (s->failed) /* and so has the load */
        return;
    if (sort_order_begin(s, &s->n_events) && begin_feeds(s)) {
        run(s);
        end_feeds(s);
    }
    s->failed |= o->failed;
    s->bytes += o->bytes;
    sort_order_end(o);
    if (o->late)
        stats_add(s->stats, 0, STAT_sorter_push_event_out_of_order, (int64_t)o->late);
    o->late = 0;
}
