/* Owns PerfettoMetatrace: what the tracing daemons and tp_shell record of themselves. */
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

void metatrace_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct pb_field name = {0}, name_iid = {0}, counter_name = {0}, f;
    uint64_t event = 0, counter = 0, duration = 0;
    bool is_event = false, is_counter = false;
    int32_t value = 0;
    uint32_t tid = 0;
    struct arg_list args = {0};
    struct pb_cursor c = pb_cursor(p->field);
    while (pb_next(&c, &f))
        if (f.id == PERFETTO_METATRACE_INTERNED_STRINGS)
            learn_string(p, pb_bytes(&f));
    c = pb_cursor(p->field);
    while (pb_next(&c, &f)) {
        is_event |= f.id == PERFETTO_METATRACE_EVENT_ID || f.id == PERFETTO_METATRACE_EVENT_NAME ||
                    f.id == PERFETTO_METATRACE_EVENT_NAME_IID;
        is_counter |= f.id == PERFETTO_METATRACE_COUNTER_ID || f.id == PERFETTO_METATRACE_COUNTER_NAME;
        switch (f.id) {
        case PERFETTO_METATRACE_EVENT_ID:
            event = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_COUNTER_ID:
            counter = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_EVENT_DURATION_NS:
            duration = pb_u64(&f);
            break;
        case PERFETTO_METATRACE_COUNTER_VALUE:
            value = pb_i32(&f);
            break;
        case PERFETTO_METATRACE_THREAD_ID:
            tid = pb_u32(&f);
            break;
        case PERFETTO_METATRACE_HAS_OVERRUNS:
            stats_add(&m->st->stats, m->id, STAT_metatrace_overruns, pb_bool(&f));
            break;
        case PERFETTO_METATRACE_ARGS:
            add_arg(p, pb_bytes(&f), &args);
            break;
        case PERFETTO_METATRACE_EVENT_NAME:
            name = f;
            break;
        case PERFETTO_METATRACE_COUNTER_NAME:
            counter_name = f;
            break;
        case PERFETTO_METATRACE_EVENT_NAME_IID:
            name_iid = f;
            break;
        }
    }
    uint32_t utid = is_event || is_counter ? process_tracker_thread(m->processes, tid) : UTID_NONE;
    if (is_event) {
        strid s = text_of(p, &name, &name_iid);
        if (!s)
            s = strpool_printf(&m->st->strings, "Event %llu", (unsigned long long)event);
        uint32_t track = track_intern_int(m->im->tracks, m->id, "thread_execution", TRACK_SLICE, "utid", utid, 0);
        slice_scoped(m->im->slices, m->id, p->ts, track, import_str(m->im, "metatrace"), s, (int64_t)duration,
                     args_intern(&m->st->args, args.p, args.n));
    } else if (is_counter) {
        strid s = counter_name.id ? import_slice(m->im, pb_bytes(&counter_name))
                                  : strpool_printf(&m->st->strings, "Counter %llu", (unsigned long long)counter);
        struct track_dim dims[] = {{"utid", DIM_INT, utid}, {"name", DIM_STR, s}};
        counter_push(m->im, p->ts, system_counter_track(m, "metatrace_counter", s, NULL, dims, 2), (double)value);
    }
    arg_list_free(&args);
}
