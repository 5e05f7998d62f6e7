/* The call stacks of a trace as a forest.
 *
 * A trace has samples, heaps, profiles without time, or slices alone: the first of these that it has is read. Nodes of
 * one name under one parent are one. */
#ifndef MERIDIAN_SHELL_CONVERT_STACK_FOREST_H
#define MERIDIAN_SHELL_CONVERT_STACK_FOREST_H

#include "base/u64map.h"
#include "base/vec.h"
#include "shell/shell.h"

#define STACK_NO_NODE UINT32_MAX

struct stack_node {
    uint32_t parent, depth;
    uint32_t first_child, next; /* STACK_NO_NODE: none */
    uint64_t self, total;
    size_t name; /* in `names` */
};

struct stack_forest {
    VEC(struct stack_node)
    nodes; /* the first is the root */
    VEC(char)
    names;               /* each ends with 0 */
    struct u64map by_id; /* of the query -> node */
    struct u64map named; /* hash of parent and name -> node */
    bool failed;
};

/* What is to be read: the first that the trace has of samples, heaps, profiles and slices; or time blocked, by the
 * stacks of those who waited or of those who woke them. */
enum stack_values { STACKS_ANY, STACKS_OFF_CPU, STACKS_WAKERS };

/* Reads it, and adds it to what is there. *unit: of its values. -MRD_ENOTFOUND: it has no stacks. */
int stack_forest_read(struct shell *sh, struct stack_forest *f, enum stack_values what, const char **unit,
                      struct error *err);
void stack_forest_free(struct stack_forest *f);

/* The node of a name under a parent (STACK_NO_NODE: the root itself), made when new; what separates frames and lines,
 * and what is not UTF-8, is replaced. Latches `failed` when out of memory. */
uint32_t stack_node(struct stack_forest *f, uint32_t parent, const char *name);
const char *stack_name(const struct stack_forest *f, uint32_t node);

/* The totals out of the values of the nodes themselves. */
void stack_forest_sum(struct stack_forest *f);

#endif
