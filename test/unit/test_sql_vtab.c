/* Tests the virtual tables against plain SQLite tables of the same rows: seeded random queries, equal answers. */
#include "sql/engine.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/vec.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_ROWS = 700, BIG_ROWS = 9000, QUERIES = 10000, LOOPS = 10 };

static uint64_t seed_state;

static uint32_t pick(uint32_t n)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return (uint32_t)((seed_state >> 20) % n);
}

/* ---- the same rows twice ---- */

static const char *const words[] = {
    "", "a", "ab", "abc", "b", "sched_switch", "12", "1.5", "-3", "zz", "\xc3\xa9t\xc3\xa9"};
enum { WORDS = sizeof words / sizeof *words };

static int64_t small_or_null(uint32_t n)
{
    return pick(6) == 0 ? COL_NULL : (int64_t)pick(n);
}

static strid word_or_null(struct storage *st)
{
    return pick(5) == 0 ? 0 : strpool_intern_str(&st->strings, words[pick(WORDS)]);
}

static double a_double(void)
{
    static const double odd[] = {0.0, -0.0, 1e300, -1e300, 9007199254740993.0, 0.25};
    return pick(10) == 0 ? odd[pick(6)] : (double)((int)pick(400) - 200) / (pick(2) ? 4 : 1);
}

static void fill(struct storage *st, uint32_t n_slices)
{
    int64_t ts = -50;
    for (uint32_t i = 0; i < n_slices; i++) {
        ts += pick(4);
        slice_insert(
            st, &(struct slice_row){.ts = ts,
                                    .dur = pick(20) == 0 ? -1 : (int64_t)pick(1u << (pick(20) + 1)),
                                    .track_id = pick(40),
                                    .category = word_or_null(st),
                                    .name = word_or_null(st),
                                    .depth = pick(300),
                                    .parent_id = small_or_null(n_slices),
                                    .arg_set_id = argset_of_cell(i < n_slices / 2 ? COL_NULL : small_or_null(70000)),
                                    .thread_ts = pick(3) ? COL_NULL : (int64_t)((uint64_t)pick(1u << 31) << 32),
                                    .thread_dur = COL_NULL,
                                    .thread_instruction_count = 7,
                                    .thread_instruction_delta = small_or_null(3)});
    }
    for (uint32_t i = 0; i < n_slices / 2; i++)
        counter_insert(st, &(struct counter_row){.ts = (int64_t)i * 2,
                                                 .track_id = pick(40),
                                                 .value = a_double(),
                                                 .arg_set_id = argset_of_cell(small_or_null(9))});
    for (uint32_t i = 0; i < 40; i++) /* ids of these strings ascend, their texts do not */
        machine_insert(st, &(struct machine_row){.raw_id = i / 3,
                                                 .name = strpool_printf(&st->strings, "m%u", 99 - i / 2),
                                                 .sysname = strpool_printf(&st->strings, "m%u", i / 5)});
    for (uint32_t i = 0; i < 60; i++)
        thread_insert(st, &(struct thread_row){.tid = pick(30),
                                               .name = word_or_null(st),
                                               .start_ts = small_or_null(100),
                                               .end_ts = COL_NULL,
                                               .upid = small_or_null(10),
                                               .is_main_thread = pick(2)});
}

static const struct {
    enum table_id table;
    const char *name; /* v_name and p_name in queries */
} mirrored[] = {{T_slice, "slice"}, {T_counter, "counter"}, {T_thread, "thread"}, {T_machine, "machine"}};

static void must(struct engine *e, const char *sql)
{
    char *message = NULL;
    int rc = sqlite3_exec(engine_db(e), sql, NULL, NULL, &message);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, message ? message : "");
}

static void bind_word(sqlite3_stmt *s, int at, const struct storage *st, const struct column *c, uint32_t row)
{
    int64_t w = column_get(c, row);
    if (w == column_null(c->type))
        sqlite3_bind_null(s, at);
    else if (c->type == COL_STR)
        sqlite3_bind_text(s, at, strpool_cstr(&st->strings, (strid)w), -1, SQLITE_STATIC);
    else if (c->type == COL_F64)
        sqlite3_bind_double(s, at, column_f64(w));
    else
        sqlite3_bind_int64(s, at, w);
}

