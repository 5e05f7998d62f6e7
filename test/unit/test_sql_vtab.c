/* Tests the virtual tables against plain SQLite tables of the same rows: seeded random queries, equal answers. */
#include "mirror.h"
#include "sql/planner/planner.h"
#include "sql/vtab/vtab.h"

#include <check.h>
#include <string.h>

enum { SMALL_ROWS = 700, BIG_ROWS = 9000, QUERIES = 10000, LOOPS = 10, OUTER_JOINS = 2000 };

static const char *column_name(const struct table_def *d, bool *is_string)
{
    uint32_t i = pick(d->n_columns + 2);
    *is_string = i < d->n_columns && d->columns[i].type == COL_STR;
    return i < d->n_columns ? d->columns[i].name : "id";
}

static void put_value(struct text *t, bool string)
{
    if (string ? pick(10) < 9 : pick(12) == 0) {
        put(t, "'%s'", pick_word());
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

static const char *const joins[] = {"t2.id = t1.parent_id",
                                    "t2.track_id = t1.track_id AND t2.ts = t1.ts",
                                    "t2.ts >= t1.ts AND t2.ts < t1.ts + 3",
                                    "t2.track_id = t1.track_id",
                                    "t2.arg_set_id = t1.depth",
                                    "t2.id = t1.track_id"};

static uint32_t make_query(struct text *t)
{
    size_t m = pick(8) == 0 ? 2 + pick(2) : pick(3) == 0 ? 1 : 0;
    const struct table_def *d = &table_defs[mirrored[m].table];
    bool string;
    uint32_t ordered = 0;
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
            ordered = 1;
        }
        break;
    }
    case 2: { /* distinct */
        const char *a = column_name(d, &string);
        put(t, "SELECT DISTINCT t1.%s FROM @%s t1", a, mirrored[m].name);
        put_where(t, d, "t1", "WHERE");
        if (pick(2)) {
            put(t, " ORDER BY 1%s", pick(2) ? " DESC" : "");
            ordered = 1;
        }
        break;
    }
    case 3: { /* joins */
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
            ordered = 4;
            if (pick(2))
                put(t, " LIMIT %u", pick(20));
            if (pick(4) == 0 && strstr(t->p, "LIMIT"))
                put(t, " OFFSET %u", pick(20));
        }
    }
    }
    return ordered;
}

static uint32_t make_outer_join(struct text *t)
{
    static const char *const kinds[] = {"LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"};
    const struct table_def *slice = &table_defs[T_slice], *counter = &table_defs[T_counter];
    t->n = 0;
    put(t, "SELECT count(*), sum(t1.id), sum(t2.id) FROM @slice t1 %s @counter t2 ON %s", kinds[pick(4)],
        joins[pick(6)]);
    put_where(t, slice, "t1", "AND");
    put_where(t, counter, "t2", "AND");
    if (pick(3) == 0)
        put_where(t, slice, "t1", "WHERE");
    else if (pick(2))
        put_where(t, counter, "t2", "WHERE");
    return 0;
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
    struct mirror m;
    bool big = _i == 0;
    mirror_open(&m, 0x9e3779b97f4a7c15u + (uint64_t)_i, big ? BIG_ROWS : SMALL_ROWS);
    if (_i % 2)
        add_indexes(m.e);
    mirror_compare_made(&m, make_query, big ? QUERIES / LOOPS / 4 : QUERIES / LOOPS * 13 / 12);
    mirror_close(&m);
}
END_TEST

START_TEST(random_outer_joins_answer_as_plain_tables)
{
    struct mirror m;
    mirror_open(&m, 281102, SMALL_ROWS / 4);
    mirror_compare_made(&m, make_outer_join, OUTER_JOINS);
    mirror_close(&m);
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
    /* SQLite drops rows without a word, and then wants more than its LIMIT */
    "SELECT id, depth FROM @slice WHERE name <= category ORDER BY depth, id LIMIT 20 OFFSET 22",
    "SELECT id, dur FROM @slice WHERE dur > depth ORDER BY dur DESC, id LIMIT 30",
};

START_TEST(chosen_queries_answer_as_plain_tables)
{
    struct mirror m;
    mirror_open(&m, 42, SMALL_ROWS * 7);
    for (int repeat = 0; repeat < 4; repeat++) { /* later rounds find indexes */
        planner_switch(m.e, repeat % 2);
        mirror_compare(&m, cases[_i], strstr(cases[_i], "ORDER BY") && !strstr(cases[_i], "OVER"));
    }
    mirror_close(&m);
}
END_TEST

