/* Tests chunks that become blocks of bits when they are full: sequences, and columns whose rows are hardly ever
 * changed. */
#include "base/spill.h"
#include "storage/storage.h"

#include <check.h>
#include <stdlib.h>

static uint64_t seed_state;

static uint64_t draw(void)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    return seed_state ^= seed_state << 17;
}

/* Words become the blocks that other ways make of them, or none where codes of whole bytes are as good. */
START_TEST(words_become_blocks)
{
    static int64_t v[COL_CHUNK_ROWS];
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    static uint8_t want[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    struct col_words w;
    unsigned bits = (unsigned)_i;
    seed_state = 31 + bits;
    for (int kind = 0; kind < 4; kind++) {
        int64_t base = kind & 1 ? 1 : -(INT64_C(1) << 40), most = INT64_MIN;
        uint64_t mask = (1ull << bits) - 1, step = kind & 2 ? mask : 0;
        bool rises = true;
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            v[i] = base + (int64_t)(i / COL_BLOCK_ROWS * step) + (i ? (int64_t)(draw() & mask) : 0);
            most = v[i] > most ? v[i] : most;
            rises = rises && (!i || v[i] >= v[i - 1]);
        }
        uint64_t range = (uint64_t)most - (uint64_t)base;
        size_t plain = range > UINT16_MAX ? 4 : range > UINT8_MAX ? 2 : 1, len;
        memset(codes, 0xee, sizeof codes);
        len = col_blocks_pack_words(v, base - 1, &w, codes);
        ck_assert_int_eq(w.least, base);
        ck_assert_int_eq(w.most, most);
        ck_assert_int_eq(w.sorted, rises);
        if (range >= UINT32_MAX) {
            ck_assert_uint_eq(len, 0);
            continue;
        }
        size_t other = col_blocks_pack(v, base, INT64_MIN, want);
        ck_assert_uint_eq(len, other <= plain * COL_CHUNK_ROWS / 4 * 3 ? other : 0);
        ck_assert_int_eq(memcmp(codes, want, len), 0);
        ck_assert_uint_eq(col_blocks_pack_words(v, base, &w, codes), 0); /* the least is NULL */
    }
}
END_TEST

/* A sequence takes no memory for its codes, and reads and changes as any column; in memory and in a file. */
START_TEST(sequences_take_no_memory)
{
    static const int64_t firsts[] = {0, -5000, INT64_C(1) << 40, INT64_MAX - COL_CHUNK_ROWS + 1, INT64_MIN + 1};
    enum { N = sizeof firsts / sizeof *firsts };
    struct storage st;
    struct table *t = &st.t[T_slice];
    ck_assert_int_eq(storage_init(&st), 0);
    struct column *c = &t->columns[slice_c_dur];
    if (_i)
        storage_spill(&st, spill_open(1 << 16));
    int64_t words[slice_n_columns] = {0}, back[COL_CHUNK_ROWS];
    for (uint32_t i = 0; i < N * COL_CHUNK_ROWS; i++) {
        words[slice_c_dur] = firsts[i / COL_CHUNK_ROWS] + (int64_t)(i % COL_CHUNK_ROWS);
        ck_assert_uint_eq(table_append(t, words), i);
    }
    ck_assert(table_grow(t)); /* the last chunk is sealed with the next row */
    ck_assert_uint_eq(c->n_chunks, N);
    ck_assert_uint_eq(column_memory(c), c->cap_chunks * sizeof *c->chunks);
    for (uint32_t k = 0; k < N; k++) {
        const struct col_chunk *chunk = &c->chunks[k];
        ck_assert_int_eq(chunk->min, firsts[k]);
        ck_assert_int_eq(chunk->max, firsts[k] + COL_CHUNK_MASK);
        ck_assert(chunk->sorted && !chunk->has_null);
        column_unpack(c, k * COL_CHUNK_ROWS, COL_CHUNK_ROWS, back);
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            ck_assert_int_eq(back[i], firsts[k] + (int64_t)i);
            ck_assert_int_eq(table_get(t, slice_c_dur, k * COL_CHUNK_ROWS + i), back[i]);
        }
    }
    table_set(t, slice_c_dur, 4097, -5000 + 1); /* as it was */
    table_set(t, slice_c_dur, 4098, 7);
    table_set(t, slice_c_dur, 4099, COL_NULL);
    ck_assert_int_eq(table_get(t, slice_c_dur, 4097), -5000 + 1);
    ck_assert_int_eq(table_get(t, slice_c_dur, 4098), 7);
    ck_assert_int_eq(table_get(t, slice_c_dur, 4099), COL_NULL);
    ck_assert_int_eq(table_get(t, slice_c_dur, 4100), -5000 + 4);
    ck_assert_uint_gt(column_memory(c), c->cap_chunks * sizeof *c->chunks);
    ck_assert(!storage_failed(&st));
    storage_free(&st);
}
END_TEST

