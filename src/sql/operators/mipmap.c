/* __intrinsic_counter_mipmap(query) and __intrinsic_slice_mipmap(query): a timeline as a screen needs it, one row a
 * pixel.
 *
 *     CREATE VIRTUAL TABLE m USING __intrinsic_slice_mipmap((SELECT id, ts, dur, depth FROM …));
 *     SELECT * FROM m(start, end, step)
 *
 * The query runs once, when the table is made; its rows are kept sorted. A counter's bucket tells the smallest, largest
 * and last value, the sample in force at the start belonging to the first; a slice's bucket tells, for each depth, the
 * longest slice and how many there are. Both: in_window_start, in_window_end, in_window_step HIDDEN, all needed. */
#include "base/bisect.h"
#include "base/vec.h"
#include "sql/operators/operators.h"

struct entry {
    int64_t ts;
    int64_t dur;  /* slices */
    double value; /* counters */
    uint32_t id, depth;
};

struct level {
    size_t first, n; /* entries of one depth, by ts */
};

struct mipmap_table {
    sqlite3_vtab base;
    struct engine *e;
    bool slices;
    VEC(struct entry)
    entries;
    VEC(struct level)
    levels;
};

struct mipmap_row {
    int64_t ts, dur, last_ts;
    double min, max, last;
    int64_t count;
    uint32_t id, depth;
};

struct mipmap_cursor {
    sqlite3_vtab_cursor base;
    VEC(struct mipmap_row)
    rows;
    size_t at;
};

