/* The field classes of CTF 2: how each kind is read. */
#include "importer/ctf/ctf2_internal.h"

#include <string.h>

static const struct {
    const char *name;
    enum ctf_role role;
} roles[] = {
    {"packet-magic-number", CTF_ROLE_MAGIC},          {"metadata-stream-uuid", CTF_ROLE_UUID},
    {"data-stream-class-id", CTF_ROLE_STREAM_ID},     {"packet-total-length", CTF_ROLE_PACKET_BITS},
    {"packet-content-length", CTF_ROLE_CONTENT_BITS}, {"default-clock-timestamp", CTF_ROLE_CLOCK},
    {"packet-sequence-number", CTF_ROLE_SEQUENCE},    {"discarded-event-record-counter-snapshot", CTF_ROLE_DISCARDED},
    {"event-record-class-id", CTF_ROLE_EVENT_ID},     {"data-stream-id", CTF_ROLE_STREAM_INSTANCE},
};

/* The first role that is known. */
static enum ctf_role role_of(struct tsdl_parser *p, struct slice json)
{
    struct json_reader r = json_reader(json);
    struct json_text text;
    enum ctf_role role = CTF_ROLE_NONE;
    if (!json.len || !json_enter(&r, '['))
        return role;
    while (json_element(&r) && json_string(&r, &text))
        for (size_t i = 0; i < sizeof roles / sizeof *roles && role == CTF_ROLE_NONE; i++)
            if (json_text_is(text, roles[i].name))
                role = roles[i].role;
    if (r.status != JSON_OK)
        tsdl_fail(p, "roles: %s", json_error_text(&r));
    return role;
}

/* ---- parts that several kinds have ---- */

static uint32_t alignment(struct tsdl_parser *p, struct slice json)
{
    uint64_t align = ctf2_uint(p, json, 1);
    return ctf_valid_align(p, align) ? (uint32_t)align : 1;
}

static bool is_big_endian(struct tsdl_parser *p, const struct ctf2_object *o)
{
    const char *order = ctf2_need(p, o, CTF2_BYTE_ORDER) ? ctf2_text(p, o->at[CTF2_BYTE_ORDER]) : NULL;
    if (!p->rc && (!order || (strcmp(order, "big-endian") != 0 && strcmp(order, "little-endian") != 0)))
        tsdl_fail(p, "byte-order '%s' is neither big-endian nor little-endian", order ? order : "");
    return order && strcmp(order, "big-endian") == 0;
}

/* Ranges [[lo, hi], …], handed to `fn` one by one. */
static void each_range(struct tsdl_parser *p, struct slice json, void (*fn)(void *ctx, int64_t lo, int64_t hi),
                       void *ctx)
{
    struct json_reader r = json_reader(json);
    if (!json_enter(&r, '['))
        tsdl_fail(p, "ranges were expected");
    while (!p->rc && json_element(&r)) {
        int64_t lo = 0, hi = 0;
        tsdl_work(p, 1);
        if (!json_enter(&r, '[') || !json_element(&r) || !ctf2_number(p, &r, &lo) || !json_element(&r) ||
            !ctf2_number(p, &r, &hi) || json_element(&r))
            tsdl_fail(p, "a range is two integers");
        else
            fn(ctx, lo, hi);
    }
    if (!p->rc && r.status != JSON_OK)
        tsdl_fail(p, "ranges: %s", json_error_text(&r));
}

struct labelling {
    VEC(struct ctf_range)
    ranges;
    const char *label;
    bool failed;
};

static void add_label(void *ctx, int64_t lo, int64_t hi)
{
    struct labelling *l = ctx;
    l->failed |= !vec_push(&l->ranges, (struct ctf_range){l->label, lo, hi, 0});
}

/* {label: ranges, …} into the type. */
static void read_labels(struct tsdl_parser *p, struct slice json, struct ctf_type *t)
{
    struct json_reader r = json_reader(json);
    struct json_text key;
    struct labelling l = {0};
    if (!json.len)
        return;
    if (!json_enter(&r, '{'))
        tsdl_fail(p, "mappings and flags are objects");
    while (!p->rc && json_member(&r, &key)) {
        struct slice value;
        struct slice quoted = slice_of(key.raw.p - 1, key.raw.len + 2);
        l.label = ctf2_text(p, quoted);
        if (json_skip(&r, &value) && l.label)
            each_range(p, value, add_label, &l);
    }
    if (!p->rc && r.status != JSON_OK)
        tsdl_fail(p, "mappings: %s", json_error_text(&r));
    if (l.failed)
        tsdl_fail(p, "out of memory");
    t->integer.names_apart = true;
    ctf_keep_ranges(p, t, l.ranges.p, l.ranges.n);
    vec_free(&l.ranges);
}

