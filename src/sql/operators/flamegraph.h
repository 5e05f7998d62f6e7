/* Flame graphs: what a query asks of one, and the tree that answers.
 *
 *     CREATE VIRTUAL TABLE f USING __intrinsic_flamegraph((SELECT id, parent_id, name, value, mapping FROM …));
 *     SELECT name, depth, self_value, cumulative_value FROM f(__intrinsic_flamegraph_config(
 *       'value', 'value', 'view', 'TOP_DOWN', 'filter', 'HIDE_STACK', 'idle', 'i', 'grouping', 'mapping'))
 *
 * flamegraph.c is the table, flamegraph_config.c reads the configuration, flamegraph_tree.c filters, merges and lays
 * out. */
#ifndef MERIDIAN_SQL_OPERATORS_FLAMEGRAPH_H
#define MERIDIAN_SQL_OPERATORS_FLAMEGRAPH_H

#include "base/strpool.h"
#include "base/vec.h"
#include "sql/functions/functions.h"
#include "sql/functions/regex.h"

#define FLAME_NONE UINT32_MAX

enum flame_view { FLAME_TOP_DOWN, FLAME_BOTTOM_UP, FLAME_PIVOT, FLAME_FROM_FRAME };
enum flame_filter_kind { FLAME_SHOW_STACK, FLAME_HIDE_STACK, FLAME_HIDE_FRAME };
enum flame_aggregate_mode { FLAME_SUM, FLAME_ONE_OR_SUMMARY, FLAME_CONCAT };

struct flame_filter {
    uint8_t kind;
    struct regex *regex;
};

struct flame_aggregate {
    uint8_t mode;
    char *input, *output; /* columns */
};

/* Made by __intrinsic_flamegraph_config(); the pointer value "FLAMEGRAPH_CONFIG". */
struct flame_config {
    int refs; /* a cursor may outlive the register that the value came in */
    uint8_t view;
    struct regex *pivot; /* of FLAME_PIVOT and FLAME_FROM_FRAME */
    VEC(struct flame_filter)
    filters;
    VEC(char *)
    grouping;
    VEC(char *)
    values;
    VEC(struct flame_aggregate)
    aggregates;
};

/* A reference; NULL when the value is none. */
struct flame_config *value_flame_config(sqlite3_value *v);
void flame_config_unref(void *c);

/* ---- the frames that a graph is made of ---- */

struct flame_cell {
    uint8_t type; /* SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT (an id of the string pool), SQLITE_NULL */
    union {
        int64_t i;
        double d;
        strid s;
    };
};

struct flame_source {
    struct strpool *strings;
    stop_flag *stop;
    uint32_t n;               /* frames */
    uint32_t n_columns;       /* behind id, parent_id and name */
    char **names;             /* of those */
    int64_t *ids;             /* [frame] */
    int64_t *parent_ids;      /* [frame]; COL_NULL at roots */
    strid *frame_names;       /* [frame]; 0: NULL */
    struct flame_cell *cells; /* [frame * n_columns + column] */
    uint32_t *parents;        /* [frame] */
    uint32_t *order;          /* frames, parents before children; what hangs on a cycle is left out */
    uint32_t n_order;
};

/* The column by name; -1 when there is none. */
int flame_column(const struct flame_source *s, const char *name);

/* ---- the answer ---- */

struct flame_node {
    uint32_t parent;              /* place in the answer; FLAME_NONE at roots */
    int32_t depth;                /* 1, 2 … downwards, -1, -2 … upwards */
    uint32_t frame;               /* one of those that were merged: name and grouping columns are the same in all */
    uint32_t first_row, last_row; /* in rows: the frames that were merged */
    double x;
};

struct flame_row {
    uint32_t frame, next;
};

struct flame_tree {
    VEC(struct flame_node)
    nodes; /* by distance from the root, then from left to right */
    VEC(struct flame_row)
    rows;
    uint32_t n_values;
    double *self, *cumulative; /* [node * n_values + value] */
    int value_columns[16];     /* of the source */
    double total;              /* of the first value, of all frames */
};

/* 0, -MRD_ENOMEM, or -MRD_ESQL with the reason. The tree is to be freed either way. */
int flame_tree_build(struct flame_tree *t, const struct flame_source *s, const struct flame_config *c,
                     struct error *err);
void flame_tree_free(struct flame_tree *t);

#endif
