/* What a query does to its source: filters, groups and their aggregates, columns, order, limit. */
#include "sql/frontend/select.h"
#include "summary/query/generator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

enum { MAX_COLUMNS = 2000 }; /* SQLite takes no more */

/* ---- filters ---- */

#define OPERATOR(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__FILTER__OPERATOR__##name

static const struct filter_operator {
    Mrd__PerfettoSqlStructuredQuery__Filter__Operator op;
    bool unary;
    enum sql_op sql;
} filter_operators[] = {
    {OPERATOR(EQUAL), false, SQL_EQ},           {OPERATOR(NOT_EQUAL), false, SQL_NE},
    {OPERATOR(LESS_THAN), false, SQL_LT},       {OPERATOR(LESS_THAN_EQUAL), false, SQL_LE},
    {OPERATOR(GREATER_THAN), false, SQL_GT},    {OPERATOR(GREATER_THAN_EQUAL), false, SQL_GE},
    {OPERATOR(GLOB), false, SQL_GLOB},          {OPERATOR(IS_NULL), true, SQL_ISNULL},
    {OPERATOR(IS_NOT_NULL), true, SQL_NOTNULL},
};

static const struct filter_operator *find_operator(const query_filter *f)
{
    for (size_t i = 0; i < COUNT_OF(filter_operators); i++)
        if (f->has_op && filter_operators[i].op == f->op)
            return &filter_operators[i];
    return NULL;
}

static int put_double(struct query_text *t, double v)
{
    if (!isfinite(v))
        return query_fail(t->g, -MRD_EINVALID, "double_rhs", "%f cannot be compared with", v);
    put_sql(t, "%.17g", v);
    return 0;
}

static int put_value(struct query_text *t, const query_filter *f, size_t i)
{
    if (f->n_string_rhs)
        put_string(t, f->string_rhs[i]);
    else if (f->n_double_rhs)
        return put_double(t, f->double_rhs[i]);
    else
        put_sql(t, "%" PRId64, f->int64_rhs[i]);
    return 0;
}

/* The column against each of the values. */
static int put_alternatives(struct query_text *t, const query_filter *f, const struct filter_operator *op, size_t n)
{
    int rc = 0;
    put_sql(t, "(");
    for (size_t i = 0; i < n && rc == 0; i++) {
        put_sql(t, "%s", i ? " OR " : "");
        rc = put_operand(t, "column_name", f->column_name);
        put_sql(t, " %s%s", sql_op_text(op->sql), op->unary ? "" : " ");
        if (rc == 0 && !op->unary)
            rc = put_value(t, f, i);
    }
    put_sql(t, ")");
    return rc;
}

/* One of the values must do, of the first type that is there. Lists to be equal to may be longer than SQLite lets
 * expressions be deep. */
static int put_filter(struct query_text *t, const query_filter *f)
{
    struct generator *g = t->g;
    const struct filter_operator *op = find_operator(f);
    size_t n = f->n_string_rhs ? f->n_string_rhs : f->n_double_rhs ? f->n_double_rhs : f->n_int64_rhs;
    int rc = 0;
    if (!op)
        return query_fail(g, -MRD_EINVALID, "op", f->has_op ? "%d is not an operator" : "is missing", (int)f->op);
    if (!op->unary && !n)
        return query_fail(g, -MRD_EINVALID, NULL, "no value: one of string_rhs, double_rhs, int64_rhs is needed");
    if (op->unary || n == 1 || op->op != OPERATOR(EQUAL))
        return put_alternatives(t, f, op, op->unary ? 1 : n);
    rc = put_operand(t, "column_name", f->column_name);
    for (size_t i = 0; i < n && rc == 0; i++) {
        put_sql(t, "%s", i ? ", " : " IN (");
        rc = put_value(t, f, i);
    }
    put_sql(t, ")");
    return rc;
}

static int put_filters(struct query_text *t, query_filter *const *filters, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++) {
        put_sql(t, "%s", i ? between : "");
        int rc = path_enter(t->g, "filters", (int)i);
        if (rc == 0)
            rc = put_filter(t, filters[i]);
        if (rc < 0)
            return rc;
        path_leave(t->g);
    }
    return 0;
}

