/* Tests the list of a sequence's chunks against an array that is kept in order plainly, and what it costs. */
#include "capture/service/chunk_list.h"

#include "base/alloc.h"
#include "capture/service/trace_buffer.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

enum { MODEL_MAX = 4000 };

struct model {
    uint32_t ids[MODEL_MAX];
    uint32_t n;
};

static uint32_t model_place(const struct model *m, uint32_t id)
{
    uint32_t at = m->n;
    while (at && m->ids[at - 1] >= id)
        at--;
    return at;
}

static void agree(const struct chunk_list *l, const struct model *m)
{
    uint32_t wrong = l->n != m->n;
    for (uint32_t i = 0; i < m->n; i++) {
        wrong += chunk_list_at(l, i)->chunk_id != m->ids[i] || chunk_list_lower_bound(l, m->ids[i]) != i;
        wrong += chunk_list_find(l, m->ids[i]) != chunk_list_at(l, i) || chunk_list_at(l, i)->offset != ~m->ids[i];
    }
    ck_assert_uint_eq(wrong, 0);
}

static void insert(struct chunk_list *l, struct model *m, uint32_t id)
{
    uint32_t at = model_place(m, id), pos;
    if (at < m->n && m->ids[at] == id) {
        ck_assert(chunk_list_find(l, id) != NULL);
        return;
    }
    if (chunk_list_find(l, id))
        ck_abort_msg("%u is there", id);
    struct chunk_meta *c = chunk_list_insert(l, id, &pos);
    if (!c || pos != at || c->num_fragments || c->consumed)
        ck_abort_msg("%u is at %u, not at %u", id, pos, at);
    c->offset = ~id;
    memmove(m->ids + at + 1, m->ids + at, (m->n - at) * sizeof *m->ids);
    m->ids[at] = id;
    m->n++;
}

static void remove_at(struct chunk_list *l, struct model *m, uint32_t at)
{
    chunk_list_remove(l, at);
    memmove(m->ids + at, m->ids + at + 1, (m->n - at - 1) * sizeof *m->ids);
    m->n--;
}

/* Ids that go up, down, from both ends, from the middle, over the wrap, and at random; some leave meanwhile, from the
 * front, the back, or anywhere. */
START_TEST(any_order)
{
    unsigned seed = (unsigned)_i;
    struct chunk_list l = {0}, copy = {0};
    static struct model m;
    m.n = 0;
    for (uint32_t i = 0; i < 4 * MODEL_MAX; i++) {
        uint32_t r = (uint32_t)rand_r(&seed), middle = 1u << 30;
        const uint32_t ids[] = {
            i, UINT32_MAX - i, i % 2 ? i : UINT32_MAX - i, i % 2 ? middle + i : middle - i, i - MODEL_MAX, r};
        uint32_t full = _i / 18 ? 20 : MODEL_MAX - 1; /* also of few chunks */
        if (m.n >= full || (m.n && r % 3 == 0))
            remove_at(&l, &m, _i / 6 % 3 == 0 ? 0 : _i / 6 % 3 == 1 ? m.n - 1 : (r >> 4) % m.n);
        else
            insert(&l, &m, ids[_i % 6]);
        if (i % 1999 == 0)
            agree(&l, &m);
    }
    agree(&l, &m);
    ck_assert(chunk_list_copy(&copy, &l));
    agree(&copy, &m);
    while (m.n) {
        insert(&copy, &m, (uint32_t)rand_r(&seed)); /* into blocks that are as large as what they hold */
        if (m.n % 8 == 0)
            agree(&copy, &m);
        remove_at(&copy, &m, (uint32_t)rand_r(&seed) % m.n);
        for (unsigned k = 0; k < 37 && m.n; k++)
            remove_at(&copy, &m, 0);
    }
    insert(&copy, &m, 7);
    agree(&copy, &m);
    chunk_list_free(&copy);
    chunk_list_free(&l);
}
END_TEST

