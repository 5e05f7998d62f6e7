/* Markers that programs (and some drivers) write in the form of systrace. */
#include "importer/ftrace/ftrace_internal.h"

/* A slice of S and F markers: they do not nest; S again while open is only noted. */
struct async_open {
    int64_t last_begin_ts;
    uint32_t begin_count;
    bool open;
};

struct atrace {
    struct ftrace_machine *f;
    struct u64map open; /* track -> index in asyncs */
    VEC(struct async_open)
    asyncs;
};

struct atrace *atrace_open(struct ftrace_machine *f)
{
    struct atrace *a = mem_zalloc(sizeof *a);
    if (a)
        a->f = f;
    return a;
}

void atrace_close(struct atrace *a)
{
    if (!a)
        return;
    u64map_free(&a->open);
    vec_free(&a->asyncs);
    mem_free(a);
}

static void failure(const struct ftrace_event *e)
{
    stats_add(&e->m->st->stats, e->m->id, STAT_systrace_parse_failure, 1);
}

/* --- reading a line ---------------------------------------------------------------------------------------------- */

/* The bytes up to the next '|', NUL or the end; *line goes on behind the separator. */
static struct slice next_part(struct slice *line)
{
    size_t n = 0;
    while (n < line->len && line->p[n] != '|' && line->p[n] != 0)
        n++;
    struct slice part = slice_of(line->p, n);
    size_t eaten = n < line->len ? n + 1 : n;
    *line = slice_of(line->p ? line->p + eaten : NULL, line->len - eaten);
    return part;
}

/* A whole number and nothing else, as strtoll reads it: spaces and a sign in front. */
static bool parse_number(struct slice s, int64_t *value)
{
    size_t i = 0;
    bool negative = false;
    int64_t v = 0;
    while (i < s.len && (s.p[i] == ' ' || (s.p[i] >= '\t' && s.p[i] <= '\r')))
        i++;
    if (i < s.len && (s.p[i] == '-' || s.p[i] == '+'))
        negative = s.p[i++] == '-';
    if (i == s.len)
        return false;
    for (; i < s.len; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        int digit = s.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, negative ? -digit : digit, &v)) {
            v = negative ? INT64_MIN : INT64_MAX; /* saturates, as strtoll */
            while (++i < s.len)
                if (s.p[i] < '0' || s.p[i] > '9')
                    return false;
            break;
        }
    }
    *value = v;
    return true;
}

/* What stands behind the tgid, by phase; false when something is missing. */
static bool read_rest(struct slice line, bool has_tgid, struct atrace_point *p)
{
    switch (p->phase) {
    case 'B':
        p->name = line.len ? line : slice_str("[empty slice name]");
        return has_tgid;
    case 'E': /* some programs write no tgid: the thread tells enough */
        return true;
    case 'S':
    case 'F':
    case 'C': { /* Chromium puts a category group behind the value */
        p->name = next_part(&line);
        struct slice value = next_part(&line);
        return has_tgid && p->name.len && parse_number(value, &p->value);
    }
    case 'I':
        p->name = next_part(&line);
        return has_tgid && p->name.len;
    case 'N':
        p->track = next_part(&line);
        p->name = next_part(&line);
        return has_tgid && p->track.len && p->name.len;
    case 'G':
        p->track = next_part(&line);
        p->name = next_part(&line);
        return has_tgid && p->track.len && p->name.len && parse_number(next_part(&line), &p->value);
    case 'H': { /* with or without the name of the slice */
        p->track = next_part(&line);
        struct slice first = next_part(&line), second = next_part(&line);
        return has_tgid && p->track.len && parse_number(second.len ? second : first, &p->value);
    }
    default:
        return false;
    }
}

void atrace_parse_line(const struct ftrace_event *e, struct slice line)
{
    struct atrace_point p = {0};
    struct slice whole;
    int64_t tgid;
    while (line.len && (line.p[line.len - 1] == '\n' || line.p[line.len - 1] == 0))
        line.len--;
    whole = line;
    struct slice phase = next_part(&line);
    if (!phase.len) {
        failure(e);
        return;
    }
    p.phase = (char)phase.p[0];
    bool has_tgid = parse_number(next_part(&line), &tgid); /* wraps, as strtoul's does */
    p.tgid = has_tgid ? (uint32_t)tgid : 0;
    if (read_rest(line, has_tgid, &p))
        atrace_point(e, &p);
    else if (!slice_starts(whole, "trace_event_clock_sync:"))
        failure(e);
}

