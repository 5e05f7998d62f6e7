/* Works out what the parts of a memory dump count for: memory with several owners is divided among them. */
#include "importer/profiling/memory_graph.h"

#include "base/hash.h"

#include <stdlib.h>

enum { MAX_DEPTH = 32 /* parts inside each other; Chrome writes 8 at most, and each costs many times its bytes */ };
enum { NEW, OPEN, DONE };

void memory_graph_free(struct memory_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        arg_list_free(&g->nodes.p[i].entries);
    vec_free(&g->nodes);
    vec_free(&g->edges);
    vec_free(&g->stack);
    u64map_free(&g->by_name);
    u64map_free(&g->by_id);
    u64map_free(&g->entries);
}

static uint32_t out_of_memory(struct memory_graph *g)
{
    g->m->im->failed = true;
    return MEMORY_NODE_NONE;
}

static uint32_t add_node(struct memory_graph *g, struct memory_node node)
{
    node.first_child = node.next = node.owns = node.owned_by = node.row = MEMORY_NODE_NONE;
    node.owning_share = node.owned_share = 1;
    if (!vec_push(&g->nodes, node))
        return out_of_memory(g);
    return (uint32_t)g->nodes.n - 1;
}

uint32_t memory_graph_root(struct memory_graph *g)
{
    return add_node(g, (struct memory_node){.parent = MEMORY_NODE_NONE});
}

/* The child of a name, made when new; `path` is that of the child. */
static uint32_t child_of(struct memory_graph *g, uint32_t parent, strid name, struct slice path)
{
    uint64_t *known = u64map_put(&g->by_name, hash_keyed(g->m->profiling->secret, parent, name), NULL);
    if (!known)
        return out_of_memory(g);
    if (*known)
        return (uint32_t)(*known - 1);
    struct memory_node node = {
        .parent = parent, .depth = g->nodes.p[parent].depth + 1, .name = name, .path = import_slice(g->m->im, path)};
    uint32_t child = add_node(g, node);
    if (child == MEMORY_NODE_NONE)
        return child;
    *known = (uint64_t)child + 1;
    g->nodes.p[child].next = g->nodes.p[parent].first_child;
    g->nodes.p[parent].first_child = child;
    return child;
}

uint32_t memory_graph_node(struct memory_graph *g, uint32_t root, struct slice path)
{
    uint32_t at = root;
    size_t slashes = 0;
    for (size_t i = 0; i < path.len; i++)
        slashes += path.p[i] == '/';
    if (!path.len || slashes >= MAX_DEPTH)
        return MEMORY_NODE_NONE;
    for (size_t from = 0; from <= path.len && at != MEMORY_NODE_NONE;) {
        const uint8_t *slash = memchr(path.p + from, '/', path.len - from);
        size_t to = slash ? (size_t)(slash - path.p) : path.len;
        at = child_of(g, at, import_slice(g->m->im, slice_of(path.p + from, to - from)), slice_of(path.p, to));
        from = to + 1;
    }
    return at;
}

void memory_graph_edge(struct memory_graph *g, uint32_t source, uint32_t target, uint32_t importance)
{
    struct memory_edge edge = {source, target, importance, g->nodes.p[target].owned_by};
    if (!vec_push(&g->edges, edge)) {
        out_of_memory(g);
        return;
    }
    g->nodes.p[source].owns = g->nodes.p[target].owned_by = (uint32_t)g->edges.n - 1;
}

static bool is_inside(const struct memory_graph *g, uint32_t node, uint32_t whole)
{
    while (node != MEMORY_NODE_NONE && g->nodes.p[node].depth > g->nodes.p[whole].depth)
        node = g->nodes.p[node].parent;
    return node == whole;
}

/* The node after `node` in the tree under `top`; `skip`: without what is under it. */
static uint32_t next_in_tree(const struct memory_graph *g, uint32_t node, uint32_t top, bool skip)
{
    if (!skip && g->nodes.p[node].first_child != MEMORY_NODE_NONE)
        return g->nodes.p[node].first_child;
    for (; node != top; node = g->nodes.p[node].parent)
        if (g->nodes.p[node].next != MEMORY_NODE_NONE)
            return g->nodes.p[node].next;
    return MEMORY_NODE_NONE;
}