/* Plain tables p_x beside views v_x of ours. */
static void mirror(struct engine *e)
{
    struct storage *st = engine_storage(e);
    for (size_t m = 0; m < sizeof mirrored / sizeof *mirrored; m++) {
        const struct table *t = &st->t[mirrored[m].table];
        sqlite3_str *create = sqlite3_str_new(NULL), *insert = sqlite3_str_new(NULL);
        sqlite3_str_appendf(create, "CREATE TABLE p_%s(id INTEGER", mirrored[m].name);
        sqlite3_str_appendf(insert, "INSERT INTO p_%s VALUES(?", mirrored[m].name);
        for (uint32_t c = 0; c < t->def->n_columns; c++) {
            uint8_t type = t->def->columns[c].type;
            sqlite3_str_appendf(create, ", \"%s\" %s", t->def->columns[c].name,
                                type == COL_STR   ? "TEXT"
                                : type == COL_F64 ? "DOUBLE"
                                                  : "INTEGER");
            sqlite3_str_appendall(insert, ",?");
        }
        sqlite3_str_appendall(create, ")");
        sqlite3_str_appendall(insert, ")");
        char *create_text = sqlite3_str_finish(create), *insert_text = sqlite3_str_finish(insert);
        must(e, create_text);
        sqlite3_stmt *s;
        ck_assert_int_eq(sqlite3_prepare_v2(engine_db(e), insert_text, -1, &s, NULL), SQLITE_OK);
        must(e, "BEGIN");
        for (uint32_t row = 0; row < t->n_rows; row++) {
            sqlite3_bind_int64(s, 1, row);
            for (uint32_t c = 0; c < t->def->n_columns; c++)
                bind_word(s, (int)c + 2, st, &t->columns[c], row);
            ck_assert_int_eq(sqlite3_step(s), SQLITE_DONE);
            sqlite3_reset(s);
        }
        must(e, "COMMIT");
        sqlite3_finalize(s);
        sqlite3_free(create_text);
        sqlite3_free(insert_text);
        char view[100];
        snprintf(view, sizeof view, "CREATE VIEW v_%s AS SELECT * FROM %s", mirrored[m].name, t->def->name);
        must(e, view);
    }
}

/* ---- queries; @ stands for the prefix v_ or p_ ---- */

struct text {
    char p[4000];
    size_t n;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->p + t->n, sizeof t->p - t->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->n += (size_t)n < sizeof t->p - t->n ? (size_t)n : sizeof t->p - t->n - 1;
}

static const char *column_name(const struct table_def *d, bool *is_string)
{
    uint32_t i = pick(d->n_columns + 2);
    *is_string = i < d->n_columns && d->columns[i].type == COL_STR;
    return i < d->n_columns ? d->columns[i].name : "id";
}

static void put_value(struct text *t, bool string)
{
    if (string ? pick(10) < 9 : pick(12) == 0) {
        put(t, "'%s'", words[pick(WORDS)]);
        return;
    }
    switch (pick(12)) {
    case 0:
        put(t, "NULL");
        break;
    case 1:
        put(t, "%d.5", (int)pick(300) - 20);
        break;
    case 2:
        put(t, "%s",
            (const char *[]){"9223372036854775807", "-9223372036854775808", "1e19", "-1e19", "0.0", "-0.0",
                             "9007199254740993", "x'00'"}[pick(8)]);
        break;
    case 3:
        put(t, "%u", pick(1u << (pick(30) + 1)));
        break;
    case 4:
        put(t, "%u.0", pick(300));
        break;
    default:
        put(t, "%d", (int)pick(pick(2) ? 40 : 400) - 10);
    }
}

static void put_list(struct text *t, bool string)
{
    put(t, "(");
    for (uint32_t i = 0, n = pick(6); i <= n; i++) {
        put(t, i ? ", " : "");
        put_value(t, string);
    }
    put(t, ")");
}

