/* Imports counters of GPUs. Descriptions come with the values or by number from the sequence's interned data; they are
 * read in the order of the file, so that a description may follow what it describes in time. */
#include "importer/system/system_internal.h"

#include "base/hash.h"
#include "wire/fields.h"

#include <stdio.h>

enum {
    NO_LAST = UINT32_MAX, /* of a counter that looks forward: a value holds from its sample on */
    INLINE = 0,           /* the scope of ids of descriptions that come with the values */
};

/* What an id means: the value of system_machine.gpu_counters is track << 32 | last row + 1 (or NO_LAST). */
static uint64_t key_of(uint64_t scope, uint32_t id)
{
    return scope == INLINE ? id : hash_combine(scope, id) | 1ull << 63;
}

static const char *unit_name(uint64_t unit)
{
    static const char *const names[] = {
        "",   "bit", "Kb", "Mb",     "Gb",    "Tb",        "Pb",       "B",           "KB", "MB", "GB",
        "TB", "PB",  "Hz", "KHz",    "MHz",   "GHz",       "THz",      "PHz",         "ns", "us", "ms",
        "s",  "min", "h",  "Vertex", "Pixel", "Triangle",  "mW",       "W",           "kW", "J",  "V",
        "A",  "C",   "F",  "K",      "%",     "Primitive", "Fragment", "Instruction",
    };
    return unit < sizeof names / sizeof *names ? names[unit] : "Unknown";
}

/* "B:Pixel/s:ms"; 0 when no unit is told. */
static strid unit_of(struct machine_ctx *m, struct slice spec)
{
    char text[256] = "";
    size_t n = 0;
    uint64_t unit;
    bool any = false;
    struct pb_numbers numbers = pb_numbers(spec, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_NUMERATOR_UNITS);
    for (bool first = true; pb_next_number(&numbers, &unit) && n < sizeof text; first = false, any = true)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", first ? "" : ":", unit_name(unit));
    numbers = pb_numbers(spec, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_DENOMINATOR_UNITS);
    bool first = true;
    while (pb_next_number(&numbers, &unit) && n < sizeof text) {
        any = true;
        if (unit == GPU_COUNTER_DESCRIPTOR_MEASURE_UNIT_NONE)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", first ? "/" : ":", unit_name(unit));
        first = false;
    }
    return any ? import_str(m->im, text) : 0;
}

struct group_names {
    strid name, description;
};

/* Where the groups of a descriptor are described, by their numbers: each may be asked for by every counter. */
struct described {
    VEC(struct group_names)
    groups;
    struct u64map index; /* number -> in `groups`; the first of a number counts */
};

static void described_free(struct described *d)
{
    vec_free(&d->groups);
    u64map_free(&d->index);
}

static struct described read_groups(struct machine_ctx *m, struct slice descriptor)
{
    struct described d = {0};
    struct pb_cursor c = pb_cursor(descriptor);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id != GPU_COUNTER_DESCRIPTOR_COUNTER_GROUPS ||
            !pb_find(pb_bytes(&f), GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_GROUP_ID, &g))
            continue;
        struct slice spec = pb_bytes(&f);
        bool added = false;
        uint64_t *at = u64map_put(&d.index, pb_u64(&g), &added);
        if (at && added)
            *at = d.groups.n;
        if (!at || (added && !vec_push(&d.groups,
                                       ((struct group_names){
                                           pb_find(spec, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_NAME, &g)
                                               ? import_slice(m->im, pb_bytes(&g))
                                               : 0,
                                           pb_find(spec, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_DESCRIPTION, &g)
                                               ? import_slice(m->im, pb_bytes(&g))
                                               : 0})))) {
            m->im->failed = true;
            described_free(&d);
            return (struct described){0};
        }
    }
    return d;
}

static void add_group_row(struct machine_ctx *m, const struct described *d, uint64_t group, uint32_t track)
{
    const uint64_t *at = u64map_get(&d->index, group);
    struct group_names names = at ? d->groups.p[*at] : (struct group_names){0, 0};
    gpu_counter_group_insert(m->st, &(struct gpu_counter_group_row){.group_id = (int32_t)group,
                                                                    .track_id = track,
                                                                    .name = names.name,
                                                                    .description = names.description});
}

