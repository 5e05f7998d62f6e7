/* The events of one source: gathering them into blocks, sorting what is out of order, giving up what was emitted.
 */
#include "importer/sort/queue.h"

#include "base/alloc.h"

enum {
    FIRST_FRESH = 32,
    BLOCK_EVENTS = 1024, /* 24 KiB unpacked: stays in the cache while it is merged */
    INSERTION_RUN = 24,
};

static struct sort_block describe(const struct sort_event *e, uint32_t n, uint64_t first, uint64_t epoch, bool tied)
{
    struct sort_block b = {
        .first = first, .epoch = epoch, .min_ts = e[0].ts, .first_ts = e[0].ts, .last_ts = e[n - 1].ts, .sorted = true};
    for (uint32_t i = 1; i < n; i++) {
        b.sorted &= e[i].ts >= e[i - 1].ts;
        b.min_ts = e[i].ts < b.min_ts ? e[i].ts : b.min_ts;
    }
    b.ties_sorted = true;
    for (uint32_t i = 1; tied && i < n; i++)
        b.ties_sorted &= e[i].ts != e[i - 1].ts || e[i].b >= e[i - 1].b;
    return b;
}

static bool add_block(struct sort_queue *q, const struct sort_event *e, uint32_t n, uint64_t first, uint64_t epoch,
                      size_t *bytes)
{
    struct sort_block b = describe(e, n, first, epoch, q->tied);
    b.events = packed_events_make(e, n);
    if (!b.events || !vec_push(&q->blocks, b)) {
        mem_free(b.events);
        return false;
    }
    *bytes += packed_events_size(b.events);
    return true;
}

bool sort_queue_seal(struct sort_queue *q, size_t *bytes)
{
    if (!q->n_fresh)
        return true;
    if (q->first_block && q->first_block == q->blocks.n) /* all are gone: reuse the list from its start */
        q->blocks.n = q->first_block = 0;
    if (!add_block(q, q->fresh, q->n_fresh, q->pushed - q->n_fresh, q->fresh_epoch, bytes))
        return false;
    q->n_fresh = 0;
    return true;
}

bool sort_queue_grow(struct sort_queue *q, uint64_t epoch, size_t *bytes)
{
    (void)epoch;
    if (q->cap_fresh == BLOCK_EVENTS)
        return sort_queue_seal(q, bytes);
    uint32_t cap = q->cap_fresh ? q->cap_fresh * 2 : FIRST_FRESH;
    struct sort_event *grown = mem_realloc(q->fresh, cap * sizeof *grown);
    if (!grown)
        return false;
    *bytes += (cap - q->cap_fresh) * sizeof *grown;
    q->fresh = grown;
    q->cap_fresh = cap;
    return true;
}

bool sort_queue_push_run(struct sort_queue *q, const struct sort_event *e, size_t n, uint64_t epoch, size_t *bytes)
{
    while (n) {
        if (q->n_fresh == q->cap_fresh && !sort_queue_grow(q, epoch, bytes))
            return false;
        if (q->n_fresh == 0 || epoch < q->fresh_epoch)
            q->fresh_epoch = epoch;
        size_t some = q->cap_fresh - q->n_fresh;
        some = n < some ? n : some;
        memcpy(q->fresh + q->n_fresh, e, some * sizeof *e);
        q->n_fresh += (uint32_t)some;
        q->pushed += some;
        e += some;
        n -= some;
    }
    return true;
}

/* Whether x comes after y, which arrived later. `tie_from`: see sort_queue; INT64_MAX for none. */
static inline bool comes_after(const struct sort_event *x, const struct sort_event *y, int64_t tie_from)
{
    return x->ts > y->ts || (x->ts == y->ts && x->ts >= tie_from && x->b > y->b);
}

/* Stable merge sort; `tmp` has room for n / 2 + 1. Parts that are in order already cost one comparison. */
static void merge_sort(struct sort_event *e, size_t n, struct sort_event *tmp, int64_t tie_from)
{
    if (n <= INSERTION_RUN) {
        for (size_t i = 1; i < n; i++) {
            struct sort_event x = e[i];
            size_t j = i;
            for (; j > 0 && comes_after(&e[j - 1], &x, tie_from); j--)
                e[j] = e[j - 1];
            e[j] = x;
        }
        return;
    }
    size_t half = n / 2;
    merge_sort(e, half, tmp, tie_from);
    merge_sort(e + half, n - half, tmp, tie_from);
    if (!comes_after(&e[half - 1], &e[half], tie_from))
        return;
    memcpy(tmp, e, half * sizeof *e);
    size_t a = 0, b = half, out = 0;
    while (a < half && b < n)
        e[out++] = comes_after(&tmp[a], &e[b], tie_from) ? e[b++] : tmp[a++];
    memcpy(e + out, tmp + a, (half - a) * sizeof *e);
}

/* The first event of block k that is still held. */
static uint32_t skip_in(const struct sort_queue *q, size_t k)
{
    uint64_t first = q->blocks.p[k].first;
    return q->head > first ? (uint32_t)(q->head - first) : 0;
}

