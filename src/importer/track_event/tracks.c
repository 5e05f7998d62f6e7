/* What a track's uuid stands for: its thread or process, its parent, and its rows of `track`. */
#include "importer/track_event/track_event_internal.h"

struct track_event_track *track_event_track_look_up(struct track_event_machine *t, uint64_t uuid)
{
    const uint64_t *at = u64map_get(&t->tracks, uuid);
    return at ? *track_event_track_recent(t, uuid) = (struct track_event_track *)(uintptr_t)*at : NULL;
}

struct track_event_track *track_event_track_make(struct track_event_machine *t, uint64_t uuid)
{
    struct track_event_track *k = arena_zalloc(&t->arena, sizeof *k);
    if (!k || !u64map_set(&t->tracks, uuid, (uint64_t)(uintptr_t)k)) {
        t->m->im->failed = true;
        return NULL;
    }
    t->track_changes++;
    k->uuid = uuid;
    k->utid = UTID_NONE;
    k->upid = UPID_NONE;
    k->row = UINT32_MAX;
    k->set = TRACK_SET_NONE;
    return k;
}

static bool is_root(const struct track_event_track *k)
{
    return k->has_pid && k->use == USE_SLICES;
}

/* Notes that a descriptor's uuid stands for a thread or process; false when another uuid does already: the number was
 * used again. */
static bool claim(struct track_event_machine *t, struct u64map *owners, uint32_t id, uint64_t uuid)
{
    bool added;
    uint64_t *owner = u64map_put(owners, id, &added);
    if (!owner) {
        t->m->im->failed = true;
        return true;
    }
    if (added)
        *owner = uuid;
    return *owner == uuid;
}

static void resolve_root(struct track_event_machine *t, struct track_event_track *k)
{
    struct process_tracker *processes = t->m->processes;
    int64_t pid = k->pid, tid = k->tid;
    int64_t root = process_tracker_resolve_namespaced(processes, k->trusted_pid, pid);
    if (root >= 0)
        pid = root;
    if (k->has_tid) {
        int64_t root_tid = process_tracker_resolve_namespaced(processes, k->trusted_pid, tid);
        if (root_tid >= 0)
            tid = root_tid;
        else if (k->sandboxed)
            tid = track_event_sandboxed_tid(pid, tid);
        k->scope = SCOPE_THREAD;
        process_tracker_process(processes, pid); /* with its main thread, which comes first */
        k->utid = process_tracker_update_thread(processes, tid, pid);
        if (!claim(t, &t->uuid_of_utid, k->utid, k->uuid)) {
            process_tracker_start_thread(processes, COL_NULL, tid);
            k->utid = process_tracker_update_thread(processes, tid, pid);
            claim(t, &t->uuid_of_utid, k->utid, k->uuid);
        }
        k->upid = process_tracker_thread_process(processes, k->utid);
    } else {
        k->scope = SCOPE_PROCESS;
        k->upid = process_tracker_process(processes, pid);
        if (!claim(t, &t->uuid_of_upid, k->upid, k->uuid)) {
            k->upid = process_tracker_restart_process(processes, COL_NULL, pid);
            claim(t, &t->uuid_of_upid, k->upid, k->uuid);
        }
    }
}

void track_event_track_error(struct track_event_machine *t, enum stat_key stat, const char *key, uint64_t uuid)
{
    import_log_number(t->m, stat, COL_NULL, -1, key, uuid);
}

static bool is_among(const struct track_event_track *const *tracks, int n, const struct track_event_track *k)
{
    for (int i = 0; i < n; i++)
        if (tracks[i] == k)
            return true;
    return false;
}

/* Why the parents of a track do not lead to the top: one is unknown, they go in a circle, or too far. STAT_COUNT: they
 * do. */
