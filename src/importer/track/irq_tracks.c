/* The tracks and names of interrupts. */
#include "importer/track/irq_tracks.h"

#include "importer/track/track_tracker.h"

uint32_t irq_track(struct machine_ctx *m, enum irq_track_kind kind, uint32_t cpu)
{
    static const struct {
        const char *type, *name;
    } kinds[IRQ_TRACK_KINDS] = {
        [IRQ_TRACK] = {"cpu_irq", "Irq"},
        [SOFTIRQ_TRACK] = {"cpu_softirq", "SoftIrq"},
        [HRTIMER_TRACK] = {"cpu_hrtimer", "Hrtimer"},
    };
    return track_intern_int(m->im->tracks, m->id, kinds[kind].type, TRACK_SLICE, "cpu", cpu,
                            strpool_printf(&m->st->strings, "%s Cpu %u", kinds[kind].name, cpu));
}

strid irq_slice_name(struct machine_ctx *m, struct slice handler)
{
    int len = handler.len > 200 ? 200 : (int)handler.len;
    return strpool_printf(&m->st->strings, "IRQ (%.*s)", len, (const char *)handler.p);
}

const char *softirq_name(uint64_t vec)
{
    static const char *const names[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                        "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
    return vec < sizeof names / sizeof *names ? names[vec] : NULL;
}