#define GROUP_OPERATOR(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__EXPERIMENTAL_FILTER_GROUP__OPERATOR__##name

/* In brackets; with the path at the group. */
static int put_filter_group(struct query_text *t, const query_filter_group *group)
{
    struct generator *g = t->g;
    const char *between = NULL;
    if (group->has_op && group->op == GROUP_OPERATOR(AND))
        between = " AND ";
    else if (group->has_op && group->op == GROUP_OPERATOR(OR))
        between = " OR ";
    if (!between)
        return query_fail(g, -MRD_EINVALID, "op", "must be AND or OR");
    if (!group->n_filters && !group->n_groups && !group->n_sql_expressions)
        return query_fail(g, -MRD_EINVALID, NULL, "has nothing in it");
    put_sql(t, "(");
    int rc = put_filters(t, group->filters, group->n_filters, between);
    for (size_t i = 0; i < group->n_groups && rc == 0; i++) {
        put_sql(t, "%s", group->n_filters || i ? between : "");
        rc = path_enter(g, "groups", (int)i);
        if (rc == 0)
            rc = put_filter_group(t, group->groups[i]);
        if (rc == 0)
            path_leave(g);
    }
    for (size_t i = 0; i < group->n_sql_expressions && rc == 0; i++) {
        put_sql(t, "%s(", group->n_filters || group->n_groups || i ? between : "");
        rc = put_expression(t, "sql_expressions", group->sql_expressions[i]);
        put_sql(t, ")");
    }
    put_sql(t, ")");
    return rc;
}

static int put_where(struct query_text *t, const structured_query *q)
{
    if (q->experimental_filter_group) {
        int rc = path_enter(t->g, "experimental_filter_group", -1);
        put_sql(t, "\nWHERE ");
        if (rc == 0)
            rc = put_filter_group(t, q->experimental_filter_group);
        if (rc == 0)
            path_leave(t->g);
        return rc;
    }
    put_sql(t, "%s", q->n_filters ? "\nWHERE " : "");
    return put_filters(t, q->filters, q->n_filters, " AND ");
}

/* ---- groups ---- */

#define AGGREGATE(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__GROUP_BY__AGGREGATE__OP__##name

/* What stands before and behind the column. */
static const struct aggregate_function {
    Mrd__PerfettoSqlStructuredQuery__GroupBy__Aggregate__Op op;
    const char *before, *behind;
} aggregate_functions[] = {
    {AGGREGATE(COUNT), "count(", ")"},
    {AGGREGATE(COUNT_DISTINCT), "count(DISTINCT ", ")"},
    {AGGREGATE(SUM), "sum(", ")"},
    {AGGREGATE(MIN), "min(", ")"},
    {AGGREGATE(MAX), "max(", ")"},
    {AGGREGATE(MEAN), "avg(", ")"},
    {AGGREGATE(MEDIAN), "percentile(", ", 50)"},
    {AGGREGATE(PERCENTILE), "percentile(", NULL}, /* behind: the percentile */
    {AGGREGATE(DURATION_WEIGHTED_MEAN), "sum(CAST(dur AS REAL) * ", ") / CAST(sum(dur) AS REAL)"},
};

static int put_percentile(struct query_text *t, const query_aggregate *a)
{
    if (!a->has_percentile)
        return query_fail(t->g, -MRD_EINVALID, "percentile", "is missing");
    if (!(a->percentile >= 0 && a->percentile <= 100))
        return query_fail(t->g, -MRD_EINVALID, "percentile", "%g is not between 0 and 100", a->percentile);
    put_sql(t, ", %.17g)", a->percentile);
    return 0;
}

