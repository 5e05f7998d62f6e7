/* Imports PerfettoMetatrace: what the tracing daemons and tp_shell record of themselves. */
#include "importer/system/system_internal.h"

#include "wire/fields.h"

/* A string given in full, or as the number of one that this or an earlier packet of the sequence gave. */
static strid text_of(struct packet *p, const struct pb_field *full, const struct pb_field *iid)
{
    struct machine_ctx *m = p->m;
    if (full->id)
        return import_slice(m->im, pb_bytes(full));
    const uint64_t *known =
        iid->id ? u64map_get(&m->system->metatrace_strings, (uint64_t)p->gen->seq->id << 32 ^ pb_u64(iid)) : NULL;
    return known ? (strid)*known : 0;
}

static void add_arg(struct packet *p, struct slice bytes, struct arg_list *args)
{
    struct pb_field key = {0}, key_iid = {0}, value = {0}, value_iid = {0}, f;
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f))
        *(f.id == PERFETTO_METATRACE_ARG_KEY       ? &key
          : f.id == PERFETTO_METATRACE_ARG_VALUE   ? &value
          : f.id == PERFETTO_METATRACE_ARG_KEY_IID ? &key_iid
                                                   : &value_iid) = f;
    strid k = text_of(p, &key, &key_iid);
    if (k)
        arg_list_add(&p->m->st->args, args, k, k, ARG_STRING, text_of(p, &value, &value_iid));
}

static void learn_string(struct packet *p, struct slice bytes)
{
    struct pb_field iid, value;
    if (pb_find(bytes, PERFETTO_METATRACE_INTERNED_STRING_IID, &iid) &&
        pb_find(bytes, PERFETTO_METATRACE_INTERNED_STRING_VALUE, &value) &&
        !u64map_set(&p->m->system->metatrace_strings, (uint64_t)p->gen->seq->id << 32 ^ pb_u64(&iid),
                    import_slice(p->m->im, pb_bytes(&value))))
        p->m->im->failed = true;
}

/* What a packet says. */
struct meta_packet {
    struct pb_field name, name_iid, counter_name;
    uint64_t event, counter, duration;
    bool is_event, is_counter;
    int32_t value;
    uint32_t tid;
    struct arg_list args;
};

static void read_packet(struct packet *p, struct meta_packet *e)
{
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        e->is_event |= f.id == PERFETTO_METATRACE_EVENT_ID || f.id == PERFETTO_METATRACE_EVENT_NAME ||
                       f.id == PERFETTO_METATRACE_EVENT_NAME_IID;
        e->is_counter |= f.id == PERFETTO_METATRACE_COUNTER_ID || f.id == PERFETTO_METATRACE_COUNTER_NAME;
        switch (f.id) {
        case PERFETTO_METATRACE_EVENT_ID:
            e->event = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_COUNTER_ID:
            e->counter = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_EVENT_DURATION_NS:
            e->duration = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_COUNTER_VALUE:
            e->value = pb_i32(&f);
            break;
        case PERFETTO_METATRACE_THREAD_ID:
            e->tid = pb_u32(&f);
            break;
        case PERFETTO_METATRACE_HAS_OVERRUNS:
            stats_add(&p->m->st->stats, p->m->id, STAT_metatrace_overruns, pb_bool(&f));
            break;
        case PERFETTO_METATRACE_ARGS:
            add_arg(p, pb_bytes(&f), &e->args);
            break;
        case PERFETTO_METATRACE_EVENT_NAME:
            e->name = f;
            break;
        case PERFETTO_METATRACE_COUNTER_NAME:
            e->counter_name = f;
            break;
        case PERFETTO_METATRACE_EVENT_NAME_IID:
            e->name_iid = f;
            break;
        }
    }
}

void metatrace_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct meta_packet e = {0};
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == PERFETTO_METATRACE_INTERNED_STRINGS)
            learn_string(p, pb_bytes(&f));
    read_packet(p, &e);
    uint32_t utid = e.is_event || e.is_counter ? process_tracker_thread(m->processes, e.tid) : UTID_NONE;
    if (e.is_event) {
        strid s = text_of(p, &e.name, &e.name_iid);
        if (!s)
            s = strpool_printf(&m->st->strings, "Event %llu", (unsigned long long)e.event);
        uint32_t track = track_intern_int(m->im->tracks, m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
        slice_scoped(m->im->slices, m->id, p->ts, track, import_str(m->im, "metatrace"), s, (int64_t)e.duration,
                     args_intern(&m->st->args, e.args.p, e.args.n));
    } else if (e.is_counter) {
        strid s = e.counter_name.id ? import_slice(m->im, pb_bytes(&e.counter_name))
                                    : strpool_printf(&m->st->strings, "Counter %llu", (unsigned long long)e.counter);
        struct track_dim dims[] = {{"utid", DIM_INT, utid}, {"name", DIM_STR, s}};
        counter_push(m->im, p->ts, system_counter_track(m, "metatrace_counter", s, NULL, dims, 2), (double)e.value);
    }
    arg_list_free(&e.args);
}
