/* DIRECTLY_CONNECTED_FLOW, FOLLOWING_FLOW, PRECEDING_FLOW: flows that can be reached from a slice. */
#include "base/vec.h"
#include "sql/flow_graph.h"
#include "sql/operators/table_functions.h"

static int connected(struct engine *e, sqlite3_value **args, struct table *out, struct error *err, uint8_t directions,
                     bool relatives)
{
    const struct storage *st = engine_storage(e);
    const struct table *flows = &st->t[T_flow];
    struct row_list found = {0};
    uint32_t start;
    int rc = start_row(args[0], st->t[T_slice].n_rows, &start, err);
    if (rc || start == UINT32_MAX || flows->n_rows == 0)
        return rc;
    rc = flow_graph_find(e, start, directions, relatives, &found);
    for (size_t k = 0; k < found.n && rc == 0; k++) {
        int64_t words[FLOW_FUNCTION_COLUMNS] = {out->n_rows}; /* id of the row, then the columns of flow */
        for (uint32_t i = 0; i + 1 < FLOW_FUNCTION_COLUMNS; i++)
            words[i + 1] = table_get(flows, i, found.p[k]);
        rc = table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
    }
    vec_free(&found);
    return rc;
}

static int directly_connected(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, FLOW_OUTGOING | FLOW_INCOMING, false);
}

static int following(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, FLOW_OUTGOING, true);
}

static int preceding(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    return connected(e, args, out, err, FLOW_INCOMING, true);
}

static const struct table_def def = {"", flow_function_columns, FLOW_FUNCTION_COLUMNS, ""};

const struct engine_table_function flow_table_functions[] = {
    {"directly_connected_flow", &def, 1, ROWS_AUTO_ID, directly_connected},
    {"following_flow", &def, 1, ROWS_AUTO_ID, following},
    {"preceding_flow", &def, 1, ROWS_AUTO_ID, preceding},
};
const size_t flow_table_functions_n = sizeof flow_table_functions / sizeof *flow_table_functions;
