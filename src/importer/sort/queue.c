/* Owns the events of one source: appending, sorting the part that is out of order, giving up what was emitted. */
#include "importer/sort/queue.h"

#include "base/alloc.h"

enum {
    FIRST_BLOCK = 32,
    LARGEST_BLOCK = 2720, /* 64 KiB: below malloc's mmap threshold, so that freed blocks become table chunks */
    INSERTION_RUN = 24,
};

static struct sort_block *add_block(struct sort_queue *q, uint64_t epoch, size_t *bytes)
{
    uint32_t cap = FIRST_BLOCK;
    if (q->blocks.n > q->first_block) {
        uint32_t before = q->blocks.p[q->blocks.n - 1]->cap;
        cap = before >= LARGEST_BLOCK / 2 ? LARGEST_BLOCK : before * 2;
    } else if (q->first_block) { /* all are freed: reuse the list from its start */
        q->blocks.n = q->first_block = 0;
        cap = 2 * FIRST_BLOCK;
    }
    struct sort_block *b = mem_alloc(sizeof *b + cap * sizeof b->events[0]);
    if (!b || !vec_push(&q->blocks, b)) {
        mem_free(b);
        return NULL;
    }
    b->first = q->pushed;
    b->epoch = epoch;
    b->n = 0;
    b->cap = cap;
    q->close_block = false;
    *bytes += sizeof *b + cap * sizeof b->events[0];
    return b;
}

bool sort_queue_push(struct sort_queue *q, struct sort_event e, uint64_t epoch, size_t *bytes)
{
    struct sort_block *b = q->blocks.n > q->first_block ? q->blocks.p[q->blocks.n - 1] : NULL;
    if (!b || b->n == b->cap || q->close_block) {
        b = add_block(q, epoch, bytes);
        if (!b)
            return false;
    }
    b->events[b->n++] = e;
    if (q->sorted_until == q->pushed && (q->head == q->pushed || e.ts >= q->last_ts)) {
        q->sorted_until++;
        q->last_ts = e.ts;
    }
    q->pushed++;
    return true;
}

