/* The data source linux.perf: opens the events of its config, and reads their rings at each tick. */
#include "capture/perf/perf_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "capture/perf/perf_sample.h"
#include "capture/probes/common/metatrace.h"
#include "capture/probes/proc_text.h"
#include "wire/fields.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEMORY_PERIOD_MS = 1000, LEAST_SAMPLE_BYTES = 8, CATCH_UP_MS = 1 };

struct perf_source {
    const struct probes_host *host;
    struct perf_config config;
    struct perf_sampler sampler;
    uint64_t session_id;
    perf_cpu_list cpus;
    uv_timer_t *tick, *memory;
    uint64_t ticked_ms;  /* when the last tick was */
    uint64_t forgot_ms;  /* when maps were forgotten last */
    uint64_t told_until; /* what the last packet of progress says */
    bool uses_symbols, uses_shard, broken;
    bool purged; /* it used too much memory, and has ended itself */
    struct error no_symbols, cpu_left_out;
    uint8_t scratch[PERF_RECORD_MAX_BYTES];
};

static uint64_t now_ms(void)
{
    return (uint64_t)clock_now_ns(CLOCK_BOOTTIME) / 1000000;
}

/* ---- reading ---- */

/* Samples that a tick takes of each cpu at most: twice what the frequency gives in the time since the last one, which
 * is longer than the period when this process had to wait for a processor; or what the ring can hold. */
static uint64_t tick_limit(struct perf_source *s)
{
    const struct perf_config *c = &s->config;
    uint64_t now = now_ms(), since = now - s->ticked_ms;
    s->ticked_ms = now;
    if (since < c->read_period_ms)
        since = c->read_period_ms;
    if (c->frequency)
        return 2 * (1 + c->frequency * since / 1000);
    return s->cpus.n ? s->cpus.p[0].ring.size / LEAST_SAMPLE_BYTES : 0;
}

static void say_broken(struct perf_source *s, uint32_t cpu)
{
    char line[120];
    if (s->broken)
        return;
    s->broken = true;
    snprintf(line, sizeof line, "linux.perf: the ring of cpu %u holds what is no record; passing over it", cpu);
    s->host->log(s->host->ctx, line);
}

/* The records of forks, or of maps and names, up to what the cpu had written at the beginning of the tick. */
static void look_ahead_in(struct perf_source *s, const struct perf_cpu *p, uint64_t head, bool forks)
{
    uint64_t at = perf_cpu_tail(p);
    struct slice record;
    bool broken;
    if (p->looked - at <= head - at)
        at = p->looked;
    while (perf_ring_next(&p->ring, &at, head, s->scratch, &record, &broken))
        perf_sampler_look_ahead(&s->sampler, record, forks);
}

static void look_ahead(struct perf_source *s)
{
    for (size_t i = 0; i < s->cpus.n; i++)
        s->cpus.p[i].head = perf_cpu_head(&s->cpus.p[i]);
    for (size_t i = 0; i < s->cpus.n; i++)
        look_ahead_in(s, &s->cpus.p[i], s->cpus.p[i].head, true);
    for (size_t i = 0; i < s->cpus.n; i++) {
        look_ahead_in(s, &s->cpus.p[i], s->cpus.p[i].head, false);
        s->cpus.p[i].looked = s->cpus.p[i].head;
    }
}

/* Takes up to `limit` samples of a cpu, and the other records between them, of those that look_ahead() has seen; true
 * when that was all. */
static bool read_cpu(struct perf_source *s, struct perf_cpu *p, uint64_t limit, uint64_t now)
{
    uint64_t tail = perf_cpu_tail(p);
    struct slice record;
    bool broken = false;
    while (limit && perf_ring_next(&p->ring, &tail, p->looked, s->scratch, &record, &broken)) {
        limit -= perf_sampler_take(&s->sampler, p->cpu, record, now);
    }
    if (broken) {
        say_broken(s, p->cpu);
        perf_packets_lost(&s->sampler.packets, p->cpu, probes_boot_ns(), 1);
    }
    perf_cpu_set_tail(p, tail);
    return tail == p->looked;
}

/* With `ended`, once all events are off. */
static void tell_progress(struct perf_source *s, bool ended)
{
    uint64_t until = perf_sampler_whole_until(&s->sampler);
    if (until > s->told_until || ended)
        perf_packets_progress(&s->sampler.packets, until, ended);
    s->told_until = until;
}

