/* Decides about each sample: in scope or not, with a stack or without, now, later or never. */
#include "capture/perf/perf_sample.h"

#include "base/clock.h"
#include "wire/fields.h"

enum { LAST_WAIT_MS = 20 };

enum {
    SKIP_READ = PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_READ_STAGE,
    SKIP_UNWIND = PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_STAGE,
    SKIP_ENQUEUE = PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_UNWIND_ENQUEUE,
    SKIP_SCOPE = PERF_SAMPLE_SAMPLE_SKIP_REASON_PROFILER_SKIP_NOT_IN_SCOPE,
};

static bool has_user_frames(const struct perf_sampler *s)
{
    return s->config->user_frames != PERF_USER_SKIP;
}

/* The sample has a state of user space: registers, or a part of the chain. */
static bool has_user_state(const struct perf_sampler *s, const struct perf_record *r)
{
    if (s->layout.stack)
        return r->abi != 0;
    if (s->config->user_frames != PERF_USER_KERNEL_FRAME_POINTER)
        return true;
    for (uint64_t i = 0; i < r->n_chain; i++)
        if (perf_chain_kind(perf_record_u64(r->chain, i)) == PERF_CHAIN_USER)
            return true;
    return false;
}

/* Reads the process's maps, unless they are known; PERF_IN once they are. */
static void find_maps(struct perf_sampler *s, struct perf_process *p, uint64_t now_ms)
{
    if (p->read || perf_process_read(&s->processes, p, now_ms) || perf_process_inherit(&s->processes, p, now_ms))
        p->verdict = PERF_IN;
    else if (p->verdict == PERF_WAITING && now_ms - p->asked_ms >= s->config->timeout_ms)
        p->verdict = PERF_TIMED_OUT;
}

/* At a process's first sample. */
static void judge(struct perf_sampler *s, struct perf_process *p, const struct perf_record *r, uint64_t now_ms)
{
    struct perf_who who;
    p->kernel_thread = !has_user_state(s, r);
    perf_scope_look(&s->scope, &who, p->pid, p->parent, p->kernel_thread);
    if ((p->kernel_thread && !s->config->kernel_frames) || !perf_scope_accepts(&s->scope, &who)) {
        p->verdict = PERF_OUT;
    } else if (!has_user_frames(s) || p->kernel_thread) {
        p->verdict = PERF_IN;
    } else {
        p->verdict = PERF_WAITING;
        p->asked_ms = now_ms;
        find_maps(s, p, now_ms);
    }
}

/* Writes a sample of a process that is in scope and known. False: it has to wait for a file; with `last` it does not.
 */
static bool write_sample(struct perf_sampler *s, uint32_t cpu, struct perf_process *p, const struct perf_record *r,
                         uint64_t now_ms, bool last)
{
    bool user = has_user_frames(s) && !p->kernel_thread;
    const char *name = perf_names_tell(&s->names, r->pid, r->tid);
    if (name)
        perf_packets_name(&s->packets, r, name);
    if (!user && r->mode == PERF_MODE_USER) {
        perf_packets_counts(&s->packets, cpu, r, 0); /* user space, whose stacks nobody asked for */
        return true;
    }
    if (user && !has_user_state(s, r)) {
        /* a thread that ends has a stack of the kernel alone; so has a thread of the kernel that has got the number */
        if (s->layout.stack || !s->config->kernel_frames) {
            perf_packets_counts(&s->packets, cpu, r, SKIP_UNWIND);
            return true;
        }
        user = false;
    }
    if (user && !perf_stack_collect(s, p, r, now_ms) && !last)
        return false;
    perf_packets_open(&s->packets, r);
    size_t n = perf_stack_frames(s, p, r, user, now_ms);
    perf_packets_stack(&s->packets, cpu, r, s->frames, n, user ? s->user.error_code : 0);
    return true;
}

/* The stacks in queues are bounded, and a stack that is larger than the bound alone is dropped as well. */
static bool fits(const struct perf_sampler *s, const struct perf_record *r)
{
    return !s->config->max_queued_kb || !s->layout.stack || s->config->max_queued_kb > UINT64_MAX / 1024 ||
           s->shared->queued_bytes + r->stack.len < s->config->max_queued_kb * 1024;
}

static void wait_for(struct perf_sampler *s, uint32_t cpu, const struct perf_record *r, struct slice record)
{
    if (perf_queue_push(&s->queue, cpu, r->pid, r->stack.len, record, s->read_until))
        s->shared->queued_bytes += r->stack.len;
    else
        perf_packets_counts(&s->packets, cpu, r, SKIP_ENQUEUE);
}

static void take_sample(struct perf_sampler *s, uint32_t cpu, const struct perf_record *r, struct slice record,
                        uint64_t now_ms)
{
    struct perf_process *p = NULL;
    if (!s->config->stacks) {
        perf_packets_counts(&s->packets, cpu, r, 0);
        return;
    }
    p = perf_process_get(&s->processes, r->pid);
    if (p && p->verdict == PERF_NEW)
        judge(s, p, r, now_ms);
    if (!p)
        perf_packets_counts(&s->packets, cpu, r, SKIP_ENQUEUE);
    else if (p->verdict == PERF_OUT)
        perf_packets_counts(&s->packets, cpu, r, SKIP_SCOPE);
    else if (p->verdict == PERF_TIMED_OUT)
        perf_packets_counts(&s->packets, cpu, r, SKIP_READ);
    else if (!fits(s, r))
        perf_packets_counts(&s->packets, cpu, r, SKIP_ENQUEUE);
    else if (p->verdict == PERF_WAITING || !write_sample(s, cpu, p, r, now_ms, false))
        wait_for(s, cpu, r, record);
}

