/* Args that are not decoded yet: plans have some of them decoded, and the answers are those of SQLite alone. */
#include "plan_grammar.h"

#include "sql/engine_private.h"

#include <check.h>

static const char *const keys[] = {"a", "a.b", "a.b[0]", "a.b[1]", "A", "utid", ""};
enum { N_KEYS = sizeof keys / sizeof *keys, N_SETS = 900 };

/* Values of all types, keys that a set has twice, and sets that no row names. */
static void add_sets(struct storage *st)
{
    static const char *const texts[] = {"7", "7.0", "x", "", "X"};
    struct args *a = &st->args;
    struct arg_list l = {0};
    for (int i = 0; i < N_SETS; i++) {
        l.n = 0;
        for (uint32_t k = pick(6); k-- > 0;) {
            strid key = strpool_intern_str(&st->strings, keys[pick(N_KEYS)]);
            strid flat = pick(2) ? key : strpool_intern_str(&st->strings, keys[pick(N_KEYS)]);
            enum arg_type type = (enum arg_type)pick(ARG_TYPE_COUNT);
            int64_t word = type == ARG_STRING || type == ARG_JSON
                               ? (int64_t)(pick(4) ? strpool_intern_str(&st->strings, texts[pick(5)]) : 0)
                           : type == ARG_REAL ? column_f64_word(pick(2) ? 7.0 : -0.0)
                           : type == ARG_NULL ? 0
                                              : (int64_t)pick(9) - 1;
            arg_list_add(a, &l, flat, key, type, word);
        }
        arg_list_int(a, &l, "number", i);
        args_intern(a, l.p, l.n);
    }
    arg_list_free(&l);
}

static bool compare(struct mirror *m, const char *statement)
{
    m->e->all_args_ready = false;
    m->e->args_decoded = 0;
    return mirror_compare_planner(m, statement);
}

/* Some of the rows are enough for these. */
static const char *const some[] = {
    "SELECT s.id, a.int_value, a.string_value, a.real_value FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE "
    "a.key = 'a.b[0]'",
    "SELECT a.display_value, count(*), sum(s.dur) FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE "
    "a.flat_key = 'a.b' GROUP BY 1",
    "SELECT s.id, a.key, a.value_type FROM v_slice s JOIN __intrinsic_args a ON a.arg_set_id = s.depth WHERE s.id < 9",
    "SELECT s.id, a.key FROM v_slice s LEFT JOIN args a ON a.arg_set_id = s.depth WHERE a.key = 'utid'",
    "SELECT s.id, a.int_value FROM v_slice s LEFT JOIN __intrinsic_args a ON a.arg_set_id = s.depth AND a.key = 'utid' "
    "WHERE s.id > 1990",
    "SELECT count(*), sum(a.int_value), count(a.key), max(s.dur) FROM v_slice s LEFT JOIN __intrinsic_args a ON "
    "a.arg_set_id = s.depth AND a.key = 'a' WHERE s.dur > 5",
    "SELECT s.id, (SELECT count(*) FROM args a WHERE a.arg_set_id = s.depth AND a.key = 'a') FROM v_slice s",
    "SELECT s.id FROM v_slice s WHERE s.depth IN (SELECT arg_set_id FROM args WHERE key = 'a' AND int_value > 2)",
    "SELECT s.id FROM v_slice s WHERE NOT EXISTS (SELECT 1 FROM args a WHERE a.arg_set_id = s.depth AND a.flat_key = "
    "'a')",
    "SELECT key, int_value FROM args WHERE key = 'a' AND int_value > 1 ORDER BY int_value, arg_set_id",
    "SELECT count(*), count(DISTINCT arg_set_id) FROM args WHERE flat_key = 'a.b' AND string_value LIKE '%x%'",
    "SELECT count(*), sum(int_value) FROM args WHERE key = ''",
    "SELECT count(*), max(key) FROM args WHERE key = 'no such key'",
    "WITH w AS (SELECT arg_set_id AS x, int_value AS v FROM args WHERE key = 'number') SELECT s.id, w.v FROM v_slice s "
    "JOIN w ON w.x = s.depth WHERE s.dur > 30 ORDER BY s.id LIMIT 20 OFFSET 3",
    "SELECT s.id, max(CASE WHEN a.key = 'a' THEN a.int_value END), max(CASE WHEN a.key = 'A' THEN a.string_value END) "
    "FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE s.name = 'alpha' GROUP BY s.id"};

