/* One dump of Chrome's memory while it is worked out: the parts of each process, who owns what, and what each counts
 * for. */
#ifndef MERIDIAN_IMPORTER_PROFILING_MEMORY_GRAPH_H
#define MERIDIAN_IMPORTER_PROFILING_MEMORY_GRAPH_H

#include "importer/profiling/profiling_internal.h"

#define MEMORY_NODE_NONE UINT32_MAX

struct memory_node {
    uint32_t parent, first_child, next; /* nodes; MEMORY_NODE_NONE */
    uint32_t depth;
    uint32_t owns, owned_by; /* edges: the one it is the source of; the first of those it is the target of */
    uint32_t row;            /* of memory_snapshot_node */
    strid name, path;
    struct arg_list entries;

    bool has_size;
    uint64_t size, effective_size;
    uint64_t not_owning, not_owned;                  /* bytes of its parts that own nothing, that nobody owns */
    double owning_share, owned_share, owning, owned; /* of itself; and of all above it */
    uint8_t mark;
};

struct memory_edge {
    uint32_t source, target; /* nodes */
    uint32_t importance;
    uint32_t next; /* of the same target */
};

struct memory_graph {
    struct machine_ctx *m;
    VEC(struct memory_node)
    nodes; /* 0: the root of what is shared; then one root for each process, and the parts */
    VEC(struct memory_edge)
    edges;
    VEC(uint32_t)
    stack;
    struct u64map by_name; /* hash of parent and name -> node */
    struct u64map by_id;   /* id -> node */
    struct u64map entries; /* hash of node and name: seen */
};

/* The node of a path ("a/b/c") under a root, made with its parents when new. MEMORY_NODE_NONE for a path that is no
 * name, or when out of memory (im->failed). */
uint32_t memory_graph_node(struct memory_graph *g, uint32_t root, struct slice path);
/* The root of a new graph. */
uint32_t memory_graph_root(struct memory_graph *g);
void memory_graph_edge(struct memory_graph *g, uint32_t source, uint32_t target, uint32_t importance);
/* Works out sizes and what they count for; children are in the order of their names after it. */
void memory_graph_finish(struct memory_graph *g);
void memory_graph_free(struct memory_graph *g);

#endif
