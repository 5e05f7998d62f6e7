/* The sources that put rows of several queries together: joins, added columns, unions, rows that are in another.
 */
#include "summary/query/generator.h"

#include <stdio.h>
#include <string.h>

typedef Mrd__PerfettoSqlStructuredQuery__ExperimentalJoin__EqualityColumns equality_columns;
typedef Mrd__PerfettoSqlStructuredQuery__ExperimentalJoin__FreeformCondition freeform_condition;

enum { MAX_UNION = 500 /* parts; SQLite takes no more */ };

/* table.`name`, which cannot be an expression. */
static int put_column_of(struct query_text *t, const char *table, const char *field, const char *name)
{
    int rc = check_name(t->g, field, name);
    put_sql(t, "%s.", table);
    if (rc == 0)
        put_name(t, name);
    return rc;
}

static int put_equality(struct query_text *t, const equality_columns *c, const char *left, const char *right)
{
    int rc = put_column_of(t, left, "equality_columns.left_column", c->left_column);
    put_sql(t, " = ");
    return rc < 0 ? rc : put_column_of(t, right, "equality_columns.right_column", c->right_column);
}

static int check_freeform(struct query_text *t, const freeform_condition *c)
{
    int rc = check_name(t->g, "freeform_condition.left_query_alias", c->left_query_alias);
    if (rc == 0)
        rc = check_name(t->g, "freeform_condition.right_query_alias", c->right_query_alias);
    if (rc == 0 && !c->sql_expression)
        rc = query_fail(t->g, -MRD_EINVALID, "freeform_condition.sql_expression", "is missing");
    return rc;
}

/* ---- join ---- */

#define JOIN_TYPE(name)     MRD__PERFETTO_SQL_STRUCTURED_QUERY__EXPERIMENTAL_JOIN__TYPE__##name
#define CONDITION(of, name) MRD__PERFETTO_SQL_STRUCTURED_QUERY__EXPERIMENTAL_##of##__CONDITION_##name

static const char *join_word(const Mrd__PerfettoSqlStructuredQuery__ExperimentalJoin *j)
{
    if (!j->has_type || j->type == JOIN_TYPE(INNER))
        return " JOIN ";
    return j->type == JOIN_TYPE(LEFT) ? " LEFT JOIN " : NULL;
}

int put_join(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalJoin *j = q->experimental_join;
    const freeform_condition *free_form =
        j->condition_case == CONDITION(JOIN, FREEFORM_CONDITION) ? j->freeform_condition : NULL;
    uint32_t left, right;
    int rc = nested_query(t->g, "left_query", -1, j->left_query, USED_ONCE, &left);
    if (rc == 0)
        rc = nested_query(t->g, "right_query", -1, j->right_query, USED_ONCE, &right);
    if (rc == 0 && !join_word(j))
        rc = query_fail(t->g, -MRD_EINVALID, "type", "%d is not a type of join", (int)j->type);
    if (rc == 0 && j->condition_case == CONDITION(JOIN, _NOT_SET))
        rc = query_fail(t->g, -MRD_EINVALID, NULL, "equality_columns or freeform_condition is needed");
    if (rc == 0 && free_form)
        rc = check_freeform(t, free_form);
    if (rc < 0)
        return rc;
    put_sql(t, "(SELECT * FROM ");
    put_unit(t, left);
    put_sql(t, " AS ");
    put_name(t, free_form ? free_form->left_query_alias : "l");
    put_sql(t, "%s", join_word(j));
    put_unit(t, right);
    put_sql(t, " AS ");
    put_name(t, free_form ? free_form->right_query_alias : "r");
    put_sql(t, " ON ");
    rc = free_form ? put_expression(t, "freeform_condition.sql_expression", free_form->sql_expression)
                   : put_equality(t, j->equality_columns, "l", "r");
    put_sql(t, ")");
    return rc;
}

/* ---- added columns ---- */

static int put_input_column(struct query_text *t, const query_column *c)
{
    int rc = 0;
    put_sql(t, ", ");
    if (c->column_name_or_expression && strcmp(c->column_name_or_expression, "*") == 0)
        put_sql(t, "input.*");
    else
        rc = put_column_of(t, "input", "column_name_or_expression", c->column_name_or_expression);
    if (rc < 0 || !c->alias || !*c->alias)
        return rc;
    rc = check_name(t->g, "alias", c->alias);
    put_sql(t, " AS ");
    if (rc == 0)
        put_name(t, c->alias);
    return rc;
}

/* Its aliases are fixed, so that an expression reads the same wherever it stands. */
static int put_core_condition(struct query_text *t, const freeform_condition *c)
{
    int rc = check_freeform(t, c);
    if (rc == 0 && strcmp(c->left_query_alias, "core") != 0)
        rc = query_fail(t->g, -MRD_EINVALID, "freeform_condition.left_query_alias", "must be 'core', is '%.100s'",
                        c->left_query_alias);
    if (rc == 0 && strcmp(c->right_query_alias, "input") != 0)
        rc = query_fail(t->g, -MRD_EINVALID, "freeform_condition.right_query_alias", "must be 'input', is '%.100s'",
                        c->right_query_alias);
    return rc < 0 ? rc : put_expression(t, "freeform_condition.sql_expression", c->sql_expression);
}

