/* Recognises the SELECTs that __intrinsic_aggregate answers, and writes the statement that asks it. */
#include "sql/planner/planner_private.h"

#include <string.h>

struct item {      /* of the SELECT list */
    char function; /* 0: a column; else as in struct aggregate_plan */
    int16_t at;    /* column of the table */
    const struct sql_item *written;
    const char *name; /* of a column: as it is declared */
};

struct order {
    int item;
    bool desc;
};

/* A statement, as far as it has been understood. */
struct shape {
    struct planner *p;
    const struct sql_select *core;
    const struct schema_table *names;
    const struct table *table;
    struct item items[AGGREGATE_MAX_COLUMNS];
    int n_items;
    struct order orders[AGGREGATE_MAX_COLUMNS];
    int n_orders;
    struct sql_span values[AGGREGATE_MAX_TESTS]; /* literals; empty for IS NULL */
    struct aggregate_plan *plan;
};

/* ---- names and items ---- */

static const struct schema_column *column_of(const struct shape *s, const struct sql_expr *x)
{
    const struct sql_from *from = s->core->from;
    if (x->kind != EXPR_COLUMN || x->schema.len ||
        (x->table.len && !sql_name_equal(x->table, from->alias.len ? from->alias : from->name)))
        return NULL;
    return schema_column(s->names, x->name);
}

/* A column, or an aggregate of one. */
static bool read_value(const struct shape *s, const struct sql_expr *x, struct item *out)
{
    const struct sql_expr *of = x;
    unsigned f = 0;
    *out = (struct item){0};
    if (x->kind == EXPR_FUNCTION) {
        f = planner_function(s->p, x->name);
        if (!f || x->distinct || x->filter || x->over || (x->star ? f != FUNCTION_COUNT : x->n_args != 1))
            return false;
        if (x->star) {
            out->function = '*';
            return true;
        }
        of = x->args;
    }
    out->function = f == FUNCTION_COUNT ? 'c' : f == FUNCTION_SUM ? 's' : f == FUNCTION_MIN ? 'm' : f ? 'x' : 0;
    const struct schema_column *c = column_of(s, of);
    if (!c || (f & (FUNCTION_LEAD | FUNCTION_LAG)))
        return false;
    out->at = c->at;
    out->name = c->name;
    return !out->function || (c->at >= 0 && (c->type != COL_STR || out->function == 'c'));
}

static bool read_items(struct shape *s)
{
    if (s->core->n_items > AGGREGATE_MAX_COLUMNS)
        return false;
    for (const struct sql_item *i = s->core->items; i; i = i->next) {
        struct item *item = &s->items[s->n_items];
        if (i->star || !read_value(s, i->expr, item))
            return false;
        item->written = i;
        s->n_items++;
    }
    return true;
}

/* The item that a number names ("2"), or -1. */
static int item_by_place(const struct shape *s, const struct sql_expr *x)
{
    const struct sql_token *t = &s->p->tree->tokens[x->at.first];
    int place = 0;
    if (x->kind != EXPR_INTEGER || t->len > 2)
        return -1;
    for (uint32_t i = 0; i < t->len; i++)
        place = place * 10 + (t->text[i] - '0');
    return place >= 1 && place <= s->n_items ? place - 1 : -1;
}

/* The item whose alias a name is; -1: none; -2: several. */
static int item_by_alias(const struct shape *s, const struct sql_expr *x)
{
    int found = -1;
    for (int i = 0; x->kind == EXPR_COLUMN && !x->table.len && i < s->n_items; i++)
        if (sql_name_equal(s->items[i].written->alias, x->name))
            found = found == -1 ? i : -2;
    return found;
}

/* ---- WHERE ---- */

/* Is it a literal that compares with the column as one of its own values does? */
static bool suits_column(const struct sql_expr *x, const struct schema_column *c, bool text)
{
    bool strings = c->type == COL_STR;
    if (x->kind == EXPR_UNARY && x->op == SQL_SUBTRACT)
        x = x->args;
    else if (x->kind == EXPR_STRING)
        return strings;
    return !text && !strings && (x->kind == EXPR_INTEGER || x->kind == EXPR_FLOAT);
}

static bool add_test(struct shape *s, const struct sql_expr *column, enum plan_op op, const struct sql_expr *value)
{
    const struct schema_column *c = column_of(s, column);
    uint32_t n = s->plan->n_tests;
    if (!c || n == AGGREGATE_MAX_TESTS || (value && !suits_column(value, c, op == PLAN_GLOB)))
        return false;
    s->plan->tests[n] = (struct plan_term){c->at, (uint8_t)op};
    s->values[n] = value ? value->at : (struct sql_span){0, 0};
    s->plan->n_tests++;
    return true;
}

