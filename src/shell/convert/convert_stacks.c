/* Call stacks as text for flame graph tools ("a;b;c COUNT" a line), and as a flame graph in SVG.
 *
 * A trace has samples, heaps, profiles without time, or slices alone: the first of these that it has is written. Each
 * query gives the nodes of a forest, parents first; nodes of one name under one parent become one. */
#include "shell/convert/convert.h"

#include "base/hash.h"
#include "base/u64map.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NO_NODE UINT32_MAX

/* Rows: id, parent (NULL: none), name, value of the node itself, what the root stands under (NULL: nothing). Callsites
 * have lower numbers than those that they call; slices begin before those in them. */
#define STACKS(values)                                                                                                 \
    "select c.id, c.parent_id, coalesce(y.name, f.deobfuscated_name, f.name, printf('0x%x', f.rel_pc)), "              \
    "coalesce(v.n, 0), null from stack_profile_callsite c join stack_profile_frame f on f.id = c.frame_id left join "  \
    "(select symbol_set_id, max(id), name from stack_profile_symbol group by 1) y on y.symbol_set_id = "               \
    "f.symbol_set_id left join (" values ") v on v.callsite_id = c.id order by c.id"

static const struct {
    const char *unit, *any, *nodes;
} sources[] = {
    {"samples", "select 1 from stack_sample where callsite_id is not null limit 1",
     STACKS("select callsite_id, count(*) as n from stack_sample group by 1")},
    {"bytes", "select 1 from heap_profile_allocation limit 1",
     STACKS("select callsite_id, max(sum(size), 0) as n from heap_profile_allocation group by 1")},
    {"", "select 1 from __intrinsic_aggregate_sample limit 1",
     STACKS("select callsite_id, cast(sum(value) as int) as n from __intrinsic_aggregate_sample where "
            "aggregate_profile_id = (select max(aggregate_profile_id) from __intrinsic_aggregate_sample) group by 1")},
    {"ns", "select 1 from slice where dur > 0 limit 1",
     "select s.id, s.parent_id, coalesce(s.name, '[no name]'), max(max(s.dur, 0) - coalesce(k.n, 0), 0), "
     "coalesce(t.name, 'thread ' || t.tid, r.name, r.type) from slice s join track r on r.id = s.track_id left join "
     "thread_track u on u.id = s.track_id left join thread t using (utid) left join (select parent_id, sum(max(dur, "
     "0)) as n from slice where parent_id is not null group by 1) k on k.parent_id = s.id order by s.id"},
};

struct node {
    uint32_t parent, depth;
    uint32_t first_child, next; /* NO_NODE: none */
    uint64_t self, total;
    size_t name; /* in `names` */
};

struct forest {
    VEC(struct node)
    nodes; /* the first is the root */
    VEC(char)
    names;               /* each ends with 0 */
    struct u64map by_id; /* of the query -> node */
    struct u64map named; /* hash of parent and name -> node */
    bool failed;
};

static int found(void *ctx, struct tp_result *r)
{
    (void)r;
    *(bool *)ctx = true;
    return 0;
}

static const char *name_of(const struct forest *f, uint32_t node)
{
    return f->names.p + f->nodes.p[node].name;
}

/* The node of a name under a parent, made when new; what separates frames and lines, and
 * what is not UTF-8, is replaced. */
static uint32_t node_of(struct forest *f, uint32_t parent, const char *name)
{
    bool added;
    size_t len = strlen(name), at = f->names.n;
    uint64_t key = hash_combine(hash_bytes(name, len), parent), *slot;
    if (f->nodes.n >= NO_NODE || !vec_reserve(&f->names, f->names.n + len + 1)) {
        f->failed = true;
        return 0;
    }
    for (size_t i = 0; i < len;) {
        size_t n = utf8_sequence(name + i, len - i);
        char c = n ? name[i] : '?';
        f->names.p[at + i++] = (char)(c == ';' ? ':' : (unsigned char)c < ' ' ? ' ' : c);
        for (; n > 1; n--, i++)
            f->names.p[at + i] = name[i];
    }
    f->names.p[at + len] = '\0';
    for (;; key++) { /* two of one hash: the next key */
        slot = u64map_put(&f->named, key, &added);
        if (!slot) {
            f->failed = true;
            return 0;
        }
        if (added || (f->nodes.p[*slot].parent == parent && strcmp(name_of(f, (uint32_t)*slot), f->names.p + at) == 0))
            break;
    }
    if (!added)
        return (uint32_t)*slot;
    *slot = f->nodes.n;
    f->names.n += len + 1;
    struct node *p = parent == NO_NODE ? NULL : &f->nodes.p[parent];
    struct node n = {parent, p ? p->depth + 1 : 0, NO_NODE, p ? p->first_child : NO_NODE, 0, 0, at};
    if (p)
        p->first_child = (uint32_t)f->nodes.n;
    if (!vec_push(&f->nodes, n)) {
        if (p)
            p->first_child = n.next;
        f->failed = true;
        return 0;
    }
    return (uint32_t)*slot;
}

