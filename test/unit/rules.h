/* Asks a query about a small trace of its own and compares the rows; shared by test_rules*.c. */
#ifndef MERIDIAN_TEST_RULES_H
#define MERIDIAN_TEST_RULES_H

#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

#include "sql_fixture.h"

struct rule {
    const char *name, *trace, *query, *rows;
};

static inline void check_rule_with(const struct rule *rule, const struct import_options *options)
{
    struct trace_fixture t;
    struct sql_fixture f = {0};
    struct error err = {0};
    trace_fixture_open_with(&t, options);
    put(&t.w, "%s", rule->trace);
    trace_fixture_load(&t);
    ck_assert_msg(engine_open(&f.e, &t.st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(f.e, &err) == 0, "%s", err.text);
    char *rows = sql_rows(&f, rule->query);
    ck_assert_msg(rows, "%s: %s", rule->name, engine_error_text(f.e));
    ck_assert_msg(strcmp(rows, rule->rows) == 0, "%s:\n%s\nshould be\n%s", rule->name, rows, rule->rows);
    sqlite3_free(rows);
    engine_close(f.e);
    trace_fixture_close(&t);
}

static inline void check_rule(const struct rule *rule)
{
    struct import_options options = {0};
    check_rule_with(rule, &options);
}

#endif
