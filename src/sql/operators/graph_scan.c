/* __intrinsic_graph_scan(graph, start rows, step, '(columns)') and __intrinsic_graph_aggregating_scan(…): values
 * carried along the edges of a graph without cycles.
 *
 * `step` is a SELECT over $table (id and the columns), run once a round; each row that it gives is a result, and goes
 * to the node's successors as their input. A scan's start rows are results as they are; its rounds go from one edge to
 * the next. An aggregating scan's rounds are layers: a node's comes when all nodes before it are done, and the step
 * sees the start row of the node with what came to it. Start rows of nodes that no edge leads to are results as they
 * are. */
#include "sql/operators/rows.h"
#include "sql/operators/values.h"

#include <stdio.h>

enum { MAX_COLUMNS = 31 };

struct scan {
    struct engine *e;
    const struct graph_value *g;
    char names[MAX_COLUMNS + 1][64]; /* [0] is id */
    uint32_t n;                      /* columns, id included */
    uint32_t *layer;                 /* [node] longest path to it */
    bool *fed;                       /* [node] does an edge lead to it? */
    bool aggregates;
    struct error *err;
};

/* '(a, b)' to names. */
static void parse_columns(struct scan *s, const char *text)
{
    snprintf(s->names[0], sizeof s->names[0], "id");
    s->n = 1;
    while (text && *text && s->n <= MAX_COLUMNS) {
        text += strspn(text, " \t\r\n,()");
        size_t len = strcspn(text, " \t\r\n,()");
        if (len && len < sizeof s->names[0])
            snprintf(s->names[s->n++], sizeof s->names[0], "%.*s", (int)len, text);
        text += len;
    }
}

/* Longest path to each node, by counting inputs down. Nodes on cycles stay in layer 0. */
static bool find_layers(struct scan *s)
{
    const struct graph_value *g = s->g;
    uint32_t *inputs = mem_zalloc((g->n + 1) * sizeof *inputs), *queue = mem_alloc((g->n + 1) * sizeof *queue);
    s->layer = mem_zalloc((g->n + 1) * sizeof *s->layer);
    s->fed = mem_zalloc((g->n + 1) * sizeof *s->fed);
    bool ok = inputs && queue && s->layer && s->fed;
    stop_flag *stop = engine_stop(s->e);
    uint32_t n = 0;
    for (uint32_t e = 0; ok && e < g->n_edges && !stop_asked(stop); e++)
        inputs[g->edges[e]]++;
    for (uint32_t i = 0; ok && i < g->n; i++) {
        s->fed[i] = inputs[i];
        if (!inputs[i])
            queue[n++] = i;
    }
    for (uint32_t at = 0; ok && at < n && !stop_asked(stop); at++)
        for (uint32_t e = g->first[queue[at]]; e < g->first[queue[at] + 1]; e++) {
            uint32_t to = g->edges[e], deeper = s->layer[queue[at]] + 1;
            s->layer[to] = s->layer[to] > deeper ? s->layer[to] : deeper;
            if (--inputs[to] == 0)
                queue[n++] = to;
        }
    mem_free(inputs);
    mem_free(queue);
    return ok && !stop_asked(stop);
}

/* The step with $table replaced by the rows bound to ?1. */
static char *step_sql(const struct scan *s, const char *step)
{
    sqlite3_str *table = sqlite3_str_new(NULL), *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(table, "(SELECT ");
    for (uint32_t i = 0; i < s->n; i++)
        sqlite3_str_appendf(table, "%sc%u AS \"%w\"", i ? ", " : "", i, s->names[i]);
    sqlite3_str_appendall(table, " FROM __intrinsic_table_ptr(?1) WHERE 1");
    for (uint32_t i = 0; i < s->n; i++)
        sqlite3_str_appendf(table, " AND __intrinsic_table_ptr_bind(c%u, %Q)", i, s->names[i]);
    sqlite3_str_appendall(table, ")");
    char *rows = sqlite3_str_finish(table);
    step += strspn(step, " \t\r\n");
    if (*step == '(') /* a subquery, as macros take them */
        sqlite3_str_appendall(sql, "SELECT * FROM ");
    for (const char *at; (at = strstr(step, "$table")); step = at + 6) {
        sqlite3_str_append(sql, step, (int)(at - step));
        sqlite3_str_appendall(sql, rows ? rows : "");
    }
    sqlite3_str_appendall(sql, step);
    sqlite3_free(rows);
    return sqlite3_str_finish(sql);
}

/* A row of values kept between rounds. */
struct kept_row {
    uint32_t round;
    uint32_t next; /* of the same round + 1 */
    int64_t id;
    sqlite3_value *values[MAX_COLUMNS];
};

struct kept_rows {
    struct kept_row *p;
    size_t n, cap;
    uint64_t bytes, most;   /* that they take, about, and may take: each way through the graph makes a row */
    uint32_t *first, *last; /* [round] row + 1, in the order they came */
};

