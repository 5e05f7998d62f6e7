/* A made-up machine with two processors, as a recording. */
#include "sched_simulator.h"

#include "wire/fields.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CPUS = 2, MAX_THREADS = 24, FSYNC = 74, FUTEX = 202, STATE_R = 0, STATE_S = 1, STATE_D = 2 };
#define US 1000
#define MS 1000000

enum step_kind { END, SLEEP, RUN, DISK, LOCK, NAP, UNLOCK };
struct step {
    enum step_kind kind;
    int64_t mean_ns;
};
static const struct step web[] = {{SLEEP, 3 * MS}, {RUN, 400 * US}, {LOCK, 0},       {RUN, 50 * US},
                                  {NAP, 2 * MS},   {UNLOCK, 0},     {RUN, 200 * US}, {END, 0}};
static const struct step db[] = {{SLEEP, 4 * MS}, {RUN, 300 * US}, {DISK, 900 * US}, {RUN, 100 * US}, {END, 0}};
static const struct step batch[] = {{SLEEP, 10 * MS}, {RUN, 2 * MS}, {END, 0}};
static const struct step kernel[] = {{SLEEP, 8 * MS}, {RUN, 40 * US}, {END, 0}};
static const struct step hog[] = {{RUN, 1000 * MS}, {END, 0}};
static const struct step syncer[] = {{DISK, 2 * MS}, {RUN, 30 * US}, {END, 0}};

static const struct cast {
    int pid, tid;
    const char *process, *thread; /* process NULL: a kernel thread */
    const struct step *program;
    enum disturbance only; /* UNDISTURBED: always there */
} cast[] = {
    {100, 100, "webd", "webd", web, UNDISTURBED},        {100, 101, "webd", "worker-1", web, UNDISTURBED},
    {100, 102, "webd", "worker-2", web, UNDISTURBED},    {100, 103, "webd", "worker-3", web, UNDISTURBED},
    {200, 200, "dbd", "dbd", db, UNDISTURBED},           {200, 201, "dbd", "writer", db, UNDISTURBED},
    {300, 300, "batch", "batch", batch, UNDISTURBED},    {20, 20, NULL, "kworker/0:1", kernel, UNDISTURBED},
    {21, 21, NULL, "kworker/1:2", kernel, UNDISTURBED},  {900, 900, "hog", "hog", hog, CPU_HOG},
    {901, 901, "syncer", "syncer", syncer, FSYNC_STORM},
};

struct thread {
    const struct cast *who;
    int pid_shift;
    size_t step;
    int64_t left_ns, wake_ns; /* of the step that runs; when it sleeps */
    bool asleep, queued, in_call;
    int call;
};

struct machine {
    const struct simulation *s;
    uint64_t random;
    int64_t now, stamped; /* the last event's time: no two have the same */
    struct thread threads[MAX_THREADS];
    size_t n, queue[MAX_THREADS], n_queue, waiters[MAX_THREADS], n_waiters;
    int running[CPUS]; /* thread, -1: idle */
    int64_t quantum_end[CPUS], next_frequency[CPUS], next_drift;
    double speed[CPUS], drift, scale;
    int holder; /* of the lock, -1 */
    struct pb_writer bundle[CPUS], payload;
};

static double draw(struct machine *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return ((double)(m->random >> 11) + 0.5) / 9007199254740992.0;
}

static int64_t drawn(struct machine *m, int64_t mean_ns)
{
    return 1 + (int64_t)(-log(draw(m)) * (double)mean_ns);
}

/* ---- events ---- */

static int tid_of(const struct machine *m, int thread)
{
    return thread < 0 ? 0 : m->threads[thread].who->tid + m->threads[thread].pid_shift;
}

static const char *comm_of(const struct machine *m, int thread)
{
    return thread < 0 ? "swapper" : m->threads[thread].who->thread;
}

