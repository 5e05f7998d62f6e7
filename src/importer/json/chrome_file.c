/* Walks through a document in Chrome's JSON: its shape, its pieces, and where it is wrong. */
#include "base/json_scan.h"
#include "importer/clock/clock_graph.h"
#include "importer/json/chrome_json.h"
#include "importer/json/json_import.h"
#include "importer/sort/sorter.h"
#include "importer/text/systrace.h"

#include <stdio.h>

enum {
    GIVE_BACK_BYTES = 4 << 20, /* of a mapped file, at a time */
    RAW_BYTES = 512,           /* of an event's text in the log */
};

static void *chrome_open(struct importer *im)
{
    struct chrome *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->im = im;
    c->m = im->machines.p[im->input.base_machine];
    c->serial = im->input.serial;
    c->place = JSON_PLACE_START;
    c->max_ts = INT64_MIN;
    c->tie_from = INT64_MAX;
    c->records = chrome_records_open();
    c->queue = sorter_add_tied_queue(im->sorter, chrome_parse, c);
    chrome_args_open(im);
    file_clock_open(&c->clock, im, CLOCK_ID_TRACE_FILE);
    return c;
}

static void chrome_close(void *self)
{
    struct chrome *c = self;
    chrome_records_close(c->records);
    chrome_async_close(c->async);
    v8_profiles_close(c->v8);
    if (c->system)
        systrace_close(c->system);
    for (size_t i = 0; i < c->lane_lists.n; i++)
        vec_free(&c->lane_lists.p[i].tracks);
    vec_free(&c->lane_lists);
    u64map_free(&c->lanes);
    u64map_free(&c->tracks);
    u64map_free(&c->thread_index);
    vec_free(&c->threads);
    vec_free(&c->carry);
    vec_free(&c->text);
    arena_free(&c->kept);
    mem_free(c);
}

strid chrome_string(struct chrome *c, struct json_text text)
{
    if (!text.escaped)
        return import_slice(c->im, text.raw);
    if (!vec_reserve(&c->text, text.raw.len)) {
        c->im->failed = true;
        return 0;
    }
    size_t n = json_unescape(text, JSON_TOLERANT, c->text.p);
    return import_slice(c->im, slice_of(c->text.p, n));
}

void chrome_text_log(struct chrome *c, enum stat_key stat, const uint8_t *from, const uint8_t *to, const char *problem)
{
    struct args *args = &c->im->st->args;
    struct arg_list list = {0};
    size_t n = (size_t)(to - from);
    if (to > c->placed) {
        json_place_advance(&c->place, slice_of(c->placed, (size_t)(to - c->placed)));
        c->placed = to;
    }
    bool room = import_log_has_room(c->m, stat) || (problem && !*c->problem);
    if (n && room)
        arg_list_str(args, &list, "raw_event", import_slice(c->im, slice_of(from, n < RAW_BYTES ? n : RAW_BYTES)));
    if (problem && room) {
        char text[sizeof c->problem];
        snprintf(text, sizeof text, "line %llu, column %llu: %s", (unsigned long long)c->place.line,
                 (unsigned long long)c->place.column, problem);
        arg_list_str(args, &list, "error", import_str(c->im, text));
        if (!*c->problem)
            memcpy(c->problem, text, sizeof text);
    }
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    import_log(c->m, stat, COL_NULL, (int64_t)(c->base_offset + (uint64_t)(to - c->buffer)), set);
}

void chrome_text_error(struct chrome *c, const uint8_t *from, const uint8_t *to, const char *problem)
{
    chrome_text_log(c, STAT_json_tokenizer_failure, from, to, problem);
}

void chrome_event_error(struct chrome *c, enum stat_key stat, const struct chrome_event *e)
{
    struct args *args = &c->im->st->args;
    struct arg_list list = {0};
    arg_list_str(args, &list, "event_name", e->name);
    arg_list_str(args, &list, "event_phase", import_slice(c->im, slice_of(&e->phase, 1)));
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    import_log(c->m, stat, e->ts, -1, set);
}