static void read_counts(struct perf_source *s, bool last)
{
    uint64_t counts[PERF_MAX_FOLLOWERS + 1];
    for (size_t i = 0; i < s->cpus.n; i++) {
        unsigned n = perf_cpu_read(&s->cpus.p[i], counts);
        if (n)
            perf_packets_polled(&s->sampler.packets, s->cpus.p[i].cpu, probes_boot_ns(), counts, n);
    }
    s->sampler.read_until = probes_boot_ns();
    tell_progress(s, last);
}

/* True: nothing was left in the rings. */
static bool read_rings(struct perf_source *s, uint64_t limit, bool last)
{
    uint64_t now = now_ms(), boot = probes_boot_ns();
    bool all = true;
    if (now - s->forgot_ms >= s->config.clear_ms) {
        perf_processes_forget(&s->sampler.processes);
        perf_files_forget(&s->host->perf->files);
        s->forgot_ms = now;
    }
    look_ahead(s);
    for (size_t i = 0; i < s->cpus.n; i++)
        all &= read_cpu(s, &s->cpus.p[i], limit, now);
    for (size_t i = 0; i < s->cpus.n; i++)
        perf_sampler_lost(&s->sampler, s->cpus.p[i].cpu, perf_cpu_lost(&s->cpus.p[i], &s->sampler.layout));
    perf_sampler_retry(&s->sampler, now, last);
    perf_sampler_bound(&s->sampler);
    if (all)
        s->sampler.read_until = boot;
    tell_progress(s, last);
    return all;
}

static void on_tick(uv_timer_t *timer)
{
    struct perf_source *s = timer->data;
    struct metatrace_span span = metatrace_begin(s->host->metatrace);
    bool all = true;
    if (s->config.poll_ms)
        read_counts(s, false);
    else
        all = read_rings(s, tick_limit(s), false);
    metatrace_end(s->host->metatrace, span, "perf_read");
    if (all)
        probes_arm_tick(timer, on_tick, s->config.poll_ms ? s->config.poll_ms : s->config.read_period_ms);
    else /* it was late: what has piled up would overrun the ring before the next tick */
        uv_timer_start(timer, on_tick, CATCH_UP_MS, 0);
}

static void flush(void *state)
{
    struct perf_source *s = state;
    if (!s->config.poll_ms && s->cpus.n)
        read_rings(s, UINT64_MAX, false);
}

static uint64_t whole_until(void *state)
{
    struct perf_source *s = state;
    return s->config.poll_ms ? probes_boot_ns() : perf_sampler_whole_until(&s->sampler);
}

/* ---- memory ---- */

/* Resident and swapped memory of this process, without files and what is shared. */
static uint64_t used_kb(void)
{
    char text[4096], *at;
    uint64_t kb = 0;
    if (text_read_once("/proc/self/status", text, sizeof text) <= 0)
        return 0;
    if ((at = strstr(text, "RssAnon:")) != NULL)
        kb += strtoull(at + 8, NULL, 10);
    if ((at = strstr(text, "VmSwap:")) != NULL)
        kb += strtoull(at + 7, NULL, 10);
    return kb;
}

static void on_memory(uv_timer_t *timer)
{
    struct perf_source *s = timer->data;
    char line[160];
    uint64_t kb = used_kb();
    if (s->purged || kb <= s->config.max_memory_kb)
        return;
    s->purged = true;
    snprintf(line, sizeof line,
             "linux.perf: ended, because %llu kB of memory are in use and max_daemon_memory_kb is %u",
             (unsigned long long)kb, s->config.max_memory_kb);
    s->host->log(s->host->ctx, line);
    uv_timer_stop(s->tick);
    uv_timer_stop(timer);
    perf_packets_guardrail(&s->sampler.packets, probes_boot_ns());
    tell_progress(s, true); /* the guardrail says the rest */
    perf_cpus_close(&s->cpus);
    perf_processes_forget(&s->sampler.processes);
    perf_packets_forget(&s->sampler.packets);
}

/* ---- life ---- */

