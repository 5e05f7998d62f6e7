/* Reads profiles of Firefox: the form that its profiler writes (tables with a schema), and the processed one. */
#include "importer/json/chrome_json.h"
#include "importer/json/json_import.h"
#include "importer/profiling/profile_file.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <math.h>
#include <stdlib.h>

enum marker_phase { MARKER_INSTANT, MARKER_SPAN, MARKER_BEGIN, MARKER_END };

/* A sample or a marker that waits for its turn. */
struct gecko_event {
    uint32_t thread;
    uint32_t callsite; /* of a sample */
    bool is_marker;
    uint8_t phase; /* of a marker */
    strid name, category;
    int64_t dur;
    argset args;
};

struct gecko_thread {
    int64_t pid, tid;
    strid name;
    uint32_t utid; /* UTID_NONE until its first event */
};

typedef VEC(double) numbers; /* NaN for what is none */
typedef VEC(strid) names;
typedef VEC(uint32_t) rows; /* UINT32_MAX: not usable */

struct gecko {
    struct importer *im;
    struct machine_ctx *m;
    struct file_clock clock;
    uint32_t queue;
    VEC(struct gecko_thread)
    threads;
    VEC(struct gecko_event)
    events;
    struct u64map frames; /* name -> row of its frame */
    names categories, shared_strings;
    rows shared_callsites;
    bool failed;
};

/* The members of an object by their names: one pass. What it does not have stays empty. */
static void members(struct slice object, const char *const *keys, size_t n, struct slice *out)
{
    struct json_reader r = json_reader(object);
    struct json_text key;
    struct slice value;
    memset(out, 0, n * sizeof *out);
    if (!object.len || object.p[0] != '{' || !json_enter(&r, '{'))
        return;
    while (json_member(&r, &key) && json_skip(&r, &value))
        for (size_t i = 0; i < n; i++)
            if (json_text_is(key, keys[i]))
                out[i] = value;
}

static struct slice member(struct slice object, const char *key)
{
    struct slice value;
    members(object, &key, 1, &value);
    return value;
}

static bool begin_array(struct json_reader *r, struct slice array)
{
    *r = json_reader(array);
    return array.len && array.p[0] == '[' && json_enter(r, '[');
}

static bool element(struct json_reader *r, struct slice *value)
{
    return json_element(r) && json_skip(r, value);
}

static double number_of(struct slice value)
{
    struct json_number n;
    return json_number_of(value, &n) ? json_number_f64(&n) : (double)NAN;
}

/* An index below `limit`, else UINT32_MAX. */
static uint32_t index_of(double d, size_t limit)
{
    return d >= 0 && d < (double)limit && d < (double)UINT32_MAX ? (uint32_t)d : UINT32_MAX;
}

static strid string_of(struct gecko *g, struct slice value)
{
    struct json_reader r = json_reader(value);
    struct json_text text;
    if (!value.len || value.p[0] != '"' || !json_string(&r, &text))
        return 0;
    if (!text.escaped)
        return import_slice(g->im, text.raw);
    char *plain = mem_alloc(text.raw.len);
    if (!plain) {
        g->failed = true;
        return 0;
    }
    strid id = strpool_intern(&g->im->st->strings, plain, json_unescape(text, JSON_TOLERANT, plain));
    mem_free(plain);
    return id;
}

/* A pid or tid: a number, or digits in quotes; 0 for others. */
static int64_t id_of(struct slice value)
{
    struct json_number n;
    int64_t v;
    if (value.len >= 2 && value.p[0] == '"')
        value = slice_of(value.p + 1, value.len - 2);
    return json_number_of(value, &n) && json_number_i64(&n, true, &v) && v >= 0 ? v : 0;
}

static void read_numbers(struct gecko *g, struct slice array, numbers *out)
{
    struct json_reader r;
    struct slice value;
    if (begin_array(&r, array))
        while (!g->failed && element(&r, &value))
            g->failed |= !vec_push(out, number_of(value));
}

static void read_strings(struct gecko *g, struct slice array, names *out)
{
    struct json_reader r;
    struct slice value;
    if (begin_array(&r, array))
        while (!g->failed && element(&r, &value))
            g->failed |= !vec_push(out, string_of(g, value));
}