/* An event that is no JSON: it is passed over when its end can be found. False when nothing more can be read. */
static bool skip_broken(struct chrome *c, struct json_reader *r, const uint8_t *start)
{
    const uint8_t *behind = json_scan_container(start, r->end, '{', '}');
    if (!behind && !c->final) { /* its end may come */
        r->p = start;
        return false;
    }
    chrome_text_error(c, start, r->p, json_error_text(r));
    c->any_error = true;
    if (!behind) {
        c->at = PLACE_DONE;
        return false;
    }
    r->p = behind > r->p ? behind : r->p;
    r->status = JSON_OK;
    r->depth = 0;
    return true;
}

/* What stands where an event should: passed over. False when nothing more can be read. */
static bool not_an_event(struct chrome *c, struct json_reader *r)
{
    const uint8_t *start = r->p;
    bool comma = *start == ',', ok = comma || json_skip(r, NULL);
    if (r->status == JSON_MORE) {
        r->p = start;
        return false;
    }
    const uint8_t *behind = r->p + comma;
    while (!ok && behind < r->end && !(*behind && strchr(",{]", *behind))) /* words that JSON does not know */
        behind++;
    if (behind == r->end && !ok && !c->final) {
        r->p = start;
        return false;
    }
    chrome_text_error(c, start, start, "an event is expected: {\"ph\": …}");
    c->any_error = true;
    *r = json_reader(slice_of(behind, (size_t)(r->end - behind)));
    return true;
}

/* Whether an event was begun in what is left at the end. */
static bool event_is_cut(struct slice rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (!strchr(", \t\r\n", rest.p[i]) || !rest.p[i])
            return true;
    return false;
}

/* One event of an array, with the comma in front of it; or the array's end. False when more bytes are needed, or
 * nothing more can be read. */
static bool read_element(struct chrome *c, struct json_reader *r)
{
    int next = json_peek(r);
    if (next == ',') {
        const uint8_t *comma = r->p++;
        next = json_peek(r);
        if (!next && r->p == r->end) {
            r->p = comma;
            return false;
        }
    }
    if (next == ']') {
        r->p++;
        c->at = c->in_object ? PLACE_OBJECT : PLACE_DONE;
        return true;
    }
    if (!next)
        return false;
    if (next != '{')
        return not_an_event(c, r);
    const uint8_t *start = r->p;
    if (chrome_event_read(c, r)) {
        r->depth = 0;
        return true;
    }
    if (r->status == JSON_BAD)
        return skip_broken(c, r, start);
    r->p = start;
    return false;
}

/* The document cannot be read on. */
static bool document_error(struct chrome *c, const struct json_reader *r, const char *problem)
{
    chrome_text_error(c, r->p, r->p, problem);
    c->any_error = true;
    c->at = PLACE_DONE;
    return false;
}

static const uint8_t *memcpy_kept(struct chrome *c, struct slice bytes)
{
    uint8_t *copy = arena_alloc_bytes(&c->kept, bytes.len);
    if (!copy)
        c->im->failed = true;
    return copy ? memcpy(copy, bytes.p, bytes.len) : NULL;
}

/* Keeps a member that a profile has. */
static void keep_profile(struct chrome *c, struct json_text key, struct slice value)
{
    static const char *const names[V8_PARTS] = {
        [V8_NODES] = "nodes", [V8_SAMPLES] = "samples", [V8_DELTAS] = "timeDeltas", [V8_START] = "startTime"};
    for (int i = 0; i < V8_PARTS; i++) {
        if (!json_text_is(key, names[i]))
            continue;
        const uint8_t *p = c->stable ? value.p : memcpy_kept(c, value);
        c->profile[i] = slice_of(p, p ? value.len : 0);
    }
}

/* PyTorch (Kineto) writes when times begin, behind the events: "baseTimeNanoseconds": 1700000000000000000. It counts
 * when the user says on which clock the file is; by itself a file begins at 0. */
static void take_base(struct chrome *c, struct slice value)
{
    int64_t base;
    struct json_number n;
    if (!c->clock.chosen || c->base_ns || !json_number_of(value, &n) || !json_number_scaled(&n, 0, &base))
        return;
    if (c->n_events)
        stats_add_idx(&c->im->st->stats, c->m->id, STAT_json_base_time_late, (int32_t)c->im->trace_file, 1);
    else
        c->base_ns = base;
}

