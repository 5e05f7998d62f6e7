/* Tests what the storage holds beside its columns: sets of arguments, stats, and the definitions of its tables. */
#include "storage/storage.h"

#include <check.h>

START_TEST(equal_argument_sets_share_an_id)
{
    struct storage st;
    struct arg_list list = {0}, out = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    argset sets[50];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 50; i++) {
            list.n = 0;
            arg_list_int(&st.args, &list, "a", i);
            arg_list_real(&st.args, &list, "b", i * 0.5);
            argset set = args_intern(&st.args, list.p, list.n);
            if (round)
                ck_assert(argset_eq(set, sets[i]));
            sets[i] = set;
            ck_assert_int_eq(argset_cell(set), i);
        }
    ck_assert_uint_eq(args_count(&st.args), 50);
    ck_assert(argset_is_none(args_intern(&st.args, NULL, 0)));
    args_values(&st.args, sets[7], &out);
    ck_assert_uint_eq(out.n, 2);
    ck_assert_int_eq(out.p[0].word, 7);
    ck_assert_double_eq(column_f64(out.p[1].word), 3.5);
    args_values(&st.args, argset_of_cell(50), &out); /* unknown */
    args_values(&st.args, ARGSET_NONE, &out);
    ck_assert_uint_eq(out.n, 2);
    arg_list_free(&list);
    arg_list_free(&out);
    storage_free(&st);
}
END_TEST

static void decode_bytes(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    arg_list_int(ctx, out, "sum", aux + bytes.p[0]);
}

static void decode_nothing(void *ctx, uint32_t aux, struct slice bytes, struct arg_list *out)
{
    (void)ctx, (void)aux, (void)bytes, (void)out;
}

START_TEST(payloads_are_decoded_on_demand)
{
    struct storage st;
    struct arg_list out = {0};
    uint8_t payload[] = {5, 6, 7};
    bool was_new;
    ck_assert_int_eq(storage_init(&st), 0);
    args_set_decoder(&st.args, 3, decode_bytes, &st.args);
    argset a = args_intern_bytes(&st.args, 3, 100, slice_of(payload, 3), false, true, &was_new);
    ck_assert(!argset_is_none(a));
    ck_assert(was_new);
    ck_assert(argset_eq(args_intern_bytes(&st.args, 3, 100, slice_of(payload, 3), true, true, &was_new), a));
    ck_assert(!was_new);
    ck_assert(!argset_eq(args_intern_bytes(&st.args, 3, 101, slice_of(payload, 3), true, true, NULL), a));
    ck_assert(!argset_eq(args_intern_bytes(&st.args, 3, 100, slice_of(payload, 3), true, false, NULL), a));
    payload[0] = 77; /* the first was copied */
    args_values(&st.args, a, &out);
    ck_assert_uint_eq(out.n, 1);
    ck_assert_int_eq(out.p[0].word, 105);
    arg_list_free(&out);
    storage_free(&st);
}
END_TEST

/* A set's number is where its first value stands among all values; a payload counts as what it decodes to. */
START_TEST(sets_are_numbered_by_their_first_value)
{
    struct storage st;
    struct arg_list list = {0}, out = {0};
    argset sets[4];
    static const int64_t numbers[] = {0, 3, COL_NULL, 4}; /* of sizes 3, 1, 0, 2 */
    ck_assert_int_eq(storage_init(&st), 0);
    args_set_decoder(&st.args, 3, decode_bytes, &st.args);
    args_set_decoder(&st.args, 4, decode_nothing, &st.args);
    for (int i = 0; i < 3; i++)
        arg_list_int(&st.args, &list, i == 0 ? "a" : i == 1 ? "b" : "c", i);
    sets[0] = args_intern(&st.args, list.p, 3);
    sets[1] = args_intern_bytes(&st.args, 3, 1, slice_str("x"), false, true, NULL);
    sets[2] = args_intern_bytes(&st.args, 4, 1, slice_str("x"), false, true, NULL);
    sets[3] = args_intern(&st.args, list.p, 2);
    for (int i = 0; i < 4; i++)
        counter_insert(&st, &(struct counter_row){.ts = i, .arg_set_id = sets[i]});
    counter_insert(&st, &(struct counter_row){.ts = 4});
    storage_finalize(&st);
    storage_number_args(&st);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(ROW_GET(&st, counter, arg_set_id, i), numbers[i]);
        if (numbers[i] != COL_NULL)
            ck_assert(argset_eq(args_of_cell(&st.args, numbers[i]), sets[i]));
    }
    ck_assert_int_eq(ROW_GET(&st, counter, arg_set_id, 4), COL_NULL);
    static const int64_t none[] = {-1, 1, 2, 5, 6, 7, INT64_MAX, COL_NULL}; /* inside of a set, or beyond all */
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert(argset_is_none(args_of_cell(&st.args, none[i])));
    args_values(&st.args, args_of_cell(&st.args, 4), &out);
    ck_assert_uint_eq(out.n, 2);
    arg_list_free(&list);
    arg_list_free(&out);
    storage_free(&st);
}
END_TEST

