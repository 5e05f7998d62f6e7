/* Tables that functions give as pointers:
 *
 *     SELECT c0 AS ts, c1 AS dur FROM __intrinsic_table_ptr(__intrinsic_interval_intersect(…))
 *     WHERE __intrinsic_table_ptr_bind(c0, 'ts') AND __intrinsic_table_ptr_bind(c1, 'dur')
 *
 * SQLite runs the function, once in each run of the plan (queries in its arguments have plans of their own); the
 * columns of its table are read as they lie. Their types are those the function is known to give. When it gives others,
 * or fails, the plan gives up, and SQLite says what is to be said. */
#include "sql/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { N_COLUMNS = 32, MAX_TEXT = 64, MAX_SETS = 16 };

/* (SELECT f(id, ts, dur, 'p', p, …) FROM …) */
struct set {
    struct query_plan *sub; /* its rows: the arguments that vary */
    const struct engine_function *f;
    uint32_t n_args;
    const char *constants[2 * PLAN_MAX_KEYS]; /* by argument; NULL: a column */
};

struct plan_pointer {
    const char *text;                       /* SELECT f(…); with sets: SELECT f(@set1, @set2, …) */
    const struct plan_arguments *arguments; /* of the $names in it; NULL: there are none */
    struct set sets[MAX_SETS];
    uint32_t n_sets, n;
    bool has_first; /* sets[0] is the first argument */
    struct {
        char name[MAX_TEXT]; /* in the table */
        int16_t place;       /* c0, c1, … */
        uint8_t type;        /* enum plan_type; PLAN_NULL: not known, and not asked for */
    } columns[N_COLUMNS];
};

/* ---- types ---- */

static const struct {
    const char *name;
    const char *integers, *reals; /* columns, with spaces around each */
} functions[] = {{"__intrinsic_interval_intersect", " ts dur ", ""},
                 {"__intrinsic_interval_create", " ts dur ", ""},
                 {"__intrinsic_counter_intervals", " id ts dur track_id ", " value next_value delta_value "},
                 {"__intrinsic_dominator_tree", " node_id dominator_node_id ", ""},
                 {"__intrinsic_bfs", " node_id parent_node_id ", ""},
                 {"__intrinsic_dfs", " node_id parent_node_id ", ""}};

static bool unquote(const struct reader *r, const struct sql_expr *x, char *out)
{
    size_t len;
    const char *text = x && x->kind == EXPR_STRING ? sql_tree_text(r->tree, r->planner->arena, x->at, &len) : NULL;
    if (!text || len < 2 || len - 2 >= MAX_TEXT || memchr(text + 1, '\'', len - 2))
        return false;
    memcpy(out, text + 1, len - 2);
    out[len - 2] = 0;
    return true;
}

/* The type of a partition column, as the first set has it: rows are of its partitions. */
static enum plan_type type_of_partition(const struct plan_pointer *p, const char *name)
{
    const struct set *s = &p->sets[0];
    uint32_t column = 0;
    for (uint32_t i = 0; p->has_first && i + 1 < s->n_args; i++) {
        if (!s->constants[i])
            column++;
        else if (strcasecmp(s->constants[i], name) == 0)
            return (enum plan_type)s->sub->items[column].expr->type;
    }
    return PLAN_NULL;
}

static enum plan_type type_of(const struct plan_pointer *p, const struct sql_expr *f, size_t known, const char *name)
{
    char word[MAX_TEXT + 2];
    sqlite3_snprintf(sizeof word, word, " %s ", name);
    if (strstr(functions[known].integers, word))
        return PLAN_INT;
    if (strstr(functions[known].reals, word))
        return PLAN_REAL;
    if (!sql_name_is(f->name, "__intrinsic_interval_intersect"))
        return PLAN_NULL;
    if (strncmp(name, "id_", 3) == 0)
        return strtoul(name + 3, NULL, 10) < f->n_args - 1u ? PLAN_INT : PLAN_NULL;
    return type_of_partition(p, name);
}

/* ---- reading ---- */

static bool is_bind(const struct sql_expr *x)
{
    return x->kind == EXPR_FUNCTION && x->n_args == 2 && sql_name_is(x->name, "__intrinsic_table_ptr_bind") &&
           x->args->kind == EXPR_COLUMN && !x->args->table.len && x->args->next->kind == EXPR_STRING;
}

