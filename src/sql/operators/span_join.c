/* SPAN_JOIN, SPAN_LEFT_JOIN, SPAN_OUTER_JOIN: the intersection of two tables of spans.
 *
 *     CREATE VIRTUAL TABLE x USING span_join(a PARTITIONED cpu, b PARTITIONED cpu)
 *     x: ts, dur, [cpu,] the other columns of a, the other columns of b
 *
 * Both inputs are read once, ordered by (partition, ts), and merged: each side stands on a segment, a span of its table
 * ("real") or, where the kind of join wants it, a gap between spans ("shadow", whose columns are NULL). Overlapping
 * segments make a row; then the side that ends first moves on. An unpartitioned side that meets a partitioned one is
 * kept in memory and read again for each partition.
 *
 * xBestIndex hands the pushed constraints on as text in idxStr: for each, side ('1', '2', 'b'oth), column number of the
 * side (2 digits of base 64), operator letter. */
#include "sql/operators/span_join.h"

#include "base/saturate.h"
#include "sql/dialect/pointer.h"
#include "sql/plan/plan.h"

#define NO_PARTITION INT64_MIN
#define FOREVER      INT64_MAX

/* ---- reading a side ---- */

static int side_error(struct span_join_cursor *c)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    if (stop_asked(engine_stop(t->e)))
        return SQLITE_INTERRUPT;
    return operator_error(&t->base, "SPAN_JOIN: %s", sqlite3_errmsg(engine_db(t->e)));
}

/* Loads what stands ready: partition, ts, end. */
static int load_row(struct span_join_cursor *c, struct side *s)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    const struct span_input *in = s->in;
    int64_t dur;
    if (s->kept) {
        struct span_words w = span_join_kept_words(s);
        s->row_ts = w.ts;
        dur = w.dur;
        s->row_partition = w.part;
    } else {
        if (sqlite3_column_type(s->stmt, in->ts) == SQLITE_NULL)
            return operator_error(&t->base, "SPAN_JOIN: table %s has a row whose ts is NULL", in->table);
        s->row_ts = sqlite3_column_int64(s->stmt, in->ts);
        dur = in->dur >= 0 ? sqlite3_column_int64(s->stmt, in->dur) : 0;
        if (in->part >= 0) {
            if (sqlite3_column_type(s->stmt, in->part) != SQLITE_INTEGER)
                return operator_error(&t->base, "SPAN_JOIN: partition is not an INT in table %s", in->table);
            s->row_partition = sqlite3_column_int64(s->stmt, in->part);
        }
    }
    if (dur < -1)
        return operator_error(&t->base, "SPAN_JOIN: table %s has a negative dur (%lld) at ts %lld", in->table,
                              (long long)dur, (long long)s->row_ts);
    s->row_end = saturating_add(s->row_ts, dur);
    s->row_adjusted = span_join_adjusted(in, s->row_ts, dur);
    return SQLITE_OK;
}

/* Goes to the next row of the table, NULL partitions left out. */
static int next_row(struct span_join_cursor *c, struct side *s)
{
    if (s->kept) {
        uint32_t n_rows = s->kept->table.n_rows;
        do
            s->kept_row++;
        while (s->kept_row < n_rows && s->in->part >= 0 && span_join_kept_words(s).part == COL_NULL);
        s->eof = s->kept_row >= n_rows;
        return s->eof ? SQLITE_OK : load_row(c, s);
    }
    for (;;) {
        int rc = sqlite3_step(s->stmt);
        if (rc == SQLITE_DONE) {
            s->eof = true;
            return SQLITE_OK;
        }
        if (rc != SQLITE_ROW)
            return side_error(c);
        if (s->in->part < 0 || sqlite3_column_type(s->stmt, s->in->part) != SQLITE_NULL)
            return load_row(c, s);
    }
}

static bool row_here(const struct span_join_cursor *c, const struct side *s)
{
    return !s->eof && (s->in->part < 0 || s->row_partition == c->partition);
}

static void set_segment(struct side *s, bool real, int64_t start, int64_t end, int64_t adjusted)
{
    s->real = real;
    s->start = start;
    s->end = end;
    s->adjusted = adjusted;
}

