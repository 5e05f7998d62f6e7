/* The fragments of CTF 2 metadata: clocks, streams, events. */
#include "importer/ctf/ctf2_internal.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_SEPARATOR = 0x1e };

bool ctf2_is_metadata(const char *text, size_t len)
{
    size_t i = 1;
    if (!len || text[0] != RECORD_SEPARATOR)
        return false;
    while (i < len && strchr(" \t\r\n", text[i]))
        i++;
    return i < len && text[i] == '{';
}

/* Sixteen numbers; "" when there are none. */
static bool read_uuid(struct tsdl_parser *p, struct slice json, uint8_t bytes[16], char text[64])
{
    struct json_reader r = json_reader(json);
    unsigned n = 0, at = 0;
    if (!json.len)
        return false;
    for (bool in = json_enter(&r, '['); in && json_element(&r) && n < 17; n++) {
        int64_t v;
        if (!ctf2_number(p, &r, &v))
            break;
        if (n < 16)
            bytes[n] = (uint8_t)v;
    }
    if (n != 16)
        tsdl_fail(p, "a uuid is an array of 16 numbers");
    for (n = 0; n < 16 && !p->rc; n++)
        at += (unsigned)snprintf(text + at, 64 - at, "%s%02x", n == 4 || n == 6 || n == 8 || n == 10 ? "-" : "",
                                 bytes[n]);
    return !p->rc;
}

/* An extension that the preamble declares changes what the rest means. They stand by name in namespaces. */
static void refuse_extensions(struct tsdl_parser *p, struct slice json)
{
    struct json_reader r = json_reader(json);
    struct json_text space, name;
    if (!json.len || !json_enter(&r, '{'))
        return;
    while (!p->rc && json_member(&r, &space)) {
        if (!json_enter(&r, '{'))
            (void)json_skip(&r, NULL);
        else if (json_member(&r, &name))
            tsdl_fail(p, "the extension '%.*s' of '%.*s' is not known", (int)name.raw.len, (const char *)name.raw.p,
                      (int)space.raw.len, (const char *)space.raw.p);
    }
}

static void parse_preamble(struct tsdl_parser *p, const struct ctf2_object *o)
{
    uint64_t version = ctf2_need(p, o, CTF2_VERSION) ? ctf2_uint(p, o->at[CTF2_VERSION], 0) : 0;
    if (!p->rc && version != 2)
        tsdl_fail(p, "version %llu of CTF is not known", (unsigned long long)version);
    p->m->has_uuid_bytes = read_uuid(p, o->at[CTF2_UUID], p->m->uuid_bytes, p->m->uuid);
    refuse_extensions(p, o->at[CTF2_EXTENSIONS]);
}

static void parse_alias(struct tsdl_parser *p, const struct ctf2_object *o)
{
    if (!ctf2_need(p, o, CTF2_NAME) || !ctf2_need(p, o, CTF2_FIELD_CLASS))
        return;
    const char *name = ctf2_text(p, o->at[CTF2_NAME]);
    struct ctf_type *t = ctf2_field_class(p, o->at[CTF2_FIELD_CLASS], 0);
    if (t && name && !vec_push(&p->aliases, (struct tsdl_alias){name, t}))
        tsdl_fail(p, "out of memory");
}

static void parse_environment(struct tsdl_parser *p, struct slice json)
{
    struct json_reader r = json_reader(json);
    struct json_text key;
    if (!json.len)
        return;
    if (!json_enter(&r, '{'))
        tsdl_fail(p, "the environment is not an object");
    while (!p->rc && json_member(&r, &key)) {
        struct slice value;
        if (!json_skip(&r, &value))
            break;
        struct ctf_env e = {.name = ctf2_text(p, slice_of(key.raw.p - 1, key.raw.len + 2))};
        e.text = value.len && value.p[0] == '"' ? ctf2_text(p, value) : arena_strndup(&p->m->arena, value.p, value.len);
        if (e.name && e.text && !vec_push(&p->m->env, e))
            tsdl_fail(p, "out of memory");
    }
}

