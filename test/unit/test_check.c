/* The check's hints fit the stats: no pattern without a stat, no loss without a cure of its own. */
#include "storage/stats.h"

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

START_TEST(every_stat_is_described)
{
    for (size_t i = 0; i < STAT_COUNT; i++) {
        size_t len = strlen(stat_defs[i].doc);
        ck_assert_msg(len > 10 && stat_defs[i].doc[len - 1] == '.', "no sentence describes %s", stat_defs[i].name);
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
    suite_add_tcase(s, t);
    return s;
}