/* Stands on the row that is ready, as a span. It must not begin before the one before has ended, but for the
 * partitioned side of a join whose other side has no partitions: there slices that nest meet a window, and each is a
 * span. */
static int take_real(struct span_join_cursor *c, struct side *s)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    bool may_overlap = s->in->part >= 0 && (t->in[0].part < 0 || t->in[1].part < 0);
    if (s->has_last && s->row_ts < s->last_end && !may_overlap) {
        if (s->in->part >= 0)
            return operator_error(&t->base,
                                  "SPAN_JOIN: table %s has overlapping spans in partition %lld: one begins at %lld "
                                  "before the one before ends at %lld",
                                  s->in->table, (long long)c->partition, (long long)s->row_ts, (long long)s->last_end);
        return operator_error(&t->base,
                              "SPAN_JOIN: table %s has overlapping spans: one begins at %lld before the one before "
                              "ends at %lld",
                              s->in->table, (long long)s->row_ts, (long long)s->last_end);
    }
    s->has_last = true;
    s->last_end = s->in->dur < 0 ? s->row_ts : s->row_adjusted;
    set_segment(s, true, s->row_ts, s->row_end, s->row_adjusted);
    return SQLITE_OK;
}

/* The first segment of the partition. */
static int first_segment(struct span_join_cursor *c, struct side *s)
{
    s->done = false;
    s->has_last = false;
    if (s->in->part < 0 && s->kept) {
        s->kept_row = UINT32_MAX;
        if (s->in_order)
            span_join_pass(s, c->side[s == c->side].row_ts);
        s->eof = s->kept->table.n_rows == 0;
        int rc = s->eof ? SQLITE_OK : next_row(c, s);
        if (rc)
            return rc;
    }
    bool here = row_here(c, s);
    if (s->shadows && (!here || s->row_ts > INT64_MIN)) {
        int64_t end = here ? s->row_ts : FOREVER;
        set_segment(s, false, INT64_MIN, end, end);
        return SQLITE_OK;
    }
    if (here)
        return take_real(c, s);
    s->done = true;
    return SQLITE_OK;
}

static int next_segment(struct span_join_cursor *c, struct side *s)
{
    if (s->real) {
        int rc = next_row(c, s);
        if (rc)
            return rc;
        int64_t end = row_here(c, s) ? s->row_ts : FOREVER;
        if (s->shadows && s->adjusted < end) {
            set_segment(s, false, s->adjusted, end, end);
            return SQLITE_OK;
        }
    }
    if (row_here(c, s) && (s->real || s->end != FOREVER))
        return take_real(c, s);
    s->done = true;
    return SQLITE_OK;
}

/* ---- the merge ---- */

/* One begins within the other: a span of no length, or without an end, is where it begins. */
static bool overlap(const struct side *a, const struct side *b)
{
    if (!a->real && !b->real)
        return false;
    if (a->start == b->start)
        return (a->real && b->real) || a->start < a->adjusted || b->start < b->adjusted;
    return a->start > b->start ? a->start < b->adjusted : b->start < a->adjusted;
}

/* The side that is to move on: it ends first; a gap before a span; of two spans the one that began first, since one of
 * no length still meets what begins where it stands. */
static struct side *earliest(struct span_join_cursor *c)
{
    struct side *a = &c->side[0], *b = &c->side[1];
    if (a->adjusted != b->adjusted)
        return a->adjusted < b->adjusted ? a : b;
    if (a->real != b->real)
        return a->real < b->real ? a : b;
    return a->start < b->start ? a : b;
}

/* Leaves what is left of this partition behind and goes to the next one. */
static int next_partition(struct span_join_cursor *c)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    int rc = SQLITE_OK;
    for (;;) {
        int64_t next = FOREVER;
        bool any = false;
        for (int i = 0; i < 2; i++) {
            struct side *s = &c->side[i];
            while (rc == SQLITE_OK && s->in->part >= 0 && c->partition != NO_PARTITION && row_here(c, s))
                rc = next_row(c, s);
            if (rc)
                return rc;
            if (s->in->part >= 0 && !s->eof && (!any || s->row_partition < next)) {
                next = s->row_partition;
                any = true;
            }
        }
        if (!any) {
            c->eof = true;
            return SQLITE_OK;
        }
        c->partition = next;
        rc = first_segment(c, &c->side[0]);
        if (rc == SQLITE_OK)
            rc = first_segment(c, &c->side[1]);
        if (rc || (!c->side[0].done && !c->side[1].done) || !t->partitioned)
            return rc;
    }
}

