/* Events that mean what their args say: counters, metadata of threads and processes, thread states. */
#include "importer/json/chrome_json.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

#include <stdio.h>
#include <stdlib.h>

/* One member of an event's args. */
struct member {
    struct json_text key;
    struct slice value;
};

/* The next member of args; false at their end and where they are malformed (r->status tells). */
static bool next_member(struct json_reader *r, struct member *m)
{
    if (!json_member(r, &m->key) || !json_skip(r, &m->value))
        return false;
    int next = json_peek(r);
    return next == ',' || next == '}' || json_fail(r, "a comma or } is expected");
}

static bool open_args(const struct chrome_event *e, struct json_reader *r)
{
    *r = json_reader(e->args);
    r->lenient = true;
    return e->flags & CHROME_HAS_ARGS && json_enter(r, '{');
}

/* A string as it is without escapes, in memory of the file's; NULL when out of memory. */
static const char *plain_text(struct chrome *c, struct json_text text, size_t *n)
{
    if (!vec_reserve(&c->text, text.raw.len + 1)) {
        c->im->failed = true;
        return NULL;
    }
    *n = json_unescape(text, JSON_TOLERANT, c->text.p);
    c->text.p[*n] = 0;
    return c->text.p;
}

/* A counter's value: a number, or a text that strtod() takes as a whole. */
static bool counter_value(struct chrome *c, struct slice value, double *out)
{
    struct json_reader r = json_reader(value);
    struct json_number n;
    struct json_text text;
    if (json_number_of(value, &n)) {
        *out = json_number_f64(&n);
        return true;
    }
    if (value.p[0] != '"' || !json_string(&r, &text))
        return false;
    size_t len;
    char *end;
    const char *s = plain_text(c, text, &len);
    if (!s || !len)
        return false;
    *out = strtod(s, &end);
    return end == s + len;
}

static uint32_t counter_track(struct chrome *c, const struct chrome_event *e, const struct chrome_thread *t,
                              struct json_text key)
{
    struct strpool *strings = &c->im->st->strings;
    size_t n;
    const char *plain = plain_text(c, key, &n), *name = strpool_cstr(strings, e->name);
    strid id = e->id.kind == CHROME_ID_TEXT ? (strid)e->id.value : 0;
    struct slice id_text = strpool_view(strings, id);
    if (!plain)
        return UINT32_MAX;
    strid track_name = id_text.len ? strpool_printf(strings, "%s id: %s %s", name, (const char *)id_text.p, plain)
                                   : strpool_printf(strings, "%s %s", name, plain);
    struct track_dim dims[] = {{"upid", DIM_INT, t->upid}, {"name", DIM_STR, track_name}};
    struct track_spec spec = {.type = "json_counter",
                              .event_type = TRACK_COUNTER,
                              .name = track_name,
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 2};
    return track_intern(c->im->tracks, c->m->id, &spec);
}

