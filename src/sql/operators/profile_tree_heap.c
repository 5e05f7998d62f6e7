/* The tree of a Java heap: each object below one of those nearest to a root that refer to it, merged by class. */
#include "sql/operators/profile_tree.h"

#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_REACHED = -1 };

struct heap {
    struct storage *st;
    const struct table *objects, *references, *classes;
    struct profile_tree *tree;
    stop_flag *stop;
    int64_t upid, ts;
    uint32_t first, n; /* rows of heap_graph_object that hold the dump, among others */
    int32_t *distance; /* by row - first: references from a root; NOT_REACHED */
    bool *weak;        /* by row of heap_graph_class: what it refers to is not kept by it */
    strid referent;
    VEC(uint32_t)
    queue, found; /* rows */
};

static bool is_of_dump(const struct heap *h, uint32_t row)
{
    return table_get(h->objects, heap_graph_object_c_upid, row) == h->upid &&
           table_get(h->objects, heap_graph_object_c_graph_sample_ts, row) == h->ts;
}

/* Classes whose field java.lang.ref.Reference.referent keeps nothing alive, and those below them. */
static int find_weak_classes(struct heap *h)
{
    static const char *const kinds[] = {"KIND_FINALIZER_REFERENCE", "KIND_PHANTOM_REFERENCE", "KIND_SOFT_REFERENCE",
                                        "KIND_WEAK_REFERENCE"};
    uint32_t n = h->classes->n_rows;
    h->weak = mem_zalloc(n + 1);
    if (!h->weak)
        return -MRD_ENOMEM;
    h->referent = strpool_intern_str(&h->st->strings, "java.lang.ref.Reference.referent");
    for (uint32_t r = 0; r < n; r++) {
        const char *kind = strpool_cstr(&h->st->strings, (strid)table_get(h->classes, heap_graph_class_c_kind, r));
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            h->weak[r] |= strcmp(kind, kinds[i]) == 0;
    }
    for (bool more = true; more;) { /* a round for each step of inheritance; a class turns weak once */
        more = false;
        for (uint32_t r = 0; r < n; r++) {
            int64_t super = table_get(h->classes, heap_graph_class_c_superclass_id, r);
            if (!h->weak[r] && super != COL_NULL && super < n && h->weak[super])
                h->weak[r] = more = true;
        }
        if (stop_asked(h->stop))
            return -MRD_ECANCELLED;
    }
    return 0;
}

/* The rows of the references of an object: [*from, *to). */
static void references_of(const struct heap *h, uint32_t row, uint32_t *from, uint32_t *to)
{
    int64_t set = table_get(h->objects, heap_graph_object_c_reference_set_id, row);
    *from = *to = 0;
    if (set == COL_NULL)
        return;
    *from = table_lower_bound(h->references, heap_graph_reference_c_reference_set_id, set, false);
    *to = table_lower_bound(h->references, heap_graph_reference_c_reference_set_id, set, true);
}

/* What a reference keeps alive; UINT32_MAX when nothing. */
static uint32_t kept_by(const struct heap *h, uint32_t owner, uint32_t reference)
{
    int64_t to = table_get(h->references, heap_graph_reference_c_owned_id, reference);
    int64_t class = table_get(h->objects, heap_graph_object_c_type_id, owner);
    if (to == COL_NULL || to < h->first || to >= (int64_t)h->first + h->n)
        return UINT32_MAX;
    if (class < h->classes->n_rows && h->weak[class] &&
        table_get(h->references, heap_graph_reference_c_field_name, reference) == h->referent)
        return UINT32_MAX;
    return (uint32_t)to;
}

static int measure_distances(struct heap *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        h->distance[i] = NOT_REACHED;
    for (uint32_t r = h->first; r < h->first + h->n; r++)
        if (is_of_dump(h, r) && table_get(h->objects, heap_graph_object_c_root_type, r)) {
            h->distance[r - h->first] = 0;
            if (!vec_push(&h->queue, r))
                return -MRD_ENOMEM;
        }
    for (size_t head = 0; head < h->queue.n; head++) {
        uint32_t row = h->queue.p[head], from, to;
        if (stop_asked(h->stop))
            return -MRD_ECANCELLED;
        references_of(h, row, &from, &to);
        for (uint32_t i = from; i < to; i++) {
            uint32_t next = kept_by(h, row, i);
            if (next == UINT32_MAX || h->distance[next - h->first] != NOT_REACHED)
                continue;
            h->distance[next - h->first] = h->distance[row - h->first] + 1;
            if (!vec_push(&h->queue, next))
                return -MRD_ENOMEM;
        }
    }
    return 0;
}

/* The name of an object's node: its class, for roots with why it is one. */
static strid node_name(struct heap *h, uint32_t row, const char *before)
{
    struct strpool *s = &h->st->strings;
    int64_t class = table_get(h->objects, heap_graph_object_c_type_id, row), name = 0;
    strid root = *before ? 0 : (strid)table_get(h->objects, heap_graph_object_c_root_type, row);
    if (class < h->classes->n_rows) {
        name = table_get(h->classes, heap_graph_class_c_deobfuscated_name, (uint32_t) class);
        if (!name)
            name = table_get(h->classes, heap_graph_class_c_name, (uint32_t) class);
    }
    if (root)
        return strpool_printf(s, "%s [%s]", strpool_cstr(s, (strid)name), strpool_cstr(s, root));
    return *before ? strpool_printf(s, "%s%s", before, strpool_cstr(s, (strid)name)) : (strid)name;
}

