/* What events become, in order of time: a table of phases. */
#include "importer/json/chrome_json.h"
#include "importer/sort/sorter.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

enum { MOST_LANES = 4096 /* tracks of one thread for slices that overlap */ };

struct chrome_thread *chrome_thread_of(struct chrome *c, uint32_t index)
{
    struct chrome_thread *t = &c->threads.p[index];
    struct process_tracker *processes = c->m->processes;
    bool first = !t->known;
    uint32_t utid;
    if (t->pid) {
        process_tracker_process(processes, t->pid);
        utid = process_tracker_update_thread(processes, t->tid, t->pid);
    } else { /* nothing is idle in such a file */
        utid = process_tracker_zero_thread(processes, t->tid);
    }
    if (first || utid != t->utid) {
        t->known = true;
        t->utid = utid;
        t->upid = process_tracker_thread_process(processes, utid);
        t->track = UINT32_MAX;
        if (t->pid_name && !ROW_GET(c->m->st, process, name, t->upid))
            process_tracker_process_name(processes, t->upid, t->pid_name, PROCESS_NAME_OTHER);
        if (t->tid_name)
            process_tracker_thread_name(processes, utid, t->tid_name, THREAD_NAME_OTHER);
    }
    return t;
}

uint32_t chrome_thread_track(struct chrome *c, struct chrome_thread *t)
{
    if (t->track != UINT32_MAX)
        return t->track;
    if (!c->serial) {
        t->track = track_intern_int(c->im->tracks, c->m->id, "thread_execution", TRACK_SLICE, "utid", t->utid, 0);
        return t->track;
    }
    /* Slices of another file do not nest into those of the first: it has tracks of its own. */
    bool added;
    uint64_t *track = u64map_put(&c->tracks, t->utid, &added);
    if (!track) {
        c->im->failed = true;
        return UINT32_MAX;
    }
    struct track_dim dim = {"utid", DIM_INT, t->utid};
    struct track_spec spec = {
        .type = "thread_execution", .event_type = TRACK_SLICE, .parent = UINT32_MAX, .dims = &dim, .n_dims = 1};
    if (added)
        *track = track_insert_row(c->im->tracks, c->m->id, &spec);
    t->track = (uint32_t)*track;
    return t->track;
}

strid chrome_name(struct chrome *c, const struct chrome_event *e)
{
    return e->name ? e->name : import_str(c->im, "[No name]");
}

static struct slice_row slice_of_event(struct chrome *c, const struct chrome_event *e, uint32_t track, strid name,
                                       int64_t dur)
{
    return (struct slice_row){.ts = e->ts,
                              .dur = dur,
                              .track_id = track,
                              .category = e->cat,
                              .name = name,
                              .arg_set_id = chrome_args_set(c, e),
                              .thread_ts = e->tts,
                              .thread_dur = COL_NULL,
                              .thread_instruction_count = COL_NULL,
                              .thread_instruction_delta = COL_NULL};
}

static void log_overlap(struct chrome *c, const struct chrome_event *e, const struct slice_row *row, uint32_t conflict)
{
    struct args *args = &c->im->st->args;
    struct arg_list list = {0};
    char phase[] = {e->phase, 0};
    arg_list_str(args, &list, "event_name", row->name);
    arg_list_str(args, &list, "event_phase", import_str(c->im, phase));
    arg_list_int(args, &list, "overlap_start", e->ts);
    arg_list_int(args, &list, "overlap_end",
                 (int64_t)((uint64_t)ROW_GET(c->im->st, slice, ts, conflict) +
                           (uint64_t)ROW_GET(c->im->st, slice, dur, conflict)));
    arg_list_str(args, &list, "conflicting_slice_name", (strid)ROW_GET(c->im->st, slice, name, conflict));
    arg_list_int(args, &list, "conflicting_slice_ts", ROW_GET(c->im->st, slice, ts, conflict));
    arg_list_int(args, &list, "conflicting_slice_dur", ROW_GET(c->im->st, slice, dur, conflict));
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    import_log(c->m, STAT_slice_spill_overlapping_complete_event, e->ts, -1, set);
}

/* A slice that does not nest into those of its thread: on a track beside it, the first where it fits. */
static uint32_t push_on_lane(struct chrome *c, const struct chrome_thread *t, struct slice_row *row)
{
    uint32_t conflict = SLICE_NONE;
    uint64_t *index = u64map_put(&c->lanes, t->utid, NULL);
    if (!index || (!*index && !vec_add(&c->lane_lists))) {
        c->im->failed = true;
        return SLICE_NONE;
    }
    if (!*index)
        *index = c->lane_lists.n;
    struct chrome_lanes *lanes = &c->lane_lists.p[*index - 1];
    for (size_t i = 0; i < lanes->tracks.n; i++) {
        row->track_id = lanes->tracks.p[i];
        uint32_t slice = slice_push_fitting(c->im->slices, c->m->id, row, &conflict);
        if (conflict == SLICE_NONE)
            return slice;
    }
    if (lanes->tracks.n == MOST_LANES) {
        stats_add(&c->im->st->stats, c->m->id, STAT_slice_drop_overlapping_complete_event, 1);
        return SLICE_NONE;
    }
    struct track_dim dims[] = {{"utid", DIM_INT, t->utid}, {"track_compressor_idx", DIM_INT, (int64_t)lanes->tracks.n}};
    struct track_spec spec = {
        .type = "thread_overlapping_slice", .event_type = TRACK_SLICE, .parent = UINT32_MAX, .dims = dims, .n_dims = 2};
    row->track_id = track_intern(c->im->tracks, c->m->id, &spec);
    if (row->track_id == UINT32_MAX || !vec_push(&lanes->tracks, (uint32_t)row->track_id)) {
        c->im->failed = true;
        return SLICE_NONE;
    }
    return slice_push(c->im->slices, c->m->id, row);
}

