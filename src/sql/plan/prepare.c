/* The entry: finds what can be planned in a statement, and writes the statement that asks __intrinsic_plan for it. */
#include "sql/extensions.h"
#include "sql/plan/plan_private.h"

#include <string.h>

/* What EXPLAIN QUERY PLAN shows: the steps, then the parts. */
static void describe(sqlite3_str *out, const struct query_plan *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        const struct plan_source *source = &p->sources[s->source];
        const char *how = i == 0        ? "scan"
                          : source->kin ? "join by tree"
                          : s->by_row   ? "join by row"
                          : s->n_ranges ? "join by range"
                          : s->n_keys   ? "join by hash"
                                        : "cross join";
        sqlite3_str_appendf(out, "%s%s ", i ? "; " : "", how);
        for (const struct query_plan *arm = source->sub; arm; arm = arm->next_arm) {
            sqlite3_str_appendall(out, arm == source->sub ? "(" : " + (");
            describe(out, arm);
            sqlite3_str_appendall(out, ")");
            if (arm->step) {
                sqlite3_str_appendall(out, ", again and again (");
                describe(out, arm->step);
                sqlite3_str_appendall(out, ")");
            }
        }
        if (source->batches)
            sqlite3_str_appendf(out, "%.*s as columns", (int)source->printed[0].len, source->printed[0].p);
        else if (source->values)
            sqlite3_str_appendall(out, "constants");
        else if (source->round)
            sqlite3_str_appendall(out, "rows before");
        else if (source->pointer)
            sqlite3_str_appendall(out, "table of a function");
        else if (!source->sub)
            sqlite3_str_appendall(out, source->table.name);
        if (s->n_tests + s->n_where)
            sqlite3_str_appendall(out, " filtered");
    }
    if (p->restore_order)
        sqlite3_str_appendall(out, "; sort as SQLite's loops");
    if (p->grouped)
        sqlite3_str_appendf(out, "; group by %u keys, %u aggregates", p->n_keys, p->n_aggregates);
    if (p->n_windows)
        sqlite3_str_appendf(out, "; %u windows", p->n_windows);
    if (p->distinct)
        sqlite3_str_appendall(out, "; distinct");
    if (p->n_orders)
        sqlite3_str_appendall(out, "; order");
    if (p->limit >= 0)
        sqlite3_str_appendall(out, "; limit");
}

void plan_put_select(sqlite3_str *out, const struct query_plan *p, int number)
{
    for (uint32_t i = 0; i < p->n_items; i++)
        sqlite3_str_appendf(out, "%s%c%u AS \"%w\"", i ? ", " : "SELECT ", p->items[i].expr->letter, i,
                            p->items[i].name);
    sqlite3_str *shown = sqlite3_str_new(NULL);
    describe(shown, p);
    char *text = sqlite3_str_finish(shown);
    sqlite3_str_appendf(out, " FROM __intrinsic_plan%s(@plan%d) AS \"native plan: %w\"",
                        p->n_items > PLAN_FEW_ITEMS ? "_wide" : "", number, text ? text : "");
    sqlite3_free(text);
}

int plan_bind(sqlite3_stmt *stmt, struct query_plan *p, int number)
{
    char name[24];
    sqlite3_snprintf(sizeof name, name, "@plan%d", number);
    return sqlite3_bind_pointer(stmt, sqlite3_bind_parameter_index(stmt, name), p, PLAN_POINTER, plan_free);
}

enum purpose { FOR_ROWS, FOR_TABLE, FOR_SHOW };

static sqlite3_stmt *prepare_plan(struct planner *planner, struct query_plan *p, enum purpose purpose)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *out = sqlite3_str_new(NULL);
    if (purpose == FOR_SHOW)
        sqlite3_str_appendall(out, "EXPLAIN QUERY PLAN ");
    plan_put_select(out, p, 1);
    char *text = sqlite3_str_finish(out);
    bool ok = text && engine_compile(planner->e, text, -1, 0, &stmt, NULL) == SQLITE_OK;
    sqlite3_free(text);
    if (!ok) {
        plan_free(p);
        return NULL;
    }
    if (plan_bind(stmt, p, 1) == SQLITE_OK) { /* frees it when it fails */
        planner->e->plan = purpose == FOR_SHOW ? NULL : p;
        planner->e->plan_statement = purpose == FOR_SHOW ? NULL : stmt;
        return stmt;
    }
    sqlite3_finalize(stmt);
    return NULL;
}