static void put_event(struct machine *m, int cpu, int pid, uint32_t id)
{
    struct pb_writer *w = &m->bundle[cpu];
    size_t e = pb_begin(w, FTRACE_EVENT_BUNDLE_EVENT);
    m->stamped = m->now > m->stamped ? m->now : m->stamped + 1;
    pb_put_i64(w, FTRACE_EVENT_TIMESTAMP, m->stamped + 1000000000);
    pb_put_varint(w, FTRACE_EVENT_PID, (uint64_t)pid);
    pb_put_bytes(w, id, m->payload.p, m->payload.n);
    pb_end(w, e);
    pb_writer_clear(&m->payload);
}

static void put_switch(struct machine *m, int cpu, int from, int64_t state, int to)
{
    struct pb_writer *p = &m->payload;
    pb_put_str(p, FTRACE_SCHED_SWITCH_PREV_COMM, comm_of(m, from));
    pb_put_i64(p, FTRACE_SCHED_SWITCH_PREV_PID, tid_of(m, from));
    pb_put_varint(p, FTRACE_SCHED_SWITCH_PREV_PRIO, 120);
    pb_put_i64(p, FTRACE_SCHED_SWITCH_PREV_STATE, state);
    pb_put_str(p, FTRACE_SCHED_SWITCH_NEXT_COMM, comm_of(m, to));
    pb_put_i64(p, FTRACE_SCHED_SWITCH_NEXT_PID, tid_of(m, to));
    pb_put_varint(p, FTRACE_SCHED_SWITCH_NEXT_PRIO, 120);
    put_event(m, cpu, tid_of(m, from), FTRACE_EVENT_SCHED_SWITCH);
}

static void put_waking(struct machine *m, int cpu, size_t thread)
{
    struct pb_writer *p = &m->payload;
    pb_put_str(p, FTRACE_SCHED_WAKING_COMM, comm_of(m, (int)thread));
    pb_put_i64(p, FTRACE_SCHED_WAKING_PID, tid_of(m, (int)thread));
    pb_put_varint(p, FTRACE_SCHED_WAKING_PRIO, 120);
    pb_put_varint(p, FTRACE_SCHED_WAKING_SUCCESS, 1);
    pb_put_varint(p, FTRACE_SCHED_WAKING_TARGET_CPU, (uint64_t)cpu);
    put_event(m, cpu, tid_of(m, m->running[cpu]), FTRACE_EVENT_SCHED_WAKING);
}

static void put_call(struct machine *m, int cpu, int thread, int call, bool enter)
{
    if (enter) {
        pb_put_varint(&m->payload, FTRACE_SYS_ENTER_ID, (uint64_t)call);
    } else {
        pb_put_varint(&m->payload, FTRACE_SYS_EXIT_ID, (uint64_t)call);
        pb_put_varint(&m->payload, FTRACE_SYS_EXIT_RET, 0);
    }
    put_event(m, cpu, tid_of(m, thread), enter ? FTRACE_EVENT_SYS_ENTER : FTRACE_EVENT_SYS_EXIT);
}

static void put_frequency(struct machine *m, int cpu, unsigned khz)
{
    pb_put_varint(&m->payload, FTRACE_CPU_FREQUENCY_STATE, khz);
    pb_put_varint(&m->payload, FTRACE_CPU_FREQUENCY_CPU_ID, (uint64_t)cpu);
    put_event(m, cpu, 0, FTRACE_EVENT_CPU_FREQUENCY);
}

/* ---- what threads do ---- */

static void enqueue(struct machine *m, size_t thread)
{
    m->threads[thread].queued = true;
    m->threads[thread].asleep = false;
    m->queue[m->n_queue++] = thread;
}

static void wake(struct machine *m, int cpu, size_t thread)
{
    put_waking(m, cpu, thread);
    enqueue(m, thread);
}

static void release_lock(struct machine *m, int cpu)
{
    m->holder = -1;
    if (!m->n_waiters)
        return;
    size_t next = m->waiters[0];
    for (size_t i = 1; i < m->n_waiters; i++)
        m->waiters[i - 1] = m->waiters[i];
    m->n_waiters--;
    m->holder = (int)next;
    wake(m, cpu, next);
}

static int64_t length_of(struct machine *m, const struct step *s)
{
    double factor = m->scale;
    if (s->kind == SLEEP)
        factor *= exp(0.3 * m->drift);
    if (s->kind == DISK && m->s->disturbance == FSYNC_STORM)
        factor *= 5;
    return drawn(m, (int64_t)((double)s->mean_ns * factor));
}