/* Stands on the next overlap, the present one included. */
static int settle(struct span_join_cursor *c)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    while (!c->eof) {
        if (c->side[0].done || c->side[1].done) {
            if (!t->partitioned) {
                c->eof = true;
                break;
            }
            int rc = next_partition(c);
            if (rc)
                return rc;
            continue;
        }
        if (overlap(&c->side[0], &c->side[1]))
            return SQLITE_OK;
        struct side *s = earliest(c);
        if (s->in_order && s->real)
            span_join_pass(s, c->side[s == c->side].start);
        int rc = next_segment(c, s);
        if (rc)
            return rc;
    }
    return SQLITE_OK;
}

/* ---- cursor ---- */

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    return operator_open_cursor(sizeof(struct span_join_cursor), out);
}

void span_join_close(struct span_join_cursor *c)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(c->side[i].stmt);
        runtime_table_unref(c->side[i].kept);
        memset(&c->side[i], 0, sizeof c->side[i]);
    }
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    span_join_close((struct span_join_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static char *side_sql(const struct span_join_table *t, int side, const char *plan)
{
    const struct span_input *in = &t->in[side];
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "SELECT ");
    for (int i = 0; i < in->n_columns; i++)
        sqlite3_str_appendf(s, "%s\"%w\"", i ? ", " : "", in->columns[i]);
    sqlite3_str_appendf(s, " FROM \"%w\"", in->table);
    bool any = false;
    for (int k = 0; plan && plan[4 * k]; k++) {
        const char *p = plan + 4 * k;
        int input = (p[1] - '0') * 64 + (p[2] - '0'), op = 0;
        if (p[0] != 'b' && p[0] != '1' + side)
            continue;
        while (span_join_ops[op].letter != p[3])
            op++;
        const char *column = input == 0 ? "ts" : input == 2 ? in->partition : in->columns[input - 3];
        sqlite3_str_appendf(s, " %s \"%w\" %s ?%d", any ? "AND" : "WHERE", column, sql_op_text(span_join_ops[op].sql),
                            k + 1);
        any = true;
    }
    sqlite3_str_appendall(s, " ORDER BY ");
    if (in->partition)
        sqlite3_str_appendf(s, "\"%w\", ", in->partition);
    sqlite3_str_appendall(s, "ts");
    return sqlite3_str_finish(s);
}

/* Are kept rows what the statement would have given: times and partitions that are integers? */
static bool kept_suits(const struct side *s)
{
    int columns[] = {s->in->ts, s->in->dur, s->in->part};
    bool suits = s->kept->table.n_rows && !s->kept->table.columns[s->in->ts].has_null;
    for (int i = 0; i < 3; i++)
        suits &= columns[i] < 0 || s->kept->columns[columns[i]].type == COL_I64;
    return suits;
}

/* Which columns of a side are read; NULL: no memory. */
static bool *needed_of(const struct span_join_table *t, int side, const bool *wanted)
{
    const struct span_input *in = &t->in[side];
    bool *needed = mem_zalloc((size_t)in->n_columns + 1);
    int own[] = {in->ts, in->dur, in->part};
    for (int i = 0; needed && i < 3; i++)
        if (own[i] >= 0)
            needed[own[i]] = true;
    for (int i = 0; needed && i < t->n_source[side]; i++)
        if (wanted[t->first[side] + i])
            needed[t->source[side][i]] = true;
    return needed;
}

/* Rows of a plan. */
static bool keep_planned(struct span_join_cursor *c, struct side *s, const char *sql)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    bool *needed = c->wanted ? needed_of(t, s == &c->side[1], c->wanted) : NULL;
    int kept = plan_rows(t->e, sql, needed, &s->kept);
    mem_free(needed);
    if (!kept)
        return false;
    bool suits = kept_suits(s);
    if (!suits) {
        runtime_table_unref(s->kept);
        s->kept = NULL;
    }
    s->kept_row = UINT32_MAX;
    return suits;
}