static void put_predicate(struct text *t, const struct table_def *d, const char *alias)
{
    static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "=", "IS", "IS NOT"};
    bool string;
    const char *column = column_name(d, &string);
    switch (pick(10)) {
    case 0:
        put(t, "%s.%s IS %sNULL", alias, column, pick(2) ? "NOT " : "");
        break;
    case 1:
        put(t, "%s.%s IN ", alias, column);
        put_list(t, string);
        break;
    case 2:
        put(t, "%s.%s IN (SELECT %s FROM @counter WHERE id < %u)", alias, column,
            (const char *[]){"track_id", "value", "ts", "arg_set_id"}[pick(4)], pick(40));
        break;
    case 3:
        put(t, "%s.%s GLOB '%s'", alias, column,
            (const char *[]){"a*", "*b*", "sched_*", "?", "", "[a-b]*", "1*"}[pick(7)]);
        break;
    case 4:
        put(t, "%s.%s BETWEEN ", alias, column);
        put_value(t, string);
        put(t, " AND ");
        put_value(t, string);
        break;
    case 5:
        put(t, "(%s.%s = ", alias, column);
        put_value(t, string);
        put(t, " OR %s.track_id = %u)", alias, pick(40));
        if (strcmp(d->columns[0].name, "ts") != 0)
            t->n = 0; /* no track: begin again */
        break;
    default:
        put(t, "%s.%s %s ", alias, column, ops[pick(9)]);
        put_value(t, string);
    }
}

static void put_where(struct text *t, const struct table_def *d, const char *alias, const char *word)
{
    for (uint32_t i = 0, n = pick(4); i < n; i++) {
        struct text one = {.n = 0};
        put_predicate(&one, d, alias);
        if (!one.n)
            continue;
        put(t, " %s %s", word, one.p);
        word = "AND";
    }
}

/* *ordered: how many leading result columns are the sort key. */
static void make_query(struct text *t, uint32_t *ordered)
{
    size_t m = pick(8) == 0 ? 2 + pick(2) : pick(3) == 0 ? 1 : 0;
    const struct table_def *d = &table_defs[mirrored[m].table];
    bool string;
    *ordered = 0;
    t->n = 0;
    switch (pick(6)) {
    case 0: { /* aggregates over everything */
        put(t, "SELECT count(*), sum(t1.id), max(t1.%s) FROM @%s t1", d->columns[0].name, mirrored[m].name);
        put_where(t, d, "t1", "WHERE");
        break;
    }
    case 1: { /* groups */
        const char *a = column_name(d, &string), *b = column_name(d, &string);
        bool two = pick(3) == 0, sort = pick(2);
        const char *desc = pick(2) ? " DESC" : "";
        put(t, "SELECT t1.%s%s%s, count(*), sum(t1.id), min(t1.id) FROM @%s t1", a, two ? ", t1." : "", two ? b : "",
            mirrored[m].name);
        put_where(t, d, "t1", "WHERE");
        put(t, " GROUP BY t1.%s%s%s", a, two ? ", t1." : "", two ? b : "");
        if (sort) {
            put(t, " ORDER BY t1.%s%s", a, desc);
            *ordered = 1;
        }
        break;
    }
    case 2: { /* distinct */
        const char *a = column_name(d, &string);
        put(t, "SELECT DISTINCT t1.%s FROM @%s t1", a, mirrored[m].name);
        put_where(t, d, "t1", "WHERE");
        if (pick(2)) {
            put(t, " ORDER BY 1%s", pick(2) ? " DESC" : "");
            *ordered = 1;
        }
        break;
    }
    case 3: { /* joins */
        static const char *const joins[] = {"t2.id = t1.parent_id",
                                            "t2.track_id = t1.track_id AND t2.ts = t1.ts",
                                            "t2.ts >= t1.ts AND t2.ts < t1.ts + 3",
                                            "t2.track_id = t1.track_id",
                                            "t2.arg_set_id = t1.depth",
                                            "t2.id = t1.track_id"};
        const struct table_def *other = &table_defs[T_counter];
        put(t, "SELECT count(*), sum(t1.id), sum(t2.id) FROM @slice t1 %s @counter t2 ON %s",
            pick(4) == 0 ? "LEFT JOIN" : "JOIN", joins[pick(6)]);
        put(t, " WHERE t1.id < %u", pick(200));
        put_where(t, &table_defs[T_slice], "t1", "AND");
        put_where(t, other, "t2", "AND");
        break;
    }
    default: { /* rows */
        const char *a = column_name(d, &string), *b = column_name(d, &string), *c = column_name(d, &string);
        put(t, "SELECT t1.%s, t1.%s, t1.%s, t1.id FROM @%s t1", a, b, c, mirrored[m].name);
        put_where(t, d, "t1", "WHERE");
        if (pick(2)) {
            const char *desc = pick(2) ? " DESC" : "", *desc2 = pick(2) ? " DESC" : "";
            put(t, " ORDER BY t1.%s%s, t1.%s%s, t1.%s, t1.id", a, desc, b, desc2, c);
            *ordered = 4;
            if (pick(2))
                put(t, " LIMIT %u", pick(20));
            if (pick(4) == 0 && strstr(t->p, "LIMIT"))
                put(t, " OFFSET %u", pick(20));
        }
    }
    }
}