static enum stat_key hierarchy_problem(struct track_event_machine *t, const struct track_event_track *k)
{
    const struct track_event_track *seen[MAX_HIERARCHY], *at = k;
    for (int n = 0; n < MAX_HIERARCHY - 1; n++) {
        if (is_among(seen, n, at))
            return STAT_track_event_track_hierarchy_loop;
        seen[n] = at;
        if (!at->parent_uuid || !at->uuid)
            return STAT_COUNT;
        at = track_event_track_find(t, at->parent_uuid);
        if (!at)
            return STAT_track_hierarchy_missing_uuid;
    }
    return is_among(seen, MAX_HIERARCHY - 1, at) ? STAT_track_event_track_hierarchy_loop
                                                 : STAT_track_event_track_hierarchy_too_deep;
}

/* Counted for each use. The walk over the parents is made once, until there are others. */
static bool hierarchy_is_sound(struct track_event_machine *t, struct track_event_track *k)
{
    if (k->unsound_at != t->track_changes + 1) {
        k->unsound = hierarchy_problem(t, k);
        k->unsound_at = k->unsound == STAT_COUNT ? 0 : t->track_changes + 1;
    }
    if (k->unsound_at)
        track_event_track_error(t, k->unsound, "track_uuid", k->uuid);
    return !k->unsound_at;
}

/* Gives a track whose parents are sound its thread, process and parent. */
static void resolve(struct track_event_machine *t, struct track_event_track *k, strid event_name)
{
    if (k->resolved)
        return;
    k->resolved = true;
    struct track_event_track *parent = k->uuid && k->parent_uuid ? track_event_track_find(t, k->parent_uuid) : NULL;
    if (parent)
        resolve(t, parent, 0);
    if (k->has_pid) {
        resolve_root(t, k);
    } else if (parent) {
        k->scope = parent->scope;
        k->utid = parent->utid;
        k->upid = parent->upid;
    }
    if (!k->name && !is_root(k) && k->use == USE_SLICES)
        k->name = k->uuid ? event_name : import_str(t->m->im, "Default Track");
    k->parent_track = parent;
}

bool track_event_track_try_resolve(struct track_event_machine *t, struct track_event_track *k, strid event_name)
{
    if (!hierarchy_is_sound(t, k))
        return false;
    resolve(t, k, event_name);
    return true;
}

static strid translated(struct track_event_machine *t, const struct track_event_track *k)
{
    return k->scope == SCOPE_PROCESS ? track_event_translate_track_name(t->m->im, k->name) : k->name;
}

static argset source_args(struct track_event_machine *t, const struct track_event_track *k)
{
    static const char *const orders[] = {NULL, "lexicographic", "chronological", "explicit"};
    static const char *const builtin[] = {NULL, "thread_time", "thread_instruction_count"};
    struct args *args = &t->m->st->args;
    struct arg_list *l = &t->args;
    l->n = 0;
    arg_list_str(args, l, "source", import_str(t->m->im, "descriptor"));
    arg_list_int(args, l, "trace_id", (int64_t)k->uuid);
    arg_list_bool(args, l, "is_root_in_scope", is_root(k) || k->uuid == 0);
    if (k->category)
        arg_list_str(args, l, "category", k->category);
    if (k->counter)
        arg_list_str(args, l, "builtin_counter_type", import_str(t->m->im, builtin[k->counter]));
    if (t->from_first_packet && k->uuid)
        arg_list_bool(args, l, "has_first_packet_on_sequence", true);
    if (k->child_ordering && k->child_ordering < sizeof orders / sizeof *orders)
        arg_list_str(args, l, "child_ordering", import_str(t->m->im, orders[k->child_ordering]));
    if (k->has_rank)
        arg_list_int(args, l, "sibling_order_rank", k->rank);
    if (k->description)
        arg_list_str(args, l, "description", k->description);
    if (k->share_key)
        arg_list_str(args, l, "y_axis_share_key", k->share_key);
    return args_intern(args, l->p, l->n);
}

