/* The args of track events: what in an event becomes an arg, and under which name. */
#include "importer/track_event/json_args.h"
#include "importer/track_event/reflect.h"
#include "importer/track_event/track_event_internal.h"
#include "wire/fields.h"

#include <inttypes.h>
#include <stdio.h>

bool track_event_field_has_args(uint32_t field)
{
    switch (field) {
    case TRACK_EVENT_DEBUG_ANNOTATIONS:
    case TRACK_EVENT_TASK_EXECUTION:
    case TRACK_EVENT_LOG_MESSAGE:
    case TRACK_EVENT_SOURCE_LOCATION:
    case TRACK_EVENT_SOURCE_LOCATION_IID:
    case TRACK_EVENT_SCREENSHOT:
    case TRACK_EVENT_CORRELATION_ID:
    case TRACK_EVENT_CORRELATION_ID_STR:
    case TRACK_EVENT_CORRELATION_ID_STR_IID:
    case TRACK_EVENT_CC_SCHEDULER_STATE:
    case TRACK_EVENT_CHROME_USER_EVENT:
    case TRACK_EVENT_CHROME_KEYED_SERVICE:
    case TRACK_EVENT_CHROME_LEGACY_IPC:
    case TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE:
    case TRACK_EVENT_CHROME_LATENCY_INFO:
    case TRACK_EVENT_CHROME_FRAME_REPORTER:
    case TRACK_EVENT_CHROME_MESSAGE_PUMP:
    case TRACK_EVENT_CHROME_MOJO_EVENT_INFO:
    case TRACK_EVENT_CHROME_APPLICATION_STATE_INFO:
    case TRACK_EVENT_CHROME_RENDERER_SCHEDULER_STATE:
    case TRACK_EVENT_CHROME_WINDOW_HANDLE_EVENT_INFO:
    case TRACK_EVENT_CHROME_CONTENT_SETTINGS_EVENT_INFO:
    case TRACK_EVENT_CHROME_ACTIVE_PROCESSES:
        return true;
    default:
        return false;
    }
}

/* --- debug annotations ------------------------------------------------------------------------------------------- */

struct annotations {
    struct arg_writer *w;
    struct seq_generation *g;
    struct reflect reflect;
};

struct annotation {
    struct slice name;
    struct pb_field value; /* the one of the value oneof that came last; id 0: none */
    uint64_t type_iid;
    struct slice type_name, proto;
    bool has_name, has_proto, has_entries, has_elements;
};

/* The text is the second field of all interned messages. Its p is NULL when nothing has told it. */
static struct slice interned_text(struct seq_generation *g, uint32_t field, uint64_t iid)
{
    strid text = interned_string(g, field, iid, INTERNED_STRING_STR);
    return text ? strpool_view(&g->machine->st->strings, text) : slice_of(NULL, 0);
}

static struct annotation read_annotation(struct seq_generation *g, struct slice bytes)
{
    struct annotation a = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case DEBUG_ANNOTATION_NAME_IID:
            a.name = interned_text(g, INTERNED_DATA_DEBUG_ANNOTATION_NAMES, pb_u64(&f));
            a.has_name = a.name.p;
            break;
        case DEBUG_ANNOTATION_NAME:
            a.name = pb_bytes(&f);
            a.has_name = true;
            break;
        case DEBUG_ANNOTATION_BOOL_VALUE:
        case DEBUG_ANNOTATION_UINT_VALUE:
        case DEBUG_ANNOTATION_INT_VALUE:
        case DEBUG_ANNOTATION_DOUBLE_VALUE:
        case DEBUG_ANNOTATION_STRING_VALUE:
        case DEBUG_ANNOTATION_POINTER_VALUE:
        case DEBUG_ANNOTATION_NESTED_VALUE:
        case DEBUG_ANNOTATION_LEGACY_JSON_VALUE:
        case DEBUG_ANNOTATION_STRING_VALUE_IID:
            a.value = f;
            break;
        case DEBUG_ANNOTATION_DICT_ENTRIES:
            a.has_entries = true;
            break;
        case DEBUG_ANNOTATION_ARRAY_VALUES:
            a.has_elements = true;
            break;
        case DEBUG_ANNOTATION_PROTO_TYPE_NAME_IID:
            a.type_iid = pb_u64(&f);
            break;
        case DEBUG_ANNOTATION_PROTO_VALUE:
            a.proto = pb_bytes(&f);
            a.has_proto = true;
            break;
        case DEBUG_ANNOTATION_PROTO_TYPE_NAME:
            a.type_name = pb_bytes(&f);
            break;
        }
    }
    return a;
}