/* ---- answers ---- */

struct answer {
    VEC(uint64_t)
    rows;
    uint64_t order; /* of the sort keys, one after the other */
    char text[300]; /* first rows, for messages */
};

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void ask(struct engine *e, const char *query, const char *prefix, uint32_t ordered, struct answer *out)
{
    struct text sql = {.n = 0};
    struct engine_result r;
    struct error err = {0};
    for (const char *s = query; *s; s++)
        *s == '@' ? put(&sql, "%s", prefix) : put(&sql, "%c", *s);
    vec_clear(&out->rows);
    out->order = 0;
    out->text[0] = 0;
    int rc = engine_query(e, "test", slice_str(sql.p), &r, NULL, &err);
    ck_assert_msg(rc == 0, "%s: %s", sql.p, err.text);
    while ((rc = engine_result_next(&r, &err)) == 1) {
        uint64_t row = 1;
        for (int i = 0; i < r.n_columns; i++) {
            const char *text = (const char *)sqlite3_column_text(r.stmt, i);
            size_t len = (size_t)sqlite3_column_bytes(r.stmt, i), at = strlen(out->text);
            row = hash_combine(row, text ? hash_bytes(text, len) + 1 : 0);
            if ((uint32_t)i + 1 == ordered)
                out->order = hash_combine(out->order, row);
            snprintf(out->text + at, sizeof out->text - at, "%s%s", i ? "," : "\n", text ? text : "NULL");
        }
        ck_assert(vec_push(&out->rows, row));
    }
    ck_assert_msg(rc == 0, "%s: %s", sql.p, err.text);
    engine_result_close(&r);
    if (out->rows.n)
        qsort(out->rows.p, out->rows.n, sizeof *out->rows.p, by_hash);
}

static void compare(struct engine *e, const char *query, uint32_t ordered)
{
    struct answer ours = {0}, theirs = {0};
    ask(e, query, "v_", ordered, &ours);
    ask(e, query, "p_", ordered, &theirs);
    bool same = ours.rows.n == theirs.rows.n && ours.order == theirs.order &&
                (ours.rows.n == 0 || memcmp(ours.rows.p, theirs.rows.p, ours.rows.n * 8) == 0);
    ck_assert_msg(same, "%s\nours: %zu rows%s\nSQLite: %zu rows%s", query, ours.rows.n, ours.text, theirs.rows.n,
                  theirs.text);
    vec_free(&ours.rows);
    vec_free(&theirs.rows);
}

