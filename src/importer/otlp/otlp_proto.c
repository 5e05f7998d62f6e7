/* Reads messages of OTLP in protobuf: once through the bytes, each span a record. */
#include "importer/otlp/otlp_internal.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

/* An id of n bytes; an empty one stays zero. False when it is something else. */
static bool id_field(const struct pb_field *f, uint8_t *out, size_t n)
{
    struct slice id = pb_bytes(f);
    if (id.len == n)
        memcpy(out, id.p, n);
    return !id.len || id.len == n;
}

/* A time; 0 for one that cannot be. */
static int64_t time_field(const struct pb_field *f)
{
    int64_t t = pb_i64(f);
    return t > 0 ? t : OTLP_NEVER;
}

static strid text_field(struct otlp *o, const struct pb_field *f)
{
    return import_slice(o->im, pb_bytes(f));
}

static void take_attribute(struct otlp *o, struct slice entry, struct otlp_span *s)
{
    struct pb_field key, value, g;
    if (!pb_find(entry, OTLP_KEY_VALUE_KEY, &key) || !slice_starts(pb_bytes(&key), "thread.") ||
        !pb_find(entry, OTLP_KEY_VALUE_VALUE, &value))
        return;
    if (slice_eq_str(pb_bytes(&key), "thread.id")) {
        if (pb_find(pb_bytes(&value), OTLP_ANY_VALUE_INT_VALUE, &g) && pb_i64(&g) > 0)
            s->tid = pb_i64(&g);
    } else if (slice_eq_str(pb_bytes(&key), "thread.name")) {
        if (pb_find(pb_bytes(&value), OTLP_ANY_VALUE_STRING_VALUE, &g) && g.u)
            s->thread_name = text_field(o, &g);
    }
}

static bool read_event(struct otlp_reading *r, struct slice message)
{
    struct otlp *o = r->o;
    struct otlp_event e = {.raw = message.p, .raw_len = (uint32_t)message.len, .slice = OTLP_NONE};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == OTLP_EVENT_TIME_UNIX_NANO)
            e.ts = time_field(&f);
        else if (f.id == OTLP_EVENT_NAME)
            e.name = text_field(o, &f);
        else if (f.id == OTLP_EVENT_DROPPED_ATTRIBUTES_COUNT)
            otlp_count(r, STAT_otlp_dropped_items, pb_u32(&f));
    }
    if (e.ts <= 0)
        otlp_count(r, STAT_otlp_unplaced_events, 1);
    else if (!vec_push(&o->events, e))
        o->im->failed = true;
    return !c.bad && !o->im->failed;
}

static bool read_link(struct otlp_reading *r, struct slice message)
{
    struct otlp *o = r->o;
    struct otlp_link l = {.raw = message.p, .raw_len = (uint32_t)message.len};
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        if (f.id == OTLP_LINK_TRACE_ID)
            (void)id_field(&f, l.to.trace, sizeof l.to.trace);
        else if (f.id == OTLP_LINK_SPAN_ID)
            (void)id_field(&f, l.to.span, sizeof l.to.span);
        else if (f.id == OTLP_LINK_DROPPED_ATTRIBUTES_COUNT)
            otlp_count(r, STAT_otlp_dropped_items, pb_u32(&f));
    }
    if (!vec_push(&o->links, l))
        o->im->failed = true;
    return !c.bad && !o->im->failed;
}

static void take_status(struct otlp_span *s, const struct pb_field *f)
{
    enum { STATUSES = 3 };
    struct pb_field g;
    if (pb_find(pb_bytes(f), OTLP_STATUS_CODE, &g) && pb_u64(&g) < STATUSES)
        s->status = (uint8_t)pb_u64(&g);
}

