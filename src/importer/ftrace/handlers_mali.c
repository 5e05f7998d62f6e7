/* Events of Mali GPUs: interrupts, states of the microcontroller. */
#include "importer/ftrace/ftrace_internal.h"

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
    small_args_add(e, &args, "info_val", ARG_UINT, field_i64(&f, 3));
    ftrace_begin(e, irq_track(e), 0, ftrace_text(e, "mali_CSF_INTERRUPT"), small_args_set(e, &args));
}

static void csf_interrupt_end(const struct ftrace_event *e)
{
    struct fields f;
    struct small_args args = {0};
    fields_read(e->payload, &f);
    small_args_add(e, &args, "info_val", ARG_UINT, field_i64(&f, 3));
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, irq_track(e), 0, ftrace_text(e, "mali_CSF_INTERRUPT"), &list);
}

#define MCU(id, state)                                                                                                 \
    {                                                                                                                  \
        id, "mali_mali_PM_MCU_" state, mcu_state                                                                       \
    }
const struct ftrace_handler ftrace_handlers_mali[] = {
    {482, "mali_mali_CSF_INTERRUPT_START", csf_interrupt_start},
    {483, "mali_mali_CSF_INTERRUPT_END", csf_interrupt_end},
    MCU(510, "HCTL_CORES_DOWN_SCALE_NOTIFY_PEND"),
    MCU(511, "HCTL_CORES_NOTIFY_PEND"),
    MCU(512, "HCTL_CORE_INACTIVE_PEND"),
    MCU(513, "HCTL_MCU_ON_RECHECK"),
    MCU(514, "HCTL_SHADERS_CORE_OFF_PEND"),
    MCU(515, "HCTL_SHADERS_PEND_OFF"),
    MCU(516, "HCTL_SHADERS_PEND_ON"),
    MCU(517, "HCTL_SHADERS_READY_OFF"),
    MCU(518, "IN_SLEEP"),
    MCU(519, "OFF"),
    MCU(520, "ON"),
    MCU(521, "ON_CORE_ATTR_UPDATE_PEND"),
    MCU(522, "ON_GLB_REINIT_PEND"),
    MCU(523, "ON_HALT"),
    MCU(524, "ON_HWCNT_DISABLE"),
    MCU(525, "ON_HWCNT_ENABLE"),
    MCU(526, "ON_PEND_HALT"),
    MCU(527, "ON_PEND_SLEEP"),
    MCU(528, "ON_SLEEP_INITIATE"),
    MCU(529, "PEND_OFF"),
    MCU(530, "PEND_ON_RELOAD"),
    MCU(531, "POWER_DOWN"),
    MCU(532, "RESET_WAIT"),
    {0, NULL, NULL},
};