static void open_both(struct storage *st, struct engine **e, uint32_t rows)
{
    struct error err = {0};
    ck_assert_int_eq(storage_init(st), 0);
    fill(st, rows);
    ck_assert_msg(engine_open(e, st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(*e, &err) == 0, "%s", err.text);
    mirror(*e);
}

/* Indexes on several columns, of which queries use as many as fit: the answers stay what they are. */
static void add_indexes(struct engine *e)
{
    static const struct {
        const char *table, *columns[4];
        size_t n;
    } made[] = {{"__intrinsic_slice", {"track_id", "name", "ts", "depth"}, 4},
                {"__intrinsic_slice", {"name", "dur"}, 2},
                {"__intrinsic_slice", {"depth", "parent_id", "category"}, 3},
                {"__intrinsic_counter", {"track_id", "ts"}, 2},
                {"__intrinsic_thread", {"name", "tid"}, 2}};
    struct error err = {0};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        ck_assert_msg(engine_add_index(e, "i", made[i].table, made[i].columns, made[i].n, &err) == 0, "%s", err.text);
}

START_TEST(random_queries_answer_as_plain_tables)
{
    struct storage st;
    struct engine *e;
    seed_state = 0x9e3779b97f4a7c15u + (uint64_t)_i;
    bool big = _i == 0;
    open_both(&st, &e, big ? BIG_ROWS : SMALL_ROWS);
    if (_i % 2)
        add_indexes(e);
    for (int i = 0; i < (big ? QUERIES / LOOPS / 4 : QUERIES / LOOPS * 13 / 12); i++) {
        struct text query;
        uint32_t ordered;
        make_query(&query, &ordered);
        compare(e, query.p, ordered);
    }
    engine_close(e);
    storage_free(&st);
}
END_TEST

/* Statements of the shape that aggregate.h answers natively; rows must come in SQLite's own order, ties too. */
static uint32_t make_aggregate(struct text *t)
{
    static const char *const groups[] = {"track_id", "name",      "category",
                                         "depth",    "parent_id", "thread_instruction_delta"};
    static const char *const aggregates[] = {"count(*)",        "sum(dur)",       "max(dur)", "min(ts)",  "count(name)",
                                             "sum(arg_set_id)", "max(parent_id)", "sum(id)",  "avg(dur)", "max(name)"};
    static const char *const filters[] = {"dur > 10",
                                          "name = 'abc'",
                                          "name GLOB 'a*'",
                                          "name != 'ab'",
                                          "parent_id IS NULL",
                                          "category IS NOT NULL",
                                          "ts BETWEEN 50 AND 9000.5",
                                          "track_id <> 7",
                                          "id < 4000",
                                          "dur = -1",
                                          "depth >= 1000",
                                          "t1.dur <= 100",
                                          "name < 'b'",
                                          "depth = '12'",
                                          "arg_set_id > -5",
                                          "dur % 2 = 0"};
    bool counter = pick(4) == 0;
    uint32_t n_groups = pick(3), n_items = 0;
    const char *g[2];
    t->n = 0;
    put(t, "SELECT ");
    for (uint32_t i = 0; i < n_groups; i++) {
        g[i] = counter ? (i ? "arg_set_id" : "track_id") : groups[(pick(3) + i * 3) % 6];
        put(t, "%s%s%s", n_items++ ? ", " : "", pick(4) ? "" : "t1.", g[i]);
    }
    for (uint32_t i = 0, n = 1 + pick(3); i < n; i++) {
        const char *a = counter ? (const char *[]){"sum(value)", "max(value)", "min(value)", "count(*)"}[pick(4)]
                                : aggregates[pick(20) ? pick(8) : pick(10)];
        put(t, "%s%s", n_items++ ? ", " : "", a);
        if (pick(3) == 0)
            put(t, " AS a%u", i);
    }
    put(t, " FROM @%s t1", counter ? "counter" : "slice");
    for (uint32_t i = 0, n = counter ? 0 : pick(4); i < n; i++)
        put(t, "%s%s", i ? " AND " : " WHERE ", filters[pick(16)]);
    for (uint32_t i = 0; i < n_groups; i++)
        put(t, "%s%s", i ? ", " : " GROUP BY ", g[i]);
    if (n_groups && pick(3)) {
        put(t, " ORDER BY %u%s", 1 + pick(n_items), pick(2) ? " DESC" : "");
        if (pick(2))
            put(t, ", %u%s", 1 + pick(n_items), pick(2) ? " DESC" : "");
        if (pick(2))
            put(t, " LIMIT %u", pick(30));
    }
    return n_items;
}

START_TEST(aggregates_answer_in_the_same_order)
{
    struct storage st;
    struct engine *e;
    seed_state = 1234567 + (uint64_t)_i;
    open_both(&st, &e, BIG_ROWS);
    for (int i = 0; i < 300; i++) {
        struct text query;
        uint32_t columns = make_aggregate(&query);
        compare(e, query.p, columns);
    }
    engine_close(e);
    storage_free(&st);
}
END_TEST

/* Selects with values of the row before or behind, in the shape that neighbours_match.c takes, and in others. */
static uint32_t make_neighbours(struct text *t)
{
    static const char *const values[] = {"ts", "dur", "name", "parent_id", "id", "t1.arg_set_id", "category"};
    static const char *const partitions[] = {"", "PARTITION BY track_id ", "PARTITION BY t1.name ",
                                             "PARTITION BY parent_id, name ",
                                             "PARTITION BY thread_instruction_delta, category "};
    static const char *const orders[] = {"ts, id", "dur DESC, id", "name, t1.id DESC", "parent_id, ts, id",
                                         "ts + 0, id"};
    static const char *const wraps[][2] = {{"", ""},
                                           {"SELECT b, count(*), max(a), sum(c) FROM (", ") GROUP BY b"},
                                           {"SELECT c, a, b FROM (", ") WHERE b IS NOT NULL"},
                                           {"WITH w AS (", ") SELECT max(b), count(c) FROM w"},
                                           {"SELECT x.a, x.b FROM (", ") x JOIN @counter y ON y.id = x.a"}};
    const char *partition = partitions[pick(5)], *order = orders[pick(20) ? pick(4) : 4];
    uint32_t w = pick(5);
    t->n = 0;
    put(t, "%sSELECT t1.id AS a, %s(%s) OVER (%sORDER BY %s) AS b", wraps[w][0], pick(2) ? "lead" : "lag",
        values[pick(7)], partition, order);
    if (pick(2))
        put(t, ", (%s(ts) OVER (%sORDER BY %s) - t1.ts) * 2 AS c", pick(2) ? "lead" : "lag", partition, order);
    else
        put(t, ", %s AS c", values[pick(7)]);
    put(t, " FROM @slice t1%s%s", pick(10) ? "" : " WHERE t1.dur > 5", wraps[w][1]);
    return w == 0 ? 3 : w == 2 ? 3 : 0;
}

START_TEST(neighbours_are_those_of_sqlite)
{
    struct storage st;
    struct engine *e;
    seed_state = 424242 + (uint64_t)_i;
    open_both(&st, &e, BIG_ROWS);
    for (int i = 0; i < 60; i++) {
        struct text query;
        uint32_t columns = make_neighbours(&query);
        compare(e, query.p, columns);
    }
    engine_close(e);
    storage_free(&st);
}
END_TEST

START_TEST(neighbours_are_native)
{
    static const struct {
        const char *sql;
        bool native;
    } statements[] = {
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (PARTITION BY track_id ORDER BY ts) - ts AS g FROM slice)", true},
        {"select count(b) from (select lag(s.name) over (order by s.ts desc) as b from slice as s) where b > 'a'",
         true},
        {"SELECT lead(ts) OVER (ORDER BY ts) AS next, track_id FROM slice", true},
        {"SELECT lead(ts) OVER (ORDER BY ts), track_id FROM slice", false}, /* its column is named after the text */
        {"SELECT max(g) FROM (SELECT lead(ts, 2) OVER (ORDER BY ts) - ts AS g FROM slice)", false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) - abs(ts) AS g FROM slice)", false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) - ts AS g FROM slice WHERE dur > 3)", false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts) + lag(ts) OVER (ORDER BY dur) AS g FROM slice)",
         false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (PARTITION BY value ORDER BY ts) AS g FROM counter)", false},
        {"SELECT max(g) FROM (SELECT lead(ts) OVER (ORDER BY ts ROWS 1 PRECEDING) AS g FROM slice)", false},
        {"WITH slice AS (SELECT 1 AS ts) SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false},
        {"WITH a AS (SELECT 1), slice(ts) AS (SELECT 1) SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false},
        {"WITH a AS (SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice) SELECT max(g) FROM a", true},
        {"CREATE VIEW of_slice AS SELECT lead(ts) OVER (ORDER BY ts) AS g FROM slice", false}};
    struct storage st;
    struct engine *e;
    struct engine_result r;
    struct error err = {0};
    seed_state = 6;
    open_both(&st, &e, BIG_ROWS);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        ck_assert_msg(engine_query(e, NULL, slice_str(statements[i].sql), &r, NULL, &err) == 0, "%s", err.text);
        ck_assert_msg((strstr(sqlite3_sql(r.stmt), "__intrinsic_neighbours") != NULL) == statements[i].native, "%s",
                      statements[i].sql);
        engine_result_close(&r);
    }
    engine_close(e);
    storage_free(&st);
}
END_TEST

