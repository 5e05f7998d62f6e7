/* Flows that can be reached from a slice, for table functions and for plans. */
#ifndef MERIDIAN_SQL_FLOW_GRAPH_H
#define MERIDIAN_SQL_FLOW_GRAPH_H

#include "sql/slice_tree.h"

enum { FLOW_OUTGOING = 1, FLOW_INCOMING = 2 };

/* Appends the rows of flows that begin or end at the slice, and of those that go on from there. `relatives`: flows of
 * children follow a slice, those of ancestors precede it. What flows meet at which slice is kept by the engine. */
int flow_graph_find(struct engine *e, uint32_t slice, uint8_t directions, bool relatives, struct row_list *out);

/* The columns that functions of flows give: a number of the row in the answer, then those of the table. */
enum { FLOW_FUNCTION_COLUMNS = 5 };
extern const struct column_def flow_function_columns[FLOW_FUNCTION_COLUMNS];

#endif
