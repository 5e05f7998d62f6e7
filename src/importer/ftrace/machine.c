/* The ftrace state of a machine: its cpus and queues, the table of kinds of events, and packet handlers. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

const struct packet_handler ftrace_packet_handlers[] = {
    {.field_id = 1, .name = "ftrace_events", .tokenize = ftrace_tokenize_bundle},
    {.field_id = 34, .name = "ftrace_stats", .tokenize = ftrace_tokenize_stats},
    {0},
};

const struct ftrace_handler *const ftrace_families[] = {
    ftrace_handlers_binder,
    ftrace_handlers_block,
    ftrace_handlers_cpu,
    ftrace_handlers_device,
    ftrace_handlers_dma,
    ftrace_handlers_drm,
    ftrace_handlers_gpu,
    ftrace_handlers_irq,
    ftrace_handlers_mali,
    ftrace_handlers_marker,
    ftrace_handlers_media,
    ftrace_handlers_mm,
    ftrace_handlers_net,
    ftrace_handlers_power,
    ftrace_handlers_task,
    ftrace_handlers_thermal,
    ftrace_handlers_trusty,
    ftrace_handlers_v4l2,
    NULL,
};

static void (*handler_of(uint32_t id))(const struct ftrace_event *)
{
    for (size_t i = 0; ftrace_families[i]; i++)
        for (const struct ftrace_handler *h = ftrace_families[i]; h->fn; h++)
            if (h->id == id)
                return h->fn;
    return NULL;
}

bool ftrace_has_handler(uint32_t id)
{
    return handler_of(id) != NULL;
}

void ftrace_handle_event(struct machine_ctx *m, const struct ftrace_other_event *o, struct slice message)
{
    struct ftrace_machine *f = m->ftrace;
    struct ftrace_event e = {.f = f, .m = m, .ts = o->ts, .payload = message, .id = o->id, .cpu = o->cpu};
    e.gen = UINT32_MAX; /* no interned symbols */
    e.line_thread = o->utid + 1;
    if (o->id < FTRACE_MAX_EVENT && f->kinds[o->id].handler && ftrace_cpu(f, o->cpu))
        f->kinds[o->id].handler(&e);
}

/* Recorded by the hypervisor, which knows no threads. */
static const uint16_t of_hypervisor[] = {
    FTRACE_EVENT_HYP_ENTER,      FTRACE_EVENT_HYP_EXIT,      FTRACE_EVENT_HOST_HCALL, FTRACE_EVENT_HOST_SMC,
    FTRACE_EVENT_HOST_MEM_ABORT, FTRACE_EVENT_HOST_FFA_CALL, FTRACE_EVENT_IOMMU_IDMAP};

static void fill_kinds(struct ftrace_machine *f)
{
    for (size_t i = 0; i < ftrace_event_count(); i++) {
        const struct ftrace_event_desc *d = ftrace_event_at(i);
        if (d->id < FTRACE_MAX_EVENT)
            f->kinds[d->id].desc = d;
    }
    for (size_t i = 0; ftrace_families[i]; i++)
        for (const struct ftrace_handler *h = ftrace_families[i]; h->fn; h++)
            f->kinds[h->id].handler = h->fn;
    for (size_t i = 0; i < sizeof of_hypervisor / sizeof *of_hypervisor; i++)
        f->kinds[of_hypervisor[i]].no_pid = true;
}

struct ftrace_machine *ftrace_machine_open(struct machine_ctx *m)
{
    struct ftrace_machine *f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->m = m;
    f->im = m->im;
    fill_kinds(f);
    ftrace_args_init(f);
    static const char *const texts[] = {
#define X(name, text) text,
        FTRACE_TEXT_LIST(X)
#undef X
    };
    for (size_t i = 0; i < FTRACE_TEXTS; i++)
        f->text[i] = import_str(f->im, texts[i]);
    f->name_switch = import_str(f->im, "sched_switch");
    f->name_waking = import_str(f->im, "sched_waking");
    f->generic = generic_events_open(f);
    f->syscalls = syscalls_open(f);
    f->pending = pending_counters_open(f);
    f->atrace = atrace_open(f);
    if (!f->generic || !f->syscalls || !f->pending || !f->atrace) {
        ftrace_machine_close(f);
        return NULL;
    }
    return f;
}