static const char *const scopes[] = {
    "packet-header",
    "packet-context",
    "event-record-header",
    "event-record-common-context",
    "event-record-specific-context",
    "event-record-payload",
};

/* {"origin": …, "path": […]} into t->location. */
static void read_location(struct tsdl_parser *p, struct slice json, struct ctf_type *t)
{
    enum { MAX_PATH = 64 };
    const char *names[MAX_PATH];
    struct ctf2_object o;
    struct ctf_location *l = tsdl_alloc(p, sizeof *l);
    if (!l || !ctf2_read_object(p, json, "a field location", &o) || !ctf2_need(p, &o, CTF2_PATH))
        return;
    const char *origin = ctf2_text(p, o.at[CTF2_ORIGIN]);
    l->root = -1;
    for (size_t i = 0; origin && i < sizeof scopes / sizeof *scopes; i++)
        if (strcmp(scopes[i], origin) == 0)
            l->root = (int)i;
    if (origin && l->root < 0)
        tsdl_fail(p, "a field location has the unknown origin '%s'", origin);
    struct json_reader r = json_reader(o.at[CTF2_PATH]);
    if (!json_enter(&r, '['))
        tsdl_fail(p, "the path of a field location is not an array");
    while (!p->rc && json_element(&r)) {
        struct slice value;
        if (!json_skip(&r, &value))
            break;
        if (value.len && value.p[0] == 'n')
            l->climb++;
        else if (l->n == MAX_PATH || !(names[l->n++] = ctf2_text(p, value)))
            tsdl_fail(p, "the path of a field location is too long or holds no names");
    }
    const char **copy = l->n && !p->rc ? tsdl_alloc(p, l->n * sizeof *copy) : NULL;
    if (!copy) {
        tsdl_fail(p, "a field location without a path");
        return;
    }
    memcpy(copy, names, l->n * sizeof *copy);
    l->names = copy;
    t->location = l;
}

/* ---- the kinds ---- */

enum { SIGNED = 1, BOOLEAN = 2, BITS = 4, FLAGS = 8, VARIABLE = 16, DYNAMIC = 32, BYTES = 64 };

static struct ctf_type *read_integer(struct tsdl_parser *p, const struct ctf2_object *o, int how)
{
    bool variable = how & VARIABLE;
    struct ctf_type *t = ctf_new_type(p, variable ? CTF_VARIABLE : CTF_INTEGER, variable ? 8 : 1);
    if (!t || (!variable && !ctf2_need(p, o, CTF2_LENGTH)))
        return NULL;
    uint64_t length = variable ? 64 : ctf2_uint(p, o->at[CTF2_LENGTH], 0);
    if (!p->rc && (length < 1 || length > 64)) {
        tsdl_fail(p, "integer of %llu bits (1 to 64 are supported)", (unsigned long long)length);
        return NULL;
    }
    t->integer.bits = (uint8_t)length;
    t->integer.clock = -1;
    t->integer.base = (uint8_t)ctf2_uint(p, o->at[CTF2_DISPLAY_BASE], 10);
    t->integer.is_signed = how & SIGNED;
    t->integer.is_bool = how & BOOLEAN;
    t->integer.is_flags = how & FLAGS;
    if (how & (BITS | FLAGS))
        t->integer.base = 16;
    if (!variable) {
        const char *bits = ctf2_text(p, o->at[CTF2_BIT_ORDER]);
        t->align = alignment(p, o->at[CTF2_ALIGNMENT]);
        t->integer.big_endian = is_big_endian(p, o);
        t->integer.reversed = bits && strcmp(bits, t->integer.big_endian ? "first-to-last" : "last-to-first") == 0;
    }
    read_labels(p, o->at[how & FLAGS ? CTF2_FLAGS : CTF2_MAPPINGS], t);
    return ctf_measured(p, t);
}