static sqlite3_stmt *prepare_whole(struct planner *planner, enum purpose purpose)
{
    const struct sql_tree *tree = planner->tree;
    uint32_t largest = 0;
    size_t len;
    const char *text = sql_tree_text(tree, planner->arena, tree->query->at, &len);
    struct loops *loops = text ? loops_new(planner, text, false) : NULL;
    struct reader r = {.planner = planner,
                       .tree = tree,
                       .loops = loops,
                       .rows = &largest,
                       .parameters = planner->parameters,
                       .whole = true,
                       .always = purpose == FOR_TABLE,
                       .direct = planner->e->direct};
    struct query_plan *p = loops ? plan_build(&r, tree->query, tree, NULL) : NULL;
    if (!p)
        return NULL;
    p->text = arena_strndup(&p->arena, text, len);
    p->arguments = read_arguments(&r, &p->arena);
    if (largest < PLANNER_MIN_ROWS || !p->text || !p->arguments) {
        plan_free(p);
        return NULL;
    }
    return prepare_plan(planner, p, purpose);
}

/* Takes EXPLAIN QUERY PLAN off the front. */
static bool skip_explain(const struct sql_token **p, size_t *n)
{
    static const char *const words[] = {"explain", "query", "plan"};
    size_t at = 0, found = 0;
    while (at < *n && found < 3) {
        const struct sql_token *t = &(*p)[at++];
        if (token_is_blank(t->kind))
            continue;
        if (!token_is(t->text, t->len, words[found++]))
            return false;
    }
    *p += at;
    *n -= at;
    return found == 3;
}

static sqlite3_stmt *prepare(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n,
                             const struct parameters *parameters, enum purpose purpose)
{
    struct sql_tree tree;
    struct planner planner = {.e = e, .parameters = parameters, .arena = arena, .tree = &tree};
    const struct sql_token *body = p;
    size_t n_body = n;
    if (purpose == FOR_ROWS && skip_explain(&body, &n_body)) {
        purpose = FOR_SHOW;
    } else {
        body = p;
        n_body = n;
    }
    if (!planner_parse(e, arena, body, n_body, &tree) || (tree.n_parameters && !parameters))
        return NULL;
    bool plain = !tree.n_windows && !tree.n_parameters && purpose == FOR_ROWS;
    sqlite3_stmt *stmt = plain ? aggregate_prepare(&planner) : NULL;
    if (!stmt && !(e->functions_made & FUNCTION_OTHER))
        stmt = prepare_whole(&planner, purpose);
    if (!stmt && !(e->functions_made & FUNCTION_OTHER))
        stmt = subtrees_prepare(&planner, purpose == FOR_SHOW);
    return stmt;
}

sqlite3_stmt *plan_prepare(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n)
{
    return prepare(e, arena, p, n, NULL, FOR_ROWS);
}

sqlite3_stmt *plan_prepare_text(struct engine *e, struct arena *arena, const char *sql,
                                const struct parameters *parameters)
{
    struct sql_tokens tokens = {0};
    struct query_plan *plan = e->plan;
    sqlite3_stmt *stmt = NULL, *outer = e->plan_statement;
    bool direct = e->direct;
    e->direct = false;
    if (sql_tokens_scan_text(&tokens, sql, strlen(sql)))
        stmt = prepare(e, arena, tokens.p, tokens.n, parameters, FOR_ROWS);
    sql_tokens_free(&tokens);
    e->direct = direct;
    e->plan_statement = outer;
    e->plan = plan;
    return stmt;
}

sqlite3_stmt *plan_prepare_table(struct engine *e, struct arena *arena, const struct sql_token *p, size_t n)
{
    return prepare(e, arena, p, n, NULL, FOR_TABLE);
}