/* The block that holds event `i` (which is held). */
static size_t find_block(const struct sort_queue *q, uint64_t i)
{
    size_t lo = q->first_block, hi = q->blocks.n - 1;
    while (lo < hi) {
        size_t mid = hi - (hi - lo) / 2;
        if (q->blocks.p[mid]->first <= i)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static struct sort_event *at(const struct sort_queue *q, uint64_t i)
{
    struct sort_block *b = q->blocks.p[find_block(q, i)];
    return &b->events[i - b->first];
}

/* Stable merge sort; `tmp` has room for n / 2 + 1. Parts that are in order already cost one comparison. */
static void merge_sort(struct sort_event *e, size_t n, struct sort_event *tmp)
{
    if (n <= INSERTION_RUN) {
        for (size_t i = 1; i < n; i++) {
            struct sort_event x = e[i];
            size_t j = i;
            for (; j > 0 && e[j - 1].ts > x.ts; j--)
                e[j] = e[j - 1];
            e[j] = x;
        }
        return;
    }
    size_t half = n / 2;
    merge_sort(e, half, tmp);
    merge_sort(e + half, n - half, tmp);
    if (e[half - 1].ts <= e[half].ts)
        return;
    memcpy(tmp, e, half * sizeof *e);
    size_t a = 0, b = half, out = 0;
    while (a < half && b < n)
        e[out++] = e[b].ts < tmp[a].ts ? e[b++] : tmp[a++];
    memcpy(e + out, tmp + a, (half - a) * sizeof *e);
}

/* Sorts events [from, until): out of the blocks, sorted in one piece, and back. */
static bool sort_range(struct sort_queue *q, uint64_t from, uint64_t until)
{
    size_t n = (size_t)(until - from);
    struct sort_event *all = mem_alloc(n * sizeof *all);
    struct sort_event *tmp = mem_alloc((n / 2 + 1) * sizeof *tmp);
    if (!all || !tmp) {
        mem_free(all);
        mem_free(tmp);
        return false;
    }
    size_t first = find_block(q, from), done = 0;
    uint64_t epoch = UINT64_MAX;
    for (size_t k = first; done < n; k++) {
        const struct sort_block *b = q->blocks.p[k];
        size_t skip = done ? 0 : (size_t)(from - b->first);
        size_t take = b->n - skip < n - done ? b->n - skip : n - done;
        memcpy(all + done, b->events + skip, take * sizeof *all);
        done += take;
        epoch = b->epoch < epoch ? b->epoch : epoch;
    }
    merge_sort(all, n, tmp);
    done = 0;
    for (size_t k = first; done < n; k++) {
        struct sort_block *b = q->blocks.p[k];
        size_t skip = done ? 0 : (size_t)(from - b->first);
        size_t take = b->n - skip < n - done ? b->n - skip : n - done;
        memcpy(b->events + skip, all + done, take * sizeof *all);
        done += take;
        b->epoch = epoch; /* events moved between these blocks */
    }
    mem_free(all);
    mem_free(tmp);
    return true;
}

/* The smallest timestamp of [from, until), walking its blocks. */
static int64_t min_of(const struct sort_queue *q, uint64_t from, uint64_t until)
{
    int64_t min = INT64_MAX;
    for (size_t k = from < until ? find_block(q, from) : q->blocks.n; k < q->blocks.n; k++) {
        const struct sort_block *b = q->blocks.p[k];
        for (uint32_t i = from > b->first ? (uint32_t)(from - b->first) : 0; i < b->n && b->first + i < until; i++)
            min = b->events[i].ts < min ? b->events[i].ts : min;
        if (b->first + b->n >= until)
            break;
    }
    return min;
}

/* Moves sorted_until as far as the order goes from event `from` on (the one before it is in order). */
static void rescan_order(struct sort_queue *q, uint64_t from)
{
    q->sorted_until = from;
    if (from > q->head)
        q->last_ts = at(q, from - 1)->ts;
    for (size_t k = from < q->pushed ? find_block(q, from) : q->blocks.n; k < q->blocks.n; k++) {
        const struct sort_block *b = q->blocks.p[k];
        for (uint32_t i = from > b->first ? (uint32_t)(from - b->first) : 0; i < b->n; i++) {
            if (q->sorted_until > q->head && b->events[i].ts < q->last_ts)
                return;
            q->last_ts = b->events[i].ts;
            q->sorted_until++;
        }
    }
}

bool sort_queue_sort(struct sort_queue *q, uint64_t until, int64_t *suffix_min)
{
    if (until < q->head)
        until = q->head;
    bool ok = true;
    if (q->sorted_until < q->head)
        q->sorted_until = q->head;
    if (q->sorted_until < until) {
        int64_t min = min_of(q, q->sorted_until, until);
        uint64_t lo = q->head, hi = q->sorted_until; /* first event later than `min`: what is before stays */
        while (lo < hi) {
            uint64_t mid = lo + (hi - lo) / 2;
            if (at(q, mid)->ts <= min)
                lo = mid + 1;
            else
                hi = mid;
        }
        ok = sort_range(q, lo, until);
        if (ok)
            rescan_order(q, until);
    }
    *suffix_min = min_of(q, until, q->pushed);
    return ok;
}

void sort_queue_consume(struct sort_queue *q, uint32_t n, size_t *bytes)
{
    struct sort_block *b = sort_queue_front(q);
    q->head += n;
    if (q->head < b->first + b->n)
        return;
    *bytes -= sizeof *b + b->cap * sizeof b->events[0];
    mem_free(b);
    q->first_block++;
    if (q->first_block >= 64 && q->first_block * 2 >= q->blocks.n) { /* keep the list short: amortised */
        q->blocks.n -= q->first_block;
        memmove(q->blocks.p, q->blocks.p + q->first_block, q->blocks.n * sizeof *q->blocks.p);
        q->first_block = 0;
    }
}

void sort_queue_free(struct sort_queue *q)
{
    for (size_t i = q->first_block; i < q->blocks.n; i++)
        mem_free(q->blocks.p[i]);
    vec_free(&q->blocks);
    *q = (struct sort_queue){0};
}
