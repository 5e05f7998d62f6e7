/* Chrome's browser lists its processes from time to time. A process that is listed and does not describe itself about
 * then lost what it recorded before: from when on its events can be relied on. */
#include "importer/track_event/track_event_internal.h"

#include "base/saturate.h"

#include <stdlib.h>

enum { NEAR_NS = 200000000 /* how far a description may lie from the list */ };

struct process_moment { /* a process was listed, or described itself */
    int64_t ts;
    uint32_t upid;
    bool described;
};

struct chrome_processes {
    VEC(struct process_moment)
    moments;
    VEC(int64_t)
    lists; /* when lists came */
};

static void add(struct track_event_machine *t, struct process_moment moment)
{
    struct chrome_processes *c = t->chrome_processes;
    if (!c)
        c = t->chrome_processes = mem_zalloc(sizeof *c);
    if (!c || !vec_push(&c->moments, moment))
        t->m->im->failed = true;
}

void track_event_process_described(struct track_event_machine *t, int64_t ts, uint32_t upid)
{
    add(t, (struct process_moment){ts, upid, true});
}

void track_event_processes_listed(struct track_event_machine *t, int64_t ts, struct slice event)
{
    static const struct {
        uint32_t message, pid;
    } lists[] = {{TRACK_EVENT_CHROME_ACTIVE_PROCESSES, CHROME_ACTIVE_PROCESSES_PID},
                 {TRACK_EVENT_ACTIVE_PROCESSES, ACTIVE_PROCESSES_PID}};
    struct pb_field f;
    uint64_t pid;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!pb_find(event, lists[i].message, &f))
            continue;
        for (struct pb_numbers n = pb_numbers(pb_bytes(&f), lists[i].pid); pb_next_number(&n, &pid);)
            add(t, (struct process_moment){ts, process_tracker_process(t->m->processes, (int32_t)pid), false});
        if (t->chrome_processes && !vec_push(&t->chrome_processes->lists, ts))
            t->m->im->failed = true;
    }
}

static int by_process_and_time(const void *a, const void *b)
{
    const struct process_moment *x = a, *y = b;
    if (x->upid != y->upid)
        return x->upid < y->upid ? -1 : 1;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

/* The first moment at or after `ts` at which any process was listed; COL_NULL: none. */
static int64_t first_list_from(const struct chrome_processes *c, int64_t ts)
{
    int64_t first = COL_NULL;
    for (size_t i = 0; i < c->lists.n; i++)
        if (c->lists.p[i] >= ts && (first == COL_NULL || c->lists.p[i] < first))
            first = c->lists.p[i];
    return first;
}

/* The first moment at or after `ts` at which the process described itself; COL_NULL: none. */
static int64_t first_description_from(const struct process_moment *p, size_t n, int64_t ts)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].described && p[i].ts >= ts)
            return p[i].ts;
    return COL_NULL;
}

/* The moments of one process, in order of time: the last loss counts. */
static void tell_losses(struct track_event_machine *t, const struct process_moment *p, size_t n)
{
    bool lost = false;
    int64_t reliable = COL_NULL;
    for (size_t i = 0; i < n; i++) {
        if (p[i].described)
            continue;
        int64_t next = first_description_from(p, n, saturating_sub(p[i].ts, NEAR_NS));
        if (next != COL_NULL && saturating_sub(next, p[i].ts) <= NEAR_NS)
            continue;
        lost = true;
        reliable = next != COL_NULL ? next : first_list_from(t->chrome_processes, p[i].ts + 1);
    }
    if (lost)
        experimental_missing_chrome_processes_insert(t->m->st, &(struct experimental_missing_chrome_processes_row){
                                                                   .upid = p[0].upid, .reliable_from = reliable});
}

void track_event_processes_finish(struct track_event_machine *t)
{
    struct chrome_processes *c = t->chrome_processes;
    if (!c || !c->lists.n)
        return;
    struct process_moment *p = c->moments.p;
    qsort(p, c->moments.n, sizeof *p, by_process_and_time);
    for (size_t from = 0, to; from < c->moments.n; from = to) {
        for (to = from + 1; to < c->moments.n && p[to].upid == p[from].upid; to++)
            ;
        tell_losses(t, p + from, to - from);
    }
}

void track_event_processes_close(struct chrome_processes *c)
{
    if (!c)
        return;
    vec_free(&c->moments);
    vec_free(&c->lists);
    mem_free(c);
}