static bool read_where(struct shape *s, const struct sql_expr *x)
{
    switch (x->kind) {
    case EXPR_BINARY:
        if (x->op == SQL_AND)
            return read_where(s, x->args) && read_where(s, x->args->next);
        if (x->op == SQL_IS || x->op == SQL_ISNOT)
            return !x->distinct && x->args->next->kind == EXPR_NULL &&
                   add_test(s, x->args, x->op == SQL_IS ? PLAN_ISNULL : PLAN_NOTNULL, NULL);
        return x->op <= SQL_GE && add_test(s, x->args, (enum plan_op)x->op, x->args->next);
    case EXPR_UNARY:
        return (x->op == SQL_ISNULL || x->op == SQL_NOTNULL) && add_test(s, x->args, (enum plan_op)x->op, NULL);
    case EXPR_BETWEEN:
        return !x->negated && add_test(s, x->args, PLAN_GE, x->args->next) &&
               add_test(s, x->args, PLAN_LE, x->args->next->next);
    case EXPR_MATCH:
        return x->op == SQL_GLOB && !x->negated && x->n_args == 2 && add_test(s, x->args, PLAN_GLOB, x->args->next);
    default:
        return false;
    }
}

/* ---- GROUP BY, ORDER BY, LIMIT ---- */

static bool read_groups(struct shape *s)
{
    double groups = 1;
    for (const struct sql_expr *x = s->core->group; x; x = x->next) {
        int item = item_by_place(s, x);
        const struct schema_column *c = column_of(s, x);
        if (item >= 0 && s->items[item].function)
            return false;
        if (item < 0 && (!c || item_by_alias(s, x) != -1)) /* a name of two meanings stays with SQLite */
            return false;
        int16_t at = item >= 0 ? s->items[item].at : c->at;
        const struct column *column = at >= 0 ? &s->table->columns[at] : NULL;
        if (!column || column->type == COL_F64 || s->plan->n_groups == AGGREGATE_MAX_GROUPED)
            return false;
        s->plan->groups[s->plan->n_groups++].at = at;
        groups *= column->min <= column->max ? (double)column->max - (double)column->min + 2 : 2;
    }
    return groups <= AGGREGATE_MAX_GROUPS;
}

static int group_of(const struct shape *s, int16_t at)
{
    for (uint32_t g = 0; g < s->plan->n_groups; g++)
        if (s->plan->groups[g].at == at)
            return (int)g;
    return -1;
}

static int ordered_item(const struct shape *s, const struct sql_expr *x)
{
    struct item want;
    int item = item_by_place(s, x);
    if (item < 0 && x->kind != EXPR_INTEGER)
        item = item_by_alias(s, x);
    if (item != -1 || x->kind == EXPR_INTEGER)
        return item;
    if (!read_value(s, x, &want))
        return -1;
    for (int i = 0; i < s->n_items; i++)
        if (s->items[i].function == want.function && s->items[i].at == want.at)
            return i;
    return -1;
}

static bool read_orders(struct shape *s)
{
    for (const struct sql_order *o = s->core->query->order; o; o = o->next) {
        int item = ordered_item(s, o->expr);
        if (item < 0 || o->nulls_first || o->nulls_last || s->n_orders == AGGREGATE_MAX_COLUMNS)
            return false;
        s->orders[s->n_orders++] = (struct order){item, o->desc};
    }
    /* SQLite turns the groups round when as many columns order the answer (the order of ties shows it). */
    for (uint32_t g = 0; s->n_orders == (int)s->plan->n_groups && g < s->plan->n_groups; g++)
        s->plan->groups[g].desc = s->orders[g].desc;
    return true;
}

/* Every item is a group or an aggregate, and there is one of either. */
static bool read_outputs(struct shape *s)
{
    for (int i = 0; i < s->n_items; i++) {
        if (s->items[i].function) {
            uint32_t n = s->plan->n_aggregates++;
            s->plan->aggregates[n].function = s->items[i].function;
            s->plan->aggregates[n].at = s->items[i].at;
        } else if (group_of(s, s->items[i].at) < 0) {
            return false;
        }
    }
    return s->plan->n_aggregates || s->plan->n_groups;
}

static bool is_number(const struct sql_expr *x)
{
    return !x || x->kind == EXPR_INTEGER;
}

/* ---- the other statement ---- */

/* Which column of the table function an item is: groups first, then aggregates. */
static int output_of(const struct shape *s, int item)
{
    int n = (int)s->plan->n_groups;
    if (!s->items[item].function)
        return group_of(s, s->items[item].at);
    for (int i = 0; i < item; i++)
        n += s->items[i].function != 0;
    return n;
}

/* SQLite names a result after its alias, the column that it is, or its text. */
static void put_name(sqlite3_str *out, const struct shape *s, const struct item *item)
{
    size_t len;
    const struct sql_name alias = item->written->alias;
    if (alias.len)
        sqlite3_str_appendf(out, "\"%.*w\"", (int)alias.len, alias.p);
    else if (!item->function)
        sqlite3_str_appendf(out, "\"%w\"", item->name);
    else
        sqlite3_str_appendf(out, "\"%w\"", sql_item_text(s->p->tree, s->p->arena, item->written->at, &len));
}

static void put_text(sqlite3_str *out, const struct shape *s, struct sql_span span)
{
    size_t len;
    sqlite3_str_appendf(out, "%s", sql_tree_text(s->p->tree, s->p->arena, span, &len));
}

