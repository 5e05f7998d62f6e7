/* Events that the program does not know: described in the trace itself, or carrying their names
 * (GenericEventDescriptor, GenericFtraceEvent); and the kernel track events among them. */
#include "importer/ftrace/ftrace_internal.h"
#include "importer/ftrace/packet_headers.h"

#include "wire/fields.h"

enum { MAX_FIELDS = 32 }; /* a descriptor with a higher field number is taken for damage */

enum scope { SCOPE_THREAD, SCOPE_PROCESS, SCOPE_CPU, SCOPE_CUSTOM, SCOPE_COUNT };

/* A tracepoint whose field names say that it is a slice or a counter. Field numbers, 0: none. */
struct track_event_shape {
    bool slice, counter;
    uint8_t slice_type, slice_name, track_name, value, scope_field;
    uint8_t scope; /* enum scope */
};

struct descriptor {
    strid name;
    uint8_t types[MAX_FIELDS]; /* 0: no such field */
    strid names[MAX_FIELDS];
    struct track_event_shape shape;
};

struct generic_events {
    struct ftrace_machine *f;
    struct u64map rows; /* field number in FtraceEvent -> index in descriptors */
    struct packet_headers packets;
    VEC(struct descriptor)
    descriptors;
};

/* aux of ARGS_KIND_FTRACE_GENERIC: machine << 18 | index in its descriptors; the last index: the old form. */
enum { AUX_ROW_BITS = 18, AUX_LEGACY = (1 << AUX_ROW_BITS) - 1, AUX_MACHINES = 1 << (ARGS_AUX_BITS - AUX_ROW_BITS) };

static bool plain_number(uint8_t type)
{
    return type == FIELD_DESCRIPTOR_PROTO_TYPE_INT64 || type == FIELD_DESCRIPTOR_PROTO_TYPE_UINT64 ||
           type == FIELD_DESCRIPTOR_PROTO_TYPE_INT32 || type == FIELD_DESCRIPTOR_PROTO_TYPE_UINT32;
}

/* The naming convention of kernel track events. */
static void find_shape(struct importer *im, struct descriptor *d)
{
    struct track_event_shape *s = &d->shape;
    for (uint8_t n = 1; n < MAX_FIELDS; n++) {
        struct slice name = strpool_view(&im->st->strings, d->names[n]);
        bool number = plain_number(d->types[n]), text = d->types[n] == FIELD_DESCRIPTOR_PROTO_TYPE_STRING;
        if (number && slice_eq_str(name, "track_event_type")) {
            s->slice_type = n;
        } else if (text && slice_eq_str(name, "slice_name")) {
            s->slice_name = n;
        } else if (text && slice_eq_str(name, "track_name")) {
            s->track_name = n;
        } else if (number && slice_eq_str(name, "counter_value")) {
            s->value = n;
        } else if (number && slice_starts(name, "scope_")) {
            s->scope_field = n;
            s->scope = slice_eq_str(name, "scope_tgid")  ? SCOPE_PROCESS
                       : slice_eq_str(name, "scope_cpu") ? SCOPE_CPU
                                                         : SCOPE_CUSTOM;
        }
    }
    s->slice = s->slice_type && s->slice_name;
    s->counter = !s->slice && s->value;
}

static void bad_descriptor(struct generic_events *g)
{
    stats_add(&g->f->m->st->stats, g->f->m->id, STAT_ftrace_generic_descriptor_errors, 1);
}

static bool add_field(struct generic_events *g, struct descriptor *d, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    uint32_t number = 0, type = 0;
    struct slice name = {0};
    while (pb_next(&c, &f)) {
        if (f.id == FIELD_DESCRIPTOR_PROTO_NAME)
            name = pb_bytes(&f);
        else if (f.id == FIELD_DESCRIPTOR_PROTO_NUMBER)
            number = pb_u32(&f);
        else if (f.id == FIELD_DESCRIPTOR_PROTO_TYPE)
            type = pb_u32(&f);
    }
    if (number >= MAX_FIELDS || type > FIELD_DESCRIPTOR_PROTO_TYPE_SINT64)
        return false;
    d->types[number] = (uint8_t)type;
    d->names[number] = import_slice(g->f->im, name);
    return true;
}

