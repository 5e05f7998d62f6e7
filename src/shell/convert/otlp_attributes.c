/* Args as attributes of OTLP in JSON: typed values, and elements of an array together again. */
#include "shell/convert/otlp_attributes.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t number(const struct tp_result *r, int column, int64_t null)
{
    return tp_column_type(r, column) == TP_NULL ? null : tp_int64(r, column);
}

static void put_text_value(struct json_writer *w, const char *text, size_t len)
{
    json_put_open(w, '{');
    json_put_key(w, "stringValue");
    json_put_bytes(w, text, len);
    json_put_close(w, '}');
}

static void put_int_value(struct json_writer *w, int64_t v)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, v);
    json_put_open(w, '{');
    json_put_key(w, "intValue");
    json_put_str(w, digits);
    json_put_close(w, '}');
}

static void put_real_value(struct json_writer *w, const struct tp_result *r, int column)
{
    char digits[40];
    double v = tp_column_type(r, column) == TP_NULL ? NAN : tp_double(r, column);
    json_put_open(w, '{');
    json_put_key(w, "doubleValue");
    if (isfinite(v)) {
        snprintf(digits, sizeof digits, "%.17g", v);
        json_put_raw(w, digits, strlen(digits));
    } else {
        json_put_str(w, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
    }
    json_put_close(w, '}');
}

/* The value of the arg that a row is: columns 2 to 5. */
static void put_arg_value(struct json_writer *w, const struct tp_result *r)
{
    enum { TYPE = 2, INT, STRING, REAL };
    const char *type = tp_text(r, TYPE, NULL);
    size_t len = 0;
    if (strcmp(type, "string") == 0 || strcmp(type, "json") == 0) {
        const char *text = tp_text(r, STRING, &len);
        put_text_value(w, text ? text : "", text ? len : 0);
    } else if (strcmp(type, "real") == 0) {
        put_real_value(w, r, REAL);
    } else if (strcmp(type, "bool") == 0) {
        json_put_open(w, '{');
        json_put_key(w, "boolValue");
        json_put_bool(w, number(r, INT, 0) != 0);
        json_put_close(w, '}');
    } else if (strcmp(type, "null") == 0) {
        json_put_open(w, '{');
        json_put_close(w, '}');
    } else {
        put_int_value(w, number(r, INT, 0));
    }
}

static void put_attribute(struct json_writer *w, const char *key, size_t len)
{
    json_put_open(w, '{');
    json_put_key(w, "key");
    json_put_bytes(w, key, len);
    json_put_key(w, "value");
}

void otlp_put_text(struct json_writer *w, const char *key, const char *text)
{
    if (!text)
        return;
    put_attribute(w, key, strlen(key));
    put_text_value(w, text, strlen(text));
    json_put_close(w, '}');
}

void otlp_put_int(struct json_writer *w, const char *key, int64_t v)
{
    put_attribute(w, key, strlen(key));
    put_int_value(w, v);
    json_put_close(w, '}');
}

/* The name of an array that the key is an element of: "tags" of "tags[2]". 0 for other keys. */
static size_t array_len(const char *key, size_t len)
{
    const char *bracket = memchr(key, '[', len);
    if (!bracket || bracket == key || key[len - 1] != ']')
        return 0;
    for (const char *p = bracket + 1; p < key + len - 1; p++)
        if (*p < '0' || *p > '9')
            return 0;
    return (size_t)(bracket - key);
}

static const char *const own_keys[] = {"otel.status_message",     "otel.trace_state",    "otel.flags",
                                       "otel.dropped_attributes", "otel.dropped_events", "otel.dropped_links",
                                       "otel.scope.version"};

static bool take_own(struct otlp_own *own, const char *key, const struct tp_result *r)
{
    enum { INT = 3, STRING = 4 };
    if (strncmp(key, "otel.", 5) != 0)
        return false;
    for (int i = 0; i < OWNS; i++)
        if (strcmp(key, own_keys[i]) == 0) {
            const char *text = tp_text(r, STRING, NULL);
            if (!own->text[i])
                own->text[i] = text ? mem_strdup(text) : NULL;
            own->number[i] = number(r, INT, 0);
            return true;
        }
    static const char *const said[] = {"otel.trace_id", "otel.span_id", "otel.parent_span_id",
                                       "otel.kind",     "otel.status",  "otel.scope.name"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (strcmp(key, said[i]) == 0)
            return true;
    return false;
}

void otlp_own_free(struct otlp_own *own)
{
    for (int i = 0; i < OWNS; i++)
        mem_free(own->text[i]);
}

static void end_array(struct otlp_attributes *a)
{
    if (!a->array)
        return;
    json_put_close(a->w, ']');
    for (int i = 0; i < 3; i++) /* the value's "arrayValue", the value, the attribute */
        json_put_close(a->w, '}');
    mem_free(a->array);
    a->array = NULL;
}

static void begin_array(struct otlp_attributes *a, const char *key, size_t len)
{
    a->array = mem_strdup(key);
    a->failed |= !a->array;
    if (!a->array)
        return;
    a->array[len] = 0;
    put_attribute(a->w, key, len);
    json_put_open(a->w, '{');
    json_put_key(a->w, "arrayValue");
    json_put_open(a->w, '{');
    json_put_key(a->w, "values");
    json_put_open(a->w, '[');
}

void otlp_put_arg(struct otlp_attributes *a, const struct tp_result *r)
{
    size_t len = 0;
    const char *key = tp_text(r, 1, &len);
    if (a->own && take_own(a->own, key, r))
        return;
    size_t base = array_len(key, len);
    if (a->array && (!base || strlen(a->array) != base || strncmp(a->array, key, base) != 0))
        end_array(a);
    if (a->own)
        a->own->has_thread |= strcmp(key, "thread.id") == 0;
    if (base) {
        if (!a->array)
            begin_array(a, key, base);
        if (a->array)
            put_arg_value(a->w, r);
        return;
    }
    put_attribute(a->w, key, len);
    put_arg_value(a->w, r);
    json_put_close(a->w, '}');
}

void otlp_attributes_end(struct otlp_attributes *a)
{
    end_array(a);
}
