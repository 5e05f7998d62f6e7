/* Summarizers by the public API: queries of a spec that change, and the tables that they become. */
#include "gate.h"
#include "summary_fixture.h"

static struct tp_summarizer *summarizer;

/* "+a -b =c ": updated, dropped, neither. */
static const char *update(const char *text)
{
    static char seen[256];
    const struct tp_spec spec = {.bytes = text, .len = strlen(text), .format = TP_SPEC_TEXT};
    const struct tp_query_change *changes;
    size_t n, at = 0;
    seen[0] = '\0';
    if (tp_summarizer_update(summarizer, &spec, &changes, &n) < 0)
        return tp_error(tp);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(seen + at, sizeof seen - at, "%c%s ",
                               changes[i].dropped   ? '-'
                               : changes[i].updated ? '+'
                                                    : '=',
                               changes[i].id);
    return seen;
}

static struct tp_query_table ask(const char *id)
{
    struct tp_query_table t;
    ck_assert_msg(tp_summarizer_query(summarizer, id, &t) == 0, "%s", tp_error(tp));
    return t;
}

static char *table_of(const char *id)
{
    struct tp_query_table t = ask(id);
    ck_assert(t.exists);
    return strdup(t.table);
}

static bool readable(const char *table)
{
    char sql[128];
    struct tp_result *r;
    snprintf(sql, sizeof sql, "select * from %s", table);
    bool there = tp_query(tp, sql, &r) == 0;
    tp_result_close(r);
    return there;
}

static void open_summarizer(void)
{
    open_empty();
    ck_assert_int_eq(tp_summarizer_open(tp, &summarizer), 0);
}

static void close_summarizer(void)
{
    tp_summarizer_close(summarizer);
    ck_assert_int_eq(count(OUR_TABLES), 0);
    close_it();
}

#define Q(id, sql) "query { id: '" id "' sql { sql: '" sql "' } } "
#define MORE_THAN(id, of, least)                                                                                       \
    "query { id: '" id "' inner_query_id: '" of "' filters { column_name: 'v' op: GREATER_THAN int64_rhs: " least      \
    " } } "
#define ONE_TO_THREE "select 1 as v union all select 2 union all select 3"

START_TEST(stores_when_asked)
{
    ck_assert_str_eq(update(Q("q", "select 42 as v, 1 as w")), "+q ");
    ck_assert_int_eq(count(OUR_TABLES), 0);
    struct tp_query_table t = ask("q");
    ck_assert(t.exists);
    ck_assert_int_eq(t.n_rows, 1);
    ck_assert_uint_eq(t.n_columns, 2);
    ck_assert_str_eq(t.columns[0], "v");
    ck_assert_str_eq(t.columns[1], "w");
    ck_assert_double_gt(t.duration_ms, 0);
    ck_assert_str_eq(t.text, "id: \"q\"\nsql {\n  sql: \"select 42 as v, 1 as w\"\n}\n");
    ck_assert_msg(strstr(t.sql, "select 42 as v") != NULL, "%s", t.sql);
    char sql[4096];
    snprintf(sql, sizeof sql, "%s", t.standalone_sql);
    ck_assert_int_eq(count(sql), 42);
    ck_assert(!ask("nobody").exists);
}
END_TEST

START_TEST(equal_ones_are_stored_once)
{
    update(Q("q", "select 42 as v"));
    char *first = table_of("q");
    ck_assert_str_eq(update(Q("q", "select 42 as v")), "=q ");
    char *again = table_of("q");
    ck_assert_str_eq(first, again);
    ck_assert_str_eq(update(Q("q", "select 42 as v") Q("r", "select 42 as v")), "=q +r ");
    ck_assert_int_eq(count(OUR_TABLES), 1);
    free(first);
    free(again);
}
END_TEST