/* All are needed, or SQLite answers. */
static const char *const others[] = {
    "SELECT s.id, a.key FROM v_slice s LEFT JOIN args a ON a.arg_set_id = s.depth AND a.key = 'utid' WHERE s.id > 2990",
    "SELECT s.id, a.int_value FROM v_slice s LEFT JOIN args a ON a.arg_set_id = s.depth AND a.key = 'a' WHERE "
    "a.arg_set_id IS NULL AND s.dur > 5",
    "SELECT t.id, a.string_value, b.string_value FROM v_thread t JOIN args a ON a.arg_set_id = t.id JOIN args b ON "
    "b.arg_set_id = t.tid AND b.key = 'A' WHERE a.key = 'a' AND t.upid > 2",
    "SELECT c.id, count(*), max(a.int_value) FROM v_counter c JOIN args a USING (arg_set_id) WHERE a.key = 'number' "
    "GROUP BY c.id ORDER BY c.id DESC LIMIT 7",
    "SELECT a.id, a.key, s.id FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE a.key = 'a' ORDER BY a.id "
    "LIMIT 30",
    "SELECT a.*, s.id FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE a.key = 'a' AND s.id > 2000",
    "SELECT s.id, a.key FROM v_slice s JOIN args a ON a.arg_set_id = s.depth AND a.key = 'a' COLLATE NOCASE WHERE s.id "
    "< 500",
    "SELECT key, count(*), sum(int_value) FROM args GROUP BY key",
    "SELECT a.key, b.key, count(*) FROM args a JOIN args b ON a.arg_set_id = b.arg_set_id WHERE a.key = 'a' GROUP BY "
    "1, "
    "2",
    "SELECT a.key, s.id FROM args a LEFT JOIN v_slice s ON s.depth = a.arg_set_id WHERE a.int_value = 3",
    "SELECT a.key, s.id FROM args a LEFT JOIN v_slice s ON s.depth = a.arg_set_id AND a.key = 'a' WHERE a.int_value = "
    "3",
    "SELECT * FROM args WHERE arg_set_id = 5",
    "SELECT * FROM args WHERE key IN ('a', 'A') LIMIT 0",
    "SELECT max(id), min(arg_set_id), max(arg_set_id) FROM args",
    "SELECT * FROM args WHERE int_value = 3 LIMIT 5 OFFSET 10",
    "SELECT s.id, a.key FROM v_slice s, args a WHERE a.arg_set_id = s.depth + 1 AND a.key = 7 AND s.id < 50",
    "SELECT s.id, a.key FROM v_slice s JOIN args a ON a.arg_set_id = s.name WHERE a.key = 'a'",
    "SELECT a.key, count(*) FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE a.key = 'a' OR s.id = 3 GROUP "
    "BY "
    "1",
    "SELECT s.id, a.int_value FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE a.key = NULL",
    "WITH RECURSIVE c(n, k) AS (SELECT 1, 'x' UNION ALL SELECT a.int_value + 1, a.key FROM c JOIN args a ON "
    "a.arg_set_id = c.n WHERE a.key = 'number' AND c.n < 40) SELECT n, k FROM c, (SELECT count(*) FROM v_slice)"};

START_TEST(some_of_the_args)
{
    struct mirror m;
    mirror_open(&m, 20261128 + (uint64_t)_i, PLAN_ROWS);
    add_sets(&m.st);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        ck_assert_msg(compare(&m, some[i]), "no plan: %s", some[i]);
        mirror_compare_planner(&m, some[i]); /* now SQLite has had all of them decoded */
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        compare(&m, others[i]);
    mirror_close(&m);
}
END_TEST

/* A plan that needs few leaves the others as they are; who decodes some again and again gets all. */
START_TEST(the_others_stay_as_they_are)
{
    static const char few[] = "SELECT s.id, a.key FROM v_slice s JOIN args a ON a.arg_set_id = s.depth WHERE s.id = 7";
    struct mirror m;
    struct error err = {0};
    mirror_open(&m, 5, PLAN_ROWS);
    add_sets(&m.st);
    for (int i = 0; i < 9 * N_SETS && !m.e->all_args_ready; i++) {
        struct engine_result r;
        ck_assert_int_eq(engine_query(m.e, "test", slice_str(few), &r, NULL, &err), 0);
        while (engine_result_next(&r, &err) == 1)
            ;
        engine_result_close(&r);
        ck_assert(i || !m.e->all_args_ready);
    }
    ck_assert(m.e->all_args_ready);
    mirror_close(&m);
}
END_TEST

/* Memory runs out while they are decoded. */
START_TEST(some_without_memory)
{
    struct mirror m;
    mirror_open(&m, 77, PLAN_ROWS / 4);
    add_sets(&m.st);
    for (unsigned i = 0; i < 6 * sizeof some / sizeof *some; i++) {
        m.e->all_args_ready = false;
        m.e->args_decoded = 0;
        mirror_check_memory(&m, some[i % (sizeof some / sizeof *some)], 1 + pick(600), pick(2));
    }
    mirror_close(&m);
}
END_TEST

