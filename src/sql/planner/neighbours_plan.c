/* Recognises lead() and lag() over one table, and rewrites their SELECTs onto __intrinsic_neighbours.
 *
 * Of a SELECT that fits, the calls become columns and the table a subquery; all that stands around it stays as it was
 * written. */
#include "sql/planner/planner_private.h"

#include <string.h>

enum { MAX_WINDOWS = 8, MAX_REWRITTEN = 16, MAX_EDITS = 200 };

/* Tokens [first, end) become this text; or the text is put in front of `first` when both are equal. */
struct edit {
    struct sql_span at;
    const char *text;
};

struct edits {
    struct edit p[MAX_EDITS];
    uint32_t n;
    struct neighbours_plan *plans[MAX_REWRITTEN];
    int n_plans;
};

struct window {
    struct sql_span at;
    int8_t step;
    int16_t of; /* column of the table */
};

/* A core, as far as it has been understood. */
struct shape {
    struct planner *p;
    const struct sql_select *core;
    const struct schema_table *names;
    const struct schema_column *columns[NEIGHBOURS_MAX_COLUMNS]; /* that occur outside of calls */
    uint32_t n_columns;
    struct window windows[MAX_WINDOWS];
    uint32_t n_windows;
    const struct sql_window *over; /* of the first call; the others say the same */
    struct plan_order order[NEIGHBOURS_MAX_COLUMNS];
    uint32_t n_order, n_partition;
};

/* ---- understanding ---- */

static const struct schema_column *column_of(const struct shape *s, const struct sql_expr *x)
{
    const struct sql_from *from = s->core->from;
    if (x->kind != EXPR_COLUMN || x->schema.len ||
        (x->table.len && !sql_name_equal(x->table, from->alias.len ? from->alias : from->name)))
        return NULL;
    return schema_column(s->names, x->name);
}

static bool note_column(struct shape *s, const struct schema_column *c)
{
    for (uint32_t i = 0; i < s->n_columns; i++)
        if (s->columns[i] == c)
            return true;
    if (!c || s->n_columns == NEIGHBOURS_MAX_COLUMNS)
        return false;
    s->columns[s->n_columns++] = c;
    return true;
}

/* PARTITION BY and ORDER BY of plain columns, as terms of an order. */
static bool read_over(const struct shape *s, const struct sql_window *w, struct plan_order *order, uint32_t *n,
                      uint32_t *n_partition)
{
    *n = 0;
    if (w->name.len || w->base.len || w->frame.len || !w->order)
        return false;
    for (const struct sql_expr *x = w->partition; x; x = x->next) {
        const struct schema_column *c = column_of(s, x);
        if (!c || *n == NEIGHBOURS_MAX_COLUMNS || c->type == COL_F64) /* equal doubles may differ in their words */
            return false;
        order[(*n)++] = (struct plan_order){c->at, false};
    }
    *n_partition = *n;
    for (const struct sql_order *o = w->order; o; o = o->next) {
        const struct schema_column *c = column_of(s, o->expr);
        if (!c || *n == NEIGHBOURS_MAX_COLUMNS || o->nulls_first || o->nulls_last)
            return false;
        order[(*n)++] = (struct plan_order){c->at, o->desc};
    }
    return true;
}

static bool same_order(const struct plan_order *a, const struct plan_order *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].column != b[i].column || a[i].desc != b[i].desc)
            return false;
    return true;
}

/* lead(column) OVER ([PARTITION BY …] ORDER BY …) */
static bool read_window(struct shape *s, const struct sql_expr *x)
{
    unsigned f = planner_function(s->p, x->name) & (FUNCTION_LEAD | FUNCTION_LAG);
    const struct schema_column *of = x->n_args == 1 ? column_of(s, x->args) : NULL;
    struct plan_order order[NEIGHBOURS_MAX_COLUMNS];
    uint32_t n, n_partition;
    if (!f || !of || x->distinct || x->filter || s->n_windows == MAX_WINDOWS ||
        !read_over(s, x->over, order, &n, &n_partition))
        return false;
    if (s->n_windows && (n != s->n_order || n_partition != s->n_partition || !same_order(order, s->order, n)))
        return false;
    memcpy(s->order, order, n * sizeof *order);
    s->n_order = n;
    s->n_partition = n_partition;
    s->windows[s->n_windows++] = (struct window){x->at, f == FUNCTION_LEAD ? 1 : -1, of->at};
    return true;
}