static int side_open(struct span_join_cursor *c, int side, const char *plan, int argc, sqlite3_value **argv)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    struct side *s = &c->side[side];
    struct error err = {0};
    s->in = &t->in[side];
    s->shadows = t->shadows & (side ? SHADOW_RIGHT : SHADOW_LEFT);
    char *sql = side_sql(t, side, plan);
    if (sql && keep_planned(c, s, sql)) {
        sqlite3_free(sql);
        return t->partitioned && !s->in->partition ? SQLITE_OK : next_row(c, s);
    }
    int rc = sql ? engine_compile(t->e, sql, -1, 0, &s->stmt, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc)
        return rc == SQLITE_NOMEM ? rc : side_error(c);
    for (int i = 0; i < argc; i++)
        if (i < sqlite3_bind_parameter_count(s->stmt))
            sqlite3_bind_value(s->stmt, i + 1, argv[i]);
    if (c->keep_all || (t->partitioned && !s->in->partition)) {
        if (engine_materialise(t->e, s->stmt, NULL, &s->kept, &err))
            return err.code == -MRD_ECANCELLED || stop_asked(engine_stop(t->e))
                       ? SQLITE_INTERRUPT
                       : operator_error(&t->base, "SPAN_JOIN: %s", err.text);
        sqlite3_finalize(s->stmt);
        s->stmt = NULL;
        if (s->kept->table.n_rows && s->kept->table.columns[s->in->ts].has_null)
            return operator_error(&t->base, "SPAN_JOIN: table %s has a row whose ts is NULL", s->in->table);
        s->kept_row = UINT32_MAX;
        if (c->keep_all && s->kept->table.n_rows && !kept_suits(s))
            return SQLITE_ERROR; /* row by row tells why */
        return t->partitioned && !s->in->partition ? SQLITE_OK : next_row(c, s);
    }
    return next_row(c, s);
}

/* Span joins read span joins, by views also themselves: the stack is not for those. */
enum { DEEPEST_JOIN = 16 };

static int enter(struct span_join_cursor *c)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    bool deep = engine_operator_depth(t->e, 1) > DEEPEST_JOIN;
    if (!engine_operators_too_deep(t->e, deep))
        return SQLITE_OK;
    engine_operator_depth(t->e, -1);
    return operator_error(&t->base, "SPAN_JOIN: %s and %s are joins of joins, or of themselves, more than %d deep",
                          t->in[0].table, t->in[1].table, DEEPEST_JOIN);
}

static int leave(const struct span_join_cursor *c, int rc)
{
    engine_operator_depth(((const struct span_join_table *)c->base.pVtab)->e, -1);
    return rc;
}

static int filter(struct span_join_cursor *c, const char *plan, int argc, sqlite3_value **argv)
{
    struct span_join_table *t = (struct span_join_table *)c->base.pVtab;
    span_join_close(c);
    c->eof = false;
    c->partition = NO_PARTITION;
    int rc = side_open(c, 0, plan, argc, argv);
    if (rc == SQLITE_OK)
        rc = side_open(c, 1, plan, argc, argv);
    if (rc)
        return rc;
    for (int i = 0; i < 2; i++)
        c->side[i].in_order = t->partitioned && c->side[i].in->part < 0 && !c->side[1 - i].shadows &&
                              span_join_stands_in_order(&c->side[i]);
    if (t->partitioned) {
        rc = next_partition(c);
    } else {
        rc = first_segment(c, &c->side[0]);
        if (rc == SQLITE_OK)
            rc = first_segment(c, &c->side[1]);
    }
    return rc ? rc : settle(c);
}

int span_join_filter(struct span_join_cursor *c, const char *plan, int argc, sqlite3_value **argv)
{
    int rc = enter(c);
    return rc ? rc : leave(c, filter(c, plan, argc, argv));
}