static int by_depth_and_ts(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->ts != y->ts ? (x->ts < y->ts ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

static int column_of(sqlite3_stmt *stmt, const char *name)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        if (sqlite3_stricmp(sqlite3_column_name(stmt, i), name) == 0)
            return i;
    return -1;
}

/* Runs the query into entries. */
static int load(struct mipmap_table *t, const char *query, char **err)
{
    static const char *const slice_names[] = {"ts", "id", "dur", "depth"}, *const counter_names[] = {"ts", "value"};
    const char *const *names = t->slices ? slice_names : counter_names;
    int at[4], n = t->slices ? 4 : 2;
    sqlite3 *db = engine_db(t->e);
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM %s", query);
    int rc = sql ? engine_compile(t->e, sql, -1, 0, &stmt, NULL) : SQLITE_NOMEM;
    bool sorted = true;
    sqlite3_free(sql);
    for (int i = 0; i < n && rc == SQLITE_OK; i++)
        if ((at[i] = column_of(stmt, names[i])) < 0) {
            *err = sqlite3_mprintf("mipmap: the query has no column %s", names[i]);
            rc = SQLITE_ERROR;
        }
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct entry v = {.ts = sqlite3_column_int64(stmt, at[0])};
        if (t->slices) {
            int64_t id = sqlite3_column_int64(stmt, at[1]);
            v.dur = sqlite3_column_int64(stmt, at[2]);
            v.depth = (uint32_t)sqlite3_column_int64(stmt, at[3]);
            v.id = (uint32_t)id;
            if (id < 0 || id > UINT32_MAX) {
                *err = sqlite3_mprintf("mipmap: id %lld does not fit 32 bits", (long long)id);
                rc = SQLITE_ERROR;
                break;
            }
        } else {
            v.value = sqlite3_column_double(stmt, at[1]);
        }
        sorted = sorted && (t->entries.n == 0 || by_depth_and_ts(vec_last(&t->entries), &v) <= 0);
        rc = vec_push(&t->entries, v) ? SQLITE_OK : SQLITE_NOMEM;
    }
    if (rc == SQLITE_DONE)
        rc = SQLITE_OK;
    if (rc && rc != SQLITE_INTERRUPT && !*err)
        *err = sqlite3_mprintf("mipmap: %s", sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    if (rc == SQLITE_OK && !sorted)
        rc = stop_sort(t->entries.p, t->entries.n, sizeof *t->entries.p, by_depth_and_ts, engine_stop(t->e))
                 ? SQLITE_OK
                 : engine_gave_up(t->e);
    for (size_t i = 0; i < t->entries.n && rc == SQLITE_OK; i++) {
        if (i == 0 || t->entries.p[i].depth != t->entries.p[i - 1].depth)
            rc = vec_push(&t->levels, (struct level){i, 0}) ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            vec_last(&t->levels)->n++;
    }
    return rc;
}

static int disconnect(sqlite3_vtab *base)
{
    struct mipmap_table *t = (struct mipmap_table *)base;
    vec_free(&t->entries);
    vec_free(&t->levels);
    sqlite3_free(t);
    return SQLITE_OK;
}

static int create(sqlite3 *db, struct engine *e, int argc, const char *const *argv, bool slices, sqlite3_vtab **out,
                  char **err)
{
    if (argc != 4) {
        *err = sqlite3_mprintf("mipmap: expected one query, got %d arguments", argc - 3);
        return SQLITE_ERROR;
    }
    int rc = sqlite3_declare_vtab(
        db, slices ? "CREATE TABLE x(in_window_start BIGINT HIDDEN, in_window_end BIGINT HIDDEN, in_window_step BIGINT "
                     "HIDDEN, ts BIGINT, id BIGINT, count BIGINT, dur BIGINT, depth BIGINT)"
                   : "CREATE TABLE x(in_window_start BIGINT HIDDEN, in_window_end BIGINT HIDDEN, in_window_step BIGINT "
                     "HIDDEN, min_value DOUBLE, max_value DOUBLE, last_ts BIGINT, last_value DOUBLE)");
    struct mipmap_table *t = rc ? NULL : sqlite3_malloc(sizeof *t);
    if (!t)
        return rc ? rc : SQLITE_NOMEM;
    *t = (struct mipmap_table){.e = e, .slices = slices};
    rc = load(t, argv[3], err);
    if (rc)
        disconnect(&t->base);
    else
        *out = &t->base;
    return rc;
}

static int create_counter(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    return create(db, aux, argc, argv, false, out, err);
}

static int create_slice(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    return create(db, aux, argc, argv, true, out, err);
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    int found = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < 0 || c->iColumn > 2)
            continue;
        if (!c->usable)
            return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = c->iColumn + 1;
        info->aConstraintUsage[i].omit = 1;
        found |= 1 << c->iColumn;
    }
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    return found == 7
               ? SQLITE_OK
               : operator_error(base, "mipmap: in_window_start, in_window_end and in_window_step are all needed");
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    return operator_open_cursor(sizeof(struct mipmap_cursor), out);
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    vec_free(&((struct mipmap_cursor *)base)->rows);
    sqlite3_free(base);
    return SQLITE_OK;
}

static size_t lower_bound(const struct entry *p, size_t lo, size_t hi, int64_t ts)
{
    BISECT_RANGE(lo, hi, i, p[i].ts < ts);
    return lo;
}

static struct mipmap_row slice_bucket(const struct entry *p, size_t from, size_t to)
{
    size_t best = from;
    for (size_t i = from; i < to; i++)
        if (p[i].dur > p[best].dur)
            best = i;
    return (struct mipmap_row){
        .ts = p[best].ts, .dur = p[best].dur, .id = p[best].id, .depth = p[best].depth, .count = (int64_t)(to - from)};
}

static struct mipmap_row counter_bucket(const struct entry *p, size_t from, size_t to)
{
    struct mipmap_row r = {
        .min = p[from].value, .max = p[from].value, .last_ts = p[to - 1].ts, .last = p[to - 1].value};
    for (size_t i = from; i < to; i++) {
        r.min = p[i].value < r.min ? p[i].value : r.min;
        r.max = p[i].value > r.max ? p[i].value : r.max;
    }
    return r;
}