int put_add_columns(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalAddColumns *a = q->experimental_add_columns;
    uint32_t core, input;
    int rc = nested_query(t->g, "core_query", -1, a->core_query, USED_ONCE, &core);
    if (rc == 0)
        rc = nested_query(t->g, "input_query", -1, a->input_query, USED_ONCE, &input);
    if (rc == 0 && !a->n_input_columns)
        rc = query_fail(t->g, -MRD_EINVALID, "input_columns", "is empty");
    if (rc == 0 && a->condition_case == CONDITION(ADD_COLUMNS, _NOT_SET))
        rc = query_fail(t->g, -MRD_EINVALID, NULL, "equality_columns or freeform_condition is needed");
    put_sql(t, "(SELECT core.*");
    for (size_t i = 0; i < a->n_input_columns && rc == 0; i++) {
        rc = path_enter(t->g, "input_columns", (int)i);
        if (rc == 0)
            rc = put_input_column(t, a->input_columns[i]);
        if (rc == 0)
            path_leave(t->g);
    }
    if (rc < 0)
        return rc;
    put_sql(t, " FROM ");
    put_unit(t, core);
    put_sql(t, " AS core LEFT JOIN ");
    put_unit(t, input);
    put_sql(t, " AS input ON ");
    rc = a->condition_case == CONDITION(ADD_COLUMNS, FREEFORM_CONDITION)
             ? put_core_condition(t, a->freeform_condition)
             : put_equality(t, a->equality_columns, "core", "input");
    put_sql(t, ")");
    return rc;
}

/* ---- filter in ---- */

int put_filter_in(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalFilterIn *f = q->experimental_filter_in;
    uint32_t base, match;
    int rc = nested_query(t->g, "base", -1, f->base_, USED_ONCE, &base);
    if (rc == 0)
        rc = nested_query(t->g, "match_values", -1, f->match_values, USED_ONCE, &match);
    if (rc < 0)
        return rc;
    put_sql(t, "(SELECT b.* FROM ");
    put_unit(t, base);
    put_sql(t, " AS b WHERE ");
    rc = put_column_of(t, "b", "base_column", f->base_column);
    put_sql(t, " IN (SELECT ");
    if (rc == 0)
        rc = put_column_of(t, "m", "match_column", f->match_column);
    put_sql(t, " FROM ");
    put_unit(t, match);
    put_sql(t, " AS m))");
    return rc;
}

/* ---- union ---- */

static const char *output_name(const query_column *c)
{
    if (c->alias)
        return c->alias;
    return c->column_name_or_expression ? c->column_name_or_expression : c->column_name ? c->column_name : "";
}

/* Parts of a union that say their columns must have those of the first one, in any order. */
static int check_part(struct query_text *t, const structured_query *first, const structured_query *part)
{
    struct strpool names = {0};
    int rc = 0;
    if (!first->n_select_columns || !part->n_select_columns || first == part)
        return 0;
    if (part->n_select_columns != first->n_select_columns)
        return query_fail(t->g, -MRD_EINVALID, "select_columns", "has %zu columns, those of queries[0] %zu",
                          part->n_select_columns, first->n_select_columns);
    for (size_t i = 0; i < part->n_select_columns && rc == 0; i++)
        if (!strpool_intern_str(&names, output_name(part->select_columns[i])))
            rc = query_fail(t->g, -MRD_ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < first->n_select_columns && rc == 0; i++) {
        const char *name = output_name(first->select_columns[i]);
        if (!strpool_find(&names, name, strlen(name)))
            rc = query_fail(t->g, -MRD_EINVALID, "select_columns", "lacks '%.100s' of queries[0]", name);
    }
    strpool_free(&names);
    return rc;
}

static bool same_order(const structured_query *first, const structured_query *part)
{
    for (size_t i = 0; i < first->n_select_columns; i++)
        if (strcmp(output_name(first->select_columns[i]), output_name(part->select_columns[i])) != 0)
            return false;
    return true;
}

/* Columns go by their place in SQL: those of a part in another order are named in the order of the first. */
static void put_part(struct query_text *t, const structured_query *first, const structured_query *part, uint32_t unit)
{
    bool by_place = !first->n_select_columns || !part->n_select_columns || same_order(first, part);
    put_sql(t, "SELECT %s", by_place ? "*" : "");
    for (size_t i = 0; !by_place && i < first->n_select_columns; i++) {
        put_sql(t, "%s", i ? ", " : "");
        put_name(t, output_name(first->select_columns[i]));
    }
    put_sql(t, " FROM ");
    put_unit(t, unit);
}

int put_union(struct query_text *t, const structured_query *q)
{
    const Mrd__PerfettoSqlStructuredQuery__ExperimentalUnion *u = q->experimental_union;
    int rc = 0;
    if (u->n_queries < 2)
        return query_fail(t->g, -MRD_EINVALID, "queries", "a union needs two or more, there is %zu", u->n_queries);
    if (u->n_queries > MAX_UNION)
        return query_fail(t->g, -MRD_ELIMIT, "queries", "more than %d", MAX_UNION);
    for (size_t i = 0; i < u->n_queries && rc == 0; i++) {
        uint32_t unit;
        rc = path_enter(t->g, "queries", (int)i);
        if (rc == 0)
            rc = check_part(t, u->queries[0], u->queries[i]);
        if (rc < 0)
            return rc;
        path_leave(t->g);
        rc = nested_query(t->g, "queries", (int)i, u->queries[i], USED_ONCE, &unit);
        if (rc < 0)
            return rc;
        put_sql(t, "%s", !i ? "(" : u->use_union_all ? " UNION ALL " : " UNION ");
        put_part(t, u->queries[0], u->queries[i], unit);
    }
    put_sql(t, ")");
    return rc;
}
