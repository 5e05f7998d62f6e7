/* Makes slices, instants, flows and the tables of spans, once every span has its place. */
#include "importer/otlp/otlp_internal.h"

#include "importer/sort/sorter.h"
#include "importer/track/flow_tracker.h"
#include "importer/track/process_tracker.h"
#include "importer/track/slice_tracker.h"
#include "importer/track/track_tracker.h"

enum { A_SPAN, AN_EVENT };

static const struct otlp_resource *resource_of(const struct otlp *o, const struct otlp_span *s)
{
    return &o->resources.p[o->scopes.p[s->scope].resource];
}

void otlp_place(struct importer *im)
{
    struct otlp *o = im->otlp;
    if (!o || im->failed)
        return;
    for (size_t i = 0; i < o->spans.n; i++)
        o->resources.p[o->scopes.p[o->spans.p[i].scope].resource].used = true;
    otlp_find_machines(o);
    otlp_find_services(o);
    if (!im->failed)
        otlp_layout(o);
    for (size_t i = 0; i < o->order.n; i++) {
        const struct otlp_span *s = &o->spans.p[o->order.p[i]];
        sorter_push(im->sorter, o->queue, (struct sort_event){.ts = s->ts, .a = o->order.p[i], .b = A_SPAN});
        for (uint32_t e = s->first_event; e < s->first_event + s->n_events; e++)
            sorter_push(im->sorter, o->queue, (struct sort_event){.ts = o->events.p[e].ts, .a = e, .b = AN_EVENT});
    }
}

/* --- processes and tracks, when the first span of each comes --- */

static void name_process(struct otlp *o, const struct otlp_process *p)
{
    struct storage *st = o->im->st;
    const struct otlp_resource *res = &o->resources.p[p->resource];
    static const enum otlp_fact with_pid[] = {FACT_EXECUTABLE, FACT_COMMAND, FACT_SERVICE};
    strid name = p->pid ? 0 : res->facts[FACT_SERVICE];
    strid line = res->facts[FACT_COMMAND_LINE] ? res->facts[FACT_COMMAND_LINE] : res->command_args;
    for (size_t i = 0; i < sizeof with_pid / sizeof *with_pid && !name; i++)
        name = res->facts[with_pid[i]];
    if (!ROW_GET(st, process, name, p->upid))
        process_tracker_process_name(p->m->processes, p->upid, name, PROCESS_NAME_OTHER);
    if (line && !ROW_GET(st, process, cmdline, p->upid))
        ROW_SET(st, process, cmdline, p->upid, line);
    if (argset_is_none(ROW_ARGS(st, process, arg_set_id, p->upid)) && !argset_is_none(res->args))
        ROW_SET_ARGS(st, process, arg_set_id, p->upid, res->args);
}

static uint32_t upid_of(struct otlp *o, uint32_t process)
{
    struct otlp_process *p = &o->processes.p[process];
    if (p->upid == UPID_NONE) {
        p->upid = p->pid ? process_tracker_process(p->m->processes, p->pid)
                         : process_tracker_process_without_pid(p->m->processes);
        if (p->upid != UPID_NONE)
            name_process(o, p);
    }
    return p->upid;
}

/* The track of a service, around those of its spans: its args are the resource's. */
static uint32_t root_track(struct otlp *o, struct otlp_service *s)
{
    const struct otlp_resource *res = &o->resources.p[s->resource];
    if (s->root != OTLP_NONE)
        return s->root;
    struct track_dim dims[] = {{"upid", DIM_INT, upid_of(o, s->process)},
                               {"service", DIM_STR, res->facts[FACT_SERVICE]},
                               {"instance", DIM_STR, res->facts[FACT_INSTANCE]}};
    struct track_spec spec = {.type = "otlp_service",
                              .event_type = TRACK_SLICE,
                              .name = res->facts[FACT_SERVICE],
                              .parent = UINT32_MAX,
                              .source_args = res->args,
                              .dims = dims,
                              .n_dims = 3};
    s->root = track_intern(o->im->tracks, res->m->id, &spec);
    return s->root;
}