/* ---- values of several types ---- */

/* A value of which nobody knows the type before it is there. */
static void put_varied(struct text *t, int depth)
{
    static const char *const plain[] = {"extract_arg(s.depth, 'a')", "extract_arg(s.depth, 'a.b')",
                                        "extract_arg(s.dur, 'A')", "extract_arg(s.depth, 'utid')"};
    static const char *const ends[] = {"'none'",
                                       "7",
                                       "7.0",
                                       "0",
                                       "-0.0",
                                       "s.name",
                                       "s.depth",
                                       "s.dur / 2.0",
                                       "NULL",
                                       "'7'",
                                       "9223372036854775807",
                                       "9223372036854775808.0",
                                       "9007199254740993"};
    uint32_t kind = depth ? pick(4) : 0;
    if (kind == 0) {
        put(t, "%s", one_of(plain, 4));
        return;
    }
    put(t, kind == 1 ? "coalesce(" : kind == 2 ? "CASE WHEN s.dur > %u THEN " : "iif(s.depth < %u, ", pick(9));
    put_varied(t, depth - 1);
    put(t, kind == 2 ? " ELSE %s END" : ", %s)", one_of(ends, 13));
}

static void put_varied_condition(struct text *t)
{
    static const char *const ends[] = {" > 1",
                                       " = 7",
                                       " = '7'",
                                       " < 'x'",
                                       " IS NULL",
                                       " >= 6.5",
                                       " != 7.0",
                                       " IS NOT 7",
                                       " IN (7, 'x')",
                                       " LIKE '%7%'",
                                       " IS NOT NULL",
                                       " <= -0.0",
                                       " IN (7.0, 0, NULL)",
                                       " = NULL",
                                       " GLOB 'x*'",
                                       " BETWEEN 0 AND 7.0",
                                       " NOT BETWEEN -1 AND '7'"};
    put_varied(t, 1);
    put(t, "%s", ends[pick(17)]);
}

/* A statement that groups by a varied value, orders by it, or adds it up. */
static void make_varied(struct text *t)
{
    t->n = 0;
    switch (pick(6)) {
    case 0:
        put(t, "SELECT s.id, ");
        put_varied(t, 2);
        put(t, " AS v FROM v_slice s WHERE ");
        put_varied_condition(t);
        put(t, pick(2) ? " ORDER BY v, s.id" : " ORDER BY 2 DESC, s.id LIMIT 40");
        break;
    case 1:
        put(t, "SELECT ");
        put_varied(t, 2);
        put(t, " AS v, count(*), min(s.ts), s.name FROM v_slice s GROUP BY v%s", pick(2) ? " ORDER BY v DESC" : "");
        break;
    case 2:
        put(t, "SELECT DISTINCT ");
        put_varied(t, 2);
        put(t, " AS v%s FROM v_slice s%s", pick(2) ? ", s.depth" : "", pick(2) ? " ORDER BY 1" : "");
        break;
    case 3:
        put(t, "SELECT s.name, %s(", pick(2) ? "min" : "max");
        put_varied(t, 2);
        put(t, "), count(DISTINCT ");
        put_varied(t, 1);
        put(t, ") FROM v_slice s GROUP BY s.name");
        break;
    case 4:
        put(t, "SELECT s.name, %s(", pick(3) ? "sum" : pick(2) ? "avg" : "total");
        put_varied(t, 1);
        put(t, "), count(*) FROM v_slice s WHERE ");
        put_varied_condition(t);
        put(t, " GROUP BY 1");
        break;
    default:
        put(t, "SELECT typeof(");
        put_varied(t, 1);
        put(t, ") AS k, upper(");
        put_varied(t, 1);
        put(t, ") AS u, t.name, count(*) FROM v_slice s JOIN v_thread t ON t.id = s.track_id GROUP BY 1, 2, 3");
        break;
    }
}

