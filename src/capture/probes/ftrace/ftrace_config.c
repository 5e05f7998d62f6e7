/* Reads FtraceConfig. */
#include "capture/probes/ftrace/ftrace_config.h"

#include "wire/fields.h"
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

/* A KprobeEvent or a TracefsOption: a text and a number. */
static void read_pair(struct ftrace_config *c, const struct pb_field *f, const char **text, uint32_t *number)
{
    struct pb_cursor m = pb_sub(f);
    struct pb_field g;
    *text = "";
    *number = 0;
    while (pb_next(&m, &g)) {
        if (g.id == FTRACE_CONFIG_KPROBE_EVENT_PROBE)
            *text = text_of(c, &g);
        else if (g.id == FTRACE_CONFIG_KPROBE_EVENT_TYPE)
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
    c->compact_sched = pb_find(pb_bytes(f), FTRACE_CONFIG_COMPACT_SCHED_CONFIG_ENABLED, &enabled) && pb_bool(&enabled);
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
        if (f.id == FTRACE_CONFIG_PRINT_FILTER_RULE_PREFIX) {
            r.prefix = text_of(c, &f);
            r.type = NULL;
        } else if (f.id == FTRACE_CONFIG_PRINT_FILTER_RULE_ALLOW) {
            r.allow = pb_bool(&f);
        } else if (f.id == FTRACE_CONFIG_PRINT_FILTER_RULE_ATRACE_MSG) {
            r.type = r.prefix = "";
            if (pb_find(pb_bytes(&f), FTRACE_CONFIG_PRINT_FILTER_RULE_ATRACE_MESSAGE_TYPE, &g))
                r.type = text_of(c, &g);
            if (pb_find(pb_bytes(&f), FTRACE_CONFIG_PRINT_FILTER_RULE_ATRACE_MESSAGE_PREFIX, &g))
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
        if (g.id == FTRACE_CONFIG_PRINT_FILTER_RULES)
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
    {FTRACE_CONFIG_FTRACE_EVENTS, LIST, AT(events)},
    {FTRACE_CONFIG_ATRACE_CATEGORIES, LIST, AT(atrace_categories)},
    {FTRACE_CONFIG_ATRACE_APPS, LIST, AT(atrace_apps)},
    {FTRACE_CONFIG_BUFFER_SIZE_KB, U32, AT(buffer_size_kb)},
    {FTRACE_CONFIG_DRAIN_PERIOD_MS, U32, AT(drain_period_ms)},
    {FTRACE_CONFIG_COMPACT_SCHED, READ, 0, read_compact},
    {FTRACE_CONFIG_SYMBOLIZE_KSYMS, BOOL, AT(symbolize_ksyms)},
    {FTRACE_CONFIG_THROTTLE_RSS_STAT, BOOL, AT(throttle_rss_stat)},
    {FTRACE_CONFIG_DISABLE_GENERIC_EVENTS, BOOL, AT(disable_generic_events)},
    {FTRACE_CONFIG_KSYMS_MEM_POLICY, READ, 0, read_ksyms_policy},
    {FTRACE_CONFIG_SYSCALL_EVENTS, LIST, AT(syscalls)},
    {FTRACE_CONFIG_ENABLE_FUNCTION_GRAPH, BOOL, AT(function_graph)},
    {FTRACE_CONFIG_FUNCTION_FILTERS, LIST, AT(function_filters)},
    {FTRACE_CONFIG_FUNCTION_GRAPH_ROOTS, LIST, AT(function_graph_roots)},
    {FTRACE_CONFIG_PRINT_FILTER, READ, 0, add_print_filter},
    {FTRACE_CONFIG_PRESERVE_FTRACE_BUFFER, BOOL, AT(preserve_ftrace_buffer)},
    {FTRACE_CONFIG_USE_MONOTONIC_RAW_CLOCK, BOOL, AT(use_monotonic_raw_clock)},
    {FTRACE_CONFIG_INSTANCE_NAME, TEXT, AT(instance_name)},
    {FTRACE_CONFIG_BUFFER_SIZE_LOWER_BOUND, BOOL, AT(buffer_size_lower_bound)},
    {FTRACE_CONFIG_ATRACE_CATEGORIES_PREFER_SDK, LIST, AT(prefer_sdk)},
    {FTRACE_CONFIG_DRAIN_BUFFER_PERCENT, U32, AT(drain_buffer_percent)},
    {FTRACE_CONFIG_KPROBE_EVENTS, READ, 0, add_kprobe},
    {FTRACE_CONFIG_DEBUG_FTRACE_ABI, BOOL, AT(debug_ftrace_abi)},
    {FTRACE_CONFIG_DENSER_GENERIC_EVENT_ENCODING, READ, 0, read_generic_encoding},
    {FTRACE_CONFIG_FUNCTION_GRAPH_MAX_DEPTH, U32, AT(function_graph_max_depth)},
    {FTRACE_CONFIG_ATRACE_USERSPACE_ONLY, BOOL, AT(atrace_userspace_only)},
    {FTRACE_CONFIG_TIDS_TO_TRACE, READ, 0, add_tids},
    {FTRACE_CONFIG_TRACEFS_OPTIONS, READ, 0, add_option},
    {FTRACE_CONFIG_TRACING_CPUMASK, TEXT, AT(tracing_cpumask)},
    {FTRACE_CONFIG_PACKET_HEADERS, BOOL, AT(packet_headers)},
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
    if (!rc && pb_find(bytes, FROZEN_FTRACE_CONFIG_INSTANCE_NAME, &name))
        c->instance_name = text_of(c, &name);
    if (!rc && !*c->instance_name)
        rc = error_set(err, -MRD_EINVALID, "frozen_ftrace_config: instance_name is missing");
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
