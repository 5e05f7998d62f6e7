/* __intrinsic_aggregate: groups and aggregates computed from packed columns.
 *
 *     SELECT c0, c1 FROM __intrinsic_aggregate(plan, 0, 'abc')
 *
 * The plan is a pointer (struct aggregate_plan) that aggregate_plan.c has bound; the other arguments are the values of
 * its tests. Columns c0 … are the groups, then the aggregates. Rows come in the order of the groups. Anybody may call
 * the function, with anything: what is no plan is refused, and a plan is held against the table as it is now. */
#include "sql/planner/planner_private.h"

#include <string.h>

struct group_column {
    const struct column *column;
    int16_t at;
    uint64_t base, n_codes; /* code 0 is NULL */
    bool desc;
};

struct sum {
    int64_t i;
    double d;
    int64_t n; /* values that were not NULL */
    bool overflow;
};

struct aggregate {
    const struct column *column;
    int16_t at;
    char function;
    struct sum *sums; /* by group: also min and max, in i (doubles by order word) */
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct engine *e;
    const struct table *t;
    struct group_column groups[AGGREGATE_MAX_GROUPED];
    uint32_t n_groups;
    struct aggregate aggregates[AGGREGATE_MAX_COLUMNS];
    uint32_t n_aggregates;
    struct test tests[AGGREGATE_MAX_TESTS];
    uint32_t n_tests;
    int64_t *counts; /* rows by group */
    uint32_t *found; /* groups that have rows, in order */
    uint32_t n_found, at, n_codes;
};

static void clear(struct cursor *c)
{
    for (uint32_t i = 0; i < c->n_aggregates; i++)
        mem_free(c->aggregates[i].sums);
    for (uint32_t i = 0; i < c->n_tests; i++)
        test_free(&c->tests[i]);
    mem_free(c->counts);
    mem_free(c->found);
    c->counts = NULL;
    c->found = NULL;
    c->n_groups = c->n_aggregates = c->n_tests = c->n_found = c->at = 0;
}

/* ---- from the plan ---- */

/* 0, or an SQLite code; *nothing when no row can pass. */
static int add_test(struct cursor *c, struct plan_term term, sqlite3_value *value, bool *nothing)
{
    if (!plan_column_is_valid(c->t, term.column))
        return SQLITE_ERROR;
    enum col_type type = term.column >= 0 ? (enum col_type)c->t->columns[term.column].type : COL_U32;
    struct test *test = &c->tests[c->n_tests];
    int made = test_make(test, term.column, type, (enum plan_op)term.op, value, &c->e->storage->strings);
    *nothing |= made == TEST_FAILS;
    if (made != 1) { /* everything passes, or nothing does: a test of no effect keeps the count */
        test_free(test);
        *test = (struct test){.column = VTAB_ROW, .kind = TEST_NOT_NULL};
    }
    c->n_tests++;
    return made == -MRD_ENOMEM ? SQLITE_NOMEM : SQLITE_OK;
}

/* False when the column has more values than groups are counted. */
static bool add_group(struct cursor *c, int16_t at, bool desc)
{
    if (at < 0 || !plan_column_is_valid(c->t, at) || c->t->columns[at].type == COL_F64)
        return false;
    const struct column *column = &c->t->columns[at];
    uint64_t width = (uint64_t)column->max - (uint64_t)column->min; /* wraps only when all are NULL */
    bool empty = column->min > column->max;
    if (!empty && width >= AGGREGATE_MAX_GROUPS)
        return false;
    c->groups[c->n_groups++] = (struct group_column){column, at, (uint64_t)column->min, empty ? 1 : width + 2, desc};
    uint64_t codes = c->n_codes * c->groups[c->n_groups - 1].n_codes; /* both are small */
    c->n_codes = (uint32_t)codes;
    return codes <= AGGREGATE_MAX_GROUPS;
}

