/* Events of interrupts and what runs in their wake: irq, softirq, timers, work queues. */
#include "importer/ftrace/ftrace_internal.h"

/* The tracks of a cpu, made at its first event of the kind. */
static uint32_t cpu_track(const struct ftrace_event *e, uint32_t *cache, const char *type, const char *name)
{
    if (__builtin_expect(*cache == 0, 0)) {
        uint32_t track = track_intern_int(e->m->im->tracks, e->m->id, type, TRACK_SLICE, "cpu", e->cpu,
                                          ftrace_name(e, "%s Cpu %u", name, e->cpu));
        *cache = track == UINT32_MAX ? 0 : track + 1;
    }
    return *cache - 1;
}

static uint32_t irq_track(const struct ftrace_event *e)
{
    return cpu_track(e, &e->f->cpus.p[e->cpu]->track_irq, "cpu_irq", "Irq");
}

static uint32_t softirq_track(const struct ftrace_event *e)
{
    return cpu_track(e, &e->f->cpus.p[e->cpu]->track_softirq, "cpu_softirq", "SoftIrq");
}

static uint32_t hrtimer_track(const struct ftrace_event *e)
{
    return cpu_track(e, &e->f->cpus.p[e->cpu]->track_hrtimer, "cpu_hrtimer", "Hrtimer");
}

static void irq_handler_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct slice name = field_bytes(&f, 2);
    uint64_t *slot = ftrace_formatted(e, FORMATTED_IRQ, import_slice(e->m->im, name));
    if (!slot)
        return;
    if (!*slot)
        *slot = ftrace_name(e, "IRQ (%.*s)", name.len > 200 ? 200 : (int)name.len, (const char *)name.p);
    ftrace_begin(e, irq_track(e), e->f->text[TEXT_IRQ], (strid)*slot, 0);
}

static void irq_handler_exit(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_put(&args, e->f->text[TEXT_RET], ARG_STRING,
                   e->f->text[field_i32(&f, 2) == 1 ? TEXT_HANDLED : TEXT_UNHANDLED]);
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, irq_track(e), e->f->text[TEXT_IRQ], 0, &list);
}

static void local_timer_entry(const struct ftrace_event *e)
{
    ftrace_begin(e, irq_track(e), e->f->text[TEXT_IRQ], ftrace_text(e, "IRQ (LocalTimer)"), 0);
}

static void local_timer_exit(const struct ftrace_event *e)
{
    ftrace_end(e, irq_track(e), e->f->text[TEXT_IRQ], 0, NULL);
}

/* The kernel's softirq_to_name. */
static const char *const softirq_names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                            "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
enum { SOFTIRQS = sizeof softirq_names / sizeof *softirq_names };

static void softirq_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    uint32_t vec = field_u32(&f, 1);
    if (vec < SOFTIRQS)
        ftrace_begin(e, softirq_track(e), e->f->text[TEXT_IRQ], ftrace_text(e, softirq_names[vec]), 0);
}

static void softirq_exit(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_put(&args, e->f->text[TEXT_VEC], ARG_INT, field_u32(&f, 1));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, softirq_track(e), e->f->text[TEXT_IRQ], 0, &list);
}

static void hrtimer_expire_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    ftrace_begin(e, hrtimer_track(e), e->f->text[TEXT_HRTIMER], ftrace_kernel_symbol(e, field_u64(&f, 3)), 0);
}

static void hrtimer_expire_exit(const struct ftrace_event *e)
{
    ftrace_end(e, hrtimer_track(e), e->f->text[TEXT_HRTIMER], 0, NULL);
}

static void workqueue_execute_start(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    strid name = ftrace_kernel_symbol(e, field_u64(&f, 2));
    small_args_put(&args, e->f->text[TEXT_CPU], ARG_INT, e->cpu);
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), e->f->text[TEXT_WORKQUEUE], name, small_args_id(e, &args));
}

static void workqueue_execute_end(const struct ftrace_event *e)
{
    ftrace_end(e, ftrace_thread_track(e, event_utid(e)), e->f->text[TEXT_WORKQUEUE], 0, NULL);
}

const struct ftrace_handler ftrace_handlers_irq[] = {
    {24, "softirq_entry", softirq_entry},
    {25, "softirq_exit", softirq_exit},
    {36, "irq_handler_entry", irq_handler_entry},
    {37, "irq_handler_exit", irq_handler_exit},
    {57, "workqueue_execute_end", workqueue_execute_end},
    {58, "workqueue_execute_start", workqueue_execute_start},
    {553, "hrtimer_expire_entry", hrtimer_expire_entry},
    {554, "hrtimer_expire_exit", hrtimer_expire_exit},
    {559, "local_timer_entry", local_timer_entry},
    {560, "local_timer_exit", local_timer_exit},
    {0, NULL, NULL},
};
