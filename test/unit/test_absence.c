/* Tests from when to when a producer of another machine counts as away: never later than its last data, never longer
 * than needed. */
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include "ck_slice.h"

#include <check.h>
#include <stdio.h>

enum { MACHINE = 2, OFFSET = 1000000 }; /* its BOOTTIME is ahead of ours by so much */

static struct session session;
static struct machine_losses losses;
static struct service_machine machine;
static struct service_producer producer;
static char name[128];

static void begin(void)
{
    session = (struct session){.started_boot_ns = 1000};
    ck_assert(vec_push(&session.buffers, (struct session_buffer){1, session_ring_new(65536, 0, TRACE_BUFFER_RING)}));
    losses = (struct machine_losses){0};
    machine = (struct service_machine){.id = MACHINE};
    strcpy(name, "probes");
    producer = (struct service_producer){.id = 5, .name = name, .connected_ns = 500, .commit_ns = 9000};
}

static void end(void)
{
    session_ring_free(session.buffers.p[0].buffer);
    vec_free(&session.buffers);
    u64map_free(&session.sequence_ids);
    vec_free(&losses.absences);
    vec_free(&machine.rounds);
    vec_free(&machine.burst);
}

static void chunk_came(uint16_t producer_id, uint16_t writer_id, uint32_t chunk_id, uint64_t at_ns)
{
    uint8_t payload[] = {2, 8, 1};
    struct trace_chunk c = {.who = {.producer_id = producer_id, .writer_id = writer_id, .machine_id = MACHINE},
                            .chunk_id = chunk_id,
                            .num_fragments = 1,
                            .complete = true,
                            .payload = slice_of(payload, sizeof payload),
                            .at_ns = at_ns};
    session_ring_write(session.buffers.p[0].buffer, &c);
}

static void clocks_were_compared(void)
{
    struct clock_round r = {0};
    r.client[1] = (struct clock_readings){.clock = {{CLOCK_BOOTTIME_ID, 3000 + OFFSET}}, .n = 1};
    r.host[1] = (struct clock_readings){.clock = {{CLOCK_BOOTTIME_ID, 3000}}, .n = 1};
    ck_assert(vec_push(&machine.rounds, r));
}

static uint64_t since(void)
{
    absence_begin(&session, &losses, &machine, &producer);
    ck_assert_uint_eq(losses.absences.n, 1);
    ck_assert_uint_eq(losses.absences.p[0].until_ns, 0);
    return losses.absences.p[0].since_ns;
}

/* A producer that says up to when it has handed over everything: that time, on our clock, within what is possible. */
static const struct {
    uint64_t whole_until_ns; /* on the machine's clock */
    bool compared;
    uint64_t connected_ns, commit_ns, since_ns;
} told[] = {
    {4000 + OFFSET, true, 500, 9000, 4000},
    {4000 + OFFSET, false, 500, 9000, 9000}, /* nobody compares clocks: when something came last */
    {9500 + OFFSET, true, 500, 9000, 9000},  /* what came was not written later than that */
    {4000 + OFFSET, true, 6000, 9000, 6000}, /* it was not there before */
    {200 + OFFSET, true, 100, 9000, 1000},   /* the session was not there before */
};

START_TEST(a_producer_that_tells)
{
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        begin();
        if (told[i].compared)
            clocks_were_compared();
        producer.whole_until_ns = told[i].whole_until_ns;
        producer.connected_ns = told[i].connected_ns;
        producer.commit_ns = told[i].commit_ns;
        uint64_t got = since();
        ck_assert_msg(got == told[i].since_ns, "row %zu: %llu", i, (unsigned long long)got);
        end();
    }
}
END_TEST

/* The last comparison counts: the burst that is under way is later than the rounds that were kept. */
START_TEST(the_latest_comparison_counts)
{
    begin();
    clocks_were_compared();
    struct clock_round r = machine.rounds.p[0];
    r.host[1].clock[0].value += 700;
    ck_assert(vec_push(&machine.burst, r));
    producer.whole_until_ns = 4000 + OFFSET;
    ck_assert_uint_eq(since(), 4700);
    end();
}
END_TEST

/* A producer that does not tell: the chunk before the last one, of the sequence that has been silent for longest. */
START_TEST(a_producer_that_does_not_tell)
{
    begin();
    chunk_came(5, 1, 0, 2000);
    chunk_came(5, 1, 1, 5000);
    chunk_came(5, 1, 2, 8000);
    chunk_came(5, 2, 0, 3000);
    chunk_came(5, 2, 1, 4000);
    chunk_came(6, 1, 0, 1500); /* another producer's */
    chunk_came(6, 1, 1, 1600);
    ck_assert_uint_eq(since(), 3000);
    end();
}
END_TEST

START_TEST(a_producer_of_which_nothing_came)
{
    begin();
    ck_assert_uint_eq(since(), 9000); /* its last request */
    end();
}
END_TEST

/* One that comes back under its name ends the absence when it is heard; with a long name, too. */
START_TEST(it_comes_back)
{
    for (int i = 0; i < 2; i++) {
        begin();
        if (i)
            memset(name, 'n', 100);
        struct service_producer other = {.id = 7, .name = (char[]){"other"}}, again = {.id = 8, .name = name},
                                third = {.id = 9, .name = name};
        since();
        ck_assert(!absence_returns(&losses, &other));
        absence_end(&losses, &again); /* nobody has said so */
        ck_assert_uint_eq(losses.absences.p[0].until_ns, 0);
        ck_assert(absence_returns(&losses, &again));
        ck_assert(!absence_returns(&losses, &again)); /* for its next data source */
        ck_assert(!absence_returns(&losses, &third)); /* the gap is taken */
        absence_end(&losses, &third);
        ck_assert_uint_eq(losses.absences.p[0].until_ns, 0);
        uint64_t before = clock_boot_ns();
        absence_end(&losses, &again);
        uint64_t until = losses.absences.p[0].until_ns;
        ck_assert_uint_ge(until, before);
        ck_assert_uint_le(until, clock_boot_ns());
        absence_end(&losses, &again); /* the first word counts */
        ck_assert_uint_eq(losses.absences.p[0].until_ns, until);
        end();
    }
}
END_TEST