/* Namespace, name and uid of an object as one text; NULL when it has no uid. */
static const char *identity(struct tsdl_parser *p, const struct ctf2_object *o)
{
    static const enum ctf2_key keys[] = {CTF2_NAMESPACE, CTF2_NAME, CTF2_UID};
    enum { PARTS = 3 };
    const char *parts[PARTS];
    size_t len = 0;
    if (!o->at[CTF2_UID].len)
        return NULL;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = ctf2_text(p, o->at[keys[i]]);
        parts[i] = parts[i] ? parts[i] : "";
        len += strlen(parts[i]) + 1;
    }
    char *text = tsdl_alloc(p, len);
    if (text)
        snprintf(text, len, "%s\x1f%s\x1f%s", parts[0], parts[1], parts[2]);
    return text;
}

static void parse_trace(struct tsdl_parser *p, const struct ctf2_object *o)
{
    uint8_t bytes[16];
    p->m->identity = identity(p, o);
    p->m->uid = ctf2_text(p, o->at[CTF2_UID]);
    p->m->packet_header = ctf2_structure(p, o->at[CTF2_PACKET_HEADER]);
    if (!p->m->uuid[0]) /* drafts have it here */
        read_uuid(p, o->at[CTF2_UUID], bytes, p->m->uuid);
    parse_environment(p, o->at[CTF2_ENVIRONMENT]);
}

/* What identifies a clock: its uid; in drafts a uuid. */
static const char *clock_identity(struct tsdl_parser *p, const struct ctf2_object *o)
{
    uint8_t bytes[16];
    char text[64] = "";
    const char *uid = ctf2_text(p, o->at[CTF2_UID]);
    if (uid)
        return uid;
    read_uuid(p, o->at[CTF2_UUID], bytes, text);
    const char *copy = arena_strndup(&p->m->arena, text, strlen(text));
    return copy ? copy : "";
}

static void parse_clock(struct tsdl_parser *p, const struct ctf2_object *o)
{
    struct ctf_clock c = {.name = "", .uuid = clock_identity(p, o)};
    const char *name = ctf2_text(p, o->at[CTF2_NAME]), *id = ctf2_text(p, o->at[CTF2_ID]);
    struct slice origin = o->at[CTF2_ORIGIN], absolute = o->at[CTF2_ABSOLUTE];
    const char *known = origin.len && origin.p[0] == '"' ? ctf2_text(p, origin) : NULL;
    c.name = name ? name : "";
    c.id = id ? id : c.name;
    c.freq = ctf2_need(p, o, CTF2_FREQUENCY) ? ctf2_uint(p, o->at[CTF2_FREQUENCY], 0) : 0;
    c.no_epoch = !(known && strcmp(known, "unix-epoch") == 0) && !(absolute.len && absolute.p[0] == 't');
    if (c.no_epoch) {
        struct ctf2_object custom = {0};
        bool is_custom = origin.len && origin.p[0] == '{' && ctf2_read_object(p, origin, "origin", &custom);
        c.origin = is_custom ? identity(p, &custom) : identity(p, o);
    }
    if (o->at[CTF2_OFFSET].len) {
        struct ctf2_object offset;
        ctf2_read_object(p, o->at[CTF2_OFFSET], "offset-from-origin", &offset);
        c.offset_s = ctf2_int(p, offset.at[CTF2_SECONDS], 0);
        c.offset = ctf2_int(p, offset.at[CTF2_CYCLES], 0);
    }
    if (!p->rc && c.freq == 0)
        tsdl_fail(p, "clock '%s' has frequency 0", c.name);
    if (!p->rc && (p->m->clocks.n >= INT16_MAX || !vec_push(&p->m->clocks, c)))
        tsdl_fail(p, "too many clocks");
}

static int find_clock(struct tsdl_parser *p, const struct ctf2_object *o)
{
    const char *id = ctf2_text(p, o->at[o->at[CTF2_CLOCK_ID].len ? CTF2_CLOCK_ID : CTF2_CLOCK_NAME]);
    tsdl_work(p, p->m->clocks.n);
    for (size_t i = 0; id && i < p->m->clocks.n; i++)
        if (strcmp(p->m->clocks.p[i].id, id) == 0)
            return (int)i;
    if (id)
        tsdl_fail(p, "no clock class has the id '%s'", id);
    return -1;
}

static void parse_stream(struct tsdl_parser *p, const struct ctf2_object *o)
{
    struct ctf_stream_class *s = p->rc ? NULL : ctf_stream_of(p, ctf2_uint(p, o->at[CTF2_ID], 0));
    if (!s)
        return;
    s->packet_context = ctf2_structure(p, o->at[CTF2_PACKET_CONTEXT]);
    s->event_header = ctf2_structure(p, o->at[CTF2_HEADER]);
    s->event_context = ctf2_structure(p, o->at[CTF2_COMMON_CONTEXT]);
    s->clock = find_clock(p, o);
    s->no_clock = s->clock < 0;
}

