/* Sched slices and what runs where on one machine; thread states are in thread_state.c. */
#include "importer/track/sched_tracker.h"

#include "base/by_id.h"
#include "base/saturate.h"

#include "importer/track/process_tracker.h"
#include "importer/track/thread_state.h"

#include <string.h>

#define NO_ROW UINT32_MAX

enum { STATE_CACHE = 8192 };

struct state_cache {
    strid text[STATE_CACHE];   /* of a raw state; 0: not made yet */
    bool invalid[STATE_CACHE]; /* known to be */
};

struct sched_tracker {
    struct machine_ctx *m;
    struct thread_states states;
    BY_ID(struct sched_cpu) cpus;
    bool of_some_threads;            /* sched_tracker_of_some_threads() */
    uint32_t version;                /* kernel version that the cache below is for: major << 16 | minor */
    struct state_cache *states_seen; /* made by the first state: many machines may have none */
};

struct sched_tracker *sched_tracker_open(struct machine_ctx *m)
{
    struct sched_tracker *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->m = m;
    thread_states_init(&t->states, m);
    return t;
}

void sched_tracker_finish(struct sched_tracker *t)
{
    (void)t; /* what is open stays open: dur = -1 */
}

void sched_tracker_close(struct sched_tracker *t)
{
    if (!t)
        return;
    by_id_free(&t->cpus);
    mem_free(t->states_seen);
    thread_states_free(&t->states);
    mem_free(t);
}

static inline struct sched_cpu *cpu_run(struct sched_tracker *t, uint32_t cpu)
{
    struct sched_cpu *c = by_id_find(&t->cpus, cpu);
    if (__builtin_expect(c && c->met, 1))
        return c;
    if (!machine_has_cpu(t->m, cpu))
        return NULL;
    c = by_id_make(&t->cpus, cpu);
    if (c)
        *c = (struct sched_cpu){.met = true, .cpu = cpu, .slice_row = NO_ROW, .utid = UTID_NONE, .ucpu = -1};
    else
        t->m->im->failed = true;
    return c;
}

struct sched_cpu *sched_tracker_cpu(struct sched_tracker *t, uint32_t cpu)
{
    return cpu_run(t, cpu);
}

/* --- the text of a raw state ------------------------------------------------------------------------------------- */

/* Bits 0..5 are the same in every kernel; the rest moved. The text
 * has the letters in the order of this table. */
static const struct state_bit {
    char letter;
    uint16_t since_4_14;
    uint16_t before_4_14;
} state_bits[] = {
    {'S', 0x01, 0x01},  {'D', 0x02, 0x02}, {'T', 0x04, 0x04}, {'t', 0x08, 0x08}, {'X', 0x10, 0x10}, {'Z', 0x20, 0x20},
    {'P', 0x40, 0x200}, {'x', 0, 0x40},    {'K', 0, 0x80},    {'W', 0, 0x100},   {'N', 0, 0x400},   {'I', 0x80, 0},
};

/* False when the state is none of this kernel's. */
static bool state_text(uint16_t raw, uint32_t version, char out[16])
{
    bool modern = version >= (4u << 16 | 14);
    uint32_t preempted = modern ? 0x100 : version >= (4u << 16 | 8) ? 0x1000 : 0x800;
    size_t n = 0;
    if (raw & ~(2 * preempted - 1))
        return false;
    if (!modern && (raw & 0x402) == 0x402) { /* uninterruptible without load: idle */
        raw &= (uint16_t)~0x402;
        out[n++] = 'I';
    }
    for (size_t i = 0; i < sizeof state_bits / sizeof *state_bits; i++)
        if (raw & (modern ? state_bits[i].since_4_14 : state_bits[i].before_4_14))
            out[n++] = state_bits[i].letter;
    if (n == 0)
        out[n++] = 'R';
    if (raw & preempted)
        out[n++] = '+';
    out[n] = 0;
    return true;
}

/* Of a machine whose kernel is unknown this one is taken. */
static inline uint32_t kernel_of(const struct sched_tracker *t)
{
    uint32_t version = t->m->kernel_major << 16 | t->m->kernel_minor;
    return version ? version : 4u << 16 | 4;
}

