/* The data source android.heapprofd: which processes it samples, when it reads their rings, and when it writes. */
#include "capture/heap/heap_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "capture/heap/heap_session.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define TICK_NS UINT64_C(10000000) /* how exactly the kernel says when a process began */

enum { READ_MS = 10, BUSY_MS = 1, GUARD_MS = 1000, AT_ONCE_NS = 20000000, FILES_MS = 20 };

/* What ends is read to its end, but for so long at most: another program waits, or the service. */
#define LAST_OF_ONE_NS INT64_C(1000000000)
#define LAST_OF_ALL_NS INT64_C(3000000000)

struct heap_source {
    struct heap_user user; /* first: the hub calls with it */
    const struct probes_host *host;
    struct heap_hub *hub;
    struct heap_session session;
    uv_timer_t *tick, *dumps, *guard;
    size_t turn; /* whose ring is read first */
    uint64_t cpu_s_before;
    uint64_t began_ns; /* BOOTTIME */
    bool ended, left_out;
};

static uint64_t now_ms(void)
{
    return (uint64_t)clock_now_ns(CLOCK_BOOTTIME) / 1000000;
}

static int64_t now_ns(void)
{
    return clock_now_ns(CLOCK_MONOTONIC);
}

static void say(struct heap_source *s, const char *text)
{
    char line[600];
    snprintf(line, sizeof line, "android.heapprofd: %s", text);
    s->host->log(s->host->ctx, line);
}

/* ---- processes ---- */

/* The process has begun during the recording; one that has not may come late all the same, when we came late. */
static bool is_new(const struct heap_source *s, const struct heap_peer *p)
{
    return p->began + TICK_NS > s->began_ns;
}

static bool in_scope(struct heap_source *s, const struct heap_peer *p)
{
    const struct heap_config *c = &s->session.config;
    struct perf_who who;
    if (is_new(s, p) ? c->no_startup : c->no_running)
        return false;
    if (c->all)
        return true;
    perf_scope_look(&s->session.sampler.scope, &who, p->pid, 0, false);
    return perf_scope_accepts(&s->session.sampler.scope, &who);
}

static bool attach(struct heap_source *s, struct heap_peer *p)
{
    const struct heap_config *c = &s->session.config;
    struct heap_start start = {
        .interval = c->interval, .ring_bytes = c->ring_bytes, .block = c->block, .block_us = c->block_us};
    struct error err = {0};
    p->profile.interval = c->interval;
    p->profile.seen_lost = p->profile.seen_blocked_us = 0;
    p->profile.broken = p->profile.tells_broken = false;
    heap_session_meet(&s->session, p, now_ms());
    heap_packets_name(&s->session.packets, p->pid);
    if (p->ring.header) { /* of a session before */
        p->profile.seen_lost = atomic_load(&p->ring.header->lost_samples) + atomic_load(&p->ring.header->lost_frees);
        p->profile.seen_blocked_us = atomic_load(&p->ring.header->blocked_us);
    }
    if (heap_peer_start(s->hub, p, &start, &err)) {
        if (!s->left_out)
            say(s, err.text);
        s->left_out = true;
        heap_packets_refused(&s->session.packets, p->pid, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_HIT_GUARDRAIL);
        return false;
    }
    p->user = &s->user;
    return true;
}

static void came(struct heap_user *u, struct heap_peer *p)
{
    struct heap_source *s = (struct heap_source *)u;
    if (p->user == u || s->ended || !in_scope(s, p))
        return;
    if (p->user) {
        heap_packets_refused(&s->session.packets, p->pid, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_REJECTED_CONCURRENT);
        return;
    }
    heap_book_close(&p->profile.book);
    p->profile = (struct heap_profile){.from_startup = is_new(s, p), .start_ns = clock_now_ns(CLOCK_MONOTONIC_COARSE)};
    attach(s, p);
}

static void missed(struct heap_user *u, const struct heap_peer *p)
{
    struct heap_source *s = (struct heap_source *)u;
    if (!s->ended && in_scope(s, p))
        heap_packets_refused(&s->session.packets, p->pid, PROFILE_PACKET_PROCESS_HEAP_SAMPLES_CLIENT_ERROR);
}