/* Takes one field of a span. False when what it holds is damaged. */
static bool take_field(struct otlp_reading *r, struct otlp_span *s, const struct pb_field *f, bool *bad_id)
{
    enum { KINDS = 6 };
    struct otlp *o = r->o;
    switch (f->id) {
    case OTLP_SPAN_TRACE_ID:
        *bad_id |= !id_field(f, s->key.trace, sizeof s->key.trace);
        break;
    case OTLP_SPAN_SPAN_ID:
        *bad_id |= !id_field(f, s->key.span, sizeof s->key.span);
        break;
    case OTLP_SPAN_PARENT_SPAN_ID:
        (void)id_field(f, s->parent, sizeof s->parent);
        break;
    case OTLP_SPAN_NAME:
        s->name = text_field(o, f);
        break;
    case OTLP_SPAN_KIND:
        s->kind = pb_u64(f) < KINDS ? (uint8_t)pb_u64(f) : 0;
        break;
    case OTLP_SPAN_START_TIME_UNIX_NANO:
        s->ts = time_field(f);
        break;
    case OTLP_SPAN_END_TIME_UNIX_NANO:
        s->end = time_field(f);
        break;
    case OTLP_SPAN_ATTRIBUTES:
        take_attribute(o, pb_bytes(f), s);
        break;
    case OTLP_SPAN_EVENTS:
        return read_event(r, pb_bytes(f));
    case OTLP_SPAN_LINKS:
        return read_link(r, pb_bytes(f));
    case OTLP_SPAN_STATUS:
        take_status(s, f);
        break;
    case OTLP_SPAN_FLAGS:
        s->flags = pb_u32(f);
        break;
    case OTLP_SPAN_DROPPED_ATTRIBUTES_COUNT:
    case OTLP_SPAN_DROPPED_EVENTS_COUNT:
    case OTLP_SPAN_DROPPED_LINKS_COUNT:
        otlp_count(r, STAT_otlp_dropped_items, pb_u32(f));
        break;
    default:
        break;
    }
    return true;
}

/* Log records and metrics stand in messages of the same frame, where spans would be: with neither a trace id nor a
 * start.
 */
static bool is_stranger(struct slice message)
{
    enum { ID_BYTES = 16 };
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    while (pb_next(&c, &f))
        if ((f.id == OTLP_SPAN_TRACE_ID && f.wire == PB_BYTES && f.u == ID_BYTES) ||
            (f.id == OTLP_SPAN_START_TIME_UNIX_NANO && f.wire == PB_FIXED64))
            return false;
    return !c.bad;
}

static bool read_span(struct otlp_reading *r, struct slice message)
{
    struct otlp *o = r->o;
    struct otlp_span s = {.raw = message.p, .raw_len = (uint32_t)message.len};
    size_t first_event = o->events.n, first_link = o->links.n;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    bool bad_id = false, ok = message.len <= UINT32_MAX;
    if (is_stranger(message)) {
        r->strangers++;
        return true;
    }
    while (ok && pb_next(&c, &f))
        ok = take_field(r, &s, &f, &bad_id);
    if (!ok || c.bad) {
        o->events.n = first_event;
        o->links.n = first_link;
        return false;
    }
    if (!s.name)
        s.name = import_str(o->im, "");
    otlp_span_add(r, &s, bad_id, first_event, first_link);
    return !o->im->failed;
}

/* The next field of a message whose end may be missing: one that runs over the end is given as far as it goes, and
 * *cut says so. */
static bool next_of_cut(struct pb_cursor *c, struct pb_field *f, bool *cut)
{
    uint64_t tag, len;
    if (pb_next(c, f))
        return true;
    const uint8_t *p = c->p;
    if (!c->bad)
        return false;
    *cut = true;
    if (!pb_varint(&p, c->end, &tag) || (tag & 7) != PB_BYTES || tag >> 3 == 0 || tag >> 3 > UINT32_MAX ||
        !pb_varint(&p, c->end, &len) || len < (uint64_t)(c->end - p))
        return false;
    *f = (struct pb_field){.id = (uint32_t)(tag >> 3), .wire = PB_BYTES, .u = (uint64_t)(c->end - p), .p = p};
    c->p = c->end;
    c->bad = false;
    return true;
}

