/* Merges all queues into time order, whole or by windows. */
#include "importer/sort/sorter.h"

#include "importer/sort/queue.h"
#include "storage/stats.h"

#include <stdlib.h>

enum { RELEASE_EVERY = 256 /* blocks emptied between two looks for the oldest epoch, at least */ };

/* A queue in the merge. Leaves are in order of queue number. */
struct leaf {
    struct sort_queue *q;
    int64_t ts;         /* smallest timestamp of the queue: its head, or one that arrived after the limit */
    int64_t suffix_min; /* smallest timestamp that arrived after the limit */
    bool live;
};

struct sorter {
    struct stats *stats;
    VEC(struct sort_queue *)
    queues; /* by rank; NULL: reserved and not opened */
    VEC(struct sort_queue *)
    busy; /* those that hold events, and some that did */
    VEC(struct leaf)
    leaves;
    VEC(uint32_t)
    tree; /* [0] the winner, [1..] losers; leaf i enters at (n + i) / 2 */
    int64_t max_ts;
    int64_t emitted_ts;
    bool emitted; /* anything at all */
    bool full_sort;
    bool failed;
    unsigned flushes; /* since the last effective read of the buffers */
    size_t bytes;
    size_t peak_bytes;
    uint64_t epoch;
    size_t release_after; /* blocks emptied until the next look for the oldest epoch */
    void (*released)(void *ctx, uint64_t oldest);
    void *released_ctx;
};

struct sorter *sorter_open(struct stats *stats, bool full_sort)
{
    struct sorter *s = mem_zalloc(sizeof *s);
    if (s) {
        s->stats = stats;
        s->full_sort = full_sort;
        s->emitted_ts = INT64_MIN;
    }
    return s;
}

uint32_t sorter_reserve_queues(struct sorter *s, uint32_t n)
{
    size_t first = s->queues.n;
    if (first + n >= UINT32_MAX - 1 || !vec_reserve(&s->queues, first + n)) {
        s->failed = true;
        return UINT32_MAX;
    }
    memset(s->queues.p + first, 0, n * sizeof *s->queues.p);
    s->queues.n += n;
    return (uint32_t)first;
}

bool sorter_open_queue(struct sorter *s, uint32_t queue, sort_parse_fn parse, void *owner)
{
    struct sort_queue *q = s->queues.p[queue];
    if (!q)
        q = s->queues.p[queue] = mem_zalloc(sizeof *q);
    if (!q) {
        s->failed = true;
        return false;
    }
    q->number = queue;
    q->parse = parse;
    q->owner = owner;
    return true;
}

uint32_t sorter_add_queue(struct sorter *s, sort_parse_fn parse, void *owner)
{
    uint32_t queue = sorter_reserve_queues(s, 1);
    return queue != UINT32_MAX && sorter_open_queue(s, queue, parse, owner) ? queue : UINT32_MAX;
}

/* Queues that hold events are listed: there may be very many that hold none. */
static bool list_queue(struct sorter *s, struct sort_queue *q)
{
    return q->listed || (q->listed = vec_push(&s->busy, q));
}

static int by_number(const void *a, const void *b)
{
    const struct sort_queue *const *x = a, *const *y = b;
    return (*x)->number < (*y)->number ? -1 : (*x)->number > (*y)->number;
}

/* In the order of their ranks. */
static void order_busy(struct sorter *s)
{
    for (size_t i = 1; i < s->busy.n; i++)
        if (s->busy.p[i - 1]->number > s->busy.p[i]->number) {
            qsort(s->busy.p, s->busy.n, sizeof *s->busy.p, by_number);
            return;
        }
}

static void forget_idle(struct sorter *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->busy.n; i++)
        if (!sort_queue_empty(s->busy.p[i]))
            s->busy.p[n++] = s->busy.p[i];
        else
            s->busy.p[i]->listed = false;
    s->busy.n = n;
}

uint32_t sorter_add_tied_queue(struct sorter *s, sort_parse_fn parse, void *owner)
{
    uint32_t queue = sorter_add_queue(s, parse, owner);
    if (queue != UINT32_MAX) {
        s->queues.p[queue]->tied = true;
        s->queues.p[queue]->tie_from = INT64_MAX;
    }
    return queue;
}

