/* Unwinds samples, and books them with what is freed. */
#include "capture/heap/heap_session.h"

#include "base/clock.h"

void heap_session_init(struct heap_session *s, struct perf_shared *shared, const struct packet_sink *sink)
{
    s->perf_config = (struct perf_config){.stacks = true, .user_frames = PERF_USER_DWARF};
    s->sampler.config = &s->perf_config;
    s->sampler.shared = shared;
    s->sampler.generation = 1;
    s->sampler.packets.sink = *sink;
    s->sampler.packets.config = &s->perf_config;
    s->sampler.scope.config = &s->config.scope;
    s->packets.perf = &s->sampler.packets;
    s->packets.config = &s->config;
}

void heap_session_free(struct heap_session *s)
{
    perf_sampler_free(&s->sampler);
    heap_config_free(&s->config);
}

void heap_session_meet(struct heap_session *s, struct heap_peer *p, uint64_t now_ms)
{
    struct perf_process *process = perf_process_get(&s->sampler.processes, p->pid);
    if (!process)
        return;
    vec_clear(&process->maps); /* of a process of that number before, or of another program */
    process->read = false;
    process->began = 0;
    perf_process_read(&s->sampler.processes, process, now_ms);
}

/* Frames of the library that the process has loaded are none of the program. */
static void drop_own_frames(struct heap_session *s, struct perf_process *process)
{
    struct perf_user_stack *u = &s->sampler.user;
    size_t n = 0;
    while (n + 1 < u->n) {
        const struct perf_map *m = perf_process_find(process, u->frames[n].pc);
        const char *slash = m ? strrchr(strpool_cstr(&s->sampler.processes.paths, m->path), '/') : NULL;
        if (!slash || strcmp(slash + 1, HEAP_LIBRARY) != 0)
            break;
        n++;
    }
    memmove(u->frames, u->frames + n, (u->n - n) * sizeof *u->frames);
    u->n -= n;
}

enum taken { TAKEN, LATE, LOST };

static enum taken take_sample(struct heap_session *s, struct heap_peer *p, const struct heap_entry *e, bool last,
                              uint64_t now_ms)
{
    struct perf_process *process = perf_process_get(&s->sampler.processes, p->pid);
    struct perf_record r = {.kind = PERF_KIND_SAMPLE,
                            .pid = p->pid,
                            .abi = HEAP_REGS ? PERF_ABI_64 : 0,
                            .regs = e->regs,
                            .stack = e->stack};
    int64_t begin = clock_now_ns(CLOCK_MONOTONIC);
    s->full |= perf_intern_is_large(&s->sampler.packets.in) || perf_intern_failed(&s->sampler.packets.in);
    if (!process || s->full)
        return LOST;
    if (!perf_stack_collect(&s->sampler, process, &r, now_ms) && !last)
        return LATE;
    drop_own_frames(s, process);
    size_t n = perf_stack_frames(&s->sampler, process, &r, true, now_ms);
    uint64_t callstack = perf_intern_callstack(&s->sampler.packets.in, s->sampler.frames, n);
    p->profile.samples++;
    p->profile.errors += s->sampler.user.error != NULL;
    p->profile.unwind_ns += (uint64_t)(clock_now_ns(CLOCK_MONOTONIC) - begin);
    return heap_book_allocated(&p->profile.book, callstack, e->address, e->weight) ? TAKEN : LOST;
}

/* False: it has to wait. */
static bool take(struct heap_session *s, struct heap_peer *p, const struct heap_entry *e, bool last, uint64_t now_ms)
{
    enum taken taken = TAKEN;
    if ((int32_t)(e->generation - p->profile.first_generation) < 0) /* of a session before */
        return true;
    if (e->kind == HEAP_FREED)
        heap_book_freed(&p->profile.book, e->address);
    else
        taken = take_sample(s, p, e, last, now_ms);
    p->profile.lost += taken == LOST;
    return taken != LATE;
}

/* A number of the ring that only grows. One that a process has set back counts from there. */
static uint64_t growth(uint64_t is, uint64_t *seen)
{
    uint64_t more = is >= *seen ? is - *seen : 0;
    *seen = is;
    return more > UINT32_MAX ? UINT32_MAX : more;
}

static void read_losses(struct heap_peer *p)
{
    struct heap_ring_header *h = p->ring.header;
    struct heap_profile *x = &p->profile;
    x->lost += growth(atomic_load(&h->lost_samples) + atomic_load(&h->lost_frees), &x->seen_lost);
    x->blocked_us += growth(atomic_load(&h->blocked_us), &x->seen_blocked_us);
}

bool heap_session_read(struct heap_session *s, struct heap_peer *p, bool ended, bool last, uint64_t now_ms,
                       int64_t until_ns)
{
    struct heap_entry e;
    enum heap_peek got = HEAP_PEEK_NONE;
    if (!p->ring.header || p->profile.broken)
        return true;
    perf_processes_bound(&s->sampler.processes);
    while ((got = heap_reader_peek(&p->ring, ended, s->scratch, &e)) == HEAP_PEEK_ENTRY || got == HEAP_PEEK_GAP) {
        if (got == HEAP_PEEK_GAP)
            p->profile.lost++;
        else if (!take(s, p, &e, last, now_ms))
            break;
        heap_reader_pass(&p->ring);
        if (clock_now_ns(CLOCK_MONOTONIC) >= until_ns)
            break;
    }
    read_losses(p);
    p->profile.broken = got == HEAP_PEEK_BROKEN;
    if (p->profile.broken)
        heap_peer_stop(p);
    return got == HEAP_PEEK_NONE || got == HEAP_PEEK_BROKEN;
}