/* Whatever order a producer gives its ids, a chunk costs about the same. One array took 0.3 ms each here: 75 s. */
START_TEST(cost_does_not_depend_on_the_order)
{
    enum { CHUNKS = 262144 };
    struct trace_buffer *b = trace_buffer_new(4u << 20, TRACE_BUFFER_RING);
    struct timespec from, to;
    unsigned seed = 1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint32_t i = 0; i < 2 * CHUNKS; i++) {
        const uint32_t ids[] = {UINT32_MAX - i, i % 2 ? i : UINT32_MAX - i, (uint32_t)rand_r(&seed)};
        struct trace_chunk c = {
            .who = {.producer_id = 1, .writer_id = 1}, .chunk_id = ids[_i], .num_fragments = 1, .complete = true};
        trace_buffer_write(b, &c);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    ck_assert_msg(s < 20, "%.1f s", s);
    trace_buffer_free(b);
}
END_TEST

static void write_of(struct trace_buffer *b, uint16_t producer, uint16_t writer)
{
    static const uint8_t payload[] = {2, 8, 1};
    struct trace_chunk c = {.who = {.producer_id = producer, .writer_id = writer},
                            .num_fragments = 1,
                            .complete = true,
                            .payload = slice_of(payload, sizeof payload)};
    trace_buffer_write(b, &c);
}

/* Writers that come in descending order, and then writers for whom there is no room. Looking at all that are there took
 * 0.3 ms for each: over a minute. */
START_TEST(cost_of_a_writer_does_not_depend_on_the_others)
{
    struct trace_buffer *b = trace_buffer_new(16u << 20, TRACE_BUFFER_RING);
    struct timespec from, to;
    uint16_t producer = 20;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (size_t i = 0; i < TRACE_BUFFER_MAX_SEQUENCES + 200000; i++) {
        if (i % 32767 == 0)
            producer--;
        write_of(b, producer, (uint16_t)(32767 - i % 32767));
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    ck_assert_msg(to.tv_sec - from.tv_sec < 20, "%ld s", (long)(to.tv_sec - from.tv_sec));
    ck_assert_uint_eq(trace_buffer_sequence_count(b), TRACE_BUFFER_MAX_SEQUENCES);
    ck_assert_uint_eq(trace_buffer_get_stats(b)->chunks_discarded, 200000);
    const struct trace_writer_identity *before = NULL;
    for (size_t i = 0; i < TRACE_BUFFER_MAX_SEQUENCES; i++) { /* and are read in order */
        const struct trace_writer_identity *who = &trace_buffer_sequence(b, i)->who;
        if (before && (before->producer_id > who->producer_id ||
                       (before->producer_id == who->producer_id && before->writer_id >= who->writer_id)))
            ck_abort_msg("%zu is out of order", i);
        before = who;
    }
    struct trace_packet p = {.bytes = 0};
    size_t read = 0;
    uint16_t last = 0;
    for (trace_buffer_begin_read(b, true); trace_buffer_read(b, &p); read++) {
        if (p.who.producer_id < last)
            ck_abort_msg("a packet of %u behind one of %u", p.who.producer_id, last);
        last = p.who.producer_id;
    }
    ck_assert_uint_eq(read, TRACE_BUFFER_MAX_SEQUENCES);
    vec_free(&p.slices);
    trace_buffer_free(b);
}
END_TEST

Suite *chunk_list_suite(void);
Suite *chunk_list_suite(void)
{
    Suite *s = suite_create("chunk_list");
    TCase *t = tcase_create("order"), *cost = tcase_create("cost");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, any_order, 0, 36);
    suite_add_tcase(s, t);
    tcase_set_timeout(cost, 180);
    tcase_add_loop_test(cost, cost_does_not_depend_on_the_order, 0, 3);
    tcase_add_test(cost, cost_of_a_writer_does_not_depend_on_the_others);
    suite_add_tcase(s, cost);
    return s;
}