/* A message that is in a field several times is all of them, behind each other, as protobuf has it. */
static struct slice joined_field(struct otlp *o, struct slice message, uint32_t id)
{
    uint8_t *all = mem_alloc(message.len + 1), *end = all;
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    bool cut;
    if (!otlp_keep(o, all))
        return slice_of("", 0);
    while (next_of_cut(&c, &f, &cut))
        if (f.id == id && f.wire == PB_BYTES) {
            if (f.u)
                memcpy(end, f.p, f.u);
            end += f.u;
        }
    return slice_of(all, (size_t)(end - all));
}

/* A text field of a message, 0 when it is empty or not there. Of several the last counts. */
static strid last_text(struct otlp *o, struct slice message, uint32_t id)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f, last = {0};
    while (pb_next(&c, &f))
        if (f.id == id && f.wire == PB_BYTES)
            last = f;
    return last.u ? text_field(o, &last) : 0;
}

static bool read_scope_spans(struct otlp_reading *r, struct slice message, bool cut_here)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct otlp_scope scope = {0};
    unsigned n_scopes = 0;
    bool cut = cut_here;
    if (!otlp_scope_begin(r))
        return false;
    while (!r->o->im->failed && next_of_cut(&c, &f, &cut)) {
        bool whole = !cut || c.p < c.end;
        if (f.id == OTLP_SCOPE_SPANS_SPANS) { /* of one that is cut nobody knows what else it said */
            if (whole && !read_span(r, pb_bytes(&f)))
                otlp_count(r, STAT_otlp_spans_skipped, 1);
        } else if (f.id == OTLP_SCOPE_SPANS_SCOPE) {
            scope.raw = pb_bytes(&f);
            n_scopes++;
        }
    }
    if (n_scopes > 1)
        scope.raw = joined_field(r->o, message, OTLP_SCOPE_SPANS_SCOPE);
    if (n_scopes) {
        scope.resource = r->o->scopes.p[r->scope].resource;
        scope.name = last_text(r->o, scope.raw, OTLP_SCOPE_NAME);
        scope.version = last_text(r->o, scope.raw, OTLP_SCOPE_VERSION);
        r->o->scopes.p[r->scope] = scope;
    }
    return !cut;
}

static bool read_resource_spans(struct otlp_reading *r, struct slice message, bool cut_here)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    struct slice resource = slice_of("", 0);
    uint32_t first_scope = (uint32_t)r->o->scopes.n;
    unsigned n_resources = 0;
    bool cut = cut_here;
    if (!otlp_resource_begin(r))
        return false;
    while (!r->o->im->failed && next_of_cut(&c, &f, &cut)) {
        if (f.id == OTLP_RESOURCE_SPANS_RESOURCE) {
            resource = pb_bytes(&f);
            n_resources++;
        } else if (f.id == OTLP_RESOURCE_SPANS_SCOPE_SPANS && !read_scope_spans(r, pb_bytes(&f), cut && c.p == c.end)) {
            cut = true;
        }
    }
    if (n_resources > 1)
        resource = joined_field(r->o, message, OTLP_RESOURCE_SPANS_RESOURCE);
    otlp_resource_end(r, resource, first_scope);
    return !cut;
}

bool otlp_proto_message(struct otlp_reading *r, struct slice message)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f;
    bool cut = false;
    uint64_t spans = r->spans;
    r->strangers = 0;
    while (!r->o->im->failed && next_of_cut(&c, &f, &cut))
        if (f.id == OTLP_TRACES_DATA_RESOURCE_SPANS && !read_resource_spans(r, pb_bytes(&f), cut && c.p == c.end))
            cut = true;
    if (r->strangers && r->spans == spans) /* logs and metrics have the same frame */
        r->other_signals++;
    else if (r->strangers)
        otlp_count(r, STAT_otlp_spans_skipped, (int64_t)r->strangers);
    return !cut && !c.bad;
}
