/* A profile as one tree: functions or classes below those that called or kept them, equal ones merged. */
#ifndef MERIDIAN_SQL_OPERATORS_PROFILE_TREE_H
#define MERIDIAN_SQL_OPERATORS_PROFILE_TREE_H

#include "base/u64map.h"
#include "base/vec.h"
#include "sql/engine.h"

#define NODE_NONE   UINT32_MAX
#define NODE_FAILED (UINT32_MAX - 1)

struct profile_node {
    uint32_t parent; /* NODE_NONE: at the top */
    uint32_t depth;
    strid name, mapping;
    int64_t file, line; /* 0, COL_NULL: not known */
    int64_t sums[4];    /* of itself: bytes, count, the same of allocations that may be freed */
    int64_t below[4];   /* the same with all below */
    uint32_t row;       /* in the result */
    bool kept;
};

struct profile_tree {
    VEC(struct profile_node)
    nodes;                  /* parents before children */
    struct u64map children; /* hash of parent, name, mapping -> one of `nodes` */
};

/* The node of that name and mapping below `parent`, made when new; NODE_FAILED when out of memory. */
uint32_t profile_tree_child(struct profile_tree *t, uint32_t parent, strid name, strid mapping, int64_t file,
                            int64_t line);
void profile_tree_add(struct profile_node *n, int64_t count, int64_t size);
void profile_tree_free(struct profile_tree *t);

/* Fills the tree with the classes of a heap dump, by the shortest ways from its roots. */
int profile_tree_of_heap_graph(struct storage *st, int64_t upid, int64_t ts, struct profile_tree *out, stop_flag *stop,
                               struct error *err);

#endif
