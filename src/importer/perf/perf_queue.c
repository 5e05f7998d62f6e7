/* Brings the records of a perf.data into the order of time. */
#include "importer/perf/perf_internal.h"

#include "base/bisect.h"
#include "importer/sort/merge_sort.h"
#include "importer/track/process_tracker.h"
#include "importer/track/sched_tracker.h"

enum { WINDOW_EVENTS = 1 << 20 };

/* The record at an address that was one before. */
static struct perf_record record_at(const struct perf_file *f, const uint8_t *at)
{
    return (struct perf_record){
        .type = perf_load32(f, at), .misc = perf_load16(f, at + 4), .bytes = slice_of(at, perf_load16(f, at + 6))};
}

/* Whether nobody else adds to the tables of samples, but kernel events that are parsed with one. */
static bool samples_are_alone(const struct perf_import *p)
{
    return p->im->st->t[T_trace_file].n_rows == 1 && !p->events_in_packets;
}

static void parse(void *owner, const struct sort_event *events, size_t n)
{
    struct perf_import *p = owner;
    for (size_t i = perf_parse_samples(p, events, n); i < n;
         i += 1 + perf_parse_samples(p, events + i + 1, n - i - 1)) {
        struct perf_record r = record_at(&p->file, (const uint8_t *)(uintptr_t)events[i].a);
        p->maps_epoch += r.type != PERF_RECORD_SWITCH && r.type != PERF_RECORD_SWITCH_CPU_WIDE;
        (void)perf_parse_record(p, &p->file.attrs.p[events[i].b], &r, events[i].ts);
    }
    if (!samples_are_alone(p))
        sample_writer_flush(p->samples);
}

void perf_queue_open(struct perf_import *p)
{
    p->first_time = UINT64_MAX;
    p->threads_epoch = process_tracker_epoch(p->m->processes);
    p->window.max = p->window.round_max = INT64_MIN;
    p->early_queue = sorter_add_queue(p->im->sorter, parse, p); /* of equal times those of the queue made first */
    p->queue = sorter_add_queue(p->im->sorter, parse, p);
}

/* Hands on the events of the window that are not later than `until`, in the order of time.
 *
 * A round has what each CPU's buffer held, one after the other. Sorting a few rounds in the cache costs a fraction of
 * what the sorter needs for all of a file; what is still out of order it finds. */
static void hand_on(struct perf_import *p, int64_t until)
{
    struct perf_window *w = &p->window;
    size_t n = w->events.n;
    if (!n)
        return;
    if (!vec_reserve(&w->room, n / 2 + 1)) {
        p->im->failed = true;
        return;
    }
    merge_sort_events(w->events.p, n, w->room.p, INT64_MAX);
    BISECT(n, i, w->events.p[i].ts <= until);
    sorter_push_run(p->im->sorter, p->queue, w->events.p, n);
    w->events.n -= n;
    memmove(w->events.p, w->events.p + n, w->events.n * sizeof *w->events.p);
}

/* perf has emptied each CPU's buffer once: what was there before the round before this is complete. */
static void end_round(struct perf_import *p)
{
    hand_on(p, p->window.round_max);
    p->window.round_max = p->window.max;
}

static inline __attribute__((always_inline)) void push(struct perf_import *p, const uint8_t *record, uint32_t attr,
                                                       uint64_t time)
{
    struct perf_window *w = &p->window;
    int64_t ts; /* not e.ts, which would have the event written in parts and read as one: 4 ns of 200 */
    if (!file_clock_to_trace_time(&p->clock, (int64_t)time, -1, &ts))
        return;
    w->max = ts > w->max ? ts : w->max;
    if (w->events.n == WINDOW_EVENTS)
        hand_on(p, w->events.p[WINDOW_EVENTS / 2].ts);
    if (w->events.n == WINDOW_EVENTS) /* the later half came first */
        hand_on(p, INT64_MAX);
    p->im->failed |= !vec_push(&w->events, ((struct sort_event){.ts = ts, .a = (uintptr_t)record, .b = attr}));
}

