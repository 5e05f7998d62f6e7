/* The definition of span joins: their arguments, their columns, and which constraints their inputs can take. */
#include "base/sql_token.h"
#include "sql/engine_private.h"
#include "sql/operators/span_join.h"

#include <strings.h>

/* ---- definition ---- */

static void input_free(struct span_input *in)
{
    sqlite3_free(in->table);
    sqlite3_free(in->partition);
    for (int i = 0; i < in->n_columns; i++) {
        sqlite3_free(in->columns[i]);
        sqlite3_free(in->types[i]);
    }
    sqlite3_free(in->columns);
    sqlite3_free(in->types);
}

static char *copy_name(const char *t, size_t len)
{
    char *name = token_name(t, len);
    char *copy = name ? sqlite3_mprintf("%s", name) : NULL;
    mem_free(name);
    return copy;
}

/* "table [PARTITIONED column]" */
static int parse_input(const char *arg, struct span_input *in, char **err)
{
    size_t len = strlen(arg);
    int state = 0;
    while (len) {
        enum token_kind kind;
        size_t n = token_next(arg, len, &kind);
        if (!token_is_blank(kind)) {
            bool name = kind == TOKEN_WORD || kind == TOKEN_QUOTED;
            if (state == 0 && name)
                in->table = copy_name(arg, n);
            else if (state == 2 && name)
                in->partition = copy_name(arg, n);
            else if (state != 1 || kind != TOKEN_WORD || !token_is(arg, n, "partitioned")) {
                *err = sqlite3_mprintf("SPAN_JOIN: near \"%.*s\": expected TABLE [PARTITIONED COLUMN]", (int)n, arg);
                return SQLITE_ERROR;
            }
            state++;
        }
        arg += n;
        len -= n;
    }
    if (state == 1 || state == 3)
        return SQLITE_OK;
    *err = sqlite3_mprintf("SPAN_JOIN: expected TABLE [PARTITIONED COLUMN]");
    return SQLITE_ERROR;
}

static int find_column(const struct span_input *in, const char *name)
{
    for (int i = 0; i < in->n_columns; i++)
        if (strcasecmp(in->columns[i], name) == 0)
            return i;
    return -1;
}

static int read_columns(struct engine *e, struct span_input *in, char **err)
{
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", in->table);
    sqlite3_stmt *stmt = NULL;
    int rc = sql ? engine_compile(e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc) {
        *err = sqlite3_mprintf("SPAN_JOIN: %s", sqlite3_errmsg(e->db));
        return rc;
    }
    int n = sqlite3_column_count(stmt);
    in->columns = sqlite3_malloc64((sqlite3_uint64)(n + 1) * sizeof *in->columns);
    in->types = sqlite3_malloc64((sqlite3_uint64)(n + 1) * sizeof *in->types);
    for (int i = 0; in->columns && in->types && i < n; i++) {
        const char *type = sqlite3_column_decltype(stmt, i);
        in->columns[i] = sqlite3_mprintf("%s", sqlite3_column_name(stmt, i));
        in->types[i] = sqlite3_mprintf("%s", type ? type : "");
        in->n_columns = i + 1;
        if (!in->columns[i] || !in->types[i])
            rc = SQLITE_NOMEM;
    }
    sqlite3_finalize(stmt);
    if (rc || in->n_columns != n)
        return SQLITE_NOMEM;
    in->ts = find_column(in, "ts");
    in->dur = find_column(in, "dur");
    in->part = in->partition ? find_column(in, in->partition) : -1;
    if (in->ts < 0)
        *err = sqlite3_mprintf("SPAN_JOIN: table %s has no column ts", in->table);
    else if (in->partition && in->part < 0)
        *err = sqlite3_mprintf("SPAN_JOIN: table %s has no column %s", in->table, in->partition);
    for (int i = 0; i < n && !*err; i++)
        if (strpbrk(in->columns[i], ",:"))
            *err = sqlite3_mprintf("SPAN_JOIN: column '%s' of table %s has a comma or colon in its name",
                                   in->columns[i], in->table);
    return *err ? SQLITE_ERROR : SQLITE_OK;
}

static bool is_special(const struct span_join_table *t, int side, int column)
{
    const struct span_input *in = &t->in[side];
    return column == in->ts || column == in->dur || column == in->part;
}

