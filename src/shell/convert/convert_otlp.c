/* Slices as spans of OpenTelemetry: OTLP in JSON, in lines or as one document. */
#include "shell/convert/otlp_attributes.h"
#include "shell/convert/otlp_ids.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_A_LINE = 1000 };

/* What is written: slices by resource and library. Instants inside of slices are events. */
static const char make_tables[] =
    "create or replace perfetto table _otlp_event as "
    "select o.slice_id as owner, s.id as slice_id from otel_event e join otel_span o on o.id = e.span_id "
    "join slice s on s.id = e.slice_id where o.slice_id is not null;"
    "create or replace perfetto table _otlp_out as "
    "select row_number() over (order by tr.machine_id, coalesce(o.upid, th.upid, pt.upid), o.service, s.category, "
    "s.id) - 1 "
    "as n, s.id as slice_id, s.ts, s.dur, s.name, s.category, s.arg_set_id, tr.machine_id, "
    "coalesce(o.upid, th.upid, pt.upid) as upid, th.tid, th.name as thread_name, o.id as span, o.service, tr.name as "
    "track_name "
    "from slice s join track tr on tr.id = s.track_id left join thread_track tt on tt.id = s.track_id "
    "left join thread th on th.utid = tt.utid left join process_track pt on pt.id = s.track_id "
    "left join otel_span o on o.slice_id = s.id "
    "where s.id not in (select slice_id from _otlp_event) order by 1";

/* Rows in the order of _otlp_out.n, which is their first column: those of one n are read together. */
struct rows {
    struct tp_result *r;
    int64_t n; /* of the row at hand; -1: none is left */
};

enum stream { SPANS, ARGS, EVENTS, EVENT_ARGS, LINKS, LINK_ARGS, STREAMS };

static const char *const queries[STREAMS] = {
    [SPANS] =
        "select x.n, x.slice_id, to_realtime(x.ts), x.ts, x.dur, x.name, x.category, x.machine_id, x.upid, x.tid, "
        "x.thread_name, o.trace_id, o.span_id, o.parent_span_id, o.kind, o.status, x.service, trace_end(), "
        "iif(o.id is not null, extract_arg(x.arg_set_id, 'otel.scope.version'), NULL) "
        "from _otlp_out x left join otel_span o on o.id = x.span order by x.n",
    [ARGS] = "select x.n, a.key, a.value_type, a.int_value, a.string_value, a.real_value from _otlp_out x "
             "join args a on a.arg_set_id = x.arg_set_id order by x.n, a.id",
    [EVENTS] =
        "select x.n, s.id, to_realtime(s.ts), s.ts, s.name from _otlp_event e join _otlp_out x on x.slice_id = e.owner "
        "join slice s on s.id = e.slice_id order by x.n, s.id",
    [EVENT_ARGS] = "select s.id, a.key, a.value_type, a.int_value, a.string_value, a.real_value from _otlp_event e "
                   "join _otlp_out x on x.slice_id = e.owner join slice s on s.id = e.slice_id "
                   "join args a on a.arg_set_id = s.arg_set_id order by x.n, s.id, a.id",
    [LINKS] = "select x.n, l.linked_trace_id, l.linked_span_id, NULL, l.id from otel_link l "
              "join _otlp_out x on x.span = l.span_id union all "
              "select x.n, NULL, NULL, f.slice_out, NULL from flow f join _otlp_out x on x.slice_id = f.slice_in "
              "where x.span is null order by 1, 5, 4",
    [LINK_ARGS] = "select l.id, a.key, a.value_type, a.int_value, a.string_value, a.real_value from otel_link l "
                  "join _otlp_out x on x.span = l.span_id join args a on a.arg_set_id = l.arg_set_id "
                  "order by x.n, l.id, a.id",
};

/* Columns of SPANS. */
enum {
    S_N,
    S_SLICE,
    S_WALL,
    S_TS,
    S_DUR,
    S_NAME,
    S_SCOPE,
    S_MACHINE,
    S_UPID,
    S_TID,
    S_THREAD,
    S_TRACE_ID,
    S_SPAN_ID,
    S_PARENT_ID,
    S_KIND,
    S_STATUS,
    S_SERVICE,
    S_TRACE_END,
    S_VERSION,
};