static void free_state(void *state)
{
    struct perf_source *s = state;
    probes_timer_free(s->tick);
    probes_timer_free(s->memory);
    perf_cpus_close(&s->cpus);
    perf_sampler_free(&s->sampler);
    if (s->uses_symbols)
        perf_kernel_symbols_drop(s->host->perf);
    if (s->uses_shard)
        perf_shard_drop(s->host->perf, s->session_id);
    perf_config_free(&s->config);
    mem_free(s);
}

static int setup(const struct probes_host *host, const struct data_source_config *config,
                 const struct packet_sink *sink, void **state, struct error *err)
{
    struct perf_source *s = mem_zalloc(sizeof *s);
    if (!s)
        return error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
    s->host = host;
    s->session_id = config->session_id;
    s->sampler.config = &s->config;
    s->sampler.shared = host->perf;
    s->sampler.packets.sink = *sink;
    s->sampler.packets.config = &s->config;
    s->sampler.scope.config = &s->config.scope;
    int rc = perf_config_parse(&s->config, config->specific, err);
    if (rc) {
        free_state(s);
        return rc;
    }
    *state = s;
    return 0;
}

/* What a session's sources share. */
static void use_shared(struct perf_source *s)
{
    struct perf_packets *p = &s->sampler.packets;
    if (s->config.kernel_frames) {
        s->uses_symbols = true;
        perf_kernel_symbols_use(s->host->perf, &s->no_symbols);
    }
    p->shard_count = s->config.stacks ? s->config.scope.shard_count : 0;
    s->uses_shard = p->shard_count != 0;
    p->shard = perf_shard_use(s->host->perf, s->session_id, &p->shard_count);
    s->config.scope.shard_count = p->shard_count;
    s->sampler.scope.shard = p->shard;
}

static int start(void *state, struct error *err)
{
    struct perf_source *s = state;
    s->tick = probes_timer_new(s->host->loop, s);
    s->memory = probes_timer_new(s->host->loop, s);
    if (!s->tick || !s->memory)
        return error_set(err, -MRD_ENOMEM, "out of memory for linux.perf");
    use_shared(s);
    int rc = perf_cpus_open(&s->cpus, &s->config, &s->sampler.layout, &s->cpu_left_out, err);
    for (size_t i = 0; !rc && i < s->cpus.n; i++)
        rc = perf_cpu_enable(&s->cpus.p[i], err);
    if (rc)
        return rc;
    s->forgot_ms = s->ticked_ms = now_ms();
    s->sampler.read_until = s->told_until = probes_boot_ns();
    perf_sampler_begin(&s->sampler);
    probes_arm_tick(s->tick, on_tick, s->config.poll_ms ? s->config.poll_ms : s->config.read_period_ms);
    if (s->config.max_memory_kb)
        uv_timer_start(s->memory, on_memory, MEMORY_PERIOD_MS, MEMORY_PERIOD_MS);
    return 0;
}

static void tell_incomplete(void *state, void (*tell)(void *ctx, const char *text), void *ctx)
{
    struct perf_source *s = state;
    if (s->no_symbols.code)
        tell(ctx, s->no_symbols.text);
    if (s->cpu_left_out.code)
        tell(ctx, s->cpu_left_out.text);
    if (perf_config_copies_stacks(&s->config) && !perf_arch_regs.mask)
        tell(ctx, "user stacks cannot be unwound on this architecture; use UNWIND_KERNEL_FRAME_POINTER");
}

static void stop(void *state)
{
    struct perf_source *s = state;
    uv_timer_stop(s->tick);
    uv_timer_stop(s->memory);
    for (size_t i = 0; i < s->cpus.n; i++)
        perf_cpu_disable(&s->cpus.p[i]);
    if (s->config.poll_ms)
        read_counts(s, true);
    else if (!s->purged)
        read_rings(s, UINT64_MAX, true);
    perf_cpus_close(&s->cpus);
}

static void clear_incremental(void *state)
{
    struct perf_source *s = state;
    if (!s->purged)
        perf_sampler_begin(&s->sampler);
}

const struct data_source_type perf_data_source = {
    .name = "linux.perf",
    .config_field = DATA_SOURCE_CONFIG_PERF_EVENT_CONFIG,
    .handles_incremental_clear = true,
    .setup = setup,
    .start = start,
    .tell_incomplete = tell_incomplete,
    .flush = flush,
    .whole_until = whole_until,
    .clear_incremental = clear_incremental,
    .stop = stop,
    .free = free_state,
};