START_TEST(aggregates_are_native)
{
    static const char *const native[] = {"SELECT count(*) FROM slice",
                                         "select track_id, sum(dur) d from slice group by 1 order by d desc limit 3",
                                         "select s.name, max(s.dur) from slice s where s.dur > 5 group by s.name;"};
    static const char *const foreign[] = {"SELECT count(*) FROM instant",
                                          "SELECT count(*), name FROM slice",
                                          "SELECT sum(dur + 1) FROM slice",
                                          "SELECT count(*) FROM slice, counter",
                                          "SELECT count(*) FROM (SELECT * FROM slice LIMIT 5)",
                                          "SELECT count(*) FROM slice WHERE dur > 5 OR dur < 3",
                                          "SELECT count(*) FROM slice GROUP BY track_id HAVING count(*) > 5"};
    struct storage st;
    struct engine *e;
    struct engine_result r;
    struct error err = {0};
    seed_state = 5;
    open_both(&st, &e, BIG_ROWS);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(engine_query(e, NULL, slice_str(native[i]), &r, NULL, &err), 0);
        ck_assert_ptr_nonnull(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
        engine_result_close(&r);
    }
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        ck_assert_msg(engine_query(e, NULL, slice_str(foreign[i]), &r, NULL, &err) == 0, "%s", err.text);
        ck_assert_ptr_null(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate"));
        engine_result_close(&r);
    }
    /* names are those of the original */
    ck_assert_int_eq(
        engine_query(e, NULL, slice_str("select Track_ID, count( * ) from slice group by track_id"), &r, NULL, &err),
        0);
    ck_assert_str_eq(engine_result_column_name(&r, 0), "track_id");
    ck_assert_str_eq(engine_result_column_name(&r, 1), "count( * )");
    engine_result_close(&r);
    engine_close(e);
    storage_free(&st);
}
END_TEST