/* The running thread of `cpu` goes to its next step; the state that it leaves the processor in, or -1: it stays. */
static int64_t next_step(struct machine *m, int cpu)
{
    int thread = m->running[cpu];
    struct thread *t = &m->threads[thread];
    for (;;) {
        t->step++;
        const struct step *s = &t->who->program[t->step];
        if (s->kind == END) {
            t->step = (size_t)-1;
            continue;
        }
        if (s->kind == RUN) {
            t->left_ns = length_of(m, s);
            return -1;
        }
        if (s->kind == NAP && m->s->disturbance != LOCK_CONVOY)
            continue;
        if (s->kind == UNLOCK) {
            release_lock(m, cpu);
            continue;
        }
        if (s->kind == LOCK && m->holder < 0) {
            m->holder = thread;
            continue;
        }
        t->asleep = true;
        t->wake_ns = s->kind == LOCK ? INT64_MAX : m->now + length_of(m, s);
        if (s->kind == LOCK)
            m->waiters[m->n_waiters++] = (size_t)thread;
        t->in_call = s->kind == LOCK || s->kind == DISK;
        t->call = s->kind == LOCK ? FUTEX : FSYNC;
        if (t->in_call)
            put_call(m, cpu, thread, t->call, true);
        return s->kind == DISK ? STATE_D : STATE_S;
    }
}

static void pick(struct machine *m, int cpu, int64_t state)
{
    int from = m->running[cpu], to = -1;
    if (m->n_queue) {
        to = (int)m->queue[0];
        for (size_t i = 1; i < m->n_queue; i++)
            m->queue[i - 1] = m->queue[i];
        m->n_queue--;
    }
    if (from == to)
        return;
    put_switch(m, cpu, from, state, to);
    m->running[cpu] = to;
    m->quantum_end[cpu] = m->now + 3 * MS;
    if (to < 0)
        return;
    struct thread *t = &m->threads[to];
    t->queued = false;
    if (t->in_call)
        put_call(m, cpu, to, t->call, false);
    t->in_call = false;
}

static void set_frequency(struct machine *m, int cpu)
{
    static const unsigned usual[] = {1600000, 2000000, 2400000}, limited[] = {800000, 1000000, 1000000};
    unsigned khz = (m->s->disturbance == FREQUENCY_LIMIT ? limited : usual)[(size_t)(draw(m) * 3)];
    put_frequency(m, cpu, khz);
    m->speed[cpu] = khz / 2000000.0;
    m->next_frequency[cpu] = m->now + drawn(m, 15 * MS);
}

/* When something happens next. */
static int64_t next_time(const struct machine *m)
{
    int64_t next = m->next_drift;
    for (int c = 0; c < CPUS; c++) {
        int64_t at = m->next_frequency[c];
        if (m->running[c] >= 0) {
            int64_t done = m->now + 1 + (int64_t)((double)m->threads[m->running[c]].left_ns / m->speed[c]);
            at = done < at ? done : at;
            at = m->quantum_end[c] > m->now && m->quantum_end[c] < at ? m->quantum_end[c] : at;
        }
        next = at < next ? at : next;
    }
    for (size_t i = 0; i < m->n; i++)
        if (m->threads[i].asleep && m->threads[i].wake_ns < next)
            next = m->threads[i].wake_ns;
    return next > m->now ? next : m->now + 1;
}