/* The table of a query that has changed stays until the new one is there. */
START_TEST(changed_ones_are_stored_again)
{
    update(Q("q", "select 42 as v"));
    char *first = table_of("q");
    ck_assert_str_eq(update(Q("q", "select 100 as v")), "+q ");
    ck_assert(readable(first));
    ck_assert_str_eq(update(Q("q", "select 101 as v")), "+q ");
    ck_assert(readable(first));
    char *second = table_of("q");
    ck_assert_str_ne(first, second);
    ck_assert(!readable(first));
    ck_assert(readable(second));
    ck_assert_str_eq(update(Q("r", "select 1 as v")), "-q +r ");
    ck_assert(!readable(second));
    ck_assert(!ask("q").exists);
    free(first);
    free(second);
}
END_TEST

START_TEST(changes_spread_to_users)
{
    ck_assert_str_eq(
        update(Q("a", ONE_TO_THREE) MORE_THAN("b", "a", "1") "query { id: 'c' inner_query { inner_query_id: 'b' } } " Q(
            "d", "select 9 as v")),
        "+a +b +c +d ");
    ck_assert_int_eq(ask("c").n_rows, 2);
    char *a = table_of("a"), *b = table_of("b"), *c = table_of("c");
    ck_assert_msg(strstr(ask("b").sql, a) != NULL, "%s", ask("b").sql);
    ck_assert_msg(strstr(ask("c").standalone_sql, "_meridian_summary") == NULL, "%s", ask("c").standalone_sql);
    ck_assert_str_eq(
        update(Q("a", ONE_TO_THREE) MORE_THAN("b", "a", "2") "query { id: 'c' inner_query { inner_query_id: 'b' } } " Q(
            "d", "select 9 as v")),
        "=a +b +c +d ");
    ck_assert(readable(c));
    ck_assert_int_eq(ask("c").n_rows, 1);
    char *a2 = table_of("a"), *b2 = table_of("b"), *c2 = table_of("c");
    ck_assert_str_eq(a, a2);
    ck_assert_str_ne(b, b2);
    ck_assert_str_ne(c, c2);
    ck_assert(!readable(c));
    free(a), free(b), free(c), free(a2), free(b2), free(c2);
}
END_TEST

/* Back to a query of before: its preamble has to take effect again. */
START_TEST(preambles_of_before_take_effect_again)
{
    static const char one[] = Q("q", "create or replace perfetto table pre as select 1 as v; select v from pre");
    static const char two[] = Q("q", "create or replace perfetto table pre as select 2 as v; select v from pre");
    const char *const specs[] = {one, two, one, one};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        char sql[128];
        update(specs[i]);
        char *table = table_of("q");
        snprintf(sql, sizeof sql, "select v from %s", table);
        ck_assert_int_eq(count(sql), specs[i] == two ? 2 : 1);
        free(table);
    }
}
END_TEST

START_TEST(failures_are_remembered_until_the_next_spec)
{
    struct tp_query_table t;
    update(Q("a", "select nope as v") MORE_THAN("b", "a", "1") MORE_THAN("c", "b", "1"));
    ck_assert_int_eq(tp_summarizer_query(summarizer, "c", &t), TP_SQL);
    ck_assert_msg(strstr(tp_error(tp), "no such column: nope") != NULL, "%s", tp_error(tp));
    ck_assert_int_eq(tp_summarizer_query(summarizer, "b", &t), TP_SQL);
    ck_assert_msg(strstr(tp_error(tp), "it uses 'a', which failed") != NULL, "%s", tp_error(tp));
    ck_assert_int_eq(tp_summarizer_query(summarizer, "a", &t), TP_SQL);
    ck_assert_msg(strstr(tp_error(tp), "query 'a': ") != NULL, "%s", tp_error(tp));
    ck_assert_int_eq(count("create perfetto function nope() returns int as select 1; select 1"), 1);
    ck_assert_str_eq(update(Q("a", "select nope() as v") MORE_THAN("b", "a", "0") MORE_THAN("c", "b", "0")),
                     "+a +b +c ");
    ck_assert_int_eq(ask("c").n_rows, 1);
}
END_TEST