strid sched_tracker_state(struct sched_tracker *t, int64_t prev_state)
{
    uint16_t raw = (uint16_t)prev_state;
    uint32_t version = kernel_of(t);
    if (version != t->version) {
        mem_free(t->states_seen);
        t->states_seen = NULL;
        t->version = version;
    }
    if (!t->states_seen)
        t->states_seen = mem_zalloc(sizeof *t->states_seen);
    struct state_cache *seen = raw < STATE_CACHE ? t->states_seen : NULL;
    if (seen && seen->text[raw])
        return seen->text[raw];
    char text[16];
    strid id = 0;
    if (!(seen && seen->invalid[raw]) && state_text(raw, version, text))
        id = import_str(t->m->im, text);
    else
        stats_add(&t->m->st->stats, t->m->id, STAT_task_state_invalid, 1);
    if (seen) {
        seen->text[raw] = id;
        seen->invalid[raw] = id == 0;
    }
    return id;
}

/* The same for each switch: nearly always it was met before. */
static inline strid state_of(struct sched_tracker *t, int64_t prev_state)
{
    uint16_t raw = (uint16_t)prev_state;
    strid seen = t->states_seen && kernel_of(t) == t->version && raw < STATE_CACHE ? t->states_seen->text[raw] : 0;
    return __builtin_expect(seen != 0, 1) ? seen : sched_tracker_state(t, prev_state);
}

/* --- slices ------------------------------------------------------------------------------------------------------ */

static inline void close_slice(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, strid end_state)
{
    if (c->slice_row == NO_ROW)
        return;
    ROW_SET(t->m->st, sched_slice, dur, c->slice_row, saturating_sub(ts, c->start_ts));
    ROW_SET(t->m->st, sched_slice, end_state, c->slice_row, (int64_t)end_state);
}

static inline void open_slice(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, uint32_t utid, int32_t prio)
{
    if (c->ucpu < 0)
        c->ucpu = machine_ucpu(t->m, c->cpu);
    c->start_ts = ts;
    c->slice_row = sched_slice_insert(
        t->m->st, &(struct sched_slice_row){.ts = ts, .dur = -1, .utid = utid, .priority = prio, .ucpu = c->ucpu});
    c->utid = utid;
    c->prio = prio;
}

void sched_tracker_of_some_threads(struct sched_tracker *t)
{
    t->of_some_threads = true;
}

uint32_t sched_tracker_switch_on(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, int32_t prev_pid,
                                 strid prev_comm, int64_t prev_state, int32_t next_pid, strid next_comm,
                                 int32_t next_prio)
{
    uint32_t next = process_tracker_named_thread(t->m->processes, next_pid, next_comm);
    strid end_state = state_of(t, prev_state);
    if (c && c->slice_row != NO_ROW) {
        if (c->pid == prev_pid)
            close_slice(t, c, ts, end_state);
        else if (!t->of_some_threads)
            stats_add(&t->m->st->stats, t->m->id, STAT_mismatched_sched_switch_tids, 1);
    }
    uint32_t prev =
        process_tracker_named_thread(t->m->processes, prev_pid, prev_comm); /* it may have been renamed while it ran */
    if (!c)
        return prev;
    open_slice(t, c, ts, next, next_prio);
    c->pid = next_pid;
    thread_states_switch(&t->states, ts, c->ucpu, prev, end_state, next);
    return prev;
}

uint32_t sched_tracker_switch(struct sched_tracker *t, uint32_t cpu, int64_t ts, int32_t prev_pid, strid prev_comm,
                              int64_t prev_state, int32_t next_pid, strid next_comm, int32_t next_prio)
{
    return sched_tracker_switch_on(t, cpu_run(t, cpu), ts, prev_pid, prev_comm, prev_state, next_pid, next_comm,
                                   next_prio);
}