/* NestedValue, the older form of dictionaries and arrays. */
static void write_nested(struct annotations *a, struct slice bytes)
{
    struct arg_writer *w = a->w;
    if (w->depth >= ARG_MAX_DEPTH)
        return;
    w->depth++;
    struct pb_cursor c = pb_cursor(bytes), keys = pb_cursor(bytes);
    struct pb_field f, key;
    uint64_t index = 0;
    bool in_array = false;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case DEBUG_ANNOTATION_NESTED_VALUE_DICT_VALUES: { /* dict_values go with dict_keys by order */
            do {
                if (!pb_next(&keys, &key))
                    goto done;
            } while (key.id != DEBUG_ANNOTATION_NESTED_VALUE_DICT_KEYS);
            struct arg_mark m = arg_writer_push(w, pb_bytes(&key).p, pb_bytes(&key).len);
            write_nested(a, pb_bytes(&f));
            arg_writer_pop(w, m);
            break;
        }
        case DEBUG_ANNOTATION_NESTED_VALUE_ARRAY_VALUES: {
            if (!in_array)
                index = arg_writer_array_index(w);
            in_array = true;
            struct arg_mark m = arg_writer_push_index(w, index);
            write_nested(a, pb_bytes(&f));
            arg_writer_pop(w, m);
            index++;
            break;
        }
        case DEBUG_ANNOTATION_NESTED_VALUE_INT_VALUE:
            arg_writer_add(w, ARG_INT, pb_i64(&f));
            break;
        case DEBUG_ANNOTATION_NESTED_VALUE_DOUBLE_VALUE:
            arg_writer_add(w, ARG_REAL, column_f64_word(pb_double(&f)));
            break;
        case DEBUG_ANNOTATION_NESTED_VALUE_BOOL_VALUE:
            arg_writer_add(w, ARG_BOOL, pb_bool(&f));
            break;
        case DEBUG_ANNOTATION_NESTED_VALUE_STRING_VALUE:
            arg_writer_add_bytes(w, ARG_STRING, pb_bytes(&f));
            break;
        }
    }
done:
    if (in_array)
        arg_writer_array_set(w, index);
    w->depth--;
}

/* Adds what an annotation holds. False when it cannot be read: it lacks a name, or has a number that stands for
 * nothing. What it holds up to there is added; what comes behind it in a dictionary or an array is not. */
static bool write_annotation(struct annotations *a, struct slice bytes, bool named);

static bool write_entries(struct annotations *a, struct slice bytes)
{
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    bool ok = true;
    while (ok && pb_next(&c, &f))
        if (f.id == DEBUG_ANNOTATION_DICT_ENTRIES)
            ok = write_annotation(a, pb_bytes(&f), true);
    return ok;
}

static bool write_elements(struct annotations *a, struct slice bytes)
{
    struct arg_writer *w = a->w;
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    bool ok = true;
    uint64_t index = arg_writer_array_index(w);
    while (ok && pb_next(&c, &f)) {
        if (f.id != DEBUG_ANNOTATION_ARRAY_VALUES)
            continue;
        size_t before = w->out->n;
        struct arg_mark m = arg_writer_push_index(w, index);
        ok = write_annotation(a, pb_bytes(&f), false);
        arg_writer_pop(w, m);
        index += w->out->n != before;
    }
    arg_writer_array_set(w, index);
    return ok;
}

static bool write_proto(struct annotations *a, const struct annotation *v)
{
    struct slice name =
        v->type_iid ? interned_text(a->g, INTERNED_DATA_DEBUG_ANNOTATION_VALUE_TYPE_NAMES, v->type_iid) : v->type_name;
    if (name.len && name.p[0] == '.')
        name = slice_of(name.p + 1, name.len - 1);
    strid message = strpool_intern(a->w->args->strings, name.p, name.len);
    if (!schema_has_message(a->reflect.schema, message))
        return false;
    reflect_message(&a->reflect, a->w, message, v->proto);
    return true;
}

static char clean_char(char c)
{
    return c == '.' || c == '[' || c == ']' ? '_' : c;
}

/* A name with what separates keys replaced. */
static size_t clean_name(struct slice name, char *out, size_t cap)
{
    size_t n = name.len < cap ? name.len : cap;
    for (size_t i = 0; i < n; i++)
        out[i] = clean_char((char)name.p[i]);
    return n;
}

