/* Attributes of OTLP as args: nested values flattened, from protobuf; and what a span says of itself. */
#include "importer/otlp/otlp_internal.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdio.h>

const char *otlp_kind_name(unsigned kind)
{
    static const char *const names[] = {"internal", "internal", "server", "client", "producer", "consumer"};
    return kind < sizeof names / sizeof *names ? names[kind] : "internal"; /* what is not told is that */
}

const char *otlp_status_name(unsigned status)
{
    static const char *const names[] = {"unset", "ok", "error"};
    return status < sizeof names / sizeof *names ? names[status] : "unset";
}

bool otlp_key_append(struct otlp_walk *w, struct slice text, bool flat_too)
{
    if (!vec_reserve(&w->key, w->key.n + text.len + 1) ||
        (flat_too && !vec_reserve(&w->flat, w->flat.n + text.len + 1))) {
        w->failed = true;
        return false;
    }
    if (text.len)
        memcpy(w->key.p + w->key.n, text.p, text.len);
    w->key.n = arg_key_cut(w->key.n + text.len);
    if (flat_too) {
        if (text.len)
            memcpy(w->flat.p + w->flat.n, text.p, text.len);
        w->flat.n = arg_key_cut(w->flat.n + text.len);
    }
    return true;
}

void otlp_walk_free(struct otlp_walk *w)
{
    vec_free(&w->key);
    vec_free(&w->flat);
    vec_free(&w->text);
}

void otlp_leaf(struct otlp_walk *w, enum arg_type type, int64_t word)
{
    struct strpool *strings = &w->im->st->strings;
    arg_list_add(&w->im->st->args, w->out, strpool_intern(strings, w->flat.p, w->flat.n),
                 strpool_intern(strings, w->key.p, w->key.n), type, word);
}

void otlp_leaf_int(struct otlp_walk *w, int64_t v)
{
    if (v == COL_NULL) /* the one integer that a table cannot hold */
        otlp_leaf(w, ARG_REAL, column_f64_word((double)v));
    else
        otlp_leaf(w, ARG_INT, v);
}

void otlp_hex(char *to, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = digits[p[i] >> 4];
        to[2 * i + 1] = digits[p[i] & 15];
    }
}

void otlp_leaf_bytes(struct otlp_walk *w, struct slice bytes)
{
    char *text = mem_alloc(bytes.len * 2 + 1);
    if (!text) {
        w->failed = true;
        return;
    }
    otlp_hex(text, bytes.p, bytes.len);
    otlp_leaf(w, ARG_STRING, import_slice(w->im, slice_of(text, bytes.len * 2)));
    mem_free(text);
}

static void attributes(struct otlp_walk *w, struct slice message, uint32_t id, unsigned depth);

/* The elements of an array, each under its number. */
static void elements(struct otlp_walk *w, struct slice array, unsigned depth);

static void value(struct otlp_walk *w, struct slice any, unsigned depth)
{
    struct pb_cursor c = pb_cursor(any);
    struct pb_field f, last = {0};
    if (depth > OTLP_NESTING)
        return;
    while (pb_next(&c, &f)) /* one of them: the last one holds */
        if (f.id <= OTLP_ANY_VALUE_BYTES_VALUE)
            last = f;
    switch (last.id) {
    case OTLP_ANY_VALUE_STRING_VALUE:
        otlp_leaf(w, ARG_STRING, import_slice(w->im, pb_bytes(&last)));
        break;
    case OTLP_ANY_VALUE_BOOL_VALUE:
        otlp_leaf(w, ARG_BOOL, pb_bool(&last));
        break;
    case OTLP_ANY_VALUE_INT_VALUE:
        otlp_leaf_int(w, pb_i64(&last));
        break;
    case OTLP_ANY_VALUE_DOUBLE_VALUE:
        otlp_leaf(w, ARG_REAL, column_f64_word(pb_double(&last)));
        break;
    case OTLP_ANY_VALUE_ARRAY_VALUE:
        elements(w, pb_bytes(&last), depth);
        break;
    case OTLP_ANY_VALUE_KVLIST_VALUE:
        attributes(w, pb_bytes(&last), OTLP_KEY_VALUE_LIST_VALUES, depth);
        break;
    case OTLP_ANY_VALUE_BYTES_VALUE:
        otlp_leaf_bytes(w, pb_bytes(&last));
        break;
    default:
        otlp_leaf(w, ARG_NULL, 0);
    }
}