/* The buckets of one depth. What began before the window and reaches into it counts for the first bucket. */
static int fill(struct mipmap_cursor *c, const struct mipmap_table *t, const struct level *l, int64_t start,
                int64_t end, int64_t step)
{
    const struct entry *p = t->entries.p;
    size_t last = l->first + l->n, from = lower_bound(p, l->first, last, start);
    if (from > l->first && (from == last || p[from].ts != start))
        from--;
    for (int64_t at = start; at < end;) {
        int64_t next = at > INT64_MAX - step ? INT64_MAX : at + step;
        size_t to = lower_bound(p, from, last, next);
        if (stop_asked(engine_stop(t->e)))
            return SQLITE_INTERRUPT;
        if (to > from) {
            if (!vec_push(&c->rows, t->slices ? slice_bucket(p, from, to) : counter_bucket(p, from, to)))
                return SQLITE_NOMEM;
            from = to;
        }
        if (from == last)
            break;
        /* buckets without entries are passed over at once */
        int64_t skip = p[from].ts > next ? (p[from].ts - next) / step : 0;
        at = next > INT64_MAX - skip * step ? INT64_MAX : next + skip * step;
    }
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct mipmap_cursor *c = (struct mipmap_cursor *)base;
    const struct mipmap_table *t = (const struct mipmap_table *)base->pVtab;
    (void)number, (void)plan, (void)argc;
    int64_t start = sqlite3_value_int64(argv[0]), end = sqlite3_value_int64(argv[1]),
            step = sqlite3_value_int64(argv[2]);
    int rc = SQLITE_OK;
    c->rows.n = c->at = 0;
    if (step <= 0)
        return operator_error(base->pVtab, "mipmap: the step must be positive");
    /* The web UI was made for an operator that gives one row of zeros when there is nothing at all. */
    if (t->levels.n == 0 && !vec_push(&c->rows, (struct mipmap_row){.count = 1}))
        rc = SQLITE_NOMEM;
    for (size_t i = 0; i < t->levels.n && rc == SQLITE_OK; i++)
        rc = fill(c, t, &t->levels.p[i], start, end, step);
    return rc;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    ((struct mipmap_cursor *)base)->at++;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct mipmap_cursor *c = (const struct mipmap_cursor *)base;
    return c->at >= c->rows.n;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    const struct mipmap_cursor *c = (const struct mipmap_cursor *)base;
    const struct mipmap_table *t = (const struct mipmap_table *)base->pVtab;
    const struct mipmap_row *r = &c->rows.p[c->at];
    if (column < 3)
        return SQLITE_OK;
    if (t->slices) {
        const int64_t values[] = {r->ts, r->id, r->count, r->dur, r->depth};
        sqlite3_result_int64(ctx, values[column - 3]);
    } else if (column == 5) {
        sqlite3_result_int64(ctx, r->last_ts);
    } else {
        sqlite3_result_double(ctx, column == 3 ? r->min : column == 4 ? r->max : r->last);
    }
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = (sqlite3_int64)((struct mipmap_cursor *)base)->at;
    return SQLITE_OK;
}

#define MIPMAP_MODULE(name, creator)                                                                                   \
    const sqlite3_module name = {                                                                                      \
        .iVersion = 1,                                                                                                 \
        .xCreate = creator,                                                                                            \
        .xConnect = creator,                                                                                           \
        .xBestIndex = best_index,                                                                                      \
        .xDisconnect = disconnect,                                                                                     \
        .xDestroy = disconnect,                                                                                        \
        .xOpen = cursor_open,                                                                                          \
        .xClose = cursor_close,                                                                                        \
        .xFilter = cursor_filter,                                                                                      \
        .xNext = cursor_next,                                                                                          \
        .xEof = cursor_eof,                                                                                            \
        .xColumn = cursor_column,                                                                                      \
        .xRowid = cursor_rowid,                                                                                        \
    }

MIPMAP_MODULE(counter_mipmap_module, create_counter);
MIPMAP_MODULE(slice_mipmap_module, create_slice);