struct otlp_writer {
    struct shell *sh;
    struct json_writer w;
    struct otlp_ids ids;
    struct rows rows[STREAMS];
    bool document;   /* one object, not lines */
    bool open;       /* spans of a group are being written */
    bool any;        /* a group was written */
    int64_t machine; /* the group at hand; -1: none */
    int64_t upid;
    char *service, *scope, *version;
    uint64_t spans;   /* in this group */
    uint64_t on_line; /* on this line */
};

static int64_t number(const struct tp_result *r, int column, int64_t null)
{
    return tp_column_type(r, column) == TP_NULL ? null : tp_int64(r, column);
}

static int step(struct otlp_writer *o, enum stream stream, struct error *err)
{
    struct rows *s = &o->rows[stream];
    int rc = tp_step(s->r);
    s->n = rc == 1 ? tp_int64(s->r, 0) : -1;
    return rc < 0 ? session_error(o->sh, rc, err) : 0;
}

/* The args of row n of a stream as the member "attributes", which is left open for more. */
static int put_args(struct otlp_writer *o, enum stream stream, int64_t n, struct otlp_own *own, struct error *err)
{
    struct rows *s = &o->rows[stream];
    struct otlp_attributes a = {.w = &o->w, .own = own};
    int rc = 0;
    json_put_key(&o->w, "attributes");
    json_put_open(&o->w, '[');
    while (s->n == n && !rc) {
        otlp_put_arg(&a, s->r);
        rc = step(o, stream, err);
    }
    otlp_attributes_end(&a);
    return a.failed ? error_set(err, -MRD_ENOMEM, "out of memory") : rc;
}

static void put_time(struct json_writer *w, const char *key, int64_t ns)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, ns > 0 ? ns : 0);
    json_put_key(w, key);
    json_put_str(w, digits);
}

/* --- resources --- */

static int put_resource_arg(void *ctx, struct tp_result *r)
{
    otlp_put_arg(ctx, r);
    return 0;
}

/* A process of a kernel's or an SDK's recording: its name is the service. */
static int put_process(void *ctx, struct tp_result *r)
{
    enum { MACHINE, NAME, PID, CMDLINE };
    struct json_writer *w = ctx;
    char text[48];
    const char *name = tp_text(r, NAME, NULL), *machine = tp_text(r, MACHINE, NULL);
    if (!name && tp_column_type(r, PID) != TP_NULL)
        snprintf(text, sizeof text, "process %" PRId64, number(r, PID, 0));
    otlp_put_text(w, "service.name", name ? name : tp_column_type(r, PID) != TP_NULL ? text : "trace");
    otlp_put_text(w, "host.name", machine);
    if (number(r, PID, 0) > 0)
        otlp_put_int(w, "process.pid", number(r, PID, 0));
    otlp_put_text(w, "process.command_line", tp_text(r, CMDLINE, NULL));
    return 0;
}

static int count_row(void *ctx, struct tp_result *r)
{
    *(int64_t *)ctx = number(r, 0, 0);
    return 0;
}

/* The attributes of the resource at hand: those that it came with, else what is known of the process. */
static int put_resource(struct otlp_writer *o, struct error *err)
{
    char sql[640];
    int64_t own = 0;
    int rc = 0;
    json_put_key(&o->w, "resource");
    json_put_open(&o->w, '{');
    json_put_key(&o->w, "attributes");
    json_put_open(&o->w, '[');
    if (o->upid >= 0 && o->service) {
        snprintf(sql, sizeof sql,
                 "select count(*) from process join args using (arg_set_id) where upid = %" PRId64
                 " and key = 'otel.resource.service.name' and string_value is not null",
                 o->upid);
        rc = convert_rows(o->sh, sql, count_row, &own, err);
    }
    if (!rc && own) {
        struct otlp_attributes a = {.w = &o->w};
        snprintf(sql, sizeof sql,
                 "select 0, substr(key, 15), value_type, int_value, string_value, real_value from process join args "
                 "using (arg_set_id) where upid = %" PRId64
                 " and key glob 'otel.resource.*' and key != 'otel.resource.service.name' order by args.id",
                 o->upid);
        otlp_put_text(&o->w, "service.name", o->service);
        rc = convert_rows(o->sh, sql, put_resource_arg, &a, err);
        otlp_attributes_end(&a);
    } else if (!rc) {
        snprintf(sql, sizeof sql,
                 "select m.name, p.name, p.pid, p.cmdline from machine m left join process p on p.upid = %" PRId64
                 " where m.id = %" PRId64,
                 o->upid, o->machine);
        rc = convert_rows(o->sh, sql, put_process, &o->w, err);
    }
    json_put_close(&o->w, ']');
    json_put_close(&o->w, '}');
    return rc;
}