/* What ON says of the table that gives all its rows drops none of them, wherever the join is written. */
static const char *const outer[] = {
    "SELECT count(*), count(p.id) FROM @slice s LEFT JOIN @slice p ON p.id = s.parent_id AND s.name GLOB 'a*'",
    "SELECT count(*), count(p.id) FROM @slice s LEFT JOIN @slice p ON p.id = s.parent_id AND s.depth != 3",
    "SELECT count(*), count(p.id) FROM @slice s LEFT JOIN @slice p ON p.id = s.parent_id AND s.name IS NOT 'b'",
    "SELECT count(*), count(p.id) FROM @slice s LEFT JOIN @slice p ON p.id = s.parent_id AND s.category IS NOT NULL",
    "SELECT count(*), count(p.id) FROM @slice p RIGHT JOIN @slice s ON p.id = s.parent_id AND s.depth != 3",
    "SELECT count(*), count(p.id) FROM @slice p FULL OUTER JOIN @slice s ON p.id = s.parent_id AND s.name NOT NULL",
    "SELECT count(*), count(c) FROM @outer",
    "SELECT count(*) FROM @outer",
    "SELECT count(*), count(c) FROM main.@outer",
    "SELECT count(*), count(c) FROM [@outer]",
    "SELECT count(*), count(c) FROM (((@outer)))",
    "SELECT count(*), count(y.c) FROM @machine m JOIN @upper AS y",
    "SELECT count(*), count(y.c) FROM @machine m, @upper y WHERE y.c IS NOT 5",
    "WITH q AS (SELECT * FROM @upper) SELECT count(*), count(c) FROM q",
    "SELECT count(*) FROM @machine WHERE 3 NOT IN @single",
};

START_TEST(outer_joins_answer_as_plain_tables)
{
    struct mirror m;
    mirror_open(&m, 281101, SMALL_ROWS);
    for (const char *p = "vp"; *p; p++)
        mirror_run(&m,
                   "CREATE VIEW %c_outer AS SELECT s.id AS s, c.id AS c FROM %c_slice s LEFT JOIN %c_counter c ON "
                   "c.id = s.id AND s.name != 'a';"
                   "CREATE VIEW %c_upper AS SELECT * FROM \"%c_outer\" WHERE s != 7;"
                   "CREATE VIEW %c_single AS SELECT c FROM %c_upper",
                   *p, *p, *p, *p, *p, *p, *p);
    for (int on = 0; on < 2; on++) {
        planner_switch(m.e, on);
        for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
            mirror_compare(&m, outer[i], 0);
    }
    /* a view that gets an outer join behind our back: what was learnt of its name is forgotten */
    mirror_run(&m,
               "DROP VIEW v_single; DROP VIEW v_upper; DROP VIEW v_outer; CREATE VIEW v_outer AS SELECT id AS s FROM "
               "v_slice WHERE name != 'a'");
    mirror_run(&m, "SELECT count(*) FROM v_outer");
    mirror_run(
        &m, "DROP VIEW v_outer; CREATE VIEW v_outer AS SELECT s.id AS s, c.id AS c FROM v_slice s LEFT JOIN v_counter "
            "c ON c.id = s.id AND s.name != 'a'");
    mirror_compare(&m, "SELECT count(*) FROM @outer", 0);
    mirror_run(&m, "BEGIN; DROP VIEW v_outer; CREATE VIEW v_outer AS SELECT id AS s FROM v_slice WHERE name != 'a'");
    mirror_run(&m, "SELECT count(*) FROM v_outer; ROLLBACK");
    mirror_compare(&m, "SELECT count(*) FROM @outer", 0);
    /* a temporary view of that name hides it, but not from who says main */
    mirror_run(&m, "CREATE TEMP VIEW v_outer AS SELECT id AS s, 1 AS c FROM v_slice;"
                   "CREATE VIEW v_above AS SELECT * FROM v_outer; CREATE VIEW p_above AS SELECT * FROM p_outer");
    mirror_compare(&m, "SELECT count(*), count(c) FROM main.@outer", 0);
    mirror_compare(&m, "SELECT count(*), count(c) FROM @above", 0);
    engine_allow_files(m.e, true);
    mirror_run(&m, "ATTACH ':memory:' AS far;"
                   "CREATE VIEW far.v_far AS SELECT s.id AS s, c.id AS c FROM __intrinsic_slice s LEFT JOIN "
                   "__intrinsic_counter c ON c.id = s.id AND s.name != 'a';"
                   "CREATE TABLE far.p_far AS SELECT s.id AS s, c.id AS c FROM p_slice s LEFT JOIN p_counter c ON "
                   "c.id = s.id AND s.name != 'a'");
    mirror_compare(&m, "SELECT count(*), count(c) FROM @far", 0);
    mirror_close(&m);
}
END_TEST

