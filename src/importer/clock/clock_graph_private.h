/* The inside of the clock graph; for clock_graph.c, clock_convert.c and clock_state.c only. */
#ifndef MERIDIAN_IMPORTER_CLOCK_CLOCK_GRAPH_PRIVATE_H
#define MERIDIAN_IMPORTER_CLOCK_CLOCK_GRAPH_PRIVATE_H

#include "base/hash.h"
#include "importer/clock/clock_graph.h"
#include "importer/sync/transform.h"

enum { NO_NODE = -1, CLOCKS_RECENT = 16 };

/* Readings of one clock in snapshots of one type (the same clocks in the same order). */
struct series {
    uint32_t type; /* number of the list of clocks in the snapshot, by age: older types are searched first */
    VEC(uint32_t)
    snapshots; /* ascending */
    VEC(int64_t)
    values; /* ns, in step with snapshots; ascending unless the clock is non-monotonic */
};

/* A step to another clock: by the snapshots of a type, or by a map (type 0). */
struct edge {
    uint32_t to;
    uint32_t type;
    uint32_t map;   /* number of the map, from 1; 0: snapshots */
    bool backwards; /* from the host's clock to the remote one */
};

/* The nodes of a type of snapshots, by clock. */
struct members {
    uint32_t *nodes;
    uint32_t n;
};

struct node {
    struct clock_id clock;
    int64_t multiplier;
    int64_t last_ns; /* of an incremental clock: what deltas count from */
    bool read;       /* has been in a snapshot */
    bool incremental;
    bool non_monotonic; /* no edges start here any more */
    uint64_t visited;   /* number of the search that came by last */
    uint32_t joined;    /* a node of the same part of the graph; itself: it stands for the part */
    VEC(struct series)
    series;
    uint32_t
        only_type; /* the edges are those to the other members of this type; there is no list of them. 0: `edges` */
    VEC(struct edge)
    edges; /* by clock of `to`, then type: the order of the search */

    /* The last conversion to trace time, for [first, end) of this clock: value + delta, or when the path ends with a
     * map: map(value + delta), by its straight piece when it has such. */
    uint64_t cache_version; /* valid when equal to the graph's */
    int64_t cache_first;
    int64_t cache_end;
    int64_t cache_delta;
    const struct sync_transform *cache_piece;
    struct clock_map cache_map;
};

/* A step of a search. */
struct step {
    uint32_t node;
    uint32_t before; /* index of the step that led here */
    uint32_t depth;
    struct edge edge;
};

struct clock_graph {
    struct storage *st;
    const uint32_t *trace_file; /* row of the file being read; NULL: row 0 */
    VEC(struct step)
    steps; /* of the search that runs */
    uint64_t searches;
    VEC(struct node)
    nodes;
    struct u64map by_clock; /* hash of clock_id -> first node; collisions are told apart by a walk */
    struct u64map domains;  /* files' clocks on a machine (file << 32 | machine) that have been related to trace time */
    VEC(struct clock_map)
    maps;
    VEC(struct members)
    members;              /* of the types, from 1 */
    struct u64map types;  /* hash of a snapshot's clocks, in order -> type, from 1 (0 is for maps) */
    uint64_t secret;      /* of hashes of clocks */
    struct u64map series; /* node << 32 | type -> index into the node's series */
    uint32_t next_snapshot;
    uint64_t version; /* changes with every snapshot and every change of the trace clock */
    struct clock_id trace_clock;
    bool trace_clock_set;
    bool trace_clock_fixed;         /* by a manifest */
    bool used;                      /* something was converted to trace time */
    uint32_t recent[CLOCKS_RECENT]; /* nodes looked up last, + 1, by sequence: the writers of a file take turns */
    bool failed;
};

static inline bool same_clock(struct clock_id a, struct clock_id b)
{
    return a.id == b.id && a.sequence == b.sequence && a.machine == b.machine && a.file == b.file;
}

/* As it was when it was opened. */
void clock_graph_clear(struct clock_graph *g);

/* Makes a node known by its clock. False when out of memory. */
bool clock_graph_index_node(struct clock_graph *g, uint32_t node);

/* The node of a clock, or NO_NODE. */
int clock_graph_find_node(struct clock_graph *g, struct clock_id c);

/* The steps that a node offers, one after the other, in the order of the search: from *at = 0. */
bool clock_graph_next_edge(const struct clock_graph *g, uint32_t node, size_t *at, struct edge *e);

/* The first step from one node to another one, in the order of the search. */
bool clock_graph_edge_to(const struct clock_graph *g, uint32_t node, uint32_t to, struct edge *e);

/* Notes that two nodes are in one part of the graph. Parts are never told apart again: that there is no way between
 * two of them is certain, and that there is one within a part is not. */
void clock_graph_join(struct clock_graph *g, uint32_t a, uint32_t b);

/* The node that stands for a node's part. */
uint32_t clock_graph_part(struct clock_graph *g, uint32_t node);

/* The map of an edge; NULL: it goes by snapshots. */
static inline const struct clock_map *edge_map(const struct clock_graph *g, const struct edge *e)
{
    return e->map ? &g->maps.p[e->map - 1] : NULL;
}

/* What snapshots of a type say about a node; NULL: there is none. */
struct series *clock_graph_find_series(const struct clock_graph *g, uint32_t node, uint32_t type);

#endif
