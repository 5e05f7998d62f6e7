/* Systrace markers: print events of trace_marker, and drivers' events that mimic them. */
#include "importer/ftrace/ftrace_internal.h"

#include "wire/fields.h"

static void print(const struct ftrace_event *e)
{
    struct pb_cursor c = pb_cursor(e->payload);
    struct pb_field f;
    struct slice buf = slice_of("", 0);
    uint32_t utid = process_tracker_find_thread(e->m->processes, (int32_t)e->pid);
    if (utid != UTID_NONE)
        syscalls_truncate_write(e, utid);
    while (pb_next(&c, &f))
        if (f.id == FTRACE_PRINT_BUF)
            buf = pb_bytes(&f);
    atrace_parse_line(e, buf);
}

static void zero(const struct ftrace_event *e)
{
    enum { FLAG_BEGIN = 1, FLAG_END = 2, FLAG_COUNTER = 4 };
    struct fields f;
    fields_read(e->payload, &f);
    int32_t flag = field_i32(&f, FTRACE_ZERO_FLAG);
    char phase = flag & FLAG_BEGIN ? 'B' : flag & FLAG_END ? 'E' : flag & FLAG_COUNTER ? 'C' : 0;
    if (!phase) {
        stats_add(&e->m->st->stats, e->m->id, STAT_systrace_parse_failure, 1);
        return;
    }
    atrace_point(e, &(struct atrace_point){.phase = phase,
                                           .tgid = field_u32(&f, FTRACE_ZERO_PID),
                                           .name = field_bytes(&f, FTRACE_ZERO_NAME),
                                           .value = field_i64(&f, FTRACE_ZERO_VALUE)});
}

/* Where each driver's event keeps what a marker needs; 0: it has no such field. */
static const struct mark_fields {
    uint32_t id;
    uint8_t name, type, begin, pid, value;
    bool wide_value;         /* 64 bits */
    bool begin_will_do;      /* without a type, begin tells B from E; else the type must be there */
    bool only_counters_tgid; /* the tgid of slices is not to be trusted */
} marks[] = {
    {.id = 80, .name = 2, .begin = 3, .pid = 1, .begin_will_do = true},                         /* mdss */
    {.id = 333, .name = 2, .type = 3, .begin = 5, .pid = 1, .value = 4, .begin_will_do = true}, /* sde */
    {.id = 348, .name = 4, .type = 5, .pid = 1, .value = 6, .only_counters_tgid = true},        /* dpu */
    {.id = 349, .name = 4, .type = 5, .pid = 1, .value = 6},                                    /* g2d */
    {.id = 350, .name = 1, .type = 3, .pid = 2, .value = 4},                                    /* mali */
    {.id = 467, .name = 4, .type = 2, .pid = 3, .value = 5, .wide_value = true},                /* lwis */
    {.id = 484, .name = 2, .type = 4, .pid = 1, .value = 5},                                    /* samsung */
    {.id = 490, .name = 4, .type = 5, .pid = 1, .value = 6}, /* panel_write_generic */
};

static void driver_mark(const struct ftrace_event *e)
{
    struct fields f;
    const struct mark_fields *m = marks;
    while (m->id != e->id)
        m++;
    fields_read(e->payload, &f);
    bool has_type = m->type && field_has(&f, m->type), has_begin = m->begin && field_has(&f, m->begin);
    char type = m->type ? (char)field_u32(&f, m->type) : 0;
    if (m->begin_will_do ? !has_type && !has_begin : !type) {
        stats_add(&e->m->st->stats, e->m->id, STAT_systrace_parse_failure, 1);
        return;
    }
    uint32_t tgid = m->only_counters_tgid && type != 'C' ? 0 : field_u32(&f, m->pid);
    int64_t value = m->wide_value ? field_i64(&f, m->value) : field_i32(&f, m->value);
    atrace_kernel_mark(e, type, has_begin && field_u64(&f, m->begin), field_bytes(&f, m->name), tgid,
                       m->value ? value : 0);
}

const struct ftrace_handler ftrace_handlers_marker[] = {
    {FTRACE_EVENT_PRINT, "print", print},
    {FTRACE_EVENT_TRACING_MARK_WRITE, "tracing_mark_write", driver_mark},
    {FTRACE_EVENT_ZERO, "zero", zero},
    {FTRACE_EVENT_SDE_TRACING_MARK_WRITE, "sde_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_DPU_TRACING_MARK_WRITE, "dpu_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_G2D_TRACING_MARK_WRITE, "g2d_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_MALI_TRACING_MARK_WRITE, "mali_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_LWIS_TRACING_MARK_WRITE, "lwis_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_SAMSUNG_TRACING_MARK_WRITE, "samsung_tracing_mark_write", driver_mark},
    {FTRACE_EVENT_PANEL_WRITE_GENERIC, "panel_write_generic", driver_mark},
    {0, NULL, NULL},
};
