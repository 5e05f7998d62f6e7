/* Descriptors of tracks, threads and processes: read in file order (so that an event finds what any descriptor
 * says of its track), and told to the process tracker in time order. */
#include "importer/track_event/track_event_internal.h"

#include "wire/fields.h"

enum { UNIT_TIME_NS = 1, UNIT_COUNT = 2 /* of CounterDescriptor.Unit */ };

struct parsed {
    uint64_t uuid;
    bool has_uuid, has_parent, has_thread, has_process, process_ordering, thread_ordering;
    uint64_t ordering; /* of its children */
    struct slice thread, process, chrome_thread, chrome_process;
    struct track_event_track k;
};

static void read_counter(struct packet *p, struct track_event_track *k, struct slice bytes)
{
    static const char *const units[] = {NULL, [UNIT_TIME_NS] = "ns", [UNIT_COUNT] = "count", "bytes"};
    static const uint8_t unit_of_kind[] = {
        [COUNTER_THREAD_TIME] = UNIT_TIME_NS, [COUNTER_THREAD_INSTRUCTIONS] = UNIT_COUNT};
    struct joined_text categories;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint64_t unit = 0;
    categories.n = 0;
    k->use = USE_COUNTER;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case COUNTER_DESCRIPTOR_TYPE:
            k->counter = pb_u64(&f) <= COUNTER_THREAD_INSTRUCTIONS ? (uint8_t)pb_u64(&f) : 0;
            break;
        case COUNTER_DESCRIPTOR_CATEGORIES:
            joined_text_add(&categories, ',', pb_bytes(&f));
            break;
        case COUNTER_DESCRIPTOR_UNIT:
            unit = pb_u64(&f);
            break;
        case COUNTER_DESCRIPTOR_UNIT_MULTIPLIER:
            k->multiplier = pb_i64(&f);
            break;
        case COUNTER_DESCRIPTOR_IS_INCREMENTAL:
            k->incremental = pb_bool(&f);
            break;
        case COUNTER_DESCRIPTOR_UNIT_NAME:
            k->unit = import_slice(p->m->im, pb_bytes(&f));
            break;
        case COUNTER_DESCRIPTOR_Y_AXIS_SHARE_KEY:
            k->share_key = import_slice(p->m->im, pb_bytes(&f));
            break;
        }
    }
    k->category = joined_text_intern(&p->m->st->strings, &categories);
    unit = unit_of_kind[k->counter] ? unit_of_kind[k->counter] : unit;
    if (unit && unit < sizeof units / sizeof *units) /* else what it is called */
        k->unit = import_str(p->m->im, units[unit]);
}