static int put_aggregate(struct query_text *t, const query_aggregate *a)
{
    const struct aggregate_function *f = NULL;
    if (a->has_op && a->op == AGGREGATE(CUSTOM)) {
        if (!a->custom_sql_expression)
            return query_fail(t->g, -MRD_EINVALID, "custom_sql_expression", "is missing");
        return put_expression(t, "custom_sql_expression", a->custom_sql_expression);
    }
    for (size_t i = 0; i < COUNT_OF(aggregate_functions) && !f; i++)
        if (a->has_op && aggregate_functions[i].op == a->op)
            f = &aggregate_functions[i];
    if (!f)
        return query_fail(t->g, -MRD_EINVALID, "op", a->has_op ? "%d is not an aggregate" : "is missing", (int)a->op);
    put_sql(t, "%s", f->before);
    if (f->op == AGGREGATE(COUNT) && !(a->column_name && *a->column_name)) {
        put_sql(t, "*)");
        return 0;
    }
    int rc = put_operand(t, "column_name", a->column_name);
    if (rc == 0 && !f->behind)
        return put_percentile(t, a);
    put_sql(t, "%s", f->behind);
    return rc;
}

/* ---- columns ---- */

static const char *column_of(const query_column *c)
{
    return c->column_name_or_expression ? c->column_name_or_expression : c->column_name;
}

static int put_alias(struct query_text *t, const char *field, const char *alias)
{
    int rc = check_name(t->g, field, alias);
    put_sql(t, " AS ");
    if (rc == 0)
        put_name(t, alias);
    return rc;
}

/* Which columns of a grouped query select_columns names, and how it calls them. Of two entries the first counts. */
struct selection {
    bool all; /* there are no select_columns */
    struct strpool names;
    VEC(const char *) aliases; /* [name - 1]; NULL: as it is called */
};

static int read_selection(struct query_text *t, const structured_query *q, struct selection *s)
{
    *s = (struct selection){.all = !q->n_select_columns};
    for (size_t i = 0; i < q->n_select_columns; i++) {
        const char *column = column_of(q->select_columns[i]);
        strid id = column ? strpool_intern_str(&s->names, column) : 0;
        if (s->names.failed || (id > s->aliases.n && !vec_push(&s->aliases, q->select_columns[i]->alias)))
            return query_fail(t->g, -MRD_ENOMEM, NULL, "out of memory");
    }
    return 0;
}

static void selection_free(struct selection *s)
{
    strpool_free(&s->names);
    vec_free(&s->aliases);
}

/* Starts the next column of the list when `name` is selected; *alias is what it is renamed to, if it is. */
static bool next_column(struct query_text *t, const struct selection *s, const char *name, size_t *n,
                        const char **alias)
{
    strid id = name ? strpool_find(&s->names, name, strlen(name)) : 0;
    if (!id && !s->all)
        return false;
    *alias = id ? s->aliases.p[id - 1] : NULL;
    put_sql(t, "%s", (*n)++ ? ", " : "");
    return true;
}

static int put_group_column(struct query_text *t, const char *name, const char *alias)
{
    int rc = put_operand(t, "group_by.column_names", name);
    return rc == 0 && alias ? put_alias(t, "select_columns.alias", alias) : rc;
}

static int put_aggregate_column(struct query_text *t, const query_aggregate *a, const char *alias)
{
    int rc = put_aggregate(t, a);
    if (!alias && a->result_column_name && *a->result_column_name)
        alias = a->result_column_name;
    return rc == 0 && alias ? put_alias(t, "result_column_name", alias) : rc;
}

/* Columns of the group, then aggregates, in their own order. */
static int put_grouped_columns(struct query_text *t, const structured_query *q, const struct selection *s)
{
    const query_group_by *group = q->group_by;
    const char *alias;
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < group->n_column_names && rc == 0; i++)
        if (next_column(t, s, group->column_names[i], &n, &alias))
            rc = put_group_column(t, group->column_names[i], alias);
    for (size_t i = 0; i < group->n_aggregates && rc == 0; i++) {
        if (!next_column(t, s, group->aggregates[i]->result_column_name, &n, &alias))
            continue;
        rc = path_enter(t->g, "group_by.aggregates", (int)i);
        if (rc == 0)
            rc = put_aggregate_column(t, group->aggregates[i], alias);
        if (rc == 0)
            path_leave(t->g);
    }
    if (rc == 0 && !n)
        return query_fail(t->g, -MRD_EINVALID, "group_by",
                          s->all ? "has no columns" : "none of the select_columns exist");
    return rc;
}