/* c0 … c31; -1: another name. */
static int place_of(const struct sql_expr *x)
{
    int place = 0;
    if (x->name.len < 2 || x->name.len > 3 || (x->name.p[0] | 32) != 'c')
        return -1;
    for (uint32_t i = 1; i < x->name.len; i++) {
        if (x->name.p[i] < '0' || x->name.p[i] > '9')
            return -1;
        place = place * 10 + (x->name.p[i] - '0');
    }
    return place < N_COLUMNS && (place < 10) == (x->name.len == 2) ? place : -1;
}

static const struct plan_pointer *pointer_of(const struct reader *r)
{
    const struct plan_pointer *found = NULL;
    for (uint32_t i = 0; i < r->plan->n_sources; i++)
        found = r->plan->sources[i].pointer ? r->plan->sources[i].pointer : found;
    return found;
}

bool pointer_is_bound(const struct reader *r, const struct sql_expr *x)
{
    const struct plan_pointer *p = is_bind(x) ? pointer_of(r) : NULL;
    struct plan_expr *column;
    char name[MAX_TEXT];
    if (!p || !unquote(r, x->args->next, name) || scope_find(r, x->args, &column) == 0)
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->columns[i].place == place_of(x->args) && strcmp(p->columns[i].name, name) == 0)
            return true;
    return false;
}

static bool read_binds(struct reader *r, struct plan_pointer *p, const struct sql_expr *x)
{
    if (x->kind == EXPR_BINARY && x->op == SQL_AND)
        return read_binds(r, p, x->args) && read_binds(r, p, x->args->next);
    if (!is_bind(x))
        return true;
    int place = place_of(x->args);
    if (place < 0 || p->n == N_COLUMNS || !unquote(r, x->args->next, p->columns[p->n].name))
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->columns[i].place == place)
            return false;
    p->columns[p->n++].place = (int16_t)place;
    return true;
}

/* Tables of WITH that the text of an expression may name; false: it cannot be taken out of its statement. */
static bool read_with(struct reader *r, const char **head)
{
    const struct sql_query *with = NULL;
    for (const struct cte_scope *s = r->ctes; s; s = s->up) {
        if (s->query->ctes && (with || s->tree != r->tree))
            return false;
        with = s->query->ctes ? s->query : with;
    }
    *head = "";
    if (with) {
        struct sql_span span = {with->at.first, with->selects->at.first};
        size_t n;
        const char *text = sql_tree_text(r->tree, r->planner->arena, span, &n);
        *head = text ? arena_printf(r->planner->arena, "%.*s ", (int)n, text) : NULL;
    }
    return *head != NULL;
}

static const char *text_at(struct reader *r, struct sql_span at)
{
    size_t n;
    const char *text = sql_tree_text(r->tree, r->planner->arena, at, &n);
    return text ? arena_strndup(r->planner->arena, text, n) : NULL;
}

/* The arguments: constant texts, and columns. */
static bool read_args(struct reader *r, struct set *s, const struct sql_expr *f, struct list *columns)
{
    if (f->n_args > 2 * PLAN_MAX_KEYS)
        return false;
    for (const struct sql_expr *a = f->args; a; a = a->next, s->n_args++) {
        char text[MAX_TEXT];
        if (a->kind == EXPR_STRING) {
            if (!unquote(r, a, text) || !(s->constants[s->n_args] = arena_strndup(&r->plan->arena, text, strlen(text))))
                return false;
            continue;
        }
        if (columns->n == PLAN_MAX_KEYS)
            return false;
        columns->items[columns->n++] = a;
    }
    return columns->n > 0;
}

/* An argument that is an aggregate over the rows of a query. */
static bool read_set(struct reader *r, struct plan_pointer *p, const struct sql_expr *x, const char *head)
{
    const struct sql_select *core = x->kind == EXPR_SELECT ? x->query->selects : NULL;
    const struct sql_expr *f = core && core->items && !core->items->star ? core->items->expr : NULL;
    struct list columns = {.n = 0};
    char name[MAX_TEXT];
    if (p->n_sets == MAX_SETS)
        return false;
    struct set *s = &p->sets[p->n_sets];
    *s = (struct set){0};
    if (!f || core->items->next || x->query->ctes || f->kind != EXPR_FUNCTION || f->distinct || f->star || f->filter ||
        f->over || f->name.len >= sizeof name)
        return false;
    memcpy(name, f->name.p, f->name.len);
    name[f->name.len] = 0;
    s->f = engine_find_function(r->planner->e, name, -2);
    const char *text = s->f && s->f->of_columns ? text_at(r, x->query->at) : NULL;
    if (!text || !read_args(r, s, f, &columns))
        return false;
    struct reader in = *r;
    in.loops = loops_new(r->planner, arena_printf(r->planner->arena, "%s%s", head, text), true);
    in.loop_up = NULL;
    in.loop_arm = 0;
    in.any_order = in.once = false;
    s->sub = in.loops ? plan_build_list(&in, x->query, &columns) : NULL;
    p->n_sets += s->sub != NULL;
    return s->sub != NULL;
}