/* Long: one case a field. */
static void read_descriptor(struct packet *p, struct slice bytes, struct parsed *d)
{
    struct track_event_track *k = &d->k;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint64_t behavior = 0;
    memset(d, 0, sizeof *d);
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACK_DESCRIPTOR_UUID:
            d->uuid = pb_u64(&f);
            d->has_uuid = true;
            break;
        case TRACK_DESCRIPTOR_NAME:
        case TRACK_DESCRIPTOR_STATIC_NAME:
        case TRACK_DESCRIPTOR_ATRACE_NAME:
            k->name = import_slice(p->m->im, pb_bytes(&f));
            break;
        case TRACK_DESCRIPTOR_PROCESS:
            d->process = pb_bytes(&f);
            d->has_process = true;
            break;
        case TRACK_DESCRIPTOR_THREAD:
            d->thread = pb_bytes(&f);
            d->has_thread = true;
            break;
        case TRACK_DESCRIPTOR_PARENT_UUID:
            k->parent_uuid = pb_u64(&f);
            d->has_parent = true;
            break;
        case TRACK_DESCRIPTOR_CHROME_PROCESS:
            d->chrome_process = pb_bytes(&f);
            break;
        case TRACK_DESCRIPTOR_CHROME_THREAD:
            d->chrome_thread = pb_bytes(&f);
            break;
        case TRACK_DESCRIPTOR_COUNTER:
            read_counter(p, k, pb_bytes(&f));
            break;
        case TRACK_DESCRIPTOR_DISALLOW_MERGING_WITH_SYSTEM_TRACKS:
            k->own_track = pb_bool(&f);
            break;
        case TRACK_DESCRIPTOR_CHILD_ORDERING:
            d->ordering = pb_u64(&f);
            k->child_ordering = (uint8_t)d->ordering;
            break;
        case TRACK_DESCRIPTOR_SIBLING_ORDER_RANK:
            k->rank = pb_i32(&f);
            k->has_rank = true;
            break;
        case TRACK_DESCRIPTOR_DESCRIPTION:
            k->description = import_slice(p->m->im, pb_bytes(&f));
            break;
        case TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR:
            behavior = pb_u64(&f);
            break;
        case TRACK_DESCRIPTOR_SIBLING_MERGE_KEY:
            k->merge_key = import_slice(p->m->im, pb_bytes(&f));
            break;
        case TRACK_DESCRIPTOR_SIBLING_MERGE_KEY_INT:
            if (!k->merge_key)
                k->merge_key =
                    strpool_printf(&p->m->st->strings, "sibling_merge_key_int:%llu", (unsigned long long)pb_u64(&f));
            break;
        case TRACK_DESCRIPTOR_STATE:
            k->use = USE_STATE;
            break;
        case TRACK_DESCRIPTOR_PROCESS_ORDERING:
            d->process_ordering = pb_u64(&f) == 1;
            break;
        case TRACK_DESCRIPTOR_THREAD_ORDERING:
            d->thread_ordering = pb_u64(&f) == 1;
            break;
        }
    }
    if (behavior == TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR_NONE)
        k->merge = MERGE_NONE;
    else if (behavior == TRACK_DESCRIPTOR_SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY)
        k->merge = MERGE_BY_KEY;
    if (k->merge != MERGE_BY_KEY)
        k->merge_key = 0;
}

static bool is_sandboxed(struct slice chrome_thread)
{
    struct pb_field f;
    return pb_find(chrome_thread, CHROME_THREAD_DESCRIPTOR_IS_SANDBOXED_TID, &f) && pb_bool(&f);
}

/* pid and tid of a ThreadDescriptor or ProcessDescriptor, false when one that is needed is missing. */
static bool read_ids(struct slice bytes, bool is_thread, struct track_event_track *k)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == THREAD_DESCRIPTOR_PID) {
            k->pid = pb_i32(&f);
            k->has_pid = true;
        } else if (f.id == THREAD_DESCRIPTOR_TID && is_thread) {
            k->tid = pb_i64(&f);
            k->has_tid = true;
        }
    }
    return k->has_pid && (!is_thread || k->has_tid);
}

static bool same_track(const struct track_event_track *a, const struct track_event_track *b)
{
    return a->parent_uuid == b->parent_uuid && a->has_pid == b->has_pid && a->pid == b->pid &&
           a->has_tid == b->has_tid && a->tid == b->tid && a->use == b->use && a->merge == b->merge &&
           a->merge_key == b->merge_key && a->counter == b->counter && a->incremental == b->incremental &&
           a->multiplier == b->multiplier && a->category == b->category && a->share_key == b->share_key;
}

static void keep(struct packet *p, const struct parsed *d)
{
    struct track_event_machine *t = p->m->track_event;
    struct track_event_track *k = track_event_track_get(t, d->uuid);
    const struct track_event_track *n = &d->k;
    if (!k)
        return;
    if (k->described && !same_track(k, n)) {
        track_event_track_error(t, STAT_track_descriptor_conflicting_reservation, "track_uuid", d->uuid);
        return;
    }
    if (!k->described) {
        struct track_event_track fresh = *n;
        fresh.uuid = d->uuid;
        fresh.described = true;
        fresh.utid = UTID_NONE;
        fresh.upid = UPID_NONE;
        fresh.row = UINT32_MAX;
        fresh.set = TRACK_SET_NONE;
        if (k->resolved) /* an event came first, as a track without a descriptor: what it got stays */
            return;
        *k = fresh;
        t->track_changes++;
    } else if (n->name && (!k->name || k->merge == MERGE_NONE)) {
        k->name = n->name;
    }
    k->trusted_pid = p->trusted_pid;
}

