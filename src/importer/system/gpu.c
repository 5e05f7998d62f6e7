/* What GPUs tell: which there are, their counters, frequency and memory. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

#include <stdio.h>

enum {
    MAX_GPUS = 256,    /* in one GpuInfo */
    LOOKS_FORWARD = 2, /* GpuCounterSpec.ValueDirection */
};

uint32_t system_gpu(struct machine_ctx *m, uint32_t gpu)
{
    bool added;
    uint64_t *row = u64map_put(&m->system->gpus, gpu, &added);
    if (!row) {
        m->im->failed = true;
        return 0;
    }
    if (added) {
        *row = gpu_insert(m->st, &(struct gpu_row){.gpu = gpu, .machine_id = m->id});
    }
    return (uint32_t)*row;
}

static strid hex_uuid(struct machine_ctx *m, struct slice bytes)
{
    char text[2 * 32 + 1] = "";
    for (size_t i = 0; i < bytes.len && i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes.p[i]);
    return import_str(m->im, text);
}

static void add_gpu(struct machine_ctx *m, uint32_t number, struct slice bytes)
{
    uint32_t row = system_gpu(m, number);
    struct arg_list args = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        strid s = f.id == GPU_INFO_GPU_UUID         ? hex_uuid(m, pb_bytes(&f))
                  : f.id == GPU_INFO_GPU_EXTRA_INFO ? 0
                                                    : import_slice(m->im, pb_bytes(&f));
        switch (f.id) {
        case GPU_INFO_GPU_NAME:
            ROW_SET(m->st, gpu, name, row, s);
            break;
        case GPU_INFO_GPU_VENDOR:
            ROW_SET(m->st, gpu, vendor, row, s);
            break;
        case GPU_INFO_GPU_MODEL:
            ROW_SET(m->st, gpu, model, row, s);
            break;
        case GPU_INFO_GPU_ARCHITECTURE:
            ROW_SET(m->st, gpu, architecture, row, s);
            break;
        case GPU_INFO_GPU_UUID:
            ROW_SET(m->st, gpu, uuid, row, s);
            break;
        case GPU_INFO_GPU_PCI_BDF:
            ROW_SET(m->st, gpu, pci_bdf, row, s);
            break;
        case GPU_INFO_GPU_EXTRA_INFO: {
            struct pb_field key, value;
            if (pb_find(pb_bytes(&f), GPU_INFO_GPU_KEY_VALUE_KEY, &key) &&
                pb_find(pb_bytes(&f), GPU_INFO_GPU_KEY_VALUE_VALUE, &value)) {
                strid k = import_slice(m->im, pb_bytes(&key));
                arg_list_add(&m->st->args, &args, k, k, ARG_STRING, import_slice(m->im, pb_bytes(&value)));
            }
            break;
        }
        }
    }
    argset set = args_intern(&m->st->args, args.p, args.n);
    if (!argset_is_none(set))
        ROW_SET_ARGS(m->st, gpu, arg_set_id, row, set);
    arg_list_free(&args);
}

void gpu_info_parse(struct packet *p)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t n = 0;
    while (pb_next(&c, &f))
        if (f.id == GPU_INFO_GPUS && n < MAX_GPUS)
            add_gpu(p->m, n++, pb_bytes(&f));
}

static const char *unit_name(uint64_t unit)
{
    static const char *const names[] = {
        "none",        "bit",       "kilobit",   "megabit",   "gigabit",   "terabit",     "petabit",
        "byte",        "kilobyte",  "megabyte",  "gigabyte",  "terabyte",  "petabyte",    "hertz",
        "kilohertz",   "megahertz", "gigahertz", "terahertz", "petahertz", "nanosecond",  "microsecond",
        "millisecond", "second",    "minute",    "hour",      "vertex",    "pixel",       "triangle",
        "milliwatt",   "watt",      "kilowatt",  "joule",     "volt",      "ampere",      "celsius",
        "fahrenheit",  "kelvin",    "percent",   "primitive", "fragment",  "instruction",
    };
    return unit < sizeof names / sizeof *names ? names[unit] : "unknown";
}

