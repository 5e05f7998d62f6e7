/* Where spans lie: on the track of their thread while they nest, else on lanes of their service that are free.
 *
 * Spans are no stack: siblings overlap, and a child may outlive its parent. All rules look at what is open when a span
 * begins; spans come by time, what is around others first. */
#include "importer/otlp/otlp_internal.h"

#include "base/saturate.h"

#include <stdlib.h>

enum { DEEPEST = 256 /* spans around each other on one track: a slice has a limit, and their events lie inside */ };

static const struct otlp_resource *resource_of(const struct otlp *o, const struct otlp_span *s)
{
    return &o->resources.p[o->scopes.p[s->scope].resource];
}

static bool is_over(const struct otlp_interval *open, int64_t ts, int64_t end)
{
    return open->end < ts || (open->end == ts && !(open->ts == open->end && ts == end));
}

/* Closes what is over when a span begins. */
static void close_until(otlp_stack *open, int64_t ts, int64_t end)
{
    while (open->n && is_over(vec_last(open), ts, end))
        open->n--;
}

static void push(struct otlp *o, otlp_stack *open, struct otlp_interval i)
{
    if (!vec_push(open, i))
        o->im->failed = true;
}

/* --- lanes of a service --- */

static bool busy_less(const struct otlp_busy *a, const struct otlp_busy *b)
{
    return a->end != b->end ? a->end < b->end : a->lane < b->lane;
}

static void busy_push(struct otlp *o, struct otlp_service *s, struct otlp_busy b)
{
    if (!vec_push(&s->busy, b)) {
        o->im->failed = true;
        return;
    }
    struct otlp_busy *h = s->busy.p;
    for (size_t i = s->busy.n - 1, up; i && busy_less(&h[i], &h[up = (i - 1) / 2]); i = up) {
        struct otlp_busy t = h[i];
        h[i] = h[up];
        h[up] = t;
    }
}

static struct otlp_busy busy_pop(struct otlp_service *s)
{
    struct otlp_busy *h = s->busy.p, first = h[0];
    size_t n = --s->busy.n;
    h[0] = h[n];
    for (size_t i = 0, c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && busy_less(&h[c + 1], &h[c]);
        if (!busy_less(&h[c], &h[i]))
            break;
        struct otlp_busy t = h[i];
        h[i] = h[c];
        h[c] = t;
    }
    return first;
}

static void idle_push(struct otlp *o, struct otlp_service *s, uint32_t lane)
{
    if (!vec_push(&s->idle, lane)) {
        o->im->failed = true;
        return;
    }
    uint32_t *h = s->idle.p;
    for (size_t i = s->idle.n - 1, up; i && h[i] < h[up = (i - 1) / 2]; i = up) {
        uint32_t t = h[i];
        h[i] = h[up];
        h[up] = t;
    }
}

static uint32_t idle_pop(struct otlp_service *s)
{
    uint32_t *h = s->idle.p, first = h[0];
    size_t n = --s->idle.n;
    h[0] = h[n];
    for (size_t i = 0, c; (c = 2 * i + 1) < n; i = c) {
        c += c + 1 < n && h[c + 1] < h[c];
        if (h[i] <= h[c])
            break;
        uint32_t t = h[i];
        h[i] = h[c];
        h[c] = t;
    }
    return first;
}

/* The first lane on which nothing is open. */
static uint32_t free_lane(struct otlp *o, struct otlp_service *s, int64_t ts, int64_t end)
{
    while (s->busy.n) {
        const struct otlp_lane *lane = &s->lanes.p[s->busy.p[0].lane];
        if (lane->open.n && !is_over(&lane->open.p[0], ts, end))
            break;
        idle_push(o, s, busy_pop(s).lane);
    }
    if (s->idle.n)
        return idle_pop(s);
    if (!vec_push(&s->lanes, (struct otlp_lane){.track = OTLP_NONE}))
        o->im->failed = true;
    return (uint32_t)s->lanes.n - 1;
}

/* The lane of its parent, when that is of the same service, has no other thread, and is what is open there. */
static uint32_t lane_of_parent(const struct otlp *o, struct otlp_service *s, const struct otlp_span *span)
{
    const struct otlp_span *parent = span->parent_span != OTLP_NONE ? &o->spans.p[span->parent_span] : NULL;
    if (!parent || parent->lane == OTLP_NONE || parent->thread != span->thread ||
        resource_of(o, parent)->service != resource_of(o, span)->service)
        return OTLP_NONE;
    otlp_stack *open = &s->lanes.p[parent->lane].open;
    close_until(open, span->ts, span->end);
    return open->n && open->n < DEEPEST && vec_last(open)->span == span->parent_span && span->end <= vec_last(open)->end
               ? parent->lane
               : OTLP_NONE;
}