static void complete(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    if (!(e->flags & CHROME_HAS_DUR)) {
        chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
    if (e->dur < 0) {
        import_log(c->m, STAT_slice_negative_duration, e->ts, -1, ARGSET_NONE);
        return;
    }
    struct slice_row row = slice_of_event(c, e, chrome_thread_track(c, t), chrome_name(c, e), e->dur);
    row.thread_dur = e->tdur;
    uint32_t conflict;
    uint32_t slice = slice_push_fitting(c->im->slices, c->m->id, &row, &conflict);
    if (conflict != SLICE_NONE) {
        log_overlap(c, e, &row, conflict);
        slice = push_on_lane(c, t, &row);
    }
    chrome_bind(c, e, slice);
}

static void begin(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    struct slice_row row = slice_of_event(c, e, chrome_thread_track(c, t), chrome_name(c, e), -1);
    chrome_bind(c, e, slice_push(c->im->slices, c->m->id, &row));
}

static void end(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    uint32_t slice = slice_end(c->im->slices, c->m->id, e->ts, chrome_thread_track(c, t), e->cat, e->name, NULL);
    if (slice == SLICE_NONE)
        return;
    chrome_add_args(c, e, slice);
    int64_t tts = ROW_GET(c->im->st, slice, thread_ts, slice);
    if (tts != COL_NULL && e->tts != COL_NULL)
        ROW_SET(c->im->st, slice, thread_dur, slice, (int64_t)((uint64_t)e->tts - (uint64_t)tts));
}

static void instant(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    uint32_t wants = e->scope == 'p' ? CHROME_HAS_PID : e->scope == 'g' ? 0 : CHROME_HAS_TID;
    if ((e->flags & wants) != wants) {
        chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
    struct slice_row row;
    if (e->scope == 'p' || e->scope == 'g') {
        struct track_dim dim = {"upid", DIM_INT, t->upid};
        struct track_spec spec = {.type = e->scope == 'p' ? "chrome_process_instant" : "legacy_chrome_global_instants",
                                  .event_type = TRACK_SLICE,
                                  .parent = UINT32_MAX,
                                  .source_args = chrome_source(c),
                                  .dims = &dim,
                                  .n_dims = e->scope == 'p'};
        row = slice_of_event(c, e, track_intern(c->im->tracks, c->m->id, &spec), e->name, 0);
        row.thread_ts = COL_NULL;
    } else {
        row = slice_of_event(c, e, chrome_thread_track(c, t), chrome_name(c, e), 0);
    }
    slice_push(c->im->slices, c->m->id, &row);
}

/* Phases that nothing is made of: the thread and the process are. */
static void nothing(struct chrome *c, struct chrome_event *e)
{
    chrome_thread_of(c, e->thread);
}

static void (*const phases[128])(struct chrome *, struct chrome_event *) = {
    ['X'] = complete,
    ['B'] = begin,
    ['E'] = end,
    ['b'] = chrome_async_event,
    ['e'] = chrome_async_event,
    ['n'] = chrome_async_event,
    ['i'] = instant,
    ['I'] = instant,
    ['R'] = instant,
    ['C'] = chrome_counter,
    ['s'] = chrome_flow,
    ['t'] = chrome_flow,
    ['f'] = chrome_flow,
    ['M'] = chrome_metadata_event,
    ['T'] = chrome_thread_state,
};

void chrome_parse(void *owner, const struct sort_event *events, size_t n)
{
    struct chrome *c = owner;
    const uint8_t *base = c->stable ? c->file_first : NULL;
    struct chrome_event e = {0};
    for (size_t i = 0; i < n; i++) {
        chrome_record_take(c->records, events[i].a, base, &e);
        e.ts = events[i].ts;
        unsigned char phase = (unsigned char)e.phase;
        (phase < 128 && phases[phase] ? phases[phase] : nothing)(c, &e);
    }
}

argset chrome_source(struct chrome *c)
{
    if (argset_is_none(c->source_chrome)) {
        struct arg_list list = {0};
        arg_list_str(&c->im->st->args, &list, "source", import_str(c->im, "chrome"));
        c->source_chrome = args_intern(&c->im->st->args, list.p, list.n);
        arg_list_free(&list);
    }
    return c->source_chrome;
}
