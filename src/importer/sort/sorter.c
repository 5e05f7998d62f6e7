/* Merges all queues into time order, whole or by windows. */
#include "importer/sort/sorter.h"

#include "importer/sort/sorter_internal.h"
#include "storage/stats.h"

#include <stdlib.h>

struct sorter *sorter_open(struct stats *stats, bool full_sort)
{
    struct sorter *s = mem_zalloc(sizeof *s);
    if (s) {
        s->stats = stats;
        s->full_sort = full_sort;
        s->order.emitted_ts = INT64_MIN;
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
    q->room = &s->room;
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

void sorter_push_words(struct sorter *s, uint32_t queue, int64_t ts, uint64_t a, uint64_t b)
{
    struct sort_event e = {ts, a, b};
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

/* As sorter_push() of each. */
void sorter_push_run(struct sorter *s, uint32_t queue, const struct sort_event *events, size_t n)
{
    struct sort_queue *q = queue < s->queues.n ? s->queues.p[queue] : NULL;
    int64_t min = INT64_MAX, max = s->max_ts;
    for (size_t i = 0; i < n; i++) {
        min = events[i].ts < min ? events[i].ts : min;
        max = events[i].ts > max ? events[i].ts : max;
    }
    if (!n)
        return;
    if (min < 0) {
        for (size_t i = 0; i < n; i++)
            sorter_push(s, queue, events[i]);
        return;
    }
    if (!q || !sort_queue_push_run(q, events, n, s->epoch, &s->bytes) || !list_queue(s, q)) {
        s->failed = true;
        return;
    }
    s->max_ts = max;
    if (s->bytes > s->peak_bytes)
        s->peak_bytes = s->bytes;
}

/* One that holds times which are not to be queued: event by event. */
static void unpack_and_push(struct sorter *s, uint32_t queue, const struct packed_events *packed)
{
    struct sort_event *events = mem_alloc(packed->n * sizeof *events);
    s->failed |= !events;
    if (!events)
        return;
    packed_events_unpack(packed, events);
    sorter_push_run(s, queue, events, packed->n);
    mem_free(events);
}

void sorter_push_block(struct sorter *s, uint32_t queue, struct sort_block *b)
{
    struct sort_queue *q = queue < s->queues.n ? s->queues.p[queue] : NULL;
    if (b->min_ts < 0) {
        unpack_and_push(s, queue, b->events);
        sort_block_free(b);
    } else if (!q || !sort_queue_push_block(q, b, s->epoch, &s->bytes)) {
        sort_block_free(b);
        s->failed = true;
    } else {
        s->failed |= !list_queue(s, q);
        s->max_ts = b->max_ts > s->max_ts ? b->max_ts : s->max_ts;
        s->peak_bytes = s->bytes > s->peak_bytes ? s->bytes : s->peak_bytes;
    }
}

void sorter_points_to_bytes(struct sorter *s, uint32_t queue, uint32_t bytes)
{
    if (queue < s->queues.n && s->queues.p[queue])
        s->queues.p[queue]->points_to_bytes = bytes;
}

void sorter_use_thread(struct sorter *s, uint64_t from_events)
{
    s->thread_from = from_events;
}

int64_t sorter_max_ts(const struct sorter *s)
{
    return s->max_ts;
}

bool sorter_can_full_sort(const struct sorter *s)
{
    return s->full_sort || !s->order.emitted;
}

void sorter_force_full_sort(struct sorter *s)
{
    if (!s->order.emitted)
        s->full_sort = true;
}

void sorter_spill(struct sorter *s, uint64_t memory)
{
    if (!s->room.file)
        s->room.file = spill_open(0);
    s->room.memory = memory;
}

void sorter_set_epoch(struct sorter *s, uint64_t epoch)
{
    s->epoch = epoch;
}

uint64_t sorter_epoch(const struct sorter *s)
{
    return s->epoch;
}

void sorter_on_released(struct sorter *s, void (*released)(void *ctx, uint64_t oldest), void *ctx)
{
    s->released = released;
    s->released_ctx = ctx;
}

/* Merges what the queues hold. */
static void extract(struct sorter *s)
{
    order_busy(s);
    sorter_extract(s);
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

void sorter_drain(struct sorter *s, sort_progress_fn progress, void *ctx)
{
    s->progress = progress;
    s->progress_ctx = ctx;
    for (size_t i = 0; i < s->busy.n; i++)
        s->busy.p[i]->limit = s->busy.p[i]->pushed;
    extract(s);
    s->progress = NULL;
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
    vec_free(&s->feeds);
    vec_free(&s->order.leaves);
    vec_free(&s->order.tree.nodes);
    spill_close(s->room.file);
    mem_free(s);
}