/* A column of a table: an array of the name, or the place in each row that the schema tells. */
static void read_column(struct gecko *g, struct slice table, const char *name, numbers *out)
{
    static const char *const keys[] = {"schema", "data"};
    struct slice found[2], row, value;
    members(table, keys, 2, found);
    if (!found[0].len) {
        read_numbers(g, member(table, name), out);
        return;
    }
    double column = number_of(member(found[0], name));
    struct json_reader r, in_row;
    if (!(column >= 0) || !begin_array(&r, found[1]))
        return;
    while (!g->failed && element(&r, &row)) {
        double v = (double)NAN, at = 0;
        if (begin_array(&in_row, row))
            for (; element(&in_row, &value); at++)
                if (at == column)
                    v = number_of(value);
        g->failed |= !vec_push(out, v);
    }
}

/* "f (in lib)" is f of lib; other names lie in the mapping "gecko". */
static uint32_t make_frame(struct gecko *g, strid name)
{
    static const char mark[] = " (in ";
    struct slice text = strpool_view(&g->im->st->strings, name), lib = slice_str("gecko");
    const uint8_t *in = text.len ? memmem(text.p, text.len, mark, sizeof mark - 1) : NULL;
    const uint8_t *from = in ? in + sizeof mark - 1 : NULL;
    const uint8_t *close = from ? memchr(from, ')', (size_t)(text.p + text.len - from)) : NULL;
    if (close) {
        lib = slice_of(from, (size_t)(close - from));
        name = strpool_intern(&g->im->st->strings, text.p, (size_t)(in - text.p));
    }
    uint32_t mapping = profile_file_mapping(g->m, strpool_intern(&g->im->st->strings, lib.p, lib.len));
    return mapping == UINT32_MAX ? mapping : profile_file_frame(g->m, mapping, name, 0);
}

/* A name may be long, and that of many frames. */
static uint32_t frame_of(struct gecko *g, strid name)
{
    const uint64_t *known = u64map_get(&g->frames, name);
    if (known)
        return (uint32_t)*known;
    uint32_t frame = make_frame(g, name);
    g->failed |= !u64map_set(&g->frames, name, frame);
    return frame;
}

enum {
    PART_NAME,
    PART_TID,
    PART_PID,
    PART_STRING_TABLE,
    PART_STRING_ARRAY,
    PART_FRAMES,
    PART_FUNCS,
    PART_STACKS,
    PART_SAMPLES,
    PART_MARKERS,
    PARTS
};
static const char *const part_names[PARTS] = {
    [PART_NAME] = "name",
    [PART_TID] = "tid",
    [PART_PID] = "pid",
    [PART_STRING_TABLE] = "stringTable",
    [PART_STRING_ARRAY] = "stringArray",
    [PART_FRAMES] = "frameTable",
    [PART_FUNCS] = "funcTable",
    [PART_STACKS] = "stackTable",
    [PART_SAMPLES] = "samples",
    [PART_MARKERS] = "markers",
};

/* The frames of a thread, by the rows of its table. */
static void read_frames(struct gecko *g, const struct slice *parts, const names *strings, rows *frames)
{
    numbers location = {0}, func = {0}, func_name = {0};
    read_column(g, parts[PART_FRAMES], "location", &location);
    read_column(g, parts[PART_FRAMES], "func", &func);
    read_column(g, parts[PART_FUNCS], "name", &func_name);
    bool processed = !location.n;
    size_t n = processed ? func.n : location.n;
    for (size_t i = 0; i < n && !g->failed; i++) {
        double at = processed ? func.p[i] : location.p[i];
        if (processed) {
            uint32_t f = index_of(at, func_name.n);
            at = f == UINT32_MAX ? (double)NAN : func_name.p[f];
        }
        uint32_t s = index_of(at, strings->n);
        uint32_t frame = s == UINT32_MAX || !strings->p[s] ? UINT32_MAX : frame_of(g, strings->p[s]);
        g->failed |= !vec_push(frames, frame);
    }
    vec_free(&location);
    vec_free(&func);
    vec_free(&func_name);
}