/* f(@set1, (SELECT …), …, 'text'): @set1 stands for a set. NULL: there is none. */
static const char *read_sets(struct reader *r, struct plan_pointer *p, const struct sql_expr *f, const char *head)
{
    const char *out = arena_printf(&r->plan->arena, "SELECT %.*s(", (int)f->name.len, f->name.p);
    for (const struct sql_expr *a = f->args; out && a; a = a->next) {
        const char *arg = "";
        if (a->kind == EXPR_STRING || !read_set(r, p, a, head))
            arg = text_at(r, a->at);
        else
            p->has_first |= a == f->args;
        const char *comma = a->next ? ", " : ")";
        if (arg)
            out = *arg ? arena_printf(&r->plan->arena, "%s%s%s", out, arg, comma)
                       : arena_printf(&r->plan->arena, "%s@set%u%s", out, p->n_sets, comma);
    }
    return p->n_sets ? out : NULL;
}

void pointer_free(struct plan_pointer *p)
{
    for (uint32_t i = 0; p && i < p->n_sets; i++)
        plan_free(p->sets[i].sub);
}

/* The call by itself. */
static bool read_call(struct reader *r, struct plan_pointer *p, const struct sql_expr *f)
{
    const char *head, *text;
    p->arguments = r->tree->n_parameters ? read_arguments(r, &r->plan->arena) : NULL;
    if ((r->tree->n_parameters && !p->arguments) || !read_with(r, &head))
        return false;
    const char *sets = read_sets(r, p, f, head);
    text = text_at(r, f->at);
    if (sets)
        p->text = arena_printf(&r->plan->arena, "%s%s", head, sets);
    else
        p->text = text ? arena_printf(&r->plan->arena, "%sSELECT %s", head, text) : NULL;
    if (!p->text)
        pointer_free(p);
    return p->text != NULL;
}

static bool only_function(const struct sql_from *from)
{
    int n = 0;
    for (; from; from = from->next)
        n += from->form == SOURCE_FUNCTION;
    return n == 1;
}

struct plan_pointer *pointer_read(struct reader *r, const struct sql_from *from)
{
    const struct sql_expr *f = from->args;
    size_t known = 0, n_known = sizeof functions / sizeof *functions;
    if (!sql_name_is(from->name, "__intrinsic_table_ptr") || !f || f->next || f->kind != EXPR_FUNCTION ||
        !r->core->where || !only_function(r->core->from) || pointer_of(r))
        return NULL;
    while (known < n_known && !sql_name_is(f->name, functions[known].name))
        known++;
    struct plan_pointer *p = known < n_known ? arena_zalloc(&r->plan->arena, sizeof *p) : NULL;
    if (!p || !read_binds(r, p, r->core->where) || !read_call(r, p, f))
        return NULL;
    for (uint32_t i = 0; i < p->n; i++)
        p->columns[i].type = (uint8_t)type_of(p, f, known, p->columns[i].name);
    return p;
}

uint32_t pointer_column(const struct plan_pointer *p, uint32_t place, enum plan_type *type)
{
    uint32_t i = 0;
    while (i < p->n && p->columns[i].place != (int)place)
        i++;
    *type = i < p->n ? (enum plan_type)p->columns[i].type : PLAN_NULL;
    return i;
}

/* ---- running ---- */

struct pointer_rows {
    struct table table; /* columns of `of`, in the order of the plan */
    struct runtime_table *of;
    struct column columns[];
};