/* Copies the columns of the row that `stmt` is on, but for the first. */
static bool keep(struct kept_rows *k, struct kept_row r, sqlite3_stmt *stmt, uint32_t n_columns)
{
    enum { VALUE_BYTES = 64 /* of SQLite, without a text's own */ };
    bool whole = true;
    k->bytes += sizeof r + n_columns * VALUE_BYTES;
    if (k->bytes > k->most)
        return false;
    for (uint32_t c = 1; c < n_columns; c++)
        whole &= (r.values[c - 1] = sqlite3_value_dup(sqlite3_column_value(stmt, (int)c))) != NULL;
    if (!whole || !vec_push(k, r)) {
        for (uint32_t c = 1; c < n_columns; c++)
            sqlite3_value_free(r.values[c - 1]);
        return false;
    }
    uint32_t *link = k->last[r.round] ? &k->p[k->last[r.round] - 1].next : &k->first[r.round];
    *link = k->last[r.round] = (uint32_t)k->n;
    return true;
}

static void kept_free(struct kept_rows *k)
{
    for (size_t i = 0; i < k->n; i++)
        for (int c = 0; c < MAX_COLUMNS; c++)
            sqlite3_value_free(k->p[i].values[c]);
    mem_free(k->first);
    vec_free(k);
}

/* Does the start row of a node wait for what comes to it? *round tells when. */
static bool waits(const struct scan *s, int64_t id, uint32_t *round)
{
    const uint64_t *node = s->aggregates ? u64map_get(&s->g->index, (uint64_t)id) : NULL;
    *round = node ? s->layer[*node] : 0;
    return node && s->fed[*node];
}

static int open_builder(struct scan *s, struct table_builder *b)
{
    const char *names[MAX_COLUMNS + 1];
    for (uint32_t i = 0; i < s->n; i++)
        names[i] = s->names[i];
    int rc = table_builder_init(b, engine_storage(s->e), s->n, names, NULL, s->err);
    b->stop = engine_stop(s->e);
    return rc;
}

/* The row that `stmt` is on is a result. */
static int emit(const struct scan *s, sqlite3_stmt *stmt, struct table_builder *out)
{
    int rc = table_builder_int(out, 0, sqlite3_column_int64(stmt, 0), s->err);
    for (uint32_t c = 1; c < s->n && rc == 0; c++)
        rc = table_builder_value(out, c, sqlite3_column_value(stmt, (int)c), s->err);
    return rc ? rc : table_builder_commit(out, s->err);
}

/* It goes to the nodes behind: in a scan in `round`, else when their layer comes. */
static int pass_on(const struct scan *s, sqlite3_stmt *stmt, uint32_t round, struct kept_rows *rows)
{
    const struct graph_value *g = s->g;
    const uint64_t *node = u64map_get(&g->index, (uint64_t)sqlite3_column_int64(stmt, 0));
    for (uint32_t e = node ? g->first[*node] : 0; node && e < g->first[*node + 1]; e++) {
        uint32_t to = g->edges[e], layer = s->layer[to];
        if (s->aggregates ? layer < round : layer <= s->layer[*node])
            continue; /* on a cycle */
        struct kept_row r = {.id = g->ids[to], .round = s->aggregates ? layer : round};
        if (!keep(rows, r, stmt, s->n))
            return rows->bytes > rows->most ? error_set(s->err, -MRD_ELIMIT,
                                                        "GRAPH_SCAN: there are too many ways through the graph: rows "
                                                        "of more than %llu MiB; aggregate, or start from fewer nodes",
                                                        (unsigned long long)(rows->most >> 20))
                                            : -MRD_ENOMEM;
    }
    return 0;
}