static int read_plan(struct cursor *c, const struct aggregate_plan *plan, sqlite3_value **values, int n_values,
                     bool *nothing)
{
    c->t = plan_table_rows(&plan->table, c->e);
    if (!c->t || n_values < (int)plan->n_tests)
        return SQLITE_ERROR;
    c->n_codes = 1;
    for (uint32_t i = 0; i < plan->n_groups; i++)
        if (!add_group(c, plan->groups[i].at, plan->groups[i].desc))
            return SQLITE_ERROR;
    for (uint32_t i = 0; i < plan->n_aggregates; i++) {
        char function = plan->aggregates[i].function;
        int16_t at = plan->aggregates[i].at;
        if (function != '*' && (at < 0 || !plan_column_is_valid(c->t, at)))
            return SQLITE_ERROR;
        c->aggregates[c->n_aggregates++] =
            (struct aggregate){function == '*' ? NULL : &c->t->columns[at], at, function, NULL};
    }
    for (uint32_t i = 0; i < plan->n_tests; i++) {
        int rc = add_test(c, plan->tests[i], values[i], nothing);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* ---- computing ---- */

static void add_ints(struct sum *sums, const uint32_t *codes, const int64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct sum *s = &sums[codes[i]];
        if (words[i] == COL_NULL)
            continue;
        s->n++;
        s->overflow |= __builtin_add_overflow(s->i, words[i], &s->i);
    }
}

static void add_doubles(struct sum *sums, const uint32_t *codes, const int64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct sum *s = &sums[codes[i]];
        double d = column_f64(words[i]);
        if (d != d)
            continue;
        s->n++;
        s->d += d;
    }
}

static void count_values(struct sum *sums, const uint32_t *codes, const int64_t *words, int64_t null, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[codes[i]].n += words[i] != null;
}

static void keep_extremes(struct aggregate *a, const uint32_t *codes, const int64_t *words, uint32_t n)
{
    int64_t null = column_null(a->column->type);
    bool doubles = a->column->type == COL_F64, largest = a->function == 'x';
    for (uint32_t i = 0; i < n; i++) {
        struct sum *s = &a->sums[codes[i]];
        int64_t w = words[i];
        if (w == null || (doubles && column_f64(w) != column_f64(w)))
            continue;
        if (doubles)
            w = column_f64_order(w == column_f64_word(-0.0) ? 0 : w);
        if (!s->n++ || (largest ? w > s->i : w < s->i))
            s->i = w;
    }
}

/* The words of the rows of a block: all of it (rows NULL) or those listed. */
static void read_words(const struct column *c, uint32_t lo, const uint32_t *rows, uint32_t n, int64_t *words)
{
    if (rows)
        column_gather(c, rows, n, words);
    else
        column_unpack(c, lo, n, words);
}

static void add_block(struct cursor *c, uint32_t lo, const uint32_t *rows, uint32_t n)
{
    uint32_t codes[COL_CHUNK_ROWS];
    int64_t words[COL_CHUNK_ROWS];
    memset(codes, 0, n * sizeof *codes);
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct group_column *gc = &c->groups[g];
        int64_t null = column_null(gc->column->type);
        read_words(gc->column, lo, rows, n, words);
        for (uint32_t i = 0; i < n; i++)
            codes[i] = codes[i] * (uint32_t)gc->n_codes +
                       (words[i] == null ? 0 : (uint32_t)((uint64_t)words[i] - gc->base) + 1);
    }
    if (c->n_groups)
        for (uint32_t i = 0; i < n; i++)
            c->counts[codes[i]]++;
    else
        c->counts[0] += n;
    const struct column *held = NULL; /* whose words are in `words` */
    for (uint32_t a = 0; a < c->n_aggregates; a++) {
        struct aggregate *ag = &c->aggregates[a];
        if (ag->function == '*')
            continue;
        if (ag->column != held)
            read_words(ag->column, lo, rows, n, words);
        held = ag->column;
        if (ag->function == 'c')
            count_values(ag->sums, codes, words, column_null(ag->column->type), n);
        else if (ag->function != 's')
            keep_extremes(ag, codes, words, n);
        else if (ag->column->type == COL_F64)
            add_doubles(ag->sums, codes, words, n);
        else
            add_ints(ag->sums, codes, words, n);
    }
}

