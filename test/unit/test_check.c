/* Tests what the tables of declarations say: hints fit the stats, and every stat, table and column is described. */
#include "storage/stats.h"
#include "storage/storage.h"

#include <check.h>
#include <fnmatch.h>
#include <string.h>

static const char *const patterns[] = {
#define HINT(pattern, counts_as, index, cure) pattern,
#include "shell/hints.def"
#undef HINT
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

/* The pattern that holds for a stat, N_PATTERNS when none does. */
static size_t match(const char *name)
{
    size_t i = 0;
    while (i < N_PATTERNS && fnmatch(patterns[i], name, 0) != 0)
        i++;
    return i;
}

START_TEST(every_pattern_is_used)
{
    bool used[N_PATTERNS + 1] = {false};
    for (size_t i = 0; i < STAT_COUNT; i++)
        used[match(stat_defs[i].name)] = true;
    for (size_t i = 0; i < N_PATTERNS; i++)
        ck_assert_msg(used[i], "no stat is left for the pattern %s", patterns[i]);
}
END_TEST

START_TEST(every_loss_has_a_cure)
{
    for (size_t i = 0; i < STAT_COUNT; i++)
        ck_assert_msg(stat_defs[i].severity != STAT_DATA_LOSS || match(stat_defs[i].name) < N_PATTERNS,
                      "no hint for %s", stat_defs[i].name);
}
END_TEST

static bool is_sentence(const char *s)
{
    size_t len = strlen(s);
    return len >= 8 && s[len - 1] == '.' && s[0] != ' ';
}

START_TEST(every_stat_is_described)
{
    for (size_t i = 0; i < STAT_COUNT; i++)
        ck_assert_msg(is_sentence(stat_defs[i].doc), "no sentence describes %s", stat_defs[i].name);
}
END_TEST

/* A sentence of its own for each table and column, which says when the column is NULL if it can be. */
START_TEST(every_column_is_described)
{
    for (size_t i = 0; i < T_COUNT; i++) {
        const struct table_def *t = &table_defs[i];
        ck_assert_msg(is_sentence(t->doc), "no sentence describes the table %s", t->name);
        for (uint32_t k = 0; k < t->n_columns; k++) {
            const struct column_def *c = &t->columns[k];
            ck_assert_msg(is_sentence(c->doc), "no sentence describes %s.%s", t->name, c->name);
            ck_assert_msg(!(c->flags & COL_NULLABLE) || strstr(c->doc, "NULL"), "%s.%s does not say when it is NULL",
                          t->name, c->name);
        }
    }
}
END_TEST

Suite *check_suite(void);
Suite *check_suite(void)
{
    Suite *s = suite_create("check");
    TCase *t = tcase_create("hints");
    tcase_add_test(t, every_pattern_is_used);
    tcase_add_test(t, every_loss_has_a_cure);
    tcase_add_test(t, every_stat_is_described);
    tcase_add_test(t, every_column_is_described);
    suite_add_tcase(s, t);
    return s;
}
