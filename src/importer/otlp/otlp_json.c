/* Reads messages of OTLP in JSON: once through the text, each span a record. */
#include "base/hex.h"
#include "base/json_reader.h"
#include "importer/otlp/otlp_internal.h"

/* One message on its way. */
struct json_walk {
    struct otlp_reading *r;
    struct json_reader *j;
};

typedef bool (*object_fn)(struct json_walk *w, const uint8_t *start);

/* Calls `each` for the objects of the array that comes; what is something else is passed over. */
static bool each_object(struct json_walk *w, object_fn each)
{
    struct json_reader *j = w->j;
    if (json_peek(j) != '[')
        return json_skip(j, NULL);
    if (!json_enter(j, '['))
        return false;
    while (json_element(j))
        if (json_peek(j) == '{' ? !each(w, j->p) : !json_skip(j, NULL))
            return false;
    return j->status == JSON_OK;
}

/* Calls `take` with the number of each member of the object that comes; of those that the table does not have, too
 * (`n`). It reads the value. */
typedef bool (*member_fn)(struct json_walk *w, void *ctx, int key);
static bool each_member(struct json_walk *w, const char *const *names, int n, member_fn take, void *ctx)
{
    struct json_text key;
    if (json_peek(w->j) != '{')
        return json_skip(w->j, NULL);
    if (!json_enter(w->j, '{'))
        return false;
    while (json_member(w->j, &key)) {
        int k = 0;
        while (k < n && !json_text_is(key, names[k]))
            k++;
        if (!take(w, ctx, k))
            return false;
    }
    return w->j->status == JSON_OK;
}

/* A string or a number in front; other values are passed over, and are empty texts. */
static bool scalar(struct json_walk *w, struct json_text *text)
{
    int next = json_peek(w->j);
    *text = (struct json_text){.raw = slice_of("", 0)};
    if (next == '"')
        return json_string(w->j, text);
    struct slice value;
    if (!json_skip(w->j, &value))
        return false;
    if (next == '-' || (next >= '0' && next <= '9'))
        text->raw = value;
    return true;
}

static strid interned(struct json_walk *w, struct json_text text)
{
    struct otlp *o = w->r->o;
    if (!text.escaped)
        return import_slice(o->im, text.raw);
    if (!vec_reserve(&o->text, text.raw.len)) {
        o->im->failed = true;
        return 0;
    }
    return import_slice(o->im, slice_of(o->text.p, json_unescape(text, JSON_TOLERANT, o->text.p)));
}