static void append_units(char *text, size_t cap, const struct pb_field *f, bool denominator, bool *any)
{
    struct pb_cursor packed = pb_sub(f);
    uint64_t unit = f->u;
    while (f->wire != PB_BYTES || pb_next_packed(&packed, &unit)) {
        size_t n = strlen(text);
        snprintf(text + n, cap - n, "%s%s", *any ? "*" : denominator ? "/" : "", unit_name(unit));
        *any = true;
        if (f->wire != PB_BYTES)
            break;
    }
}

struct gpu_counter { /* value of system_machine.gpu_counters: track << 32 | last row + 1, or the mark below */
    uint32_t track;
    uint32_t last;
};

enum { NO_LAST = UINT32_MAX }; /* counters that look forward: the value holds from its sample on */

/* The groups that a counter is in. */
static void add_counter_groups(struct machine_ctx *m, uint32_t track, struct slice spec)
{
    struct pb_cursor c = pb_cursor(spec);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id != GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_GROUPS)
            continue;
        struct pb_cursor packed = pb_sub(&f);
        uint64_t group = f.u;
        while (f.wire != PB_BYTES || pb_next_packed(&packed, &group)) {
            gpu_counter_group_insert(m->st,
                                     &(struct gpu_counter_group_row){.group_id = (int32_t)group, .track_id = track});
            if (f.wire != PB_BYTES)
                break;
        }
    }
}

static void add_counter(struct machine_ctx *m, uint32_t gpu, struct slice bytes)
{
    uint32_t id = 0, seen = 0;
    strid name = 0, description = 0;
    uint64_t direction = 0;
    char unit[128] = "";
    bool numerator = false, denominator = false;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_COUNTER_ID)
            id = pb_u32(&f);
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_NAME)
            name = import_slice(m->im, pb_bytes(&f));
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_DESCRIPTION)
            description = import_slice(m->im, pb_bytes(&f));
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_NUMERATOR_UNITS)
            append_units(unit, sizeof unit, &f, false, &numerator);
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_DENOMINATOR_UNITS)
            append_units(unit, sizeof unit, &f, true, &denominator);
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_VALUE_DIRECTION)
            direction = pb_u64(&f);
        seen |= f.id < 32 ? 1u << f.id : 0;
    }
    if ((seen & 6) != 6) {
        stats_add(&m->st->stats, m->id, STAT_gpu_counters_invalid_spec, 1);
        return;
    }
    bool added;
    uint64_t *slot = u64map_put(&m->system->gpu_counters, (uint64_t)gpu << 32 | id, &added);
    if (!slot || !added) {
        m->im->failed |= !slot;
        return;
    }
    struct arg_list args = {0};
    if (description)
        arg_list_str(&m->st->args, &args, "description", description);
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(m, gpu)}, {"gpu", DIM_INT, gpu}, {"name", DIM_STR, name}};
    struct track_spec spec = {.type = "gpu_counter",
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .unit = unit[0] ? import_str(m->im, unit) : 0,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = 3};
    arg_list_free(&args);
    uint32_t track = track_intern(m->im->tracks, m->id, &spec);
    *slot = (uint64_t)track << 32 | (direction == LOOKS_FORWARD ? NO_LAST : 0);
    add_counter_groups(m, track, bytes);
}

static void add_group(struct machine_ctx *m, uint32_t gpu, struct slice bytes)
{
    struct gpu_counter_group_row row = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_BLOCK_BLOCK_ID)
            row.group_id = pb_i32(&f);
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_BLOCK_BLOCK_CAPACITY)
            row.name = import_slice(m->im, pb_bytes(&f));
        else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_BLOCK_NAME)
            row.description = import_slice(m->im, pb_bytes(&f));
    }
    c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        if (f.id != GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_BLOCK_DESCRIPTION)
            continue;
        struct pb_cursor packed = pb_sub(&f);
        uint64_t id = f.u;
        while (f.wire != PB_BYTES || pb_next_packed(&packed, &id)) {
            const uint64_t *counter = u64map_get(&m->system->gpu_counters, (uint64_t)gpu << 32 | (uint32_t)id);
            if (counter) {
                row.track_id = (uint32_t)(*counter >> 32);
                gpu_counter_group_insert(m->st, &row);
            }
            if (f.wire != PB_BYTES)
                break;
        }
    }
}