/* Sorts the events of blocks [from, to) in one piece and makes new blocks of them. */
static bool sort_blocks(struct sort_queue *q, size_t from, size_t to, size_t *bytes)
{
    size_t n = 0, done = 0;
    uint64_t epoch = UINT64_MAX, first = q->blocks.p[from].first;
    uint32_t skip = skip_in(q, from);
    for (size_t k = from; k < to; k++)
        n += q->blocks.p[k].events->n;
    struct sort_event *all = mem_alloc(n * sizeof *all);
    struct sort_event *tmp = mem_alloc((n / 2 + 1) * sizeof *tmp);
    if (!all || !tmp) {
        mem_free(all);
        mem_free(tmp);
        return false;
    }
    for (size_t k = from; k < to; k++) {
        packed_events_unpack(q->blocks.p[k].events, all + done);
        done += q->blocks.p[k].events->n;
        epoch = q->blocks.p[k].epoch < epoch ? q->blocks.p[k].epoch : epoch;
    }
    merge_sort(all + skip, n - skip, tmp, q->tied ? q->tie_from : INT64_MAX);
    mem_free(tmp);
    /* The new blocks take the places of the old ones: as many events in each as before. */
    bool ok = true;
    done = 0;
    for (size_t k = from; k < to && ok; k++) {
        struct sort_block *b = &q->blocks.p[k];
        uint32_t count = b->events->n, gone = k == from ? skip : 0;
        struct packed_events *packed = packed_events_make(all + done, count);
        ok = packed != NULL;
        if (!ok)
            break;
        *bytes = *bytes - packed_events_size(b->events) + packed_events_size(packed);
        mem_free(b->events);
        *b = describe(all + done + gone, count - gone, first + done, epoch, q->tied);
        b->events = packed;
        done += count;
    }
    mem_free(all);
    return ok;
}

/* Whether events of one time in block k, or there and in the block before, may be in another order than theirs. */
static bool ties_out_of_order(const struct sort_queue *q, size_t k)
{
    const struct sort_block *b = &q->blocks.p[k];
    if (!q->tied || b->last_ts < q->tie_from)
        return false;
    return !b->ties_sorted || (k > q->first_block && b->first_ts == b[-1].last_ts && b->first_ts >= q->tie_from);
}

bool sort_queue_sort(struct sort_queue *q, int64_t *suffix_min, size_t *bytes)
{
    struct sort_block *b = q->blocks.p;
    size_t end = q->first_block, bad = SIZE_MAX;
    int64_t min = INT64_MAX; /* of the blocks from the first bad one on */
    for (; end < q->blocks.n && b[end].first < q->limit; end++) {
        if (bad == SIZE_MAX && (!b[end].sorted || (end > q->first_block && b[end].first_ts < b[end - 1].last_ts) ||
                                ties_out_of_order(q, end)))
            bad = end;
        if (bad != SIZE_MAX && b[end].min_ts < min)
            min = b[end].min_ts;
    }
    *suffix_min = INT64_MAX;
    for (size_t k = end; k < q->blocks.n; k++)
        *suffix_min = b[k].min_ts < *suffix_min ? b[k].min_ts : *suffix_min;
    if (bad == SIZE_MAX)
        return true;
    size_t from = bad; /* blocks before that are not later than any of these stay */
    while (from > q->first_block && (b[from - 1].last_ts > min || (q->tied && b[from - 1].last_ts == min)))
        from--;
    return sort_blocks(q, from, end, bytes);
}

const struct sort_event *sort_queue_front(struct sort_queue *q, uint32_t *n)
{
    const struct sort_block *b = &q->blocks.p[q->first_block];
    uint32_t all = b->events->n, gone = (uint32_t)(q->head - b->first);
    if (all > q->front_cap) {
        mem_free(q->front);
        q->front = mem_alloc(all * sizeof *q->front);
        q->front_cap = q->front ? all : 0;
        if (!q->front)
            return NULL;
    }
    packed_events_unpack(b->events, q->front);
    *n = all - gone;
    return q->front + gone;
}

static void free_front(struct sort_queue *q)
{
    mem_free(q->front);
    q->front = NULL;
    q->front_cap = 0;
}

void sort_queue_rest(struct sort_queue *q, uint32_t left)
{
    if (left) { /* the block begins later now */
        struct sort_block *b = &q->blocks.p[q->first_block];
        q->head = b->first + b->events->n - left;
        b->first_ts = b->min_ts = q->front[b->events->n - left].ts;
    }
    free_front(q);
}

void sort_queue_drop_front(struct sort_queue *q, size_t *bytes)
{
    struct sort_block *b = &q->blocks.p[q->first_block];
    q->head = b->first + b->events->n;
    *bytes -= packed_events_size(b->events);
    mem_free(b->events);
    q->first_block++;
    if (q->first_block == q->blocks.n)
        free_front(q);
    if (q->first_block >= 64 && q->first_block * 2 >= q->blocks.n) { /* keep the list short: amortised */
        q->blocks.n -= q->first_block;
        memmove(q->blocks.p, q->blocks.p + q->first_block, q->blocks.n * sizeof *q->blocks.p);
        q->first_block = 0;
    }
}

void sort_queue_free(struct sort_queue *q)
{
    for (size_t i = q->first_block; i < q->blocks.n; i++)
        mem_free(q->blocks.p[i].events);
    vec_free(&q->blocks);
    mem_free(q->fresh);
    free_front(q);
    *q = (struct sort_queue){0};
}
