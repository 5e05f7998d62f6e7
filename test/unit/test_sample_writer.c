/* Samples written by a thread are the rows that the caller would have written, whoever adds others between them. */
#include "importer/profiling/sample_writer.h"

#include <check.h>
#include <stdlib.h>

enum { SAMPLES = 60000, PLACES = 37 };

static uint32_t next(uint32_t *seed)
{
    return *seed = *seed * 1664525u + 1013904223u, *seed >> 8;
}

/* What a writer made of a sequence of samples, flushes and rows of others, all by `seed`. */
static void fill(struct storage *st, uint32_t seed, bool thread, uint32_t flush_one_in)
{
    struct sample_known_place places[PLACES] = {0};
    ck_assert_int_eq(storage_init(st), 0);
    struct sample_writer *w = sample_writer_open(st, 7, thread);
    ck_assert_ptr_nonnull(w);
    for (uint32_t i = 0; i < PLACES; i++)
        places[i].place = (struct sample_place){
            .task = i, .execution = i % 3, .callsite = i % 5 ? (int64_t)i : COL_NULL, .session = 1, .track = i * 2};
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t at = next(&seed) % PLACES;
        ck_assert_uint_eq(sample_writer_row(w), i);
        if (next(&seed) % 10) {
            sample_writer_add(w, i * 3, &places[at], i * 0.5);
        } else { /* one that is like no other */
            struct sample_known_place own = places[at];
            own.batch = 0;
            own.place.callsite = i;
            sample_writer_add(w, i * 3, &own, i);
        }
        if (next(&seed) % flush_one_in == 0) {
            sample_writer_flush(w);
            ck_assert_uint_eq(st->t[T_profiler_sample].n_rows, i + 1);
            counter_insert(st, &(struct counter_row){.ts = i, .track_id = 1000, .value = 1});
        }
    }
    sample_writer_flush(w);
    sample_writer_close(w);
}

static void same_table(const struct storage *a, const struct storage *b, int table)
{
    const struct table *x = &a->t[table], *y = &b->t[table];
    ck_assert_uint_eq(x->n_rows, y->n_rows);
    for (uint32_t c = 0; c < x->def->n_columns; c++)
        for (uint32_t row = 0; row < x->n_rows; row++)
            ck_assert_msg(table_get(x, c, row) == table_get(y, c, row), "%s, column %u, row %u", x->def->name, c, row);
}

START_TEST(a_thread_writes_the_same_rows)
{
    static const uint32_t flushes[] = {1u << 20, 5000, 300, 7};
    struct storage alone, beside;
    fill(&alone, (uint32_t)_i, false, flushes[_i]);
    fill(&beside, (uint32_t)_i, true, flushes[_i]);
    ck_assert_uint_eq(alone.t[T_profiler_sample].n_rows, SAMPLES);
    ck_assert_uint_eq(ROW_GET(&alone, profiler_sample, ts, 5000), 15000);
    same_table(&alone, &beside, T_profiler_sample);
    same_table(&alone, &beside, T_profiler_counter_set);
    same_table(&alone, &beside, T_counter);
    for (uint32_t i = 0; i < SAMPLES; i += 997) { /* each sample leads to its counter's row */
        uint32_t set = (uint32_t)ROW_GET(&beside, profiler_sample, counter_set_id, i);
        uint32_t row = (uint32_t)ROW_GET(&beside, profiler_counter_set, counter_id, set);
        ck_assert_int_eq(ROW_GET(&beside, counter, ts, row), i * 3);
    }
    storage_free(&alone);
    storage_free(&beside);
}
END_TEST

START_TEST(a_writer_is_closed_while_its_thread_has_work)
{
    struct storage st;
    struct sample_known_place place = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    struct sample_writer *w = sample_writer_open(&st, 7, true);
    for (uint32_t i = 0; i < 20 * SAMPLE_BATCH + (uint32_t)_i * 100; i++)
        sample_writer_add(w, i, &place, i);
    sample_writer_close(w);
    storage_free(&st);
}
END_TEST

Suite *sample_writer_suite(void);
Suite *sample_writer_suite(void)
{
    Suite *s = suite_create("sample_writer");
    TCase *t = tcase_create("sample_writer");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_thread_writes_the_same_rows, 0, 4);
    tcase_add_loop_test(t, a_writer_is_closed_while_its_thread_has_work, 0, 11);
    suite_add_tcase(s, t);
    return s;
}
