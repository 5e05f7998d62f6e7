/* Message descriptors by name. */
#include "importer/track_event/message_schema.h"

#include "base/hash.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <stdio.h>

enum { MAX_NESTING = 32, MAX_NAME = 512 };

struct schema {
    struct strpool *strings;
    VEC(struct schema_field)
    fields;
    struct u64map messages;    /* strid -> index of the first field << 32 | fields + 1; 1 alone: those of a trace */
    struct u64map by_number;   /* message strid << 32 | number -> index of field */
    struct u64map enum_values; /* enum strid << 32 | value -> strid */
    struct u64map enum_first;  /* enum strid -> strid of the value that stands first: what holds when none is set */
    struct u64map unread;      /* strid of a built-in message or enum -> its row << 32 | set */
    size_t n_unread;           /* fields of those */
    uint32_t loaded;           /* bits: enum schema_set */
    bool failed;
};

static const char package[] = "perfetto.protos.";

static void add_field(struct schema *s, strid message, struct schema_field f)
{
    bool added;
    uint64_t *slot = u64map_put(&s->by_number, (uint64_t)message << 32 | f.number, &added);
    if (!slot) {
        s->failed = true;
        return;
    }
    if (!added)
        return;
    *slot = s->fields.n;
    if (!vec_push(&s->fields, f))
        s->failed = true;
}

static void add_enum_value(struct schema *s, strid enumeration, int32_t value, strid name)
{
    bool added;
    uint64_t *first = u64map_put(&s->enum_first, enumeration, &added);
    if (!first)
        s->failed = true;
    else if (added)
        *first = name;
    uint64_t *slot = u64map_put(&s->enum_values, (uint64_t)enumeration << 32 | (uint32_t)value, &added);
    if (!slot)
        s->failed = true;
    else if (added)
        *slot = name;
}

enum { ROW_MESSAGE, ROW_FIELD, ROW_ENUM, ROW_VALUE };

struct builtin {
    uint8_t row, type;
    bool repeated;
    int32_t number;
    const char *name, *type_name;
};

#define M(name)                                    {ROW_MESSAGE, 0, false, 0, name, ""},
#define F(number, type, repeated, name, type_name) {ROW_FIELD, SCHEMA_##type, repeated, number, name, type_name},
#define E(name)                                    {ROW_ENUM, 0, false, 0, name, ""},
#define V(number, name)                            {ROW_VALUE, 0, false, number, name, ""},
static const struct builtin in_track_events[] = {
#include "importer/track_event/builtin_messages.def"
};
static const struct builtin of_winscope[] = {
#include "importer/track_event/winscope_messages.def"
};
static const struct builtin of_statsd[] = {
#include "importer/track_event/statsd_messages.def"
};
#undef M
#undef F
#undef E
#undef V

static strid in_package(struct schema *s, const char *name)
{
    return strpool_printf(s->strings, "%s%s", package, name);
}

#define SET(rows)                                                                                                      \
    {                                                                                                                  \
        rows, sizeof(rows) / sizeof *(rows)                                                                            \
    }
static const struct {
    const struct builtin *rows;
    size_t n;
} sets[] = {[SCHEMA_TRACK_EVENT] = SET(in_track_events),
            [SCHEMA_WINSCOPE] = SET(of_winscope),
            [SCHEMA_STATSD] = SET(of_statsd)};
#undef SET

/* What a row of a set starts, as a word of `unread`. */
static const struct builtin *builtin_at(uint64_t word, const struct builtin **end)
{
    uint32_t set = (uint32_t)word;
    *end = sets[set].rows + sets[set].n;
    return sets[set].rows + (word >> 32);
}

/* Few traces use more than some of the built-in messages and enums: each is read when it is first asked for. */
static void read_builtin(struct schema *s, strid scope)
{
    uint64_t *word = s->unread.n && !s->failed ? u64map_get(&s->unread, scope) : NULL;
    if (!word)
        return;
    const struct builtin *end, *b = builtin_at(*word, &end);
    u64map_del(&s->unread, scope);
    uint64_t first = s->fields.n;
    if (b->row == ROW_MESSAGE && !u64map_set(&s->messages, scope, first << 32 | 1))
        s->failed = true;
    for (b++; b < end && b->row != ROW_MESSAGE && b->row != ROW_ENUM; b++) {
        strid name = strpool_intern_str(s->strings, b->name);
        if (b->row == ROW_VALUE) {
            add_enum_value(s, scope, b->number, name);
            continue;
        }
        s->n_unread--; /* there is room for it: see reserve() */
        strid type = b->type_name[0] ? in_package(s, b->type_name) : 0;
        add_field(s, scope, (struct schema_field){name, type, (uint32_t)b->number, b->type, b->repeated});
        if (!u64map_set(&s->messages, scope, first << 32 | (s->fields.n - first + 1)))
            s->failed = true;
    }
}

