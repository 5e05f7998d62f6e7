/* Events of Mali GPUs: interrupts, states of the microcontroller. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

struct mali {
    strid mcu_state; /* the open slice's name; 0: none */
};

enum { MCU_PREFIX_LEN = sizeof "mali_mali_PM_MCU_" - 1 };

/* The state is the event's name behind the prefix. */
static void mcu_state(const struct ftrace_event *e)
{
    struct mali *s = ftrace_family_state(e->f, FAMILY_MALI, sizeof *s, NULL);
    if (!s)
        return;
    strid name = ftrace_text(e, e->f->kinds[e->id].desc->name + MCU_PREFIX_LEN);
    uint32_t track = ftrace_track(e, TRACK_SLICE, "mali_mcu_state", 0, NULL, 0);
    if (s->mcu_state)
        ftrace_end(e, track, 0, s->mcu_state, NULL);
    ftrace_begin(e, track, 0, name, ARGSET_NONE);
    s->mcu_state = name;
}

static uint32_t irq_track(const struct ftrace_event *e)
{
    return track_intern_int(e->m->im->tracks, e->m->id, "cpu_mali_irq", TRACK_SLICE, "cpu", e->cpu,
                            ftrace_name(e, "Mali Irq Cpu %u", e->cpu));
}

static void csf_interrupt_start(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "info_val", ARG_UINT, field_i64(&f, FTRACE_MALI_MALI_CSF_INTERRUPT_START_INFO_VAL));
    ftrace_begin(e, irq_track(e), 0, ftrace_text(e, "mali_CSF_INTERRUPT"), small_args_set(e, &args));
}

static void csf_interrupt_end(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "info_val", ARG_UINT, field_i64(&f, FTRACE_MALI_MALI_CSF_INTERRUPT_END_INFO_VAL));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, irq_track(e), 0, ftrace_text(e, "mali_CSF_INTERRUPT"), &list);
}

#define MCU(state)                                                                                                     \
    {                                                                                                                  \
        FTRACE_EVENT_MALI_MALI_PM_MCU_##state, "mali_mali_PM_MCU_" #state, mcu_state                                   \
    }
const struct ftrace_handler ftrace_handlers_mali[] = {
    {FTRACE_EVENT_MALI_MALI_CSF_INTERRUPT_START, "mali_mali_CSF_INTERRUPT_START", csf_interrupt_start},
    {FTRACE_EVENT_MALI_MALI_CSF_INTERRUPT_END, "mali_mali_CSF_INTERRUPT_END", csf_interrupt_end},
    MCU(HCTL_CORES_DOWN_SCALE_NOTIFY_PEND),
    MCU(HCTL_CORES_NOTIFY_PEND),
    MCU(HCTL_CORE_INACTIVE_PEND),
    MCU(HCTL_MCU_ON_RECHECK),
    MCU(HCTL_SHADERS_CORE_OFF_PEND),
    MCU(HCTL_SHADERS_PEND_OFF),
    MCU(HCTL_SHADERS_PEND_ON),
    MCU(HCTL_SHADERS_READY_OFF),
    MCU(IN_SLEEP),
    MCU(OFF),
    MCU(ON),
    MCU(ON_CORE_ATTR_UPDATE_PEND),
    MCU(ON_GLB_REINIT_PEND),
    MCU(ON_HALT),
    MCU(ON_HWCNT_DISABLE),
    MCU(ON_HWCNT_ENABLE),
    MCU(ON_PEND_HALT),
    MCU(ON_PEND_SLEEP),
    MCU(ON_SLEEP_INITIATE),
    MCU(PEND_OFF),
    MCU(PEND_ON_RELOAD),
    MCU(POWER_DOWN),
    MCU(RESET_WAIT),
    {0, NULL, NULL},
};
