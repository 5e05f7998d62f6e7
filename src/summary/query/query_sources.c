/* Where the rows of a query come from: one row of a table for each kind of source, and the plain ones. */
#include "summary/query/generator.h"

#include <stdio.h>

#define COUNT_OF(a)  (sizeof(a) / sizeof *(a))
#define SOURCE(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__SOURCE_##name

static int put_table(struct query_text *t, const structured_query *q)
{
    int rc = 0;
    if (q->table->module_name && *q->table->module_name)
        rc = need_module(t->g, "module_name", q->table->module_name);
    return rc < 0 ? rc : put_column(t, "table_name", q->table->table_name);
}

static int put_simple_slices(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__SimpleSlices *s = q->simple_slices;
    const struct {
        const char *column, *glob;
    } globs[] = {{"name", s->slice_name_glob},
                 {"thread_name", s->thread_name_glob},
                 {"process_name", s->process_name_glob},
                 {"track_name", s->track_name_glob}};
    const char *before = " WHERE ";
    put_sql(t, "(SELECT id, ts, dur, name AS slice_name, thread_name, process_name, track_name"
               " FROM thread_or_process_slice");
    for (size_t i = 0; i < COUNT_OF(globs); i++) {
        if (!globs[i].glob)
            continue;
        put_sql(t, "%s%s GLOB ", before, globs[i].column);
        put_string(t, globs[i].glob);
        before = " AND ";
    }
    put_sql(t, ")");
    return need_module(t->g, NULL, "slices.with_context");
}

static int put_inner_query(struct query_text *t, const structured_query *q)
{
    uint32_t unit;
    int rc = nested_query(t->g, "inner_query", -1, q->inner_query, USED_ONCE, &unit);
    if (rc == 0)
        put_unit(t, unit);
    return rc;
}

static int put_inner_query_id(struct query_text *t, const structured_query *q)
{
    uint32_t unit;
    const char *table;
    int rc = shared_query(t->g, q->inner_query_id, &unit, &table);
    if (rc == 0 && table)
        put_name(t, table);
    else if (rc == 0)
        put_unit(t, unit);
    return rc;
}

static const struct source {
    Mrd__PerfettoSqlStructuredQuery__SourceCase kind;
    const char *field; /* put in the path; NULL: the function names its fields itself */
    bool named;        /* what it puts is a name */
    int (*put)(struct query_text *t, const structured_query *q);
} sources[] = {
    {SOURCE(TABLE), "table", true, put_table},
    {SOURCE(SQL), "sql", false, put_sql_source},
    {SOURCE(SIMPLE_SLICES), "simple_slices", false, put_simple_slices},
    {SOURCE(INNER_QUERY), NULL, true, put_inner_query},
    {SOURCE(INNER_QUERY_ID), NULL, true, put_inner_query_id},
    {SOURCE(INTERVAL_INTERSECT), "interval_intersect", false, put_interval_intersect},
    {SOURCE(EXPERIMENTAL_JOIN), "experimental_join", false, put_join},
    {SOURCE(EXPERIMENTAL_UNION), "experimental_union", false, put_union},
    {SOURCE(EXPERIMENTAL_ADD_COLUMNS), "experimental_add_columns", false, put_add_columns},
    {SOURCE(EXPERIMENTAL_CREATE_SLICES), "experimental_create_slices", false, put_create_slices},
    {SOURCE(EXPERIMENTAL_TIME_RANGE), "experimental_time_range", false, put_time_range},
    {SOURCE(EXPERIMENTAL_FILTER_TO_INTERVALS), "experimental_filter_to_intervals", false, put_filter_to_intervals},
    {SOURCE(EXPERIMENTAL_COUNTER_INTERVALS), "experimental_counter_intervals", false, put_counter_intervals},
    {SOURCE(EXPERIMENTAL_FILTER_IN), "experimental_filter_in", false, put_filter_in},
};

static const struct source *find_source(const structured_query *q)
{
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (sources[i].kind == q->source_case)
            return &sources[i];
    return NULL;
}

bool is_narrowing(const structured_query *q)
{
    const struct source *s = find_source(q);
    return s && s->named && !q->group_by && !q->order_by && !q->has_limit && !q->has_offset;
}

bool is_whole(const structured_query *q)
{
    if (q->source_case == SOURCE(TABLE) && q->table->table_name && !is_plain_name(q->table->table_name))
        return false; /* an expression in its place */
    return is_narrowing(q) && !q->n_filters && !q->experimental_filter_group && !q->n_select_columns;
}

int put_source(struct query_text *t, const structured_query *q)
{
    const struct source *s = find_source(q);
    if (!s)
        return query_fail(t->g, -MRD_EINVALID, NULL, "no source: a table, sql, inner_query or the like is needed");
    int rc = s->field ? path_enter(t->g, s->field, -1) : 0;
    if (rc == 0)
        rc = s->put(t, q);
    if (rc == 0 && s->field)
        path_leave(t->g);
    return rc;
}