static void place(struct otlp *o, uint32_t index)
{
    struct otlp_span *span = &o->spans.p[index];
    struct otlp_interval i = {span->ts, span->end, index};
    span->thread = otlp_thread_of(o, span);
    if (span->thread != OTLP_NONE) {
        otlp_stack *open = &o->threads.p[span->thread].open;
        close_until(open, i.ts, i.end);
        if (open->n < DEEPEST && (!open->n || i.end <= vec_last(open)->end)) {
            push(o, open, i);
            return;
        }
    }
    struct otlp_service *s = &o->services.p[resource_of(o, span)->service];
    uint32_t lane = lane_of_parent(o, s, span);
    if (lane == OTLP_NONE) {
        lane = free_lane(o, s, i.ts, i.end);
        if (o->im->failed)
            return;
        vec_clear(&s->lanes.p[lane].open);
        busy_push(o, s, (struct otlp_busy){i.end, lane});
    }
    span->lane = lane;
    push(o, &s->lanes.p[lane].open, i);
}

/* --- times --- */

static void count(struct otlp *o, const struct otlp_span *s, enum stat_key stat)
{
    const struct otlp_resource *res = resource_of(o, s);
    stats_add_idx(&o->im->st->stats, res->m->id, stat, (int32_t)o->files.p[res->file].trace_file, 1);
}

/* Puts a span and its events onto the timeline; false when nothing says where that is. An end that is missing is
 * INT64_MAX from here on. */
static bool to_trace_time(struct otlp *o, struct otlp_span *s)
{
    const struct otlp_resource *res = resource_of(o, s);
    struct file_clock *clock = &o->clocks.p[res->clock].clock;
    int64_t start = s->ts, end = s->end;
    if (!file_clock_to_trace_time(clock, start, -1, &s->ts))
        return false;
    if (end == OTLP_NEVER) {
        s->end = INT64_MAX;
        count(o, s, STAT_otlp_unfinished_span);
    } else if (end < start) {
        s->end = s->ts;
        count(o, s, STAT_otlp_negative_duration);
    } else if (!file_clock_to_trace_time(clock, end, -1, &s->end) || s->end < s->ts) {
        int64_t shifted = saturating_add(s->ts, end - start);
        s->end = shifted < INT64_MAX ? shifted : INT64_MAX - 1;
    }
    for (uint32_t i = 0; i < s->n_events; i++) {
        struct otlp_event *e = &o->events.p[s->first_event + i];
        if (!file_clock_to_trace_time(clock, e->ts, -1, &e->ts))
            e->ts = s->ts;
    }
    return true;
}

static void find_parents(struct otlp *o)
{
    for (size_t i = 0; i < o->spans.n; i++) {
        struct otlp_span *s = &o->spans.p[i];
        struct otlp_key key = s->key;
        if (s->dropped || otlp_is_zero(s->parent, sizeof s->parent))
            continue;
        memcpy(key.span, s->parent, sizeof key.span);
        s->parent_span = otlp_find(o, &key);
        if (s->parent_span == i)
            s->parent_span = OTLP_NONE;
        if (s->parent_span == OTLP_NONE)
            count(o, s, STAT_otlp_missing_parent);
    }
}

/* Calls from one service to another that the clocks show the wrong way round. */
static void count_violations(struct otlp *o)
{
    enum { SERVER = 2, CLIENT = 3, PRODUCER = 4, CONSUMER = 5 };
    for (size_t i = 0; i < o->spans.n; i++) {
        const struct otlp_span *s = &o->spans.p[i],
                               *parent = s->parent_span != OTLP_NONE ? &o->spans.p[s->parent_span] : NULL;
        if (!parent || s->dropped || resource_of(o, parent) == resource_of(o, s))
            continue;
        bool call = parent->kind == CLIENT && s->kind == SERVER,
             message = parent->kind == PRODUCER && s->kind == CONSUMER;
        if ((call && (s->ts < parent->ts || (s->end > parent->end && s->end != INT64_MAX))) ||
            (message && s->ts < parent->ts))
            count(o, s, STAT_otlp_causality_violations);
    }
}

/* A span in the order of time. */
struct timed {
    int64_t ts, end;
    uint32_t span;
};

static int by_time(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->span < y->span ? -1 : x->span > y->span;
}

void otlp_layout(struct otlp *o)
{
    VEC(struct timed)
    timed = {0};
    find_parents(o);
    for (size_t i = 0; i < o->spans.n && !o->im->failed; i++) {
        struct otlp_span *s = &o->spans.p[i];
        if (s->dropped)
            continue;
        if (!to_trace_time(o, s))
            s->dropped = true;
        else if (!vec_push(&timed, (struct timed){s->ts, s->end, (uint32_t)i}))
            o->im->failed = true;
    }
    count_violations(o);
    if (timed.n)
        qsort(timed.p, timed.n, sizeof *timed.p, by_time);
    for (size_t i = 0; i < timed.n && !o->im->failed; i++) {
        if (!vec_push(&o->order, timed.p[i].span))
            o->im->failed = true;
        place(o, timed.p[i].span);
    }
    vec_free(&timed);
}