/* The callsites of a thread, by the rows of its stack table. */
static void read_stacks(struct gecko *g, const struct slice *parts, const names *strings, rows *callsites)
{
    rows frames = {0};
    numbers prefix = {0}, frame = {0};
    read_frames(g, parts, strings, &frames);
    read_column(g, parts[PART_STACKS], "prefix", &prefix);
    read_column(g, parts[PART_STACKS], "frame", &frame);
    for (size_t i = 0; i < prefix.n && i < frame.n && !g->failed; i++) {
        uint32_t f = index_of(frame.p[i], frames.n), p = index_of(prefix.p[i], callsites->n);
        uint32_t callsite = UINT32_MAX;
        if (f != UINT32_MAX && frames.p[f] != UINT32_MAX)
            callsite = stack_profile_callsite(g->m, p == UINT32_MAX ? CALLSITE_NONE : callsites->p[p], frames.p[f]);
        g->failed |= !vec_push(callsites, callsite);
    }
    vec_free(&frames);
    vec_free(&prefix);
    vec_free(&frame);
}

/* Milliseconds to ns, cut; -1 for what is beyond. */
static int64_t ns_of(double ms)
{
    double ns = ms * 1000 * 1000;
    return ns >= 0 && ns < 9.2e18 ? (int64_t)ns : -1;
}

static void queue_event(struct gecko *g, double ms, struct gecko_event e)
{
    int64_t ts;
    if (isnan(ms) || !file_clock_to_trace_time(&g->clock, ns_of(ms), -1, &ts))
        return;
    if (!vec_push(&g->events, e)) {
        g->failed = true;
        return;
    }
    sorter_push(g->im->sorter, g->queue, (struct sort_event){.ts = ts, .a = g->events.n - 1});
}

static void read_samples(struct gecko *g, uint32_t thread, struct slice samples, const rows *callsites)
{
    numbers stack = {0}, time = {0};
    read_column(g, samples, "stack", &stack);
    read_column(g, samples, "time", &time);
    for (size_t i = 0; i < stack.n && i < time.n && !g->failed; i++) {
        uint32_t s = index_of(stack.p[i], callsites->n);
        if (s != UINT32_MAX && callsites->p[s] != UINT32_MAX)
            queue_event(g, time.p[i], (struct gecko_event){.thread = thread, .callsite = callsites->p[s]});
    }
    vec_free(&stack);
    vec_free(&time);
}

static argset marker_args(struct gecko *g, struct slice data)
{
    struct arg_list list = {0};
    if (!data.len || (data.p[0] != '{' && data.p[0] != '['))
        return ARGSET_NONE;
    chrome_args_append(g->im, "data", data, false, &list);
    argset set = args_intern(&g->im->st->args, list.p, list.n);
    arg_list_free(&list);
    return set;
}

/* What markers hold: an array of its own, or a place in each row. */
struct marker_data {
    struct json_reader rows;
    double column; /* the place; -1: each row is all */
    bool there;
};

static struct marker_data open_data(struct slice markers)
{
    static const char *const keys[] = {"schema", "data"};
    struct slice found[2];
    struct marker_data d = {.column = -1};
    members(markers, keys, 2, found);
    if (found[0].len)
        d.column = number_of(member(found[0], "data"));
    d.there = !isnan(d.column) && begin_array(&d.rows, found[1]);
    return d;
}

/* What the next marker holds; empty when it holds nothing. */
static struct slice next_data(struct marker_data *d)
{
    struct slice row, value;
    struct json_reader in_row;
    d->there = d->there && element(&d->rows, &row);
    if (!d->there)
        return slice_of(NULL, 0);
    if (d->column < 0)
        return row;
    if (begin_array(&in_row, row))
        for (double at = 0; element(&in_row, &value); at++)
            if (at == d->column)
                return value;
    return slice_of(NULL, 0);
}