/* Expressions over columns and windows, row by row. */
static bool read_expr(struct shape *s, const struct sql_expr *x)
{
    if (x->kind == EXPR_FUNCTION && x->over)
        return read_window(s, x);
    if (x->kind == EXPR_COLUMN)
        return note_column(s, column_of(s, x));
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (!read_expr(s, a))
            return false;
    return true;
}

/* Functions, queries and the like, apart from windows: what looks at more than its row stays with SQLite. */
static bool is_plain(struct engine *e, const struct sql_expr *x)
{
    if (x->kind == EXPR_FUNCTION && x->over)
        return true;
    if (x->query || x->in_table)
        return false;
    if (x->kind == EXPR_FUNCTION && !schema_is_rowwise_call(e, x))
        return false;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (!is_plain(e, a))
            return false;
    return true;
}

static bool is_common_table(const struct sql_tree *t, struct sql_name name)
{
    for (const struct sql_cte *c = t->ctes; c; c = c->next_cte)
        if (sql_name_equal(c->name, name))
            return true;
    return false;
}

static bool has_window(const struct sql_expr *x)
{
    if (x->over)
        return true;
    for (const struct sql_expr *a = x->args; a; a = a->next)
        if (has_window(a))
            return true;
    return false;
}

/* Is this core of the shape, from one table by name? */
static bool understand(struct shape *s)
{
    const struct sql_select *core = s->core;
    const struct sql_from *from = core->from;
    bool windows = false;
    if (core->rows || core->distinct || core->where || core->group || core->having || core->windows ||
        core->query->order || core->query->limit || !from || from->next || from->form != SOURCE_TABLE ||
        from->schema.len || from->indexed)
        return false;
    for (const struct sql_item *i = core->items; i; i = i->next) {
        if (i->star)
            return false;
        windows = windows || has_window(i->expr);
    }
    if (!windows || is_common_table(s->p->tree, from->name))
        return false;
    s->names = schema_find(s->p->e, from->name);
    for (const struct sql_item *i = core->items; s->names && i; i = i->next)
        if (!is_plain(s->p->e, i->expr) || !read_expr(s, i->expr))
            return false;
    return s->names && s->n_columns + s->n_windows <= NEIGHBOURS_MAX_COLUMNS;
}

/* ---- the other statement ---- */

static bool add_edit(struct edits *out, struct sql_span at, const char *text)
{
    if (!text || out->n == MAX_EDITS)
        return false;
    out->p[out->n++] = (struct edit){at, text};
    return true;
}

static char letter_of(const struct schema_column *c)
{
    return neighbours_letters[c->type == COL_STR   ? NEIGHBOURS_TEXT
                              : c->type == COL_F64 ? NEIGHBOURS_DOUBLE
                                                   : NEIGHBOURS_INTEGER];
}

/* FROM (SELECT i0 AS "ts", …, c2 AS __intrinsic_w0 FROM __intrinsic_neighbours(?1)) AS "alias" */
static const char *from_text(const struct shape *s, int number)
{
    const struct sql_from *from = s->core->from;
    struct sql_name alias = from->alias.len ? from->alias : from->name;
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, "FROM (SELECT ");
    for (uint32_t i = 0; i < s->n_columns; i++)
        sqlite3_str_appendf(out, "%c%u AS \"%w\",", letter_of(s->columns[i]), i, s->columns[i]->name);
    for (uint32_t i = 0; i < s->n_windows; i++)
        sqlite3_str_appendf(out, "%sc%u AS __intrinsic_w%u", i ? "," : "", s->n_columns + i, i);
    sqlite3_str_appendf(out, " FROM __intrinsic_neighbours(?%d)) AS \"%.*w\"", number, (int)alias.len, alias.p);
    char *text = sqlite3_str_finish(out);
    const char *copy = text ? arena_strndup(s->p->arena, text, strlen(text)) : NULL;
    sqlite3_free(text);
    return copy;
}

/* SQLite names a result without alias after its text, which changes now. */
static bool add_name(struct shape *s, const struct sql_item *item, struct edits *out)
{
    size_t len;
    if (item->alias.len || !has_window(item->expr))
        return true;
    const char *text = sql_tree_text(s->p->tree, s->p->arena, item->at, &len);
    char *alias = text ? sqlite3_mprintf(" AS \"%w\"", text) : NULL;
    const char *copy = alias ? arena_strndup(s->p->arena, alias, strlen(alias)) : NULL;
    sqlite3_free(alias);
    return add_edit(out, (struct sql_span){item->at.end, item->at.end}, copy);
}

