/* Tests the sorter against qsort on random inputs, whole and by windows. */
#include "base/alloc.h"
#include "importer/sort/event_block.h"
#include "importer/sort/merge_sort.h"
#include "storage/stats.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

enum { MAX_RUN = 50 }; /* events pushed at once */

struct sink {
    struct record {
        int64_t ts;
        uint32_t queue;
        uint64_t arrival; /* within the queue */
    } * p;
    size_t n;
};

struct source {
    struct sink *sink;
    uint32_t queue;
};

static void take(void *owner, const struct sort_event *events, size_t n)
{
    struct source *s = owner;
    for (size_t i = 0; i < n; i++)
        s->sink->p[s->sink->n++] = (struct record){events[i].ts, s->queue, events[i].a};
}

/* The order within a queue. */
static int by_ts_then_arrival(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return x->arrival < y->arrival ? -1 : x->arrival > y->arrival;
}

/* The rule, slowly: the queue with the smallest head (the first of them) gives events while they are not
 * later than the smallest head of the others. */
static size_t merge_slowly(struct record **queues, const size_t *n, size_t n_queues, struct record *out)
{
    size_t at[64] = {0}, total = 0;
    for (;;) {
        size_t best = n_queues;
        for (size_t q = 0; q < n_queues; q++)
            if (at[q] < n[q] && (best == n_queues || queues[q][at[q]].ts < queues[best][at[best]].ts))
                best = q;
        if (best == n_queues)
            return total;
        int64_t second = INT64_MAX;
        for (size_t q = 0; q < n_queues; q++)
            if (q != best && at[q] < n[q] && queues[q][at[q]].ts < second)
                second = queues[q][at[q]].ts;
        while (at[best] < n[best] && queues[best][at[best]].ts <= second)
            out[total++] = queues[best][at[best]++];
    }
}

enum { MAX_EVENTS = 20000, MAX_QUEUES = 40 };

/* In each of the ways there are. */
static void push(struct sorter *s, uint32_t queue, const struct sort_event *events, size_t n)
{
    struct sort_block b;
    if (n == 1) {
        sorter_push(s, queue, *events);
    } else if (queue % 3 == 0 || (queue % 3 == 1 && n % 2)) { /* some queues get both */
        ck_assert(sort_block_make(&b, events, (uint32_t)n));
        sorter_push_block(s, queue, &b);
    } else {
        sorter_push_run(s, queue, events, n);
    }
}