void generic_events_add_descriptor(struct generic_events *g, uint32_t id, struct slice descriptor)
{
    struct descriptor d = {0};
    struct pb_cursor c = pb_cursor(descriptor);
    struct pb_field f;
    if (u64map_get(&g->rows, id))
        return; /* every first bundle of a writer may bring it */
    d.name = import_str(g->f->im, "");
    while (pb_next(&c, &f)) {
        if (f.id == DESCRIPTOR_PROTO_NAME) {
            d.name = import_slice(g->f->im, pb_bytes(&f));
        } else if (f.id == DESCRIPTOR_PROTO_FIELD && !add_field(g, &d, pb_bytes(&f))) {
            bad_descriptor(g);
            return;
        }
    }
    if (g->descriptors.n >= AUX_LEGACY) {
        bad_descriptor(g);
        return;
    }
    find_shape(g->f->im, &d);
    packet_headers_describe(&g->packets, id, descriptor);
    if (!vec_push(&g->descriptors, d) || !u64map_set(&g->rows, id, g->descriptors.n - 1))
        g->f->im->failed = true;
}

/* --- args -------------------------------------------------------------------------------------------------------- */

static void decode_value(struct args *a, strid key, uint8_t type, const struct pb_field *f, struct arg_list *out)
{
    switch (type) {
    case FIELD_DESCRIPTOR_PROTO_TYPE_INT64:
    case FIELD_DESCRIPTOR_PROTO_TYPE_INT32:
    case FIELD_DESCRIPTOR_PROTO_TYPE_BOOL:
    case FIELD_DESCRIPTOR_PROTO_TYPE_ENUM:
    case FIELD_DESCRIPTOR_PROTO_TYPE_SFIXED32:
    case FIELD_DESCRIPTOR_PROTO_TYPE_SFIXED64:
        arg_list_add(a, out, key, key, ARG_INT, pb_i64(f));
        break;
    case FIELD_DESCRIPTOR_PROTO_TYPE_UINT64:
    case FIELD_DESCRIPTOR_PROTO_TYPE_UINT32:
    case FIELD_DESCRIPTOR_PROTO_TYPE_FIXED32:
    case FIELD_DESCRIPTOR_PROTO_TYPE_FIXED64:
        arg_list_add(a, out, key, key, ARG_UINT, pb_i64(f));
        break;
    case FIELD_DESCRIPTOR_PROTO_TYPE_SINT32:
    case FIELD_DESCRIPTOR_PROTO_TYPE_SINT64:
        arg_list_add(a, out, key, key, ARG_INT, pb_s64(f));
        break;
    case FIELD_DESCRIPTOR_PROTO_TYPE_STRING:
    case FIELD_DESCRIPTOR_PROTO_TYPE_BYTES: {
        struct slice s = pb_bytes(f);
        arg_list_add(a, out, key, key, ARG_STRING, strpool_intern(a->strings, s.p, s.len));
        break;
    }
    case FIELD_DESCRIPTOR_PROTO_TYPE_DOUBLE:
        arg_list_add(a, out, key, key, ARG_REAL, column_f64_word(pb_double(f)));
        break;
    case FIELD_DESCRIPTOR_PROTO_TYPE_FLOAT:
        arg_list_add(a, out, key, key, ARG_REAL, column_f64_word((double)pb_float(f)));
        break;
    }
}