static void invalid_spec(struct packet *p, bool has_id, uint32_t id, strid name)
{
    struct arg_list list = {0};
    struct args *args = &p->m->st->args;
    if (has_id)
        arg_list_uint(args, &list, "counter_id", id);
    arg_list_str(args, &list, "counter_name", name);
    import_log(p->m, STAT_gpu_counters_invalid_spec, p->has_ts ? p->ts : COL_NULL, p->byte_offset,
               args_intern(args, list.p, list.n));
    arg_list_free(&list);
}

static uint32_t counter_track(struct machine_ctx *m, uint32_t gpu, strid name, strid description, strid unit)
{
    struct arg_list args = {0};
    arg_list_str(&m->st->args, &args, "description", description);
    struct track_dim dims[] = {{"ugpu", DIM_INT, system_gpu(m, gpu)}, {"gpu", DIM_INT, gpu}, {"name", DIM_STR, name}};
    struct track_spec spec = {.type = "gpu_counter",
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .unit = unit,
                              .parent = UINT32_MAX,
                              .source_args = args_intern(&m->st->args, args.p, args.n),
                              .dims = dims,
                              .n_dims = 3};
    arg_list_free(&args);
    return track_intern(m->im->tracks, m->id, &spec);
}

static void add_counter(struct packet *p, uint32_t gpu, uint64_t scope, const struct described *described,
                        struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint32_t id = 0;
    bool has_id = false, has_name = false;
    strid name = 0, description = 0;
    uint64_t direction = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_COUNTER_ID) {
            id = pb_u32(&f);
            has_id = true;
        } else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_NAME) {
            name = import_slice(m->im, pb_bytes(&f));
            has_name = true;
        } else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_DESCRIPTION) {
            description = import_slice(m->im, pb_bytes(&f));
        } else if (f.id == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_VALUE_DIRECTION) {
            direction = pb_u64(&f);
        }
    }
    bool added = false;
    uint64_t *slot = NULL;
    if (has_id && has_name) {
        slot = u64map_put(&m->system->gpu_counters, key_of(scope, id), &added);
        if (!slot) {
            m->im->failed = true;
            return;
        }
    }
    if (!slot || (!added && scope == INLINE)) {
        invalid_spec(p, has_id, id, name);
        return;
    }
    uint32_t track = counter_track(m, gpu, name, description, unit_of(m, bytes));
    if (added) {
        bool forwards = direction == GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_VALUE_DIRECTION_FORWARDS_LOOKING;
        *slot = (uint64_t)track << 32 | (forwards ? NO_LAST : 0);
    }
    struct pb_numbers groups = pb_numbers(bytes, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_SPEC_GROUPS);
    uint64_t group;
    bool any = false;
    for (; pb_next_number(&groups, &group); any = true)
        add_group_row(m, described, group, track);
    if (!any)
        add_group_row(m, described, 0, track);
}

/* A group that lists its counters. */
static void add_group(struct packet *p, uint64_t scope, const struct described *described, struct slice bytes)
{
    struct pb_field f;
    uint64_t group = pb_find(bytes, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_GROUP_ID, &f) ? pb_u64(&f) : 0, id;
    struct pb_numbers ids = pb_numbers(bytes, GPU_COUNTER_DESCRIPTOR_GPU_COUNTER_GROUP_SPEC_COUNTER_IDS);
    while (pb_next_number(&ids, &id)) {
        const uint64_t *counter = u64map_get(&p->m->system->gpu_counters, key_of(scope, (uint32_t)id));
        if (counter)
            add_group_row(p->m, described, group, (uint32_t)(*counter >> 32));
    }
}

static void add_descriptor(struct packet *p, uint32_t gpu, uint64_t scope, struct slice descriptor)
{
    struct described described = read_groups(p->m, descriptor);
    struct pb_cursor c = pb_cursor(descriptor);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_DESCRIPTOR_SPECS)
            add_counter(p, gpu, scope, &described, pb_bytes(&f));
    c = pb_cursor(descriptor);
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_DESCRIPTOR_COUNTER_GROUPS)
            add_group(p, scope, &described, pb_bytes(&f));
    described_free(&described);
}

struct event {
    uint32_t gpu;
    uint64_t iid;
    bool has_iid, has_values;
    struct slice descriptor;
};