static void read_markers(struct gecko *g, uint32_t thread, struct slice markers, const names *strings)
{
    enum { NAME, START, END, PHASE, CATEGORY, COLUMNS };
    static const char *const keys[COLUMNS] = {"name", "startTime", "endTime", "phase", "category"};
    numbers c[COLUMNS] = {0};
    size_t n = SIZE_MAX;
    for (int i = 0; i < COLUMNS; i++) {
        read_column(g, markers, keys[i], &c[i]);
        n = c[i].n < n ? c[i].n : n;
    }
    struct marker_data data = open_data(markers);
    for (size_t i = 0; i < n && !g->failed; i++) {
        struct slice held = next_data(&data);
        uint32_t name = index_of(c[NAME].p[i], strings->n);
        uint32_t category = index_of(c[CATEGORY].p[i], g->categories.n);
        uint32_t phase = index_of(c[PHASE].p[i], MARKER_END + 1);
        if (name == UINT32_MAX || phase == UINT32_MAX)
            continue;
        int64_t start = ns_of(c[START].p[i]), end = ns_of(c[END].p[i]);
        queue_event(g, phase == MARKER_END ? c[END].p[i] : c[START].p[i],
                    (struct gecko_event){.thread = thread,
                                         .is_marker = true,
                                         .phase = (uint8_t)phase,
                                         .name = strings->p[name],
                                         .category = category == UINT32_MAX ? 0 : g->categories.p[category],
                                         .dur = end > start ? end - start : 0,
                                         .args = marker_args(g, held)});
    }
    for (int i = 0; i < COLUMNS; i++)
        vec_free(&c[i]);
}

static void read_thread(struct gecko *g, struct slice object)
{
    struct slice parts[PARTS];
    names strings = {0};
    rows callsites = {0};
    members(object, part_names, PARTS, parts);
    struct gecko_thread t = {.pid = id_of(parts[PART_PID]),
                             .tid = id_of(parts[PART_TID]),
                             .name = string_of(g, parts[PART_NAME]),
                             .utid = UTID_NONE};
    uint32_t thread = (uint32_t)g->threads.n;
    if (!vec_push(&g->threads, t)) {
        g->failed = true;
        return;
    }
    read_strings(g, parts[parts[PART_STRING_TABLE].len ? PART_STRING_TABLE : PART_STRING_ARRAY], &strings);
    const names *use = strings.n ? &strings : &g->shared_strings;
    if (!g->shared_callsites.n)
        read_stacks(g, parts, use, &callsites);
    read_samples(g, thread, parts[PART_SAMPLES], g->shared_callsites.n ? &g->shared_callsites : &callsites);
    read_markers(g, thread, parts[PART_MARKERS], use);
    vec_free(&strings);
    vec_free(&callsites);
}

static void read_document(struct gecko *g, struct slice document)
{
    static const char *const keys[] = {"meta", "shared", "threads"};
    struct slice found[3], shared[PARTS], value;
    struct json_reader r;
    struct json_reader at = json_reader(document);
    json_peek(&at); /* white space in front */
    members(slice_of(at.p, (size_t)(at.end - at.p)), keys, 3, found);
    if (begin_array(&r, member(found[0], "categories")))
        while (!g->failed && element(&r, &value))
            g->failed |= !vec_push(&g->categories, string_of(g, member(value, "name")));
    members(found[1], part_names, PARTS, shared);
    read_strings(g, shared[shared[PART_STRING_TABLE].len ? PART_STRING_TABLE : PART_STRING_ARRAY], &g->shared_strings);
    read_stacks(g, shared, &g->shared_strings, &g->shared_callsites);
    if (begin_array(&r, found[2]))
        while (!g->failed && element(&r, &value))
            read_thread(g, value);
}

/* --- in order of time --- */

static uint32_t utid_of(struct gecko *g, struct gecko_thread *t)
{
    struct process_tracker *p = g->m->processes;
    if (t->utid != UTID_NONE)
        return t->utid;
    if (t->pid) {
        process_tracker_process(p, t->pid);
        t->utid = process_tracker_update_thread(p, t->tid, t->pid);
    } else {
        t->utid = process_tracker_zero_thread(p, t->tid);
    }
    if (t->name)
        process_tracker_thread_name(p, t->utid, t->name, THREAD_NAME_OTHER);
    return t->utid;
}

static void log_overlap(struct gecko *g, int64_t ts, uint32_t conflict)
{
    struct storage *st = g->im->st;
    struct arg_list list = {0};
    int64_t from = ROW_GET(st, slice, ts, conflict), dur = ROW_GET(st, slice, dur, conflict);
    arg_list_int(&st->args, &list, "overlap_start", ts);
    arg_list_int(&st->args, &list, "overlap_end", from + dur);
    arg_list_str(&st->args, &list, "conflicting_slice_name", (strid)ROW_GET(st, slice, name, conflict));
    arg_list_int(&st->args, &list, "conflicting_slice_ts", from);
    arg_list_int(&st->args, &list, "conflicting_slice_dur", dur);
    argset set = args_intern(&st->args, list.p, list.n);
    arg_list_free(&list);
    import_log(g->m, STAT_slice_drop_overlapping_complete_event, ts, -1, set);
}

