/* Sums up the bytes of packets by field. Each way from a packet down to a field is a node of a tree; packets with
 * different annotations have trees of their own. */
#include "importer/proto/content_analysis.h"

#include "base/hash.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/trace_fields.h"

#include <stdio.h>

enum {
    MAX_DEPTH = 100,            /* messages deeper inside count as bytes */
    MAX_NODES = 1 << 22,        /* ways that are told apart; what is on others counts for the message around it */
    UNKNOWN_FIELD = UINT32_MAX, /* all fields of a message that nothing describes */
};

#define NO_NODE UINT32_MAX

struct node {
    uint32_t parent; /* NO_NODE: a packet */
    strid name, type;
    strid message;                     /* of an extension, or inside one: full name; 0: not a message, or `known` */
    const struct trace_message *known; /* of the schema of traces */
    argset args;                       /* of a packet's annotation */
    int64_t size, count;
};

struct content_analysis {
    struct importer *im;
    content_extension_fn extension;
    VEC(struct node)
    nodes;
    struct u64map roots;    /* hash of the annotation -> node */
    struct u64map children; /* parent << 32 | field number -> node */
};

struct content_analysis *content_analysis_of(struct importer *im)
{
    if (im->opt.analyze_proto_content && !im->content) {
        im->content = mem_zalloc(sizeof *im->content);
        if (im->content)
            im->content->im = im;
        else
            im->failed = true;
    }
    return im->content;
}

void content_analysis_close(struct content_analysis *c)
{
    if (!c)
        return;
    vec_free(&c->nodes);
    u64map_free(&c->roots);
    u64map_free(&c->children);
    mem_free(c);
}

void content_analysis_extensions(struct content_analysis *c, content_extension_fn extension)
{
    c->extension = extension;
}

static uint32_t add_node(struct content_analysis *c, struct node node)
{
    if (c->nodes.n >= MAX_NODES)
        return NO_NODE;
    if (!vec_push(&c->nodes, node)) {
        c->im->failed = true;
        return NO_NODE;
    }
    return (uint32_t)c->nodes.n - 1;
}

/* The packets of an annotation, NO_NODE when there is no room. */
static uint32_t root_of(struct content_analysis *c, const struct content_annotation *a)
{
    uint64_t key = hash_u64((a ? 1 : 0) ^ c->im->secret);
    struct arg_list args = {0};
    for (int i = 0; a && i < 2 && a->keys[i]; i++) {
        strid name = import_str(c->im, a->keys[i]);
        key = hash_combine(hash_combine(key, name), a->values[i]);
    }
    bool added;
    uint64_t *root = u64map_put(&c->roots, key, &added);
    if (!root) {
        c->im->failed = true;
        return NO_NODE;
    }
    if (!added)
        return (uint32_t)*root;
    for (int i = 0; a && i < 2 && a->keys[i]; i++)
        arg_list_str(&c->im->st->args, &args, a->keys[i], a->values[i]);
    struct node node = {.parent = NO_NODE,
                        .type = import_str(c->im, "TracePacket"),
                        .known = trace_message_by_name("TracePacket"),
                        .args = args_intern(&c->im->st->args, args.p, args.n)};
    arg_list_free(&args);
    return (uint32_t)(*root = add_node(c, node));
}

