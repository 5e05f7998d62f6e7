/* Kernel events in samples: the raw bytes of a tracepoint are the kernel's event as in its trace buffers, so programs
 * make them fields of FtraceEvents. */
#include "importer/perf/perf_tracepoints.h"

#include "importer/trace_dat/dat_files.h"

enum { SEQUENCE = 1 };

static void write_packet(void *ctx, const struct slice *pieces, size_t n)
{
    struct perf_tracepoints *t = ctx;
    format_reader_packet(t->im, SEQUENCE, pieces, n);
}

/* Programs whose events have to go through packets: see ftrace_event_now(). */
static bool needs_packets(const struct event_program *program)
{
    bool needs = program->kind == PROGRAM_GENERIC_LEGACY || ftrace_event_waits(program->proto_id);
    for (uint32_t i = 0; i < program->n_steps; i++)
        needs |= program->steps[i].code == STEP_ADDRESS || program->steps[i].code == STEP_ADDRESS32;
    return needs;
}

static bool is_call(const struct event_program *program)
{
    const struct program_step *s = program->steps;
    return program->proto_id == FTRACE_EVENT_SYS_ENTER && !program->constant_len && program->n_steps == 2 &&
           s[0].code <= STEP_S64 && s[0].tag_len == 1 && s[0].tag[0] >> 3 == FTRACE_SYS_ENTER_ID &&
           s[1].code >= STEP_ARRAY_U64 && s[1].tag_len == 1 && s[1].tag[0] >> 3 == FTRACE_SYS_ENTER_ARGS;
}

/* Frequent events of which it is known that they make no rows of counters: samples before them may still wait. */
static bool makes_no_counter(const struct event_program *program)
{
    static const uint16_t ids[] = {FTRACE_EVENT_SCHED_SWITCH,     FTRACE_EVENT_SCHED_WAKING, FTRACE_EVENT_SCHED_WAKEUP,
                                   FTRACE_EVENT_SCHED_WAKEUP_NEW, FTRACE_EVENT_SYS_ENTER,    FTRACE_EVENT_SYS_EXIT};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == program->proto_id)
            return true;
    return false;
}

static void choose_turn(struct perf_import *p, struct perf_attr *a)
{
    const struct perf_tracepoints *t = p->tracepoints;
    const struct event_program *program = a->config < DAT_EVENT_IDS ? t->events->programs[a->config] : NULL;
    if (a->type != PERF_TYPE_TRACEPOINT || !program || !(a->sample_type & PERF_RAW))
        return;
    if (t->kinds[a->config].in_packets) {
        a->kernel_event = PERF_EVENT_IN_PACKETS;
        p->events_in_packets = true;
    } else if (program->proto_id == FTRACE_EVENT_SCHED_SWITCH) {
        a->kernel_event = PERF_EVENT_SWITCH;
    }
}

int perf_tracepoints_open(struct perf_import *p)
{
    if (!p->file.tracing_data.len)
        return 0;
    struct perf_tracepoints *t = p->tracepoints = mem_zalloc(sizeof *t);
    if (!t)
        return -MRD_ENOMEM;
    t->im = p->im;
    int rc = dat_file_open_descriptions(&t->descriptions, p->file.tracing_data);
    if (rc == -MRD_ENOMEM)
        return rc;
    p->file.truncated |= rc != 0 || t->descriptions.truncated;
    struct packet_sink sink = {.write = write_packet, .ctx = t};
    (void)kernel_symbols_parse(&t->kernel, t->descriptions.kallsyms, NULL);
    (void)printk_formats_parse(&t->printk, t->descriptions.printk, NULL);
    t->symbols.kernel = &t->kernel;
    t->events = dat_events_open(&t->descriptions, &p->im->trace_dat->next_dynamic_id);
    t->bundle = ftrace_bundle_create(&sink, &t->printk, &t->symbols, NULL);
    t->kinds = mem_zalloc(DAT_EVENT_IDS * sizeof *t->kinds);
    t->repeats = mem_zalloc(sizeof *t->repeats << PERF_REPEAT_BITS);
    t->context = (struct program_context){.printk = &t->printk};
    if (!t->events || !t->bundle || !t->kinds || !t->repeats)
        return -MRD_ENOMEM;
    for (size_t id = 0; id < DAT_EVENT_IDS; id++) {
        const struct event_program *program = t->events->programs[id];
        if (program)
            t->kinds[id] = (struct perf_kind){.program = program,
                                              .in_packets = needs_packets(program),
                                              .described = !program->descriptor.len,
                                              .call = is_call(program),
                                              .no_counter = makes_no_counter(program),
                                              .words = (uint8_t)perf_repeat_words(program)};
    }
    for (size_t i = 0; i < p->file.attrs.n; i++)
        choose_turn(p, &p->file.attrs.p[i]);
    p->im->input.ftrace_clock = p->clock.clock;
    p->im->input.has_ftrace_clock = true;
    return 0;
}