/* --- groups: spans of one resource and library --- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void close_group(struct otlp_writer *o)
{
    struct json_writer *w = &o->w;
    if (!o->open)
        return;
    json_put_close(w, ']');
    json_put_close(w, '}');
    json_put_close(w, ']');
    json_put_close(w, '}');
    o->open = false;
}

static void end_line(struct otlp_writer *o)
{
    json_put_close(&o->w, ']');
    json_put_close(&o->w, '}');
    json_put_break(&o->w, "\n");
    o->w.comma = false;
}

static int open_group(struct otlp_writer *o, struct error *err)
{
    struct json_writer *w = &o->w;
    if (o->any && !o->document)
        end_line(o);
    if (!o->any || !o->document) {
        json_put_open(w, '{');
        json_put_key(w, "resourceSpans");
        json_put_open(w, '[');
    } else {
        json_put_break(w, "\n");
    }
    o->any = o->open = true;
    o->spans = 0;
    json_put_open(w, '{');
    int rc = put_resource(o, err);
    json_put_key(w, "scopeSpans");
    json_put_open(w, '[');
    json_put_open(w, '{');
    json_put_key(w, "scope");
    json_put_open(w, '{');
    if (o->scope) {
        json_put_key(w, "name");
        json_put_str(w, o->scope);
    }
    if (o->version) {
        json_put_key(w, "version");
        json_put_str(w, o->version);
    }
    json_put_close(w, '}');
    json_put_key(w, "spans");
    json_put_open(w, '[');
    return rc;
}

/* Begins another group when the span at hand is not of this one, or the line is long enough. */
static int enter_group(struct otlp_writer *o, const struct tp_result *r, struct error *err)
{
    int64_t machine = number(r, S_MACHINE, -1), upid = number(r, S_UPID, -1);
    const char *service = tp_text(r, S_SERVICE, NULL), *scope = tp_text(r, S_SCOPE, NULL),
               *version = tp_text(r, S_VERSION, NULL);
    if (o->open && machine == o->machine && upid == o->upid && same_text(service, o->service) &&
        same_text(scope, o->scope) && same_text(version, o->version) && (o->document || o->spans < SPANS_A_LINE))
        return 0;
    close_group(o);
    mem_free(o->service);
    mem_free(o->scope);
    mem_free(o->version);
    o->machine = machine;
    o->upid = upid;
    o->service = service ? mem_strdup(service) : NULL;
    o->scope = scope ? mem_strdup(scope) : NULL;
    o->version = version ? mem_strdup(version) : NULL;
    if ((service && !o->service) || (scope && !o->scope) || (version && !o->version))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return open_group(o, err);
}

/* --- spans --- */

static int put_events(struct otlp_writer *o, int64_t n, struct error *err)
{
    enum { ID = 1, WALL, TS, NAME };
    struct rows *e = &o->rows[EVENTS];
    struct json_writer *w = &o->w;
    int rc = 0;
    if (e->n != n)
        return 0;
    json_put_key(w, "events");
    json_put_open(w, '[');
    while (e->n == n && !rc) {
        const char *name = tp_text(e->r, NAME, NULL);
        json_put_open(w, '{');
        put_time(w, "timeUnixNano", number(e->r, WALL, tp_int64(e->r, TS)));
        json_put_key(w, "name");
        json_put_str(w, name ? name : "");
        rc = put_args(o, EVENT_ARGS, tp_int64(e->r, ID), NULL, err);
        json_put_close(w, ']');
        json_put_close(w, '}');
        rc = rc ? rc : step(o, EVENTS, err);
    }
    json_put_close(w, ']');
    return rc;
}

