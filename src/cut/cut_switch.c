/* Keeps switches of threads in one chain where some of them go: see struct cut_cpu. */
#include "cut/cut_internal.h"

#include "wire/fields.h"

#include <stdio.h>

struct slice cut_idle_name(uint32_t cpu, char buf[24])
{
    int n = snprintf(buf, 24, "swapper/%u", cpu);
    return slice_of(buf, (size_t)n);
}

/* The fields of a side of the switch. */
struct side {
    uint32_t comm, pid, prio;
};
static const struct side prev_side = {FTRACE_SCHED_SWITCH_PREV_COMM, FTRACE_SCHED_SWITCH_PREV_PID,
                                      FTRACE_SCHED_SWITCH_PREV_PRIO};
static const struct side next_side = {FTRACE_SCHED_SWITCH_NEXT_COMM, FTRACE_SCHED_SWITCH_NEXT_PID,
                                      FTRACE_SCHED_SWITCH_NEXT_PRIO};

static void put_thread(struct pb_writer *w, const struct side *to, const struct side *from, struct slice payload)
{
    struct pb_field f;
    if (pb_find(payload, from->comm, &f))
        pb_put_bytes(w, to->comm, f.p, pb_bytes(&f).len);
    pb_put_i64(w, to->pid, pb_find(payload, from->pid, &f) ? pb_i32(&f) : 0);
    pb_put_i64(w, to->prio, pb_find(payload, from->prio, &f) ? pb_i32(&f) : 0);
}

static void put_idle(struct pb_writer *w, const struct side *to, uint32_t cpu)
{
    enum { IDLE_PRIORITY = 120 };
    char buf[24];
    struct slice name = cut_idle_name(cpu, buf);
    pb_put_bytes(w, to->comm, name.p, name.len);
    pb_put_i64(w, to->pid, 0);
    pb_put_i64(w, to->prio, IDLE_PRIORITY);
}

/* A switch at the time of `s`, from the idle thread to the one that `s` leaves; or from that one to the idle thread. */
static void put_bridge(struct pb_writer *w, const struct cut_switch *s, bool from_idle)
{
    struct pb_field f;
    uint64_t ts = pb_find(s->event, FTRACE_EVENT_TIMESTAMP, &f) ? pb_u64(&f) : 0;
    int64_t pid = pb_find(s->payload, prev_side.pid, &f) ? pb_i32(&f) : 0;
    size_t event = pb_begin(w, FTRACE_EVENT_BUNDLE_EVENT);
    pb_put_varint(w, FTRACE_EVENT_TIMESTAMP, ts);
    pb_put_i64(w, FTRACE_EVENT_PID, from_idle ? 0 : pid);
    size_t payload = pb_begin(w, FTRACE_EVENT_SCHED_SWITCH);
    if (from_idle)
        put_idle(w, &prev_side, s->cpu);
    else
        put_thread(w, &prev_side, &prev_side, s->payload);
    pb_put_i64(w, FTRACE_SCHED_SWITCH_PREV_STATE,
               !from_idle && pb_find(s->payload, FTRACE_SCHED_SWITCH_PREV_STATE, &f) ? pb_i64(&f) : 0);
    if (from_idle)
        put_thread(w, &next_side, &prev_side, s->payload);
    else
        put_idle(w, &next_side, s->cpu);
    pb_end(w, payload);
    pb_end(w, event);
}

bool cut_plain_switch(struct cut *c, struct cut_cpu *run, const struct cut_switch *s, bool stays)
{
    if (stays) {
        if (run->written && run->gap)
            put_bridge(&c->out, s, true);
        run->written = true;
        run->gap = false;
        pb_put_bytes(&c->out, FTRACE_EVENT_BUNDLE_EVENT, s->event.p, s->event.len);
        return true;
    }
    bool leaves = run->written && !run->gap;
    if (leaves)
        put_bridge(&c->out, s, false);
    run->gap = true;
    return leaves;
}