static uint32_t lane_track(struct otlp *o, struct otlp_service *s, uint32_t lane)
{
    const struct otlp_resource *res = &o->resources.p[s->resource];
    if (s->lanes.p[lane].track != OTLP_NONE)
        return s->lanes.p[lane].track;
    struct track_dim dims[] = {{"upid", DIM_INT, upid_of(o, s->process)},
                               {"service", DIM_STR, res->facts[FACT_SERVICE]},
                               {"instance", DIM_STR, res->facts[FACT_INSTANCE]},
                               {"lane", DIM_INT, lane}};
    struct track_spec spec = {.type = "otlp_spans",
                              .event_type = TRACK_SLICE,
                              .name = res->facts[FACT_SERVICE],
                              .parent = root_track(o, s),
                              .dims = dims,
                              .n_dims = 4};
    return s->lanes.p[lane].track = track_intern(o->im->tracks, res->m->id, &spec);
}

static uint32_t thread_track(struct otlp *o, struct otlp_service *s, struct otlp_thread *t)
{
    struct otlp_process *p = &o->processes.p[t->process];
    const struct otlp_resource *res = &o->resources.p[s->resource];
    if (t->track != OTLP_NONE)
        return t->track;
    uint32_t upid = upid_of(o, t->process);
    if (t->tid) {
        t->utid = process_tracker_update_thread(p->m->processes, t->tid, p->pid);
        if (t->name && !ROW_GET(o->im->st, thread, name, t->utid))
            process_tracker_thread_name(p->m->processes, t->utid, t->name, THREAD_NAME_OTHER);
    }
    struct track_dim of_thread[] = {{"utid", DIM_INT, t->utid}};
    struct track_dim of_name[] = {
        {"upid", DIM_INT, upid}, {"thread", DIM_INT, (int64_t)(t - o->threads.p)}, {"thread_name", DIM_STR, t->name}};
    struct track_spec spec = {.type = t->tid ? "otlp_thread" : "otlp_named_thread",
                              .event_type = TRACK_SLICE,
                              .name = t->tid ? res->facts[FACT_SERVICE] : t->name,
                              .parent = t->tid ? UINT32_MAX : root_track(o, s),
                              .dims = t->tid ? of_thread : of_name,
                              .n_dims = t->tid ? 1 : 3};
    return t->track = track_intern(o->im->tracks, p->m->id, &spec);
}

static uint32_t track_of(struct otlp *o, const struct otlp_span *span)
{
    struct otlp_service *s = &o->services.p[resource_of(o, span)->service];
    root_track(o, s);
    return span->lane == OTLP_NONE ? thread_track(o, s, &o->threads.p[span->thread]) : lane_track(o, s, span->lane);
}

/* --- slices --- */

/* -1: it has not ended. */
static int64_t dur_of(const struct otlp_span *s)
{
    return s->end == INT64_MAX ? -1 : s->end - s->ts;
}

static void add_span(struct otlp *o, uint32_t index)
{
    struct otlp_span *s = &o->spans.p[index];
    s->track = track_of(o, s);
    if (s->track == UINT32_MAX)
        return;
    uint32_t machine = resource_of(o, s)->m->id;
    strid scope = o->scopes.p[s->scope].name;
    argset args = otlp_args_set(o, OTLP_ARGS_SPAN, index);
    s->slice = s->end == INT64_MAX
                   ? slice_begin(o->im->slices, machine, s->ts, s->track, scope, s->name, args)
                   : slice_scoped(o->im->slices, machine, s->ts, s->track, scope, s->name, dur_of(s), args);
}

static void add_event(struct otlp *o, uint32_t index)
{
    struct otlp_event *e = &o->events.p[index];
    const struct otlp_span *s = &o->spans.p[e->span];
    uint32_t track = s->track == OTLP_NONE ? track_of(o, s) : s->track;
    if (track == UINT32_MAX)
        return;
    e->slice = slice_scoped(o->im->slices, resource_of(o, s)->m->id, e->ts, track, import_str(o->im, "otel.event"),
                            e->name, 0, otlp_args_set(o, OTLP_ARGS_EVENT, index));
}

void otlp_parse(void *owner, const struct sort_event *events, size_t n)
{
    struct otlp *o = owner;
    for (size_t i = 0; i < n && !o->im->failed; i++)
        if (events[i].b == A_SPAN)
            add_span(o, (uint32_t)events[i].a);
        else
            add_event(o, (uint32_t)events[i].a);
}

/* --- what needs all slices --- */

static strid hex_id(struct otlp *o, const uint8_t *id, size_t n)
{
    char text[2 * sizeof(struct otlp_key)];
    otlp_hex(text, id, n);
    return import_slice(o->im, slice_of(text, 2 * n));
}