static void add_descriptor(struct machine_ctx *m, uint32_t gpu, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_DESCRIPTOR_SPECS)
            add_counter(m, gpu, pb_bytes(&f));
    c = pb_cursor(bytes);
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_DESCRIPTOR_COUNTER_GROUPS)
            add_group(m, gpu, pb_bytes(&f));
}

static void push_value(struct packet *p, uint32_t gpu, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint32_t id = 0;
    double value = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_COUNTER_ID)
            id = pb_u32(&f);
        else if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_INT_VALUE)
            value = (double)pb_i64(&f);
        else if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_DOUBLE_VALUE)
            value = pb_double(&f);
    }
    uint64_t *slot = u64map_get(&m->system->gpu_counters, (uint64_t)gpu << 32 | id);
    if (!slot) {
        stats_add(&m->st->stats, m->id, STAT_gpu_counters_missing_spec, 1);
        return;
    }
    struct gpu_counter k = {(uint32_t)(*slot >> 32), (uint32_t)*slot};
    if (k.last == NO_LAST) {
        counter_push(m->im, p->ts, k.track, value);
        return;
    }
    /* The value is that of the time since the sample before: it belongs to the row of that one. */
    if (k.last)
        ROW_SET(m->st, counter, value, k.last - 1, column_f64_word(value));
    counter_push(m->im, p->ts, k.track, 0);
    *slot = (uint64_t)k.track << 32 | m->st->t[T_counter].n_rows;
}

void gpu_counter_event_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint32_t gpu = 0;
    struct slice descriptor = {0};
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR)
            descriptor = pb_bytes(&f);
        else if (f.id == GPU_COUNTER_EVENT_GPU_ID)
            gpu = pb_u32(&f);
        else if (f.id == GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR_IID) {
            struct slice interned = interned_find(p->gen, INTERNED_DATA_GPU_COUNTER_DESCRIPTORS, pb_u64(&f));
            struct pb_field g;
            if (pb_find(interned, INTERNED_GPU_COUNTER_DESCRIPTOR_COUNTER_DESCRIPTOR, &g))
                descriptor = pb_bytes(&g);
            if (pb_find(interned, INTERNED_GPU_COUNTER_DESCRIPTOR_GPU_ID, &g))
                gpu = pb_u32(&g);
        }
    }
    if (descriptor.len)
        add_descriptor(m, gpu, descriptor);
    c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_EVENT_COUNTERS)
            push_value(p, gpu, pb_bytes(&f));
}

void gpu_mem_total_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    uint32_t pid = 0;
    uint64_t size = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_MEM_TOTAL_EVENT_PID)
            pid = pb_u32(&f);
        else if (f.id == GPU_MEM_TOTAL_EVENT_SIZE)
            size = pb_u64(&f);
    }
    uint32_t track;
    strid name = import_str(m->im, "GPU Memory");
    if (!pid) {
        track = system_counter_track(m, "global_gpu_memory", name, "bytes", NULL, 0);
    } else {
        struct track_dim dim = {"upid", DIM_INT, process_tracker_process(m->processes, pid)};
        track = system_counter_track(m, "process_gpu_memory", name, "bytes", &dim, 1);
    }
    counter_push(m->im, p->ts, track, (double)size);
}

void gpu_frequency_parse(struct packet *p)
{
    uint32_t gpu = 0, khz = 0;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GENERIC_GPU_FREQUENCY_EVENT_GPU_ID)
            gpu = pb_u32(&f);
        else if (f.id == GENERIC_GPU_FREQUENCY_EVENT_FREQUENCY_KHZ)
            khz = pb_u32(&f);
    }
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(p->m, gpu)}, {"gpu", DIM_INT, gpu}};
    counter_push(p->m->im, p->ts,
                 system_counter_track(p->m, "gpu_frequency", import_str(p->m->im, "gpufreq"), "kHz", dims, 2),
                 (double)khz);
}
