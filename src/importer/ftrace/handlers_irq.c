/* Events of interrupts and what runs in their wake: irq, softirq, timers, work queues. */
#include "importer/ftrace/ftrace_internal.h"
#include "importer/track/irq_tracks.h"
#include "wire/fields.h"

/* The tracks of a cpu are kept with it. */
static uint32_t kept_track(const struct ftrace_event *e, uint32_t *kept, enum irq_track_kind kind)
{
    if (__builtin_expect(*kept == 0, 0)) {
        uint32_t track = irq_track(e->m, kind, e->cpu);
        *kept = track == UINT32_MAX ? 0 : track + 1;
    }
    return *kept - 1;
}

static uint32_t hard_track(const struct ftrace_event *e)
{
    return kept_track(e, &e->f->cpus.p[e->cpu].cpu->track_irq, IRQ_TRACK);
}

static uint32_t soft_track(const struct ftrace_event *e)
{
    return kept_track(e, &e->f->cpus.p[e->cpu].cpu->track_softirq, SOFTIRQ_TRACK);
}

static uint32_t hrtimer_track(const struct ftrace_event *e)
{
    return kept_track(e, &e->f->cpus.p[e->cpu].cpu->track_hrtimer, HRTIMER_TRACK);
}

static void irq_handler_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    struct slice name = field_bytes(&f, FTRACE_IRQ_HANDLER_ENTRY_NAME);
    uint64_t *slot = ftrace_formatted(e, FORMATTED_IRQ, import_slice(e->m->im, name));
    if (!slot)
        return;
    if (!*slot)
        *slot = irq_slice_name(e->m, name);
    ftrace_begin(e, hard_track(e), e->f->text[TEXT_IRQ], (strid)*slot, ARGSET_NONE);
}

static void irq_handler_exit(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_put(&args, e->f->text[TEXT_RET], ARG_STRING,
                   e->f->text[field_i32(&f, FTRACE_IRQ_HANDLER_EXIT_RET) == 1 ? TEXT_HANDLED : TEXT_UNHANDLED]);
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, hard_track(e), e->f->text[TEXT_IRQ], 0, &list);
}

static void local_timer_entry(const struct ftrace_event *e)
{
    ftrace_begin(e, hard_track(e), e->f->text[TEXT_IRQ], ftrace_text(e, "IRQ (LocalTimer)"), ARGSET_NONE);
}

static void local_timer_exit(const struct ftrace_event *e)
{
    ftrace_end(e, hard_track(e), e->f->text[TEXT_IRQ], 0, NULL);
}

static void softirq_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    const char *name = softirq_name(field_u32(&f, FTRACE_SOFTIRQ_ENTRY_VEC));
    if (name)
        ftrace_begin(e, soft_track(e), e->f->text[TEXT_IRQ], ftrace_text(e, name), ARGSET_NONE);
}

static void softirq_exit(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_put(&args, e->f->text[TEXT_VEC], ARG_INT, field_u32(&f, FTRACE_SOFTIRQ_EXIT_VEC));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, soft_track(e), e->f->text[TEXT_IRQ], 0, &list);
}

static void hrtimer_expire_entry(const struct ftrace_event *e)
{
    struct fields f;
    fields_read(e->payload, &f);
    ftrace_begin(e, hrtimer_track(e), e->f->text[TEXT_HRTIMER],
                 ftrace_kernel_symbol(e, field_u64(&f, FTRACE_HRTIMER_EXPIRE_ENTRY_FUNCTION)), ARGSET_NONE);
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
    strid name = ftrace_kernel_symbol(e, field_u64(&f, FTRACE_WORKQUEUE_EXECUTE_START_FUNCTION));
    small_args_put(&args, e->f->text[TEXT_CPU], ARG_INT, e->cpu);
    ftrace_begin(e, ftrace_thread_track(e, event_utid(e)), e->f->text[TEXT_WORKQUEUE], name, small_args_set(e, &args));
}

static void workqueue_execute_end(const struct ftrace_event *e)
{
    ftrace_end(e, ftrace_thread_track(e, event_utid(e)), e->f->text[TEXT_WORKQUEUE], 0, NULL);
}

const struct ftrace_handler ftrace_handlers_irq[] = {
    {FTRACE_EVENT_SOFTIRQ_ENTRY, "softirq_entry", softirq_entry},
    {FTRACE_EVENT_SOFTIRQ_EXIT, "softirq_exit", softirq_exit},
    {FTRACE_EVENT_IRQ_HANDLER_ENTRY, "irq_handler_entry", irq_handler_entry},
    {FTRACE_EVENT_IRQ_HANDLER_EXIT, "irq_handler_exit", irq_handler_exit},
    {FTRACE_EVENT_WORKQUEUE_EXECUTE_END, "workqueue_execute_end", workqueue_execute_end},
    {FTRACE_EVENT_WORKQUEUE_EXECUTE_START, "workqueue_execute_start", workqueue_execute_start},
    {FTRACE_EVENT_HRTIMER_EXPIRE_ENTRY, "hrtimer_expire_entry", hrtimer_expire_entry},
    {FTRACE_EVENT_HRTIMER_EXPIRE_EXIT, "hrtimer_expire_exit", hrtimer_expire_exit},
    {FTRACE_EVENT_LOCAL_TIMER_ENTRY, "local_timer_entry", local_timer_entry},
    {FTRACE_EVENT_LOCAL_TIMER_EXIT, "local_timer_exit", local_timer_exit},
    {0, NULL, NULL},
};