bool sched_tracker_switch_compact(struct sched_tracker *t, struct sched_cpu *c, int64_t ts, int64_t prev_state,
                                  int32_t next_pid, int32_t next_prio, strid next_comm, bool only_note,
                                  struct sched_prev *prev)
{
    uint32_t next = process_tracker_named_thread(t->m->processes, next_pid, next_comm);
    if (!c)
        return false;
    bool primed = c->utid != UTID_NONE;
    if (!primed) {
        stats_add(&t->m->st->stats, t->m->id, STAT_compact_sched_switch_skipped, 1);
    } else {
        *prev = (struct sched_prev){.utid = c->utid, .pid = c->pid, .prio = c->prio};
        prev->comm = (strid)ROW_GET(t->m->st, thread, name, c->utid);
    }
    if (primed && !only_note) {
        strid end_state = state_of(t, prev_state);
        uint32_t prev_utid = c->utid;
        close_slice(t, c, ts, end_state);
        open_slice(t, c, ts, next, next_prio);
        thread_states_switch(&t->states, ts, c->ucpu, prev_utid, end_state, next);
    } else {
        c->utid = next;
        c->prio = next_prio;
    }
    c->pid = next_pid;
    return primed;
}

void sched_tracker_switch_threads(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t prev_utid,
                                  strid end_state, uint32_t next_utid, int32_t next_prio)
{
    struct sched_cpu *c = cpu_run(t, cpu);
    if (!c)
        return;
    if (c->slice_row != NO_ROW) {
        if (c->utid == prev_utid)
            close_slice(t, c, ts, end_state);
        else
            stats_add(&t->m->st->stats, t->m->id, STAT_mismatched_sched_switch_tids, 1);
    }
    open_slice(t, c, ts, next_utid, next_prio);
    thread_states_switch(&t->states, ts, c->ucpu, prev_utid, end_state, next_utid);
}

void sched_tracker_run(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t utid)
{
    struct sched_cpu *c = cpu_run(t, cpu);
    if (!c)
        return;
    if (c->slice_row != NO_ROW)
        stats_add(&t->m->st->stats, t->m->id, STAT_mismatched_sched_switch_tids, 1);
    open_slice(t, c, ts, utid, 0);
    thread_states_set(&t->states, ts, utid, t->states.running, c->ucpu);
}

void sched_tracker_leave(struct sched_tracker *t, uint32_t cpu, int64_t ts, uint32_t utid, strid end_state)
{
    struct sched_cpu *c = cpu_run(t, cpu);
    if (!c)
        return;
    if (c->utid == utid)
        close_slice(t, c, ts, end_state);
    else if (c->slice_row != NO_ROW)
        stats_add(&t->m->st->stats, t->m->id, STAT_mismatched_sched_switch_tids, 1);
    c->slice_row = NO_ROW;
    c->utid = UTID_NONE;
    thread_states_set(&t->states, ts, utid, end_state, COL_NULL);
}

/* --- states ------------------------------------------------------------------------------------------------------ */

void sched_tracker_waking(struct sched_tracker *t, int64_t ts, uint32_t wakee_utid, uint32_t waker_utid,
                          uint32_t common_flags)
{
    thread_states_waking(&t->states, ts, wakee_utid, waker_utid, common_flags);
}

void sched_tracker_new_task(struct sched_tracker *t, int64_t ts, uint32_t utid, uint32_t parent_utid)
{
    thread_states_new_task(&t->states, ts, utid, parent_utid);
}

void sched_tracker_blocked_reason(struct sched_tracker *t, uint32_t utid, bool io_wait, strid blocked_function)
{
    thread_states_blocked_reason(&t->states, utid, io_wait, blocked_function);
}

void sched_tracker_set_state(struct sched_tracker *t, int64_t ts, uint32_t utid, strid state, int64_t ucpu)
{
    thread_states_set(&t->states, ts, utid, state, ucpu);
}

uint32_t sched_tracker_running(const struct sched_tracker *t, uint32_t cpu)
{
    const struct sched_cpu *c = by_id_find(&t->cpus, cpu);
    return c && c->met ? c->utid : UTID_NONE;
}