static struct ctf_type *read_real(struct tsdl_parser *p, const struct ctf2_object *o, int how)
{
    (void)how;
    uint64_t length = ctf2_need(p, o, CTF2_LENGTH) ? ctf2_uint(p, o->at[CTF2_LENGTH], 0) : 0;
    struct ctf_type *t = ctf_new_type(p, CTF_FLOAT, alignment(p, o->at[CTF2_ALIGNMENT]));
    if (!p->rc && length != 16 && length != 32 && length != 64)
        tsdl_fail(p, "floating point number of %llu bits (16, 32 and 64 are supported)", (unsigned long long)length);
    if (!t || p->rc)
        return NULL;
    t->real.bits = (uint8_t)length;
    t->real.big_endian = is_big_endian(p, o);
    return ctf_measured(p, t);
}

static const struct {
    const char *name;
    uint8_t unit;
    bool big_endian;
} encodings[] = {
    {"utf-8", 1, false}, {"utf-16be", 2, true}, {"utf-16le", 2, false}, {"utf-32be", 4, true}, {"utf-32le", 4, false}};

static void read_encoding(struct tsdl_parser *p, const struct ctf2_object *o, struct ctf_type *t)
{
    const char *name = ctf2_text(p, o->at[CTF2_ENCODING]);
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        if (!name || strcmp(encodings[i].name, name) == 0) {
            t->text.unit = encodings[i].unit;
            t->text.big_endian = encodings[i].big_endian;
            return;
        }
    }
    tsdl_fail(p, "unknown encoding '%s'", name);
}

static struct ctf_type *read_string(struct tsdl_parser *p, const struct ctf2_object *o, int how)
{
    (void)how;
    struct ctf_type *t = ctf_new_type(p, CTF_STRING, 8);
    if (t)
        read_encoding(p, o, t);
    return p->rc ? NULL : ctf_measured(p, t);
}

/* A text or blob with a length. */
static struct ctf_type *read_counted(struct tsdl_parser *p, const struct ctf2_object *o, int how)
{
    struct ctf_type *t = ctf_new_type(p, how & BYTES ? CTF_BLOB : CTF_TEXT, 8);
    if (!t || !ctf2_need(p, o, how & DYNAMIC ? CTF2_LENGTH_LOCATION : CTF2_LENGTH))
        return NULL;
    if (how & BYTES) {
        const char *media = ctf2_text(p, o->at[CTF2_MEDIA_TYPE]);
        t->text.unit = 1;
        t->text.media_type = media ? media : "application/octet-stream";
    } else {
        read_encoding(p, o, t);
    }
    if (how & DYNAMIC)
        read_location(p, o->at[CTF2_LENGTH_LOCATION], t);
    uint64_t length = ctf2_uint(p, o->at[CTF2_LENGTH], 0);
    if (length > UINT32_MAX / 8)
        tsdl_fail(p, "a length of %llu bytes is too large", (unsigned long long)length);
    t->text.length = (uint32_t)length;
    return p->rc ? NULL : ctf_measured(p, t);
}

/* Members of a structure and options of a variant: [{"name": …, "field-class": …}, …]. */
static void read_fields(struct tsdl_parser *p, struct slice json, struct ctf_type *t, int depth,
                        void (*more)(struct tsdl_parser *, const struct ctf2_object *, void *, uint32_t), void *ctx)
{
    VEC(struct ctf_field)
    fields = {0};
    struct json_reader r = json_reader(json);
    if (!json_enter(&r, '['))
        tsdl_fail(p, "members and options are an array");
    while (!p->rc && json_element(&r)) {
        struct ctf2_object o;
        struct slice value;
        if (!json_skip(&r, &value) || !ctf2_read_object(p, value, "a member", &o) ||
            !ctf2_need(p, &o, CTF2_FIELD_CLASS))
            break;
        const char *name = ctf2_text(p, o.at[CTF2_NAME]);
        struct ctf_type *type = ctf2_field_class(p, o.at[CTF2_FIELD_CLASS], depth + 1);
        if (!type)
            break;
        if (!vec_push(&fields, (struct ctf_field){name ? name : "", type, CTF_NO_SLOT, type->role}))
            tsdl_fail(p, "out of memory");
        if (more)
            more(p, &o, ctx, (uint32_t)fields.n - 1);
    }
    if (!p->rc && r.status != JSON_OK)
        tsdl_fail(p, "members: %s", json_error_text(&r));
    t->compound.fields = fields.n && !p->rc ? tsdl_alloc(p, fields.n * sizeof *fields.p) : NULL;
    if (t->compound.fields) {
        memcpy(t->compound.fields, fields.p, fields.n * sizeof *fields.p);
        t->compound.n = (uint32_t)fields.n;
    }
    vec_free(&fields);
}