static bool add_edits(struct shape *s, struct edits *out)
{
    bool ok = add_edit(out, s->core->from_at, from_text(s, out->n_plans));
    for (uint32_t i = 0; i < s->n_windows; i++)
        ok = ok && add_edit(out, s->windows[i].at, arena_printf(s->p->arena, "__intrinsic_w%u", i));
    for (const struct sql_item *i = s->core->items; i; i = i->next)
        ok = ok && add_name(s, i, out);
    return ok;
}

void neighbours_plan_free(void *plan)
{
    if (!plan)
        return;
    plan_table_close(&((struct neighbours_plan *)plan)->table);
    mem_free(plan);
}

static bool add_plan(struct shape *s, struct edits *out)
{
    struct neighbours_plan *plan = out->n_plans < MAX_REWRITTEN ? mem_zalloc(sizeof *plan) : NULL;
    if (!plan || !plan_table_open(&plan->table, s->p->e, s->names->table)) {
        neighbours_plan_free(plan);
        return false;
    }
    out->plans[out->n_plans++] = plan;
    memcpy(plan->order, s->order, sizeof plan->order);
    plan->n_order = s->n_order;
    plan->n_partition = s->n_partition;
    for (uint32_t i = 0; i < s->n_columns; i++, plan->n_outputs++)
        plan->outputs[plan->n_outputs].at = s->columns[i]->at;
    for (uint32_t i = 0; i < s->n_windows; i++, plan->n_outputs++) {
        plan->outputs[plan->n_outputs].at = s->windows[i].of;
        plan->outputs[plan->n_outputs].step = s->windows[i].step;
    }
    return true;
}

/* Large enough, and rows are there? Args are decoded for it, if need be. */
static bool is_worthwhile(struct shape *s)
{
    const struct table *t = engine_find_table(s->p->e, s->names->table);
    return t && t->n_rows >= PLANNER_MIN_ROWS;
}

static void put_tokens(sqlite3_str *out, const struct sql_tree *t, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        sqlite3_str_append(out, t->tokens[i].text, (int)t->tokens[i].len);
}

/* The statement with its edits, which do not overlap; sqlite3_free() it. */
static char *edited_text(const struct sql_tree *t, struct edits *edits)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    uint32_t at = 0;
    for (uint32_t i = 1; i < edits->n; i++) /* by their places; those at one place stay in their order */
        for (uint32_t k = i; k > 0 && edits->p[k].at.first < edits->p[k - 1].at.first; k--) {
            struct edit later = edits->p[k - 1];
            edits->p[k - 1] = edits->p[k];
            edits->p[k] = later;
        }
    for (uint32_t i = 0; i < edits->n; i++) {
        put_tokens(out, t, at, edits->p[i].at.first);
        sqlite3_str_appendall(out, edits->p[i].text);
        at = edits->p[i].at.end;
    }
    put_tokens(out, t, at, t->n_tokens);
    return sqlite3_str_finish(out);
}

static sqlite3_stmt *prepare_edited(struct planner *p, struct edits *edits)
{
    sqlite3_stmt *stmt = NULL;
    char *text = edited_text(p->tree, edits);
    bool ok = text && sqlite3_prepare_v2(p->e->db, text, -1, &stmt, NULL) == SQLITE_OK;
    for (int i = 0; i < edits->n_plans; i++) { /* a bind takes its plan over, or frees it */
        struct neighbours_plan *plan = edits->plans[i];
        edits->plans[i] = ok ? NULL : plan;
        ok = ok && sqlite3_bind_pointer(stmt, i + 1, plan, NEIGHBOURS_PLAN, neighbours_plan_free) == SQLITE_OK;
    }
    sqlite3_free(text);
    if (ok)
        return stmt;
    sqlite3_finalize(stmt);
    return NULL;
}

sqlite3_stmt *neighbours_prepare(struct planner *p)
{
    struct edits *edits = arena_zalloc(p->arena, sizeof *edits);
    bool ok = edits != NULL;
    for (const struct sql_select *core = p->tree->cores; ok && core; core = core->next_core) {
        struct shape s = {.p = p, .core = core};
        if (understand(&s) && is_worthwhile(&s))
            ok = add_plan(&s, edits) && add_edits(&s, edits);
    }
    sqlite3_stmt *stmt = ok && edits->n_plans ? prepare_edited(p, edits) : NULL;
    for (int i = 0; edits && i < edits->n_plans; i++)
        neighbours_plan_free(edits->plans[i]);
    return stmt;
}