static size_t calls_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return calls_left && calls_left--;
}

START_TEST(aggregates_survive_failing_allocations)
{
    struct storage st;
    struct engine *e;
    struct engine_result r;
    struct error err = {0};
    seed_state = 5;
    open_both(&st, &e, BIG_ROWS);
    int rc = -1;
    for (size_t k = 0; rc && k < 1000; k++) {
        calls_left = k;
        alloc_set_gate(gate, NULL);
        rc = engine_query(e, NULL,
                          slice_str("select track_id, name, sum(dur) from slice where name glob 'a*' group by 1, 2"),
                          &r, NULL, &err);
        alloc_set_gate(NULL, NULL);
        if (rc == 0)
            engine_result_close(&r);
    }
    ck_assert_int_eq(rc, 0);
    engine_close(e);
    storage_free(&st);
}
END_TEST

/* Bytes changed, dropped and doubled at random: any answer will do, or an error. */
START_TEST(mutated_statements_do_no_harm)
{
    static const char *const texts[] = {"SELECT t.track_id, count(*) AS n, sum(t.dur) d FROM v_slice AS t WHERE t.dur "
                                        ">= -1 AND name = 'abc' GROUP BY t.track_id "
                                        "ORDER BY n DESC, 1 LIMIT 5 OFFSET 2",
                                        ("select count(name), max(depth) from slice where ts between 1.5 and 99 and "
                                         "parent_id is not null and name glob 'a*';"),
                                        "select category, name, min(id) from slice group by 1, 2 order by 2 desc"};
    struct storage st;
    struct engine *e;
    seed_state = 77;
    open_both(&st, &e, BIG_ROWS / 3);
    for (int i = 0; i < 3000; i++) {
        char text[400];
        struct engine_result r;
        struct error err = {0};
        size_t n = (size_t)snprintf(text, sizeof text, "%s", texts[pick(3)]);
        for (uint32_t k = 1 + pick(4); k > 0 && n > 8; k--) {
            size_t at = pick((uint32_t)n);
            switch (pick(4)) {
            case 0:
                text[at] = (char)(pick(95) + 32);
                break;
            case 1:
                memmove(text + at, text + at + 1, --n - at);
                break;
            case 2:
                text[at] = " '*(),;.<>=-"[pick(12)];
                break;
            default:
                n = pick(20) ? n : at + 1;
            }
        }
        char *exact = malloc(n + 1); /* so that a read behind the end is seen */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, text, n);
        if (engine_query(e, NULL, slice_of(exact, n), &r, NULL, &err) == 0)
            engine_result_close(&r);
        free(exact);
    }
    engine_close(e);
    storage_free(&st);
}
END_TEST