static void elements(struct otlp_walk *w, struct slice array, unsigned depth)
{
    struct pb_cursor c = pb_cursor(array);
    struct pb_field f;
    size_t key_n = w->key.n;
    for (uint64_t i = 0; !w->failed && pb_next(&c, &f);) {
        char index[24];
        if (f.id != OTLP_ARRAY_VALUE_VALUES || f.wire != PB_BYTES)
            continue;
        int n = snprintf(index, sizeof index, "[%llu]", (unsigned long long)i++);
        if (otlp_key_append(w, slice_of(index, (size_t)n), false))
            value(w, pb_bytes(&f), depth + 1);
        w->key.n = key_n;
    }
}

/* The KeyValues that are the fields `id` of a message. */
static void attributes(struct otlp_walk *w, struct slice message, uint32_t id, unsigned depth)
{
    struct pb_cursor c = pb_cursor(message);
    struct pb_field f, g;
    size_t key_n = w->key.n, flat_n = w->flat.n;
    while (!w->failed && pb_next(&c, &f)) {
        if (f.id != id || f.wire != PB_BYTES)
            continue;
        struct pb_cursor entry = pb_sub(&f);
        struct slice key = {0}, any = {0};
        while (pb_next(&entry, &g)) {
            if (g.id == OTLP_KEY_VALUE_KEY)
                key = pb_bytes(&g);
            else if (g.id == OTLP_KEY_VALUE_VALUE)
                any = pb_bytes(&g);
        }
        if ((!key_n || otlp_key_append(w, slice_str("."), true)) && otlp_key_append(w, key, true))
            value(w, any, depth + 1);
        w->key.n = key_n;
        w->flat.n = flat_n;
    }
}

void otlp_attributes(struct otlp_walk *w, bool json, struct slice list, uint32_t id)
{
    if (json)
        otlp_json_attributes(w, list);
    else
        attributes(w, list, id, 0);
}

/* Numbers of fields by what has them. */
static const struct {
    uint8_t attributes, dropped_attributes, trace_state;
} fields_of[] = {
    [OTLP_ARGS_SPAN] = {OTLP_SPAN_ATTRIBUTES, OTLP_SPAN_DROPPED_ATTRIBUTES_COUNT, OTLP_SPAN_TRACE_STATE},
    [OTLP_ARGS_EVENT] = {OTLP_EVENT_ATTRIBUTES, OTLP_EVENT_DROPPED_ATTRIBUTES_COUNT, 0},
    [OTLP_ARGS_LINK] = {OTLP_LINK_ATTRIBUTES, OTLP_LINK_DROPPED_ATTRIBUTES_COUNT, OTLP_LINK_TRACE_STATE},
};

void otlp_proto_details(struct otlp *o, enum otlp_args_of of, struct slice raw, struct otlp_details *d)
{
    struct pb_cursor c = pb_cursor(raw);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        if (f.id == fields_of[of].trace_state) {
            d->trace_state = f.u ? import_slice(o->im, pb_bytes(&f)) : 0;
        } else if (f.id == fields_of[of].dropped_attributes) {
            d->dropped_attributes = pb_u32(&f);
        } else if (of == OTLP_ARGS_SPAN && f.id == OTLP_SPAN_DROPPED_EVENTS_COUNT) {
            d->dropped_events = pb_u32(&f);
        } else if (of == OTLP_ARGS_SPAN && f.id == OTLP_SPAN_DROPPED_LINKS_COUNT) {
            d->dropped_links = pb_u32(&f);
        } else if (of == OTLP_ARGS_SPAN && f.id == OTLP_SPAN_STATUS && pb_find(pb_bytes(&f), OTLP_STATUS_MESSAGE, &g) &&
                   g.u) {
            d->status_message = import_slice(o->im, pb_bytes(&g));
        }
    }
}

static void put_id(struct otlp *o, struct arg_list *out, const char *key, const uint8_t *id, size_t n)
{
    char text[32];
    otlp_hex(text, id, n);
    arg_list_str(&o->im->st->args, out, key, import_slice(o->im, slice_of(text, 2 * n)));
}