int put_select_column(struct query_text *t, const query_column *c)
{
    const char *column = column_of(c);
    int rc = put_column(t, c->column_name_or_expression ? "column_name_or_expression" : "column_name", column);
    return rc == 0 && c->alias ? put_alias(t, "alias", c->alias) : rc;
}

static int put_columns(struct query_text *t, const structured_query *q)
{
    int rc = 0;
    size_t n = q->n_select_columns;
    if (q->group_by)
        n += q->group_by->n_column_names + q->group_by->n_aggregates;
    if (n > MAX_COLUMNS)
        return query_fail(t->g, -MRD_ELIMIT, q->group_by ? "group_by" : "select_columns", "more than %d columns",
                          MAX_COLUMNS);
    if (q->group_by) {
        struct selection s;
        rc = read_selection(t, q, &s);
        if (rc == 0)
            rc = put_grouped_columns(t, q, &s);
        selection_free(&s);
        return rc;
    }
    put_sql(t, "%s", q->n_select_columns ? "" : "*");
    for (size_t i = 0; i < q->n_select_columns && rc == 0; i++) {
        put_sql(t, "%s", i ? ", " : "");
        rc = path_enter(t->g, "select_columns", (int)i);
        if (rc == 0)
            rc = put_select_column(t, q->select_columns[i]);
        if (rc == 0)
            path_leave(t->g);
    }
    return rc;
}

/* ---- order and limit ---- */

#define DIRECTION(name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__ORDER_BY__DIRECTION__##name

static int put_order(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__OrderBy *order = q->order_by;
    if (!order)
        return 0;
    if (!order->n_ordering_specs)
        return query_fail(t->g, -MRD_EINVALID, "order_by", "has no ordering_specs");
    for (size_t i = 0; i < order->n_ordering_specs; i++) {
        const Mrd__PerfettoSqlStructuredQuery__OrderBy__OrderingSpec *s = order->ordering_specs[i];
        put_sql(t, "%s", i ? ", " : "\nORDER BY ");
        int rc = path_enter(t->g, "order_by.ordering_specs", (int)i);
        if (rc == 0)
            rc = put_operand(t, "column_name", s->column_name);
        if (rc == 0 && s->has_direction && s->direction > DIRECTION(DESC))
            rc = query_fail(t->g, -MRD_EINVALID, "direction", "%d is not a direction", (int)s->direction);
        if (rc < 0)
            return rc;
        put_sql(t, "%s", s->has_direction && s->direction == DIRECTION(DESC) ? " DESC" : "");
        path_leave(t->g);
    }
    return 0;
}

static int put_limit(struct query_text *t, const structured_query *q)
{
    if (q->has_limit && q->limit < 0)
        return query_fail(t->g, -MRD_EINVALID, "limit", "%" PRId64 " is negative", q->limit);
    if (q->has_offset && q->offset < 0)
        return query_fail(t->g, -MRD_EINVALID, "offset", "%" PRId64 " is negative", q->offset);
    if (q->has_offset && !q->has_limit)
        return query_fail(t->g, -MRD_EINVALID, "offset", "needs a limit");
    if (q->has_limit)
        put_sql(t, "\nLIMIT %" PRId64, q->limit);
    if (q->has_offset)
        put_sql(t, " OFFSET %" PRId64, q->offset);
    return 0;
}

static int put_group(struct query_text *t, const structured_query *q)
{
    int rc = 0;
    for (size_t i = 0; q->group_by && i < q->group_by->n_column_names && rc == 0; i++) {
        put_sql(t, "%s", i ? ", " : "\nGROUP BY ");
        rc = put_operand(t, "group_by.column_names", q->group_by->column_names[i]);
    }
    return rc;
}

int put_query(struct query_text *t, const structured_query *q)
{
    static int (*const clauses[])(struct query_text *, const structured_query *) = {put_where, put_group, put_order,
                                                                                    put_limit};
    put_sql(t, "SELECT ");
    int rc = put_columns(t, q);
    put_sql(t, "\nFROM ");
    if (rc == 0)
        rc = put_source(t, q);
    for (size_t i = 0; i < COUNT_OF(clauses) && rc == 0; i++)
        rc = clauses[i](t, q);
    return rc;
}