/* The sizes of all leaves under a node, but for parts that own another one under it: that is counted there. */
static uint64_t sum_of_parts(const struct memory_graph *g, uint32_t whole)
{
    uint64_t sum = 0;
    for (uint32_t i = g->nodes.p[whole].first_child; i != MEMORY_NODE_NONE;) {
        const struct memory_node *n = &g->nodes.p[i];
        bool owns_inside = n->owns != MEMORY_NODE_NONE && is_inside(g, g->edges.p[n->owns].target, whole);
        if (!owns_inside && n->first_child == MEMORY_NODE_NONE && n->has_size)
            sum += n->size;
        i = next_in_tree(g, i, whole, owns_inside);
    }
    return sum;
}

/* The size of a node whose parts and owners are done. */
static void find_size(struct memory_graph *g, uint32_t i)
{
    struct memory_node *n = &g->nodes.p[i];
    bool known = n->has_size;
    uint64_t size = known ? n->size : 0;
    for (uint32_t e = n->owned_by; e != MEMORY_NODE_NONE; e = g->edges.p[e].next) {
        const struct memory_node *owner = &g->nodes.p[g->edges.p[e].source];
        known |= owner->has_size;
        if (owner->has_size && owner->size > size)
            size = owner->size;
    }
    bool has_parts = n->first_child != MEMORY_NODE_NONE;
    for (uint32_t c = n->first_child; c != MEMORY_NODE_NONE; c = g->nodes.p[c].next)
        known |= g->nodes.p[c].has_size;
    uint64_t parts = has_parts ? sum_of_parts(g, i) : 0;
    n->has_size = known;
    n->size = parts > size ? parts : size;
    if (!has_parts || !known || parts >= size)
        return;
    static const char name[] = "<unspecified>";
    struct strpool *strings = &g->m->st->strings;
    strid path =
        n->path ? strpool_printf(strings, "%s/%s", strpool_cstr(strings, n->path), name) : import_str(g->m->im, name);
    uint32_t rest = child_of(g, i, import_str(g->m->im, name), slice_str(strpool_cstr(strings, path)));
    if (rest == MEMORY_NODE_NONE)
        return;
    g->nodes.p[rest].has_size = true;
    g->nodes.p[rest].size = size - parts;
    g->nodes.p[rest].mark = DONE;
}

/* How much of a node is its own: of parts that own nothing else, and of parts that nobody owns. */
static void find_own_sizes(struct memory_graph *g, uint32_t i)
{
    struct memory_node *n = &g->nodes.p[i];
    n->not_owning = n->not_owned = 0;
    if (!n->has_size)
        return;
    if (n->first_child == MEMORY_NODE_NONE)
        n->not_owning = n->not_owned = n->size;
    for (uint32_t c = n->first_child; c != MEMORY_NODE_NONE; c = g->nodes.p[c].next) {
        const struct memory_node *child = &g->nodes.p[c];
        if (child->owns == MEMORY_NODE_NONE)
            n->not_owning += child->not_owning;
        if (child->owned_by == MEMORY_NODE_NONE)
            n->not_owned += child->not_owned;
    }
}

struct owner {
    uint32_t importance, node, order;
    uint64_t size;
};