static struct event read_event(struct slice bytes)
{
    struct event e = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR:
            e.descriptor = pb_bytes(&f);
            break;
        case GPU_COUNTER_EVENT_COUNTERS:
            e.has_values = true;
            break;
        case GPU_COUNTER_EVENT_GPU_ID:
            e.gpu = pb_u32(&f);
            break;
        case GPU_COUNTER_EVENT_COUNTER_DESCRIPTOR_IID:
            e.has_iid = true;
            e.iid = pb_u64(&f);
            break;
        }
    }
    return e;
}

/* The scope of the ids of an interned descriptor: its sequence, and what it is now (it may be told anew). */
static uint64_t interned_scope(const struct packet *p, uint64_t iid, struct slice entry)
{
    return hash_combine(hash_keyed(p->m->im->secret, p->gen->seq->id, iid), (uint64_t)(uintptr_t)entry.p);
}

static struct slice interned_entry(const struct packet *p, uint64_t iid)
{
    return interned_find(p->gen, INTERNED_DATA_GPU_COUNTER_DESCRIPTORS, iid);
}

enum tokenize_result gpu_counter_event_tokenize(struct packet *p)
{
    struct event e = read_event(p->field);
    struct pb_field f;
    if (e.has_iid) {
        struct slice entry = interned_entry(p, e.iid);
        uint64_t scope = interned_scope(p, e.iid, entry);
        bool added = false;
        if (entry.len && u64map_put(&p->m->system->gpu_descriptors, scope, &added) && added &&
            pb_find(entry, INTERNED_GPU_COUNTER_DESCRIPTOR_COUNTER_DESCRIPTOR, &f)) {
            struct slice descriptor = pb_bytes(&f);
            add_descriptor(p, pb_find(entry, INTERNED_GPU_COUNTER_DESCRIPTOR_GPU_ID, &f) ? pb_u32(&f) : e.gpu, scope,
                           descriptor);
        }
    } else if (e.descriptor.len) {
        add_descriptor(p, e.gpu, INLINE, e.descriptor);
    }
    if (!e.has_values)
        return TOKENIZE_DONE;
    if (p->has_ts)
        return TOKENIZE_PUSH;
    import_log(p->m, STAT_gpu_counters_missing_timestamp, COL_NULL, p->byte_offset, ARGSET_NONE);
    return TOKENIZE_DONE;
}

static void push_value(struct packet *p, uint64_t scope, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint32_t id = 0;
    bool has_id = false, has_value = false;
    double value = 0;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_COUNTER_ID) {
            id = pb_u32(&f);
            has_id = true;
        } else if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_INT_VALUE) {
            value = (double)pb_i64(&f);
            has_value = true;
        } else if (f.id == GPU_COUNTER_EVENT_GPU_COUNTER_DOUBLE_VALUE) {
            value = pb_double(&f);
            has_value = true;
        }
    }
    if (!has_id || !has_value)
        return;
    uint64_t *slot = u64map_get(&m->system->gpu_counters, key_of(scope, id));
    if (!slot) {
        if (scope != INLINE)
            stats_add(&m->st->stats, m->id, STAT_gpu_counters_invalid_spec, 1);
        return;
    }
    uint32_t track = (uint32_t)(*slot >> 32), last = (uint32_t)*slot;
    if (last == NO_LAST) {
        counter_push(m->im, p->ts, track, value);
        return;
    }
    /* The value is that of the time since the sample before: it belongs to the row of that one. */
    if (last)
        ROW_SET(m->st, counter, value, last - 1, column_f64_word(value));
    counter_push(m->im, p->ts, track, 0);
    *slot = (uint64_t)track << 32 | m->st->t[T_counter].n_rows;
}

void gpu_counter_event_parse(struct packet *p)
{
    struct event e = read_event(p->field);
    uint64_t scope = INLINE;
    if (e.has_iid) {
        struct slice entry = interned_entry(p, e.iid);
        if (!entry.len) {
            stats_add(&p->m->st->stats, p->m->id, STAT_gpu_counters_invalid_spec, 1);
            return;
        }
        scope = interned_scope(p, e.iid, entry);
    }
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == GPU_COUNTER_EVENT_COUNTERS)
            push_value(p, scope, pb_bytes(&f));
}
