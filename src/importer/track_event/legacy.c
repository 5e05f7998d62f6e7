/* Track events of the older kind, whose phase is a letter. */
#include "base/hash.h"
#include "importer/track_event/event.h"
#include "wire/fields.h"

enum { INSTANT_GLOBAL = 1, INSTANT_PROCESS = 2 };

/* Asynchronous slices are found again by category, id and scope. */
static bool on_async_track(struct event *e)
{
    struct machine_ctx *m = e->m;
    if (!e->legacy.id_field)
        return false;
    bool local = e->legacy.id_field == TRACK_EVENT_LEGACY_EVENT_LOCAL_ID;
    if (local && e->upid == UPID_NONE)
        return false;
    bool nestable = e->legacy.phase == 'b' || e->legacy.phase == 'e' || e->legacy.phase == 'n';
    strid scope = nestable ? e->category : e->name;
    if (e->legacy.id_scope.len)
        scope = strpool_printf(&m->st->strings, "%s:%.*s", scope ? strpool_cstr(&m->st->strings, scope) : "",
                               (int)(e->legacy.id_scope.len < 256 ? e->legacy.id_scope.len : 256),
                               (const char *)e->legacy.id_scope.p);
    /* The first event of an id names its track: an end need not repeat the name. */
    uint64_t key = hash_combine(hash_combine(hash_u64(e->legacy.id), scope), local ? e->upid : UPID_NONE);
    uint64_t *set = u64map_put(&e->t->legacy_async, key, NULL);
    if (!set) {
        m->im->failed = true;
        return false;
    }
    if (!*set) {
        struct track_dim dims[3];
        struct track_spec spec = {.type = local ? "legacy_async_process_slice" : "legacy_async_global_slice",
                                  .event_type = TRACK_SLICE,
                                  .name = e->name,
                                  .parent = UINT32_MAX,
                                  .dims = dims};
        if (local)
            dims[spec.n_dims++] = (struct track_dim){"upid", DIM_INT, e->upid};
        dims[spec.n_dims++] = (struct track_dim){"scope", DIM_STR, scope};
        dims[spec.n_dims++] = (struct track_dim){"name", DIM_STR, e->name};
        *set = (uint64_t)track_set_intern(m->im->tracks, m->id, &spec) + 1;
    }
    e->set = (uint32_t)(*set - 1);
    e->cookie = (int64_t)e->legacy.id;
    e->marks = (struct track_event_marks){
        .utid = e->utid, .has_source = true, .source_local = local, .source_id = (int64_t)e->legacy.id};
    e->is_async = true;
    return true;
}

static bool on_instant_track(struct event *e)
{
    struct machine_ctx *m = e->m;
    struct track_spec spec = {.type = "legacy_chrome_global_instants", .event_type = TRACK_SLICE, .parent = UINT32_MAX};
    switch (e->legacy.instant_scope) {
    case INSTANT_GLOBAL:
        e->row = track_intern(m->im->tracks, m->id, &spec);
        break;
    case INSTANT_PROCESS:
        if (e->upid == UPID_NONE)
            return false;
        e->row = track_intern_int(m->im->tracks, m->id, "chrome_process_instant", TRACK_SLICE, "upid", e->upid, 0);
        break;
    default:
        return e->utid != UTID_NONE;
    }
    e->marks.utid = e->utid;
    e->utid = UTID_NONE;
    return true;
}

bool legacy_associate(struct event *e)
{
    switch (e->legacy.phase) {
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
        return on_async_track(e);
    case 'i':
    case 'I':
        return on_instant_track(e);
    default:
        return true;
    }
}

/* Flow events bind to slices of their track. */
static void flow(struct event *e)
{
    struct flow_tracker *flows = e->m->im->flows;
    uint32_t track = event_track_row(e, AT_INSTANT);
    if (!e->legacy.id_field) {
        stats_add(&e->m->st->stats, e->m->id, STAT_flow_invalid_id, 1);
        return;
    }
    uint64_t source =
        e->legacy.id_field == TRACK_EVENT_LEGACY_EVENT_LOCAL_ID ? e->legacy.id ^ (uint64_t)e->upid << 32 : e->legacy.id;
    uint64_t id = flow_legacy_id(flows, source, e->category, e->name);
    if (e->legacy.phase == 's')
        flow_begin(flows, e->m->id, track, id);
    else if (e->legacy.phase == 't')
        flow_step(flows, e->m->id, track, id);
    else
        flow_end(flows, e->m->id, track, id, e->legacy.bind_to_enclosing, false);
}

/* The string of the debug annotation "name", 0 when there is none. */
static strid name_annotation(struct event *e)
{
    struct strpool *strings = &e->m->st->strings;
    struct arg_list list = {0};
    strid found = 0, key = strpool_intern_str(strings, "debug.name");
    track_event_append_args(e->m->im, e->g, e->bytes, &list);
    for (size_t i = 0; i < list.n; i++)
        if (list.p[i].key == key && list.p[i].type == ARG_STRING)
            found = (strid)list.p[i].word;
    arg_list_free(&list);
    return found;
}

static void metadata_event(struct event *e)
{
    struct slice name = strpool_view(&e->m->st->strings, e->name);
    strid value = name_annotation(e);
    if (slice_eq_str(name, "thread_name") && e->utid != UTID_NONE)
        process_tracker_thread_name(e->m->processes, e->utid, value, THREAD_NAME_TRACK_DESCRIPTOR);
    else if (slice_eq_str(name, "process_name") && e->upid != UPID_NONE)
        process_tracker_process_name(e->m->processes, e->upid, value, PROCESS_NAME_TRACK_DESCRIPTOR);
    else
        event_error(e);
}

/* Phases without a place of their own are kept as they are, for export. */
static void raw_event(struct event *e)
{
    struct storage *st = e->m->st;
    if (e->utid == UTID_NONE) {
        event_error(e);
        return;
    }
    struct arg_list list = {0};
    char phase[2] = {(char)e->legacy.phase, 0};
    arg_list_str(&st->args, &list, "legacy_event.category", e->category);
    arg_list_str(&st->args, &list, "legacy_event.name", e->name);
    arg_list_str(&st->args, &list, "legacy_event.phase", import_str(e->m->im, phase));
    if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_DURATION_US))
        arg_list_int(&st->args, &list, "legacy_event.duration_ns", (int64_t)((uint64_t)e->legacy.duration_us * 1000));
    track_event_append_args(e->m->im, e->g, e->bytes, &list);
    chrome_raw_insert(st, &(struct chrome_raw_row){.ts = e->ts,
                                                   .name = import_str(e->m->im, "track_event.legacy_event"),
                                                   .utid = e->utid,
                                                   .arg_set_id = args_intern(&st->args, list.p, list.n)});
    arg_list_free(&list);
}

void legacy_event(struct event *e)
{
    switch (e->legacy.phase) {
    case 'B':
    case 'b':
        event_begin(e);
        break;
    case 'S':
        e->marks.phase = 'S';
        event_begin(e);
        break;
    case 'E':
    case 'e':
    case 'F':
        event_end(e);
        break;
    case 'X':
        event_complete(e);
        break;
    case 's':
    case 't':
    case 'f':
        flow(e);
        break;
    case 'R':
    case 'T':
    case 'p':
        e->marks.phase = (char)e->legacy.phase;
        event_instant(e);
        break;
    case 'i':
    case 'I':
    case 'n':
        event_instant(e);
        break;
    case 'M':
        metadata_event(e);
        break;
    default:
        raw_event(e);
    }
}