void atrace_kernel_mark(const struct ftrace_event *e, char type, bool begin, struct slice name, uint32_t tgid,
                        int64_t value)
{
    if (type == 0)
        type = begin ? 'B' : 'E';
    if (type != 'B' && type != 'E' && type != 'C' && type != 'I') {
        failure(e);
        return;
    }
    atrace_point(e, &(struct atrace_point){.phase = type, .tgid = tgid, .name = name, .value = value});
}

/* --- what a marker does ------------------------------------------------------------------------------------------ */

static void kill_mark(const struct ftrace_event *e, int64_t pid)
{
    uint32_t upid = process_tracker_process(e->m->processes, pid);
    ftrace_instant(e, FTRACE_TRACK(e, TRACK_SLICE, "android_lmk", ftrace_text(e, "LMK"), DIM_I("upid", upid)), 0,
                   ftrace_text(e, "mem.lmk"), ARGSET_NONE);
}

/* "lmk,<pid>,<reason>,<oom_score_adj>,…": a slice of the low-memory killer names its victim. */
static void low_memory_kill(const struct ftrace_event *e, struct slice name)
{
    int64_t parts[4] = {0};
    bool valid[4] = {false};
    for (size_t part = 0, start = 0, i = 0; i <= name.len && part < 4; i++) {
        if (i < name.len && name.p[i] != ',')
            continue;
        valid[part] = parse_number(slice_of(name.p + start, i - start), &parts[part]);
        part++;
        start = i + 1;
    }
    if (!valid[1] || !valid[3])
        return;
    uint32_t upid = process_tracker_process(e->m->processes, parts[1]);
    ftrace_counter(
        e, FTRACE_TRACK(e, TRACK_COUNTER, "oom_score_adj", ftrace_text(e, "oom_score_adj"), DIM_I("upid", upid)),
        (double)parts[3]);
    kill_mark(e, parts[1]);
}

/* The emitting thread, in the process that the marker names; its main thread comes into being too. */
static uint32_t thread_of_process(const struct ftrace_event *e, uint32_t tgid)
{
    return process_tracker_update_thread_and_main(e->m->processes, (int32_t)e->pid, (int32_t)tgid);
}

/* The thread that wrote the marker, as an arg; none when it is not known. */
static argset writer_args(const struct ftrace_event *e)
{
    uint32_t utid = process_tracker_find_thread(e->m->processes, (int32_t)e->pid);
    struct small_args args = {0};
    if (utid == UTID_NONE)
        return ARGSET_NONE;
    small_args_put(&args, e->f->text[TEXT_UTID], ARG_UINT, utid);
    return small_args_set(e, &args);
}

/* A tgid of 0 comes from interrupts and says nothing about the process. */
static uint32_t point_thread(const struct ftrace_event *e, uint32_t tgid)
{
    return tgid ? thread_of_process(e, tgid) : event_utid(e);
}

static void thread_end(const struct ftrace_event *e, uint32_t tgid)
{
    uint32_t utid = tgid             ? thread_of_process(e, tgid)
                    : e->line_thread ? e->line_thread - 1
                                     : process_tracker_find_thread(e->m->processes, (int32_t)e->pid);
    if (utid != UTID_NONE)
        ftrace_end(e, ftrace_thread_track(e, utid), 0, 0, NULL);
}

static void async_begin(const struct ftrace_event *e, uint32_t track, strid name, int64_t cookie)
{
    struct atrace *a = e->f->atrace;
    bool added;
    uint64_t *at = u64map_put(&a->open, track, &added);
    if (!at || (added && !vec_push(&a->asyncs, (struct async_open){0}))) {
        e->m->im->failed = true;
        return;
    }
    if (added)
        *at = a->asyncs.n - 1;
    struct async_open *o = &a->asyncs.p[*at];
    o->last_begin_ts = e->ts;
    o->begin_count++; /* of the track, however many slices it has had */
    bool open = o->open && slice_top(e->m->im->slices, track) != SLICE_NONE;
    o->open = true;
    if (open)
        return;
    struct small_args args = {0};
    small_args_add(e, &args, "cookie", ARG_INT, cookie);
    ftrace_begin(e, track, 0, name, small_args_set(e, &args));
}

static void async_end(const struct ftrace_event *e, uint32_t track)
{
    struct atrace *a = e->f->atrace;
    const uint64_t *at = u64map_get(&a->open, track);
    struct small_args args = {0};
    if (at && a->asyncs.p[*at].open) {
        struct async_open *o = &a->asyncs.p[*at];
        small_args_add(e, &args, "legacy_unnestable_begin_count", ARG_INT, o->begin_count);
        small_args_add(e, &args, "legacy_unnestable_last_begin_ts", ARG_INT, o->last_begin_ts);
        o->open = false;
    }
    struct arg_list list = small_args_list(&args);
    ftrace_end(e, track, 0, 0, &list);
}