static int add_row(void *ctx, struct tp_result *r)
{
    struct forest *f = ctx;
    const uint64_t *at = tp_column_type(r, 1) == TP_NULL ? NULL : u64map_get(&f->by_id, (uint64_t)tp_int64(r, 1));
    const char *root = tp_text(r, 4, NULL), *name;
    uint32_t parent = at ? (uint32_t)*at : root ? node_of(f, 0, root) : 0;
    name = tp_text(r, 2, NULL);
    uint32_t node = node_of(f, parent, name && *name ? name : "[unknown]");
    int64_t value = tp_int64(r, 3);
    if (value > 0 && __builtin_add_overflow(f->nodes.p[node].self, (uint64_t)value, &f->nodes.p[node].self))
        f->nodes.p[node].self = UINT64_MAX;
    if (!u64map_set(&f->by_id, (uint64_t)tp_int64(r, 0), node))
        f->failed = true;
    return f->failed;
}

static void forest_free(struct forest *f)
{
    vec_free(&f->nodes);
    vec_free(&f->names);
    u64map_free(&f->by_id);
    u64map_free(&f->named);
}

/* Reads what the trace has. *unit: of its values. */
static int forest_read(struct shell *sh, struct forest *f, const char **unit, struct error *err)
{
    bool any = false;
    int rc = 0;
    size_t i = 0, n = sizeof sources / sizeof *sources;
    node_of(f, NO_NODE, "all");
    for (; i < n && !any && !rc; i++)
        rc = convert_rows(sh, sources[i].any, found, &any, err);
    if (!rc && !any)
        return error_set(err, -MRD_ENOTFOUND, "convert: the trace has neither call stacks nor slices");
    if (rc)
        return rc;
    *unit = sources[i - 1].unit;
    rc = convert_rows(sh, sources[i - 1].nodes, add_row, f, err);
    if (f->failed)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    for (size_t k = f->nodes.n; k-- > 0;) { /* children stand behind their parents */
        struct node *node = &f->nodes.p[k];
        node->total = node->total > UINT64_MAX - node->self ? UINT64_MAX : node->total + node->self;
        if (node->parent == NO_NODE)
            continue;
        struct node *p = &f->nodes.p[node->parent];
        p->total = p->total > UINT64_MAX - node->total ? UINT64_MAX : p->total + node->total;
    }
    return rc;
}

/* --- text -------------------------------------------------------------------------------------------------------- */

static int put_stack(struct out_file *out, const struct forest *f, uint32_t node)
{
    enum { DEEPEST = 4096 };
    uint32_t path[DEEPEST];
    size_t n = 0;
    int rc = 0;
    for (uint32_t k = node; f->nodes.p[k].parent != NO_NODE && n < DEEPEST; k = f->nodes.p[k].parent)
        path[n++] = k;
    while (n-- > 0 && !rc) {
        rc = out_file_text(out, name_of(f, path[n]));
        if (!rc && n)
            rc = out_file_text(out, ";");
    }
    char value[32];
    snprintf(value, sizeof value, " %" PRIu64 "\n", f->nodes.p[node].self);
    return rc ? rc : out_file_text(out, value);
}

int convert_collapsed(struct shell *sh, struct out_file *out, struct error *err)
{
    struct forest f = {0};
    const char *unit;
    int rc = forest_read(sh, &f, &unit, err);
    for (uint32_t i = 1; i < f.nodes.n && !rc; i++)
        if (f.nodes.p[i].self)
            rc = put_stack(out, &f, i);
    forest_free(&f);
    return rc;
}