/* The other side's column of the same name, when that would be ambiguous. */
static int check_clashes(struct span_join_table *t, char **err)
{
    for (int i = 0; i < t->in[0].n_columns; i++)
        for (int k = 0; k < t->in[1].n_columns; k++) {
            if (strcasecmp(t->in[0].columns[i], t->in[1].columns[k]) != 0)
                continue;
            if (is_special(t, 0, i) && is_special(t, 1, k))
                continue;
            *err = sqlite3_mprintf("SPAN_JOIN: column %s present in both tables %s and %s", t->in[0].columns[i],
                                   t->in[0].table, t->in[1].table);
            return SQLITE_ERROR;
        }
    return SQLITE_OK;
}

static char *declare(struct span_join_table *t)
{
    const char *part = t->in[0].partition ? t->in[0].partition : t->in[1].partition;
    int column = part ? 3 : 2;
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "CREATE TABLE x(ts BIGINT, dur BIGINT");
    if (part)
        sqlite3_str_appendf(s, ", \"%w\" BIGINT", part);
    for (int side = 0; side < 2; side++) {
        t->first[side] = column;
        for (int i = 0; i < t->in[side].n_columns; i++) {
            if (is_special(t, side, i))
                continue;
            sqlite3_str_appendf(s, ", \"%w\" %s", t->in[side].columns[i], t->in[side].types[i]);
            t->source[side][column - t->first[side]] = i;
            column++;
        }
        t->n_source[side] = column - t->first[side];
    }
    sqlite3_str_appendall(s, ")");
    return sqlite3_str_finish(s);
}

int span_join_disconnect(sqlite3_vtab *base)
{
    struct span_join_table *t = (struct span_join_table *)base;
    engine_remove_batches(t->e, t->serial);
    sqlite3_free(t->name);
    for (int i = 0; i < 2; i++) {
        input_free(&t->in[i]);
        sqlite3_free(t->source[i]);
    }
    sqlite3_free(t);
    return SQLITE_OK;
}