/* Looks for it near both ends of a file that is there as a whole. */
static void find_base(struct chrome *c, struct slice file)
{
    static const char key[] = "\"baseTimeNanoseconds\":";
    enum { NEAR = 64 << 10 };
    struct slice parts[] = {slice_of(file.p, file.len < NEAR ? file.len : NEAR), file};
    if (file.len > NEAR)
        parts[1] = slice_of(file.p + file.len - NEAR, NEAR);
    for (int i = 0; i < 2; i++) {
        const uint8_t *at = memmem(parts[i].p, parts[i].len, key, sizeof key - 1), *end = file.p + file.len, *p;
        if (!at)
            continue;
        for (at += sizeof key - 1; at < end && *at == ' ';)
            at++;
        for (p = at; p < end && *p >= '0' && *p <= '9';)
            p++;
        take_base(c, slice_of(at, (size_t)(p - at)));
    }
}

/* A member whose value is no array of events. */
static void take_member(struct chrome *c, struct json_text key, struct slice value)
{
    struct json_reader v = json_reader(value);
    struct json_text text;
    char first = (char)value.p[0];
    if (json_text_is(key, "traceEvents")) {
        document_error(c, &v, "traceEvents is no array");
    } else if (json_text_is(key, "systemTraceEvents") && first == '"' && json_string(&v, &text)) {
        chrome_system_trace(c, text);
    } else if (json_text_is(key, "systemTraceEvents")) {
        chrome_text_error(c, value.p, value.p, "systemTraceEvents is no string");
    } else if (json_text_is(key, "displayTimeUnit") && first == '"') {
        stats_add(&c->im->st->stats, c->m->id, STAT_json_display_time_unit, 1);
    } else if (json_text_is(key, "metadata") && first == '{') {
        chrome_document_metadata(c, value);
    } else if (json_text_is(key, "baseTimeNanoseconds")) {
        take_base(c, value);
    } else {
        keep_profile(c, key, value);
    }
}

/* One member of the document; or its end. As read_element(). */
static bool read_member(struct chrome *c, struct json_reader *r)
{
    struct json_text key;
    struct slice value;
    const uint8_t *start = r->p;
    int next;
    while ((next = json_peek(r)) == ',')
        r->p++;
    if (next == '}') {
        c->at = PLACE_DONE;
        return true;
    }
    if (!next)
        return false;
    bool ok = json_string(r, &key);
    next = ok ? json_peek(r) : 0;
    if (ok && next == ':') {
        r->p++;
        next = json_peek(r);
        if (next == '[' && json_text_is(key, "traceEvents")) {
            r->p++;
            c->at = PLACE_EVENTS;
            return true;
        }
        ok = json_skip(r, &value);
        if (ok)
            take_member(c, key, value);
    } else if (ok && next) {
        ok = json_fail(r, "a colon is expected");
    } else {
        ok = false;
        r->status = r->status == JSON_OK ? JSON_MORE : r->status;
    }
    if (r->status == JSON_BAD)
        return document_error(c, r, json_error_text(r));
    if (!ok)
        r->p = start;
    return ok;
}

static bool read_start(struct chrome *c, struct json_reader *r)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf}; /* of byte order: some editors write it */
    if ((size_t)(r->end - r->p) >= sizeof mark && memcmp(r->p, mark, sizeof mark) == 0)
        r->p += sizeof mark;
    int next = json_peek(r);
    if (!next)
        return false;
    r->p++;
    c->in_object = next == '{';
    c->at = next == '{' ? PLACE_OBJECT : PLACE_ARRAY;
    return true;
}