void sorter_set_tie_from(struct sorter *s, uint32_t queue, int64_t ts)
{
    if (queue < s->queues.n)
        s->queues.p[queue]->tie_from = ts;
}

void sorter_push(struct sorter *s, uint32_t queue, struct sort_event e)
{
    if (__builtin_expect(e.ts < 0, 0)) {
        stats_add(s->stats, 0, STAT_trace_sorter_negative_timestamp_dropped, 1);
        return;
    }
    struct sort_queue *q = queue < s->queues.n ? s->queues.p[queue] : NULL;
    if (!q || !sort_queue_push(q, e, s->epoch, &s->bytes) || !list_queue(s, q)) {
        s->failed = true;
        return;
    }
    if (e.ts > s->max_ts)
        s->max_ts = e.ts;
    if (s->bytes > s->peak_bytes)
        s->peak_bytes = s->bytes;
}

int64_t sorter_max_ts(const struct sorter *s)
{
    return s->max_ts;
}

bool sorter_can_full_sort(const struct sorter *s)
{
    return s->full_sort || !s->emitted;
}

void sorter_force_full_sort(struct sorter *s)
{
    if (!s->emitted)
        s->full_sort = true;
}

void sorter_set_epoch(struct sorter *s, uint64_t epoch)
{
    s->epoch = epoch;
}

void sorter_on_released(struct sorter *s, void (*released)(void *ctx, uint64_t oldest), void *ctx)
{
    s->released = released;
    s->released_ctx = ctx;
}

static void tell_released(struct sorter *s)
{
    uint64_t oldest = s->epoch;
    size_t visited = s->busy.n;
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
    s->released(s->released_ctx, oldest);
}

/* Whether leaf a goes before leaf b: earlier, or as early and made earlier. Exhausted leaves go last. */
static bool before(const struct sorter *s, uint32_t a, uint32_t b)
{
    const struct leaf *x = &s->leaves.p[a], *y = &s->leaves.p[b];
    if (x->live != y->live)
        return x->live;
    return x->ts != y->ts ? x->ts < y->ts : a < b;
}

static bool build_tree(struct sorter *s)
{
    uint32_t n = (uint32_t)s->leaves.n;
    if (!vec_reserve(&s->tree, (size_t)n * 2 + 2))
        return false;
    uint32_t *tree = s->tree.p, *winner = tree + n; /* winner[1..2n) would do; the upper half is scratch space */
    if (n == 1) {
        tree[0] = 0;
        return true;
    }
    /* Play all matches from the leaves up: node k has children 2k and 2k + 1, where child c >= n is leaf c - n. */
    for (uint32_t k = n - 1; k >= 1; k--) {
        uint32_t l = 2 * k >= n ? 2 * k - n : winner[2 * k];
        uint32_t r = 2 * k + 1 >= n ? 2 * k + 1 - n : winner[2 * k + 1];
        bool left = before(s, l, r);
        winner[k] = left ? l : r;
        tree[k] = left ? r : l;
    }
    tree[0] = winner[1];
    return true;
}

static void replay(struct sorter *s, uint32_t leaf)
{
    uint32_t n = (uint32_t)s->leaves.n, *tree = s->tree.p;
    for (uint32_t k = (n + leaf) / 2; k >= 1; k /= 2) {
        if (before(s, tree[k], leaf)) {
            uint32_t t = tree[k];
            tree[k] = leaf;
            leaf = t;
        }
    }
    tree[0] = leaf;
}

/* The smallest timestamp among the queues other than the winner's: it lost to the winner somewhere on its path. */
static int64_t second_ts(const struct sorter *s, uint32_t winner)
{
    int64_t ts = INT64_MAX;
    for (uint32_t k = ((uint32_t)s->leaves.n + winner) / 2; k >= 1; k /= 2) {
        const struct leaf *l = &s->leaves.p[s->tree.p[k]];
        if (l->live && l->ts < ts)
            ts = l->ts;
    }
    return ts;
}