START_TEST(the_merge_of_random_queues_is_that_of_qsort)
{
    uint64_t seed = (uint64_t)_i * 7919 + 1;
    size_t n_queues = 1 + next_random(&seed) % MAX_QUEUES, n_events = next_random(&seed) % MAX_EVENTS;
    uint64_t disorder = _i % 4 == 0 ? 0 : next_random(&seed) % 1000; /* how far timestamps jump back */
    uint64_t step = 1 + next_random(&seed) % 5;
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, _i % 2);
    sorter_use_thread(s, _i % 3);
    if (_i % 5 == 0)
        sorter_spill(s, n_events * 2 * (uint64_t)(_i % 2));
    struct sink sink = {malloc(MAX_EVENTS * sizeof *sink.p), 0};
    struct source sources[MAX_QUEUES];
    struct record *queues[MAX_QUEUES];
    size_t n[MAX_QUEUES] = {0}, n_run[MAX_QUEUES] = {0};
    struct sort_event run[MAX_QUEUES][MAX_RUN];
    for (uint32_t q = 0; q < n_queues; q++) {
        sources[q] = (struct source){&sink, q};
        queues[q] = malloc((n_events + 1) * sizeof *queues[q]);
        ck_assert_uint_eq(sorter_add_queue(s, take, &sources[q]), q);
    }
    int64_t now = 100000;
    for (size_t i = 0; i < n_events; i++) {
        size_t q = next_random(&seed) % n_queues;
        now += (int64_t)(next_random(&seed) % step);
        int64_t ts = now - (disorder ? (int64_t)(next_random(&seed) % disorder) : 0);
        queues[q][n[q]] = (struct record){ts, (uint32_t)q, n[q]};
        run[q][n_run[q]++] = (struct sort_event){ts, n[q], 0};
        n[q]++;
        if (n_run[q] == 1 + q % MAX_RUN) {
            push(s, (uint32_t)q, run[q], n_run[q]);
            n_run[q] = 0;
        }
    }
    for (uint32_t q = 0; q < n_queues; q++)
        sorter_push_run(s, q, run[q], n_run[q]); /* of none, too */
    sorter_drain(s, NULL, NULL);
    for (size_t q = 0; q < n_queues; q++)
        qsort(queues[q], n[q], sizeof *queues[q], by_ts_then_arrival);
    struct record *want = malloc((n_events + 1) * sizeof *want);
    ck_assert_uint_eq(merge_slowly(queues, n, n_queues, want), n_events);
    ck_assert_uint_eq(sink.n, n_events);
    for (size_t i = 0; i < n_events; i++)
        ck_assert_msg(sink.p[i].ts == want[i].ts && sink.p[i].queue == want[i].queue &&
                          sink.p[i].arrival == want[i].arrival,
                      "event %zu of seed %d", i, _i);
    ck_assert(!sorter_failed(s));
    for (size_t q = 0; q < n_queues; q++)
        free(queues[q]);
    free(want);
    free(sink.p);
    sorter_close(s);
    stats_free(&stats);
}
END_TEST

/* A model of windowed extraction by its definition: all events with their arrival number, the limit of the read before.
 */
struct model {
    struct record *held[MAX_QUEUES];
    size_t n[MAX_QUEUES];
    uint64_t limit;
    int64_t emitted;
    struct record *out;
    size_t n_out;
    uint64_t late;
};

static void model_extract(struct model *m, size_t n_queues, uint64_t limit)
{
    for (size_t q = 0; q < n_queues; q++)
        qsort(m->held[q], m->n[q], sizeof *m->held[q], by_ts_then_arrival);
    for (;;) {
        size_t best = n_queues;
        for (size_t q = 0; q < n_queues; q++)
            if (m->n[q] && (best == n_queues || m->held[q]->ts < m->held[best]->ts))
                best = q;
        if (best == n_queues)
            return;
        int64_t second = INT64_MAX;
        for (size_t q = 0; q < n_queues; q++)
            if (q != best && m->n[q] && m->held[q]->ts < second)
                second = m->held[q]->ts;
        size_t k = 0;
        for (; k < m->n[best] && m->held[best][k].ts <= second && m->held[best][k].arrival < limit; k++) {
            if (m->held[best][k].ts < m->emitted) {
                m->late++;
                continue;
            }
            m->emitted = m->held[best][k].ts;
            m->out[m->n_out++] = m->held[best][k];
        }
        if (!k)
            return;
        m->n[best] -= k;
        memmove(m->held[best], m->held[best] + k, m->n[best] * sizeof *m->held[best]);
    }
}