int span_join_next(struct span_join_cursor *c)
{
    int rc = next_segment(c, earliest(c));
    return rc ? rc : settle(c);
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    (void)number;
    return span_join_filter((struct span_join_cursor *)base, plan, argc, argv);
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct span_join_cursor *c = (struct span_join_cursor *)base;
    int rc = enter(c);
    return rc ? rc : leave(c, span_join_next(c));
}

/* ---- row by row ---- */

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    return ((struct span_join_cursor *)base)->eof;
}

static void kept_result(sqlite3_context *ctx, const struct engine *e, const struct side *s, int column)
{
    int type = s->kept->columns[column].type;
    int64_t w = table_get(&s->kept->table, (uint32_t)column, s->kept_row);
    if (w == column_null((enum col_type)type))
        return;
    if (type == COL_F64) {
        sqlite3_result_double(ctx, column_f64(w));
    } else if (type == COL_STR) {
        struct slice text = strpool_view(&engine_storage((struct engine *)(uintptr_t)e)->strings, (strid)w);
        sqlite3_result_text(ctx, (const char *)text.p, (int)text.len, SQLITE_STATIC);
    } else {
        sqlite3_result_int64(ctx, w);
    }
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
    struct span_join_cursor *c = (struct span_join_cursor *)base;
    struct span_join_table *t = (struct span_join_table *)base->pVtab;
    const struct side *a = &c->side[0], *b = &c->side[1];
    int64_t start = a->start > b->start ? a->start : b->start;
    int64_t end = a->end < b->end ? a->end : b->end;
    if (column == 0) {
        sqlite3_result_int64(ctx, start);
    } else if (column == 1) {
        sqlite3_result_int64(ctx, end - start);
    } else if (column == 2 && t->partitioned) {
        sqlite3_result_int64(ctx, c->partition);
    } else {
        int side = column >= t->first[1] && t->n_source[1] ? 1 : 0;
        const struct side *s = &c->side[side];
        int input = t->source[side][column - t->first[side]];
        if (!s->real)
            sqlite3_result_null(ctx);
        else if (s->kept)
            kept_result(ctx, t->e, s, input);
        else
            result_of_statement(ctx, sqlite3_column_value(s->stmt, input));
    }
    return SQLITE_OK;
}

/* What RIGHT and FULL JOIN know a row by. They read the table twice, and may ask for other rows the second time, so
 * that numbers of rows would not do: it is the hash of what the row holds. Equal rows may have one id: they find the
 * same partners. */
static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *row)
{
    *row = (sqlite3_int64)span_join_row_hash((struct span_join_cursor *)base);
    return SQLITE_OK;
}

static int connect_inner(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    return span_join_connect(db, aux, argc, argv, SHADOW_NONE, out, err);
}

static int connect_left(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    return span_join_connect(db, aux, argc, argv, SHADOW_RIGHT, out, err);
}

static int connect_outer(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out, char **err)
{
    return span_join_connect(db, aux, argc, argv, SHADOW_LEFT | SHADOW_RIGHT, out, err);
}

#define SPAN_JOIN_MODULE(name, connector)                                                                              \
    const sqlite3_module name = {                                                                                      \
        .iVersion = 1,                                                                                                 \
        .xCreate = connector,                                                                                          \
        .xConnect = connector,                                                                                         \
        .xBestIndex = span_join_best_index,                                                                            \
        .xDisconnect = span_join_disconnect,                                                                           \
        .xDestroy = span_join_disconnect,                                                                              \
        .xOpen = cursor_open,                                                                                          \
        .xClose = cursor_close,                                                                                        \
        .xFilter = cursor_filter,                                                                                      \
        .xNext = cursor_next,                                                                                          \
        .xEof = cursor_eof,                                                                                            \
        .xColumn = cursor_column,                                                                                      \
        .xRowid = cursor_rowid,                                                                                        \
        .xFindFunction = span_join_find_function,                                                                      \
    }

SPAN_JOIN_MODULE(span_join_module, connect_inner);
SPAN_JOIN_MODULE(span_left_join_module, connect_left);
SPAN_JOIN_MODULE(span_outer_join_module, connect_outer);