START_TEST(bad_specs_change_nothing)
{
    update(Q("q", "select 42 as v"));
    char *table = table_of("q");
    ck_assert_msg(strstr(update("query { sql { sql: 'select 1' } }"), "query[0]") != NULL, "%s", tp_error(tp));
    ck_assert_msg(strstr(update(Q("q", "select 1") Q("q", "select 2")), "query[1]") != NULL, "%s", tp_error(tp));
    ck_assert_msg(strstr(update("nonsense"), "1:") != NULL, "%s", tp_error(tp));
    ck_assert_str_eq(update(Q("q", "select 42 as v")), "=q ");
    ck_assert(readable(table));
    free(table);
}
END_TEST

START_TEST(cycles_and_missing_ids)
{
    struct tp_query_table t;
    update("query { id: 'a' inner_query_id: 'b' } query { id: 'b' inner_query_id: 'a' } query { id: 'c' "
           "inner_query_id: 'c' } "
           "query { id: 'd' inner_query_id: 'nobody' }");
    for (const char *id = "abcd"; *id; id++) {
        char one[2] = {*id, 0};
        ck_assert_int_lt(tp_summarizer_query(summarizer, one, &t), 0);
        ck_assert_str_ne(tp_error(tp), "");
    }
}
END_TEST

/* Each uses the one before. */
START_TEST(long_chains)
{
    enum { MOST = 1000 };
    char *text = malloc((MOST + 1) * 64);
    size_t at = (size_t)sprintf(text, "%s", Q("q0", "select 1 as v"));
    for (int i = 1; i < MOST; i++)
        at += (size_t)sprintf(text + at, "query { id: 'q%d' inner_query_id: 'q%d' } ", i, i - 1);
    const struct tp_spec spec = {.bytes = text, .len = at, .format = TP_SPEC_TEXT};
    const struct tp_query_change *changes;
    size_t n;
    ck_assert_msg(tp_summarizer_update(summarizer, &spec, &changes, &n) == 0, "%s", tp_error(tp));
    ck_assert_uint_eq(n, MOST);
    ck_assert_int_eq(ask("q999").n_rows, 1);
    ck_assert_int_eq(count(OUR_TABLES), MOST);
    memcpy(strstr(text, "select 1"), "select 2", 8);
    ck_assert_msg(tp_summarizer_update(summarizer, &spec, &changes, &n) == 0, "%s", tp_error(tp));
    ck_assert(changes[0].updated);
    ck_assert(changes[MOST - 1].updated);
    at += (size_t)sprintf(text + at, "query { id: 'one' inner_query_id: 'more' } ");
    const struct tp_spec longer = {.bytes = text, .len = at, .format = TP_SPEC_TEXT};
    ck_assert_int_lt(tp_summarizer_update(summarizer, &longer, &changes, &n), 0);
    ck_assert_str_eq(tp_error(tp), "more than 1000 queries");
    free(text);
}
END_TEST

START_TEST(tables_go_with_a_reset)
{
    update(Q("a", ONE_TO_THREE) MORE_THAN("b", "a", "1"));
    char *before = table_of("b");
    ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    ck_assert(!readable(before));
    ck_assert_int_eq(ask("b").n_rows, 2);
    char *after = table_of("b");
    ck_assert_str_ne(before, after); /* an old name never means other rows */
    free(before);
    free(after);
}
END_TEST

START_TEST(stays_in_its_view)
{
    struct tp_query_table t;
    struct tp_view *view;
    ck_assert_msg(tp_view_open(tp, &view) == 0, "%s", tp_error(tp));
    update(Q("q", "select 1 as v"));
    char *table = table_of("q");
    tp_view_use(tp, view);
    ck_assert(!readable(table));
    ck_assert_int_eq(tp_summarizer_query(summarizer, "q", &t), TP_INVALID);
    char *got = summarize(
        "metric_spec { id: 'm' value: 'v' query { sql { preamble: 'create perfetto table here as select 3 as v;' "
        "sql: 'select v from here' } } }");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    tp_free(got);
    ck_assert_int_eq(count("select v from here"), 3);
    tp_view_use(tp, NULL);
    ck_assert(!readable("here"));
    ck_assert(readable(table));
    tp_view_close(tp, view);
    ck_assert_int_eq(ask("q").n_rows, 1);
    free(table);
}
END_TEST