/* Adds an object to the node of its class below `parent`; the node. */
static uint32_t add_object(struct heap *h, uint32_t row, uint32_t parent, strid java)
{
    int64_t native = table_get(h->objects, heap_graph_object_c_native_size, row);
    int64_t self = table_get(h->objects, heap_graph_object_c_self_size, row);
    uint32_t node = profile_tree_child(h->tree, parent, node_name(h, row, ""), java, 0, COL_NULL);
    if (node == NODE_FAILED)
        return node;
    profile_tree_add(&h->tree->nodes.p[node], 1, self > 0 ? self : 0);
    if (native <= 0)
        return node;
    uint32_t below = profile_tree_child(h->tree, node, node_name(h, row, "[native] "), java, 0, COL_NULL);
    if (below == NODE_FAILED)
        return below;
    profile_tree_add(&h->tree->nodes.p[below], 1, native);
    return node;
}

struct open_object {
    uint32_t node;
    size_t next, end; /* of `found`: the objects below it that are still to be visited */
};
struct open_objects {
    struct open_object *p;
    size_t n, cap;
};

/* Enters an object: its node, and the objects that no other has taken and that are one step farther from the roots. */
static int enter(struct heap *h, struct open_objects *open, uint32_t row, uint32_t parent, strid java)
{
    uint32_t node = add_object(h, row, parent, java), from, to;
    size_t first = h->found.n;
    if (node == NODE_FAILED)
        return -MRD_ENOMEM;
    references_of(h, row, &from, &to);
    for (uint32_t i = from; i < to; i++) {
        uint32_t next = kept_by(h, row, i);
        if (next == UINT32_MAX || h->distance[next - h->first] != h->distance[row - h->first] + 1)
            continue;
        if (!vec_push(&h->found, next))
            return -MRD_ENOMEM;
    }
    if (h->found.n > first)
        qsort(h->found.p + first, h->found.n - first, sizeof *h->found.p, compare_u32);
    size_t kept = first;
    for (size_t i = first; i < h->found.n; i++) {
        if (i > first && h->found.p[i] == h->found.p[i - 1])
            continue; /* by two fields */
        h->found.p[kept++] = h->found.p[i];
    }
    h->found.n = kept;
    return vec_push(open, ((struct open_object){node, first, kept})) ? 0 : -MRD_ENOMEM;
}

/* Visits all that can be reached from a root, deepest first. */
static int visit(struct heap *h, struct open_objects *open, uint32_t root, strid java)
{
    int rc = enter(h, open, root, NODE_NONE, java);
    while (rc == 0 && open->n) {
        struct open_object *top = &open->p[open->n - 1];
        if (stop_asked(h->stop))
            return -MRD_ECANCELLED;
        if (top->next == top->end) {
            open->n--;
            h->found.n = open->n ? open->p[open->n - 1].end : 0;
            continue;
        }
        uint32_t row = h->found.p[top->next++];
        if (h->distance[row - h->first] == 0)
            continue;
        rc = enter(h, open, row, top->node, java);
        h->distance[row - h->first] = 0; /* taken: no other is one step before it */
    }
    return rc;
}

/* A dump without roots: lost with its end, or never there. */
static int no_roots(struct heap *h, strid java, struct error *err)
{
    const struct table *t = &h->st->t[T_heap_graph];
    for (uint32_t r = 0; r < t->n_rows; r++) {
        if (table_get(t, heap_graph_c_upid, r) != h->upid || table_get(t, heap_graph_c_ts, r) != h->ts ||
            !table_get(t, heap_graph_c_truncated, r))
            continue;
        strid text = strpool_intern_str(&h->st->strings, "ERROR: INCOMPLETE GRAPH (try increasing buffer size)");
        uint32_t node = profile_tree_child(h->tree, NODE_NONE, text, java, 0, COL_NULL);
        if (node == NODE_FAILED)
            return -MRD_ENOMEM;
        profile_tree_add(&h->tree->nodes.p[node], 1, 1);
        return 0;
    }
    return error_set(
        err, -MRD_ESQL,
        "experimental_flamegraph: process %lld has no heap graph with roots at %lld; heap_graph lists them",
        (long long)h->upid, (long long)h->ts);
}

static int fill(struct heap *h, struct error *err)
{
    struct open_objects open = {0};
    strid java = strpool_intern_str(&h->st->strings, "JAVA");
    int rc = find_weak_classes(h);
    if (rc == 0)
        rc = measure_distances(h);
    size_t roots = 0;
    while (roots < h->queue.n && h->distance[h->queue.p[roots] - h->first] == 0)
        roots++; /* they stand first in the queue */
    if (rc == 0 && !roots)
        return no_roots(h, java, err);
    for (size_t i = 0; i < roots && rc == 0; i++)
        rc = visit(h, &open, h->queue.p[i], java);
    vec_free(&open);
    return rc;
}

int profile_tree_of_heap_graph(struct storage *st, int64_t upid, int64_t ts, struct profile_tree *out, stop_flag *stop,
                               struct error *err)
{
    struct heap h = {.st = st, .tree = out, .stop = stop, .upid = upid, .ts = ts};
    h.objects = &st->t[T_heap_graph_object];
    h.references = &st->t[T_heap_graph_reference];
    h.classes = &st->t[T_heap_graph_class];
    uint32_t last = 0;
    bool any = false;
    for (uint32_t r = 0; r < h.objects->n_rows; r++) {
        if (!is_of_dump(&h, r))
            continue;
        if (!any)
            h.first = r;
        any = true;
        last = r;
    }
    h.n = any ? last - h.first + 1 : 0;
    h.distance = mem_alloc((h.n + 1) * sizeof *h.distance);
    int rc = h.distance ? fill(&h, err) : -MRD_ENOMEM;
    vec_free(&h.queue);
    vec_free(&h.found);
    mem_free(h.distance);
    mem_free(h.weak);
    return rc;
}