/* What is one away from a sequence, at either end of a chunk or across it, is none. */
START_TEST(all_but_sequences_are_kept)
{
    static const struct {
        uint32_t row;
        int64_t add;
    } others[] = {{0, 1}, {1, -1}, {63, 1}, {64, 2}, {COL_CHUNK_MASK, -1}, {COL_CHUNK_MASK, 1}, {2000, COL_NULL}};
    struct storage st;
    struct table *t = &st.t[T_slice];
    ck_assert_int_eq(storage_init(&st), 0);
    int64_t words[slice_n_columns] = {0};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            words[slice_c_dur] = i != others[k].row          ? (int64_t)i
                                 : others[k].add == COL_NULL ? COL_NULL
                                                             : i + others[k].add;
            ck_assert_uint_ne(table_append(t, words), UINT32_MAX);
        }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
            ck_assert_int_eq(table_get(t, slice_c_dur, (uint32_t)k * COL_CHUNK_ROWS + i),
                             i != others[k].row          ? (int64_t)i
                             : others[k].add == COL_NULL ? COL_NULL
                                                         : i + others[k].add);
    ck_assert_uint_gt(column_memory(&t->columns[slice_c_dur]), 6 * COL_CHUNK_ROWS);
    storage_free(&st);
}
END_TEST

/* Rows that stay as they are inserted: full chunks are blocks at once, also of names, and read as before; some are
 * changed all the same, and some are of values that no blocks hold. */
START_TEST(steady_columns_are_blocks_at_once)
{
    enum { ROWS = 3 * COL_CHUNK_ROWS + 1 };
    struct storage st;
    struct table *t = &st.t[T_ftrace_event];
    ck_assert_int_eq(storage_init(&st), 0);
    if (_i)
        storage_spill(&st, spill_open(1 << 16));
    int64_t(*rows)[ftrace_event_n_columns] = calloc(ROWS, sizeof *rows);
    ck_assert_ptr_nonnull(rows);
    seed_state = 8;
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i][ftrace_event_c_ts] = (int64_t)i * 700 + (int64_t)(draw() % 600);
        rows[i][ftrace_event_c_name] = 3 + (int64_t)(draw() % 4);
        rows[i][ftrace_event_c_utid] = draw() % 50 ? (int64_t)(draw() % 9) : COL_NULL;
        rows[i][ftrace_event_c_arg_set_id] = i / COL_CHUNK_ROWS == 1 ? (int64_t)(draw() >> 1) : (int64_t)(draw() % 99);
        rows[i][ftrace_event_c_common_flags] = 1;
        rows[i][ftrace_event_c_ucpu] = (int64_t)(draw() % 2);
        ck_assert_uint_eq(table_append(t, rows[i]), i);
    }
    ck_assert_uint_eq(t->columns[ftrace_event_c_ts].chunks[0].kind, CHUNK_BLOCKS);
    ck_assert(t->columns[ftrace_event_c_ts].chunks[2].sorted);
    ck_assert_uint_eq(t->columns[ftrace_event_c_name].chunks[2].kind, CHUNK_BLOCKS);
    ck_assert_uint_eq(t->columns[ftrace_event_c_ucpu].chunks[1].kind, CHUNK_BLOCKS);
    ck_assert_uint_eq(t->columns[ftrace_event_c_arg_set_id].chunks[1].kind, CHUNK_RAW);
    ck_assert_uint_eq(t->columns[ftrace_event_c_utid].chunks[0].kind, CHUNK_U8N);
    ck_assert_uint_eq(t->columns[ftrace_event_c_common_flags].chunks[0].kind, CHUNK_CONST);
    for (int k = 0; k < 500; k++) {
        uint32_t row = (uint32_t)(draw() % ROWS), column = k % 2 ? ftrace_event_c_ts : ftrace_event_c_ucpu;
        rows[row][column] = k % 7 ? (int64_t)(draw() % 1000) : INT64_C(1) << 50;
        table_set(t, column, row, rows[row][column]);
    }
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t c = 0; c < ftrace_event_n_columns; c++)
            ck_assert_int_eq(table_get(t, c, i), rows[i][c]);
    ck_assert(!storage_failed(&st));
    free(rows);
    storage_free(&st);
}
END_TEST

Suite *column_steady_suite(void);
Suite *column_steady_suite(void)
{
    Suite *s = suite_create("column_steady");
    TCase *t = tcase_create("column_steady");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, words_become_blocks, 0, COL_BLOCK_BITS_MAX + 1);
    tcase_add_loop_test(t, sequences_take_no_memory, 0, 2);
    tcase_add_test(t, all_but_sequences_are_kept);
    tcase_add_loop_test(t, steady_columns_are_blocks_at_once, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
