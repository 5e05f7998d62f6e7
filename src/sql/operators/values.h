/* Values that pass between the intrinsic functions as typed pointers: tables, arrays, graphs, sets of intervals.
 *
 * A pointer value is counted, since a cursor may outlive the register that it came in. */
#ifndef MERIDIAN_SQL_OPERATORS_VALUES_H
#define MERIDIAN_SQL_OPERATORS_VALUES_H

#include "base/u64map.h"
#include "base/vec.h"
#include "sql/functions/functions.h"

/* ---- tables: struct runtime_table as "TABLE" ---- */

void value_result_table(sqlite3_context *ctx, struct runtime_table *t); /* takes the reference over */
/* Borrowed; NULL when the value is none. */
struct runtime_table *value_table(sqlite3_value *v);

/* A builder whose columns are all LONG; names as given. */
bool value_builder(sqlite3_context *ctx, struct table_builder *b, uint32_t n, const char *const *names,
                   const uint8_t *types);
/* Finishes it into the result of the function; errors too. */
void value_builder_result(sqlite3_context *ctx, struct table_builder *b, int rc, struct error *err);

/* ---- arrays: "ARRAY<LONG>", "ARRAY<DOUBLE>", "ARRAY<STRING>" ---- */

struct array_value {
    int refs;
    uint8_t type;   /* SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT */
    int64_t *words; /* integers, doubles by their bits, strids */
    size_t n, cap;
};

/* Integers of an "ARRAY<LONG>"; NULL when the value is none. */
const struct array_value *value_long_array(sqlite3_value *v);

/* ---- graphs: "GRAPH" ---- */

/* Nodes have dense numbers by first appearance; edges of a node are adjacent, in the order they came. */
struct graph_value {
    struct u64map index; /* id -> dense number */
    int64_t *ids;        /* [dense number] */
    uint32_t *first;     /* [n + 1] into edges */
    uint32_t *edges;     /* dense numbers of destinations */
    uint32_t n, n_edges;
    VEC(uint32_t)
    src;
    VEC(uint32_t)
    dst; /* while it is built */
    VEC(int64_t)
    id_list;
    bool failed;
};

const struct graph_value *value_graph(sqlite3_value *v);
/* Collecting edges, then the adjacency. False when out of memory, or stopped. */
uint32_t graph_node(struct graph_value *g, int64_t id);
bool graph_edge(struct graph_value *g, int64_t src, int64_t dst);
bool graph_build(struct graph_value *g, stop_flag *stop);
void graph_free(void *g);

#endif