/* Children cannot be in an order that there is not. */
static void log_ordering(struct packet *p, const struct parsed *d)
{
    struct args *a = &p->m->st->args;
    struct arg_list *list = &p->m->track_event->args;
    list->n = 0;
    if (import_log_has_room(p->m, STAT_track_descriptor_invalid_child_ordering)) {
        arg_list_uint(a, list, "track_uuid", d->uuid);
        arg_list_int(a, list, "child_order", (int64_t)d->ordering);
    }
    import_log(p->m, STAT_track_descriptor_invalid_child_ordering, COL_NULL, p->byte_offset,
               args_intern(a, list->p, list->n));
}

enum tokenize_result track_event_tokenize_descriptor(struct packet *p)
{
    struct parsed d;
    read_descriptor(p, p->field, &d);
    if (!d.has_uuid) {
        packet_log(p, STAT_track_descriptor_missing_uuid, NULL, 0);
        return TOKENIZE_DONE;
    }
    if (d.ordering > TRACK_DESCRIPTOR_CHILD_TRACKS_ORDERING_EXPLICIT) {
        log_ordering(p, &d);
        return TOKENIZE_DONE;
    }
    if (d.uuid == 0) {
        p->m->track_event->process_ordering |= d.process_ordering;
        p->m->track_event->thread_ordering |= d.thread_ordering;
        if (d.has_parent) {
            track_event_track_error(p->m->track_event, STAT_track_descriptor_default_track_with_parent, "parent_uuid",
                                    d.k.parent_uuid);
            return TOKENIZE_DONE;
        }
    }
    if (d.has_thread) {
        if (!read_ids(d.thread, true, &d.k)) {
            packet_log(p, STAT_track_descriptor_thread_missing_pid_tid, "track_uuid", d.uuid);
            return TOKENIZE_DONE;
        }
        d.k.sandboxed = is_sandboxed(d.chrome_thread);
        if (p->gen->seq->valid)
            track_event_set_thread_descriptor(p, d.thread, d.k.sandboxed);
    } else if (d.has_process && !read_ids(d.process, false, &d.k)) {
        packet_log(p, STAT_track_descriptor_process_missing_pid, "track_uuid", d.uuid);
        return TOKENIZE_DONE;
    }
    keep(p, &d);
    return TOKENIZE_PUSH;
}

/* Puts an arg into the set of a thread or process. */
static void add_row_args(struct packet *p, bool is_thread, uint32_t row, const struct arg_list *add)
{
    struct storage *st = p->m->st;
    argset have = is_thread ? ROW_ARGS(st, thread, arg_set_id, row) : ROW_ARGS(st, process, arg_set_id, row);
    struct arg_list all = {0};
    args_values(&st->args, have, &all);
    arg_list_merge(&all, add);
    argset set = args_intern(&st->args, all.p, all.n);
    if (!argset_is_none(set) && is_thread)
        ROW_SET_ARGS(st, thread, arg_set_id, row, set);
    else if (!argset_is_none(set))
        ROW_SET_ARGS(st, process, arg_set_id, row, set);
    arg_list_free(&all);
}

static void add_row_arg(struct packet *p, bool is_thread, uint32_t row, const char *key, int64_t value)
{
    struct arg_list add = {0};
    arg_list_int(&p->m->st->args, &add, key, value);
    add_row_args(p, is_thread, row, &add);
    arg_list_free(&add);
}