/* The value at the key that stands; false as with write_annotation(). */
static bool write_value(struct annotations *a, const struct annotation *v, struct slice bytes)
{
    struct arg_writer *w = a->w;
    const struct pb_field *f = &v->value;
    strid text;
    switch (f->id) {
    case DEBUG_ANNOTATION_BOOL_VALUE:
        arg_writer_add(w, ARG_BOOL, pb_bool(f));
        break;
    case DEBUG_ANNOTATION_UINT_VALUE:
        arg_writer_add(w, ARG_UINT, pb_i64(f));
        break;
    case DEBUG_ANNOTATION_INT_VALUE:
        arg_writer_add(w, ARG_INT, pb_i64(f));
        break;
    case DEBUG_ANNOTATION_DOUBLE_VALUE:
        arg_writer_add(w, ARG_REAL, column_f64_word(pb_double(f)));
        break;
    case DEBUG_ANNOTATION_STRING_VALUE:
        arg_writer_add_bytes(w, ARG_STRING, pb_bytes(f));
        break;
    case DEBUG_ANNOTATION_POINTER_VALUE:
        arg_writer_add(w, ARG_POINTER, pb_i64(f));
        break;
    case DEBUG_ANNOTATION_NESTED_VALUE:
        write_nested(a, pb_bytes(f));
        break;
    case DEBUG_ANNOTATION_LEGACY_JSON_VALUE:
        json_args_write(w, pb_bytes(f));
        break;
    case DEBUG_ANNOTATION_STRING_VALUE_IID:
        text = interned_string(a->g, INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES, pb_u64(f), INTERNED_STRING_STR);
        if (!text)
            return false;
        arg_writer_add(w, ARG_STRING, text);
        break;
    default:
        return v->has_entries    ? write_entries(a, bytes)
               : v->has_elements ? write_elements(a, bytes)
               : v->has_proto    ? write_proto(a, v)
                                 : true;
    }
    return true;
}

static bool write_annotation(struct annotations *a, struct slice bytes, bool named)
{
    struct arg_writer *w = a->w;
    struct annotation v = read_annotation(a->g, bytes);
    if (w->depth >= ARG_MAX_DEPTH || (named && !v.has_name))
        return false;
    w->depth++;
    struct arg_mark m = {w->key_len, w->flat_len};
    if (named) {
        char name[ARG_KEY_MAX];
        arg_writer_push(w, name, clean_name(v.name, name, sizeof name));
    }
    bool ok = write_value(a, &v, bytes);
    arg_writer_pop(w, m);
    w->depth--;
    return ok;
}

/* --- typed arguments --------------------------------------------------------------------------------------------- */

static void write_text(struct arg_writer *w, const char *key, struct slice text)
{
    struct arg_mark m = arg_writer_push(w, key, strlen(key));
    arg_writer_add_bytes(w, ARG_STRING, text);
    arg_writer_pop(w, m);
}

static void write_number(struct arg_writer *w, const char *key, enum arg_type type, uint64_t value)
{
    struct arg_mark m = arg_writer_push(w, key, strlen(key));
    arg_writer_add(w, type, (int64_t)value);
    arg_writer_pop(w, m);
}

/* Where a source location is told; what it lacks is told in another way in each place. */
enum location_place {
    LOCATION_INLINE,   /* in the event: only what is there, but a line (0) always */
    LOCATION_OF_EVENT, /* by number: an empty file, no function, line 0 */
    LOCATION_OF_LOG,   /* the same, but no file; the file as it is */
    LOCATION_OF_FIELD, /* of a message: a line only when there is one */
};

/* The name of a file, written as on other systems than Windows. */
static void write_file(struct arg_writer *w, struct slice file)
{
    char text[1024];
    size_t n = file.len < sizeof text ? file.len : sizeof text;
    for (size_t i = 0; i < n; i++)
        text[i] = file.p[i] == '\\' ? '/' : (char)file.p[i];
    write_text(w, "file_name", slice_of(text, n));
}

static void write_null(struct arg_writer *w, const char *key)
{
    struct arg_mark m = arg_writer_push(w, key, strlen(key));
    arg_writer_add(w, ARG_STRING, 0);
    arg_writer_pop(w, m);
}

