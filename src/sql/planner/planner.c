/* The entry of the planner, and what its plans share. */
#include "sql/extensions.h"
#include "sql/planner/outer.h"
#include "sql/planner/planner_private.h"

#include <strings.h>

static const struct {
    const char *name;
    unsigned bit;
} functions[] = {{"count", FUNCTION_COUNT}, {"sum", FUNCTION_SUM},   {"min", FUNCTION_MIN},
                 {"max", FUNCTION_MAX},     {"lead", FUNCTION_LEAD}, {"lag", FUNCTION_LAG}};

unsigned planner_function(const struct planner *p, struct sql_name name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (sql_name_is(name, functions[i].name))
            return p->e->functions_made & functions[i].bit ? 0 : functions[i].bit;
    return 0;
}

/* Others that sql/plan knows. */
static const char *const others[] = {"abs",
                                     "avg",
                                     "cast",
                                     "ceil",
                                     "char",
                                     "coalesce",
                                     "cume_dist",
                                     "date",
                                     "datetime",
                                     "dense_rank",
                                     "exp",
                                     "extract_arg",
                                     "first_value",
                                     "floor",
                                     "format",
                                     "glob",
                                     "group_concat",
                                     "hex",
                                     "ifnull",
                                     "iif",
                                     "instr",
                                     "json_array",
                                     "json_group_array",
                                     "json_object",
                                     "json_quote",
                                     "julianday",
                                     "last_value",
                                     "length",
                                     "like",
                                     "ln",
                                     "log",
                                     "log10",
                                     "log2",
                                     "lower",
                                     "ltrim",
                                     "median",
                                     "nth_value",
                                     "ntile",
                                     "nullif",
                                     "percent_rank",
                                     "percentile",
                                     "percentile_cont",
                                     "percentile_disc",
                                     "pow",
                                     "power",
                                     "printf",
                                     "quote",
                                     "rank",
                                     "replace",
                                     "round",
                                     "row_number",
                                     "rtrim",
                                     "sqrt",
                                     "strftime",
                                     "substr",
                                     "substring",
                                     "time",
                                     "total",
                                     "trace_dur",
                                     "trace_end",
                                     "trace_start",
                                     "trim",
                                     "typeof",
                                     "unixepoch",
                                     "upper"};

void planner_function_made(struct engine *e, const char *name)
{
    e->n_functions_made++;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcasecmp(name, others[i]) == 0)
            e->functions_made |= FUNCTION_OTHER;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcasecmp(name, functions[i].name) == 0)
            e->functions_made |= functions[i].bit | FUNCTION_OTHER;
}

void planner_switch(struct engine *e, bool on)
{
    e->planner_off = !on;
}

bool planner_is_on(const struct engine *e)
{
    return !e->planner_off;
}

void planner_free(struct engine *e)
{
    schema_free(e);
    outer_free(e);
}

static bool is_query(const struct sql_token *p, size_t n)
{
    size_t i = 0;
    while (i < n && token_is_blank(p[i].kind))
        i++;
    return i < n && p[i].kind == TOKEN_WORD &&
           (token_is(p[i].text, p[i].len, "select") || token_is(p[i].text, p[i].len, "with"));
}

bool planner_parse(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n, struct sql_tree *tree)
{
    return !e->planner_off && is_query(p, n) && sql_tree_parse(tree, arena, p, n);
}

/* ---- tables of plans ---- */

void plan_table_close(struct plan_table *t)
{
    runtime_table_unref(t->runtime);
    mem_free(t->name);
    *t = (struct plan_table){0};
}

bool plan_table_open(struct plan_table *t, struct engine *e, const char *name)
{
    const struct engine_known_table *known = engine_find_known(e, name);
    *t = (struct plan_table){0};
    if (!known)
        return false;
    struct runtime_table *runtime = known->vtab->source->runtime;
    char *copy = mem_strdup(name);
    if (copy) /* else nothing is held */
        *t = (struct plan_table){copy, known->table, runtime ? runtime_table_ref(runtime) : NULL, false};
    if (copy && known->table == &e->all_args && !e->all_args_ready) {
        t->outline = true;
        t->table = args_outline(e);
        if (!t->table)
            plan_table_close(t);
    }
    return t->table != NULL;
}

const struct table *plan_table_rows(const struct plan_table *t, struct engine *e)
{
    const struct table *rows = t->runtime ? t->table : engine_find_table(e, t->name);
    if (!rows || rows != (t->outline ? &e->all_args : t->table))
        return NULL;
    if (!rows->final)
        table_finalize((struct table *)(uintptr_t)rows);
    return rows;
}

bool plan_column_is_valid(const struct table *t, int at)
{
    return at >= VTAB_ROW && at < (int)t->def->n_columns;
}

void planner_result(const struct engine *e, sqlite3_context *ctx, enum col_type type, int64_t word)
{
    if (word == column_null(type))
        return;
    if (type == COL_STR) {
        struct slice s = strpool_view(&e->storage->strings, (strid)word);
        sqlite3_result_text(ctx, (const char *)s.p, (int)s.len, SQLITE_STATIC);
    } else if (type == COL_F64) {
        sqlite3_result_double(ctx, column_f64(word));
    } else {
        sqlite3_result_int64(ctx, word);
    }
}

int planner_attach(struct engine *e, struct error *err)
{
    return engine_register_module(e, "__intrinsic_aggregate", &aggregate_module, err);
}