static int compute(struct cursor *c)
{
    uint32_t rows[COL_CHUNK_ROWS + 8], n_rows = c->t->n_rows;
    bool scan = c->n_groups || c->n_tests;
    for (uint32_t a = 0; a < c->n_aggregates; a++)
        scan |= c->aggregates[a].function != '*';
    if (!scan) {
        c->counts[0] = n_rows;
        return SQLITE_OK;
    }
    for (uint32_t lo = 0; lo < n_rows; lo += COL_CHUNK_ROWS) {
        uint32_t hi = n_rows - lo < COL_CHUNK_ROWS ? n_rows : lo + COL_CHUNK_ROWS;
        if (engine_is_interrupted(c->e))
            return SQLITE_INTERRUPT;
        if (!c->n_tests) {
            add_block(c, lo, NULL, hi - lo);
            continue;
        }
        uint32_t n = scan_chunk(c->t, c->tests, c->n_tests, lo, hi, rows);
        if (n)
            add_block(c, lo, n == hi - lo ? NULL : rows, n);
    }
    return SQLITE_OK;
}

/* ---- the order of groups ---- */

static uint64_t code_of(const struct cursor *c, uint32_t group, uint32_t g)
{
    for (uint32_t k = c->n_groups - 1; k > g; k--)
        group /= (uint32_t)c->groups[k].n_codes;
    return group % c->groups[g].n_codes;
}

static int64_t word_of(const struct cursor *c, uint32_t group, uint32_t g)
{
    uint64_t code = code_of(c, group, g);
    return code ? (int64_t)(c->groups[g].base + code - 1) : column_null(c->groups[g].column->type);
}

static int compare_words(const struct cursor *c, uint32_t g, uint32_t a, uint32_t b)
{
    if (c->groups[g].column->type != COL_STR) {
        uint64_t x = code_of(c, a, g), y = code_of(c, b, g); /* NULL is code 0, and first */
        return (x > y) - (x < y);
    }
    strid x = (strid)word_of(c, a, g), y = (strid)word_of(c, b, g);
    if (!x || !y || x == y)
        return (x != 0) - (y != 0);
    struct slice s = strpool_view(&c->e->storage->strings, x), t = strpool_view(&c->e->storage->strings, y);
    int order = memcmp(s.p, t.p, s.len < t.len ? s.len : t.len);
    return order ? order : (s.len > t.len) - (s.len < t.len);
}

static int compare_groups(const void *pa, const void *pb, void *ctx)
{
    const struct cursor *c = ctx;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        int order = compare_words(c, g, *(const uint32_t *)pa, *(const uint32_t *)pb);
        if (order)
            return c->groups[g].desc ? -order : order;
    }
    return 0;
}

static int finish(struct cursor *c)
{
    c->found = mem_alloc(((size_t)c->n_codes + 1) * sizeof *c->found);
    if (!c->found)
        return SQLITE_NOMEM;
    for (uint32_t k = 0; k < c->n_codes; k++)
        if (c->counts[k] || !c->n_groups) /* without groups there is always one row */
            c->found[c->n_found++] = k;
    return stop_sort_r(c->found, c->n_found, sizeof *c->found, compare_groups, c, engine_stop(c->e))
               ? SQLITE_OK
               : engine_gave_up(c->e);
}

/* ---- the virtual table ---- */

struct aggregate_vtab {
    sqlite3_vtab base;
    struct engine *e;
};

enum { OUTPUTS = AGGREGATE_MAX_COLUMNS + AGGREGATE_MAX_GROUPED };

static int x_connect(sqlite3 *db, void *client, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    struct aggregate_vtab *v = mem_zalloc(sizeof *v);
    sqlite3_str *s = sqlite3_str_new(NULL);
    (void)argc;
    (void)argv;
    (void)message;
    sqlite3_str_appendall(s, "CREATE TABLE x(");
    for (int i = 0; i < OUTPUTS; i++)
        sqlite3_str_appendf(s, "c%d,", i);
    sqlite3_str_appendall(s, "plan HIDDEN");
    for (int i = 0; i < AGGREGATE_MAX_TESTS; i++)
        sqlite3_str_appendf(s, ",v%d HIDDEN", i);
    sqlite3_str_appendall(s, ")");
    char *text = sqlite3_str_finish(s);
    int rc = v && text ? engine_declare_vtab(db, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    if (rc != SQLITE_OK) {
        mem_free(v);
        return rc;
    }
    v->e = client;
    *out = &v->base;
    return SQLITE_OK;
}

static int x_disconnect(sqlite3_vtab *base)
{
    mem_free(base);
    return SQLITE_OK;
}

/* Arguments are all equalities on hidden columns, in their order. */
static int x_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int n = 0;
    (void)base;
    for (int column = OUTPUTS; column <= OUTPUTS + AGGREGATE_MAX_TESTS; column++)
        for (int i = 0; i < info->nConstraint; i++) {
            const struct sqlite3_index_constraint *k = &info->aConstraint[i];
            if (k->iColumn != column || k->op != SQLITE_INDEX_CONSTRAINT_EQ || info->aConstraintUsage[i].argvIndex)
                continue;
            if (!k->usable || n != column - OUTPUTS)
                return SQLITE_CONSTRAINT;
            info->aConstraintUsage[i].argvIndex = ++n;
            info->aConstraintUsage[i].omit = 1;
        }
    info->estimatedCost = 1000;
    info->estimatedRows = 100;
    return n ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int x_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *c = mem_zalloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->e = ((struct aggregate_vtab *)base)->e;
    *out = &c->base;
    return SQLITE_OK;
}