START_TEST(windows_emit_what_their_definition_says)
{
    uint64_t seed = (uint64_t)_i * 104729 + 5;
    size_t n_queues = 1 + next_random(&seed) % 8, n_events = 500 + next_random(&seed) % 3000;
    uint64_t disorder = next_random(&seed) % 3 ? next_random(&seed) % 400 : 0;
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, false);
    sorter_use_thread(s, _i % 3);
    struct sink sink = {malloc((n_events + 1) * sizeof *sink.p), 0};
    struct source sources[MAX_QUEUES];
    struct model m = {.out = malloc((n_events + 1) * sizeof *m.out), .emitted = INT64_MIN};
    for (uint32_t q = 0; q < n_queues; q++) {
        sources[q] = (struct source){&sink, q};
        m.held[q] = malloc((n_events + 1) * sizeof *m.held[q]);
        sorter_add_queue(s, take, &sources[q]);
    }
    int64_t now = 10000;
    unsigned flushes = 0;
    for (size_t i = 0; i < n_events; i++) {
        size_t q = next_random(&seed) % n_queues;
        now += (int64_t)(next_random(&seed) % 3);
        int64_t ts = now - (disorder ? (int64_t)(next_random(&seed) % disorder) : 0);
        m.held[q][m.n[q]++] = (struct record){ts, (uint32_t)q, i};
        sorter_push(s, (uint32_t)q, (struct sort_event){ts, i, 0});
        if (next_random(&seed) % 40 == 0) {
            flushes++;
            sorter_on_flush(s);
        }
        if (next_random(&seed) % 60 == 0) {
            if (flushes >= 2) {
                model_extract(&m, n_queues, m.limit);
                m.limit = i + 1;
                flushes = 0;
            }
            sorter_on_read_buffers(s);
        }
    }
    model_extract(&m, n_queues, UINT64_MAX);
    sorter_drain(s, NULL, NULL);
    ck_assert_uint_eq(sink.n, m.n_out);
    for (size_t i = 0; i < sink.n; i++)
        ck_assert_msg(sink.p[i].ts == m.out[i].ts && sink.p[i].queue == m.out[i].queue &&
                          sink.p[i].arrival == m.out[i].arrival,
                      "event %zu of seed %d", i, _i);
    ck_assert_int_eq(stats_get(&stats, 0, STAT_sorter_push_event_out_of_order), (int64_t)m.late);
    for (size_t q = 0; q < n_queues; q++)
        free(m.held[q]);
    free(m.out);
    free(sink.p);
    sorter_close(s);
    stats_free(&stats);
}
END_TEST

START_TEST(negative_times_are_counted_and_dropped)
{
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, true);
    struct record room[4];
    struct sink sink = {room, 0};
    struct source source = {&sink, 0};
    uint32_t q = sorter_add_queue(s, take, &source);
    sorter_push(s, q, (struct sort_event){-1, 0, 0});
    sorter_push(s, q, (struct sort_event){INT64_MIN, 1, 0});
    sorter_push(s, q, (struct sort_event){INT64_MAX, 2, 0});
    sorter_push(s, q, (struct sort_event){0, 3, 0});
    struct sort_block b;
    ck_assert(sort_block_make(&b, (struct sort_event[]){{7, 4, 0}, {-7, 5, 0}}, 2));
    sorter_push_block(s, q, &b);
    sorter_drain(s, NULL, NULL);
    ck_assert_uint_eq(sink.n, 3);
    ck_assert_uint_eq(room[0].arrival, 3);
    ck_assert_uint_eq(room[1].arrival, 4);
    ck_assert_int_eq(stats_get(&stats, 0, STAT_trace_sorter_negative_timestamp_dropped), 3);
    sorter_close(s);
    stats_free(&stats);
}
END_TEST

/* With windows, memory holds a window and not the stream; and what it may, where the rest goes to a file. */
START_TEST(memory_is_bounded_by_the_window)
{
    enum { BY_WINDOW, IN_FULL, SPILLED, WAYS, LEAST = 100000 };
    struct stats stats = {0};
    size_t peak[WAYS];
    for (int way = 0; way < WAYS; way++) {
        struct sorter *s = sorter_open(&stats, way != BY_WINDOW);
        if (way == SPILLED)
            sorter_spill(s, LEAST);
        struct record *room = malloc(400000 * sizeof *room);
        struct sink sink = {room, 0};
        struct source source = {&sink, 0};
        uint32_t q = sorter_add_queue(s, take, &source);
        for (int i = 0; i < 400000; i++) {
            sorter_push(s, q, (struct sort_event){i, 0, 0});
            if (i % 1000 == 999) {
                sorter_on_flush(s);
                sorter_on_flush(s);
                sorter_on_read_buffers(s);
            }
        }
        sorter_drain(s, NULL, NULL);
        ck_assert_uint_eq(sink.n, 400000);
        peak[way] = sorter_peak_bytes(s);
        free(room);
        sorter_close(s);
    }
    ck_assert_uint_gt(peak[IN_FULL], 400000 * 2);
    ck_assert_uint_lt(peak[BY_WINDOW], LEAST); /* two windows of 1,000 events, and what a block rounds up to */
    ck_assert_uint_lt(peak[SPILLED], 3 * LEAST / 2);
    stats_free(&stats);
}
END_TEST