/* Reading what is built in must not move the fields that callers look at. */
static void reserve(struct schema *s)
{
    if (!vec_reserve(&s->fields, s->fields.n + s->n_unread))
        s->failed = true;
}

static void note_builtins(struct schema *s, enum schema_set set)
{
    const struct builtin *rows = sets[set].rows;
    for (size_t i = 0; i < sets[set].n; i++) {
        s->n_unread += rows[i].row == ROW_FIELD;
        if (rows[i].row != ROW_MESSAGE && rows[i].row != ROW_ENUM)
            continue;
        strid scope = in_package(s, rows[i].name);
        read_builtin(s, scope); /* of another set */
        s->failed |= !u64map_set(&s->unread, scope, (uint64_t)i << 32 | set);
        if (rows[i].row == ROW_MESSAGE && !u64map_get(&s->messages, scope))
            s->failed |= !u64map_set(&s->messages, scope, 1);
    }
    reserve(s);
}

bool schema_load(struct schema *s, enum schema_set set)
{
    if (s->loaded & set)
        return true;
    s->loaded |= set;
    note_builtins(s, set);
    return !s->failed && !s->strings->failed;
}

struct schema *schema_open(struct strpool *strings)
{
    struct schema *s = mem_zalloc(sizeof *s);
    if (s)
        s->strings = strings;
    return s;
}

void schema_close(struct schema *s)
{
    if (!s)
        return;
    vec_free(&s->fields);
    u64map_free(&s->messages);
    u64map_free(&s->unread);
    u64map_free(&s->by_number);
    u64map_free(&s->enum_values);
    u64map_free(&s->enum_first);
    mem_free(s);
}

/* "scope.name", or the name alone in the empty scope. */
static strid qualified(struct schema *s, strid scope, struct slice name)
{
    struct slice outer = strpool_view(s->strings, scope);
    char text[MAX_NAME];
    if (outer.len + name.len + 1 > sizeof text)
        return 0;
    size_t n = 0;
    if (outer.len) {
        memcpy(text, outer.p, outer.len);
        n = outer.len;
        text[n++] = '.';
    }
    if (name.len)
        memcpy(text + n, name.p, name.len);
    return strpool_intern(s->strings, text, n + name.len);
}

static strid without_dot(struct schema *s, struct slice name)
{
    if (name.len && name.p[0] == '.')
        name = slice_of(name.p + 1, name.len - 1);
    return name.len ? strpool_intern(s->strings, name.p, name.len) : 0;
}

/* FieldDescriptorProto; `message` 0: an extension, which names what it extends. */
static bool read_field(struct schema *s, strid message, struct slice bytes)
{
    struct schema_field field = {0};
    struct pb_cursor c = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case FIELD_DESCRIPTOR_PROTO_NAME:
            field.name = strpool_intern(s->strings, pb_bytes(&f).p, pb_bytes(&f).len);
            break;
        case FIELD_DESCRIPTOR_PROTO_EXTENDEE:
            if (!message)
                message = without_dot(s, pb_bytes(&f));
            break;
        case FIELD_DESCRIPTOR_PROTO_NUMBER:
            field.number = pb_u32(&f);
            break;
        case FIELD_DESCRIPTOR_PROTO_LABEL:
            field.repeated = pb_u64(&f) == FIELD_DESCRIPTOR_PROTO_LABEL_REPEATED;
            break;
        case FIELD_DESCRIPTOR_PROTO_TYPE:
            field.type = (uint8_t)(pb_u64(&f) <= SCHEMA_SINT64 ? pb_u64(&f) : 0);
            break;
        case FIELD_DESCRIPTOR_PROTO_TYPE_NAME:
            field.type_name = without_dot(s, pb_bytes(&f));
            break;
        }
    }
    if (message && field.number && field.name && field.type) {
        read_builtin(s, message); /* what is built in comes first */
        add_field(s, message, field);
    }
    return !c.bad;
}