/* Cases that a random query hardly meets. */
static const char *const cases[] = {
    "SELECT id, ts FROM @slice WHERE ts BETWEEN 100 AND 200 ORDER BY ts DESC, id DESC",
    "SELECT ts, id FROM @slice ORDER BY ts DESC, id DESC LIMIT 5",
    "SELECT id FROM @slice WHERE id IN (5, 3, 3, 900, -1, 'x', 4.0, NULL) ORDER BY id DESC",
    "SELECT count(*) FROM @slice WHERE ts > 1e30",
    "SELECT count(*) FROM @slice WHERE ts < 1e30",
    "SELECT count(*) FROM @slice WHERE ts < 'abc'",
    "SELECT count(*) FROM @slice WHERE ts = '12'",
    "SELECT count(*) FROM @slice WHERE name > ''",
    "SELECT count(*) FROM @slice WHERE name = 12",
    "SELECT count(*) FROM @slice WHERE name IN (12, 'a')",
    "SELECT count(*) FROM @slice WHERE name IN (SELECT track_id FROM @counter)",
    "SELECT count(*) FROM @slice WHERE name = 'A' COLLATE NOCASE",
    "SELECT count(*) FROM @slice a JOIN @slice b ON a.name = b.depth WHERE a.id < 50",
    "SELECT count(*) FROM @slice a JOIN @slice b ON a.name = b.category WHERE a.id < 50 AND b.id < 99",
    "SELECT count(*) FROM @counter WHERE value = 0",
    "SELECT count(*) FROM @counter WHERE value = -0.0",
    "SELECT count(*) FROM @counter WHERE value > 0 AND value <= 50",
    "SELECT count(*) FROM @counter WHERE value = 9007199254740993",
    "SELECT count(*) FROM @counter WHERE value >= 9007199254740993",
    "SELECT count(*) FROM @counter WHERE value IN (0, 1.25, 9007199254740993)",
    "SELECT value FROM @counter ORDER BY value DESC",
    "SELECT max(ts), min(ts) FROM @slice",
    "SELECT (SELECT count(*) FROM @counter c WHERE c.track_id = s.track_id) FROM @slice s WHERE s.id < 30",
    "SELECT id FROM @slice s WHERE EXISTS (SELECT 1 FROM @counter c WHERE c.ts = s.ts AND c.track_id > 20)",
    "SELECT DISTINCT track_id, name FROM @slice ORDER BY name, track_id",
    "SELECT DISTINCT track_id FROM @slice WHERE name LIKE 'a%'",
    "SELECT DISTINCT track_id FROM @slice WHERE id % 7 = 3",
    "SELECT track_id, count(DISTINCT name) FROM @slice GROUP BY track_id",
    "SELECT name, count(*) FROM @slice GROUP BY name ORDER BY name DESC",
    "SELECT name, count(*) FROM @slice GROUP BY name HAVING count(*) > 50",
    "SELECT id, lead(id) OVER (PARTITION BY track_id ORDER BY ts, id) FROM @slice",
    "SELECT name FROM @machine ORDER BY name",
    "SELECT name, sysname FROM @machine WHERE name > 'm85' ORDER BY sysname DESC, name",
    "SELECT DISTINCT name, sysname FROM @machine ORDER BY name",
    "SELECT rowid FROM (SELECT id AS rowid FROM @slice) WHERE rowid > 40 AND rowid <= 45",
};

START_TEST(chosen_queries_answer_as_plain_tables)
{
    struct storage st;
    struct engine *e;
    seed_state = 42;
    open_both(&st, &e, SMALL_ROWS * 7);
    for (int repeat = 0; repeat < 3; repeat++) /* later rounds find indexes */
        compare(e, cases[_i], strstr(cases[_i], "ORDER BY") && !strstr(cases[_i], "OVER"));
    engine_close(e);
    storage_free(&st);
}
END_TEST

Suite *sql_vtab_suite(void);
Suite *sql_vtab_suite(void)
{
    Suite *s = suite_create("sql_vtab");
    TCase *t = tcase_create("differential");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, random_queries_answer_as_plain_tables, 0, LOOPS);
    tcase_add_loop_test(t, aggregates_answer_in_the_same_order, 0, 4);
    tcase_add_test(t, aggregates_are_native);
    tcase_add_loop_test(t, neighbours_are_those_of_sqlite, 0, 3);
    tcase_add_test(t, neighbours_are_native);
    tcase_add_test(t, mutated_statements_do_no_harm);
    tcase_add_test(t, aggregates_survive_failing_allocations);
    tcase_add_loop_test(t, chosen_queries_answer_as_plain_tables, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(s, t);
    return s;
}