/* In the code for samples, and for all others. */
static inline __attribute__((always_inline)) void wait_or_push(struct perf_import *p, const uint8_t *record,
                                                               uint32_t attr, uint64_t time)
{
    if (!time) {
        p->im->failed |= !vec_push(&p->early, ((struct perf_waiting){record, attr}));
        return;
    }
    p->first_time = time < p->first_time ? time : p->first_time;
    push(p, record, attr, time);
}

/* Records that mean nothing to a reader who sorts everything. */
static bool means_nothing(uint32_t type)
{
    static const uint8_t types[] = {
        PERF_RECORD_NAMESPACES,       PERF_RECORD_BPF_EVENT,         PERF_RECORD_TEXT_POKE,
        PERF_RECORD_AUX_OUTPUT_HW_ID, PERF_RECORD_HEADER_EVENT_TYPE, PERF_RECORD_FINISHED_ROUND,
        PERF_RECORD_ID_INDEX,         PERF_RECORD_AUXTRACE_INFO,     PERF_RECORD_THREAD_MAP,
        PERF_RECORD_CPU_MAP,          PERF_RECORD_EVENT_UPDATE,      PERF_RECORD_TIME_CONV,
        PERF_RECORD_FINISHED_INIT,    PERF_RECORD_BPF_METADATA,      PERF_RECORD_SCHEDSTAT_CPU,
        PERF_RECORD_SCHEDSTAT_DOMAIN};
    for (size_t i = 0; i < sizeof types; i++)
        if (types[i] == type)
            return true;
    return false;
}

/* AUX areas are not read: how many pieces there are is counted, and what the kernel lost of them. */
static bool take_aux(struct perf_import *p, const struct perf_record *r)
{
    static const struct {
        uint64_t flag;
        enum stat_key stat;
    } losses[] = {{1, STAT_perf_aux_truncated}, {4, STAT_perf_aux_partial}, {8, STAT_perf_aux_collision}};
    struct stats *stats = &p->im->st->stats;
    if (r->type != PERF_RECORD_AUX && r->type != PERF_RECORD_AUXTRACE && r->type != PERF_RECORD_AUXTRACE_ERROR)
        return false;
    struct dat_cursor c = perf_body(&p->file, r);
    (void)dat_bytes(&c, 16); /* offset, size */
    uint64_t flags = r->type == PERF_RECORD_AUX ? dat_u64(&c) : 0;
    for (size_t i = 0; i < sizeof losses / sizeof *losses && !c.bad; i++)
        if (flags & losses[i].flag)
            stats_add(stats, p->m->id, losses[i].stat, 1);
    if (r->type == PERF_RECORD_AUXTRACE)
        stats_add(stats, p->m->id, STAT_perf_aux_ignored, 1);
    return true;
}

/* The threads that were recorded, where it was not all of them, which is told by the number -1. */
static void take_threads(struct perf_import *p, const struct perf_record *r)
{
    struct dat_cursor c = perf_body(&p->file, r);
    uint64_t n = dat_u64(&c), pid = dat_u64(&c);
    if (n && !c.bad && pid != UINT64_MAX)
        sched_tracker_of_some_threads(p->m->sched);
}

static void take_sample(struct perf_import *p, const struct perf_record *r)
{
    const struct perf_attr *a = perf_attr_of(&p->file, r);
    uint64_t time;
    if (!a || !perf_sample_time(&p->file, a, r, &time)) {
        stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_record_skipped, PERF_RECORD_SAMPLE, 1);
        return;
    }
    size_t attr = (size_t)(a - p->file.attrs.p);
    if (a->kernel_event != PERF_EVENT_WAITS)
        perf_tracepoints_take(p, a, r);
    if (a->kernel_event == PERF_EVENT_SWITCH) /* that there is one was told by the first */
        p->file.attrs.p[attr].kernel_event = PERF_EVENT_WAITS;
    wait_or_push(p, r->bytes.p, (uint32_t)attr, time);
}

