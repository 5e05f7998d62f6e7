/* The events of one source: gathering them into blocks, sorting what is out of order, giving up what was emitted.
 */
#include "importer/sort/queue.h"

#include "base/alloc.h"
#include "importer/sort/merge_sort.h"

enum {
    FIRST_FRESH = 32,
    FIRST_AHEAD = 16,
};

/* A block of which there are too many in memory goes into the file: it is read once, when its turn comes. */
static bool make_room(const struct sort_room *room, struct sort_block *b, size_t bytes)
{
    size_t size = packed_events_size(b->events);
    if (b->in_file || !room->file || bytes + size <= room->memory)
        return true;
    struct packed_events *there = spill_alloc(room->file, size);
    if (!there)
        return false;
    memcpy(there, b->events, size);
    mem_free(b->events);
    b->events = there;
    b->in_file = true;
    return true;
}

/* What the events take of memory. */
static size_t memory_of(const struct sort_block *b)
{
    return b->in_file ? 0 : packed_events_size(b->events);
}

/* Takes the block over, or leaves it as it is when out of memory. */
static bool add_block(struct sort_queue *q, struct sort_block *block, uint64_t first, uint64_t epoch, size_t *bytes)
{
    if (q->first_block && q->first_block == q->blocks.n) /* all are gone: reuse the list from its start */
        q->blocks.n = q->first_block = 0;
    if (!vec_reserve(&q->blocks, q->blocks.n + 1) || !make_room(q->room, block, *bytes))
        return false;
    block->first = first;
    block->epoch = epoch;
    q->blocks.p[q->blocks.n++] = *block;
    *bytes += memory_of(block);
    return true;
}

bool sort_queue_seal(struct sort_queue *q, size_t *bytes)
{
    if (!q->n_fresh)
        return true;
    struct sort_block b = sort_block_describe(q->fresh, q->n_fresh, q->tied);
    b.events = packed_events_make(q->fresh, q->n_fresh);
    if (!b.events || !add_block(q, &b, q->pushed - q->n_fresh, q->fresh_epoch, bytes)) {
        sort_block_free(&b);
        return false;
    }
    q->n_fresh = 0;
    return true;
}

bool sort_queue_push_block(struct sort_queue *q, struct sort_block *b, uint64_t epoch, size_t *bytes)
{
    if (!sort_queue_seal(q, bytes) || !add_block(q, b, q->pushed, epoch, bytes))
        return false;
    q->pushed += b->events->n;
    b->events = NULL;
    return true;
}

bool sort_queue_grow(struct sort_queue *q, uint64_t epoch, size_t *bytes)
{
    (void)epoch;
    if (q->cap_fresh == SORT_BLOCK_EVENTS)
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

/* How many events of block k come before `head`. */
static uint32_t skip_in(const struct sort_queue *q, size_t k, uint64_t head)
{
    uint64_t first = q->blocks.p[k].first;
    return head > first ? (uint32_t)(head - first) : 0;
}

/* Sorts the events of blocks [from, to) from `head` on in one piece and makes new blocks of them. */
static bool sort_blocks(struct sort_queue *q, size_t from, size_t to, uint64_t head, size_t *bytes)
{
    size_t n = 0, done = 0;
    uint64_t epoch = UINT64_MAX, first = q->blocks.p[from].first;
    uint32_t skip = skip_in(q, from, head);
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
    merge_sort_events(all + skip, n - skip, tmp, q->tied ? q->tie_from : INT64_MAX);
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
        *bytes = *bytes - memory_of(b) + packed_events_size(packed);
        sort_block_free(b);
        *b = sort_block_describe(all + done + gone, count - gone, q->tied);
        b->events = packed;
        b->first = first + done;
        b->epoch = epoch;
        done += count;
    }
    mem_free(all);
    return ok;
}

/* Whether the events of block k are in order as they stand. */
static bool in_order(const struct sort_queue *q, size_t k)
{
    const struct sort_block *b = &q->blocks.p[k];
    return b->sorted && (!q->tied || b->ties_sorted || b->last_ts < q->tie_from);
}

/* Whether all events of what ends at `max` come before all of what begins at `min`, which arrived later. */
static bool comes_before(const struct sort_queue *q, int64_t max, int64_t min)
{
    return max < min || (max == min && (!q->tied || max < q->tie_from));
}

/* Where the blocks that have to be sorted together with block `from` end: none before `end` is earlier than one of
 * them. */