static uint32_t upid_column(struct otlp *o, const struct otlp_span *s)
{
    return o->processes.p[o->services.p[resource_of(o, s)->service].process].upid;
}

static int64_t or_null(uint32_t id)
{
    return id == OTLP_NONE ? COL_NULL : (int64_t)id;
}

static void add_row(struct otlp *o, struct otlp_span *s)
{
    const struct otlp_span *parent = s->parent_span == OTLP_NONE ? NULL : &o->spans.p[s->parent_span];
    struct otel_span_row row = {
        .slice_id = or_null(s->slice),
        .ts = s->ts,
        .dur = dur_of(s),
        .trace_id = hex_id(o, s->key.trace, sizeof s->key.trace),
        .span_id = hex_id(o, s->key.span, sizeof s->key.span),
        .parent_span_id = otlp_is_zero(s->parent, sizeof s->parent) ? 0 : hex_id(o, s->parent, sizeof s->parent),
        .parent_id = parent ? or_null(parent->row) : COL_NULL,
        .name = s->name,
        .kind = import_str(o->im, otlp_kind_name(s->kind)),
        .status = import_str(o->im, otlp_status_name(s->status)),
        .service = resource_of(o, s)->facts[FACT_SERVICE],
        .scope = o->scopes.p[s->scope].name,
        .upid = or_null(upid_column(o, s)),
        .utid = or_null(s->thread == OTLP_NONE ? OTLP_NONE : o->threads.p[s->thread].utid),
        .machine_id = resource_of(o, s)->m->id,
    };
    if (otel_span_insert(o->im->st, &row) == UINT32_MAX)
        o->im->failed = true;
    for (uint32_t e = s->first_event; e < s->first_event + s->n_events; e++)
        otel_event_insert(o->im->st,
                          &(struct otel_event_row){.span_id = s->row, .slice_id = or_null(o->events.p[e].slice)});
}

/* A link: a row, and a flow from the other span to this one. */
static void add_link(struct otlp *o, uint32_t index, argset flow_args)
{
    const struct otlp_link *l = &o->links.p[index];
    const struct otlp_span *s = &o->spans.p[l->span];
    uint32_t to = otlp_find(o, &l->to);
    const struct otlp_span *other = to == OTLP_NONE ? NULL : &o->spans.p[to];
    struct otel_link_row row = {.span_id = s->row,
                                .linked_trace_id = hex_id(o, l->to.trace, sizeof l->to.trace),
                                .linked_span_id = hex_id(o, l->to.span, sizeof l->to.span),
                                .linked_id = other ? or_null(other->row) : COL_NULL,
                                .arg_set_id = otlp_args_set(o, OTLP_ARGS_LINK, index)};
    if (otel_link_insert(o->im->st, &row) == UINT32_MAX)
        o->im->failed = true;
    if (!other)
        stats_add_idx(&o->im->st->stats, resource_of(o, s)->m->id, STAT_otlp_missing_link,
                      (int32_t)o->files.p[resource_of(o, s)->file].trace_file, 1);
    else if (s->slice != SLICE_NONE && other->slice != SLICE_NONE)
        flow_between_named(o->im->flows, other->slice, s->slice, flow_args);
}

void otlp_finish(struct importer *im)
{
    struct otlp *o = im->otlp;
    if (!o || im->failed)
        return;
    struct arg_list link = {0};
    arg_list_str(&im->st->args, &link, "name", import_str(im, "link"));
    argset link_args = args_intern(&im->st->args, link.p, link.n);
    arg_list_free(&link);
    for (size_t i = 0; i < o->order.n; i++)
        o->spans.p[o->order.p[i]].row = (uint32_t)i;
    for (size_t i = 0; i < o->order.n && !im->failed; i++) {
        struct otlp_span *s = &o->spans.p[o->order.p[i]];
        const struct otlp_span *parent = s->parent_span == OTLP_NONE ? NULL : &o->spans.p[s->parent_span];
        add_row(o, s);
        if (parent && parent->track != s->track && parent->slice != SLICE_NONE && s->slice != SLICE_NONE)
            flow_between(im->flows, parent->slice, s->slice);
        for (uint32_t l = s->first_link; l < s->first_link + s->n_links; l++)
            add_link(o, l, link_args);
    }
}