/* Everything that is there, as long as that takes no longer than it may. */
static void read_all(struct heap_source *s, struct heap_peer *p, bool ended, int64_t until)
{
    bool waits = true;
    while (!heap_session_read(&s->session, p, ended, !waits, now_ms(), until) && now_ns() < until) {
        perf_files_collect(&s->host->perf->files, now_ms(), FILES_MS);
        waits &= perf_files_are_loading(&s->host->perf->files);
    }
    if (heap_reader_waiting(&p->ring) && !p->profile.broken && (ended || now_ns() >= until))
        p->profile.lost++; /* how many records that is nobody has looked at */
}

static void left(struct heap_user *u, struct heap_peer *p, struct heap_peer *next)
{
    struct heap_source *s = (struct heap_source *)u;
    read_all(s, p, true, now_ns() + LAST_OF_ONE_NS);
    p->user = NULL;
    if (next && !s->ended && in_scope(s, next)) {
        heap_book_free_all(&p->profile.book);
        next->profile = p->profile;
        p->profile = (struct heap_profile){0};
        if (attach(s, next))
            return;
        p->profile = next->profile;
        next->profile = (struct heap_profile){0};
    }
    heap_packets_dump(&s->session.packets, p, HEAP_DUMP_DISCONNECTED);
}

static void detach_all(struct heap_source *s, enum heap_dump why)
{
    int64_t until = now_ns() + LAST_OF_ALL_NS;
    heap_hub_look(s->hub); /* who has ended says so */
    for (size_t i = 0; i < s->hub->peers.n; i++)
        if (s->hub->peers.p[i]->user == &s->user)
            heap_peer_stop(s->hub->peers.p[i]);
    for (size_t i = 0; i < s->hub->peers.n; i++) {
        struct heap_peer *p = s->hub->peers.p[i];
        if (p->user != &s->user)
            continue;
        read_all(s, p, false, until);
        heap_packets_dump(&s->session.packets, p, why);
        heap_book_close(&p->profile.book);
        p->user = NULL;
    }
}

/* ---- reading ---- */

/* A ring that fills up gets fewer samples, if the config says so. */
static void adapt(struct heap_source *s, struct heap_peer *p)
{
    const struct heap_config *c = &s->session.config;
    if (!c->raise_above || heap_reader_waiting(&p->ring) < c->raise_above || p->profile.interval > c->interval_max / 2)
        return;
    p->profile.interval *= 2;
    heap_peer_set_interval(p, p->profile.interval);
}

static bool read_rings(struct heap_source *s)
{
    int64_t until = now_ns() + AT_ONCE_NS;
    uint64_t now = now_ms();
    bool all = true;
    size_t n = s->hub->peers.n, from = n ? s->turn++ % n : 0;
    perf_files_collect(&s->host->perf->files, now, 0);
    for (size_t i = 0; i < n && now_ns() < until; i++) {
        struct heap_peer *p = s->hub->peers.p[(from + i) % n];
        if (p->user != &s->user)
            continue;
        adapt(s, p);
        all &= heap_session_read(&s->session, p, false, false, now, until);
    }
    return all;
}

static void on_tick(uv_timer_t *timer)
{
    struct heap_source *s = timer->data;
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    bool all = read_rings(s);
    metatrace_end(s->host->metatrace, span, "heap_read");
    uv_update_time(timer->loop);
    uv_timer_start(timer, on_tick, all ? READ_MS : BUSY_MS, 0);
}

static void on_dump(uv_timer_t *timer)
{
    struct heap_source *s = timer->data;
    for (size_t i = 0; i < s->hub->peers.n; i++)
        if (s->hub->peers.p[i]->user == &s->user)
            heap_packets_dump(&s->session.packets, s->hub->peers.p[i], HEAP_DUMP_NOW);
}

/* ---- what it may use ---- */

static uint64_t cpu_s(void)
{
    struct rusage r = {0};
    getrusage(RUSAGE_SELF, &r);
    return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec);
}

static uint64_t used_kb(void)
{
    char text[4096];
    if (text_read_once("/proc/self/status", text, sizeof text) <= 0)
        return 0;
    const char *at = strstr(text, "RssAnon:");
    return at ? strtoull(at + 8, NULL, 10) : 0;
}