/* GenericFtraceEvent: each field is a message of a name and one value. */
static void decode_legacy(struct args *a, struct slice payload, struct arg_list *out)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f, v;
    while (pb_next(&c, &f)) {
        if (f.id != FTRACE_GENERIC_FIELD)
            continue;
        struct pb_cursor inner = pb_sub(&f);
        struct slice name = {0}, text = {0};
        int64_t number = 0;
        uint32_t which = 0;
        while (pb_next(&inner, &v)) {
            if (v.id == GENERIC_FTRACE_EVENT_FIELD_NAME) {
                name = pb_bytes(&v);
            } else if (v.id == GENERIC_FTRACE_EVENT_FIELD_STR_VALUE) {
                text = pb_bytes(&v);
                which = GENERIC_FTRACE_EVENT_FIELD_STR_VALUE;
            } else if (v.id == GENERIC_FTRACE_EVENT_FIELD_INT_VALUE || v.id == GENERIC_FTRACE_EVENT_FIELD_UINT_VALUE) {
                number = pb_i64(&v);
                which = v.id;
            }
        }
        strid key = strpool_intern(a->strings, name.p, name.len);
        if (which == GENERIC_FTRACE_EVENT_FIELD_STR_VALUE)
            arg_list_add(a, out, key, key, ARG_STRING, strpool_intern(a->strings, text.p, text.len));
        else if (which)
            arg_list_add(a, out, key, key, ARG_INT, number);
    }
}

static void decode(void *ctx, uint32_t aux, struct slice payload, struct arg_list *out)
{
    struct importer *im = ctx;
    struct args *a = &im->st->args;
    uint32_t row = aux & AUX_LEGACY, machine = aux >> AUX_ROW_BITS;
    if (row == AUX_LEGACY) {
        decode_legacy(a, payload, out);
        return;
    }
    if (machine >= im->machines.n || row >= im->machines.p[machine]->ftrace->generic->descriptors.n)
        return;
    const struct descriptor *d = &im->machines.p[machine]->ftrace->generic->descriptors.p[row];
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id < MAX_FIELDS && d->types[f.id])
            decode_value(a, d->names[f.id], d->types[f.id], &f, out);
}

static void add_row(const struct ftrace_event *e, struct ftrace_cpu *c, strid name, uint32_t row, uint32_t common_flags)
{
    struct kept_sharing *all = &e->f->kinds[FTRACE_EVENT_GENERIC].sharing;
    uint32_t utid = event_utid(e);
    argset args = ARGSET_NONE;
    if (e->payload.len && e->m->id < AUX_MACHINES)
        args = kept_args(&e->f->kept, all, ARGS_KIND_FTRACE_GENERIC, e->m->id << AUX_ROW_BITS | row, e->payload,
                         KEPT_IN_FILE);
    ftrace_event_insert(e->m->st, &(struct ftrace_event_row){.ts = e->ts,
                                                             .name = name,
                                                             .utid = utid,
                                                             .arg_set_id = args,
                                                             .common_flags = common_flags,
                                                             .ucpu = ftrace_ucpu(c)});
}

void generic_events_parse_legacy(const struct ftrace_event *e, struct ftrace_cpu *c, uint32_t common_flags)
{
    struct pb_field f;
    struct slice name = pb_find(e->payload, FTRACE_GENERIC_EVENT_NAME, &f) ? pb_bytes(&f) : slice_of("", 0);
    add_row(e, c, import_slice(e->m->im, name), AUX_LEGACY, common_flags);
}

/* --- kernel track events ----------------------------------------------------------------------------------------- */

static void format_error(const struct ftrace_event *e)
{
    stats_add(&e->m->st->stats, e->m->id, STAT_kernel_trackevent_format_error, 1);
}

static uint32_t shape_track(const struct ftrace_event *e, const struct descriptor *d, const struct fields *f,
                            strid track_name)
{
    static const struct {
        const char *slices, *counters, *dimension;
    } kinds[SCOPE_COUNT] = {
        [SCOPE_THREAD] = {"kernel_trackevent_thread_slice", "kernel_trackevent_thread_counter", "utid"},
        [SCOPE_PROCESS] = {"kernel_trackevent_process_slice", "kernel_trackevent_process_counter", "upid"},
        [SCOPE_CPU] = {"kernel_trackevent_cpu_slice", "kernel_trackevent_cpu_counter", "cpu"},
        [SCOPE_CUSTOM] = {"kernel_trackevent_custom_slice", "kernel_trackevent_custom_counter", "scope"},
    };
    const struct track_event_shape *s = &d->shape;
    int64_t scope = field_i64(f, s->scope_field);
    switch (s->scope) {
    case SCOPE_THREAD:
        scope = event_utid(e);
        break;
    case SCOPE_PROCESS: /* a real tgid; the thread that tells need not be of it */
        scope = process_tracker_process(e->m->processes, scope);
        break;
    case SCOPE_CPU:
        scope = (uint32_t)scope;
        break;
    }
    return FTRACE_TRACK(
        e, s->slice ? TRACK_SLICE : TRACK_COUNTER, s->slice ? kinds[s->scope].slices : kinds[s->scope].counters,
        track_name, DIM_I(kinds[s->scope].dimension, scope), DIM_S("tracepoint", d->name), DIM_S("name", track_name));
}

