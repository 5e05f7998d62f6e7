/* The incremental hull against the golden vectors of Trace Compass. */
#include "importer/sync/incremental.h"

#include <check.h>
#include <math.h>

struct step {
    bool from_reference;
    int64_t send, receive;
    enum sync_quality quality;
    double alpha, beta;
};

static const struct step crossing[] = {
    {false, 1, 1, SYNC_INCOMPLETE, 1, 0},         {true, 1, 3, SYNC_INCOMPLETE, 1, 0},
    {false, 2, 3, SYNC_APPROXIMATE, 1, 0.5},      {true, 3, 5, SYNC_ACCURATE, 0.75, 1.25},
    {true, 4, 8, SYNC_ACCURATE, 0.75, 1.25},      {false, 4, 5, SYNC_ACCURATE, 1.125, 0.875},
    {false, 4, 6, SYNC_ACCURATE, 1.125, 0.875},   {true, 6, 7, SYNC_ACCURATE, 29.0 / 40, 51.0 / 40},
    {true, 7, 4, SYNC_ACCURATE, 0.375, 13.0 / 8}, {false, 7, 3, SYNC_FAIL, 0.375, 13.0 / 8},
};

static const struct step disjoint[] = {
    {true, 1, 3, SYNC_INCOMPLETE, 1, 0},       {true, 2, 5, SYNC_INCOMPLETE, 1, 0},
    {true, 3, 5, SYNC_INCOMPLETE, 1, 0},       {true, 4, 7, SYNC_INCOMPLETE, 1, 0},
    {false, 7, 6, SYNC_APPROXIMATE, 0.9, 2.6}, {false, 8, 6, SYNC_APPROXIMATE, 1, 2.5},
    {false, 10, 8, SYNC_APPROXIMATE, 1, 2.5},
};

static const struct {
    const struct step *steps;
    size_t n;
} vectors[] = {{crossing, sizeof crossing / sizeof *crossing}, {disjoint, sizeof disjoint / sizeof *disjoint}};

START_TEST(golden)
{
    struct incremental_sync s;
    incremental_sync_init(&s);
    for (size_t i = 0; i < vectors[_i].n; i++) {
        const struct step *v = &vectors[_i].steps[i];
        int64_t x = v->from_reference ? v->send : v->receive, y = v->from_reference ? v->receive : v->send;
        ck_assert_int_eq(incremental_sync_add(&s, v->from_reference ? SYNC_ABOVE : SYNC_BELOW, x, y), 0);
        ck_assert_msg(s.quality == v->quality, "step %zu: %s", i + 1, sync_quality_text(s.quality));
        ck_assert_double_eq_tol((double)s.alpha, v->alpha, 1e-12);
        ck_assert_double_eq_tol((double)s.beta, v->beta, 1e-12);
    }
    incremental_sync_free(&s);
}
END_TEST

Suite *sync_incremental_suite(void);

Suite *sync_incremental_suite(void)
{
    Suite *s = suite_create("sync_incremental");
    TCase *t = tcase_create("golden");
    tcase_add_loop_test(t, golden, 0, (int)(sizeof vectors / sizeof *vectors));
    suite_add_tcase(s, t);
    return s;
}