static void write_location_parts(struct arg_writer *w, struct slice location, enum location_place place)
{
    struct pb_field f;
    if (pb_find(location, SOURCE_LOCATION_FILE_NAME, &f) && place == LOCATION_OF_LOG)
        write_text(w, "file_name", pb_bytes(&f));
    else if (pb_find(location, SOURCE_LOCATION_FILE_NAME, &f))
        write_file(w, pb_bytes(&f));
    else if (place == LOCATION_OF_LOG)
        write_null(w, "file_name");
    else if (place != LOCATION_INLINE)
        write_text(w, "file_name", slice_of("", 0));
    if (pb_find(location, SOURCE_LOCATION_FUNCTION_NAME, &f))
        write_text(w, "function_name", pb_bytes(&f));
    else if (place != LOCATION_INLINE)
        write_null(w, "function_name");
    bool has_line = pb_find(location, SOURCE_LOCATION_LINE_NUMBER, &f);
    if (has_line || place != LOCATION_OF_FIELD)
        write_number(w, "line_number", place == LOCATION_OF_LOG || place == LOCATION_OF_FIELD ? ARG_INT : ARG_UINT,
                     has_line ? pb_u32(&f) : 0);
}

/* Nothing for a location that is not known. */
static void write_source_location(struct arg_writer *w, const char *prefix, struct slice location,
                                  enum location_place place)
{
    if (!location.p)
        return;
    struct arg_mark m = arg_writer_push(w, prefix, strlen(prefix));
    write_location_parts(w, location, place);
    arg_writer_pop(w, m);
}

static struct slice location_of(struct seq_generation *g, uint64_t iid)
{
    return interned_find(g, INTERNED_DATA_SOURCE_LOCATIONS, iid);
}

enum { LOG_PRIORITY_FATAL = 7 };

static void write_log_message(struct arg_writer *w, struct seq_generation *g, struct slice bytes)
{
    struct pb_field f;
    if (pb_find(bytes, LOG_MESSAGE_BODY_IID, &f)) {
        if (!interned_find(g, INTERNED_DATA_LOG_MESSAGE_BODY, pb_u64(&f)).p)
            return;
        write_text(w, "track_event.log_message.message", interned_text(g, INTERNED_DATA_LOG_MESSAGE_BODY, pb_u64(&f)));
    }
    if (pb_find(bytes, LOG_MESSAGE_SOURCE_LOCATION_IID, &f)) {
        struct slice location = location_of(g, pb_u64(&f));
        if (!location.p)
            return;
        write_source_location(w, "track_event.log_message", location, LOCATION_OF_LOG);
    }
    if (pb_find(bytes, LOG_MESSAGE_PRIO, &f))
        write_number(w, "track_event.priority", ARG_INT, pb_u32(&f) <= LOG_PRIORITY_FATAL ? pb_u32(&f) : 0);
}

struct hook_ctx {
    const struct importer *im;
    struct seq_generation *g;
};

/* "storage::mojom::File::Close_Sym::IPCStableHash" names the method storage::mojom::File::Close of the interface
 * storage.mojom.File; other functions stand for both. */