static void put_text(struct otlp *o, struct arg_list *out, const char *key, strid text)
{
    if (text)
        arg_list_str(&o->im->st->args, out, key, text);
}

static void put_count(struct otlp *o, struct arg_list *out, const char *key, uint64_t n)
{
    if (n)
        arg_list_int(&o->im->st->args, out, key, (int64_t)n);
}

/* What stands in front of a span's attributes: its ids, kind, status, and the library that made it. */
static void put_head(struct otlp *o, const struct otlp_span *s, const struct otlp_details *d, struct arg_list *out)
{
    const struct otlp_scope *scope = &o->scopes.p[s->scope];
    bool json = otlp_is_json(scope->raw);
    put_id(o, out, "otel.trace_id", s->key.trace, sizeof s->key.trace);
    put_id(o, out, "otel.span_id", s->key.span, sizeof s->key.span);
    if (!otlp_is_zero(s->parent, sizeof s->parent))
        put_id(o, out, "otel.parent_span_id", s->parent, sizeof s->parent);
    put_text(o, out, "otel.kind", import_str(o->im, otlp_kind_name(s->kind)));
    put_text(o, out, "otel.status", import_str(o->im, otlp_status_name(s->status)));
    put_text(o, out, "otel.status_message", d->status_message);
    put_text(o, out, "otel.trace_state", d->trace_state);
    put_count(o, out, "otel.flags", s->flags);
    put_text(o, out, "otel.scope.name", scope->name);
    put_text(o, out, "otel.scope.version", scope->version);
    struct otlp_walk w = {.im = o->im, .out = out};
    struct slice list = json ? otlp_json_member(scope->raw, "attributes") : scope->raw;
    if (list.len && otlp_key_append(&w, slice_str("otel.scope"), true))
        otlp_attributes(&w, json, list, OTLP_SCOPE_ATTRIBUTES);
    o->im->failed |= w.failed;
    otlp_walk_free(&w);
}

static uint32_t span_of(const struct otlp *o, enum otlp_args_of of, uint32_t index)
{
    return of == OTLP_ARGS_SPAN ? index : of == OTLP_ARGS_EVENT ? o->events.p[index].span : o->links.p[index].span;
}

static struct slice raw_of(const struct otlp *o, enum otlp_args_of of, uint32_t index)
{
    if (of == OTLP_ARGS_SPAN)
        return slice_of(o->spans.p[index].raw, o->spans.p[index].raw_len);
    if (of == OTLP_ARGS_EVENT)
        return slice_of(o->events.p[index].raw, o->events.p[index].raw_len);
    return slice_of(o->links.p[index].raw, o->links.p[index].raw_len);
}

void otlp_args_values(struct otlp *o, enum otlp_args_of of, uint32_t index, struct arg_list *out)
{
    const struct otlp_span *s = &o->spans.p[span_of(o, of, index)];
    struct slice raw = raw_of(o, of, index);
    bool json = otlp_is_json(raw);
    struct otlp_details d = {0};
    struct otlp_walk w = {.im = o->im, .out = out};
    if (json)
        otlp_json_details(o, raw, &d);
    else
        otlp_proto_details(o, of, raw, &d);
    if (of == OTLP_ARGS_SPAN)
        put_head(o, s, &d, out);
    else
        put_text(o, out, "otel.trace_state", d.trace_state);
    otlp_attributes(&w, json, json ? d.attributes : raw, fields_of[of].attributes);
    put_count(o, out, "otel.dropped_attributes", d.dropped_attributes);
    put_count(o, out, "otel.dropped_events", d.dropped_events);
    put_count(o, out, "otel.dropped_links", d.dropped_links);
    o->im->failed |= w.failed;
    otlp_walk_free(&w);
}

static void decode(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)bytes; /* the record knows them */
    otlp_args_values(ctx, (enum otlp_args_of)(aux & 3), aux >> 2, out);
}

void otlp_args_open(struct otlp *o)
{
    args_set_decoder(&o->im->st->args, ARGS_KIND_OTLP, decode, o);
}

argset otlp_args_set(struct otlp *o, enum otlp_args_of of, uint32_t index)
{
    return args_intern_bytes(&o->im->st->args, ARGS_KIND_OTLP, index << 2 | of, raw_of(o, of, index), true, false,
                             NULL);
}
