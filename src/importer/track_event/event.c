/* Track events in time order: which track they belong to, and what they add to slice, counter, state and flow. */
#include "importer/track_event/event.h"

#include "base/saturate.h"
#include "importer/profiling/stack_profile.h"
#include "importer/proto/content_analysis.h"

#include "wire/fields.h"
#include "wire/pb_short.h"

static void count(const struct event *e, enum stat_key stat)
{
    stats_add(&e->m->st->stats, e->m->id, stat, 1);
}

void event_error(const struct event *e)
{
    count(e, STAT_track_event_parser_errors);
}

static void read_legacy(struct event *e, struct slice bytes)
{
    struct legacy_event *l = &e->legacy;
    if (!e->has_legacy)
        memset(l, 0, sizeof *l);
    e->has_legacy = true;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id < 32)
            l->has |= 1u << f.id;
        switch (f.id) {
        case TRACK_EVENT_LEGACY_EVENT_NAME_IID:
            l->name_iid = pb_u64(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_PHASE:
            l->phase = pb_i32(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_DURATION_US:
            l->duration_us = pb_i64(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_THREAD_DURATION_US:
            l->thread_duration_us = pb_i64(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_UNSCOPED_ID:
        case TRACK_EVENT_LEGACY_EVENT_LOCAL_ID:
        case TRACK_EVENT_LEGACY_EVENT_GLOBAL_ID:
            l->id = pb_u64(&f);
            l->id_field = (uint8_t)f.id;
            break;
        case TRACK_EVENT_LEGACY_EVENT_ID_SCOPE:
            l->id_scope = pb_bytes(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_BIND_ID:
            l->bind_id = pb_u64(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_USE_ASYNC_TTS:
            l->use_async_tts = pb_bool(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_BIND_TO_ENCLOSING:
            l->bind_to_enclosing = pb_bool(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_FLOW_DIRECTION:
            l->flow_direction = pb_u32(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_INSTANT_EVENT_SCOPE:
            l->instant_scope = pb_u32(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_THREAD_INSTRUCTION_DELTA:
            l->instruction_delta = pb_i64(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_PID_OVERRIDE:
            l->pid_override = pb_i32(&f);
            break;
        case TRACK_EVENT_LEGACY_EVENT_TID_OVERRIDE:
            l->tid_override = pb_i32(&f);
            break;
        }
    }
}

/* The name of a histogram is told once, and by a number that stands for one. */
static void check_histogram(struct event *e, struct slice sample)
{
    struct pb_field iid, name;
    if (pb_find(sample, CHROME_HISTOGRAM_SAMPLE_NAME_IID, &iid) &&
        (pb_find(sample, CHROME_HISTOGRAM_SAMPLE_NAME, &name) ||
         !interned_find(e->g, INTERNED_DATA_HISTOGRAM_NAMES, pb_u64(&iid)).p))
        event_error(e);
}

enum { FIRST_EXTENSION = 60 };

/* Reads the fields that most events have, as long as there are no others. */
static inline void read_usual(struct event *e, struct pb_cursor *c, struct slice *category, uint64_t *category_iid)
{
    uint32_t value;
    for (unsigned n; (n = pb_short_field(c, &value)) != 0; c->p += n)
        switch (*c->p) {
        case PB_SHORT_TAG(TRACK_EVENT_TYPE, PB_VARINT):
            e->type = value;
            e->has_type = true;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_CATEGORY_IIDS, PB_VARINT):
            *category_iid = value;
            *category = (struct slice){0};
            e->n_categories++;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_NAME_IID, PB_VARINT):
            e->name_iid = value;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_TRACK_UUID, PB_VARINT):
            e->track_uuid = value;
            e->has_track = true;
            break;
        case PB_SHORT_TAG(TRACK_EVENT_DEBUG_ANNOTATIONS, PB_BYTES):
            if (value > (size_t)(c->end - c->p) - n)
                return;
            e->has_args = true;
            n += value;
            break;
        default:
            return;
        }
}

/* Reads the event's fields. False when its bytes are damaged. Long: one case a field. */
static bool read_event(struct event *e, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    uint64_t category_iid = 0;
    struct slice category = {0};
    for (read_usual(e, &c, &category, &category_iid); pb_next(&c, &f); read_usual(e, &c, &category, &category_iid)) {
        switch (f.id) {
        case TRACK_EVENT_CATEGORY_IIDS:
            if (f.wire == PB_BYTES) {
                struct pb_cursor packed = pb_sub(&f);
                while (pb_next_packed(&packed, &category_iid))
                    e->n_categories++;
            } else {
                category_iid = f.u;
                e->n_categories++;
            }
            category = (struct slice){0};
            break;
        case TRACK_EVENT_CATEGORIES:
            category = pb_bytes(&f);
            e->n_categories++;
            break;
        case TRACK_EVENT_LEGACY_EVENT:
            read_legacy(e, pb_bytes(&f));
            break;
        case TRACK_EVENT_TYPE:
            e->type = pb_u32(&f);
            e->has_type = true;
            break;
        case TRACK_EVENT_NAME_IID:
            e->name_iid = pb_u64(&f);
            break;
        case TRACK_EVENT_NAME:
            e->name_text = pb_bytes(&f);
            e->has_name_text = true;
            break;
        case TRACK_EVENT_TRACK_UUID:
            e->track_uuid = pb_u64(&f);
            e->has_track = true;
            break;
        case TRACK_EVENT_LOG_MESSAGE:
            e->log_message = pb_bytes(&f);
            e->has_args = true;
            break;
        case TRACK_EVENT_COUNTER_VALUE:
            e->counter = pb_i64(&f);
            break;
        case TRACK_EVENT_DOUBLE_COUNTER_VALUE:
            e->counter_real = pb_double(&f);
            e->has_real = true;
            break;
        case TRACK_EVENT_FLOW_IDS_OLD:
        case TRACK_EVENT_TERMINATING_FLOW_IDS_OLD:
        case TRACK_EVENT_FLOW_IDS:
        case TRACK_EVENT_TERMINATING_FLOW_IDS:
            e->has_flows = true;
            break;
        case TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE:
            e->has_args = true;
            if (!e->quiet)
                check_histogram(e, pb_bytes(&f));
            break;
        case TRACK_EVENT_CALLSTACK:
        case TRACK_EVENT_CALLSTACK_IID:
            e->has_callstack = true;
            break;
        default:
            if (track_event_field_has_args(f.id))
                e->has_args = true;
            else if (f.id >= FIRST_EXTENSION && schema_field(track_event_schema(e->m->im), e->t->message, f.id))
                e->has_args = true;
            else if (f.id >= FIRST_EXTENSION && !e->quiet)
                count(e, STAT_unknown_extension_fields);
            e->has_gpu |= f.id == TRACK_EVENT_GPU_CORRELATION;
            e->lists_processes |= f.id == TRACK_EVENT_CHROME_ACTIVE_PROCESSES || f.id == TRACK_EVENT_ACTIVE_PROCESSES;
            e->has_process |= f.id == TRACK_EVENT_PROCESS_START_EVENT || f.id == TRACK_EVENT_BINDER_DIED_EVENT;
            e->has_mojo |= f.id == TRACK_EVENT_CHROME_MOJO_EVENT_INFO;
        }
        if (f.id == TRACK_EVENT_DEBUG_ANNOTATIONS)
            e->has_args = true;
    }
    if (e->n_categories == 1)
        e->category = category.p ? import_slice(e->m->im, category) : event_category(e, category_iid);
    else if (e->n_categories > 1)
        e->category = event_joined_categories(e, bytes);
    uint64_t iid = e->name_iid ? e->name_iid : e->legacy.name_iid;
    if (iid)
        e->name = interned_string(e->g, INTERNED_DATA_EVENT_NAMES, iid, EVENT_NAME_NAME);
    else if (e->has_name_text)
        e->name = import_slice(e->m->im, e->name_text);
    return !c.bad;
}

static strid known_category(struct event *e, uint64_t iid)
{
    return interned_string(e->g, INTERNED_DATA_EVENT_CATEGORIES, iid, EVENT_CATEGORY_NAME);
}

strid event_category(struct event *e, uint64_t iid)
{
    strid s = known_category(e, iid);
    return s ? s : strpool_printf(&e->m->st->strings, "unknown(%u)", (unsigned)iid);
}

strid event_joined_categories(struct event *e, struct slice bytes)
{
    struct joined_text joined;
    struct strpool *strings = &e->m->st->strings;
    struct pb_numbers iids = pb_numbers(bytes, TRACK_EVENT_CATEGORY_IIDS);
    uint64_t iid;
    joined.n = 0;
    while (pb_next_number(&iids, &iid)) {
        strid known = known_category(e, iid);
        if (known) /* one that nothing has named is left out */
            joined_text_add(&joined, ',', strpool_view(strings, known));
    }
    /* Numbered categories first, then those in full. */
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == TRACK_EVENT_CATEGORIES)
            joined_text_add(&joined, ',', pb_bytes(&f));
    return joined_text_intern(strings, &joined);
}

/* --- which track -------------------------------------------------------------------------------------------------- */

static void on_thread(struct event *e, int64_t pid, int64_t tid)
{
    struct machine_ctx *m = e->m;
    e->utid = process_tracker_update_thread(m->processes, tid, pid);
    e->upid = process_tracker_thread_process(m->processes, e->utid);
}

/* False when the track's place is not known. */
static bool on_described_track(struct event *e, uint64_t uuid)
{
    const struct track_event_sequence *s = e->sequence;
    e->track = track_event_track_get(e->t, uuid);
    if (!e->track || !track_event_track_resolve(e->t, e->track, e->name))
        return false;
    if (e->track->scope == SCOPE_THREAD) {
        e->utid = e->track->utid;
        if (e->has_legacy)
            e->upid = process_tracker_thread_process(e->m->processes, e->utid);
        return true;
    }
    if (e->track->scope == SCOPE_PROCESS)
        e->upid = e->track->upid;
    if (s && s->has_thread && uuid) {
        /* The event is not on its thread's track; say which thread wrote it. */
        uint32_t utid = process_tracker_update_thread(e->m->processes, s->tid, s->pid);
        if (e->track->scope == SCOPE_GLOBAL || process_tracker_thread_process(e->m->processes, utid) == e->track->upid)
            e->marks.utid = utid;
    }
    return true;
}

/* False for events of thread or process 0, which is idle, and of tracks whose place is not known. */
static bool associate(struct event *e)
{
    const struct track_event_defaults *d = track_event_defaults(e->t, e->g);
    const struct track_event_sequence *s = e->sequence;
    uint64_t uuid = e->has_track ? e->track_uuid : d->has_track ? d->track_uuid : 0;
    if (uuid)
        return on_described_track(e, uuid);
    /* Events without a track fall back to the sequence's thread, if they are of the older kind or do not insist. */
    bool has_thread = s && s->has_thread;
    bool fall_back = ((!e->has_track || !e->has_type) && has_thread) ||
                     LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_PID_OVERRIDE) ||
                     (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_TID_OVERRIDE) && has_thread);
    if (!fall_back)
        return on_described_track(e, 0);
    int64_t pid = has_thread ? s->pid : 0, tid = has_thread ? s->tid : 0;
    if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_PID_OVERRIDE)) {
        pid = e->legacy.pid_override;
        tid = track_event_sandboxed_tid(pid, -1); /* no thread of another process */
    }
    if (LEGACY_HAS(e, TRACK_EVENT_LEGACY_EVENT_TID_OVERRIDE))
        tid = has_thread && track_event_is_sandboxed_tid(s->tid)
                  ? track_event_sandboxed_tid(pid, e->legacy.tid_override)
                  : (uint32_t)e->legacy.tid_override;
    if (!pid || !tid)
        return false;
    on_thread(e, pid, tid);
    return true;
}

uint32_t event_track_row(struct event *e, enum track_event_moment moment)
{
    struct track_tracker *tracks = e->m->im->tracks;
    if (e->set != TRACK_SET_NONE) {
        if (moment == AT_END)
            return track_set_end(tracks, e->set, e->cookie);
        uint32_t row = track_set_begin(tracks, e->set, e->cookie);
        if (moment == AT_INSTANT)
            track_set_end(tracks, e->set, e->cookie);
        return row;
    }
    if (e->row == UINT32_MAX && !e->track)
        e->row = track_intern_int(tracks, e->m->id, "thread_execution", TRACK_SLICE, "utid", e->utid, 0);
    if (e->row != UINT32_MAX)
        return e->row;
    return track_event_track_row(e->t, e->track, moment);
}

/* What comes along with the event of a slice. */
static void slice_extras(struct event *e, uint32_t slice, enum track_event_moment moment)
{
    if (slice == SLICE_NONE)
        return;
    if (e->legacy.phase != 'T' && e->legacy.phase != 'p')
        event_flows(e, slice);
    if (e->has_gpu)
        event_gpu_flows(e, slice);
    if (e->has_callstack)
        event_callstack(e, slice, moment);
}

/* --- what the event is -------------------------------------------------------------------------------------------- */

/* A line of a thread's log. */
static void log_message(struct event *e)
{
    enum {
        DEFAULT_PRIO = 4 /* info */,
        MAX_FILE = 4096 /* bytes of a file's name in a tag: each line makes its own */
    };
    struct machine_ctx *m = e->m;
    struct pb_field f, file, line;
    if (e->utid == UTID_NONE) { /* a slice does not show it either */
        e->marks.no_log = true;
        event_error(e);
        return;
    }
    struct logs_row row = {
        .ts = e->ts, .utid = e->utid, .log_source = import_str(m->im, "android_logcat"), .prio = DEFAULT_PRIO};
    bool has_location = pb_find(e->log_message, LOG_MESSAGE_SOURCE_LOCATION_IID, &f);
    struct slice location =
        has_location ? interned_find(e->g, INTERNED_DATA_SOURCE_LOCATIONS, pb_u64(&f)) : (struct slice){0};
    if (pb_find(e->log_message, LOG_MESSAGE_BODY_IID, &f))
        row.msg = interned_string(e->g, INTERNED_DATA_LOG_MESSAGE_BODY, pb_u64(&f), LOG_MESSAGE_BODY_BODY);
    if (!row.msg || (has_location && !location.p)) {
        event_error(e);
        return;
    }
    if (location.p) {
        struct slice name = pb_find(location, SOURCE_LOCATION_FILE_NAME, &file) ? pb_bytes(&file) : slice_of("", 0);
        uint32_t number = pb_find(location, SOURCE_LOCATION_LINE_NUMBER, &line) ? pb_u32(&line) : 0;
        row.tag = strpool_printf(&m->st->strings, "%.*s:%u", (int)(name.len < MAX_FILE ? name.len : MAX_FILE),
                                 (const char *)name.p, number);
    }
    if (pb_find(e->log_message, LOG_MESSAGE_PRIO, &f) && pb_u32(&f) > 1)
        row.prio = pb_u32(&f);
    logs_insert(m->st, &row);
}

static struct slice_row row_of(struct event *e, int64_t dur, uint32_t track)
{
    argset set = track_event_event_args(e->t, e->g, e->bytes, e->has_args, &e->marks);
    bool timed = e->utid != UTID_NONE && !e->is_async;
    return (struct slice_row){.ts = e->ts,
                              .dur = dur,
                              .track_id = track,
                              .category = e->category,
                              .name = e->name,
                              .arg_set_id = set,
                              .thread_ts = timed ? e->thread_ts : COL_NULL,
                              .thread_dur = COL_NULL,
                              .thread_instruction_count = timed ? e->thread_instructions : COL_NULL,
                              .thread_instruction_delta = COL_NULL};
}

void event_begin(struct event *e)
{
    uint32_t track = event_track_row(e, AT_BEGIN);
    struct slice_row row = row_of(e, -1, track);
    slice_extras(e, slice_push(e->m->im->slices, e->m->id, &row), AT_BEGIN);
}

void event_instant(struct event *e)
{
    uint32_t track = event_track_row(e, AT_INSTANT);
    struct slice_row row = row_of(e, 0, track);
    if (row.thread_ts != COL_NULL)
        row.thread_dur = 0;
    if (row.thread_instruction_count != COL_NULL)
        row.thread_instruction_delta = 0;
    slice_extras(e, slice_push(e->m->im->slices, e->m->id, &row), AT_INSTANT);
}

void event_complete(struct event *e)
{
    int64_t dur;
    if (__builtin_mul_overflow(e->legacy.duration_us, 1000, &dur) || dur < 0) {
        event_error(e);
        return;
    }
    uint32_t track = event_track_row(e, AT_INSTANT);
    struct slice_row row = row_of(e, dur, track);
    if (row.thread_ts != COL_NULL && __builtin_mul_overflow(e->legacy.thread_duration_us, 1000, &row.thread_dur))
        row.thread_dur = COL_NULL;
    if (row.thread_instruction_count != COL_NULL)
        row.thread_instruction_delta = e->legacy.instruction_delta;
    slice_extras(e, slice_push(e->m->im->slices, e->m->id, &row), AT_INSTANT);
}

/* What a count of the thread gained between begin and end; NULL, counted, when 64 bits do not hold it. */
static int64_t gained(struct event *e, int64_t begin, int64_t end)
{
    int64_t difference;
    if (!__builtin_sub_overflow(end, begin, &difference))
        return difference;
    count(e, STAT_track_event_parser_errors);
    return COL_NULL;
}

void event_end(struct event *e)
{
    struct machine_ctx *m = e->m;
    uint32_t track = event_track_row(e, AT_END);
    uint32_t slice = slice_end(m->im->slices, m->id, e->ts, track, e->category, e->name, NULL);
    if (slice == SLICE_NONE)
        return;
    if (e->log_message.p) /* an end that ends nothing says nothing */
        log_message(e);
    if (e->has_args) {
        /* Arrays go on where those of the begin ended, so both are read together. */
        struct args *args = &m->st->args;
        argset have = ROW_ARGS(m->st, slice, arg_set_id, slice);
        e->t->args.n = 0;
        args_values(args, have, &e->t->args);
        track_event_append_args(m->im, e->g, e->bytes, NULL, NULL, &e->t->args);
        argset set = args_intern(args, e->t->args.p, e->t->args.n);
        if (!argset_is_none(set))
            ROW_SET_ARGS(m->st, slice, arg_set_id, slice, set);
    }
    if (e->thread_ts != COL_NULL) {
        int64_t begin = ROW_GET(m->st, slice, thread_ts, slice);
        if (begin != COL_NULL && begin != e->thread_ts)
            ROW_SET(m->st, slice, thread_dur, slice, gained(e, begin, e->thread_ts));
    }
    if (e->thread_instructions != COL_NULL) {
        int64_t begin = ROW_GET(m->st, slice, thread_instruction_count, slice);
        if (begin != COL_NULL)
            ROW_SET(m->st, slice, thread_instruction_delta, slice, gained(e, begin, e->thread_instructions));
    }
    slice_extras(e, slice, AT_END);
}

static void counter_event(struct event *e)
{
    struct track_event_track *k = e->track;
    double value = e->extra && k && k->incremental ? e->extra->counter_value
                   : e->has_real                   ? e->counter_real
                                                   : (double)e->counter;
    if (!k || k->use != USE_COUNTER) {
        count(e, STAT_track_event_counter_invalid_track_uuid);
        return;
    }
    if (k->multiplier > 0 && !k->incremental)
        value *= (double)k->multiplier;
    counter_insert(e->m->st, &(struct counter_row){
                                 .ts = e->ts,
                                 .track_id = track_event_track_own_row(e->t, k),
                                 .value = value,
                                 .arg_set_id = track_event_event_args(e->t, e->g, e->bytes, e->has_args, &e->marks)});
}

static void state_event(struct event *e)
{
    struct track_event_track *k = e->track;
    struct storage *st = e->m->st;
    if (!k || k->use != USE_STATE) {
        event_error(e);
        return;
    }
    uint32_t track = track_event_track_own_row(e->t, k);
    if (k->state_row)
        ROW_SET(st, state, dur, k->state_row - 1, saturating_sub(e->ts, ROW_GET(st, state, ts, k->state_row - 1)));
    k->state_row = 0;
    if (!e->name) /* the state before ends, no other begins */
        return;
    argset set = track_event_event_args(e->t, e->g, e->bytes, e->has_args, &e->marks);
    uint32_t row = state_insert(
        st,
        &(struct state_row){
            .ts = e->ts, .dur = -1, .track_id = track, .category = e->category, .value = e->name, .arg_set_id = set});
    k->state_row = row + 1;
}

/* Samples that come along with an event of another kind. */
static void counters_along(struct event *e)
{
    const struct track_event_extra *x = e->extra;
    struct importer *im = e->m->im;
    uint32_t machine = e->m->id;
    if (e->utid != UTID_NONE && x->thread_ts != COL_NULL) {
        e->thread_ts = x->thread_ts;
        counter_push(im, e->ts,
                     track_intern_int(im->tracks, machine, "thread_time", TRACK_COUNTER, "utid", e->utid,
                                      import_str(im, "thread_time")),
                     (double)x->thread_ts);
    }
    if (e->utid != UTID_NONE && x->thread_instructions != COL_NULL) {
        e->thread_instructions = x->thread_instructions;
        counter_push(im, e->ts,
                     track_intern_int(im->tracks, machine, "thread_instructions", TRACK_COUNTER, "utid", e->utid,
                                      import_str(im, "thread_instruction_count")),
                     (double)x->thread_instructions);
    }
    for (uint32_t i = 0; i < x->n_counters; i++) {
        struct track_event_track *k = x->counters[i].track;
        double value = x->counters[i].value;
        if (!track_event_track_resolve(e->t, k, 0))
            continue;
        uint32_t row = track_event_track_own_row(e->t, k);
        counter_push(im, e->ts, row, value);
        struct slice name = strpool_view(&im->st->strings, (strid)ROW_GET(im->st, track, name, row));
        if (value <= -9e18 || value >= 9e18)
            continue;
        if (slice_eq_str(name, "thread_time")) /* what it is called makes it one */
            e->thread_ts = (int64_t)value;
        else if (slice_eq_str(name, "thread_instruction_count"))
            e->thread_instructions = (int64_t)value;
    }
}

static uint32_t process_of_sequence(const struct event *e)
{
    const struct sequence *seq = e->g->seq;
    return seq->has_thread ? process_tracker_process(e->m->processes, seq->pid) : UPID_NONE;
}

/* The file that a mojo method's address lies in gets its row, as if a sample had been taken there. */
static void mojo_mapping(struct event *e)
{
    struct pb_field mojo, f;
    if (pb_find(e->bytes, TRACK_EVENT_CHROME_MOJO_EVENT_INFO, &mojo) &&
        pb_find(pb_bytes(&mojo), CHROME_MOJO_EVENT_INFO_MOJO_INTERFACE_METHOD_IID, &f) &&
        pb_find(interned_find(e->g, INTERNED_DATA_UNSYMBOLIZED_SOURCE_LOCATIONS, pb_u64(&f)),
                UNSYMBOLIZED_SOURCE_LOCATION_MAPPING_ID, &f))
        stack_profile_interned_mapping(e->m, e->g, process_of_sequence(e), pb_u64(&f));
}

enum { TYPE_BEGIN = 1, TYPE_END, TYPE_INSTANT, TYPE_COUNTER, TYPE_STATE };

/* What an event says of processes and their files, beside what it shows. */
static void tell_of_processes(struct event *e)
{
    if (e->lists_processes)
        track_event_processes_listed(e->t, e->ts, e->bytes);
    if (e->has_mojo)
        mojo_mapping(e);
    if (e->has_process && (e->type == TYPE_BEGIN || e->type == TYPE_INSTANT))
        track_event_android_process(e->t, e->ts, e->bytes);
}

/* An event that nothing is known of but this. What is of the older format alone is not cleared, and the rest in two
 * pieces: of one, gcc makes a loop over words, whose stores the next reads wait for. */
static inline void event_open(struct event *e, struct track_event_machine *t, int64_t ts, struct slice bytes,
                              struct seq_generation *g)
{
    enum { CLEARED = offsetof(struct event, legacy.id_field), FIRST = 64 };
    memset(e, 0, FIRST);
    memset((char *)e + FIRST, 0, CLEARED - FIRST);
    e->t = t;
    e->m = t->m;
    e->g = g;
    e->ts = ts;
    e->bytes = bytes;
    e->sequence = NULL;
    e->extra = NULL;
    e->row = UINT32_MAX;
    e->set = TRACK_SET_NONE;
    e->utid = e->marks.utid = UTID_NONE;
    e->upid = UPID_NONE;
    e->thread_ts = e->thread_instructions = COL_NULL;
}

void track_event_analyze(struct packet *p)
{
    struct content_analysis *content = content_analysis_of(p->m->im);
    if (!content)
        return;
    struct event e;
    event_open(&e, p->m->track_event, p->ts, p->field, p->gen);
    e.quiet = true;
    if (read_event(&e, p->field))
        content_analysis_packet(content, p->bytes,
                                &(struct content_annotation){{"event.category", "event.name"}, {e.category, e.name}});
}

static void parse_event(struct track_event_machine *t, int64_t ts, struct slice bytes, struct seq_generation *g,
                        const struct track_event_extra *extra)
{
    struct event e;
    event_open(&e, t, ts, bytes, g);
    e.extra = extra;
    const struct track_event_generation *own = track_event_generation(t, g);
    if (!own)
        return;
    e.sequence = own->sequence;
    t->from_first_packet = g->seq->begun;
    if (!read_event(&e, bytes) || (!e.type && !LEGACY_HAS(&e, TRACK_EVENT_LEGACY_EVENT_PHASE))) {
        event_error(&e);
        return;
    }
    if (t->m->im->opt.crop_track_events && t->has_range && ts < t->range_start) {
        count(&e, STAT_track_event_dropped_packets_outside_of_range_of_interest);
        return;
    }
    if (!associate(&e) || (LEGACY_HAS(&e, TRACK_EVENT_LEGACY_EVENT_PHASE) && !legacy_associate(&e))) {
        event_error(&e);
        return;
    }
    if (extra)
        counters_along(&e);
    if (e.type == TYPE_COUNTER) {
        counter_event(&e);
        return;
    }
    if (LEGACY_HAS(&e, TRACK_EVENT_LEGACY_EVENT_PHASE) && e.type != TYPE_STATE)
        e.type = 0; /* its phase says what it is */
    if (e.log_message.p && e.type != TYPE_END && !legacy_ends(&e))
        log_message(&e);
    tell_of_processes(&e);
    switch (e.type) {
    case TYPE_BEGIN:
        event_begin(&e);
        break;
    case TYPE_END:
        event_end(&e);
        break;
    case TYPE_INSTANT:
        event_instant(&e);
        break;
    case TYPE_STATE:
        state_event(&e);
        break;
    default: /* of no known type, most often one of the older format */
        if (!e.has_legacy)
            e.legacy = (struct legacy_event){0};
        legacy_event(&e);
    }
}

void track_event_parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct track_event_machine *t = owner;
    for (size_t i = 0; i < n; i++) {
        const struct sort_event *s = &events[i];
        sort_ask_ahead(s, n - 1 - i, 128);
        uint32_t len = (uint32_t)(s->b >> 32);
        if (len != UINT32_MAX) {
            struct slice bytes = slice_of((const void *)(uintptr_t)s->a, len);
            parse_event(t, s->ts, bytes, generation_at(t->m->im, (uint32_t)s->b), NULL);
            continue;
        }
        struct track_event_extra *x = (struct track_event_extra *)(uintptr_t)s->a;
        parse_event(t, s->ts, slice_of(x->bytes, x->len), generation_at(t->m->im, x->generation), x);
        x->next_free = t->free_extras;
        t->free_extras = x;
    }
}