void perf_queue_take(struct perf_import *p, const struct perf_record *r)
{
    struct stats *stats = &p->im->st->stats;
    struct perf_where w;
    if (r->type == PERF_RECORD_SAMPLE) {
        take_sample(p, r);
        return;
    }
    if (r->type == PERF_RECORD_FINISHED_ROUND)
        end_round(p);
    if (r->type == PERF_RECORD_THREAD_MAP)
        take_threads(p, r);
    if (means_nothing(r->type) || take_aux(p, r))
        return;
    if (!perf_parse_record(NULL, NULL, r, 0)) {
        stats_add_idx(stats, p->m->id, STAT_perf_unknown_record_type, (int32_t)r->type, 1);
        return;
    }
    const struct perf_attr *a = perf_attr_of(&p->file, r);
    if (!a) {
        stats_add_idx(stats, p->m->id, STAT_perf_record_skipped, (int32_t)r->type, 1);
        return;
    }
    perf_trailer_read(&p->file, a, r, &w);
    wait_or_push(p, r->bytes.p, (uint32_t)(a - p->file.attrs.p), w.time);
}

/* As perf_queue_take_plain(); `big` is known when this is compiled. */
static inline __attribute__((always_inline)) void take_plain(struct perf_import *p, bool big)
{
    enum { HEADER = 8, WORD = 8 };
    struct perf_file *f = &p->file;
    struct perf_window *w = &p->window;
    const struct perf_attr *attrs = f->attrs.p, *a = attrs;
    const size_t id_at = attrs->layout.sample.id, least = f->attrs.n > 1 ? id_at + WORD : HEADER;
    size_t room = w->events.cap < WINDOW_EVENTS ? w->events.cap : WINDOW_EVENTS;
    struct sort_event *to = w->events.p + w->events.n, *end = w->events.p + room;
    const uint8_t *at = f->rest.p, *at_end = at + f->rest.len;
    uint64_t first = p->first_time;
    int64_t max = w->max;
    while (to < end && at_end - at >= HEADER) {
        uint16_t size = perf_quarter_word(at + 6, big);
        if (perf_half_word(at, big) != PERF_RECORD_SAMPLE || size < least || size > at_end - at)
            break;
        if (f->attrs.n > 1) {
            uint64_t id = perf_word(at + id_at, big);
            a = f->known_ids[id % PERF_KNOWN_IDS].attr;
            if (!a || f->known_ids[id % PERF_KNOWN_IDS].id != id)
                break;
        }
        if (size < a->layout.sample.size || !a->layout.sample.time || a->kernel_event != PERF_EVENT_WAITS)
            break;
        uint64_t time = perf_word(at + a->layout.sample.time, big);
        if (!time)
            break;
        first = time < first ? time : first;
        max = (int64_t)time > max ? (int64_t)time : max;
        *to++ = (struct sort_event){.ts = (int64_t)time, .a = (uintptr_t)at, .b = (uint32_t)(a - attrs)};
        at += size;
    }
    w->events.n = (size_t)(to - w->events.p);
    w->max = max;
    p->first_time = first;
    f->rest = slice_of(at, (size_t)(at_end - at));
}

void perf_queue_take_plain(struct perf_import *p)
{
    const struct perf_file *f = &p->file;
    if (!p->clock.same || !f->rest.len || !p->window.events.cap || (f->attrs.n > 1 && !f->attrs.p->layout.sample.id))
        return;
    if (f->big)
        take_plain(p, true);
    else
        take_plain(p, false);
}

void perf_queue_end(struct perf_import *p)
{
    uint64_t first = p->first_time == UINT64_MAX ? 0 : p->first_time;
    perf_tracepoints_end(p);
    hand_on(p, INT64_MAX);
    for (size_t i = 0; i < p->early.n; i++) {
        struct sort_event e = {.a = (uintptr_t)p->early.p[i].record, .b = p->early.p[i].attr};
        if (file_clock_to_trace_time(&p->clock, (int64_t)first, -1, &e.ts))
            sorter_push(p->im->sorter, p->early_queue, e);
    }
    perf_queue_close(p);
}

void perf_queue_close(struct perf_import *p)
{
    vec_free(&p->early);
    vec_free(&p->window.events);
    vec_free(&p->window.room);
}
