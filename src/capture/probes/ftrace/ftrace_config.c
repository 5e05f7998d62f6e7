/* Owns reading FtraceConfig. */
#include "capture/probes/ftrace/ftrace_config.h"

#include "proto/pb_cursor.h"

enum { DRAIN_MIN_MS = 1, DRAIN_MAX_MS = 60000, DRAIN_DEFAULT_MS = 100 };

static const char *text_of(struct ftrace_config *c, const struct pb_field *f)
{
    struct slice s = pb_bytes(f);
    const char *text = arena_strndup(&c->strings, s.p, s.len);
    return text ? text : "";
}

static void add_text(struct ftrace_config *c, string_list *list, const struct pb_field *f)
{
    if (!vec_push(list, text_of(c, f)))
        c->strings.failed = true;
}

static void add_kprobe(struct ftrace_config *c, const struct pb_field *f)
{
    struct kprobe_request k = {"", 0};
    struct pb_cursor m = pb_sub(f);
    struct pb_field g;
    while (pb_next(&m, &g)) {
        if (g.id == 1)
            k.probe = text_of(c, &g);
        else if (g.id == 2)
            k.kind = pb_u32(&g);
    }
    if (!vec_push(&c->kprobes, k))
        c->strings.failed = true;
}

static void add_option(struct ftrace_config *c, const struct pb_field *f)
{
    struct tracefs_option o = {"", 0};
    struct pb_cursor m = pb_sub(f);
    struct pb_field g;
    while (pb_next(&m, &g)) {
        if (g.id == 1)
            o.name = text_of(c, &g);
        else if (g.id == 2)
            o.state = pb_u32(&g);
    }
    if (!vec_push(&c->options, o))
        c->strings.failed = true;
}

static void read_compact(struct ftrace_config *c, const struct pb_field *f)
{
    struct pb_field enabled;
    c->compact_sched = pb_find(pb_bytes(f), 1, &enabled) && pb_bool(&enabled);
}

/* tids_to_trace, packed or not. */
static void add_tids(struct ftrace_config *c, const struct pb_field *f)
{
    struct pb_cursor packed = pb_sub(f);
    uint64_t tid = f->u;
    bool more = f->wire == PB_VARINT || pb_next_packed(&packed, &tid);
    while (more) {
        if (!vec_push(&c->tids, (uint32_t)tid))
            c->strings.failed = true;
        more = f->wire == PB_BYTES && pb_next_packed(&packed, &tid);
    }
}

static void read_field(struct ftrace_config *c, const struct pb_field *f)
{
    switch (f->id) {
    case 1:
        add_text(c, &c->events, f);
        break;
    case 2:
        add_text(c, &c->atrace_categories, f);
        break;
    case 10:
        c->buffer_size_kb = pb_u32(f);
        break;
    case 11:
        c->drain_period_ms = pb_u32(f);
        break;
    case 12:
        read_compact(c, f);
        break;
    case 13:
        c->symbolize_ksyms = pb_bool(f);
        break;
    case 15:
        c->throttle_rss_stat = pb_bool(f);
        break;
    case 16:
        c->disable_generic_events = pb_bool(f);
        break;
    case 18:
        add_text(c, &c->syscalls, f);
        break;
    case 23:
        c->preserve_ftrace_buffer = pb_bool(f);
        break;
    case 24:
        c->use_monotonic_raw_clock = pb_bool(f);
        break;
    case 25:
        c->instance_name = text_of(c, f);
        break;
    case 27:
        c->buffer_size_lower_bound = pb_bool(f);
        break;
    case 29:
        c->drain_buffer_percent = pb_u32(f);
        break;
    case 30:
        add_kprobe(c, f);
        break;
    case 31:
        c->debug_ftrace_abi = pb_bool(f);
        break;
    case 32:
        c->legacy_generic_events = !pb_bool(f);
        break;
    case 35:
        add_tids(c, f);
        break;
    case 36:
        add_option(c, f);
        break;
    case 37:
        c->tracing_cpumask = text_of(c, f);
        break;
    case 1000:
        c->packet_headers = pb_bool(f);
        break;
    default:
        break;
    }
}

int ftrace_config_parse(struct ftrace_config *c, struct slice bytes, struct error *err)
{
    struct pb_cursor cursor = pb_cursor(bytes);
    struct pb_field f;
    memset(c, 0, sizeof *c);
    c->compact_sched = true;
    c->instance_name = c->tracing_cpumask = "";
    while (pb_next(&cursor, &f))
        read_field(c, &f);
    if (cursor.bad)
        return error_set(err, -MRD_EFORMAT, "the ftrace config is damaged");
    if (c->strings.failed)
        return error_set(err, -MRD_ENOMEM, "out of memory for the ftrace config");
    if (c->drain_period_ms < DRAIN_MIN_MS || c->drain_period_ms > DRAIN_MAX_MS)
        c->drain_period_ms = DRAIN_DEFAULT_MS;
    if (c->drain_buffer_percent > 100)
        c->drain_buffer_percent = 0;
    return 0;
}

void ftrace_config_free(struct ftrace_config *c)
{
    vec_free(&c->events);
    vec_free(&c->atrace_categories);
    vec_free(&c->syscalls);
    vec_free(&c->kprobes);
    vec_free(&c->options);
    vec_free(&c->tids);
    arena_free(&c->strings);
}