static size_t piece_end(const struct sort_queue *q, size_t from, size_t end)
{
    const struct sort_block *b = q->blocks.p;
    int64_t max = b[from].max_ts;
    size_t last = from;
    for (size_t k = from + 1; k < end && !comes_before(q, max, b[k].rest_min); k++) {
        last = k;
        max = b[k].max_ts > max ? b[k].max_ts : max;
    }
    return last + 1;
}

/* Sorts as many of the blocks from this one on as it takes for the first to be in its place, and no fewer than the
 * last time suggests: what is mixed may be the whole queue, and those who wait for the first block need little of it.
 * What is left over in the last blocks is sorted again with those that follow; twice as many are taken as were left
 * over, so that the work grows with the events however they are mixed. */
static bool sort_ahead(struct sort_queue *q, size_t front, struct sort_times *t, size_t *bytes)
{
    uint32_t left = q->blocks.p[front].unsorted, done = 0;
    for (uint32_t n = t->ahead > FIRST_AHEAD ? t->ahead : FIRST_AHEAD; !done; n *= 2) {
        n = n < left ? n : left;
        if (!sort_blocks(q, front, front + n, t->head, bytes))
            return false;
        struct sort_block *b = &q->blocks.p[front];
        if (n == left)
            break;
        int64_t rest_min = b[n].rest_min;
        while (done < n && comes_before(q, b[done].max_ts, rest_min))
            done++;
        b[done].unsorted = left - done;
        b[done].rest_min = done < n && b[done].min_ts < rest_min ? b[done].min_ts : rest_min;
        t->ahead = 2 * (n - done);
    }
    return true;
}

/* Events are out of order here and there, as when an interrupt has come between the stamp and the place of one: what is
 * sorted is those blocks, not all that follows; and not before they are met, by whoever merges. */
void sort_queue_begin(struct sort_queue *q, int64_t *suffix_min)
{
    struct sort_block *b = q->blocks.p;
    size_t end = q->blocks.n, piece;
    *suffix_min = INT64_MAX;
    for (; end > q->first_block && b[end - 1].first >= q->limit; end--)
        *suffix_min = b[end - 1].min_ts < *suffix_min ? b[end - 1].min_ts : *suffix_min;
    int64_t min = INT64_MAX;
    for (size_t k = end; k-- > q->first_block;)
        b[k].rest_min = min = b[k].min_ts < min ? b[k].min_ts : min;
    for (size_t k = q->first_block; k < end; k = piece) {
        piece = piece_end(q, k, end);
        b[k].unsorted = piece > k + 1 || !in_order(q, k) ? (uint32_t)(piece - k) : 0;
        for (size_t i = k + 1; i < piece; i++)
            b[i].unsorted = 0;
    }
}

const int64_t *sort_queue_times(struct sort_queue *q, size_t block, struct sort_times *t, uint32_t *n, size_t *bytes)
{
    struct sort_block *b = &q->blocks.p[block];
    if (b->unsorted && !sort_ahead(q, block, t, bytes))
        return NULL;
    uint32_t all = b->events->n, gone = skip_in(q, block, t->head);
    if (all > t->cap) {
        mem_free(t->p);
        t->p = mem_alloc(all * sizeof *t->p);
        t->cap = t->p ? all : 0;
        if (!t->p)
            return NULL;
    }
    packed_events_times(b->events, t->p);
    *n = all - gone;
    return t->p + gone;
}

const struct sort_event *sort_queue_front(struct sort_queue *q, uint32_t *n)
{
    const struct sort_block *b = &q->blocks.p[q->first_block];
    uint32_t all = b->events->n, gone = skip_in(q, q->first_block, q->head);
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

void sort_queue_drop_front(struct sort_queue *q, size_t *bytes)
{
    struct sort_block *b = &q->blocks.p[q->first_block++];
    q->head = b->first + b->events->n;
    *bytes -= memory_of(b);
    sort_block_free(b);
    if (q->first_block == q->blocks.n)
        free_front(q);
}

void sort_queue_end(struct sort_queue *q, const struct sort_event *rest, uint32_t left)
{
    if (left) { /* the block begins later now */
        struct sort_block *b = &q->blocks.p[q->first_block];
        q->head = b->first + b->events->n - left;
        b->first_ts = b->min_ts = rest->ts;
    }
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
        sort_block_free(&q->blocks.p[i]);
    vec_free(&q->blocks);
    mem_free(q->fresh);
    free_front(q);
    *q = (struct sort_queue){0};
}
