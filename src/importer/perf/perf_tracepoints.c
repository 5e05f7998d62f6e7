/* Kernel events in samples: the raw bytes of a tracepoint are the kernel's event as in its trace buffers, so they
 * go the same way: programs make them fields of FtraceEventBundles. */
#include "importer/perf/perf_internal.h"

#include "importer/trace_dat/dat_events.h"
#include "importer/trace_dat/dat_files.h"
#include "kernel/foreign.h"

enum { SEQUENCE = 1 };

/* The events of one CPU on their way: a bundle is of one CPU. */
struct perf_tracepoints {
    struct importer *im;
    struct dat_file descriptions;
    struct dat_events *events;
    struct symbol_output symbols;
    struct kernel_symbols kernel;
    struct printk_formats printk;
    struct ftrace_bundle *bundle;
    uint64_t previous_end;
    uint32_t cpu;
    bool begun;
    uint8_t event[UINT16_MAX]; /* turned round */
};

static void write_packet(void *ctx, const struct slice *pieces, size_t n)
{
    struct perf_tracepoints *t = ctx;
    format_reader_packet(t->im, SEQUENCE, pieces, n);
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
    p->im->input.ftrace_clock = p->clock.clock;
    p->im->input.has_ftrace_clock = true;
    return t->events && t->bundle ? 0 : -MRD_ENOMEM;
}

void perf_tracepoints_add(struct perf_import *p, const struct perf_attr *a, const struct perf_sample_record *s)
{
    struct perf_tracepoints *t = p->tracepoints;
    enum { LEAST = 8 }; /* the fields that all events begin with */
    if (!t || a->type != PERF_TYPE_TRACEPOINT || s->raw.len < LEAST || s->raw.len > sizeof t->event ||
        !s->where.has_cpu || s->where.cpu >= CPUS_PER_MACHINE)
        return;
    struct dat_cursor c = perf_cursor(&p->file, s->raw);
    uint16_t id = dat_u16(&c);
    const struct event_program *program = t->events->programs[id];
    if (!program)
        return;
    if (t->begun && t->cpu != s->where.cpu)
        ftrace_bundle_end(t->bundle);
    if (!t->begun || t->cpu != s->where.cpu)
        ftrace_bundle_begin(t->bundle, t->cpu = s->where.cpu, &t->previous_end);
    t->begun = true;
    const uint8_t *event = s->raw.p;
    if (p->file.big && t->events->swaps[id]) {
        memcpy(t->event, event, s->raw.len);
        swap_program_run(t->events->swaps[id], t->event, (uint32_t)s->raw.len);
        event = t->event;
    }
    p->has_switches |= program->proto_id == FTRACE_EVENT_SCHED_SWITCH;
    ftrace_bundle_event(t->bundle, program, event, (uint32_t)s->raw.len, s->where.time);
}

void perf_tracepoints_end(struct perf_import *p)
{
    if (p->tracepoints && p->tracepoints->begun)
        ftrace_bundle_end(p->tracepoints->bundle);
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
    mem_free(t);
}