const uint8_t *perf_tracepoint_turned(struct perf_tracepoints *t, struct slice raw, uint16_t id)
{
    if (!t->events->swaps[id])
        return raw.p;
    memcpy(t->event, raw.p, raw.len);
    swap_program_run(t->events->swaps[id], t->event, (uint32_t)raw.len);
    return t->event;
}

void perf_tracepoints_take(struct perf_import *p, const struct perf_attr *a, const struct perf_record *r)
{
    struct perf_tracepoints *t = p->tracepoints;
    const struct perf_kind *kind;
    const struct event_program *program = t->events->programs[a->config];
    struct perf_sample_record s;
    const uint8_t *event;
    p->has_switches |= program->proto_id == FTRACE_EVENT_SCHED_SWITCH;
    if (a->kernel_event != PERF_EVENT_IN_PACKETS || !perf_sample_read(&p->file, a, r, &s) || !s.where.has_cpu ||
        s.where.cpu >= CPUS_PER_MACHINE || !(kind = perf_kind_of(p, s.raw, &event)) || kind->program != program)
        return;
    if (t->begun && t->cpu != s.where.cpu)
        ftrace_bundle_end(t->bundle);
    if (!t->begun || t->cpu != s.where.cpu)
        ftrace_bundle_begin(t->bundle, t->cpu = s.where.cpu, &t->previous_end);
    t->begun = true;
    ftrace_bundle_event(t->bundle, program, event, (uint32_t)s.raw.len, s.where.time);
}

/* Makes room for an event of so many bytes; false when out of memory. */
static bool make_room(struct perf_tracepoints *t, size_t bound)
{
    uint8_t *grown = mem_realloc(t->made, bound);
    if (!grown) {
        t->im->failed = true;
        return false;
    }
    t->made = grown;
    t->made_cap = bound;
    return true;
}

void perf_tracepoint_make(struct perf_import *p, const struct perf_kind *kind, const uint8_t *event, uint32_t size,
                          struct ftrace_now *now)
{
    struct perf_tracepoints *t = p->tracepoints;
    size_t bound = event_program_bound(kind->program, size) + ENCODE_SLACK;
    now->payload = NULL;
    if (bound > t->made_cap && !make_room(t, bound))
        return;
    const uint8_t *end = event_program_payload(kind->program, &t->context, event, size, t->made);
    if (!end) {
        stats_add_idx(&p->im->st->stats, p->m->id, STAT_perf_record_skipped, PERF_RECORD_SAMPLE, 1);
        return;
    }
    now->payload = t->made;
    now->len = (uint32_t)(end - t->made);
    now->call_args = 0;
    now->args = NULL;
    if (kind->call) { /* a tag and a varint */
        now->call_args = 1;
        while (t->made[now->call_args++] & 0x80)
            continue;
    }
}

void perf_tracepoint_make_new(struct perf_import *p, const struct perf_kind *kind, const uint8_t *event, uint32_t size,
                              struct perf_repeat *place, uint64_t hash, struct ftrace_now *now)
{
    perf_tracepoint_make(p, kind, event, size, now);
    if (now->payload && perf_repeat_keep(place, kind->program, kind->words, event, hash,
                                         slice_of(now->payload, now->len), now->call_args))
        now->args = &place->args;
}

void perf_tracepoint_describe(struct perf_import *p, struct perf_kind *kind)
{
    kind->described = true;
    ftrace_describe_event(p->m, kind->program->descriptor);
}

void perf_tracepoints_end(struct perf_import *p)
{
    if (p->tracepoints && p->tracepoints->begun)
        ftrace_bundle_end(p->tracepoints->bundle);
}

const char *perf_kernel_symbol(const struct perf_import *p, uint64_t address)
{
    return p->tracepoints ? kernel_symbols_find(&p->tracepoints->kernel, address) : NULL;
}

void perf_tracepoints_close(struct perf_tracepoints *t)
{
    if (!t)
        return;
    dat_file_close(&t->descriptions);
    dat_events_close(t->events);
    ftrace_bundle_free(t->bundle);
    address_table_free(&t->symbols.addresses);
    kernel_symbols_free(&t->kernel);
    printk_formats_free(&t->printk);
    mem_free(t->kinds);
    mem_free(t->repeats);
    mem_free(t->made);
    mem_free(t);
}