static int x_close(sqlite3_vtab_cursor *base)
{
    clear((struct cursor *)base);
    mem_free(base);
    return SQLITE_OK;
}

static int x_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)base;
    (void)number;
    (void)text;
    clear(c);
    const struct aggregate_plan *plan = argc > 0 ? sqlite3_value_pointer(argv[0], AGGREGATE_PLAN) : NULL;
    bool nothing = false;
    int rc = plan ? read_plan(c, plan, argv + 1, argc - 1, &nothing) : SQLITE_ERROR;
    if (rc == SQLITE_ERROR)
        base->pVtab->zErrMsg =
            sqlite3_mprintf(plan ? "the table has changed since the statement was prepared; prepare it again"
                                 : "__intrinsic_aggregate: no plan; this function is for the engine's own use");
    if (rc != SQLITE_OK)
        return rc;
    c->counts = mem_zalloc(((size_t)c->n_codes + 1) * sizeof *c->counts);
    bool ok = c->counts != NULL;
    for (uint32_t i = 0; ok && i < c->n_aggregates; i++)
        ok = c->aggregates[i].function == '*' ||
             (c->aggregates[i].sums = mem_zalloc(((size_t)c->n_codes + 1) * sizeof(struct sum))) != NULL;
    if (!ok)
        return SQLITE_NOMEM;
    if (!nothing)
        rc = compute(c);
    return rc == SQLITE_OK ? finish(c) : rc;
}

static int x_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->at++;
    return SQLITE_OK;
}

static int x_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *c = (const struct cursor *)base;
    return c->at >= c->n_found;
}

static int x_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    const struct cursor *c = (const struct cursor *)base;
    uint32_t group = c->found[c->at], at = (uint32_t)column;
    if (at < c->n_groups) {
        planner_result(c->e, ctx, c->groups[at].column->type, word_of(c, group, at));
        return SQLITE_OK;
    }
    at -= c->n_groups;
    if (at >= c->n_aggregates)
        return SQLITE_OK;
    const struct aggregate *a = &c->aggregates[at];
    const struct sum *s = a->sums ? &a->sums[group] : NULL;
    if (a->function == '*') {
        sqlite3_result_int64(ctx, c->counts[group]);
    } else if (a->function == 'c') {
        sqlite3_result_int64(ctx, s->n);
    } else if (s->overflow) {
        sqlite3_result_error(ctx, "integer overflow", -1);
    } else if (s->n && a->function == 's') {
        if (a->column->type == COL_F64)
            sqlite3_result_double(ctx, s->d);
        else
            sqlite3_result_int64(ctx, s->i);
    } else if (s->n) {
        planner_result(c->e, ctx, a->column->type, column_order(a->column->type, s->i));
    }
    return SQLITE_OK;
}

static int x_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((const struct cursor *)base)->at;
    return SQLITE_OK;
}

const sqlite3_module aggregate_module = {.xConnect = x_connect,
                                         .xBestIndex = x_best_index,
                                         .xDisconnect = x_disconnect,
                                         .xOpen = x_open,
                                         .xClose = x_close,
                                         .xFilter = x_filter,
                                         .xNext = x_next,
                                         .xEof = x_eof,
                                         .xColumn = x_column,
                                         .xRowid = x_rowid};