static struct perf_losses *losses_of(struct perf_sampler *s, uint32_t cpu)
{
    size_t n = s->losses.n;
    if (cpu >= n) {
        if (!vec_reserve(&s->losses, (size_t)cpu + 1))
            return NULL;
        s->losses.n = (size_t)cpu + 1;
        memset(s->losses.p + n, 0, (s->losses.n - n) * sizeof *s->losses.p);
    }
    return &s->losses.p[cpu];
}

void perf_sampler_lost(struct perf_sampler *s, uint32_t cpu, uint64_t total)
{
    struct perf_losses *l = losses_of(s, cpu);
    if (!l || total <= l->told)
        return;
    perf_packets_lost(&s->packets, cpu, probes_boot_ns(), total - l->told);
    l->told = total;
}

static void take_loss(struct perf_sampler *s, uint32_t cpu, uint64_t lost)
{
    struct perf_losses *l = losses_of(s, cpu);
    if (!l) {
        perf_packets_lost(&s->packets, cpu, probes_boot_ns(), lost);
        return;
    }
    l->by_records += lost;
    perf_sampler_lost(s, cpu, l->by_records);
}

bool perf_sampler_take(struct perf_sampler *s, uint32_t cpu, struct slice record, uint64_t now_ms)
{
    struct perf_record r;
    perf_record_read(&r, record, &s->layout);
    if (r.kind == PERF_KIND_SAMPLE)
        take_sample(s, cpu, &r, record, now_ms);
    else if (r.kind == PERF_KIND_LOST)
        take_loss(s, cpu, r.lost);
    else if (r.kind == PERF_KIND_BROKEN)
        perf_packets_lost(&s->packets, cpu, probes_boot_ns(), 1); /* it may have been a sample */
    return r.kind == PERF_KIND_SAMPLE;
}

void perf_sampler_look_ahead(struct perf_sampler *s, struct slice record, bool forks)
{
    struct perf_record r;
    if (!perf_record_is_of_process(record))
        return;
    perf_record_read(&r, record, &s->layout);
    if (r.kind == PERF_KIND_BROKEN || (r.kind == PERF_KIND_FORK) != forks)
        return;
    if (r.kind != PERF_KIND_COMM)
        perf_process_record(&s->processes, &r);
    if (r.kind != PERF_KIND_MAP)
        perf_names_record(&s->names, &r);
}

/* ---- samples that wait ---- */

struct retry {
    struct perf_sampler *s;
    uint64_t now_ms;
    bool last;
};

static bool try_again(void *ctx, const struct perf_queued *e)
{
    const struct retry *t = ctx;
    struct perf_process *p = perf_process_get(&t->s->processes, e->pid);
    struct perf_record r;
    if (p && p->verdict == PERF_WAITING && (p->read_ms != t->now_ms || t->last))
        find_maps(t->s, p, t->now_ms);
    if (p && p->verdict == PERF_WAITING && !t->last)
        return false;
    perf_record_read(&r, slice_of(e->bytes, e->len), &t->s->layout);
    if (p && p->verdict == PERF_IN)
        return write_sample(t->s, e->cpu, p, &r, t->now_ms, t->last);
    perf_packets_counts(&t->s->packets, e->cpu, &r, SKIP_UNWIND);
    return true;
}

void perf_sampler_retry(struct perf_sampler *s, uint64_t now_ms, bool last)
{
    struct retry t = {s, now_ms, false};
    int64_t until = clock_now_ns(CLOCK_MONOTONIC) + PERF_LOAD_WAIT_MS * INT64_C(1000000);
    perf_files_collect(&s->shared->files, now_ms, 0);
    s->shared->queued_bytes -= perf_queue_walk(&s->queue, try_again, &t);
    /* a file that has come leads to the next frame, whose file may be another */
    while (last && s->queue.list.n && perf_files_are_loading(&s->shared->files) &&
           clock_now_ns(CLOCK_MONOTONIC) < until) {
        perf_files_collect(&s->shared->files, now_ms, LAST_WAIT_MS);
        s->shared->queued_bytes -= perf_queue_walk(&s->queue, try_again, &t);
    }
    t.last = last;
    if (last)
        s->shared->queued_bytes -= perf_queue_walk(&s->queue, try_again, &t);
}

uint64_t perf_sampler_whole_until(const struct perf_sampler *s)
{
    return s->queue.list.n ? s->queue.list.p[0].whole_until : s->read_until;
}

/* ---- life ---- */

void perf_sampler_begin(struct perf_sampler *s)
{
    perf_packets_forget(&s->packets);
    s->generation++;
    perf_packets_begin(&s->packets);
}

void perf_sampler_bound(struct perf_sampler *s)
{
    perf_processes_bound(&s->processes);
    if (perf_packets_have_gap(&s->packets) || perf_intern_is_large(&s->packets.in))
        perf_sampler_begin(s);
}

static bool drop(void *ctx, const struct perf_queued *e)
{
    (void)ctx;
    (void)e;
    return true;
}

void perf_sampler_free(struct perf_sampler *s)
{
    s->shared->queued_bytes -= perf_queue_walk(&s->queue, drop, NULL);
    perf_queue_free(&s->queue);
    perf_packets_free(&s->packets);
    perf_processes_free(&s->processes);
    perf_names_free(&s->names);
    perf_scope_free(&s->scope);
    vec_free(&s->losses);
}