static bool read_enum(struct schema *s, strid scope, struct slice bytes)
{
    struct pb_field f, name, number;
    strid full = pb_find(bytes, ENUM_DESCRIPTOR_PROTO_NAME, &f) ? qualified(s, scope, pb_bytes(&f)) : 0;
    read_builtin(s, full);
    struct pb_cursor c = pb_cursor(bytes);
    while (full && pb_next(&c, &f)) {
        if (f.id != ENUM_DESCRIPTOR_PROTO_VALUE || !pb_find(pb_bytes(&f), ENUM_VALUE_DESCRIPTOR_PROTO_NAME, &name))
            continue;
        int32_t value = pb_find(pb_bytes(&f), ENUM_VALUE_DESCRIPTOR_PROTO_NUMBER, &number) ? pb_i32(&number) : 0;
        add_enum_value(s, full, value, strpool_intern(s->strings, pb_bytes(&name).p, pb_bytes(&name).len));
    }
    return !c.bad;
}

static bool read_message(struct schema *s, strid scope, struct slice bytes, unsigned depth)
{
    struct pb_field f;
    strid full = pb_find(bytes, DESCRIPTOR_PROTO_NAME, &f) ? qualified(s, scope, pb_bytes(&f)) : 0;
    if (!full || depth > MAX_NESTING)
        return false;
    if (!u64map_get(&s->messages, full) && !u64map_set(&s->messages, full, 1))
        s->failed = true;
    bool ok = true;
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        if (f.id == DESCRIPTOR_PROTO_FIELD)
            ok &= read_field(s, full, pb_bytes(&f));
        else if (f.id == DESCRIPTOR_PROTO_NESTED_TYPE)
            ok &= read_message(s, full, pb_bytes(&f), depth + 1);
        else if (f.id == DESCRIPTOR_PROTO_ENUM_TYPE)
            ok &= read_enum(s, full, pb_bytes(&f));
        else if (f.id == DESCRIPTOR_PROTO_EXTENSION)
            ok &= read_field(s, 0, pb_bytes(&f));
    }
    return ok && !c.bad;
}

static bool read_file(struct schema *s, struct slice bytes)
{
    struct pb_field f;
    strid scope = pb_find(bytes, FILE_DESCRIPTOR_PROTO_PACKAGE, &f)
                      ? strpool_intern(s->strings, pb_bytes(&f).p, pb_bytes(&f).len)
                      : 0;
    bool ok = true;
    struct pb_cursor c = pb_cursor(bytes);
    while (pb_next(&c, &f)) {
        if (f.id == FILE_DESCRIPTOR_PROTO_MESSAGE_TYPE)
            ok &= read_message(s, scope, pb_bytes(&f), 0);
        else if (f.id == FILE_DESCRIPTOR_PROTO_ENUM_TYPE)
            ok &= read_enum(s, scope, pb_bytes(&f));
        else if (f.id == FILE_DESCRIPTOR_PROTO_EXTENSION)
            ok &= read_field(s, 0, pb_bytes(&f));
    }
    return ok && !c.bad;
}

bool schema_add(struct schema *s, struct slice file_descriptor_set)
{
    bool ok = true;
    struct pb_cursor c = pb_cursor(file_descriptor_set);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == FILE_DESCRIPTOR_SET_FILE)
            ok &= read_file(s, pb_bytes(&f));
    reserve(s);
    return ok && !c.bad && !s->failed;
}

bool schema_has_message(const struct schema *s, strid message)
{
    return u64map_get(&s->messages, message) != NULL;
}

const struct schema_field *schema_field(struct schema *s, strid message, uint32_t number)
{
    read_builtin(s, message);
    const uint64_t *at = u64map_get(&s->by_number, (uint64_t)message << 32 | number);
    return at && *at < s->fields.n ? &s->fields.p[*at] : NULL;
}

strid schema_enum_name(struct schema *s, strid enumeration, int32_t value)
{
    read_builtin(s, enumeration);
    const uint64_t *at = u64map_get(&s->enum_values, (uint64_t)enumeration << 32 | (uint32_t)value);
    return at ? (strid)*at : 0;
}

strid schema_enum_first(struct schema *s, strid enumeration)
{
    read_builtin(s, enumeration);
    const uint64_t *at = u64map_get(&s->enum_first, enumeration);
    return at ? (strid)*at : 0;
}

const struct schema_field *schema_fields(struct schema *s, strid message, uint32_t *n)
{
    read_builtin(s, message);
    const uint64_t *at = u64map_get(&s->messages, message);
    *n = at ? (uint32_t)*at - 1 : 0;
    return *n ? &s->fields.p[*at >> 32] : NULL;
}