/* A span join is a virtual table, too. */
START_TEST(outer_joins_with_span_joins_answer_as_plain_tables)
{
    struct mirror m;
    mirror_open(&m, 281103, SMALL_ROWS);
    mirror_run(&m,
               "CREATE TABLE left_spans AS SELECT id AS ts, 1 AS dur, id %% 5 AS x FROM v_counter;"
               "CREATE TABLE right_spans AS SELECT id AS ts, 2 AS dur, id %% 3 AS y FROM v_counter WHERE id %% 4 = 0;"
               "CREATE VIRTUAL TABLE v_spans USING SPAN_LEFT_JOIN(left_spans, right_spans);"
               "CREATE TABLE p_spans AS SELECT * FROM v_spans");
    mirror_compare(&m, "SELECT count(*), count(c.id) FROM @spans s LEFT JOIN @counter c ON c.id = s.ts AND s.x != 3",
                   0);
    mirror_compare(&m, "SELECT count(*), count(c.id) FROM @spans s FULL JOIN @counter c ON c.id = s.ts AND s.ts != 7",
                   0);
    /* on the right, too: the table is read twice, once with conditions that it takes */
    mirror_compare(&m, "SELECT c.id, s.* FROM @counter c FULL JOIN @spans s ON s.ts = c.id AND s.x = 3", 0);
    mirror_compare(&m, "SELECT c.id, s.* FROM @counter c RIGHT JOIN @spans s ON s.x = c.id AND s.x < 3", 0);
    mirror_compare(&m, "SELECT count(*), sum(ts) FROM @spans WHERE x != 3 AND y != 1", 0);
    mirror_run(&m, "CREATE TABLE parts AS SELECT id / 3 AS ts, id %% 2 AS dur, id %% 3 AS cpu, id / 6 AS z, "
                   "iif(id %% 2, id * 0.5, 'n' || id) AS w FROM v_counter;"
                   "CREATE VIRTUAL TABLE v_parts USING SPAN_LEFT_JOIN(parts PARTITIONED cpu, right_spans);"
                   "CREATE TABLE p_parts AS SELECT * FROM v_parts");
    mirror_compare(&m, "SELECT c.id, s.* FROM @counter c RIGHT JOIN @parts s ON s.z = c.id AND s.cpu = 1", 0);
    mirror_compare(&m, "SELECT c.id, s.* FROM @counter c FULL JOIN @parts s ON s.cpu = 2 AND s.w = c.id * 0.5", 0);
    mirror_close(&m);
}
END_TEST