/* The start rows, read through SQL so that every type is kept. */
static int load_start(struct scan *s, sqlite3_value *start, struct kept_rows *rows, struct table_builder *out)
{
    char *sql = step_sql(s, "SELECT * FROM $table");
    sqlite3_stmt *stmt = NULL;
    int rc = sql ? engine_compile(s->e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM, code = 0;
    sqlite3_free(sql);
    struct runtime_table *t = value_table(start);
    if (rc == SQLITE_OK && t)
        sqlite3_bind_pointer(stmt, 1, t, RUNTIME_TABLE_POINTER, NULL);
    while (rc == SQLITE_OK && code == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct kept_row r = {.id = sqlite3_column_int64(stmt, 0)};
        rc = SQLITE_OK;
        if (waits(s, r.id, &r.round))
            rc = keep(rows, r, stmt, s->n) ? SQLITE_OK : SQLITE_NOMEM;
        else if ((code = emit(s, stmt, out)) == 0)
            code = pass_on(s, stmt, 0, rows);
    }
    if (code == 0 && rc != SQLITE_OK && rc != SQLITE_DONE)
        code = engine_sqlite_error(s->e, rc, s->err);
    sqlite3_finalize(stmt);
    return code;
}

/* The rows of one round as a table; NULL when it has none. */
static int round_table(struct scan *s, struct kept_rows *rows, uint32_t round, struct runtime_table **out)
{
    struct table_builder b;
    bool any = false;
    *out = NULL;
    int rc = open_builder(s, &b);
    if (rc)
        return rc;
    for (uint32_t next = rows->first[round]; next && rc == 0; next = rows->p[next - 1].next) {
        const struct kept_row *r = &rows->p[next - 1];
        any = true;
        rc = table_builder_int(&b, 0, r->id, s->err);
        for (uint32_t c = 1; c < s->n && rc == 0; c++)
            rc = table_builder_value(&b, c, r->values[c - 1], s->err);
        if (rc == 0)
            rc = table_builder_commit(&b, s->err);
    }
    if (rc || !any) {
        table_builder_abort(&b);
        return rc;
    }
    return table_builder_finish(&b, out, s->err);
}

/* Runs the step over one round: its rows are results, and inputs of the nodes behind. */
static int run_round(struct scan *s, sqlite3_stmt *stmt, struct runtime_table *t, uint32_t round,
                     struct kept_rows *rows, struct table_builder *out)
{
    int rc = 0, got;
    sqlite3_reset(stmt);
    sqlite3_bind_pointer(stmt, 1, t, RUNTIME_TABLE_POINTER, NULL);
    while (rc == 0 && (got = engine_step(s->e, stmt, s->err)) != 0)
        rc = got < 0 ? got : (rc = emit(s, stmt, out)) ? rc : pass_on(s, stmt, round + 1, rows);
    return rc;
}

static void run(sqlite3_context *ctx, sqlite3_value **argv, bool aggregates)
{
    static const struct graph_value no_edges;
    struct error err = {0};
    struct scan s = {.e = function_engine(ctx), .g = value_graph(argv[0]), .aggregates = aggregates, .err = &err};
    struct kept_rows rows = {.most = engine_rows_max_bytes(s.e)};
    struct table_builder out;
    sqlite3_stmt *stmt = NULL;
    const char *step = (const char *)sqlite3_value_text(argv[2]);
    if (!value_table(argv[1]) || !step)
        return; /* no start: no rows */
    if (!s.g)
        s.g = &no_edges;
    parse_columns(&s, (const char *)sqlite3_value_text(argv[3]));
    uint32_t last = 0;
    int rc = find_layers(&s) ? 0 : -MRD_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < s.g->n; i++)
        last = s.layer[i] > last ? s.layer[i] : last;
    rows.first = mem_zalloc(2 * ((size_t)last + 1) * sizeof *rows.first);
    rows.last = rows.first ? rows.first + last + 1 : NULL;
    if (rc == 0 && !rows.first)
        rc = -MRD_ENOMEM;
    char *sql = rc == 0 ? step_sql(&s, step) : NULL;
    if (sql)
        rc = engine_prepare(s.e, slice_str(sql), &stmt, NULL, &err);
    sqlite3_free(sql);
    if (rc == 0 && sqlite3_column_count(stmt) != (int)s.n)
        rc = error_set(&err, -MRD_ESQL, "GRAPH_SCAN: the step must give id and the %u columns of the scan", s.n - 1);
    bool open = rc == 0 && (rc = open_builder(&s, &out)) == 0;
    if (open)
        rc = load_start(&s, argv[1], &rows, &out);
    for (uint32_t round = 0; round <= last && rc == 0; round++) {
        struct runtime_table *t;
        if (stop_asked(engine_stop(s.e)))
            rc = -MRD_ECANCELLED;
        t = NULL;
        if (rc == 0)
            rc = round_table(&s, &rows, round, &t);
        if (rc == 0 && t)
            rc = run_round(&s, stmt, t, round, &rows, &out);
        sqlite3_reset(stmt);
        runtime_table_unref(t);
    }
    sqlite3_finalize(stmt);
    if (open)
        value_builder_result(ctx, &out, rc, &err);
    else if (rc == -MRD_ECANCELLED || stop_asked(engine_stop(s.e)))
        sqlite3_result_error_code(ctx, SQLITE_INTERRUPT);
    else
        sqlite3_result_error(ctx, err.text[0] ? err.text : error_code_text(rc), -1);
    kept_free(&rows);
    mem_free(s.layer);
    mem_free(s.fed);
}

static void scan(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    run(ctx, argv, false);
}

static void aggregating_scan(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    run(ctx, argv, true);
}

static const struct engine_function rows[] = {
    {.name = "__intrinsic_graph_scan", .n_args = 4, .takes = "pptt", .scalar = scan},
    {.name = "__intrinsic_graph_aggregating_scan", .n_args = 4, .takes = "pptt", .scalar = aggregating_scan},
};

FUNCTION_ROWS(graph_scan, rows);