static void make_row(struct track_event_machine *t, struct track_event_track *k)
{
    /* [use][scope]; slices of plain tracks and of merged ones */
    static const char *const types[][3] = {
        {"global_track_event", "process_track_event", "thread_track_event"},
        {"global_counter_track_event", "process_counter_track_event", "thread_counter_track_event"},
        {"global_state_track_event", "process_state_track_event", "thread_state_track_event"},
    };
    static const char *const merged[] = {"global_merged_track_event", "process_merged_track_event",
                                         "thread_merged_track_event"};
    struct importer *im = t->m->im;
    struct track_dim dims[4];
    struct track_spec spec = {.parent = UINT32_MAX, .dims = dims};
    if (k->parent_track) {
        struct track_event_track *parent = k->parent_track;
        k->parent_track = NULL; /* a circle of parents was cut where it was found: never walk it here */
        uint32_t row = track_event_track_own_row(t, parent);
        if (!is_root(parent)) /* a thread or process is told by utid or upid */
            spec.parent = row;
    }
    k->named = translated(t, k);
    if (is_root(k) && k->has_tid && !k->own_track) {
        k->row = track_intern_int(im->tracks, t->m->id, "thread_execution", TRACK_SLICE, "utid", k->utid, 0);
        return;
    }
    static const char *const counter_names[] = {NULL, "thread_time", "thread_instruction_count"};
    spec.name = k->named ? k->named : k->counter ? import_str(im, counter_names[k->counter]) : 0;
    spec.unit = k->unit;
    spec.event_type = k->use == USE_COUNTER ? TRACK_COUNTER : k->use == USE_STATE ? TRACK_STATE : TRACK_SLICE;
    spec.source_args = source_args(t, k);
    if (k->scope == SCOPE_THREAD)
        dims[spec.n_dims++] = (struct track_dim){"utid", DIM_INT, k->utid};
    else if (k->scope == SCOPE_PROCESS)
        dims[spec.n_dims++] = (struct track_dim){"upid", DIM_INT, k->upid};
    if (is_root(k) || k->use != USE_SLICES || k->merge == MERGE_NONE) {
        spec.type = types[k->use][k->scope];
        dims[spec.n_dims++] = (struct track_dim){"track_uuid", DIM_INT, (int64_t)k->uuid};
        k->row = track_insert_row(im->tracks, t->m->id, &spec);
        return;
    }
    spec.type = merged[k->scope];
    dims[spec.n_dims++] = (struct track_dim){"parent_track_uuid", DIM_INT, (int64_t)k->parent_uuid};
    dims[spec.n_dims++] = (struct track_dim){"merge_key_type", DIM_INT, k->merge};
    dims[spec.n_dims++] =
        (struct track_dim){"merge_key_value", DIM_STR, k->merge == MERGE_BY_KEY ? k->merge_key : k->named};
    k->set = track_set_intern(im->tracks, t->m->id, &spec);
}

uint32_t track_event_track_make_row(struct track_event_machine *t, struct track_event_track *k,
                                    enum track_event_moment moment)
{
    struct track_tracker *tracks = t->m->im->tracks;
    if (k->row == UINT32_MAX && k->set == TRACK_SET_NONE)
        make_row(t, k);
    if (k->set == TRACK_SET_NONE)
        return k->row;
    int64_t cookie = (int64_t)k->uuid;
    if (moment == AT_END)
        return track_set_end(tracks, k->set, cookie);
    uint32_t row = track_set_begin(tracks, k->set, cookie);
    if (moment == AT_INSTANT)
        track_set_end(tracks, k->set, cookie);
    return row;
}

uint32_t track_event_track_own_row(struct track_event_machine *t, struct track_event_track *k)
{
    if (k->row == UINT32_MAX && k->set == TRACK_SET_NONE)
        make_row(t, k);
    return k->set == TRACK_SET_NONE ? k->row : track_set_first(t->m->im->tracks, k->set);
}

void track_event_track_renamed(struct track_event_machine *t, struct track_event_track *k)
{
    /* Tracks that merge keep the name they merged by. */
    if (k->row != UINT32_MAX && k->merge == MERGE_NONE && k->name)
        ROW_SET(t->m->st, track, name, k->row, translated(t, k));
}
