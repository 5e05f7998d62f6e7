/* Tells which events are about the threads that are kept, where not all are. */
#include "cut/cut_internal.h"

#include "base/bisect.h"
#include "wire/fields.h"

bool cut_wants_thread(const struct cut_window *w, uint32_t machine, int64_t tid)
{
    const uint64_t key = cut_thread_key(machine, tid);
    size_t at = w->n_threads;
    BISECT(at, mid, w->threads[mid] < key);
    return !w->n_threads || (at < w->n_threads && w->threads[at] == key);
}

/* Kernel events that are about another thread than the one that runs. */
static const struct {
    uint32_t event, field;
} abouts[] = {
    {FTRACE_EVENT_SCHED_SWITCH, FTRACE_SCHED_SWITCH_PREV_PID},
    {FTRACE_EVENT_SCHED_SWITCH, FTRACE_SCHED_SWITCH_NEXT_PID},
    {FTRACE_EVENT_SCHED_WAKING, FTRACE_SCHED_WAKING_PID},
    {FTRACE_EVENT_SCHED_WAKEUP, FTRACE_SCHED_WAKEUP_PID},
    {FTRACE_EVENT_SCHED_WAKEUP_NEW, FTRACE_SCHED_WAKEUP_NEW_PID},
};

bool cut_is_about(const struct cut *c, const struct cut_event *e)
{
    struct pb_field f;
    if (cut_wants_thread(c->w, e->machine, e->pid))
        return true;
    for (size_t i = 0; i < sizeof abouts / sizeof *abouts; i++)
        if (abouts[i].event == e->id &&
            cut_wants_thread(c->w, e->machine, pb_find(e->payload, abouts[i].field, &f) ? pb_i32(&f) : 0))
            return true;
    return false;
}

/* ---- whose a track is ---- */

static bool number_of(struct slice message, uint32_t field, uint64_t *value)
{
    struct pb_field f;
    bool found = pb_find(message, field, &f);
    *value = found ? pb_u64(&f) : 0;
    return found;
}

bool cut_note_track(struct cut *c, struct slice descriptor)
{
    struct pb_field f;
    uint64_t uuid, parent, pid;
    struct cut_track t = {0};
    if (!number_of(descriptor, TRACK_DESCRIPTOR_UUID, &uuid))
        return true;
    if ((pb_find(descriptor, TRACK_DESCRIPTOR_THREAD, &f) && number_of(pb_bytes(&f), THREAD_DESCRIPTOR_PID, &pid)) ||
        (pb_find(descriptor, TRACK_DESCRIPTOR_PROCESS, &f) && number_of(pb_bytes(&f), PROCESS_DESCRIPTOR_PID, &pid)))
        t = (struct cut_track){.has_pid = true, .pid = (int32_t)pid};
    if (number_of(descriptor, TRACK_DESCRIPTOR_PARENT_UUID, &parent))
        t.parent = parent;
    uint64_t *at = u64map_put(&c->track_of, uuid, NULL);
    if (!at || !vec_push(&c->tracks, t))
        return false;
    *at = c->tracks.n - 1;
    return true;
}

/* Whether the track is one of a process that goes; those of no process stay. */
static bool goes_with_track(const struct cut *c, uint32_t machine, uint64_t uuid)
{
    enum { ANCESTORS = 100 };
    for (int i = 0; i < ANCESTORS; i++) {
        const uint64_t *at = u64map_get(&c->track_of, uuid);
        if (!at)
            return false;
        const struct cut_track *t = &c->tracks.p[*at];
        if (t->has_pid)
            return !cut_wants_thread(c->w, machine, t->pid);
        uuid = t->parent;
    }
    return false;
}

bool cut_goes_with_process(const struct cut *c, const struct cut_sequence *s, uint32_t machine,
                           const struct pb_field *f)
{
    uint64_t id;
    if (!c->w->n_threads)
        return false;
    if (f->id == TRACE_PACKET_PERF_SAMPLE)
        return number_of(pb_bytes(f), PERF_SAMPLE_PID, &id) && !cut_wants_thread(c->w, machine, (int32_t)id);
    if (f->id != TRACE_PACKET_TRACK_EVENT)
        return false;
    if (number_of(pb_bytes(f), TRACK_EVENT_TRACK_UUID, &id))
        return goes_with_track(c, machine, id);
    if (s->default_track)
        return goes_with_track(c, machine, s->default_track);
    return s->has_pid && !cut_wants_thread(c->w, machine, s->pid);
}

void cut_sequence_owner(struct cut_sequence *s, const struct cut_head *h)
{
    struct pb_field f;
    uint64_t pid;
    if (h->cleared)
        s->default_track = 0;
    if (h->defaults.p) {
        s->default_track = 0;
        if (pb_find(h->defaults, TRACE_PACKET_DEFAULTS_TRACK_EVENT_DEFAULTS, &f))
            number_of(pb_bytes(&f), TRACK_EVENT_DEFAULTS_TRACK_UUID, &s->default_track);
    }
    if (h->thread.p && number_of(h->thread, THREAD_DESCRIPTOR_PID, &pid)) {
        s->has_pid = true;
        s->pid = (int32_t)pid;
    }
}

bool cut_process_stats(struct cut *c, uint32_t machine, struct slice stats)
{
    struct pb_cursor cursor = pb_cursor(stats);
    struct pb_field f;
    uint64_t pid;
    size_t before = c->out.n, mark = pb_begin(&c->out, TRACE_PACKET_PROCESS_STATS);
    bool any = false;
    for (const uint8_t *from = cursor.p; pb_next(&cursor, &f); from = cursor.p) {
        if (f.id == PROCESS_STATS_PROCESSES) {
            if (number_of(pb_bytes(&f), PROCESS_STATS_PROCESS_PID, &pid) &&
                !cut_wants_thread(c->w, machine, (int32_t)pid))
                continue;
            any = true;
        }
        pb_put_raw(&c->out, from, (size_t)(cursor.p - from));
    }
    if (cursor.bad) /* the importer counts it */
        pb_put_raw(&c->out, cursor.p, (size_t)(cursor.end - cursor.p));
    pb_end(&c->out, mark);
    if (!any && !cursor.bad)
        c->out.n = before;
    return any || cursor.bad;
}