static void async_point(const struct ftrace_event *e, const struct atrace_point *p)
{
    strid name = import_slice(e->m->im, p->name);
    uint32_t upid = process_tracker_process(e->m->processes, p->tgid);
    struct track_dim dims[] = {DIM_I("upid", upid), DIM_S("name", name)};
    uint32_t set = ftrace_track_set(e, "atrace_async_slice", name, dims, 2);
    if (p->phase == 'S')
        async_begin(e, track_set_begin_once(e->m->im->tracks, set, p->value), name, p->value);
    else
        async_end(e, track_set_end(e->m->im->tracks, set, p->value));
}

static void track_point(const struct ftrace_event *e, const struct atrace_point *p)
{
    struct track_tracker *tracks = e->m->im->tracks;
    strid name = import_slice(e->m->im, p->name), track_name = import_slice(e->m->im, p->track);
    if (p->phase == 'N' && slice_eq_str(p->track, "DeviceStateChanged")) { /* of the device, not of the process */
        ftrace_instant(e, ftrace_track(e, TRACK_SLICE, "android_device_state", track_name, NULL, 0), 0, name,
                       ARGSET_NONE);
        return;
    }
    uint32_t upid = process_tracker_process(e->m->processes, p->tgid);
    struct track_dim dims[] = {DIM_I("upid", upid), DIM_S("name", track_name)};
    uint32_t set = ftrace_track_set(e, "atrace_async_slice_for_track", track_name, dims, 2);
    switch (p->phase) {
    case 'N':
        ftrace_instant(e, track_set_scoped(tracks, set, e->ts, 0), 0, name, writer_args(e));
        break;
    case 'G':
        ftrace_begin(e, track_set_begin(tracks, set, p->value), 0, name, writer_args(e));
        break;
    default: {
        uint32_t utid = process_tracker_find_thread(e->m->processes, (int32_t)e->pid);
        struct small_args args = {0};
        if (utid != UTID_NONE)
            small_args_add(e, &args, "end_utid", ARG_UINT, utid);
        struct arg_list list = small_args_list(&args);
        ftrace_end(e, track_set_end(tracks, set, p->value), 0, 0, &list);
    }
    }
}

/* A counter belongs to the process it names, whichever thread tells (drivers name any). */
static void counter_point(const struct ftrace_event *e, const struct atrace_point *p)
{
    strid name = import_slice(e->m->im, p->name);
    double value = (double)p->value;
    if (slice_eq_str(p->name, "ScreenState")) {
        ftrace_counter(e, ftrace_track(e, TRACK_COUNTER, "screen_state", name, NULL, 0), value);
        return;
    }
    if (slice_starts(p->name, "battery_stats.")) {
        ftrace_counter(e, FTRACE_TRACK(e, TRACK_COUNTER, "battery_stats", name, DIM_S("counter_key", name)), value);
        return;
    }
    if (slice_eq_str(p->name, "kill_one_process") && (uint32_t)p->value != 0)
        kill_mark(e, (uint32_t)p->value);
    uint32_t upid = process_tracker_process(e->m->processes, p->tgid);
    uint32_t track = FTRACE_TRACK(e, TRACK_COUNTER, "atrace_counter", name, DIM_I("upid", upid), DIM_S("name", name));
    ftrace_counter_args(e, e->ts, track, value, writer_args(e));
}

void atrace_point(const struct ftrace_event *e, const struct atrace_point *p)
{
    switch (p->phase) {
    case 'B':
        ftrace_begin(e, ftrace_thread_track(e, point_thread(e, p->tgid)), 0, import_slice(e->m->im, p->name),
                     ARGSET_NONE);
        if (slice_starts(p->name, "lmk,"))
            low_memory_kill(e, p->name);
        break;
    case 'E':
        thread_end(e, p->tgid);
        break;
    case 'I':
        ftrace_instant(e, ftrace_thread_track(e, point_thread(e, p->tgid)), 0, import_slice(e->m->im, p->name),
                       ARGSET_NONE);
        break;
    case 'S':
    case 'F':
        async_point(e, p);
        break;
    case 'N':
    case 'G':
    case 'H':
        track_point(e, p);
        break;
    case 'C':
        counter_point(e, p);
        break;
    }
}