/* What LTTng says of an event class. */
static void read_lttng_attributes(struct tsdl_parser *p, struct slice json, struct ctf_event_class *e)
{
    struct ctf2_object o;
    if (json.len && ctf2_read_object(p, json, "attributes", &o) && o.at[CTF2_LTTNG].len &&
        o.at[CTF2_LTTNG].p[0] == '{' && ctf2_read_object(p, o.at[CTF2_LTTNG], "attributes", &o)) {
        e->log_level = ctf2_text(p, o.at[CTF2_LOG_LEVEL]);
        e->emf_uri = ctf2_text(p, o.at[CTF2_EMF_URI]);
    }
}

static void parse_event(struct tsdl_parser *p, const struct ctf2_object *o)
{
    struct ctf_event_class *e = tsdl_alloc(p, sizeof *e);
    struct ctf_stream_class *s = e ? ctf_stream_of(p, ctf2_uint(p, o->at[CTF2_STREAM_ID], 0)) : NULL;
    if (!s)
        return;
    const char *name = ctf2_text(p, o->at[CTF2_NAME]);
    e->name = name ? name : "";
    e->id = ctf2_uint(p, o->at[CTF2_ID], 0);
    e->context = ctf2_structure(p, o->at[CTF2_SPECIFIC_CONTEXT]);
    e->fields = ctf2_structure(p, o->at[CTF2_PAYLOAD]);
    read_lttng_attributes(p, o->at[CTF2_ATTRIBUTES], e);
    e->stream = s;
    e->index = (uint32_t)p->m->events.n;
    if (!p->rc && (!vec_push(&s->events, e) || !vec_push(&p->m->events, e)))
        tsdl_fail(p, "out of memory");
}

static const struct {
    const char *type;
    void (*parse)(struct tsdl_parser *p, const struct ctf2_object *o);
} fragments[] = {
    {"preamble", parse_preamble}, {"field-class-alias", parse_alias},  {"trace-class", parse_trace},
    {"clock-class", parse_clock}, {"data-stream-class", parse_stream}, {"event-record-class", parse_event},
};

static void parse_fragment(struct tsdl_parser *p, struct slice json, bool first)
{
    struct ctf2_object o;
    if (!ctf2_read_object(p, json, "a fragment", &o) || !ctf2_need(p, &o, CTF2_TYPE))
        return;
    const char *type = ctf2_text(p, o.at[CTF2_TYPE]);
    for (size_t i = 0; type && i < sizeof fragments / sizeof *fragments; i++) {
        if (strcmp(fragments[i].type, type) != 0)
            continue;
        if (first != (i == 0))
            tsdl_fail(p, first ? "the first fragment is not the preamble" : "a second preamble");
        if (!p->rc)
            fragments[i].parse(p, &o);
        return;
    }
    tsdl_fail(p, "unknown type '%s'", type ? type : "");
}

int ctf2_parse(struct ctf_metadata *m, const char *text, size_t len, struct error *err)
{
    *m = (struct ctf_metadata){0};
    struct tsdl_parser p = {.m = m, .err = err, .is_ctf2 = true};
    const char *at = text, *end = text + len;
    for (unsigned n = 0; !p.rc; n++) {
        p.lex.token_line = (int)n + 1; /* of the fragment */
        while (at < end && strchr(" \t\r\n", *at) && *at)
            at++;
        if (at == end)
            break;
        if (*at++ != RECORD_SEPARATOR) {
            tsdl_fail(&p, "a record separator was expected");
            break;
        }
        struct json_reader r = json_reader(slice_of(at, (size_t)(end - at)));
        struct json_reader checked = r;
        struct slice json;
        if (!json_check(&checked) && checked.status == JSON_MORE && n > 0)
            break; /* it is being written */
        if (checked.status != JSON_OK || !json_skip(&r, &json)) {
            tsdl_fail(&p, "%s", json_error_text(checked.status == JSON_OK ? &r : &checked));
            break;
        }
        parse_fragment(&p, json, n == 0);
        at = (const char *)json.p + json.len;
    }
    if (!p.rc)
        tsdl_resolve(&p);
    ctf_sort_events(m);
    vec_free(&p.aliases);
    return p.rc;
}