/* A table that somebody is reading goes as soon as that is over. */
START_TEST(tables_in_use_go_later)
{
    struct tp_result *r;
    char sql[128];
    update(Q("a", ONE_TO_THREE));
    char *table = table_of("a");
    snprintf(sql, sizeof sql, "select * from %s", table);
    ck_assert_int_eq(tp_query(tp, sql, &r), 0);
    ck_assert_int_eq(tp_step(r), 1);
    ck_assert_str_eq(update(""), "-a ");
    ck_assert_int_eq(tp_step(r), 1);
    tp_result_close(r);
    update(Q("b", "select 1 as v"));
    free(table_of("b"));
    update("");
    ck_assert(!readable(table));
    free(table);
}
END_TEST

START_TEST(several_do_not_meet)
{
    struct tp_summarizer *other, *mine = summarizer;
    ck_assert_int_eq(tp_summarizer_open(tp, &other), 0);
    update(Q("q", "select 1 as v"));
    char *a = table_of("q");
    summarizer = other;
    ck_assert(!ask("q").exists);
    update(Q("q", "select 1 as v"));
    char *b = table_of("q");
    ck_assert_str_ne(a, b);
    tp_summarizer_close(other);
    ck_assert(readable(a));
    ck_assert(!readable(b));
    summarizer = mine;
    tp_summarizer_close(NULL);
    free(a);
    free(b);
}
END_TEST

/* With every call of the allocator failing once: an error, and the next spec is answered. */
START_TEST(without_memory_summarizers)
{
    static const char spec[] = SHARED, changed[] = Q("s", ONE_TO_THREE) MORE_THAN("u", "s", "1");
    for (unsigned k = 1;; k += 1 + k / 100) {
        struct gate g = {.fail_at = k};
        struct tp_query_table t;
        alloc_set_gate(gate_open, &g);
        update(spec);
        tp_summarizer_query(summarizer, "u", &t);
        update(changed);
        int rc = tp_summarizer_query(summarizer, "u", &t);
        alloc_set_gate(NULL, NULL);
        if (rc == 0 && t.exists)
            ck_assert(t.n_rows == 1 || t.n_rows == 2); /* of the spec that was read last */
        update(changed);
        ck_assert_int_eq(ask("u").n_rows, 2);
        if (g.calls < k)
            break;
    }
    update("");
}
END_TEST

Suite *summarizer_suite(void);
Suite *summarizer_suite(void)
{
    Suite *s = suite_create("summarizer");
    TCase *t = tcase_create("summarizers");
    tcase_add_checked_fixture(t, open_summarizer, close_summarizer);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, stores_when_asked);
    tcase_add_test(t, equal_ones_are_stored_once);
    tcase_add_test(t, changed_ones_are_stored_again);
    tcase_add_test(t, changes_spread_to_users);
    tcase_add_test(t, preambles_of_before_take_effect_again);
    tcase_add_test(t, failures_are_remembered_until_the_next_spec);
    tcase_add_test(t, bad_specs_change_nothing);
    tcase_add_test(t, cycles_and_missing_ids);
    tcase_add_test(t, long_chains);
    tcase_add_test(t, tables_go_with_a_reset);
    tcase_add_test(t, stays_in_its_view);
    tcase_add_test(t, tables_in_use_go_later);
    tcase_add_test(t, several_do_not_meet);
    tcase_add_test(t, without_memory_summarizers);
    suite_add_tcase(s, t);
    return s;
}