static void put_state(struct json_writer *w, const struct otlp_own *own)
{
    if (own->text[OWN_STATE]) {
        json_put_key(w, "traceState");
        json_put_str(w, own->text[OWN_STATE]);
    }
}

/* Links; but not the flow that says who the parent is. */
static int put_links(struct otlp_writer *o, int64_t n, uint32_t parent, struct error *err)
{
    enum { TRACE_ID = 1, SPAN_ID, SLICE, LINK };
    struct rows *l = &o->rows[LINKS];
    struct json_writer *w = &o->w;
    char trace[33], span[17];
    int rc = 0;
    bool any = false;
    while (l->n == n && !rc) {
        int64_t slice = number(l->r, SLICE, -1);
        struct otlp_own own = {0};
        if (slice < 0 || (slice != parent && (size_t)slice < o->ids.n)) {
            const char *trace_id = tp_text(l->r, TRACE_ID, NULL), *span_id = tp_text(l->r, SPAN_ID, NULL);
            if (!trace_id || !span_id) {
                otlp_trace_id(&o->ids, (uint32_t)slice, trace);
                otlp_span_id(&o->ids, (uint32_t)slice, span);
            }
            if (!any) {
                json_put_key(w, "links");
                json_put_open(w, '[');
            }
            any = true;
            json_put_open(w, '{');
            json_put_key(w, "traceId");
            json_put_str(w, trace_id ? trace_id : trace);
            json_put_key(w, "spanId");
            json_put_str(w, span_id ? span_id : span);
            if (slice < 0) {
                rc = put_args(o, LINK_ARGS, tp_int64(l->r, LINK), &own, err);
                json_put_close(w, ']');
            }
            put_state(w, &own);
            json_put_close(w, '}');
            otlp_own_free(&own);
        }
        rc = rc ? rc : step(o, LINKS, err);
    }
    if (any)
        json_put_close(w, ']');
    return rc;
}

