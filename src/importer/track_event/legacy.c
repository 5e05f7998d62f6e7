/* Track events of the older kind, whose phase is a letter. */
#include "base/hash.h"
#include "importer/track_event/event.h"
#include "wire/fields.h"

enum { INSTANT_GLOBAL = 1, INSTANT_PROCESS = 2 };

/* What the track of an asynchronous event says of where it comes from. */
static argset async_source(struct event *e, bool local, strid scope)
{
    struct args *args = &e->m->st->args;
    struct arg_list *l = &e->t->args;
    l->n = 0;
    arg_list_str(args, l, "source", import_str(e->m->im, "chrome"));
    arg_list_bool(args, l, "trace_id_is_process_scoped", local);
    arg_list_uint(args, l, "upid", e->upid == UPID_NONE ? 0 : e->upid);
    arg_list_str(args, l, "source_scope", scope);
    return args_intern(args, l->p, l->n);
}

/* Makes *name the one that the first event of an id had: an end need not repeat it. False when out of memory. */
static bool first_name(struct event *e, bool local, strid *name)
{
    uint64_t key = hash_keyed(e->t->secret, e->legacy.id, local ? e->upid : UPID_NONE);
    bool added;
    uint64_t *first = u64map_put(&e->t->legacy_names, key, &added);
    if (!first)
        return false;
    if (added)
        *first = *name;
    *name = (strid)*first;
    return true;
}

/* Asynchronous slices are found again by category, id and scope. */
static bool on_async_track(struct event *e)
{
    struct machine_ctx *m = e->m;
    if (!e->legacy.id_field)
        return false;
    bool local = e->legacy.id_field == TRACK_EVENT_LEGACY_EVENT_LOCAL_ID;
    if (local && e->upid == UPID_NONE)
        return false;
    if (e->track) /* the track that it names exists, too */
        track_event_track_own_row(e->t, e->track);
    bool nestable = e->legacy.phase == 'b' || e->legacy.phase == 'e' || e->legacy.phase == 'n';
    strid scope = nestable ? e->category : e->name;
    if (e->legacy.id_scope.len)
        scope = strpool_printf(&m->st->strings, "%s:%.*s", strpool_cstr(&m->st->strings, scope),
                               (int)(e->legacy.id_scope.len < 256 ? e->legacy.id_scope.len : 256),
                               (const char *)e->legacy.id_scope.p);
    uint64_t key = hash_combine(hash_keyed(e->t->secret, e->legacy.id, scope), local ? e->upid : UPID_NONE);
    uint64_t *set = u64map_put(&e->t->legacy_async, key, NULL);
    if (!set) {
        m->im->failed = true;
        return false;
    }
    if (!*set) {
        struct track_dim dims[3];
        strid name = local ? track_event_translate_track_name(m->im, e->name) : e->name;
        struct track_spec spec = {.type = local ? "legacy_async_process_slice" : "legacy_async_global_slice",
                                  .event_type = TRACK_SLICE,
                                  .name = name,
                                  .parent = UINT32_MAX,
                                  .source_args = async_source(e, local, scope),
                                  .dims = dims};
        if (!first_name(e, local, &name)) {
            m->im->failed = true;
            return false;
        }
        if (local)
            dims[spec.n_dims++] = (struct track_dim){"upid", DIM_INT, e->upid};
        dims[spec.n_dims++] = (struct track_dim){"scope", DIM_STR, scope};
        dims[spec.n_dims++] = (struct track_dim){"name", DIM_STR, name};
        *set = (uint64_t)track_set_intern(m->im->tracks, m->id, &spec) + 1;
    }
    e->set = (uint32_t)(*set - 1);
    e->cookie = (int64_t)e->legacy.id;
    e->marks = (struct track_event_marks){.utid = e->utid, .has_source = true, .source_id = (int64_t)e->legacy.id};
    e->is_async = true;
    return true;
}

static bool on_instant_track(struct event *e)
{
    struct machine_ctx *m = e->m;
    if (e->legacy.instant_scope != INSTANT_GLOBAL && e->legacy.instant_scope != INSTANT_PROCESS)
        return e->utid != UTID_NONE;
    strid source = import_str(m->im, "source");
    struct arg chrome = {source, source, import_str(m->im, "chrome"), ARG_STRING};
    struct track_dim upid = {"upid", DIM_INT, e->upid};
    struct track_spec spec = {.type = "legacy_chrome_global_instants",
                              .event_type = TRACK_SLICE,
                              .source_args = args_intern(&m->st->args, &chrome, 1),
                              .dims = &upid,
                              .parent = UINT32_MAX};
    if (e->legacy.instant_scope == INSTANT_PROCESS) {
        if (e->upid == UPID_NONE)
            return false;
        spec.type = "chrome_process_instant";
        spec.n_dims = 1;
    }
    e->row = track_intern(m->im->tracks, m->id, &spec);
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
    if (e->legacy.id_field != TRACK_EVENT_LEGACY_EVENT_UNSCOPED_ID) {
        stats_add(&e->m->st->stats, e->m->id, STAT_flow_invalid_id, 1);
        event_error(e);
        return;
    }
    uint32_t track = event_track_row(e, AT_INSTANT);
    uint64_t id = flow_legacy_id(flows, e->legacy.id, e->category, e->name);
    if (e->legacy.phase == 's')
        flow_begin(flows, e->m->id, track, id);
    else if (e->legacy.phase == 't')
        flow_step(flows, e->m->id, track, id);
    else
        flow_end(flows, e->m->id, track, id, e->legacy.bind_to_enclosing, false);
}