static void on_guard(uv_timer_t *timer)
{
    struct heap_source *s = timer->data;
    const struct heap_config *c = &s->session.config;
    bool memory = c->max_memory_kb && used_kb() > c->max_memory_kb;
    bool cpu = c->max_cpu_s && cpu_s() - s->cpu_s_before > c->max_cpu_s;
    if (s->ended || (!memory && !cpu))
        return;
    say(s, memory ? "ended: more memory is in use than max_heapprofd_memory_kb"
                  : "ended: it has used more processor time than max_heapprofd_cpu_secs");
    s->ended = true;
    uv_timer_stop(s->tick);
    uv_timer_stop(s->dumps);
    detach_all(s, HEAP_DUMP_GUARDRAIL);
}

/* ---- life ---- */

static void free_state(void *state)
{
    struct heap_source *s = state;
    for (size_t i = 0; s->hub && i < s->hub->peers.n; i++)
        if (s->hub->peers.p[i]->user == &s->user)
            s->hub->peers.p[i]->user = NULL;
    if (s->hub)
        heap_hub_remove_user(s->hub, &s->user);
    probes_timer_free(s->tick);
    probes_timer_free(s->dumps);
    probes_timer_free(s->guard);
    heap_session_free(&s->session);
    mem_free(s);
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct heap_source *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for android.heapprofd");
    s->user = (struct heap_user){came, left, missed};
    s->host = host;
    s->hub = host->heap;
    heap_session_init(&s->session, host->perf, sink);
    int rc = heap_config_parse(&s->session.config, config->specific, err);
    if (rc) {
        free_state(s);
        return rc;
    }
    *state = s;
    return 0;
}

static int start(void *state, struct error *err)
{
    struct heap_source *s = state;
    const struct heap_config *c = &s->session.config;
    s->tick = probes_timer_new(s->host->loop, s);
    s->dumps = probes_timer_new(s->host->loop, s);
    s->guard = probes_timer_new(s->host->loop, s);
    if (!s->tick || !s->dumps || !s->guard || !heap_hub_add_user(s->hub, &s->user))
        return error_set(err, -MRD_ENOMEM, "out of memory for android.heapprofd");
    heap_packets_begin(&s->session.packets);
    s->cpu_s_before = cpu_s();
    s->began_ns = (uint64_t)clock_now_ns(CLOCK_BOOTTIME);
    for (size_t i = 0; i < s->hub->peers.n; i++)
        came(&s->user, s->hub->peers.p[i]);
    uv_timer_start(s->tick, on_tick, READ_MS, 0);
    if (c->dump_ms && !c->at_max)
        uv_timer_start(s->dumps, on_dump, c->dump_phase_ms ? c->dump_phase_ms : c->dump_ms, c->dump_ms);
    if (c->max_memory_kb || c->max_cpu_s)
        uv_timer_start(s->guard, on_guard, GUARD_MS, GUARD_MS);
    return 0;
}

static void tell_incomplete(void *state, void (*tell)(void *ctx, const char *text), void *ctx)
{
    struct heap_source *s = state;
    const struct heap_config *c = &s->session.config;
    if (!HEAP_REGS)
        tell(ctx, "stacks cannot be unwound on this architecture");
    if (c->at_max && c->dump_ms)
        tell(ctx, "dump_at_max: there is one dump, at the end");
}

static void stop(void *state)
{
    struct heap_source *s = state;
    uv_timer_stop(s->tick);
    uv_timer_stop(s->dumps);
    uv_timer_stop(s->guard);
    if (!s->ended)
        detach_all(s, HEAP_DUMP_NOW);
    s->ended = true;
}

/* What was written so far may be overwritten: dumps from now on say all of it. */
static void clear_incremental(void *state)
{
    struct heap_source *s = state;
    heap_packets_begin(&s->session.packets);
    for (size_t i = 0; i < s->hub->peers.n; i++) {
        struct heap_peer *p = s->hub->peers.p[i];
        if (p->user != &s->user)
            continue;
        heap_book_tell_anew(&p->profile.book);
        heap_packets_name(&s->session.packets, p->pid);
    }
}

/* Sums are written when a process ends and when the session does. */
static uint64_t whole_until(void *state)
{
    (void)state;
    return 0;
}

const struct data_source_type heap_data_source = {
    .name = "android.heapprofd",
    .config_field = DATA_SOURCE_CONFIG_HEAPPROFD_CONFIG,
    .handles_incremental_clear = true,
    .setup = setup,
    .start = start,
    .tell_incomplete = tell_incomplete,
    .whole_until = whole_until,
    .clear_incremental = clear_incremental,
    .stop = stop,
    .free = free_state,
};