static void advance(struct machine *m, int64_t to)
{
    for (int c = 0; c < CPUS; c++)
        if (m->running[c] >= 0)
            m->threads[m->running[c]].left_ns -= (int64_t)((double)(to - m->now) * m->speed[c]);
    m->now = to;
    if (m->now >= m->next_drift) {
        m->drift = 0.8 * m->drift + 0.6 * (draw(m) + draw(m) + draw(m) - 1.5);
        m->next_drift = m->now + 10 * MS;
    }
    for (size_t i = 0; i < m->n; i++)
        if (m->threads[i].asleep && m->threads[i].wake_ns <= m->now)
            wake(m, (int)(draw(m) * CPUS), i);
    for (int c = 0; c < CPUS; c++) {
        int64_t state = STATE_R;
        if (m->now >= m->next_frequency[c])
            set_frequency(m, c);
        if (m->running[c] >= 0 && m->threads[m->running[c]].left_ns <= 0) {
            state = next_step(m, c);
            if (state >= 0)
                pick(m, c, state);
        } else if (m->running[c] >= 0 && m->now >= m->quantum_end[c] && m->n_queue) {
            enqueue(m, (size_t)m->running[c]);
            pick(m, c, STATE_R);
        }
        if (m->running[c] < 0)
            pick(m, c, STATE_R);
    }
}

/* ---- the recording ---- */

static void put_processes(const struct machine *m, struct pb_writer *w)
{
    size_t packet = pb_begin(w, 1), tree = pb_begin(w, TRACE_PACKET_PROCESS_TREE);
    for (size_t i = 0; i < m->n; i++) {
        const struct thread *t = &m->threads[i];
        if (!t->who->process)
            continue;
        if (t->who->pid == t->who->tid) {
            size_t p = pb_begin(w, PROCESS_TREE_PROCESSES);
            pb_put_i64(w, PROCESS_TREE_PROCESS_PID, t->who->pid + t->pid_shift);
            pb_put_varint(w, PROCESS_TREE_PROCESS_PPID, 1);
            pb_put_str(w, PROCESS_TREE_PROCESS_CMDLINE, t->who->process);
            pb_end(w, p);
        }
        size_t p = pb_begin(w, PROCESS_TREE_THREADS);
        pb_put_i64(w, PROCESS_TREE_THREAD_TID, t->who->tid + t->pid_shift);
        pb_put_str(w, PROCESS_TREE_THREAD_NAME, t->who->thread);
        pb_put_i64(w, PROCESS_TREE_THREAD_TGID, t->who->pid + t->pid_shift);
        pb_end(w, p);
    }
    pb_end(w, tree);
    pb_put_varint(w, TRACE_PACKET_TIMESTAMP, 1000000000);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_end(w, packet);
    packet = pb_begin(w, 1);
    size_t info = pb_begin(w, TRACE_PACKET_SYSTEM_INFO), name = pb_begin(w, SYSTEM_INFO_UTSNAME);
    pb_put_str(w, UTSNAME_MACHINE, "x86_64");
    pb_end(w, name);
    pb_end(w, info);
    pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    pb_end(w, packet);
}

void sched_simulate(const struct simulation *s, struct pb_writer *w)
{
    struct machine m = {.s = s, .random = s->seed * 0x9e3779b97f4a7c15u + 1, .holder = -1, .running = {-1, -1}};
    for (int i = 0; i < 20; i++)
        draw(&m);
    m.scale = 1 + 0.02 * (draw(&m) - 0.5);
    for (size_t i = 0; i < sizeof cast / sizeof *cast; i++) {
        if (cast[i].only != UNDISTURBED && cast[i].only != s->disturbance)
            continue;
        m.threads[m.n++] = (struct thread){.who = &cast[i],
                                           .pid_shift = (int)(s->seed % 50) * 1000,
                                           .step = (size_t)-1,
                                           .asleep = true,
                                           .wake_ns = drawn(&m, 2 * MS)};
    }
    for (int c = 0; c < CPUS; c++)
        m.speed[c] = 1;
    put_processes(&m, w);
    while (m.now < s->dur_ns)
        advance(&m, next_time(&m));
    for (int c = 0; c < CPUS; c++) {
        size_t packet = pb_begin(w, 1), bundle = pb_begin(w, TRACE_PACKET_FTRACE_EVENTS);
        pb_put_varint(w, FTRACE_EVENT_BUNDLE_CPU, (uint64_t)c);
        pb_put_raw(w, m.bundle[c].p, m.bundle[c].n);
        pb_end(w, bundle);
        pb_put_varint(w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 2 + (uint64_t)c);
        pb_end(w, packet);
        pb_writer_free(&m.bundle[c]);
    }
    pb_writer_free(&m.payload);
}