/* Reads what can be read of the bytes; how many were. */
static size_t read_bytes(struct chrome *c, struct slice bytes)
{
    static bool (*const readers[])(struct chrome *, struct json_reader *) = {
        [PLACE_START] = read_start,
        [PLACE_ARRAY] = read_element,
        [PLACE_OBJECT] = read_member,
        [PLACE_EVENTS] = read_element,
    };
    struct json_reader r = json_reader(bytes);
    const uint8_t *given_back = bytes.p;
    c->buffer = c->placed = bytes.p;
    while (c->at != PLACE_DONE && !c->im->failed && readers[c->at](c, &r)) {
        if (c->stable && r.p - given_back >= GIVE_BACK_BYTES) {
            format_reader_used(c->im, slice_of(given_back, (size_t)(r.p - given_back)));
            given_back = r.p;
        }
    }
    if (c->stable)
        format_reader_used(c->im, slice_of(given_back, (size_t)(r.p - given_back)));
    return c->at == PLACE_DONE ? bytes.len : (size_t)(r.p - bytes.p);
}

/* The bytes of the buffer are done with. */
static void leave_buffer(struct chrome *c, size_t used)
{
    const uint8_t *to = c->buffer + used;
    if (to > c->placed)
        json_place_advance(&c->place, slice_of(c->placed, (size_t)(to - c->placed)));
    c->base_offset += used;
}

static int check(const struct chrome *c, struct error *err)
{
    return c->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

static int chrome_write(void *self, struct slice bytes, struct error *err)
{
    struct chrome *c = self;
    if (c->at == PLACE_DONE)
        return check(c, err);
    c->stable = importer_bytes_stable(c->im, bytes.p);
    if (c->stable) { /* a file as a whole */
        c->file_first = bytes.p;
        c->final = true;
        if (c->clock.chosen)
            find_base(c, bytes);
        size_t used = read_bytes(c, bytes);
        c->rest = slice_of(bytes.p + used, bytes.len - used);
        return check(c, err);
    }
    bool fresh = !c->carry.n;
    if (fresh) {
        size_t used = read_bytes(c, bytes);
        leave_buffer(c, used);
        bytes = slice_of(bytes.p + used, bytes.len - used);
    }
    if (!vec_reserve(&c->carry, c->carry.n + bytes.len))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (bytes.len)
        memcpy(c->carry.p + c->carry.n, bytes.p, bytes.len);
    c->carry.n += bytes.len;
    if (!fresh && c->carry.n >= c->carry_try) {
        size_t used = read_bytes(c, slice_of(c->carry.p, c->carry.n));
        leave_buffer(c, used);
        c->carry.n -= used;
        memmove(c->carry.p, c->carry.p + used, c->carry.n);
    } else if (!fresh) {
        return check(c, err);
    }
    c->carry_try = 2 * c->carry.n; /* what was cut is tried again when there is twice as much of it */
    return check(c, err);
}

static int chrome_end(void *self, struct error *err)
{
    struct chrome *c = self;
    struct slice rest = c->stable ? c->rest : slice_of(c->carry.p, c->carry.n);
    if (rest.len && !c->stable && c->at != PLACE_DONE) { /* there may be more bytes than at the last try */
        c->final = true;
        size_t used = read_bytes(c, rest);
        leave_buffer(c, used);
        rest = slice_of(rest.p + used, rest.len - used);
    }
    if (c->at != PLACE_DONE && (c->in_object || event_is_cut(rest))) { /* an array may lack its end */
        if (!c->stable)
            c->buffer = c->placed = rest.p;
        c->any_error |= c->in_object;
        chrome_text_error(c, rest.p, rest.p ? rest.p + rest.len : rest.p,
                          c->in_object ? "the text ends inside of an object" : "the text ends inside of an event");
    }
    if (!c->n_events && c->profile[V8_NODES].len)
        v8_profile_document(c, c->profile);
    sorter_set_tie_from(c->im->sorter, c->queue, c->seen_complete ? c->tie_from : INT64_MAX);
    if (c->any_error && !c->n_events && !c->profile[V8_NODES].len)
        return error_set(err, -MRD_EFORMAT, "%s; no event could be read", c->problem);
    return check(c, err);
}

const struct format_reader chrome_json_reader = {
    .format = FORMAT_JSON,
    .no_idle = true,
    .open = chrome_open,
    .write = chrome_write,
    .end = chrome_end,
    .close = chrome_close,
};