void chrome_counter(struct chrome *c, struct chrome_event *e)
{
    struct chrome_thread *t = chrome_thread_of(c, e->thread);
    struct args *args = &c->im->st->args;
    struct json_reader r;
    struct member m;
    double value;
    if (!open_args(e, &r)) {
        chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
    struct arg_list list = {0};
    arg_list_int(args, &list, "utid", t->utid);
    argset set = args_intern(args, list.p, list.n);
    arg_list_free(&list);
    while (next_member(&r, &m)) {
        if (!counter_value(c, m.value, &value)) {
            chrome_event_error(c, STAT_json_parser_failure, e);
            continue;
        }
        uint32_t track = counter_track(c, e, t, m.key);
        if (track != UINT32_MAX)
            counter_insert(c->im->st,
                           &(struct counter_row){.ts = e->ts, .track_id = track, .value = value, .arg_set_id = set});
    }
    if (r.status != JSON_OK)
        chrome_event_error(c, STAT_json_parser_failure, e);
}

/* The last member of a name; an empty slice when there is none. False when the args are malformed. */
static bool find_member(const struct chrome_event *e, const char *name, struct slice *value)
{
    struct json_reader r;
    struct member m;
    *value = slice_of(NULL, 0);
    if (!open_args(e, &r))
        return false;
    while (next_member(&r, &m))
        if (json_text_is(m.key, name))
            *value = m.value;
    return r.status == JSON_OK;
}

/* A text that is not empty; 0 when the value is none. */
static strid text_value(struct chrome *c, struct slice value)
{
    struct json_reader r = json_reader(value);
    struct json_text text;
    return value.p[0] == '"' && json_string(&r, &text) && text.raw.len ? chrome_string(c, text) : 0;
}

static bool number_value(struct slice value, int64_t *out)
{
    struct json_number n;
    if (!json_number_of(value, &n))
        return false;
    if (json_number_i64(&n, false, out))
        return true;
    double d = json_number_f64(&n);
    if (!(d >= -9.2e18 && d <= 9.2e18))
        return false;
    *out = (int64_t)d;
    return true;
}

/* Puts one number into a set of args, in place of that of the same name. */
static argset with_hint(struct chrome *c, argset have, const char *key, int64_t value)
{
    struct args *args = &c->im->st->args;
    struct arg_list all = {0}, add = {0};
    args_values(args, have, &all);
    arg_list_int(args, &add, key, value);
    if (!arg_list_merge(&all, &add))
        c->im->failed = true;
    argset set = args_intern(args, all.p, all.n);
    arg_list_free(&all);
    arg_list_free(&add);
    return set;
}

enum metadata_kind { PROCESS_NAME, THREAD_NAME, PROCESS_SORT_INDEX, THREAD_SORT_INDEX, METADATA_KINDS };

static const struct {
    const char *name, *member;
} metadata_events[METADATA_KINDS] = {
    [PROCESS_NAME] = {"process_name", "name"},
    [THREAD_NAME] = {"thread_name", "name"},
    [PROCESS_SORT_INDEX] = {"process_sort_index", "sort_index"},
    [THREAD_SORT_INDEX] = {"thread_sort_index", "sort_index"},
};

/* False when the value is of another kind than the event wants. */
static bool apply_metadata(struct chrome *c, const struct chrome_thread *t, unsigned kind, struct slice value)
{
    struct storage *st = c->im->st;
    int64_t index = 0;
    bool is_name = kind == PROCESS_NAME || kind == THREAD_NAME;
    strid name = is_name ? text_value(c, value) : 0;
    if (is_name ? !name : !number_value(value, &index))
        return false;
    switch (kind) {
    case PROCESS_NAME:
        process_tracker_process_name(c->m->processes, t->upid, name, PROCESS_NAME_OTHER);
        break;
    case THREAD_NAME:
        process_tracker_thread_name(c->m->processes, t->utid, name, THREAD_NAME_OTHER);
        break;
    case PROCESS_SORT_INDEX:
        ROW_SET_ARGS(st, process, arg_set_id, t->upid,
                     with_hint(c, ROW_ARGS(st, process, arg_set_id, t->upid), "process_sort_index_hint", index));
        break;
    default:
        ROW_SET_ARGS(st, thread, arg_set_id, t->utid,
                     with_hint(c, ROW_ARGS(st, thread, arg_set_id, t->utid), "thread_sort_index_hint", index));
    }
    return true;
}

void chrome_metadata_event(struct chrome *c, struct chrome_event *e)
{
    const struct chrome_thread *t = chrome_thread_of(c, e->thread);
    struct slice name = strpool_view(&c->im->st->strings, e->name), value;
    if (!(e->flags & CHROME_HAS_ARGS))
        return;
    for (unsigned i = 0; i < METADATA_KINDS; i++) {
        if (!slice_eq_str(name, metadata_events[i].name))
            continue;
        if (!find_member(e, metadata_events[i].member, &value) || (value.len && !apply_metadata(c, t, i, value)))
            chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
}

/* What a thread state's args say; COL_NULL and 0 for what they do not. False when they are malformed. */
static bool state_args(struct chrome *c, const struct chrome_event *e, int64_t *io_wait, strid *blocked, int64_t *cpu)
{
    struct json_reader r;
    struct member m;
    *io_wait = *cpu = COL_NULL;
    *blocked = 0;
    if (!(e->flags & CHROME_HAS_ARGS))
        return true;
    if (!open_args(e, &r))
        return false;
    while (next_member(&r, &m)) {
        struct json_number n;
        int64_t v;
        bool whole = json_number_of(m.value, &n) && json_number_i64(&n, false, &v);
        if (whole && json_text_is(m.key, "io_wait"))
            *io_wait = v;
        else if (whole && json_text_is(m.key, "cpu"))
            *cpu = v;
        else if (json_text_is(m.key, "blocked_function") && m.value.p[0] == '"')
            *blocked = text_value(c, m.value);
    }
    return r.status == JSON_OK;
}

void chrome_thread_state(struct chrome *c, struct chrome_event *e)
{
    enum { MOST_CPUS = 4096 };
    const struct chrome_thread *t = chrome_thread_of(c, e->thread);
    struct storage *st = c->im->st;
    int64_t io_wait, cpu;
    strid blocked;
    if (!(e->flags & CHROME_HAS_DUR)) {
        chrome_event_error(c, STAT_json_parser_failure, e);
        return;
    }
    if (!state_args(c, e, &io_wait, &blocked, &cpu))
        chrome_event_error(c, STAT_json_parser_failure, e);
    strid state = e->name ? e->name : import_str(c->im, "[No name]");
    thread_state_insert(st, &(struct thread_state_row){.ts = e->ts,
                                                       .dur = e->dur,
                                                       .utid = t->utid,
                                                       .state = state,
                                                       .io_wait = io_wait,
                                                       .blocked_function = blocked,
                                                       .waker_utid = COL_NULL,
                                                       .waker_id = COL_NULL,
                                                       .irq_context = COL_NULL,
                                                       .ucpu = COL_NULL});
    if (cpu >= 0 && cpu < MOST_CPUS && slice_eq_str(strpool_view(&st->strings, state), "Running"))
        sched_slice_insert(
            st,
            &(struct sched_slice_row){
                .ts = e->ts, .dur = e->dur, .utid = t->utid, .priority = 0, .ucpu = machine_ucpu(c->m, (uint32_t)cpu)});
}
