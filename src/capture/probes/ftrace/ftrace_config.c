/* Owns reading FtraceConfig. */
#include "capture/probes/ftrace/ftrace_config.h"

#include "wire/pb_cursor.h"

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

/* A message of {1 text, 2 number}. */
static void read_pair(struct ftrace_config *c, const struct pb_field *f, const char **text, uint32_t *number)
{
    struct pb_cursor m = pb_sub(f);
    struct pb_field g;
    *text = "";
    *number = 0;
    while (pb_next(&m, &g)) {
        if (g.id == 1)
            *text = text_of(c, &g);
        else if (g.id == 2)
            *number = pb_u32(&g);
    }
}

static void add_kprobe(struct ftrace_config *c, const struct pb_field *f)
{
    struct kprobe_request k;
    read_pair(c, f, &k.probe, &k.kind);
    if (!vec_push(&c->kprobes, k))
        c->strings.failed = true;
}

static void add_option(struct ftrace_config *c, const struct pb_field *f)
{
    struct tracefs_option o;
    read_pair(c, f, &o.name, &o.state);
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

static void add_print_rule(struct ftrace_config *c, struct slice rule)
{
    struct print_rule r = {"", NULL, false};
    struct pb_cursor m = pb_cursor(rule);
    struct pb_field f, g;
    while (pb_next(&m, &f)) {
        if (f.id == 1) {
            r.prefix = text_of(c, &f);
            r.type = NULL;
        } else if (f.id == 2) {
            r.allow = pb_bool(&f);
        } else if (f.id == 3) {
            r.type = r.prefix = "";
            if (pb_find(pb_bytes(&f), 1, &g))
                r.type = text_of(c, &g);
            if (pb_find(pb_bytes(&f), 2, &g))
                r.prefix = text_of(c, &g);
        }
    }
    if (!vec_push(&c->print_rules, r))
        c->strings.failed = true;
}

static void add_print_filter(struct ftrace_config *c, const struct pb_field *f)
{
    struct pb_cursor m = pb_sub(f);
    struct pb_field g;
    while (pb_next(&m, &g))
        if (g.id == 1)
            add_print_rule(c, pb_bytes(&g));
}

static void read_generic_encoding(struct ftrace_config *c, const struct pb_field *f)
{
    c->legacy_generic_events = !pb_bool(f);
}

static void read_ksyms_policy(struct ftrace_config *c, const struct pb_field *f)
{
    enum { KSYMS_RETAIN = 2 };
    c->retain_ksyms = pb_u32(f) == KSYMS_RETAIN;
}

/* Fields of FtraceConfig. Field 14 (initialize_ksyms_synchronously_for_testing) asks for what is always so. */
enum field_kind { BOOL, U32, TEXT, LIST, READ };

static const struct {
    uint32_t id;
    enum field_kind kind;
    size_t at; /* of BOOL … LIST */
    void (*read)(struct ftrace_config *c, const struct pb_field *f);
} fields[] = {
#define AT(member) offsetof(struct ftrace_config, member), NULL
    {1, LIST, AT(events)},
    {2, LIST, AT(atrace_categories)},
    {3, LIST, AT(atrace_apps)},
    {10, U32, AT(buffer_size_kb)},
    {11, U32, AT(drain_period_ms)},
    {12, READ, 0, read_compact},
    {13, BOOL, AT(symbolize_ksyms)},
    {15, BOOL, AT(throttle_rss_stat)},
    {16, BOOL, AT(disable_generic_events)},
    {17, READ, 0, read_ksyms_policy},
    {18, LIST, AT(syscalls)},
    {19, BOOL, AT(function_graph)},
    {20, LIST, AT(function_filters)},
    {21, LIST, AT(function_graph_roots)},
    {22, READ, 0, add_print_filter},
    {23, BOOL, AT(preserve_ftrace_buffer)},
    {24, BOOL, AT(use_monotonic_raw_clock)},
    {25, TEXT, AT(instance_name)},
    {27, BOOL, AT(buffer_size_lower_bound)},
    {28, LIST, AT(prefer_sdk)},
    {29, U32, AT(drain_buffer_percent)},
    {30, READ, 0, add_kprobe},
    {31, BOOL, AT(debug_ftrace_abi)},
    {32, READ, 0, read_generic_encoding},
    {33, U32, AT(function_graph_max_depth)},
    {34, BOOL, AT(atrace_userspace_only)},
    {35, READ, 0, add_tids},
    {36, READ, 0, add_option},
    {37, TEXT, AT(tracing_cpumask)},
    {1000, BOOL, AT(packet_headers)},
#undef AT
};

static void read_field(struct ftrace_config *c, const struct pb_field *f)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        void *member = (char *)c + fields[i].at;
        if (fields[i].id != f->id)
            continue;
        switch (fields[i].kind) {
        case BOOL:
            *(bool *)member = pb_bool(f);
            break;
        case U32:
            *(uint32_t *)member = pb_u32(f);
            break;
        case TEXT:
            *(const char **)member = text_of(c, f);
            break;
        case LIST:
            add_text(c, member, f);
            break;
        case READ:
            fields[i].read(c, f);
        }
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

int ftrace_config_parse_frozen(struct ftrace_config *c, struct slice bytes, struct error *err)
{
    struct pb_field name;
    int rc = ftrace_config_parse(c, slice_of(NULL, 0), err);
    c->frozen = c->preserve_ftrace_buffer = true;
    if (!rc && pb_find(bytes, 1, &name))
        c->instance_name = text_of(c, &name);
    if (!rc && !*c->instance_name)
        rc = error_set(err, -MRD_EINVALID, "frozen_ftrace_config needs the instance_name of what is to be read");
    return rc;
}

void ftrace_config_free(struct ftrace_config *c)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kind == LIST)
            vec_free((string_list *)(void *)((char *)c + fields[i].at));
    vec_free(&c->print_rules);
    vec_free(&c->kprobes);
    vec_free(&c->options);
    vec_free(&c->tids);
    arena_free(&c->strings);
}