static const char *const of_several_types[] = {
    "SELECT extract_arg(s.depth, 'a') AS v, count(*) FROM v_slice s GROUP BY v",
    "SELECT coalesce(extract_arg(s.depth, 'a.b'), 'none') AS v, s.name, count(*) FROM v_slice s GROUP BY 1, 2 ORDER BY "
    "3",
    "SELECT count(*), sum(s.dur) FROM v_slice s WHERE extract_arg(s.depth, 'a') = 7",
    "SELECT s.id FROM v_slice s WHERE extract_arg(s.depth, 'a') IN (7, 'x')",
    "SELECT s.name, min(extract_arg(s.depth, 'a')), max(extract_arg(s.depth, 'A')), count(DISTINCT "
    "extract_arg(s.depth, "
    "'a')) FROM v_slice s GROUP BY 1",
    "SELECT DISTINCT extract_arg(s.depth, 'utid') FROM v_slice s",
    "SELECT DISTINCT extract_arg(s.depth, 'utid') AS v FROM v_slice s ORDER BY v DESC",
    "SELECT count(*) FROM v_slice s WHERE extract_arg(s.depth, 'a') BETWEEN 1 AND 7.0",
    "SELECT s.id, extract_arg(s.depth, 'a') AS v FROM v_slice s ORDER BY v DESC, s.id LIMIT 50",
    "SELECT CASE WHEN depth < 3 THEN 'low' WHEN depth < 5 THEN 7 ELSE dur / 2.0 END AS k, count(*) FROM v_slice GROUP "
    "BY "
    "k",
    "SELECT json_extract(json_object('n', name, 'd', dur), '$.d') AS v, count(*) FROM v_slice GROUP BY v",
    "SELECT json_extract(json_object('n', name, 'd', dur), '$.d', '$.n') AS v, count(*) FROM v_slice GROUP BY v",
    "SELECT json_extract('{\"a\":' || depth || ',\"b\":\"x\"}', '$.a') AS v, count(*) FROM v_slice GROUP BY v"};

START_TEST(values_of_several_types)
{
    struct mirror m;
    struct text t = {0};
    uint32_t planned = 0;
    mirror_open(&m, 20261129 + (uint64_t)_i, PLAN_ROWS);
    add_sets(&m.st);
    for (size_t i = 0; i < sizeof of_several_types / sizeof *of_several_types; i++)
        ck_assert_msg(mirror_compare_planner(&m, of_several_types[i]), "no plan: %s", of_several_types[i]);
    for (int i = 0; i < 250; i++) {
        make_varied(&t);
        planned += mirror_compare_planner(&m, t.p);
    }
    ck_assert_uint_gt(planned, 40);
    mirror_close(&m);
}
END_TEST

/* It ends in the middle. */
START_TEST(several_types_without_memory)
{
    struct mirror m;
    mirror_open(&m, 78, PLAN_ROWS / 4);
    add_sets(&m.st);
    for (unsigned i = 0; i < 6 * sizeof of_several_types / sizeof *of_several_types; i++)
        mirror_check_memory(&m, of_several_types[i % (sizeof of_several_types / sizeof *of_several_types)],
                            1 + pick(600), pick(2));
    mirror_close(&m);
}
END_TEST

/* The string pool keeps what plans put into it: once that is much, plans that would add more leave it to SQLite, and
 * those whose texts are there already go on. */
START_TEST(the_string_pool_does_not_grow_for_ever)
{
    static const char *const statements[] = {
        "SELECT count(DISTINCT CASE WHEN id % 2 THEN id * 7919 ELSE 'n' || id END) FROM v_slice",
        "SELECT max(printf('%d-%d', id, dur)) FROM v_slice", "SELECT group_concat(id * 3) FROM v_slice GROUP BY depth",
        "SELECT group_concat(id * 11) OVER (ORDER BY id ROWS 2 PRECEDING) FROM v_slice",
        "SELECT CASE WHEN id % 2 THEN id + 0.0 ELSE 'x' END AS v, count(*) FROM v_slice GROUP BY v"};
    struct mirror m;
    mirror_open(&m, 20261130, PLAN_ROWS);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        m.e->plan_text_bytes = 1ull << 40;
        mirror_compare_planner(&m, statements[i]);
        ck_assert_msg(m.e->plan_gave_up, "%s", statements[i]);
        m.e->plan_text_bytes = 0;
        mirror_compare_planner(&m, statements[i]);
        ck_assert_msg(!m.e->plan_gave_up && m.e->plan_text_bytes > 0, "%s", statements[i]);
        m.e->plan_text_bytes = 1ull << 40;
        mirror_compare_planner(&m, statements[i]);
        ck_assert_msg(!m.e->plan_gave_up, "%s", statements[i]);
    }
    mirror_close(&m);
}
END_TEST

Suite *sql_plan_args_suite(void);
Suite *sql_plan_args_suite(void)
{
    Suite *s = suite_create("sql_plan_args");
    TCase *t = tcase_create("args");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, some_of_the_args, 0, 3);
    tcase_add_test(t, the_others_stay_as_they_are);
    tcase_add_test(t, some_without_memory);
    tcase_add_loop_test(t, values_of_several_types, 0, 4);
    tcase_add_test(t, several_types_without_memory);
    tcase_add_test(t, the_string_pool_does_not_grow_for_ever);
    suite_add_tcase(s, t);
    return s;
}