static void tell_thread(struct packet *p, uint32_t utid, struct slice thread, struct slice chrome)
{
    struct pb_field f;
    const char *type = chrome.len && pb_find(chrome, CHROME_THREAD_DESCRIPTOR_THREAD_TYPE, &f)
                           ? track_event_chrome_thread_name(pb_i32(&f))
                           : NULL;
    if (type)
        process_tracker_thread_name(p->m->processes, utid, import_str(p->m->im, type),
                                    THREAD_NAME_TRACK_DESCRIPTOR_THREAD_TYPE);
    if (pb_find(thread, THREAD_DESCRIPTOR_THREAD_NAME, &f) && pb_bytes(&f).len)
        process_tracker_thread_name(p->m->processes, utid, import_slice(p->m->im, pb_bytes(&f)),
                                    THREAD_NAME_TRACK_DESCRIPTOR);
    else if (pb_find(thread, THREAD_DESCRIPTOR_CHROME_THREAD_TYPE, &f) &&
             (type = track_event_chrome_thread_name(pb_i32(&f)))) /* Chrome before it had descriptors of its own */
        process_tracker_thread_name(p->m->processes, utid, import_str(p->m->im, type), THREAD_NAME_TRACK_DESCRIPTOR);
    if (pb_find(thread, THREAD_DESCRIPTOR_LEGACY_SORT_INDEX, &f))
        add_row_arg(p, true, utid, "thread_sort_index_hint", pb_i32(&f));
}

/* What Chrome says of a process, and its labels, as args. */
static void tell_process_args(struct packet *p, uint32_t upid, struct slice process, struct slice chrome)
{
    struct args *args = &p->m->st->args;
    struct arg_list add = {0};
    struct pb_field f;
    if (chrome.p) { /* it is there, if only empty */
        const char *type = pb_find(chrome, CHROME_PROCESS_DESCRIPTOR_PROCESS_TYPE, &f)
                               ? track_event_chrome_process_name(pb_i32(&f))
                               : NULL;
        arg_list_str(args, &add, "chrome.process_type", type ? import_str(p->m->im, type) : 0);
        if (pb_find(chrome, CHROME_PROCESS_DESCRIPTOR_HOST_APP_PACKAGE_NAME, &f))
            arg_list_str(args, &add, "chrome.host_app_package_name", import_slice(p->m->im, pb_bytes(&f)));
        if (pb_find(chrome, CHROME_PROCESS_DESCRIPTOR_CRASH_TRACE_ID, &f))
            arg_list_uint(args, &add, "chrome.crash_trace_id", pb_u64(&f));
    }
    strid flat = import_str(p->m->im, "chrome.process_label");
    struct pb_cursor c = pb_cursor(process);
    for (unsigned i = 0; pb_next(&c, &f);)
        if (f.id == PROCESS_DESCRIPTOR_PROCESS_LABELS)
            arg_list_add(args, &add, flat, strpool_printf(&p->m->st->strings, "chrome.process_label[%u]", i++),
                         ARG_STRING, import_slice(p->m->im, pb_bytes(&f)));
    if (add.n)
        add_row_args(p, false, upid, &add);
    arg_list_free(&add);
}