static struct ctf_type *read_structure(struct tsdl_parser *p, const struct ctf2_object *o, int depth)
{
    struct ctf_type *t = ctf_new_type(p, CTF_STRUCT, alignment(p, o->at[CTF2_MINIMUM_ALIGNMENT]));
    if (!t)
        return NULL;
    if (o->at[CTF2_MEMBERS].len)
        read_fields(p, o->at[CTF2_MEMBERS], t, depth, NULL, NULL);
    for (uint32_t i = 0; i < t->compound.n; i++)
        if (t->compound.fields[i].type->align > t->align)
            t->align = t->compound.fields[i].type->align;
    return p->rc ? NULL : ctf_measured(p, t);
}

struct choosing {
    VEC(struct ctf_choice)
    choices;
    uint32_t option;
    bool failed;
};

static void add_choice(void *ctx, int64_t lo, int64_t hi)
{
    struct choosing *c = ctx;
    c->failed |= !vec_push(&c->choices, (struct ctf_choice){lo, hi, c->option});
}

static void add_option(struct tsdl_parser *p, const struct ctf2_object *o, void *ctx, uint32_t option)
{
    struct choosing *c = ctx;
    c->option = option;
    if (ctf2_need(p, o, CTF2_SELECTOR_RANGES))
        each_range(p, o->at[CTF2_SELECTOR_RANGES], add_choice, c);
}

static void keep_choices(struct tsdl_parser *p, struct ctf_type *t, struct choosing *c)
{
    if (c->failed)
        tsdl_fail(p, "out of memory");
    if (c->choices.n > CTF_MAX_CHOICES)
        tsdl_fail(p, "more than %d choices", CTF_MAX_CHOICES);
    t->choices = c->choices.n && !p->rc ? tsdl_alloc(p, c->choices.n * sizeof *t->choices) : NULL;
    if (t->choices) {
        memcpy(t->choices, c->choices.p, c->choices.n * sizeof *t->choices);
        t->n_choices = (uint32_t)c->choices.n;
    }
    vec_free(&c->choices);
}

static struct ctf_type *read_variant(struct tsdl_parser *p, const struct ctf2_object *o, int depth)
{
    struct choosing c = {0};
    struct ctf_type *t = ctf_new_type(p, CTF_VARIANT, 1);
    if (!t || !ctf2_need(p, o, CTF2_OPTIONS) || !ctf2_need(p, o, CTF2_SELECTOR_LOCATION))
        return NULL;
    read_fields(p, o->at[CTF2_OPTIONS], t, depth, add_option, &c);
    keep_choices(p, t, &c);
    read_location(p, o->at[CTF2_SELECTOR_LOCATION], t);
    return p->rc ? NULL : ctf_measured(p, t);
}

static struct ctf_type *read_optional(struct tsdl_parser *p, const struct ctf2_object *o, int depth)
{
    struct choosing c = {0};
    struct ctf_type *t = ctf_new_type(p, CTF_OPTIONAL, 1);
    if (!t || !ctf2_need(p, o, CTF2_FIELD_CLASS) || !ctf2_need(p, o, CTF2_SELECTOR_LOCATION))
        return NULL;
    t->list.element = ctf2_field_class(p, o->at[CTF2_FIELD_CLASS], depth + 1);
    if (o->at[CTF2_SELECTOR_RANGES].len)
        each_range(p, o->at[CTF2_SELECTOR_RANGES], add_choice, &c);
    else
        add_choice(&c, 1, 1); /* a boolean that is true */
    keep_choices(p, t, &c);
    read_location(p, o->at[CTF2_SELECTOR_LOCATION], t);
    return p->rc ? NULL : ctf_measured(p, t);
}