static void add_marker(struct gecko *g, int64_t ts, uint32_t utid, const struct gecko_event *e)
{
    struct track_dim dims[] = {{"utid", DIM_INT, utid},
                               {"firefox_marker_category", DIM_STR, e->category},
                               {"firefox_marker_name", DIM_STR, e->name}};
    struct track_spec spec = {.type = "firefox_marker",
                              .event_type = TRACK_SLICE,
                              .name = e->name,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 3};
    uint32_t track = track_intern(g->im->tracks, g->m->id, &spec), conflict;
    if (e->phase == MARKER_END) {
        struct arg_list add = {0};
        args_values(&g->im->st->args, e->args, &add);
        slice_end(g->im->slices, g->m->id, ts, track, e->category, e->name, &add);
        arg_list_free(&add);
        return;
    }
    struct slice_row row = {.ts = ts,
                            .dur = e->phase == MARKER_BEGIN     ? -1
                                   : e->phase == MARKER_INSTANT ? 0
                                                                : e->dur,
                            .track_id = track,
                            .category = e->category,
                            .name = e->name,
                            .arg_set_id = e->args,
                            .thread_ts = COL_NULL,
                            .thread_dur = COL_NULL,
                            .thread_instruction_count = COL_NULL,
                            .thread_instruction_delta = COL_NULL};
    slice_push_fitting(g->im->slices, g->m->id, &row, &conflict);
    if (conflict != SLICE_NONE)
        log_overlap(g, ts, conflict);
}

static void gecko_parse(void *owner, const struct sort_event *events, size_t n)
{
    struct gecko *g = owner;
    for (size_t i = 0; i < n; i++) {
        const struct gecko_event *e = &g->events.p[events[i].a];
        uint32_t utid = utid_of(g, &g->threads.p[e->thread]);
        if (e->is_marker) {
            add_marker(g, events[i].ts, utid, e);
            continue;
        }
        profile_file_sample(g->m, events[i].ts, "gecko", utid, UPID_NONE, COL_NULL, e->callsite);
    }
}

static void *gecko_open(struct importer *im)
{
    struct gecko *g = mem_zalloc(sizeof *g);
    if (!g)
        return NULL;
    g->im = im;
    g->m = im->machines.p[im->input.base_machine];
    g->queue = sorter_add_queue(im->sorter, gecko_parse, g);
    file_clock_open(&g->clock, im, CLOCK_ID_TRACE_FILE);
    return g;
}

static int gecko_write(void *self, struct slice bytes, struct error *err)
{
    struct gecko *g = self;
    struct json_place place = JSON_PLACE_START;
    const uint8_t *start = bytes.p, *end = bytes.p + bytes.len;
    if (slice_starts(bytes, "\xef\xbb\xbf")) /* a mark of byte order: some editors write it */
        start += 3;
    while (start < end && strchr(" \t\r\n", *start) && *start)
        start++;
    struct json_reader r = json_reader(slice_of(start, (size_t)(end - start)));
    if (!json_check(&r)) {
        json_place_advance(&place, slice_of(bytes.p, (size_t)(r.p - bytes.p)));
        return error_set(err, -MRD_EFORMAT, "line %llu, column %llu: %s", (unsigned long long)place.line,
                         (unsigned long long)place.column, json_error_text(&r));
    }
    read_document(g, slice_of(start, (size_t)(r.p - start)));
    g->im->failed |= g->failed;
    return g->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static void gecko_close(void *self)
{
    struct gecko *g = self;
    u64map_free(&g->frames);
    vec_free(&g->threads);
    vec_free(&g->events);
    vec_free(&g->categories);
    vec_free(&g->shared_strings);
    vec_free(&g->shared_callsites);
    mem_free(g);
}

const struct format_reader gecko_reader = {
    .format = FORMAT_GECKO,
    .no_idle = true,
    .whole = true,
    .open = gecko_open,
    .write = gecko_write,
    .close = gecko_close,
};
