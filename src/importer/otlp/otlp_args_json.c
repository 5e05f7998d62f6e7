/* Attributes of OTLP as args, from JSON. */
#include "base/json_reader.h"
#include "importer/otlp/otlp_internal.h"

#include <math.h>
#include <stdio.h>

/* The value of a member: the text after its colon. */
static bool member_value(struct json_reader *r, struct slice *value)
{
    return json_skip(r, value) && value->len;
}

struct slice otlp_json_member(struct slice object, const char *name)
{
    struct json_reader r = json_reader(object);
    struct json_text key;
    struct slice value, found = {0};
    if (object.len && json_enter(&r, '{'))
        while (json_member(&r, &key) && member_value(&r, &value))
            if (json_text_is(key, name))
                found = value;
    return found;
}

/* The string that a value is, without its escapes; valid until the next one. */
static struct slice plain(struct otlp_walk *w, struct slice value)
{
    struct json_reader r = json_reader(value);
    struct json_text text;
    if (!value.len || value.p[0] != '"' || !json_string(&r, &text))
        return slice_of("", 0);
    if (!text.escaped)
        return text.raw;
    if (!vec_reserve(&w->text, text.raw.len)) {
        w->failed = true;
        return slice_of("", 0);
    }
    return slice_of(w->text.p, json_unescape(text, JSON_TOLERANT, w->text.p));
}

static int base64_digit(uint8_t c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

static void leaf_base64(struct otlp_walk *w, struct slice text)
{
    uint8_t *bytes = mem_alloc(text.len + 1);
    size_t n = 0;
    uint32_t bits = 0;
    int have = 0;
    if (!bytes) {
        w->failed = true;
        return;
    }
    for (size_t i = 0; i < text.len; i++) {
        int digit = base64_digit(text.p[i]);
        if (digit < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[n++] = (uint8_t)(bits >> have);
        }
    }
    otlp_leaf_bytes(w, slice_of(bytes, n));
    mem_free(bytes);
}

/* An integer: a decimal string, or a number. */
static void leaf_int(struct otlp_walk *w, struct slice value)
{
    struct json_number n;
    int64_t v;
    struct slice text = value.p[0] == '"' ? plain(w, value) : value;
    if (!json_number_of(text, &n))
        otlp_leaf(w, ARG_STRING, import_slice(w->im, text));
    else if (json_number_i64(&n, true, &v))
        otlp_leaf_int(w, v);
    else
        otlp_leaf(w, ARG_REAL, column_f64_word(json_number_f64(&n)));
}

static void leaf_double(struct otlp_walk *w, struct slice value)
{
    struct json_number n;
    struct slice text = value.p[0] == '"' ? plain(w, value) : value;
    double v = slice_eq_str(text, "Infinity")    ? INFINITY
               : slice_eq_str(text, "-Infinity") ? -INFINITY
               : json_number_of(text, &n)        ? json_number_f64(&n)
                                                 : NAN;
    otlp_leaf(w, ARG_REAL, column_f64_word(v));
}

static void any_value(struct otlp_walk *w, struct slice object, unsigned depth);
static void key_values(struct otlp_walk *w, struct slice array, unsigned depth);

static void elements(struct otlp_walk *w, struct slice array, unsigned depth)
{
    struct json_reader r = json_reader(array);
    struct slice element;
    size_t key_n = w->key.n;
    uint64_t i = 0;
    if (!array.len || !json_enter(&r, '['))
        return;
    while (!w->failed && json_element(&r) && member_value(&r, &element)) {
        char index[24];
        int n = snprintf(index, sizeof index, "[%llu]", (unsigned long long)i++);
        if (otlp_key_append(w, slice_of(index, (size_t)n), false))
            any_value(w, element, depth + 1);
        w->key.n = key_n;
    }
}

/* The value that {"stringValue": …} and its like are. */
static void any_value(struct otlp_walk *w, struct slice object, unsigned depth)
{
    struct json_reader r = json_reader(object);
    struct json_text key;
    struct slice value;
    int literal;
    if (depth > OTLP_NESTING)
        return;
    if (object.len && object.p[0] == '{' && json_enter(&r, '{'))
        while (json_member(&r, &key) && member_value(&r, &value)) {
            struct json_reader v = json_reader(value);
            if (value.p[0] == 'n')
                continue;
            if (json_text_is(key, "stringValue"))
                otlp_leaf(w, ARG_STRING, import_slice(w->im, plain(w, value)));
            else if (json_text_is(key, "boolValue"))
                otlp_leaf(w, ARG_BOOL, json_literal(&v, &literal) && literal == 1);
            else if (json_text_is(key, "intValue"))
                leaf_int(w, value);
            else if (json_text_is(key, "doubleValue"))
                leaf_double(w, value);
            else if (json_text_is(key, "bytesValue"))
                leaf_base64(w, plain(w, value));
            else if (json_text_is(key, "arrayValue"))
                elements(w, otlp_json_member(value, "values"), depth);
            else if (json_text_is(key, "kvlistValue"))
                key_values(w, otlp_json_member(value, "values"), depth);
            else
                continue;
            return;
        }
    otlp_leaf(w, ARG_NULL, 0);
}

static void key_values(struct otlp_walk *w, struct slice array, unsigned depth)
{
    struct json_reader r = json_reader(array);
    struct slice element;
    size_t key_n = w->key.n, flat_n = w->flat.n;
    if (!array.len || !json_enter(&r, '['))
        return;
    while (!w->failed && json_element(&r) && member_value(&r, &element)) {
        struct slice key = otlp_json_member(element, "key"), value = otlp_json_member(element, "value");
        if ((!key_n || otlp_key_append(w, slice_str("."), true)) && otlp_key_append(w, plain(w, key), true))
            any_value(w, value, depth + 1);
        w->key.n = key_n;
        w->flat.n = flat_n;
    }
}

void otlp_json_attributes(struct otlp_walk *w, struct slice array)
{
    key_values(w, array, 0);
}

static strid string_of(struct otlp *o, struct slice value)
{
    struct otlp_walk w = {.im = o->im};
    struct slice text = plain(&w, value);
    strid id = text.len ? import_slice(o->im, text) : 0;
    o->im->failed |= w.failed;
    otlp_walk_free(&w);
    return id;
}

static uint64_t count_of(struct slice value)
{
    struct json_number n;
    int64_t v;
    return json_number_of(value, &n) && json_number_i64(&n, true, &v) && v > 0 && v <= UINT32_MAX ? (uint64_t)v : 0;
}

void otlp_json_details(struct otlp *o, struct slice raw, struct otlp_details *d)
{
    struct json_reader r = json_reader(raw);
    struct json_text key;
    struct slice value;
    if (!json_enter(&r, '{'))
        return;
    while (json_member(&r, &key) && member_value(&r, &value)) {
        if (json_text_is(key, "attributes"))
            d->attributes = value;
        else if (json_text_is(key, "traceState"))
            d->trace_state = string_of(o, value);
        else if (json_text_is(key, "status"))
            d->status_message = value.p[0] == '{' ? string_of(o, otlp_json_member(value, "message")) : 0;
        else if (json_text_is(key, "droppedAttributesCount"))
            d->dropped_attributes = count_of(value);
        else if (json_text_is(key, "droppedEventsCount"))
            d->dropped_events = count_of(value);
        else if (json_text_is(key, "droppedLinksCount"))
            d->dropped_links = count_of(value);
    }
}