int span_join_connect(sqlite3 *db, struct engine *e, int argc, const char *const *argv, unsigned shadows,
                      sqlite3_vtab **out, char **err)
{
    if (argc != 5) {
        *err = sqlite3_mprintf("SPAN_JOIN: expected 2 args, got %d", argc - 3);
        return SQLITE_ERROR;
    }
    struct span_join_table *t = sqlite3_malloc(sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    *t = (struct span_join_table){.e = e, .shadows = shadows};
    int rc = SQLITE_OK;
    for (int i = 0; i < 2 && rc == SQLITE_OK; i++) {
        rc = parse_input(argv[3 + i], &t->in[i], err);
        if (rc == SQLITE_OK)
            rc = read_columns(e, &t->in[i], err);
        if (rc == SQLITE_OK) {
            t->source[i] = sqlite3_malloc64((sqlite3_uint64)(t->in[i].n_columns + 1) * sizeof(int));
            rc = t->source[i] ? SQLITE_OK : SQLITE_NOMEM;
        }
    }
    if (rc == SQLITE_OK && t->in[0].partition && t->in[1].partition &&
        strcasecmp(t->in[0].partition, t->in[1].partition) != 0) {
        *err = sqlite3_mprintf("SPAN_JOIN: mismatching partitions: %s and %s", t->in[0].partition, t->in[1].partition);
        rc = SQLITE_ERROR;
    }
    if (rc == SQLITE_OK && t->in[0].dur < 0 && t->in[1].dur < 0) {
        *err = sqlite3_mprintf("SPAN_JOIN: neither %s nor %s has a column dur", t->in[0].table, t->in[1].table);
        rc = SQLITE_ERROR;
    }
    t->partitioned = t->in[0].partition || t->in[1].partition;
    if (rc == SQLITE_OK)
        rc = check_clashes(t, err);
    char *sql = rc == SQLITE_OK ? declare(t) : NULL;
    if (rc == SQLITE_OK)
        rc = sql ? engine_declare_vtab(db, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc) {
        span_join_disconnect(&t->base);
        return rc;
    }
    t->name = sqlite3_mprintf("%s", argv[2]);
    span_join_offer(t);
    *out = &t->base;
    return SQLITE_OK;
}

/* ---- planning ---- */

const struct span_join_op span_join_ops[] = {
    {SQLITE_INDEX_CONSTRAINT_EQ, '=', SQL_EQ}, {SQLITE_INDEX_CONSTRAINT_NE, '!', SQL_NE},
    {SQLITE_INDEX_CONSTRAINT_LT, '<', SQL_LT}, {SQLITE_INDEX_CONSTRAINT_LE, 'l', SQL_LE},
    {SQLITE_INDEX_CONSTRAINT_GT, '>', SQL_GT}, {SQLITE_INDEX_CONSTRAINT_GE, 'g', SQL_GE},
    {SPAN_JOIN_SOURCE_GEQ, 's', SQL_GE},
};
const int span_join_n_ops = sizeof span_join_ops / sizeof *span_join_ops;

/* Which input column a constraint on `column` may be pushed to: side '1', '2' or 'b' (by name, in both). A side whose
 * gaps make rows must not lose spans to a filter. */
static bool push_target(const struct span_join_table *t, int column, int op, char *side, int *input)
{
    int part = t->partitioned ? 2 : -1;
    if (column < 0)
        return false;
    if (op == SPAN_JOIN_SOURCE_GEQ && column == 0) {
        *side = 'b';
        *input = 0;
        return true;
    }
    if (column == part) {
        *side = t->in[0].partition && t->in[1].partition ? 'b' : t->in[0].partition ? '1' : '2';
        *input = 2;
        return true;
    }
    for (int s = 0; s < 2; s++)
        if (column >= t->first[s] && column < t->first[s] + t->n_source[s]) {
            *side = s ? '2' : '1';
            *input = t->source[s][column - t->first[s]] + 3;
            /* a row of this side that is filtered away would turn into a gap, and gaps show */
            return !(t->shadows & (s ? SHADOW_RIGHT : SHADOW_LEFT));
        }
    return false;
}

int span_join_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    struct span_join_table *t = (struct span_join_table *)base;
    sqlite3_str *plan = sqlite3_str_new(NULL);
    int used = 0;
    double rows = 1e5;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        char side;
        int input, k = 0;
        while (k < span_join_n_ops && span_join_ops[k].op != c->op)
            k++;
        if (k == span_join_n_ops || !push_target(t, c->iColumn, c->op, &side, &input) || input >= 64 * 64 ||
            engine_may_be_misread(t->e, c->op))
            continue;
        if (!c->usable) {
            if (c->op == SPAN_JOIN_SOURCE_GEQ) {
                sqlite3_free(sqlite3_str_finish(plan));
                return SQLITE_CONSTRAINT;
            }
            continue;
        }
        sqlite3_str_appendf(plan, "%c%c%c%c", side, '0' + input / 64, '0' + input % 64, span_join_ops[k].letter);
        info->aConstraintUsage[i].argvIndex = ++used;
        info->aConstraintUsage[i].omit = c->op == SPAN_JOIN_SOURCE_GEQ;
        rows /= c->op == SQLITE_INDEX_CONSTRAINT_EQ ? 10 : 2;
    }
    int rc = operator_set_plan(info, plan);
    info->estimatedCost = rows;
    info->estimatedRows = (sqlite3_int64)rows;
    int lead = t->partitioned ? 2 : 0; /* rows come by (partition, ts), or by ts */
    bool ordered = info->nOrderBy > 0 && info->nOrderBy <= (t->partitioned ? 2 : 1);
    for (int i = 0; i < info->nOrderBy && ordered; i++)
        ordered = !info->aOrderBy[i].desc && info->aOrderBy[i].iColumn == (i == 0 ? lead : 0);
    info->orderByConsumed = ordered;
    return rc;
}

static void source_geq(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    sqlite3_result_error(ctx, "SOURCE_GEQ: may only be used in the WHERE clause of a span join", -1);
}

int span_join_find_function(sqlite3_vtab *base, int argc, const char *name,
                            void (**f)(sqlite3_context *, int, sqlite3_value **), void **arg)
{
    (void)base, (void)arg;
    if (argc != 2 || sqlite3_stricmp(name, "source_geq") != 0)
        return 0;
    *f = source_geq;
    return SPAN_JOIN_SOURCE_GEQ;
}