static int step(struct engine *e, sqlite3_stmt *stmt, struct runtime_table **out)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        struct runtime_table *t = sqlite3_value_pointer(sqlite3_column_value(stmt, 0), RUNTIME_TABLE_POINTER);
        *out = t ? runtime_table_ref(t) : NULL;
        return 0;
    }
    return rc == SQLITE_NOMEM || rc == SQLITE_INTERRUPT ? rc
           : engine_is_interrupted(e)                   ? SQLITE_INTERRUPT
                                                        : RUN_GAVE_UP;
}

static int bind_set(struct engine *e, const struct set *s, sqlite3_stmt *stmt, uint32_t number)
{
    char name[24];
    sqlite3_snprintf(sizeof name, name, "@set%u", number);
    int place = sqlite3_bind_parameter_index(stmt, name);
    struct table *t = NULL;
    int rc = plan_run_to_table(s->sub, &t);
    if (rc)
        return rc;
    struct engine_columns columns = {t, s->n_args, s->constants};
    void *value = s->f->of_columns(e, &columns, &rc);
    stage_free(t);
    if (rc)
        return rc == SQLITE_ERROR ? RUN_GAVE_UP : rc;
    return value ? sqlite3_bind_pointer(stmt, place, value, s->f->pointer, s->f->destroy) : SQLITE_OK;
}

/* The table; NULL with 0: there is none, as of no rows. */
static int call(struct engine *e, const struct plan_pointer *p, struct runtime_table **out)
{
    struct arena arena = {0};
    sqlite3_stmt *stmt = NULL;
    int rc = SQLITE_OK;
    *out = NULL;
    if (!p->n_sets)
        stmt = plan_prepare_arguments(e, &arena, p->text, p->arguments);
    if (!stmt)
        rc = engine_compile(e, p->text, -1, 0, &stmt, NULL);
    if (stmt)
        plan_bind_arguments(e, stmt, p->arguments);
    for (uint32_t i = 0; i < p->n_sets && rc == SQLITE_OK; i++)
        rc = bind_set(e, &p->sets[i], stmt, i + 1);
    rc = rc == RUN_GAVE_UP || rc == SQLITE_INTERRUPT ? rc
         : rc == SQLITE_OK                           ? step(e, stmt, out)
         : rc == SQLITE_NOMEM                        ? rc
                                                     : RUN_GAVE_UP;
    sqlite3_finalize(stmt);
    arena_free(&arena);
    return rc;
}

/* The column of that name and type; NULL: there is none. */
static const struct column *find(const struct runtime_table *t, const char *name, enum plan_type type)
{
    for (uint32_t k = 0; k < t->def.n_columns; k++)
        if (strcasecmp(t->columns[k].name, name) == 0)
            return plan_type_of((enum col_type)t->table.columns[k].type) == type ? &t->table.columns[k] : NULL;
    return NULL;
}

static struct table *empty(struct run *r, const struct plan_pointer *p, uint8_t source)
{
    enum plan_type types[N_COLUMNS];
    for (uint32_t i = 0; i < p->n; i++)
        types[i] = (enum plan_type)(p->columns[i].type == PLAN_NULL ? PLAN_INT : p->columns[i].type);
    struct table *t = r->made[source] = stage_new(r, types, p->n);
    if (t)
        table_finalize(t);
    return t;
}

struct table *pointer_run(struct run *r, uint8_t source)
{
    const struct plan_pointer *p = r->plan->sources[source].pointer;
    struct runtime_table *of = NULL;
    r->rc = call(r->e, p, &of);
    if (r->rc || !of)
        return r->rc ? NULL : empty(r, p, source);
    struct pointer_rows *rows = mem_zalloc(sizeof *rows + (p->n + 1) * sizeof *rows->columns);
    if (!rows) {
        runtime_table_unref(of);
        r->rc = SQLITE_NOMEM;
        return NULL;
    }
    if (!of->table.final)
        table_finalize(&of->table);
    rows->of = of;
    rows->table = of->table;
    rows->table.columns = rows->columns;
    r->pointers[source] = rows;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct column *c =
            p->columns[i].type == PLAN_NULL ? of->table.columns : find(of, p->columns[i].name, p->columns[i].type);
        if (!c) {
            r->rc = RUN_GAVE_UP;
            return NULL;
        }
        rows->columns[i] = *c;
    }
    return &rows->table;
}

void pointer_rows_free(struct pointer_rows *rows)
{
    if (!rows)
        return;
    runtime_table_unref(rows->of);
    mem_free(rows);
}