/* Hands the events of the leaf that are not later than `until` to their parser. Returns how many left the queue. */
static size_t emit_run(struct sorter *s, struct leaf *l, int64_t until, unsigned *freed)
{
    struct sort_queue *q = l->q;
    size_t total = 0;
    while (q->head < q->limit) {
        uint32_t left, n = 0, late = 0;
        const struct sort_event *e = sort_queue_front(q, &left);
        if (!e) {
            s->failed = true;
            break;
        }
        while (n < left && e[n].ts <= until)
            n++;
        if (!n)
            break;
        while (late < n && e[late].ts < s->emitted_ts)
            late++;
        if (late)
            stats_add(s->stats, 0, STAT_sorter_push_event_out_of_order, late);
        if (late < n) {
            s->emitted_ts = e[n - 1].ts;
            q->parse(q->owner, e + late, n - late);
        }
        s->emitted = true;
        *freed += n == left;
        total += n;
        bool more = n == left;
        sort_queue_consume(q, n, &s->bytes);
        if (!more)
            break;
    }
    return total;
}

/* The smallest timestamp of the queue: of what may be emitted, or of what arrived after the limit. */
static int64_t leaf_ts(const struct leaf *l)
{
    const struct sort_queue *q = l->q;
    if (q->head < q->limit) {
        int64_t ts = q->blocks.p[q->first_block].first_ts;
        return ts < l->suffix_min ? ts : l->suffix_min;
    }
    return l->suffix_min;
}

/* Emits what arrived before each queue's limit, as far as nothing that arrived later comes first. */
static void extract(struct sorter *s)
{
    vec_clear(&s->leaves);
    order_busy(s);
    for (size_t i = 0; i < s->busy.n; i++) {
        struct sort_queue *q = s->busy.p[i];
        struct leaf l = {.q = q, .live = true};
        if (sort_queue_empty(q))
            continue;
        if (!sort_queue_seal(q, &s->bytes) || !sort_queue_sort(q, &l.suffix_min, &s->bytes)) {
            s->failed = true;
            return;
        }
        l.ts = leaf_ts(&l);
        if (!vec_push(&s->leaves, l)) {
            s->failed = true;
            return;
        }
    }
    if (!s->leaves.n)
        return;
    if (!build_tree(s)) {
        s->failed = true;
        return;
    }
    unsigned freed = 0;
    for (;;) {
        uint32_t w = s->tree.p[0];
        struct leaf *l = &s->leaves.p[w];
        if (!l->live)
            break;
        int64_t until = second_ts(s, w);
        if (l->suffix_min < until)
            until = l->suffix_min;
        struct sort_queue *q = l->q;
        if (!emit_run(s, l, until, &freed))
            break; /* the earliest event of all arrived after the limit */
        l->ts = leaf_ts(l);
        l->live = !sort_queue_empty(q);
        replay(s, w);
        if (freed >= s->release_after) {
            tell_released(s);
            freed = 0;
        }
    }
    for (size_t i = 0; i < s->leaves.n; i++)
        sort_queue_rest(s->leaves.p[i].q);
    tell_released(s);
}

void sorter_on_flush(struct sorter *s)
{
    s->flushes++;
}

void sorter_on_read_buffers(struct sorter *s)
{
    if (s->full_sort || s->flushes < 2)
        return;
    extract(s);
    for (size_t i = 0; i < s->busy.n; i++) { /* a window ends where a block ends */
        if (!sort_queue_seal(s->busy.p[i], &s->bytes))
            s->failed = true;
        s->busy.p[i]->limit = s->busy.p[i]->pushed;
    }
    forget_idle(s);
    s->flushes = 0;
}

void sorter_drain(struct sorter *s)
{
    for (size_t i = 0; i < s->busy.n; i++)
        s->busy.p[i]->limit = s->busy.p[i]->pushed;
    extract(s);
}

size_t sorter_peak_bytes(const struct sorter *s)
{
    return s->peak_bytes;
}

bool sorter_failed(const struct sorter *s)
{
    return s->failed;
}

void sorter_close(struct sorter *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->queues.n; i++) {
        if (s->queues.p[i])
            sort_queue_free(s->queues.p[i]);
        mem_free(s->queues.p[i]);
    }
    vec_free(&s->queues);
    vec_free(&s->busy);
    vec_free(&s->leaves);
    vec_free(&s->tree);
    mem_free(s);
}