static void tell_process(struct packet *p, uint32_t upid, struct slice process, struct slice chrome)
{
    struct process_tracker *processes = p->m->processes;
    struct pb_field f;
    struct pb_cursor c = pb_cursor(process);
    struct joined_text cmdline;
    strid name = 0;
    cmdline.n = 0;
    while (pb_next(&c, &f)) {
        if (f.id == PROCESS_DESCRIPTOR_PROCESS_NAME && pb_bytes(&f).len) {
            name = import_slice(p->m->im, pb_bytes(&f));
        } else if (f.id == PROCESS_DESCRIPTOR_CMDLINE) {
            joined_text_add(&cmdline, ' ', pb_bytes(&f));
        } else if (f.id == PROCESS_DESCRIPTOR_START_TIMESTAMP_NS) {
            int64_t ts;
            if (pb_i64(&f) > 0 &&
                clock_graph_to_trace_time(p->m->im->clocks, packet_clock(p, CLOCK_ID_BOOTTIME), pb_i64(&f), &ts) == 0)
                process_tracker_set_start_ts(processes, upid, ts);
        } else if (f.id == PROCESS_DESCRIPTOR_LEGACY_SORT_INDEX) {
            add_row_arg(p, false, upid, "process_sort_index_hint", pb_i32(&f));
        }
    }
    process_tracker_process_name(processes, upid, name, PROCESS_NAME_TRACK_DESCRIPTOR);
    if (cmdline.n)
        ROW_SET(p->m->st, process, cmdline, upid, joined_text_intern(&p->m->st->strings, &cmdline));
    const char *type = (chrome.len && pb_find(chrome, CHROME_PROCESS_DESCRIPTOR_PROCESS_TYPE, &f)) ||
                               pb_find(process, PROCESS_DESCRIPTOR_CHROME_PROCESS_TYPE, &f)
                           ? track_event_chrome_process_name(pb_i32(&f))
                           : NULL;
    if (type)
        process_tracker_process_name(processes, upid, import_str(p->m->im, type), PROCESS_NAME_CHROME_LABEL);
    tell_process_args(p, upid, process, chrome);
    track_event_process_described(p->m->track_event, p->ts, upid);
}

void track_event_parse_descriptor(struct packet *p)
{
    struct track_event_machine *t = p->m->track_event;
    struct parsed d;
    read_descriptor(p, p->field, &d);
    struct track_event_track *k = track_event_track_find(t, d.uuid);
    if (!k)
        return;
    /* Threads and processes are told of wherever their track stands. */
    bool placed = (k->has_pid || d.has_thread || d.has_process) && track_event_track_resolve(t, k, 0);
    if (d.has_thread && read_ids(d.thread, true, &d.k)) {
        int64_t tid = is_sandboxed(d.chrome_thread) ? track_event_sandboxed_tid(d.k.pid, d.k.tid) : d.k.tid;
        uint32_t utid = placed && k->has_tid && k->pid == d.k.pid && k->tid == d.k.tid
                            ? k->utid
                            : process_tracker_update_thread(p->m->processes, tid, d.k.pid);
        tell_thread(p, utid, d.thread, d.chrome_thread);
        if (t->thread_ordering && d.k.has_rank)
            add_row_arg(p, true, utid, "thread_sort_index_hint", d.k.rank);
    } else if (d.has_process && read_ids(d.process, false, &d.k)) {
        uint32_t upid = placed ? k->upid : process_tracker_process(p->m->processes, d.k.pid);
        if (upid != UPID_NONE) {
            tell_process(p, upid, d.process, d.chrome_process);
            if (t->process_ordering && d.k.has_rank)
                add_row_arg(p, false, upid, "process_sort_index_hint", d.k.rank);
        }
    }
    track_event_track_renamed(t, k);
}

enum tokenize_result track_event_tokenize_thread_descriptor(struct packet *p)
{
    if (!track_event_has_sequence(p)) {
        packet_log(p, STAT_thread_descriptor_missing_sequence_id, NULL, 0);
        return TOKENIZE_DONE;
    }
    if (!p->gen->seq->valid) {
        packet_log_sequence(p, STAT_thread_descriptor_skipped_incremental_state_invalid);
        return TOKENIZE_DONE;
    }
    track_event_set_thread_descriptor(p, p->field, false);
    return TOKENIZE_PUSH;
}

void track_event_parse_thread_descriptor(struct packet *p)
{
    struct track_event_track ids = {0};
    read_ids(p->field, true, &ids);
    tell_thread(p, process_tracker_update_thread(p->m->processes, ids.tid, ids.pid), p->field, slice_of(NULL, 0));
}

void track_event_parse_process_descriptor(struct packet *p)
{
    struct track_event_track ids = {0};
    read_ids(p->field, false, &ids);
    tell_process(p, process_tracker_process(p->m->processes, ids.pid), p->field, slice_of(NULL, 0));
}
