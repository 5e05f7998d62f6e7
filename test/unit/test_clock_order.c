/* Comparisons as traces hold them: readers that average over each find no time that runs backwards. */
#include "capture/service/clock_order.h"

#include <check.h>

enum { SIMULATIONS = 200, ROUNDS = 400, BURST = 16 };
enum { REALTIME = 1, BOOTTIME = 6 };

static uint64_t random_below(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

static void read_clocks(struct clock_readings *r, uint64_t boot_ns, uint64_t real_ns)
{
    *r = (struct clock_readings){.clock = {{BOOTTIME, boot_ns}, {REALTIME, real_ns}}, .n = 2};
}

struct machine {
    uint64_t random, now_ns; /* the host's BOOTTIME */
    int64_t offset_ns, real_ns;
};

/* Tens of microseconds, and once in a while up to two milliseconds: somebody else had the processor. */
static uint64_t delay(struct machine *m)
{
    return 20000 + random_below(&m->random, 15000) +
           (random_below(&m->random, 12) == 0 ? random_below(&m->random, 2000000) : 0);
}

static struct clock_round compare(struct machine *m)
{
    struct clock_round r;
    for (int k = 0; k < 2; k++) {
        read_clocks(&r.client[k], m->now_ns + (uint64_t)m->offset_ns,
                    m->now_ns + (uint64_t)(m->offset_ns + m->real_ns));
        m->now_ns += delay(m);
        read_clocks(&r.host[k], m->now_ns, m->now_ns + (uint64_t)m->real_ns);
        m->now_ns += delay(m);
    }
    r.at_ns = clock_readings_get(&r.host[1], BOOTTIME);
    return r;
}

/* As spec importer ("RemoteClockSync") puts it: the machine's moment that stands for the host's last reading. */
static int64_t perfettos_moment(const struct clock_round *r, uint32_t id)
{
    int64_t t1c = (int64_t)clock_readings_get(&r->client[0], id), t2c = (int64_t)clock_readings_get(&r->client[1], id);
    int64_t t1h = (int64_t)clock_readings_get(&r->host[0], id), t2h = (int64_t)clock_readings_get(&r->host[1], id);
    int64_t off1 = (t1c + t2c) / 2 - t1h, off2 = t2c - (t1h + t2h) / 2;
    return t2h + (off1 + off2) / 2;
}

/* Rounds follow each other at once, in bursts; of each burst some are kept, as the service does, in any order of luck.
 */
START_TEST(averages_are_in_order)
{
    struct machine m = {.random = (uint64_t)_i + 1, .now_ns = 1000000000000, .real_ns = 1700000000000000000};
    struct clock_order order = {0};
    int64_t last = 0, last_taken = 0;
    unsigned taken = 0, offered = 0, backwards = 0;
    m.offset_ns = (int64_t)random_below(&m.random, 1000000000000) - 500000000000;
    for (int i = 0; i < ROUNDS; i++) {
        struct clock_round r = compare(&m);
        if (i % BURST == BURST - 1)
            m.now_ns += 250000000;
        int64_t moment = perfettos_moment(&r, BOOTTIME);
        backwards += last && moment < last;
        last = moment;
        offered++;
        if (!clock_order_add(&order, &r))
            continue;
        ck_assert_int_ge(moment, last_taken);
        last_taken = moment;
        taken++;
    }
    ck_assert_uint_gt(backwards, 0); /* else this test shows nothing */
    ck_assert_uint_gt(taken, offered * 3 / 4);
}
END_TEST

/* The wall clock is set back by an hour: comparisons go on, for the other clocks' sake. */
START_TEST(a_clock_that_is_put_back)
{
    struct machine m = {.random = 7, .now_ns = 1000000000000, .real_ns = 1700000000000000000};
    struct clock_order order = {0};
    struct clock_round r = compare(&m);
    ck_assert(clock_order_add(&order, &r));
    m.real_ns -= 3600000000000;
    m.now_ns += 500000000;
    r = compare(&m);
    ck_assert(!clock_order_add(&order, &r));
    m.now_ns += 600000000;
    r = compare(&m);
    ck_assert(clock_order_add(&order, &r));
    m.now_ns += 10000000;
    r = compare(&m);
    ck_assert(clock_order_add(&order, &r));
}
END_TEST

/* A clock that only one side has is of no use, and does no harm. */
START_TEST(clocks_of_one_side)
{
    struct machine m = {.random = 9, .now_ns = 1000000000000};
    struct clock_order order = {0};
    for (int i = 0; i < 20; i++) {
        struct clock_round r = compare(&m);
        r.client[0].n = r.client[1].n = 1;
        m.now_ns += 10000000;
        ck_assert(clock_order_add(&order, &r));
        r.host[0].n = r.host[1].n = 0;
        ck_assert(clock_order_add(&order, &r));
    }
}
END_TEST

Suite *clock_order_suite(void);
Suite *clock_order_suite(void)
{
    Suite *s = suite_create("clock_order");
    TCase *t = tcase_create("order");
    tcase_add_loop_test(t, averages_are_in_order, 0, SIMULATIONS);
    tcase_add_test(t, a_clock_that_is_put_back);
    tcase_add_test(t, clocks_of_one_side);
    suite_add_tcase(s, t);
    return s;
}