/* Lost again before it was heard: that is the same absence. Lost after: another one. */
START_TEST(lost_again)
{
    begin();
    uint64_t first = since();
    absence_begin(&session, &losses, &machine, &producer); /* told twice */
    ck_assert_uint_eq(losses.absences.n, 1);
    ck_assert(absence_returns(&losses, &producer));
    absence_begin(&session, &losses, &machine, &producer);
    ck_assert_uint_eq(losses.absences.n, 1);
    ck_assert_uint_eq(losses.absences.p[0].since_ns, first);
    ck_assert(absence_returns(&losses, &producer));
    absence_end(&losses, &producer);
    absence_begin(&session, &losses, &machine, &producer);
    ck_assert_uint_eq(losses.absences.n, 2);
    end();
}
END_TEST

/* The time in which at least one was away; those that are away still count up to now. */
START_TEST(the_total_counts_time_once)
{
    static const struct machine_absence list[] = {
        {.since_ns = 5000, .until_ns = 6000},
        {.since_ns = 1000, .until_ns = 3000},
        {.since_ns = 2000, .until_ns = 2500}, /* within another */
        {.since_ns = 2800, .until_ns = 3200}, /* 200 more */
        {.since_ns = 9000},
    };
    begin();
    ck_assert_uint_eq(absence_total_ns(&losses, 10000), 0);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        ck_assert(vec_push(&losses.absences, list[i]));
    ck_assert_uint_eq(absence_total_ns(&losses, 10000), 2200 + 1000 + 1000);
    ck_assert_uint_eq(absence_total_ns(&losses, 8000), 2200 + 1000);
    end();
}
END_TEST

/* Without end: the list stays short, and what is told is still an upper bound. */
START_TEST(too_many_become_one)
{
    begin();
    for (unsigned i = 0; i < 300; i++) {
        producer.id = (uint16_t)(i + 1);
        producer.commit_ns = 100000 - i;
        snprintf(name, sizeof name, "p%u", i);
        absence_begin(&session, &losses, &machine, &producer);
    }
    ck_assert_uint_eq(losses.absences.n, 256);
    struct machine_absence *last = vec_last(&losses.absences);
    ck_assert_str_eq(last->producer, "");
    ck_assert_uint_eq(last->since_ns, 100000 - 299);
    ck_assert_uint_eq(last->until_ns, 0);
    ck_assert_str_eq(losses.absences.p[254].producer, "p254");
    end();
}
END_TEST

START_TEST(absences_as_messages)
{
    struct pb_writer w = {0};
    struct pb_field f, g;
    begin();
    chunk_came(5, 1, 0, 2000);
    chunk_came(5, 1, 1, 5000);
    chunk_came(6, 1, 0, 6000);
    chunk_came(5, 2, 0, 2500);
    chunk_came(5, 2, 1, 6500);
    chunk_came(4, 7, 0, 6600);
    since();
    losses.absences.p[0].until_ns = 7777;
    struct sequences_of_producers all = {0};
    ck_assert(absence_list_sequences(&session, &all));
    absence_put(&session, &losses, &all, &w, MACHINE_LOSSES_ABSENCES);
    vec_free(&all.list);
    ck_assert(pb_find(pb_written(&w), MACHINE_LOSSES_ABSENCES, &f));
    struct slice a = pb_bytes(&f);
    ck_assert(pb_find(a, MACHINE_LOSSES_ABSENCE_PRODUCER, &g));
    ck_assert_slice_eq(pb_bytes(&g), "probes");
    ck_assert(pb_find(a, MACHINE_LOSSES_ABSENCE_SINCE_NS, &g));
    ck_assert_uint_eq(pb_u64(&g), 2000);
    ck_assert(pb_find(a, MACHINE_LOSSES_ABSENCE_UNTIL_NS, &g));
    ck_assert_uint_eq(pb_u64(&g), 7777);
    unsigned sequences = 0;
    struct pb_cursor c = pb_cursor(a);
    while (pb_next(&c, &g))
        sequences += g.id == MACHINE_LOSSES_ABSENCE_SEQUENCES;
    ck_assert_uint_eq(sequences, 2); /* those of this producer, in their order */
    ck_assert(pb_find(a, MACHINE_LOSSES_ABSENCE_SEQUENCES, &g));
    ck_assert(pb_find(pb_bytes(&g), MACHINE_LOSSES_ABSENCE_SEQUENCE_LAST_NS, &f));
    ck_assert_uint_eq(pb_u64(&f), 5000);
    pb_writer_free(&w);
    end();
}
END_TEST

Suite *absence_suite(void);

Suite *absence_suite(void)
{
    Suite *s = suite_create("absence");
    TCase *t = tcase_create("core");
    tcase_add_test(t, a_producer_that_tells);
    tcase_add_test(t, the_latest_comparison_counts);
    tcase_add_test(t, a_producer_that_does_not_tell);
    tcase_add_test(t, a_producer_of_which_nothing_came);
    tcase_add_test(t, it_comes_back);
    tcase_add_test(t, lost_again);
    tcase_add_test(t, the_total_counts_time_once);
    tcase_add_test(t, too_many_become_one);
    tcase_add_test(t, absences_as_messages);
    suite_add_tcase(s, t);
    return s;
}