static void write_mojo_method(struct arg_writer *w, struct slice function)
{
    static const char suffix[] = "_Sym::IPCStableHash";
    char tag[256];
    size_t n = 0;
    struct slice method = function;
    if (method.len > 2 && memcmp(method.p + method.len - 2, "()", 2) == 0)
        method.len -= 2;
    bool stable = method.len > sizeof suffix - 1 &&
                  memcmp(method.p + method.len - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0;
    if (!stable) {
        write_text(w, "mojo_method_name", function);
        write_text(w, "mojo_interface_tag", function);
        return;
    }
    method.len -= sizeof suffix - 1;
    size_t interface = method.len;
    while (interface > 1 && (method.p[interface - 1] != ':' || method.p[interface - 2] != ':'))
        interface--;
    interface = interface > 1 ? interface - 2 : method.len;
    for (size_t i = 0; i < interface && n < sizeof tag; i++) {
        bool colons = method.p[i] == ':' && i + 1 < interface && method.p[i + 1] == ':';
        tag[n++] = colons ? '.' : (char)method.p[i];
        i += colons;
    }
    write_text(w, "mojo_method_name", method);
    write_text(w, "mojo_interface_tag", slice_of(tag, n));
}

/* Numbers of locations become the parts of the location, as fields of their message. */
static bool write_location_field(struct arg_writer *w, struct seq_generation *g, struct slice field,
                                 const struct pb_field *value)
{
    if (!slice_eq_str(field, "source_location_iid") && !slice_eq_str(field, "creation_location_iid"))
        return false;
    struct slice location = location_of(g, pb_u64(value));
    if (!location.p)
        return false;
    write_location_parts(w, location, LOCATION_OF_FIELD);
    return true;
}

/* Hashes, addresses and obfuscated names that the trace tells the meaning of, by message and field. */
static bool translate(void *ctx, struct arg_writer *w, strid message, strid field, const struct pb_field *value,
                      bool before)
{
    const struct hook_ctx *h = ctx;
    struct strpool *strings = w->args->strings;
    struct slice m = strpool_view(strings, message), f = strpool_view(strings, field);
    strid name = 0;
    if (before) {
        if (slice_eq_str(f, "mojo_interface_method_iid") && slice_eq_str(m, "perfetto.protos.ChromeMojoEventInfo") &&
            (name = track_event_function_name(h->im, h->g, pb_u64(value))))
            write_mojo_method(w, strpool_view(strings, name));
        else if (slice_eq_str(f, "class_name") && slice_eq_str(m, "perfetto.protos.AndroidView") &&
                 (name =
                      track_event_class_name(h->im, strpool_intern(strings, pb_bytes(value).p, pb_bytes(value).len))))
            write_text(w, "class_name", strpool_view(strings, name));
        return name != 0 || write_location_field(w, h->g, f, value);
    }
    if (slice_eq_str(f, "action_hash") && slice_eq_str(m, "perfetto.protos.ChromeUserEvent")) {
        name = track_event_hash_name(h->im, HASH_USER_EVENT, pb_u64(value));
        if (name)
            write_text(w, "action", strpool_view(strings, name));
    } else if (slice_eq_str(f, "name_hash") && slice_eq_str(m, "perfetto.protos.ChromeHistogramSample")) {
        name = track_event_hash_name(h->im, HASH_HISTOGRAM, pb_u64(value));
        if (name)
            write_text(w, "name", strpool_view(strings, name));
    } else if (slice_eq_str(m, "perfetto.protos.ChromeHashedPerformanceMark")) {
        bool site = slice_eq_str(f, "site_hash");
        if (site || slice_eq_str(f, "mark_hash"))
            name = track_event_hash_name(h->im, site ? HASH_MARK_SITE : HASH_MARK, pb_u64(value));
        if (name)
            write_text(w, site ? "site" : "mark", strpool_view(strings, name));
    }
    return false;
}

/* Args come in this order, whatever that of the fields is. */
enum arg_class {
    FROM_SOURCE,
    FROM_TASK,
    FROM_LOG,
    FROM_SCREENSHOT,
    FROM_HISTOGRAM,
    FROM_CORRELATION,
    FROM_TYPED,
    FROM_DEBUG,
    ARG_CLASSES
};

static enum arg_class class_of(uint32_t field)
{
    switch (field) {
    case TRACK_EVENT_DEBUG_ANNOTATIONS:
        return FROM_DEBUG;
    case TRACK_EVENT_SOURCE_LOCATION:
    case TRACK_EVENT_SOURCE_LOCATION_IID:
        return FROM_SOURCE;
    case TRACK_EVENT_TASK_EXECUTION:
        return FROM_TASK;
    case TRACK_EVENT_LOG_MESSAGE:
        return FROM_LOG;
    case TRACK_EVENT_SCREENSHOT:
        return FROM_SCREENSHOT;
    case TRACK_EVENT_CORRELATION_ID:
    case TRACK_EVENT_CORRELATION_ID_STR:
    case TRACK_EVENT_CORRELATION_ID_STR_IID:
        return FROM_CORRELATION;
    default:
        return FROM_TYPED;
    }
}

static void write_field(struct annotations *a, const struct pb_field *f)
{
    struct arg_writer *w = a->w;
    struct seq_generation *g = a->g;
    struct pb_field iid;
    struct arg_mark m;
    struct slice interned;
    char text[32];
    switch (f->id) {
    case TRACK_EVENT_DEBUG_ANNOTATIONS:
        m = arg_writer_push(w, "debug", 5);
        write_annotation(a, pb_bytes(f), true);
        arg_writer_pop(w, m);
        break;
    case TRACK_EVENT_TASK_EXECUTION:
        if (pb_find(pb_bytes(f), TASK_EXECUTION_POSTED_FROM_IID, &iid))
            write_source_location(w, "task.posted_from", location_of(g, pb_u64(&iid)), LOCATION_OF_EVENT);
        break;
    case TRACK_EVENT_LOG_MESSAGE:
        write_log_message(w, g, pb_bytes(f));
        break;
    case TRACK_EVENT_SOURCE_LOCATION:
        write_source_location(w, "source", pb_bytes(f), LOCATION_INLINE);
        break;
    case TRACK_EVENT_SOURCE_LOCATION_IID:
        write_source_location(w, "source", location_of(g, pb_u64(f)), LOCATION_OF_EVENT);
        break;
    case TRACK_EVENT_CORRELATION_ID:
        snprintf(text, sizeof text, "tp:#%" PRIu64, pb_u64(f));
        write_text(w, "correlation_id", slice_str(text));
        break;
    case TRACK_EVENT_CORRELATION_ID_STR:
        write_text(w, "correlation_id", pb_bytes(f));
        break;
    case TRACK_EVENT_CORRELATION_ID_STR_IID:
        interned = interned_text(g, INTERNED_DATA_CORRELATION_ID_STR, pb_u64(f));
        if (interned.p)
            write_text(w, "correlation_id", interned);
        break;
    default:
        reflect_field(&a->reflect, w, strpool_intern_str(w->args->strings, "perfetto.protos.TrackEvent"), f);
    }
}

static bool is_wanted(struct seq_generation *g, const struct pb_field *f, const struct track_event_wanted *only)
{
    if (f->id != TRACK_EVENT_DEBUG_ANNOTATIONS || !only->debug)
        return (f->id == TRACK_EVENT_DEBUG_ANNOTATIONS) == only->debug;
    struct slice name = read_annotation(g, pb_bytes(f)).name;
    bool same = name.len == only->name.len;
    for (size_t i = 0; same && i < name.len; i++)
        same = clean_char((char)name.p[i]) == (char)only->name.p[i];
    return same;
}

void track_event_append_source(struct args *args, const struct track_event_marks *m, struct arg_list *list)
{
    if (m->has_source)
        arg_list_int(args, list, "legacy_trace_source_id", m->source_id);
}

/* The name of a histogram that is told by number. */
static void write_histogram_name(struct arg_writer *w, struct seq_generation *g, struct slice sample)
{
    struct pb_field iid, name;
    if (!pb_find(sample, CHROME_HISTOGRAM_SAMPLE_NAME_IID, &iid) ||
        pb_find(sample, CHROME_HISTOGRAM_SAMPLE_NAME, &name))
        return;
    if (interned_find(g, INTERNED_DATA_HISTOGRAM_NAMES, pb_u64(&iid)).p)
        write_text(w, "chrome_histogram_sample.name", interned_text(g, INTERNED_DATA_HISTOGRAM_NAMES, pb_u64(&iid)));
}

void track_event_append_args(struct importer *im, struct seq_generation *g, struct slice event,
                             const struct track_event_marks *marks, const struct track_event_wanted *only,
                             struct arg_list *list)
{
    struct arg_writer w;
    struct hook_ctx hook = {im, g};
    arg_writer_init(&w, &im->st->args, list);
    struct annotations a = {&w, g, {.schema = track_event_schema(im), .hook = translate, .hook_ctx = &hook}};
    struct pb_cursor c = pb_cursor(event);
    struct pb_field f;
    uint32_t classes = marks ? 1u << FROM_CORRELATION : 0;
    while (pb_next(&c, &f))
        classes |= 1u << class_of(f.id) | (f.id == TRACK_EVENT_SOURCE_LOCATION_IID ? 1u << FROM_TYPED : 0) |
                   (f.id == TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE ? 1u << FROM_HISTOGRAM : 0);
    for (enum arg_class k = 0; k < ARG_CLASSES; k++) {
        if (!(classes >> k & 1) || (only && only->debug && k != FROM_DEBUG))
            continue;
        for (c = pb_cursor(event); pb_next(&c, &f);)
            if ((only && !is_wanted(g, &f, only)) || (marks && marks->no_log && f.id == TRACK_EVENT_LOG_MESSAGE))
                continue;
            else if (class_of(f.id) == k)
                write_field(&a, &f);
            else if (k == FROM_HISTOGRAM && f.id == TRACK_EVENT_CHROME_HISTOGRAM_SAMPLE)
                write_histogram_name(&w, g, pb_bytes(&f));
            else if (k == FROM_TYPED && f.id == TRACK_EVENT_SOURCE_LOCATION_IID)
                write_number(&w, "source_location_iid", ARG_UINT, pb_u64(&f)); /* beside what it stands for */
        if (k == FROM_CORRELATION && marks)
            track_event_append_source(&im->st->args, marks, list);
    }
    arg_writer_free(&w);
}