static void parse_shape(const struct ftrace_event *e, const struct descriptor *d)
{
    const struct track_event_shape *s = &d->shape;
    struct fields f;
    fields_read(e->payload, &f);
    if ((s->track_name && !field_has(&f, s->track_name)) || (s->scope_field && !field_has(&f, s->scope_field))) {
        format_error(e);
        return;
    }
    strid track_name = s->track_name ? field_str(e, &f, s->track_name) : d->name;
    uint32_t track = shape_track(e, d, &f, track_name);
    if (s->counter) {
        if (field_has(&f, s->value))
            ftrace_counter(e, track, (double)field_i64(&f, s->value));
        else
            format_error(e);
        return;
    }
    if (!field_has(&f, s->slice_type) || !field_has(&f, s->slice_name)) {
        format_error(e);
        return;
    }
    switch ((char)field_i64(&f, s->slice_type)) {
    case 'B':
        ftrace_begin(e, track, 0, field_str(e, &f, s->slice_name), ARGSET_NONE);
        break;
    case 'E':
        ftrace_end(e, track, 0, 0, NULL);
        break;
    case 'I':
        ftrace_instant(e, track, 0, field_str(e, &f, s->slice_name), ARGSET_NONE);
        break;
    default:
        format_error(e);
    }
}

/* Payload fields that the descriptor does not have are counted; decoding leaves them out. */
static void check_fields(struct generic_events *g, const struct descriptor *d, struct slice payload)
{
    struct pb_cursor c = pb_cursor(payload);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id >= MAX_FIELDS || !d->types[f.id])
            bad_descriptor(g);
}

/* A packet whose headers our recorder wrote down. */
static void parse_packet(const struct ftrace_event *e, struct ftrace_cpu *c, const struct packet_event *event,
                         enum packet_direction direction)
{
    struct packet_bytes bytes;
    struct packet_seen seen = {.m = e->m, .ts = e->ts, .direction = direction};
    packet_headers_read(event, e->payload, &bytes);
    if (!packet_headers_tcp(&bytes, &seen.tcp))
        return;
    seen.utid = event_utid(e);
    seen.ucpu = (uint32_t)ftrace_ucpu(c);
    network_packet_seen(&seen);
}

void generic_events_parse(struct generic_events *g, const struct ftrace_event *e, struct ftrace_cpu *c, bool row,
                          bool parse, uint32_t common_flags)
{
    const uint64_t *at = u64map_get(&g->rows, e->id);
    const struct descriptor *d = at ? &g->descriptors.p[*at] : NULL;
    if (d && parse && (d->shape.slice || d->shape.counter))
        parse_shape(e, d);
    enum packet_direction direction;
    if (d && parse && packet_headers_know(&g->packets, e->id, &direction))
        parse_packet(e, c, &g->packets.events[direction], direction);
    if (!row)
        return;
    if (!d) {
        bad_descriptor(g);
        return;
    }
    check_fields(g, d, e->payload);
    add_row(e, c, d->name, (uint32_t)*at, common_flags);
}

struct generic_events *generic_events_open(struct ftrace_machine *f)
{
    struct generic_events *g = mem_zalloc(sizeof *g);
    if (!g)
        return NULL;
    g->f = f;
    args_set_decoder(&f->m->st->args, ARGS_KIND_FTRACE_GENERIC, decode, f->im);
    return g;
}

void generic_events_close(struct generic_events *g)
{
    if (!g)
        return;
    vec_free(&g->descriptors);
    u64map_free(&g->rows);
    mem_free(g);
}