static void count_runs(void *owner, const struct sort_event *events, size_t n)
{
    size_t *total = owner;
    *total += n;
    (void)events;
}

static void ignore_released(void *ctx, uint64_t oldest)
{
    *(uint64_t *)ctx = oldest;
}

static double seconds_for(uint32_t n_queues, size_t n_events)
{
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, true);
    size_t total = 0;
    uint64_t oldest = 0, seed = 3;
    struct timespec begin, end;
    for (uint32_t q = 0; q < n_queues; q++)
        sorter_add_queue(s, count_runs, &total);
    sorter_on_released(s, ignore_released, &oldest);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (size_t i = 0; i < n_events; i++) {
        sorter_set_epoch(s, i / 1000);
        sorter_push(s, (uint32_t)(next_random(&seed) % n_queues), (struct sort_event){(int64_t)i, 0, 0});
    }
    sorter_drain(s, NULL, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    ck_assert_uint_eq(total, n_events);
    sorter_close(s);
    stats_free(&stats);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

static bool fails_once(void *ctx, size_t size)
{
    bool *armed = ctx;
    (void)size;
    bool fails = *armed;
    *armed = false;
    return !fails;
}

static double seconds_after_failure(int windows)
{
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, false);
    size_t total = 0;
    bool armed = false;
    struct timespec begin, end;
    alloc_set_gate(fails_once, &armed);
    sorter_add_queue(s, count_runs, &total);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (int64_t w = 0, ts = 0; w < windows; w++) {
        armed = w == 2;
        for (int i = 0; i < 4000; i++)
            sorter_push(s, 0, (struct sort_event){ts++, 0, 0});
        sorter_on_flush(s);
        sorter_on_flush(s);
        sorter_on_read_buffers(s);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    alloc_set_gate(NULL, NULL);
    ck_assert(sorter_failed(s));
    sorter_close(s);
    stats_free(&stats);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Once memory has run out the load has failed: what is held is not merged again with each window. */
START_TEST(windows_after_memory_ran_out_are_not_quadratic)
{
    double few = seconds_after_failure(100), many = seconds_after_failure(1000);
    ck_assert_msg(many < few * 30 + 0.2, "100 windows: %.3f s, 1,000 windows: %.3f s", few, many);
}
END_TEST

/* 1,000 machines of 64 cpus: the cost of an event grows with the logarithm of the number of queues. */
START_TEST(many_queues_are_not_quadratic)
{
    enum { EVENTS = 512000 };
    double few = seconds_for(1000, EVENTS), many = seconds_for(64000, EVENTS);
    ck_assert_msg(many < few * 20 + 2, "1,000 queues: %.3f s, 64,000 queues: %.3f s", few, many);
}
END_TEST

/* By time, then by b from TIE_FROM on, then by arrival, which is a. */
enum { TIE_FROM = 500 };
static int as_events_sort(const void *a, const void *b)
{
    const struct sort_event *x = a, *y = b;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    if (x->ts >= TIE_FROM && x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->a < y->a ? -1 : x->a > y->a;
}

/* Runs that overlap a little, much or not at all, with many equal times; one in two begins with a long one. */
START_TEST(events_in_memory_are_sorted_as_qsort_does)
{
    enum { N = 5000 };
    static struct sort_event e[N], want[N], room[N / 2 + 1];
    uint64_t seed = (uint64_t)_i * 31 + 5;
    size_t n = next_random(&seed) % N, run = 1 + next_random(&seed) % 400;
    size_t first_run = _i % 2 ? next_random(&seed) % (n + 1) : 0;
    int64_t back = (int64_t)(next_random(&seed) % (_i % 4 < 2 ? 300 : 3000)), ts = back;
    for (size_t i = 0; i < n; i++) {
        ts += i % run || i < first_run ? (int64_t)(next_random(&seed) % 2) : -(back < ts ? back : 0);
        e[i] = (struct sort_event){ts, i, next_random(&seed) % 3};
    }
    memcpy(want, e, n * sizeof *e);
    qsort(want, n, sizeof *want, as_events_sort);
    merge_sort_events(e, n, room, TIE_FROM);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(e[i].ts == want[i].ts && e[i].a == want[i].a, "event %zu", i);
}
END_TEST

/* Blocks of any length whose words need any number of bytes, so that columns of all widths lie beside each other. */
START_TEST(blocks_give_back_what_was_packed)
{
    struct sort_event e[SORT_BLOCK_EVENTS], back[SORT_BLOCK_EVENTS];
    int64_t times[SORT_BLOCK_EVENTS], min = INT64_MAX, max = INT64_MIN;
    uint64_t seed = (uint64_t)_i * 17 + 3;
    unsigned bits[4] = {next_random(&seed) % 64, next_random(&seed) % 65, next_random(&seed) % 33,
                        next_random(&seed) % 33};
    uint64_t base = next_random(&seed), some = next_random(&seed);
    uint32_t n = _i % 4 ? 1 + (uint32_t)(next_random(&seed) % SORT_BLOCK_EVENTS) : 8 * (1 + (uint32_t)(some % 128));
#define BITS(k) (bits[k] ? next_random(&seed) >> (64 - bits[k]) : 0)
    bool rises = true;
    for (uint32_t i = 0; i < n; i++) {
        e[i] =
            (struct sort_event){(int64_t)(base % (1ull << 62) + BITS(0) / 2), base + BITS(1), BITS(2) << 32 | BITS(3)};
        rises = rises && (!i || e[i].ts >= e[i - 1].ts);
        min = e[i].ts < min ? e[i].ts : min;
        max = e[i].ts > max ? e[i].ts : max;
    }
    struct sort_block b;
    ck_assert(sort_block_make(&b, e, n));
    packed_events_unpack(b.events, back);
    packed_events_times(b.events, times);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(back[i].ts == e[i].ts && back[i].a == e[i].a && back[i].b == e[i].b && times[i] == e[i].ts,
                      "event %u of %u; bits %u %u %u %u", i, n, bits[0], bits[1], bits[2], bits[3]);
    ck_assert_int_eq(b.min_ts, min);
    ck_assert_int_eq(b.max_ts, max);
    ck_assert_int_eq(b.first_ts, e[0].ts);
    ck_assert_int_eq(b.last_ts, e[n - 1].ts);
    ck_assert_int_eq(b.sorted, rises);
    sort_block_free(&b);
}
END_TEST

/* A queue whose events are out of order at a few places, within a block and over its ends. */
START_TEST(disorder_here_and_there_is_found)
{
    enum { N = 20000 };
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, true);
    struct sink sink = {.p = calloc(N, sizeof *sink.p)};
    struct source source = {&sink, 0};
    uint64_t seed = (uint64_t)_i + 77;
    static int64_t ts[N];
    sorter_add_queue(s, take, &source);
    for (size_t i = 0; i < N; i++)
        ts[i] = (int64_t)i / 2 * 10;
    for (int k = 0; k < _i; k++) {
        size_t at = next_random(&seed) % N, far = next_random(&seed) % (k % 2 ? 3 : 3000);
        ts[at] -= ts[at] < (int64_t)far ? 0 : (int64_t)far;
    }
    for (size_t i = 0; i < N; i++)
        sorter_push(s, 0, (struct sort_event){ts[i], i, 0});
    sorter_drain(s, NULL, NULL);
    ck_assert_uint_eq(sink.n, N);
    for (size_t i = 1; i < N; i++)
        ck_assert_msg(by_ts_then_arrival(&sink.p[i - 1], &sink.p[i]) < 0, "event %zu", i);
    free(sink.p);
    sorter_close(s);
    stats_free(&stats);
}
END_TEST

/* A queue that is mixed from its beginning to its end, in several ways; ties go by b from the middle on in some. */
static int64_t mixed_time(int way, size_t i, size_t n, uint64_t *seed)
{
    switch (way) {
    case 0: /* eight writers hand in their events by turns, in chunks that overlap */
        return (int64_t)(i / 640 * 640 + i % 80 * 8 + i / 80 % 8) - (int64_t)(next_random(seed) % 3000);
    case 1: /* now and then one of the far future */
        return i % 700 == 3 ? (int64_t)(n + i) : (int64_t)i;
    case 2: /* the second half comes before the first */
        return (int64_t)((i + n / 2) % n);
    case 3: /* backwards */
        return (int64_t)((n - i) / 3);
    case 4: /* no order at all, with many equal times */
        return (int64_t)(next_random(seed) % (n / 50));
    default: /* the first one comes last */
        return i ? (int64_t)i / 7 : (int64_t)n;
    }
}

START_TEST(what_is_mixed_as_a_whole_is_sorted)
{
    enum { N = 150000, WAYS = 6 };
    struct stats stats = {0};
    struct sorter *s = sorter_open(&stats, true);
    struct sink sink = {.p = calloc(N, sizeof *sink.p)};
    struct source source = {&sink, 0};
    struct sort_event *want = calloc(N, sizeof *want), *room = calloc(N, sizeof *room);
    uint64_t seed = (uint64_t)_i + 271;
    bool tied = _i / WAYS % 2;
    uint32_t queue = tied ? sorter_add_tied_queue(s, take, &source) : sorter_add_queue(s, take, &source);
    if (tied)
        sorter_set_tie_from(s, queue, N / 100);
    sorter_use_thread(s, _i / WAYS / 2 ? 1 : 0);
    for (size_t i = 0; i < N; i++) {
        int64_t ts = mixed_time(_i % WAYS, i, N, &seed);
        want[i] = (struct sort_event){ts < 0 ? 0 : ts, i, next_random(&seed) % 4};
        sorter_push(s, queue, want[i]);
    }
    merge_sort_events(want, N, room, tied ? N / 100 : INT64_MAX);
    sorter_drain(s, NULL, NULL);
    ck_assert_uint_eq(sink.n, N);
    for (size_t i = 0; i < N; i++)
        ck_assert_msg(sink.p[i].ts == want[i].ts && sink.p[i].arrival == want[i].a, "event %zu", i);
    free(want);
    free(room);
    free(sink.p);
    sorter_close(s);
    stats_free(&stats);
}
END_TEST

Suite *sorter_suite(void);
Suite *sorter_suite(void)
{
    Suite *s = suite_create("sorter");
    TCase *t = tcase_create("sorter");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_merge_of_random_queues_is_that_of_qsort, 0, 60);
    tcase_add_loop_test(t, windows_emit_what_their_definition_says, 0, 80);
    tcase_add_loop_test(t, events_in_memory_are_sorted_as_qsort_does, 0, 200);
    tcase_add_loop_test(t, blocks_give_back_what_was_packed, 0, 400);
    tcase_add_loop_test(t, disorder_here_and_there_is_found, 0, 40);
    tcase_add_loop_test(t, what_is_mixed_as_a_whole_is_sorted, 0, 24);
    tcase_add_test(t, negative_times_are_counted_and_dropped);
    tcase_add_test(t, many_queues_are_not_quadratic);
    tcase_add_test(t, windows_after_memory_ran_out_are_not_quadratic);
    tcase_add_test(t, memory_is_bounded_by_the_window);
    suite_add_tcase(s, t);
    return s;
}