void ftrace_machine_finish(struct ftrace_machine *f)
{
    if (!f)
        return;
    syscalls_finish(f->syscalls);
    pending_counters_resolve(f->pending);
}

void ftrace_machine_close(struct ftrace_machine *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->cpus.n; i++)
        mem_free(f->cpus.p[i].cpu);
    vec_free(&f->cpus);
    by_id_free(&f->thread_tracks);
    u64map_free(&f->file_tracks);
    kept_args_free(&f->kept);
    vec_free(&f->comms);
    vec_free(&f->retimed);
    vec_free(&f->gpu_sync_points);
    vec_free(&f->gpu_retired);
    u64map_free(&f->gpu_sync);
    u64map_free(&f->gpu_pending);
    u64map_free(&f->setup_errors_seen);
    u64map_free(&f->formatted);
    generic_events_close(f->generic);
    syscalls_close(f->syscalls);
    pending_counters_close(f->pending);
    atrace_close(f->atrace);
    line_kinds_close(f->lines);
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (f->family[i] && f->family_free[i])
            f->family_free[i](f->family[i]);
        mem_free(f->family[i]);
    }
    arena_free(&f->arena);
    mem_free(f);
}

void *ftrace_family_state(struct ftrace_machine *f, enum ftrace_family which, size_t size, void (*release)(void *))
{
    if (!f->family[which]) {
        f->family[which] = mem_zalloc(size);
        f->family_free[which] = release;
        if (!f->family[which])
            f->im->failed = true;
    }
    return f->family[which];
}

/* The ranks of the queues of all cpus up to this one are taken in the order of cpus, so that ties between cpus do not
 * depend on which one's bundle came first; the queues themselves are made for cpus that are met. */
static bool take_ranks(struct ftrace_machine *f, uint32_t cpu)
{
    while (f->cpus.n <= cpu) {
        uint32_t queues = sorter_reserve_queues(f->im->sorter, 3);
        if (queues == UINT32_MAX || !vec_push(&f->cpus, (struct ftrace_cpu_slot){.queues = queues}))
            return false;
    }
    return true;
}

struct ftrace_cpu *ftrace_make_cpu(struct ftrace_machine *f, uint32_t cpu)
{
    struct ftrace_cpu *c = take_ranks(f, cpu) ? mem_zalloc(sizeof *c) : NULL;
    uint32_t queues = c ? f->cpus.p[cpu].queues : 0;
    if (!c || !sorter_open_queue(f->im->sorter, queues, ftrace_parse_events, c) ||
        !sorter_open_queue(f->im->sorter, queues + 1, ftrace_parse_switches, c) ||
        !sorter_open_queue(f->im->sorter, queues + 2, ftrace_parse_wakings, c)) {
        mem_free(c); /* no event reaches queues that nothing is pushed to */
        f->im->failed = true;
        return NULL;
    }
    sorter_points_to_bytes(f->im->sorter, queues, 1);
    *c = (struct ftrace_cpu){
        .f = f, .cpu = cpu, .queue_events = queues, .queue_switch = queues + 1, .queue_waking = queues + 2, .ucpu = -1};
    f->cpus.p[cpu].cpu = c;
    return c;
}

void fields_read(struct slice message, struct fields *f)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field field;
    f->has = 0;
    while (pb_next(&c, &field)) {
        if (field.id >= FTRACE_MAX_FIELDS)
            continue;
        f->has |= 1ull << field.id;
        f->u[field.id] = field.u;
        f->p[field.id] = field.p;
    }
}