static int kind_of(const char *name)
{
    enum { INTERNAL = 1 };
    static const char *const names[] = {"internal", "server", "client", "producer", "consumer"};
    for (int i = 0; name && i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return INTERNAL + i;
    return INTERNAL;
}

static void put_ids(struct otlp_writer *o, const struct tp_result *r, uint32_t slice)
{
    struct json_writer *w = &o->w;
    char text[33];
    const char *trace = tp_text(r, S_TRACE_ID, NULL), *span = tp_text(r, S_SPAN_ID, NULL),
               *parent = tp_text(r, S_PARENT_ID, NULL);
    if (!trace)
        otlp_trace_id(&o->ids, slice, text);
    json_put_key(w, "traceId");
    json_put_str(w, trace ? trace : text);
    if (!span)
        otlp_span_id(&o->ids, slice, text);
    json_put_key(w, "spanId");
    json_put_str(w, span ? span : text);
    if (!trace && o->ids.parents[slice] != OTLP_NO_SLICE) {
        otlp_span_id(&o->ids, o->ids.parents[slice], text);
        parent = text;
    }
    if (parent) {
        json_put_key(w, "parentSpanId");
        json_put_str(w, parent);
    }
}

/* What was args of a span, and are fields of it. */
static void put_own(struct json_writer *w, const struct otlp_own *own, const char *status)
{
    static const struct {
        enum otlp_own_key key;
        const char *name;
    } counts[] = {{OWN_FLAGS, "flags"},
                  {OWN_DROPPED_ATTRIBUTES, "droppedAttributesCount"},
                  {OWN_DROPPED_EVENTS, "droppedEventsCount"},
                  {OWN_DROPPED_LINKS, "droppedLinksCount"}};
    put_state(w, own);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (own->number[counts[i].key] > 0) {
            json_put_key(w, counts[i].name);
            json_put_int(w, own->number[counts[i].key]);
        }
    json_put_key(w, "status");
    json_put_open(w, '{');
    if (status && strcmp(status, "unset") != 0) {
        json_put_key(w, "code");
        json_put_int(w, strcmp(status, "ok") == 0 ? 1 : 2);
    }
    if (own->text[OWN_MESSAGE]) {
        json_put_key(w, "message");
        json_put_str(w, own->text[OWN_MESSAGE]);
    }
    json_put_close(w, '}');
}

static int put_span(struct otlp_writer *o, struct error *err)
{
    const struct tp_result *r = o->rows[SPANS].r;
    struct json_writer *w = &o->w;
    int64_t n = o->rows[SPANS].n, ts = tp_int64(r, S_TS), start = number(r, S_WALL, ts), dur = tp_int64(r, S_DUR);
    uint32_t slice = (uint32_t)tp_int64(r, S_SLICE);
    bool unfinished = dur < 0, was_span = tp_column_type(r, S_TRACE_ID) != TP_NULL;
    const char *name = tp_text(r, S_NAME, NULL);
    struct otlp_own own = {0};
    if (slice >= o->ids.n)
        return step(o, SPANS, err);
    if (unfinished && !was_span)
        dur = tp_int64(r, S_TRACE_END) - ts;
    if (o->document)
        json_put_break(w, "\n");
    json_put_open(w, '{');
    put_ids(o, r, slice);
    json_put_key(w, "name");
    json_put_str(w, name ? name : "");
    json_put_key(w, "kind");
    json_put_int(w, was_span ? kind_of(tp_text(r, S_KIND, NULL)) : kind_of(NULL));
    put_time(w, "startTimeUnixNano", start);
    put_time(w, "endTimeUnixNano", unfinished && was_span ? 0 : start + (dur > 0 ? dur : 0));
    int rc = put_args(o, ARGS, n, &own, err);
    if (tp_column_type(r, S_TID) != TP_NULL && !was_span && !own.has_thread) {
        otlp_put_int(w, "thread.id", tp_int64(r, S_TID));
        otlp_put_text(w, "thread.name", tp_text(r, S_THREAD, NULL));
    }
    if (unfinished && !was_span) {
        otlp_put_text(w, "meridian.unfinished", "the slice has no end: this is the end of the trace");
    }
    json_put_close(w, ']');
    rc = rc ? rc : put_events(o, n, err);
    rc = rc ? rc : put_links(o, n, o->ids.parents[slice], err);
    put_own(w, &own, tp_text(r, S_STATUS, NULL));
    json_put_close(w, '}');
    otlp_own_free(&own);
    o->spans++;
    return rc ? rc : step(o, SPANS, err);
}

static int open_rows(struct otlp_writer *o, struct error *err)
{
    struct tp_result *r = NULL;
    int rc = tp_query(o->sh->tp, make_tables, &r);
    tp_result_close(r);
    for (int i = 0; i < STREAMS && !rc; i++)
        rc = tp_query(o->sh->tp, queries[i], &o->rows[i].r);
    if (rc < 0)
        return session_error(o->sh, rc, err);
    for (int i = 0; i < STREAMS && !rc; i++)
        rc = step(o, (enum stream)i, err);
    return rc;
}

int convert_otlp(struct shell *sh, struct out_file *out, struct error *err)
{
    struct otlp_writer o = {.sh = sh, .w = {.put = out_file_sink, .ctx = out}, .machine = -1, .upid = -1};
    const struct text_list *args = &sh->opt.positionals;
    const char *path = args->n > 2 ? args->p[2] : "", *dot = strrchr(path, '.');
    o.document = dot && strcmp(dot, ".json") == 0;
    int rc = otlp_ids_open(sh, &o.ids, err);
    rc = rc < 0 ? rc : open_rows(&o, err);
    while (!rc && !o.w.rc && o.rows[SPANS].n >= 0) {
        rc = enter_group(&o, o.rows[SPANS].r, err);
        rc = rc ? rc : put_span(&o, err);
    }
    close_group(&o);
    if (!o.any)
        json_put_raw(&o.w, "{\"resourceSpans\":[", strlen("{\"resourceSpans\":["));
    json_put_close(&o.w, ']');
    json_put_close(&o.w, '}');
    out_file_text(out, "\n");
    for (int i = 0; i < STREAMS; i++)
        tp_result_close(o.rows[i].r);
    otlp_ids_close(&o.ids);
    mem_free(o.service);
    mem_free(o.scope);
    mem_free(o.version);
    return rc ? rc : o.w.rc;
}