START_TEST(rows_are_appended_column_after_column)
{
    enum { N = 1000, MOST = 130 };
    struct storage st;
    int64_t values[MOST];
    ck_assert_int_eq(storage_init(&st), 0);
    struct table *t = &st.t[T_counter];
    for (uint32_t i = 0; i < N; i++) { /* across the ends of several chunks */
        uint32_t n = i % MOST, from = t->n_rows;
        for (uint32_t k = 0; k < n; k++)
            values[k] = column_f64_word(from + k + 0.5);
        const struct table_words columns[counter_n_columns] = {[counter_c_ts] = {.first = from, .step = 1},
                                                               [counter_c_track_id] = {.first = 7},
                                                               [counter_c_value] = {.p = values},
                                                               [counter_c_arg_set_id] = {.first = COL_NULL}};
        ck_assert(table_append_columns(t, columns, n));
        ck_assert_uint_eq(t->n_rows, from + n);
        if (i % 3 == 0)
            counter_insert(&st, &(struct counter_row){.ts = from + n, .track_id = 7, .value = from + n + 0.5});
    }
    ck_assert_uint_gt(t->n_rows, 10 * COL_CHUNK_ROWS);
    for (uint32_t row = 0; row < t->n_rows; row++) {
        ck_assert_int_eq(ROW_GET(&st, counter, ts, row), row);
        ck_assert_int_eq(ROW_GET(&st, counter, track_id, row), 7);
        ck_assert_double_eq(column_f64(ROW_GET(&st, counter, value, row)), row + 0.5);
        ck_assert_int_eq(ROW_GET(&st, counter, arg_set_id, row), COL_NULL);
    }
    storage_free(&st);
}
END_TEST

START_TEST(stats_keep_their_scope)
{
    struct stats s = {0};
    enum stat_key global = STAT_COUNT, machine = STAT_COUNT;
    for (int k = 0; k < STAT_COUNT; k++)
        if (stat_defs[k].type == STAT_SINGLE)
            *(stat_defs[k].scope == STAT_GLOBAL ? &global : &machine) = (enum stat_key)k;
    stats_add(&s, 2, machine, 5);
    stats_add(&s, 2, machine, -1);
    stats_add(&s, 2, global, 3);
    stats_set_idx(&s, 1, STAT_ftrace_cpu_has_data_loss, -4, 9);
    ck_assert_int_eq(stats_get(&s, 2, machine), 4);
    ck_assert_int_eq(stats_get(&s, 0, machine), 0);
    ck_assert_int_eq(stats_get(&s, 7, global), 3);
    ck_assert_int_eq(*stats_get_idx(&s, 1, STAT_ftrace_cpu_has_data_loss, -4), 9);
    ck_assert_ptr_null(stats_get_idx(&s, 1, STAT_ftrace_cpu_has_data_loss, 4));
    ck_assert(!s.failed);
    stats_free(&s);
}
END_TEST

START_TEST(every_table_is_well_formed)
{
    for (int i = 0; i < T_COUNT; i++) {
        const struct table_def *d = &table_defs[i];
        ck_assert_int_eq(storage_find_table(d->name), i);
        ck_assert_uint_gt(d->n_columns, 0);
        for (uint32_t c = 0; c < d->n_columns; c++)
            for (uint32_t k = 0; k < c; k++)
                ck_assert_str_ne(d->columns[c].name, d->columns[k].name);
    }
    ck_assert_int_eq(storage_find_table("no_such_table"), -1);
}
END_TEST

Suite *storage_suite(void);
Suite *storage_suite(void)
{
    Suite *s = suite_create("storage");
    TCase *t = tcase_create("storage");
    tcase_add_test(t, equal_argument_sets_share_an_id);
    tcase_add_test(t, payloads_are_decoded_on_demand);
    tcase_add_test(t, sets_are_numbered_by_their_first_value);
    tcase_add_test(t, rows_are_appended_column_after_column);
    tcase_add_test(t, stats_keep_their_scope);
    tcase_add_test(t, every_table_is_well_formed);
    suite_add_tcase(s, t);
    return s;
}