/* No number of other names makes a statement one that may have an outer join. */
START_TEST(conditions_are_taken_beside_many_names)
{
    struct mirror m;
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *names = sqlite3_str_new(NULL);
    mirror_open(&m, 281104, SMALL_ROWS);
    for (int i = 0; i < 2000; i++)
        sqlite3_str_appendf(names, "%s'n%d'", i ? ", " : "", i);
    char *list = sqlite3_str_finish(names);
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN SELECT ts FROM v_slice WHERE name != 'a' AND name IN (%s)", list);
    ck_assert_int_eq(engine_compile(m.e, sql, -1, 0, &stmt, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
    const char *plan = (const char *)sqlite3_column_text(stmt, 3);
    ck_assert_msg(plan && strstr(plan, "!="), "%s", plan);
    sqlite3_finalize(stmt);
    sqlite3_free(sql);
    sqlite3_free(list);
    mirror_close(&m);
}
END_TEST

/* A sort that is interrupted says so, and leaves rows that are there: what is shown of them afterwards must be memory
 * of the table. */
START_TEST(an_interrupted_sort_leaves_rows)
{
    static const uint32_t sizes[] = {2, 100, 128, 129, 2000, 4000};
    struct mirror m;
    mirror_open(&m, 7, SMALL_ROWS * 7);
    const struct table *t = &m.st.t[T_slice];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int16_t column = 0; column < (int16_t)t->def->n_columns; column++)
            for (uint32_t limit = 0; limit < 20; limit += 10) {
                uint32_t n = sizes[k], rows[4000];
                stop_flag stop = true;
                for (uint32_t i = 0; i < n; i++)
                    rows[i] = n - 1 - i;
                const struct plan_order order = {column, false};
                order_rows(t, &m.st.strings, &order, 1, false, limit, rows, n, &stop);
                for (uint32_t i = 0; i < n; i++)
                    ck_assert_uint_eq(rows[i], n - 1 - i);
            }
    mirror_close(&m);
}
END_TEST

/* Rows that stand in order in parts, few of them or many: sorted, and equal ones as they came. */
START_TEST(parts_in_order)
{
    enum { ROWS = 3000 };
    for (uint32_t parts = 1; parts < 8; parts++) {
        struct storage st;
        struct table *t = &st.t[T_thread_state];
        uint32_t rows[ROWS], length = ROWS / parts + 1;
        stop_flag stop = false;
        ck_assert_int_eq(storage_init(&st), 0);
        for (uint32_t i = 0; i < ROWS; i++) {
            int64_t dur = i % length / (2 + i / length);
            thread_state_insert(&st, &(struct thread_state_row){.ts = i, .dur = dur, .waker_utid = COL_NULL});
            rows[i] = i;
        }
        table_finalize(t);
        const struct plan_order order = {thread_state_c_dur, parts % 2 == 0};
        ck_assert(order_rows(t, &st.strings, &order, 1, false, 0, rows, ROWS, &stop));
        for (uint32_t i = 1; i < ROWS; i++) {
            int64_t a = table_get(t, thread_state_c_dur, rows[i - 1]), b = table_get(t, thread_state_c_dur, rows[i]);
            ck_assert(order.desc ? a > b || (a == b && rows[i - 1] < rows[i])
                                 : a < b || (a == b && rows[i - 1] < rows[i]));
        }
        storage_free(&st);
    }
}
END_TEST

/* What the ends of a column rule out, and nothing else: words outside of them, and all where every row is NULL. */
START_TEST(tests_outside_of_a_column_are_known)
{
    struct storage st;
    struct table *t = &st.t[T_thread_state];
    ck_assert_int_eq(storage_init(&st), 0);
    strid runs = strpool_intern_str(&st.strings, "R"), sleeps = strpool_intern_str(&st.strings, "S");
    for (int64_t i = 0; i < 10; i++)
        thread_state_insert(&st, &(struct thread_state_row){
                                     .ts = 100 + i, .dur = i, .state = i % 2 ? runs : sleeps, .waker_utid = COL_NULL});
    strid late = strpool_intern_str(&st.strings, "D");
    const struct {
        int16_t column;
        int64_t lo, hi;
        bool outside;
    } ranges[] = {
        {thread_state_c_state, late, late, true},        {thread_state_c_state, sleeps, sleeps, false},
        {thread_state_c_ts, 110, INT64_MAX, true},       {thread_state_c_ts, INT64_MIN + 1, 99, true},
        {thread_state_c_ts, 109, INT64_MAX, false},      {thread_state_c_ts, INT64_MIN + 1, 100, false},
        {thread_state_c_waker_utid, 0, INT64_MAX, true}, {VTAB_ROW, 500, 600, false},
    };
    for (int final = 0; final < 2; final++) {
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            struct test test = {.kind = TEST_RANGE, .column = ranges[i].column, .lo = ranges[i].lo, .hi = ranges[i].hi};
            test.type = test.column == VTAB_ROW ? COL_U32 : t->columns[test.column].type;
            ck_assert_msg(test_is_outside(&test, t) == (final && ranges[i].outside), "case %zu, final %d", i, final);
            test.kind = TEST_NE;
            ck_assert(!test_is_outside(&test, t));
        }
        table_finalize(t);
    }
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
    tcase_add_test(t, random_outer_joins_answer_as_plain_tables);
    tcase_add_test(t, outer_joins_answer_as_plain_tables);
    tcase_add_test(t, outer_joins_with_span_joins_answer_as_plain_tables);
    tcase_add_test(t, conditions_are_taken_beside_many_names);
    tcase_add_test(t, tests_outside_of_a_column_are_known);
    tcase_add_test(t, an_interrupted_sort_leaves_rows);
    tcase_add_test(t, parts_in_order);
    tcase_add_loop_test(t, chosen_queries_answer_as_plain_tables, 0, (int)(sizeof cases / sizeof *cases));
    suite_add_tcase(s, t);
    return s;
}