/* A 64-bit number that is not negative: digits in a string, or a number. False when it is neither. */
static bool u63_of(struct slice text, int64_t *out)
{
    enum { SURE_DIGITS = 18 };
    struct json_number n;
    int64_t v = 0;
    size_t i = 0;
    for (; i < text.len && i < SURE_DIGITS && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        v = v * 10 + (text.p[i] - '0');
    if (i == text.len || !text.len) {
        *out = v;
        return true;
    }
    if (!json_number_of(text, &n) || !json_number_i64(&n, true, &v) || v < 0)
        return false;
    *out = v;
    return true;
}

/* A time; 0 for one that cannot be. */
static bool time_member(struct json_walk *w, int64_t *out)
{
    struct json_text text;
    if (!scalar(w, &text))
        return false;
    if (!u63_of(text.raw, out))
        *out = OTLP_NEVER;
    return true;
}

/* An id of n bytes in hexadecimal digits; an empty one stays zero. *bad: it is something else. */
static bool id_member(struct json_walk *w, uint8_t *out, size_t n, bool *bad)
{
    struct json_text text;
    if (!scalar(w, &text))
        return false;
    if (!text.raw.len)
        return true;
    bool ok = text.raw.len == 2 * n && hex_bytes(text.raw, out);
    if (!ok)
        memset(out, 0, n);
    *bad |= !ok;
    return true;
}

/* An enum: its number, or its name as other tools write it. */
static bool enum_member(struct json_walk *w, const char *const *names, int n, uint8_t *out)
{
    struct json_text text;
    int64_t v;
    if (!scalar(w, &text))
        return false;
    *out = 0;
    if (u63_of(text.raw, &v))
        *out = (uint8_t)(v < n ? v : 0);
    else
        for (int i = 0; i < n; i++)
            if (json_text_is(text, names[i]))
                *out = (uint8_t)i;
    return true;
}

static const char *const kinds[] = {"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
                                    "SPAN_KIND_CLIENT",      "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER"};
static const char *const statuses[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"};

/* --- attributes of spans that say where it ran --- */

static bool count_member(struct json_walk *w)
{
    struct json_text text;
    int64_t n;
    if (!scalar(w, &text))
        return false;
    if (u63_of(text.raw, &n) && n > 0 && n <= UINT32_MAX)
        otlp_count(w->r, STAT_otlp_dropped_items, n);
    return true;
}

static bool value_member(struct json_walk *w, void *ctx, int key)
{
    struct json_text *value = ctx;
    return key == 0 ? scalar(w, value) : json_skip(w->j, NULL);
}

struct attribute {
    struct json_text key, value;
};

static bool attribute_member(struct json_walk *w, void *ctx, int key)
{
    enum { KEY, VALUE };
    static const char *const text[] = {"stringValue"}, *const integer[] = {"intValue"};
    struct attribute *a = ctx;
    if (key == KEY)
        return scalar(w, &a->key);
    struct slice raw;
    if (!json_skip(w->j, &raw))
        return false;
    if (key != VALUE || !raw.len || raw.p[0] != '{')
        return true;
    /* The key mostly comes first, and then it is known whether the value matters. */
    if (a->key.raw.len && !slice_starts(a->key.raw, "thread."))
        return true;
    struct json_reader inner = json_reader(raw);
    struct json_walk v = {w->r, &inner};
    if (!each_member(&v, text, 1, value_member, &a->value) || a->value.raw.len)
        return true;
    inner = json_reader(raw);
    each_member(&v, integer, 1, value_member, &a->value);
    return true;
}

struct span_walk {
    struct otlp_span span;
    bool bad_id;
};

static bool span_attributes(struct json_walk *w, struct otlp_span *s)
{
    static const char *const names[] = {"key", "value"};
    struct json_reader *j = w->j;
    if (json_peek(j) != '[')
        return json_skip(j, NULL);
    if (!json_enter(j, '['))
        return false;
    while (json_element(j)) {
        struct attribute a = {0};
        if (!each_member(w, names, 2, attribute_member, &a))
            return false;
        if (json_text_is(a.key, "thread.id")) {
            if (!u63_of(a.value.raw, &s->tid))
                s->tid = 0;
        } else if (json_text_is(a.key, "thread.name") && a.value.raw.len) {
            s->thread_name = interned(w, a.value);
        }
    }
    return j->status == JSON_OK;
}

/* --- spans --- */

static bool event_member(struct json_walk *w, void *ctx, int key)
{
    enum { TIME, NAME, DROPPED };
    struct otlp_event *e = ctx;
    struct json_text text;
    switch (key) {
    case TIME:
        return time_member(w, &e->ts);
    case NAME:
        if (!scalar(w, &text))
            return false;
        e->name = interned(w, text);
        return true;
    case DROPPED:
        return count_member(w);
    default:
        return json_skip(w->j, NULL);
    }
}

static bool read_event(struct json_walk *w, const uint8_t *start)
{
    static const char *const names[] = {"timeUnixNano", "name", "droppedAttributesCount"};
    struct otlp *o = w->r->o;
    struct otlp_event e = {.raw = start, .slice = OTLP_NONE};
    if (!each_member(w, names, 3, event_member, &e))
        return false;
    e.raw_len = (uint32_t)(w->j->p - start);
    if (e.ts <= 0)
        otlp_count(w->r, STAT_otlp_unplaced_events, 1);
    else if (!vec_push(&o->events, e))
        o->im->failed = true;
    return !o->im->failed;
}

struct link_walk {
    struct otlp_link link;
    bool bad;
};

static bool link_member(struct json_walk *w, void *ctx, int key)
{
    enum { TRACE_ID, SPAN_ID, DROPPED };
    struct link_walk *l = ctx;
    switch (key) {
    case TRACE_ID:
        return id_member(w, l->link.to.trace, sizeof l->link.to.trace, &l->bad);
    case SPAN_ID:
        return id_member(w, l->link.to.span, sizeof l->link.to.span, &l->bad);
    case DROPPED:
        return count_member(w);
    default:
        return json_skip(w->j, NULL);
    }
}

static bool read_link(struct json_walk *w, const uint8_t *start)
{
    static const char *const names[] = {"traceId", "spanId", "droppedAttributesCount"};
    struct otlp *o = w->r->o;
    struct link_walk l = {.link = {.raw = start}};
    if (!each_member(w, names, 3, link_member, &l))
        return false;
    l.link.raw_len = (uint32_t)(w->j->p - start);
    if (!vec_push(&o->links, l.link))
        o->im->failed = true;
    return !o->im->failed;
}

static bool status_member(struct json_walk *w, void *ctx, int key)
{
    return key == 0 ? enum_member(w, statuses, sizeof statuses / sizeof *statuses, ctx) : json_skip(w->j, NULL);
}

enum span_key {
    TRACE_ID,
    SPAN_ID,
    PARENT,
    FLAGS,
    NAME,
    KIND,
    START,
    END,
    ATTRIBUTES,
    EVENTS,
    LINKS,
    STATUS,
    DROPPED_ATTRIBUTES,
    DROPPED_EVENTS,
    DROPPED_LINKS,
    SPAN_KEYS
};
static const char *const span_keys[SPAN_KEYS] = {"traceId",
                                                 "spanId",
                                                 "parentSpanId",
                                                 "flags",
                                                 "name",
                                                 "kind",
                                                 "startTimeUnixNano",
                                                 "endTimeUnixNano",
                                                 "attributes",
                                                 "events",
                                                 "links",
                                                 "status",
                                                 "droppedAttributesCount",
                                                 "droppedEventsCount",
                                                 "droppedLinksCount"};

static bool span_member(struct json_walk *w, void *ctx, int key)
{
    static const char *const code[] = {"code"};
    struct span_walk *s = ctx;
    struct otlp_span *span = &s->span;
    struct json_text text;
    bool bad_parent = false; /* then it is a root */
    int64_t flags;
    switch (key) {
    case TRACE_ID:
        return id_member(w, span->key.trace, sizeof span->key.trace, &s->bad_id);
    case SPAN_ID:
        return id_member(w, span->key.span, sizeof span->key.span, &s->bad_id);
    case PARENT:
        return id_member(w, span->parent, sizeof span->parent, &bad_parent);
    case FLAGS:
        if (!scalar(w, &text))
            return false;
        span->flags = u63_of(text.raw, &flags) ? (uint32_t)flags : 0;
        return true;
    case NAME:
        if (!scalar(w, &text))
            return false;
        span->name = interned(w, text);
        return true;
    case KIND:
        return enum_member(w, kinds, sizeof kinds / sizeof *kinds, &span->kind);
    case START:
        return time_member(w, &span->ts);
    case END:
        return time_member(w, &span->end);
    case ATTRIBUTES:
        return span_attributes(w, span);
    case EVENTS:
        return each_object(w, read_event);
    case LINKS:
        return each_object(w, read_link);
    case STATUS:
        return each_member(w, code, 1, status_member, &span->status);
    case DROPPED_ATTRIBUTES:
    case DROPPED_EVENTS:
    case DROPPED_LINKS:
        return count_member(w);
    default:
        return json_skip(w->j, NULL);
    }
}

static bool read_span(struct json_walk *w, const uint8_t *start)
{
    struct otlp *o = w->r->o;
    struct span_walk s = {.span = {.raw = start}};
    size_t first_event = o->events.n, first_link = o->links.n;
    if (!each_member(w, span_keys, SPAN_KEYS, span_member, &s) || o->im->failed || w->j->p - start > UINT32_MAX) {
        o->events.n = first_event;
        o->links.n = first_link;
        return false;
    }
    s.span.raw_len = (uint32_t)(w->j->p - start);
    if (!s.span.name)
        s.span.name = import_str(o->im, "");
    otlp_span_add(w->r, &s.span, s.bad_id, first_event, first_link);
    return !o->im->failed;
}

/* --- what is around them --- */

static bool scope_text(struct json_walk *w, void *ctx, int key)
{
    struct otlp_scope *scope = ctx;
    struct json_text text;
    if (key > 1)
        return json_skip(w->j, NULL);
    if (!scalar(w, &text))
        return false;
    *(key ? &scope->version : &scope->name) = text.raw.len ? interned(w, text) : 0;
    return true;
}

static bool scope_spans_member(struct json_walk *w, void *ctx, int key)
{
    enum { SCOPE, OLD_SCOPE, SPANS };
    static const char *const names[] = {"name", "version"};
    struct otlp_scope *scope = &w->r->o->scopes.p[w->r->scope];
    (void)ctx;
    if (key == SPANS)
        return each_object(w, read_span);
    if (key != SCOPE && key != OLD_SCOPE)
        return json_skip(w->j, NULL);
    if (json_peek(w->j) != '{')
        return json_skip(w->j, NULL);
    const uint8_t *start = w->j->p;
    if (!each_member(w, names, 2, scope_text, scope))
        return false;
    scope->raw = slice_of(start, (size_t)(w->j->p - start));
    return true;
}

static bool read_scope_spans(struct json_walk *w, const uint8_t *start)
{
    static const char *const names[] = {"scope", "instrumentationLibrary", "spans"};
    (void)start;
    return otlp_scope_begin(w->r) && each_member(w, names, 3, scope_spans_member, NULL);
}

static bool resource_spans_member(struct json_walk *w, void *ctx, int key)
{
    enum { RESOURCE, SCOPE_SPANS, OLD_SCOPE_SPANS };
    struct slice *resource = ctx;
    switch (key) {
    case RESOURCE:
        return json_skip(w->j, resource);
    case SCOPE_SPANS:
    case OLD_SCOPE_SPANS:
        return each_object(w, read_scope_spans);
    default:
        return json_skip(w->j, NULL);
    }
}

static bool read_resource_spans(struct json_walk *w, const uint8_t *start)
{
    static const char *const names[] = {"resource", "scopeSpans", "instrumentationLibrarySpans"};
    struct slice resource = {0};
    uint32_t first_scope = (uint32_t)w->r->o->scopes.n;
    (void)start;
    if (!otlp_resource_begin(w->r))
        return false;
    bool ok = each_member(w, names, 3, resource_spans_member, &resource);
    otlp_resource_end(w->r, resource.len && resource.p[0] == '{' ? resource : slice_of("", 0), first_scope);
    return ok;
}

static bool message_member(struct json_walk *w, void *ctx, int key)
{
    bool *spans = ctx;
    *spans |= key == 0;
    if (key && key < 4)
        w->r->other_signals++;
    return key == 0 ? each_object(w, read_resource_spans) : json_skip(w->j, NULL);
}

bool otlp_json_message(struct otlp_reading *r, struct slice bytes, size_t *used, bool *cut)
{
    static const char *const names[] = {"resourceSpans", "resourceLogs", "resourceMetrics", "resourceProfiles"};
    struct json_reader j = json_reader(bytes);
    struct json_walk w = {r, &j};
    bool spans = false, ok = each_member(&w, names, 4, message_member, &spans);
    *used = (size_t)(j.p - bytes.p);
    *cut = j.status == JSON_MORE;
    return ok;
}