static char *write_statement(const struct shape *s)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    for (int i = 0; i < s->n_items; i++) {
        sqlite3_str_appendf(out, "%s c%d AS ", i ? "," : "SELECT", output_of(s, i));
        put_name(out, s, &s->items[i]);
    }
    sqlite3_str_appendall(out, " FROM __intrinsic_aggregate(?1");
    for (uint32_t i = 0; i < s->plan->n_tests; i++) {
        sqlite3_str_appendall(out, s->values[i].end ? "," : ",0");
        put_text(out, s, s->values[i]);
    }
    sqlite3_str_appendall(out, ")");
    for (int i = 0; i < s->n_orders; i++)
        sqlite3_str_appendf(out, "%s c%d%s", i ? "," : " ORDER BY", output_of(s, s->orders[i].item),
                            s->orders[i].desc ? " DESC" : "");
    const struct sql_query *q = s->core->query;
    if (q->limit) {
        sqlite3_str_appendall(out, " LIMIT ");
        put_text(out, s, q->limit->at);
    }
    if (q->offset) {
        sqlite3_str_appendall(out, " OFFSET ");
        put_text(out, s, q->offset->at);
    }
    return sqlite3_str_finish(out);
}

/* ---- all of it ---- */

void aggregate_plan_free(void *plan)
{
    if (!plan)
        return;
    plan_table_close(&((struct aggregate_plan *)plan)->table);
    mem_free(plan);
}

/* Does the statement ask for one set of args? The virtual table decodes only that one. */
static bool wants_one_set(struct engine *e, const struct shape *s)
{
    if (s->table != &e->all_args && !s->plan->table.outline)
        return false;
    for (uint32_t i = 0; i < s->plan->n_tests; i++)
        if (s->plan->tests[i].column == args_c_arg_set_id && s->plan->tests[i].op == PLAN_EQ)
            return true;
    return false;
}

/* The one core, from one table by name. */
static const struct sql_select *plain_core(const struct sql_query *q)
{
    const struct sql_select *s = q->selects;
    const struct sql_from *from = s->from;
    if (q->ctes || s->next || s->rows || s->distinct || s->having || s->windows || !is_number(q->limit) ||
        !is_number(q->offset))
        return NULL;
    return from && !from->next && from->form == SOURCE_TABLE && !from->schema.len && !from->indexed ? s : NULL;
}

/* Aggregates in the list, or groups: most statements have neither, and need no look at the schema. */
static bool aggregates(const struct planner *p, const struct sql_select *s)
{
    for (const struct sql_item *i = s->items; i && !s->group; i = i->next)
        if (i->star || i->expr->kind != EXPR_FUNCTION || !planner_function(p, i->expr->name))
            return false;
    return true;
}

/* The least or greatest of columns that sort the table: the ends of it are enough, which plans of columns look at. */
static bool looks_at_ends(const struct shape *s)
{
    const struct aggregate_plan *p = s->plan;
    bool ends = !p->n_groups && !p->n_tests;
    for (uint32_t i = 0; i < p->n_aggregates && ends; i++) {
        int at = p->aggregates[i].at;
        const struct column *c = at < 0 ? NULL : &s->table->columns[at];
        ends = (p->aggregates[i].function == 'm' || p->aggregates[i].function == 'x') &&
               (!c || (c->sorted && c->type != COL_STR));
    }
    return ends;
}

static bool understand(struct shape *s)
{
    struct engine *e = s->p->e;
    if (!read_items(s) || (s->core->where && !read_where(s, s->core->where)) || wants_one_set(e, s))
        return false;
    if (engine_find_table(e, s->names->table) != s->table) /* decodes all args */
        return false;
    if (!s->table->final)
        table_finalize((struct table *)(uintptr_t)s->table);
    return s->table->n_rows >= PLANNER_MIN_ROWS && read_groups(s) && read_orders(s) && read_outputs(s) &&
           !looks_at_ends(s);
}

sqlite3_stmt *aggregate_prepare(struct planner *p)
{
    struct shape s = {.p = p, .core = plain_core(p->tree->query)};
    sqlite3_stmt *stmt = NULL;
    if (!s.core || !aggregates(p, s.core) || !(s.names = schema_find(p->e, s.core->from->name)))
        return NULL;
    s.plan = mem_zalloc(sizeof *s.plan);
    if (!s.plan || !plan_table_open(&s.plan->table, p->e, s.names->table)) {
        aggregate_plan_free(s.plan);
        return NULL;
    }
    s.table = s.plan->table.table;
    char *text = understand(&s) ? write_statement(&s) : NULL;
    if (text && !p->arena->failed && engine_compile(p->e, text, -1, 0, &stmt, NULL) == SQLITE_OK &&
        sqlite3_bind_pointer(stmt, 1, s.plan, AGGREGATE_PLAN, aggregate_plan_free) == SQLITE_OK) {
        s.plan = NULL; /* the statement's now */
    } else {
        if (stmt) /* a bind that fails has freed it */
            s.plan = NULL;
        sqlite3_finalize(stmt);
        stmt = NULL;
    }
    sqlite3_free(text);
    aggregate_plan_free(s.plan);
    return stmt;
}