static int compare_owners(const void *a, const void *b)
{
    const struct owner *x = a, *y = b;
    if (x->importance != y->importance)
        return x->importance > y->importance ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* Divides a node among its owners: the most important ones first, those of one importance step by step, as far as the
 * smallest goes, then the next one. */
static void divide(struct memory_graph *g, uint32_t i)
{
    struct memory_node *n = &g->nodes.p[i];
    VEC(struct owner) owners = {0};
    if (!n->has_size || n->owned_by == MEMORY_NODE_NONE)
        return;
    for (uint32_t e = n->owned_by; e != MEMORY_NODE_NONE; e = g->edges.p[e].next) {
        uint32_t source = g->edges.p[e].source;
        if (!vec_push(&owners, (struct owner){g->edges.p[e].importance, source, e, g->nodes.p[source].not_owning})) {
            out_of_memory(g);
            vec_free(&owners);
            return;
        }
    }
    qsort(owners.p, owners.n, sizeof *owners.p, compare_owners);
    uint64_t given = 0;
    for (size_t first = 0, end; first < owners.n; first = end) {
        double share = 0;
        for (end = first; end < owners.n && owners.p[end].importance == owners.p[first].importance;)
            end++;
        for (size_t k = first; k < end; k++) {
            const struct owner *o = &owners.p[k];
            if (o->size > given) {
                share += (double)(o->size - given) / (double)(end - k);
                given = o->size;
            }
            g->nodes.p[o->node].owning_share = o->size ? share / (double)o->size : 0;
        }
    }
    vec_free(&owners);
    n->owned_share = n->not_owned > given ? (double)(n->not_owned - given) / (double)n->not_owned : 0;
}

/* What of a node counts, after its whole and what it owns are done. */
static void multiply(struct memory_graph *g, uint32_t i)
{
    struct memory_node *n = &g->nodes.p[i];
    const struct memory_node *whole = n->parent == MEMORY_NODE_NONE ? NULL : &g->nodes.p[n->parent];
    n->owned = n->owned_share * (whole ? whole->owned : 1);
    if (n->owns != MEMORY_NODE_NONE)
        n->owning = n->owning_share * g->nodes.p[g->edges.p[n->owns].target].owning;
    else
        n->owning = whole ? whole->owning : 1;
}

static void find_effective_size(struct memory_graph *g, uint32_t i)
{
    struct memory_node *n = &g->nodes.p[i];
    n->effective_size = 0;
    if (!n->has_size)
        return;
    if (n->first_child == MEMORY_NODE_NONE)
        n->effective_size = (uint64_t)((double)n->size * n->owning * n->owned);
    for (uint32_t c = n->first_child; c != MEMORY_NODE_NONE; c = g->nodes.p[c].next)
        n->effective_size += g->nodes.p[c].effective_size;
}

static void push(struct memory_graph *g, uint32_t node)
{
    if (node != MEMORY_NODE_NONE && g->nodes.p[node].mark == NEW && !vec_push(&g->stack, node))
        out_of_memory(g);
}

static void push_parts_and_owners(struct memory_graph *g, uint32_t i)
{
    for (uint32_t e = g->nodes.p[i].owned_by; e != MEMORY_NODE_NONE; e = g->edges.p[e].next)
        push(g, g->edges.p[e].source);
    for (uint32_t c = g->nodes.p[i].first_child; c != MEMORY_NODE_NONE; c = g->nodes.p[c].next)
        push(g, c);
}

static void push_whole_and_owned(struct memory_graph *g, uint32_t i)
{
    push(g, g->nodes.p[i].parent);
    if (g->nodes.p[i].owns != MEMORY_NODE_NONE)
        push(g, g->edges.p[g->nodes.p[i].owns].target);
}

/* Calls `visit` for each node, after the nodes that `push_before` pushes for it. Nodes that wait for each other in a
 * circle, which no dump has, are visited in some order. */
static void walk(struct memory_graph *g, void (*push_before)(struct memory_graph *g, uint32_t node),
                 void (*visit)(struct memory_graph *g, uint32_t node))
{
    for (size_t i = 0; i < g->nodes.n; i++)
        g->nodes.p[i].mark = NEW;
    for (uint32_t i = 0; i < g->nodes.n; i++) {
        push(g, i);
        while (g->stack.n) {
            uint32_t at = g->stack.p[g->stack.n - 1];
            if (g->nodes.p[at].mark == NEW) {
                g->nodes.p[at].mark = OPEN;
                push_before(g, at);
                continue;
            }
            g->stack.n--;
            if (g->nodes.p[at].mark == OPEN) {
                g->nodes.p[at].mark = DONE;
                visit(g, at);
            }
        }
    }
}

struct named {
    const char *name;
    uint32_t node;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static void sort_children(struct memory_graph *g)
{
    VEC(struct named) children = {0};
    for (size_t i = 0; i < g->nodes.n; i++) {
        children.n = 0;
        for (uint32_t c = g->nodes.p[i].first_child; c != MEMORY_NODE_NONE; c = g->nodes.p[c].next)
            if (!vec_push(&children, (struct named){strpool_cstr(&g->m->st->strings, g->nodes.p[c].name), c})) {
                out_of_memory(g);
                vec_free(&children);
                return;
            }
        if (children.n)
            qsort(children.p, children.n, sizeof *children.p, compare_names);
        uint32_t next = MEMORY_NODE_NONE;
        for (size_t k = children.n; k-- > 0;) {
            g->nodes.p[children.p[k].node].next = next;
            next = children.p[k].node;
        }
        g->nodes.p[i].first_child = next;
    }
    vec_free(&children);
}

void memory_graph_finish(struct memory_graph *g)
{
    walk(g, push_parts_and_owners, find_size);
    walk(g, push_parts_and_owners, find_own_sizes);
    walk(g, push_parts_and_owners, divide);
    walk(g, push_whole_and_owned, multiply);
    walk(g, push_parts_and_owners, find_effective_size);
    sort_children(g);
}
