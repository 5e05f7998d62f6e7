/* __intrinsic_plan: the answer of a plan as a table.
 *
 *     SELECT i0 AS utid, c1 AS "count(*)" FROM __intrinsic_plan(plan)
 *
 * The plan is a pointer that prepare.c has bound. Each column of the answer has a name for each affinity, since SQLite
 * compares columns by it: c0 none, i0 INTEGER, d0 DOUBLE, t0 TEXT. The first statement of a process pays for the names,
 * so that most use a table of few; __intrinsic_plan_wide has them all. When the plan gives up SQLite's own rows are
 * handed on. Anybody may call the function, with anything: what is no plan is refused. */
#include "sql/extensions.h"
#include "sql/plan/varied.h"

#include <string.h>

static const char letters[] = "cidt", wide[] = "__intrinsic_plan_wide";

struct vtab_of_plans {
    sqlite3_vtab base;
    struct engine *e;
    int n_items; /* that it has names for */
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct engine *e;
    const struct query_plan *plan;
    struct plan_answer answer;
    sqlite3_stmt *stmt; /* SQLite's answer */
    uint32_t at;
    bool more;
    int64_t *words[PLAN_MAX_ITEMS]; /* some rows ahead */
    uint32_t block[PLAN_MAX_ITEMS]; /* of which rows; UINT32_MAX: none */
};

enum { AHEAD = 256 };

static int x_connect(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    static const char *const types[] = {"", " INTEGER", " DOUBLE", " TEXT"};
    struct vtab_of_plans *v = mem_zalloc(sizeof *v);
    sqlite3_str *s = sqlite3_str_new(NULL);
    int n_items = argc && strcmp(argv[0], wide) == 0 ? PLAN_MAX_ITEMS : PLAN_FEW_ITEMS;
    (void)message;
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (int type = 0; type < 4; type++)
        for (int i = 0; i < n_items; i++)
            sqlite3_str_appendf(s, "%c%d%s,", letters[type], i, types[type]);
    sqlite3_str_appendall(s, "plan HIDDEN)");
    char *text = sqlite3_str_finish(s);
    int rc = v && text ? engine_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        mem_free(v);
        return rc;
    }
    v->e = client;
    v->n_items = n_items;
    *out = &v->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *base)
{
    mem_free(base);
    return SQLITE_OK;
}

static int x_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int argument = 4 * ((const struct vtab_of_plans *)base)->n_items;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *k = &info->aConstraint[i];
        if (k->iColumn != argument || k->op != SQLITE_INDEX_CONSTRAINT_EQ || !k->usable)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->estimatedCost = 1000;
        info->estimatedRows = 1000;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
}

static int x_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = mem_zalloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->e = ((struct vtab_of_plans *)base)->e;
    *out = &c->base;
    return SQLITE_OK;
}

static void clear(struct cursor *c)
{
    plan_answer_free(&c->answer);
    sqlite3_finalize(c->stmt);
    c->stmt = NULL;
    c->at = 0;
    c->more = false;
    for (int i = 0; i < PLAN_MAX_ITEMS; i++)
        c->block[i] = UINT32_MAX;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    clear(c);
    for (int i = 0; i < PLAN_MAX_ITEMS; i++)
        mem_free(c->words[i]);
    mem_free(c);
    return SQLITE_OK;
}

static int fail(struct cursor *c, const char *text)
{
    sqlite3_free(c->base.pVtab->zErrMsg);
    c->base.pVtab->zErrMsg = sqlite3_mprintf("%s", text);
    return SQLITE_ERROR;
}

static int step(struct cursor *c)
{
    int rc = sqlite3_step(c->stmt);
    c->more = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return SQLITE_OK;
    if (rc == SQLITE_INTERRUPT || rc == SQLITE_NOMEM)
        return rc;
    return fail(c, sqlite3_errmsg(c->e->db));
}

static int ask_sqlite(struct cursor *c)
{
    int rc = engine_compile(c->e, c->plan->text, -1, 0, &c->stmt, NULL);
    if (rc == SQLITE_OK)
        plan_bind_arguments(c->e, c->stmt, c->plan->arguments);
    return rc == SQLITE_OK ? step(c) : rc == SQLITE_NOMEM ? rc : fail(c, sqlite3_errmsg(c->e->db));
}

static int x_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)base;
    (void)number;
    (void)text;
    clear(c);
    c->plan = argc > 0 ? sqlite3_value_pointer(argv[0], PLAN_POINTER) : NULL;
    if (!c->plan)
        return fail(c, "__intrinsic_plan: no plan; this function is for the engine's own use");
    int rc = c->plan->gave_up ? RUN_GAVE_UP : plan_run(c->plan, &c->answer);
    if (rc == RUN_GAVE_UP)
        return ask_sqlite(c);
    c->more = rc == SQLITE_OK && c->answer.n > 0;
    return rc;
}

static int x_next(sqlite3_vtab_cursor *base)
{
    struct cursor *c = (struct cursor *)base;
    c->at++;
    if (c->stmt)
        return step(c);
    c->more = c->at < c->answer.n;
    if (c->at % COL_CHUNK_ROWS == 0 && engine_is_interrupted(c->e))
        return SQLITE_INTERRUPT;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *base)
{
    return !((const struct cursor *)base)->more;
}

static void decode(struct cursor *c, uint32_t item)
{
    uint32_t block = c->at / AHEAD, rows[AHEAD], n = 0;
    for (uint32_t i = block * AHEAD; i < c->answer.n && n < AHEAD; i++)
        rows[n++] = c->answer.rows ? c->answer.rows[c->answer.first + i] : c->answer.first + i;
    column_gather(&c->answer.table->columns[item], rows, n, c->words[item]);
    c->block[item] = block;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct cursor *c = (struct cursor *)base;
    int n_items = ((const struct vtab_of_plans *)base->pVtab)->n_items;
    uint32_t item = (uint32_t)(column % n_items);
    if (column >= 4 * n_items || item >= c->plan->n_items)
        return SQLITE_OK;
    if (c->stmt) {
        sqlite3_result_value(ctx, sqlite3_column_value(c->stmt, (int)item));
        return SQLITE_OK;
    }
    if (c->block[item] != c->at / AHEAD) {
        if (!c->words[item] && !(c->words[item] = mem_alloc(AHEAD * sizeof(int64_t))))
            return SQLITE_NOMEM;
        decode(c, item);
    }
    enum col_type type = (enum col_type)c->answer.table->columns[item].type;
    int64_t word = c->words[item][c->at % AHEAD];
    if (c->plan->items[item].expr->varied)
        varied_result(c->e, ctx, word);
    else if (c->plan->items[item].expr->mixed && mixed_is_whole(word))
        sqlite3_result_int(ctx, mixed_integer(word));
    else
        planner_result(c->e, ctx, type, word);
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((const struct cursor *)base)->at;
    return SQLITE_OK;
}

const sqlite3_module plan_module = {.xConnect = x_connect,
                                    .xBestIndex = x_best_index,
                                    .xDisconnect = x_disconnect,
                                    .xOpen = x_open,
                                    .xClose = x_close,
                                    .xFilter = x_filter,
                                    .xNext = x_next,
                                    .xEof = x_eof,
                                    .xColumn = x_column,
                                    .xRowid = x_rowid};

int plan_attach(struct engine *e, struct error *err)
{
    int rc = engine_register_module(e, "__intrinsic_plan", &plan_module, err);
    return rc ? rc : engine_register_module(e, wide, &plan_module, err);
}