static struct ctf_type *read_list(struct tsdl_parser *p, const struct ctf2_object *o, int depth, bool dynamic)
{
    struct ctf_type *t =
        ctf_new_type(p, dynamic ? CTF_SEQUENCE : CTF_ARRAY, alignment(p, o->at[CTF2_MINIMUM_ALIGNMENT]));
    if (!t || !ctf2_need(p, o, CTF2_ELEMENT) || !ctf2_need(p, o, dynamic ? CTF2_LENGTH_LOCATION : CTF2_LENGTH))
        return NULL;
    t->list.element = ctf2_field_class(p, o->at[CTF2_ELEMENT], depth + 1);
    uint64_t length = ctf2_uint(p, o->at[CTF2_LENGTH], 0);
    if (length > UINT32_MAX / 64)
        tsdl_fail(p, "an array of %llu elements is too large", (unsigned long long)length);
    t->list.length = (uint32_t)length;
    if (dynamic)
        read_location(p, o->at[CTF2_LENGTH_LOCATION], t);
    if (!p->rc && t->list.element->align > t->align)
        t->align = t->list.element->align;
    return p->rc ? NULL : ctf_measured(p, t);
}

static struct ctf_type *read_array(struct tsdl_parser *p, const struct ctf2_object *o, int depth)
{
    return read_list(p, o, depth, false);
}

static struct ctf_type *read_sequence(struct tsdl_parser *p, const struct ctf2_object *o, int depth)
{
    return read_list(p, o, depth, true);
}

static const struct {
    const char *type;
    struct ctf_type *(*read)(struct tsdl_parser *p, const struct ctf2_object *o, int how); /* or the depth */
    int how;                                                                               /* -1: the depth */
} kinds[] = {
    {"fixed-length-bit-array", read_integer, BITS},
    {"fixed-length-bit-map", read_integer, FLAGS},
    {"fixed-length-boolean", read_integer, BOOLEAN},
    {"fixed-length-unsigned-integer", read_integer, 0},
    {"fixed-length-signed-integer", read_integer, SIGNED},
    {"fixed-length-floating-point-number", read_real, 0},
    {"variable-length-unsigned-integer", read_integer, VARIABLE},
    {"variable-length-signed-integer", read_integer, VARIABLE | SIGNED},
    {"null-terminated-string", read_string, 0},
    {"static-length-string", read_counted, 0},
    {"dynamic-length-string", read_counted, DYNAMIC},
    {"static-length-blob", read_counted, BYTES},
    {"dynamic-length-blob", read_counted, BYTES | DYNAMIC},
    {"structure", read_structure, -1},
    {"static-length-array", read_array, -1},
    {"dynamic-length-array", read_sequence, -1},
    {"optional", read_optional, -1},
    {"variant", read_variant, -1},
};

static struct ctf_type *find_alias(struct tsdl_parser *p, const char *name)
{
    tsdl_work(p, p->aliases.n);
    for (size_t i = p->aliases.n; name && i-- > 0;)
        if (strcmp(p->aliases.p[i].name, name) == 0)
            return p->aliases.p[i].type;
    tsdl_fail(p, "no field class alias is called '%s'", name ? name : "");
    return NULL;
}

struct ctf_type *ctf2_field_class(struct tsdl_parser *p, struct slice json, int depth)
{
    struct ctf2_object o;
    if (p->rc || !json.len)
        return NULL;
    if (depth > CTF_MAX_DEPTH) {
        tsdl_fail(p, "field classes nest too deeply");
        return NULL;
    }
    if (json.p[0] == '"')
        return find_alias(p, ctf2_text(p, json));
    if (!ctf2_read_object(p, json, "a field class", &o) || !ctf2_need(p, &o, CTF2_TYPE))
        return NULL;
    const char *type = ctf2_text(p, o.at[CTF2_TYPE]);
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        struct ctf_type *t = kinds[i].read(p, &o, kinds[i].how < 0 ? depth : kinds[i].how);
        if (t)
            t->role = (uint8_t)role_of(p, o.at[CTF2_ROLES]);
        return p->rc ? NULL : t;
    }
    tsdl_fail(p, "unknown field class type '%s'", type ? type : "");
    return NULL;
}

struct ctf_type *ctf2_structure(struct tsdl_parser *p, struct slice json)
{
    struct ctf_type *t = json.len ? ctf2_field_class(p, json, 0) : NULL;
    if (t && t->kind != CTF_STRUCT)
        tsdl_fail(p, "a structure was expected");
    return p->rc ? NULL : t;
}