/* Times, counts and the id of an event that is kept as it is. */
static void raw_numbers(struct event *e, struct arg_list *l)
{
    static const struct {
        uint8_t field;
        const char *key;
    } ids[] = {{TRACK_EVENT_LEGACY_EVENT_UNSCOPED_ID, "legacy_event.unscoped_id"},
               {TRACK_EVENT_LEGACY_EVENT_GLOBAL_ID, "legacy_event.global_id"},
               {TRACK_EVENT_LEGACY_EVENT_LOCAL_ID, "legacy_event.local_id"}};
    struct args *args = &e->m->st->args;
    const struct legacy_event *legacy = &e->legacy;
    int64_t thread_ts = e->extra ? e->extra->thread_ts : COL_NULL;
    int64_t instructions = e->extra ? e->extra->thread_instructions : COL_NULL;
    if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_DURATION_US))
        arg_list_int(args, l, "legacy_event.duration_ns", (int64_t)((uint64_t)legacy->duration_us * 1000));
    if (thread_ts != COL_NULL) {
        arg_list_int(args, l, "legacy_event.thread_timestamp_ns", thread_ts);
        if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_THREAD_DURATION_US))
            arg_list_int(args, l, "legacy_event.thread_duration_ns",
                         (int64_t)((uint64_t)legacy->thread_duration_us * 1000));
    }
    if (instructions != COL_NULL) {
        arg_list_int(args, l, "legacy_event.thread_instruction_count", instructions);
        if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_THREAD_INSTRUCTION_DELTA))
            arg_list_int(args, l, "legacy_event.thread_instruction_delta", legacy->instruction_delta);
    }
    if (legacy->use_async_tts)
        arg_list_bool(args, l, "legacy_event.use_async_tts", true);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (legacy->id_field == ids[i].field)
            arg_list_uint(args, l, ids[i].key, legacy->id);
    if (legacy->id_field && legacy->id_scope.len)
        arg_list_str(args, l, "legacy_event.id_scope", import_slice(e->m->im, legacy->id_scope));
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
    raw_numbers(e, &list);
    track_event_append_args(e->m->im, e->g, e->bytes, NULL, NULL, &list);
    chrome_raw_insert(st, &(struct chrome_raw_row){.ts = e->ts,
                                                   .name = import_str(e->m->im, "track_event.legacy_event"),
                                                   .utid = e->utid,
                                                   .arg_set_id = args_intern(&st->args, list.p, list.n)});
    arg_list_free(&list);
}

static bool first_field(struct slice message, uint32_t field, struct pb_field *f)
{
    struct pb_cursor c = pb_cursor(message);
    while (pb_next(&c, f))
        if (f->id == field)
            return true;
    return false;
}

/* The string that the first debug annotation holds, *there telling whether there is one. */
static strid first_annotation(struct event *e, bool *there)
{
    struct pb_field f, text;
    *there = first_field(e->bytes, TRACK_EVENT_DEBUG_ANNOTATIONS, &f);
    return *there && pb_find(pb_bytes(&f), DEBUG_ANNOTATION_STRING_VALUE, &text) && pb_bytes(&text).len
               ? import_slice(e->m->im, pb_bytes(&text))
               : 0;
}

/* Names of threads and processes; what else there is to tell is kept as it is. */
static void metadata_event(struct event *e)
{
    struct slice name = strpool_view(&e->m->st->strings, e->name);
    bool thread = slice_eq_str(name, "thread_name"), process = slice_eq_str(name, "process_name"), there;
    strid value = first_annotation(e, &there);
    if (e->name && !thread && !process)
        raw_event(e);
    else if (!e->name || !there || (thread ? e->utid == UTID_NONE : e->upid == UPID_NONE))
        event_error(e);
    else if (value && thread)
        process_tracker_thread_name(e->m->processes, e->utid, value, THREAD_NAME_TRACK_DESCRIPTOR_THREAD_TYPE);
    else if (value)
        process_tracker_process_name(e->m->processes, e->upid, value, PROCESS_NAME_TRACK_DESCRIPTOR);
}

/* Phases of slices on threads. */
static bool needs_thread(int32_t phase)
{
    return phase == 'B' || phase == 'E' || phase == 'X';
}

bool legacy_ends(const struct event *e)
{
    return e->legacy.phase == 'E' || e->legacy.phase == 'e' || e->legacy.phase == 'F';
}

void legacy_event(struct event *e)
{
    if (needs_thread(e->legacy.phase) && e->utid == UTID_NONE) {
        event_error(e);
        return;
    }
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
