/* CREATE PERFETTO TABLE … AS SELECT: the columns that a plan has made become those of the table, without a row that
 * goes through SQLite. */
#include "sql/plan/plan_private.h"

#include <string.h>

static enum runtime_type kind_of(const struct column *c)
{
    if (c->min > c->max) /* all NULL: the table does not know more */
        return RUNTIME_ANY;
    return c->type == COL_STR ? RUNTIME_STRING : c->type == COL_F64 ? RUNTIME_DOUBLE : RUNTIME_LONG;
}

/* Are the columns of the types that were declared? What is to be converted or refused goes the long way. */
static bool suits(const struct table *t, const struct runtime_schema *schema, uint8_t *types, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        enum runtime_type want = schema ? schema->types[i] : RUNTIME_ANY, is = kind_of(&t->columns[i]);
        if (want != RUNTIME_ANY && is != RUNTIME_ANY && want != is)
            return false;
        types[i] = (uint8_t)(is == RUNTIME_ANY ? want : is);
    }
    return true;
}

/* Gives the columns to the new table. Those that are all NULL get its type. */
static void move_columns(struct table *from, struct table *to)
{
    uint32_t tail = from->n_rows & COL_CHUNK_MASK;
    if (tail == 0 && from->n_rows)
        tail = from->n_rows - (from->columns[0].n_chunks << COL_CHUNK_SHIFT);
    for (uint32_t i = 0; i < to->def->n_columns; i++) {
        enum col_type type = (enum col_type)to->columns[i].type;
        column_free(&to->columns[i]);
        to->columns[i] = from->columns[i];
        column_init(&from->columns[i], (enum col_type)from->columns[i].type);
        if (to->columns[i].type != type)
            column_retype(&to->columns[i], type, tail);
    }
    to->n_rows = from->n_rows;
    to->tail_cap = from->tail_cap;
    to->final = false;
    from->n_rows = from->tail_cap = 0;
}

static int hand_over(struct engine *e, sqlite3_stmt *select, const struct runtime_schema *schema, struct table *t,
                     struct runtime_table **out, struct error *err)
{
    uint32_t n = (uint32_t)sqlite3_column_count(select);
    const char *names[PLAN_MAX_ITEMS];
    uint8_t types[PLAN_MAX_ITEMS];
    struct table_builder b = {0};
    if (!suits(t, schema, types, n))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        names[i] = sqlite3_column_name(select, (int)i);
    int rc = table_builder_init(&b, e->storage, n, names, types, err);
    if (rc)
        return rc;
    move_columns(t, &b.t->table);
    rc = table_builder_finish(&b, out, err);
    return rc ? rc : 1;
}

int plan_materialise(struct engine *e, sqlite3_stmt *select, const struct runtime_schema *schema,
                     struct runtime_table **out, struct error *err)
{
    if (e->plan_statement != select || !select)
        return 0;
    struct table *t = NULL;
    int rc = plan_run_to_table(e->plan, &t);
    if (rc == SQLITE_NOMEM)
        rc = error_set(err, -MRD_ENOMEM, "out of memory");
    else /* whoever steps it is told of an interrupt, too */
        rc = rc ? 0 : hand_over(e, select, schema, t, out, err);
    stage_free(t);
    return rc;
}

/* Leaves out what nobody reads. Anything but a column of a table might be an error, or more than a plan can hold, and
 * is computed all the same. */
static bool leave_out(struct query_plan *p, const bool *needed)
{
    if (p->distinct)
        return true;
    for (uint32_t i = 0; i < p->n_items; i++) {
        if (needed[i] || p->items[i].expr->op != X_COLUMN)
            continue;
        if (!(p->items[i].expr = plan_const(p, PLAN_INT, COL_NULL)))
            return false;
    }
    return true;
}

int plan_rows(struct engine *e, const char *sql, const bool *needed, struct runtime_table **out)
{
    struct sql_tokens tokens = {0};
    struct arena arena = {0};
    struct error err = {0};
    sqlite3_stmt *stmt = NULL;
    int rc = 0;
    *out = NULL;
    if (sql_tokens_scan_text(&tokens, sql, strlen(sql)))
        stmt = plan_prepare_table(e, &arena, tokens.p, tokens.n);
    if (stmt && (!needed || e->plan_statement != stmt || leave_out(e->plan, needed)))
        rc = plan_materialise(e, stmt, NULL, out, &err);
    sqlite3_finalize(stmt);
    sql_tokens_free(&tokens);
    arena_free(&arena);
    return rc == 1;
}