/* --- SVG --------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 1200, ROW = 17, MARGIN = 10, TOP = 34, DEEPEST_ROW = 500 };

static int put_escaped(struct out_file *out, const char *text, size_t max)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    int rc = 0;
    size_t i = 0;
    for (; text[i] && i < max && !rc; i++) {
        const char *entity = NULL;
        for (size_t k = 0; k < sizeof entities / sizeof *entities; k++)
            if (entities[k].c == text[i])
                entity = entities[k].entity;
        rc = entity ? out_file_text(out, entity) : out_file_write(out, text + i, 1);
    }
    return rc;
}

/* How many bytes of a name fit into `width`, whole characters only. */
static size_t fitting(const char *name, double width)
{
    size_t max = (size_t)(width / 6.6), len = strlen(name);
    if (len <= max)
        return len;
    while (max && ((unsigned char)name[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static int put_box(struct out_file *out, const struct forest *f, uint32_t node, double x, double width,
                   const char *unit)
{
    const struct node *n = &f->nodes.p[node];
    const char *name = name_of(f, node);
    unsigned hue = (unsigned)(hash_bytes(name, strlen(name)) % 55);
    double share = f->nodes.p[0].total ? 100.0 * (double)n->total / (double)f->nodes.p[0].total : 0;
    char text[512];
    snprintf(text, sizeof text,
             "<g><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,75%%,%u%%)\" rx=\"2\"/><title>",
             x, TOP + (int)n->depth * ROW, width, ROW - 1, hue, 62 + hue % 9);
    int rc = out_file_text(out, text);
    rc = rc ? rc : put_escaped(out, name, SIZE_MAX);
    snprintf(text, sizeof text, " (%" PRIu64 "%s%s, %.2f%%)</title>", n->total, *unit ? " " : "", unit, share);
    rc = rc ? rc : out_file_text(out, text);
    size_t fits = fitting(name, width - 6);
    if (!rc && fits >= 3) {
        snprintf(text, sizeof text, "<text x=\"%.2f\" y=\"%d\">", x + 3, TOP + (int)n->depth * ROW + ROW - 5);
        rc = out_file_text(out, text);
        rc = rc ? rc : put_escaped(out, name, fits);
        rc = rc ? rc : out_file_text(out, "</text>");
    }
    return rc ? rc : out_file_text(out, "</g>\n");
}

/* Where each node begins, from left to right; those too narrow to be seen are left out with all that they call. */
static int put_boxes(struct out_file *out, const struct forest *f, const char *unit)
{
    const double scale = f->nodes.p[0].total ? (double)(WIDTH - 2 * MARGIN) / (double)f->nodes.p[0].total : 0;
    double *from = mem_alloc(f->nodes.n * sizeof *from);
    int rc = from ? 0 : -MRD_ENOMEM;
    if (from)
        from[0] = MARGIN;
    for (uint32_t i = 0; i < f->nodes.n && !rc; i++) { /* parents come first */
        const struct node *n = &f->nodes.p[i];
        double x = from[i], width = (double)n->total * scale;
        for (uint32_t c = n->first_child; c != NO_NODE; c = f->nodes.p[c].next) {
            from[c] = x;
            x += (double)f->nodes.p[c].total * scale;
        }
        if (width >= 0.2 && n->depth < DEEPEST_ROW)
            rc = put_box(out, f, i, from[i], width, unit);
    }
    mem_free(from);
    return rc;
}

int convert_flamegraph(struct shell *sh, struct out_file *out, struct error *err)
{
    struct forest f = {0};
    const char *unit = "";
    int rc = forest_read(sh, &f, &unit, err);
    uint32_t depth = 0;
    char head[1024];
    for (size_t i = 0; i < f.nodes.n; i++)
        depth = f.nodes.p[i].depth > depth ? f.nodes.p[i].depth : depth;
    depth = depth < DEEPEST_ROW ? depth : DEEPEST_ROW - 1;
    int height = TOP + (int)(depth + 1) * ROW + MARGIN;
    snprintf(head, sizeof head,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
             "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%%\" "
             "height=\"100%%\" fill=\"#fffdf6\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">Flame graph%s%s</text>\n",
             WIDTH, height, WIDTH, height, MARGIN, *unit ? ": " : "", unit);
    if (!rc)
        rc = out_file_text(out, head);
    if (!rc)
        rc = put_boxes(out, &f, unit);
    if (rc == -MRD_ENOMEM)
        error_set(err, rc, "out of memory");
    forest_free(&f);
    return rc ? rc : out_file_text(out, "</svg>\n");
}