/* "BufferStats" of "TraceStats.BufferStats". */
static const char *last_part(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

static strid field_name(struct content_analysis *c, const char *name)
{
    return strpool_printf(&c->im->st->strings, "#%s", name);
}

/* Describes the field of a message; false when nothing does. */
static bool describe(struct content_analysis *c, const struct node *message, uint32_t number, struct node *out)
{
    struct strpool *strings = &c->im->st->strings;
    const struct trace_field *f = message->known ? trace_field_by_number(message->known, number) : NULL;
    char text[128];
    if (f) {
        const char *type = f->type == TRACE_TYPE_ENUM ? "enum" : trace_field_type_name(f, text, sizeof text);
        out->name = field_name(c, f->name);
        out->type = import_str(c->im, last_part(type));
        out->known = trace_field_message(f);
        return true;
    }
    strid full = message->message;
    if (message->known && message->known->name) {
        snprintf(text, sizeof text, "perfetto.protos.%s", message->known->name);
        full = import_str(c->im, text);
    }
    struct content_field extension = {0};
    if (!full || !c->extension || !c->extension(c->im, full, number, &extension))
        return false;
    out->name = field_name(c, strpool_cstr(strings, extension.name));
    out->type = extension.type;
    out->message = extension.message;
    return true;
}

/* The node of a field, NO_NODE when nothing describes it or there is no room. */
static uint32_t child_of(struct content_analysis *c, uint32_t parent, uint32_t number)
{
    bool added;
    uint64_t *child = u64map_put(&c->children, (uint64_t)parent << 32 | number, &added);
    if (!child) {
        c->im->failed = true;
        return NO_NODE;
    }
    if (added) {
        struct node node = {.parent = parent};
        *child = NO_NODE;
        if (number == UNKNOWN_FIELD) {
            node.name = import_str(c->im, "#unknown");
            node.type = import_str(c->im, "");
            *child = add_node(c, node);
        } else if (describe(c, &c->nodes.p[parent], number, &node)) {
            *child = add_node(c, node);
        }
    }
    return (uint32_t)*child;
}

static void add(struct content_analysis *c, uint32_t node, int64_t size)
{
    c->nodes.p[node].size += size;
    c->nodes.p[node].count++;
}

static int64_t payload_size(const struct pb_field *f)
{
    if (f->wire == PB_BYTES)
        return (int64_t)pb_bytes(f).len;
    if (f->wire != PB_VARINT)
        return f->wire == PB_FIXED64 ? 8 : 4;
    int64_t n = 1;
    for (uint64_t v = f->u; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static void walk(struct content_analysis *c, uint32_t node, struct slice bytes, int depth)
{
    int64_t own = (int64_t)bytes.len, unknown = 0;
    struct pb_cursor cursor = pb_cursor(bytes);
    struct pb_field f;
    while (pb_next(&cursor, &f)) {
        int64_t size = payload_size(&f);
        uint32_t child = child_of(c, node, f.id);
        own -= size;
        if (child == NO_NODE) {
            unknown += size;
            continue;
        }
        const struct node *n = &c->nodes.p[child];
        if (f.wire == PB_BYTES && (n->known || n->message) && depth < (int)MAX_DEPTH)
            walk(c, child, pb_bytes(&f), depth + 1);
        else
            add(c, child, size);
    }
    uint32_t rest = unknown ? child_of(c, node, UNKNOWN_FIELD) : NO_NODE;
    if (rest != NO_NODE)
        add(c, rest, unknown);
    add(c, node, own + (unknown && rest == NO_NODE ? unknown : 0));
}

void content_analysis_packet(struct content_analysis *c, struct slice packet, const struct content_annotation *a)
{
    uint32_t root = root_of(c, a);
    if (root != NO_NODE)
        walk(c, root, packet, 0);
}

/* The way to a node: "TracePacket.#track_event.TrackEvent". */
static strid path_of(struct content_analysis *c, uint32_t node)
{
    uint32_t way[MAX_DEPTH + 3];
    size_t n = 0, len = 0;
    char text[8192] = "";
    for (; node != NO_NODE && n < sizeof way / sizeof *way; node = c->nodes.p[node].parent)
        way[n++] = node;
    struct strpool *strings = &c->im->st->strings;
    while (n--) {
        const struct node *k = &c->nodes.p[way[n]];
        int more = snprintf(text + len, sizeof text - len, "%s%s%s%s", len ? "." : "", strpool_cstr(strings, k->name),
                            k->name ? "." : "", strpool_cstr(strings, k->type));
        len = len + (size_t)more < sizeof text ? len + (size_t)more : sizeof text - 1;
    }
    return strpool_intern(strings, text, len);
}

void content_analysis_finish(struct content_analysis *c)
{
    if (!c)
        return;
    struct storage *st = c->im->st;
    for (uint32_t i = 0; i < c->nodes.n; i++) {
        const struct node *k = &c->nodes.p[i];
        experimental_proto_path_insert(
            st, &(struct experimental_proto_path_row){.parent_id = k->parent == NO_NODE ? COL_NULL : k->parent,
                                                      .field_type = k->type,
                                                      .field_name = k->name,
                                                      .arg_set_id = k->args});
    }
    for (uint32_t i = 0; i < c->nodes.n; i++) {
        const struct node *k = &c->nodes.p[i];
        if (k->count)
            experimental_proto_content_insert(
                st,
                &(struct experimental_proto_content_row){
                    .path = path_of(c, i), .path_id = i, .total_size = k->size, .size = k->size, .count = k->count});
    }
}
