/* Tests columns and tables: packing and changing against a plain array, summaries, binary search, failing allocations.
 */
#include "base/alloc.h"
#include "base/spill.h"
#include "storage/storage.h"

#include <check.h>
#include <math.h>

static uint64_t seed_state;

static uint64_t draw(void)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    return seed_state ^= seed_state << 17;
}

/* ---- what kinds of values a column is given ---- */

static int64_t constant(uint32_t i)
{
    (void)i;
    return 7;
}
static int64_t nothing(uint32_t i)
{
    (void)i;
    return COL_NULL;
}
static int64_t bytes(uint32_t i)
{
    (void)i;
    return (int64_t)(draw() % 256) - 1000;
}
static int64_t bytes_with_null(uint32_t i)
{
    return draw() % 3 ? bytes(i) : COL_NULL;
}
static int64_t shorts(uint32_t i)
{
    (void)i;
    return (int64_t)(draw() % 65536) + (INT64_C(1) << 20);
}
static int64_t shorts_with_null(uint32_t i)
{
    return draw() % 5 ? (int64_t)(draw() % 65535) : COL_NULL;
    (void)i;
}
static int64_t rising(uint32_t i)
{
    return INT64_C(27126638290) + (int64_t)i * 1000 + (int64_t)(draw() % 1000);
}
static int64_t wild(uint32_t i)
{
    (void)i;
    int64_t v = (int64_t)draw();
    return v == COL_NULL ? 0 : v;
}
static int64_t extremes(uint32_t i)
{
    return i % 3 == 0 ? INT64_MAX : i % 3 == 1 ? INT64_MIN + 1 : COL_NULL;
}
static int64_t mixed(uint32_t i)
{
    static int64_t (*const kinds[])(uint32_t) = {constant, nothing, bytes, bytes_with_null, shorts, rising, wild};
    return kinds[i / COL_CHUNK_ROWS % 7](i);
}
static int64_t string_ids(uint32_t i)
{
    (void)i;
    return (int64_t)(draw() % 300);
}
static int64_t far_string_ids(uint32_t i)
{
    (void)i;
    return draw() % 4 ? 5000 + (int64_t)(draw() % 200) : 0;
}
static int64_t whole_doubles(uint32_t i)
{
    (void)i;
    return column_f64_word((double)(draw() % 70000) - 100);
}
static int64_t rising_doubles(uint32_t i)
{
    return column_f64_word((double)i * 3 - 1000);
}
/* Whole ones of up to 53 bits and more, both signs. */
static int64_t large_doubles(uint32_t i)
{
    double d = (double)(1ll << draw() % 55) - (double)(draw() % 3);
    return column_f64_word(i % 2 ? d : -d - 1);
}
/* Whole but for one value of a chunk, far from its begin: a fraction, a negative zero, NULL, infinity, a huge one. */
static int64_t doubles_with_one_odd(uint32_t i)
{
    static const double odd[] = {-7.25, -0.0, NAN, -INFINITY, 0x1.8p51, -0x1p52, 3};
    uint32_t chunk = i / COL_CHUNK_ROWS;
    return column_f64_word(i % COL_CHUNK_ROWS == 3000 + chunk ? odd[chunk % 7] : (double)(draw() % 100));
}
static int64_t broken_doubles(uint32_t i)
{
    static const double odd[] = {0.0, -0.0, 1e300, 0.1, -1e-300};
    (void)i;
    return draw() % 4 ? column_f64_word(odd[draw() % 5]) : column_f64_word(NAN);
}

static const struct {
    enum col_type type;
    int64_t (*value)(uint32_t);
} kinds[] = {{COL_I64, constant},
             {COL_I64, nothing},
             {COL_I64, bytes},
             {COL_U32, bytes_with_null},
             {COL_I64, shorts},
             {COL_I64, shorts_with_null},
             {COL_I64, rising},
             {COL_I64, wild},
             {COL_I64, extremes},
             {COL_I64, mixed},
             {COL_STR, string_ids},
             {COL_STR, far_string_ids},
             {COL_F64, whole_doubles},
             {COL_F64, broken_doubles},
             {COL_F64, rising_doubles},
             {COL_F64, large_doubles},
             {COL_F64, doubles_with_one_odd}};
enum { KINDS = sizeof kinds / sizeof *kinds, ROWS = COL_CHUNK_ROWS * 7 + 100 };

static void make_table(struct table *t, struct table_def *def, struct column_def *column, enum col_type type)
{
    *column = (struct column_def){"value", (uint8_t)type, COL_NULLABLE, ""};
    *def = (struct table_def){"test", column, 1, ""};
    ck_assert_int_eq(table_init(t, def), 0);
}

static void check_all(const struct table *t, const int64_t *model, uint32_t n)
{
    static int64_t out[COL_CHUNK_ROWS];
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(table_get(t, 0, i), model[i]);
    for (uint32_t lo = 0; lo < n; lo += COL_CHUNK_ROWS) {
        uint32_t count = n - lo < COL_CHUNK_ROWS ? n - lo : COL_CHUNK_ROWS, skip = count / 3;
        column_unpack(&t->columns[0], lo + skip, count - skip, out);
        ck_assert_int_eq(memcmp(out, model + lo + skip, (count - skip) * sizeof *out), 0);
    }
}

/* Summaries must hold what is there; after changes they may be wider, never narrower. */
static void check_summary(struct table *t, const int64_t *model, uint32_t n, bool exact)
{
    const struct column *c = &t->columns[0];
    table_finalize(t);
    int64_t min = INT64_MAX, max = INT64_MIN, null = column_null(c->type), last = INT64_MIN;
    bool has_null = false, sorted = true;
    for (uint32_t i = 0; i < n; i++) {
        int64_t w = c->type == COL_F64 ? column_f64_order(model[i]) : model[i];
        if (model[i] == null) {
            has_null = true;
            sorted = false;
            continue;
        }
        sorted = sorted && w >= last;
        last = w;
        min = w < min ? w : min;
        max = w > max ? w : max;
    }
    ck_assert_int_le(c->min, min);
    ck_assert_int_ge(c->max, max);
    ck_assert(!has_null || c->has_null);
    ck_assert(!c->sorted || sorted);
    if (exact) {
        ck_assert_int_eq(c->min, min);
        ck_assert_int_eq(c->max, max);
        ck_assert_int_eq(c->has_null, has_null);
        ck_assert_int_eq(c->sorted, sorted);
    }
}

START_TEST(packed_values_come_back)
{
    static int64_t model[ROWS];
    struct table t;
    struct table_def def;
    struct column_def column;
    seed_state = 0x1234567 + (uint64_t)_i;
    make_table(&t, &def, &column, kinds[_i].type);
    for (uint32_t i = 0; i < ROWS; i++) {
        model[i] = kinds[_i].value(i);
        ck_assert_uint_eq(table_append(&t, &model[i]), i);
    }
    check_all(&t, model, ROWS);
    check_summary(&t, model, ROWS, true);
    ck_assert_uint_le(column_memory(&t.columns[0]), 9u * ROWS);
    table_free(&t);
}
END_TEST

START_TEST(changed_values_come_back)
{
    static int64_t model[ROWS];
    struct table t;
    struct table_def def;
    struct column_def column;
    seed_state = 0x7654321 + (uint64_t)_i;
    make_table(&t, &def, &column, kinds[_i].type);
    for (uint32_t i = 0; i < ROWS; i++) {
        model[i] = kinds[_i].value(i);
        table_append(&t, &model[i]);
    }
    for (uint32_t k = 0; k < 3000; k++) {
        uint32_t row = (uint32_t)(draw() % ROWS);
        uint32_t kind; /* values of every kind of the same type, NULL among them */
        do
            kind = (uint32_t)(draw() % KINDS);
        while (kinds[kind].type != kinds[_i].type);
        model[row] = draw() % 9 ? kinds[kind].value((uint32_t)draw()) : column_null(kinds[_i].type);
        table_set(&t, 0, row, model[row]);
        ck_assert_int_eq(table_get(&t, 0, row), model[row]);
    }
    ck_assert(!t.failed);
    check_all(&t, model, ROWS);
    check_summary(&t, model, ROWS, false);
    table_free(&t);
}
END_TEST

START_TEST(lower_bound_finds_the_first)
{
    struct table t;
    struct table_def def;
    struct column_def column;
    seed_state = 99;
    bool doubles = _i == 1;
    make_table(&t, &def, &column, doubles ? COL_F64 : COL_I64);
    int64_t v = -20;
    static int64_t model[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        v += (int64_t)(draw() % 3);
        model[i] = v;
        int64_t word = doubles ? column_f64_word((double)v / 2) : v;
        table_append(&t, &word);
    }
    table_finalize(&t);
    ck_assert(t.columns[0].sorted);
    for (int64_t want = -25; want < v + 5; want += 7) {
        for (int after = 0; after < 2; after++) {
            uint32_t expected = 0;
            while (expected < ROWS && (after ? model[expected] <= want : model[expected] < want))
                expected++;
            int64_t word = doubles ? column_f64_word((double)want / 2) : want;
            ck_assert_uint_eq(table_lower_bound(&t, 0, word, after), expected);
        }
    }
    table_free(&t);
}
END_TEST

/* ---- memory runs out ---- */

/* A chunk of one value is as that many rows: before others, between them, and when one of its rows changes. */
START_TEST(a_chunk_of_one_value_is_as_many_rows)
{
    static const int64_t values[] = {7, COL_NULL, -3};
    struct table_def def;
    struct column_def column;
    struct table t;
    make_table(&t, &def, &column, COL_I64);
    ck_assert(table_append_chunk(&t, &values[_i]));
    for (int64_t i = 0; i < COL_CHUNK_ROWS; i++)
        ck_assert_uint_eq(table_append(&t, &i), COL_CHUNK_ROWS + i);
    ck_assert(table_append_chunk(&t, &values[_i])); /* the rows before it are all in the tail */
    ck_assert_uint_eq(t.n_rows, 3 * COL_CHUNK_ROWS);
    table_finalize(&t);
    const struct column *c = &t.columns[0];
    ck_assert(!c->sorted);
    ck_assert_int_eq(c->has_null, values[_i] == COL_NULL);
    ck_assert_int_eq(c->min, values[_i] == -3 ? -3 : 0);
    ck_assert_int_eq(c->max, COL_CHUNK_ROWS - 1);
    table_set(&t, 0, 5, 70000);
    int64_t last = 9;
    ck_assert_uint_eq(table_append(&t, &last), 3 * COL_CHUNK_ROWS);
    ck_assert(!table_append_chunk(&t, &values[_i])); /* not in the middle of one */
    ck_assert(t.failed);
    for (uint32_t row = 0; row < t.n_rows; row++)
        ck_assert_int_eq(table_get(&t, 0, row), row == 5                    ? 70000
                                                : row == 3 * COL_CHUNK_ROWS ? 9
                                                : row / COL_CHUNK_ROWS == 1 ? row - COL_CHUNK_ROWS
                                                                            : values[_i]);
    table_finalize(&t);
    ck_assert_int_eq(c->max, 70000);
    table_free(&t);
}
END_TEST

static size_t calls_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return calls_left && calls_left--;
}

static uint32_t fill_until_failure(struct storage *st, size_t allowed)
{
    calls_left = allowed;
    alloc_set_gate(gate, NULL);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < COL_CHUNK_ROWS * 3; i++)
        rows +=
            counter_insert(st, &(struct counter_row){.ts = i,
                                                     .track_id = i % 3,
                                                     .value = i * 0.5,
                                                     .arg_set_id = argset_of_cell(i % 2 ? COL_NULL : 4)}) != UINT32_MAX;
    for (uint32_t i = 0; i < rows; i += 100)
        ROW_SET(st, counter, value, i, column_f64_word(1e100));
    struct arg_list list = {0};
    arg_list_str(&st->args, &list, "key", strpool_intern_str(&st->strings, "text"));
    args_intern(&st->args, list.p, list.n);
    arg_list_free(&list);
    stats_add(&st->stats, 3, STAT_ftrace_setup_errors, 1);
    stats_add_idx(&st->stats, 3, STAT_ftrace_cpu_has_data_loss, 1, 1);
    alloc_set_gate(NULL, NULL);
    return rows;
}

START_TEST(failing_allocations_lose_no_memory_and_are_told)
{
    bool failed = true;
    for (size_t k = 0; failed; k++) {
        struct storage st;
        calls_left = SIZE_MAX;
        ck_assert_int_eq(storage_init(&st), 0);
        uint32_t rows = fill_until_failure(&st, k);
        failed = storage_failed(&st);
        ck_assert_uint_le(rows, st.t[T_counter].n_rows);
        for (uint32_t i = 1; i < rows; i++) /* rows that were taken are whole */
            ck_assert_int_eq(ROW_GET(&st, counter, ts, i), ROW_GET(&st, counter, ts, i - 1) + 1);
        storage_finalize(&st);
        storage_free(&st);
        ck_assert_uint_lt(k, 10000);
    }
}
END_TEST

START_TEST(opening_storage_survives_failing_allocations)
{
    struct storage st;
    int rc = -1;
    for (size_t k = 0; rc; k++) {
        calls_left = k;
        alloc_set_gate(gate, NULL);
        rc = storage_init(&st);
        alloc_set_gate(NULL, NULL);
        ck_assert(rc == 0 || rc == -MRD_ENOMEM);
    }
    storage_free(&st);
}
END_TEST

/* Rows that come after a summary are in the next one. */
START_TEST(late_rows_are_summarised)
{
    struct storage st;
    const struct table *t = &st.t[T_counter];
    ck_assert_int_eq(storage_init(&st), 0);
    for (int64_t ts = 10; ts > 7; ts--) {
        counter_insert(&st, &(struct counter_row){.ts = ts, .track_id = 5 * ts, .value = 1});
        ck_assert(!t->final);
        storage_finalize(&st);
        ck_assert(t->final);
        ck_assert_int_eq(t->columns[counter_c_ts].min, ts);
        ck_assert_int_eq(t->columns[counter_c_track_id].min, 5 * ts);
        ck_assert_int_eq(t->columns[counter_c_track_id].max, 50);
        ck_assert(t->columns[counter_c_ts].sorted == (ts == 10));
    }
    storage_free(&st);
}
END_TEST

/* ---- chunks that settle ---- */

enum { SETTLED_ROWS = 40 * COL_CHUNK_ROWS };

/* What row i of `column` of a slice is, of few bits or many, NULL or not. */
static int64_t settled_word(uint32_t column, uint32_t i)
{
    uint64_t x = (uint64_t)i * 2654435761u >> 13;
    switch (column) {
    case slice_c_ts:
        return (int64_t)i * 1000 + (int64_t)(x % 900);
    case slice_c_dur:
        return (int64_t)(x % 100000) - 1;
    case slice_c_track_id:
        return (int64_t)(x % 4);
    case slice_c_category:
        return (int64_t)(x % 3);
    case slice_c_name:
        return 70 + (int64_t)(x % 5);
    case slice_c_parent_id:
        return x % 11 ? (int64_t)(i + x % 300) : COL_NULL;
    case slice_c_arg_set_id:
        return i / 1000 % 3 ? (int64_t)(x % 6) : COL_NULL;
    default:
        return slice_c_depth == column ? (int64_t)(x % 2 * 200) : column_null(table_defs[T_slice].columns[column].type);
    }
}

/* Chunks left behind take less memory, read as before, can be changed, and are made anew after a clear; in memory and
 * in a file. */
START_TEST(settled_chunks_keep_their_values)
{
    struct storage st;
    struct table *t = &st.t[T_slice];
    ck_assert_int_eq(storage_init(&st), 0);
    if (_i)
        storage_spill(&st, spill_open(1 << 16));
    for (int turn = 0; turn < 2; turn++) {
        size_t blocks = 0;
        for (uint32_t i = 0; i < SETTLED_ROWS; i++) {
            int64_t words[slice_n_columns];
            for (uint32_t c = 0; c < slice_n_columns; c++)
                words[c] = settled_word(c, i);
            ck_assert_uint_eq(table_append(t, words), i);
        }
        for (uint32_t c = 0; c < slice_n_columns; c++)
            for (uint32_t k = 0; k < t->columns[c].n_chunks; k++)
                blocks += t->columns[c].chunks[k].kind == CHUNK_BLOCKS;
        ck_assert_uint_gt(blocks, 5 * 20);
        ck_assert_uint_lt(column_memory(&t->columns[slice_c_track_id]), SETTLED_ROWS * 3 / 4);
        table_set(t, slice_c_dur, 5000, INT64_C(1) << 40); /* wider than its chunk was */
        table_set(t, slice_c_arg_set_id, 100, 3);          /* NULL before */
        table_set(t, slice_c_track_id, 4095, 1);
        ck_assert_uint_ne(t->columns[slice_c_track_id].chunks[0].kind, CHUNK_BLOCKS);
        table_finalize(t);
        for (uint32_t c = 0; c < slice_n_columns; c++) {
            for (uint32_t i = 0; i < SETTLED_ROWS; i++) {
                int64_t want = settled_word(c, i);
                want = c == slice_c_dur && i == 5000         ? INT64_C(1) << 40
                       : c == slice_c_arg_set_id && i == 100 ? 3
                       : c == slice_c_track_id && i == 4095  ? 1
                                                             : want;
                ck_assert_int_eq(table_get(t, c, i), want);
            }
        }
        ck_assert_int_eq(t->columns[slice_c_dur].max, INT64_C(1) << 40);
        table_clear(t);
    }
    ck_assert(!storage_failed(&st));
    storage_free(&st);
}
END_TEST

/* ---- blocks of bits ---- */

/* Values of `bits` bits above a base of either sign, rising or not, with NULLs of both kinds or none. */
START_TEST(blocks_of_bits_come_back)
{
    static const int64_t nulls[] = {COL_NULL, 0, INT64_MIN + 1};
    static int64_t v[COL_CHUNK_ROWS], back[COL_CHUNK_ROWS];
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    unsigned bits = (unsigned)_i;
    seed_state = 77 + bits;
    for (int kind = 0; kind < 12; kind++) {
        int64_t base = kind & 1 ? 1 : -(INT64_C(1) << 40), null = nulls[kind % 3], least = INT64_MAX;
        uint64_t mask = (1ull << bits) - 1;
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            uint64_t x = kind & 4 ? (mask * i) >> 12 : draw() & mask;
            v[i] = kind >= 8 && draw() % 5 == 0 ? null : base + (int64_t)x;
            least = v[i] != null && v[i] < least ? v[i] : least;
        }
        if (least == INT64_MAX)
            continue;
        size_t len = col_blocks_pack(v, least, null, codes);
        bool has_null;
        ck_assert_uint_le(len, COL_BLOCKS_MAX_BYTES);
        ck_assert(col_blocks_check(codes, len, COL_CHUNK_ROWS, mask + (uint64_t)(base - least), &has_null));
        col_blocks_unpack(codes, least, null, 0, COL_CHUNK_ROWS, back);
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            ck_assert_int_eq(back[i], v[i]);
            ck_assert_int_eq(col_block_get(codes, least, i, null), v[i]);
        }
        uint32_t first = (uint32_t)(draw() % COL_CHUNK_ROWS), n = (uint32_t)(draw() % (COL_CHUNK_ROWS - first));
        col_blocks_unpack(codes, least, null, first, n, back);
        ck_assert_int_eq(memcmp(back, v + first, n * sizeof *v), 0);
    }
}
END_TEST

/* A range of values leaves the rows of a chunk that it would leave of its words, whatever was left before. */
START_TEST(blocks_are_tested_for_ranges)
{
    static int64_t v[COL_CHUNK_ROWS];
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    static uint8_t mask[COL_CHUNK_ROWS], before[COL_CHUNK_ROWS];
    unsigned bits = (unsigned)_i;
    uint64_t most = (1ull << bits) - 1;
    seed_state = 55 + bits;
    for (int round = 0; round < 60; round++) {
        bool rises = round % 3 == 0, nulls = round & 1;
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            uint64_t x = rises ? (most * i) >> 12 : draw() & most;
            bool null = i && nulls && (draw() % 5 == 0 || i >> COL_BLOCK_SHIFT == 9);
            v[i] = null ? COL_NULL : i ? (int64_t)x : 0;
        }
        col_blocks_pack(v, 0, COL_NULL, codes);
        uint64_t lo = draw() & most, hi = round % 5 ? draw() & most : UINT64_MAX >> (draw() & 1);
        uint32_t first = round & 2 ? (uint32_t)(draw() % COL_CHUNK_ROWS) : 0;
        uint32_t n = first ? (uint32_t)(draw() % (COL_CHUNK_ROWS - first)) : COL_CHUNK_ROWS;
        for (uint32_t i = 0; i < n; i++)
            mask[i] = before[i] = draw() % 8 != 0;
        col_blocks_range(codes, lo, hi, first, n, mask);
        for (uint32_t i = 0; i < n; i++) {
            int64_t word = v[first + i];
            ck_assert_uint_eq(mask[i], before[i] && word != COL_NULL && (uint64_t)word >= lo && (uint64_t)word <= hi);
        }
    }
}
END_TEST

/* What the least value and the number of bits of a block decide is not read. */
START_TEST(blocks_that_are_decided_are_not_read)
{
    static int64_t v[COL_CHUNK_ROWS];
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    static uint8_t mask[COL_CHUNK_ROWS];
    for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
        v[i] = i;
    size_t len = col_blocks_pack(v, 0, COL_NULL, codes), head = COL_BLOCKS * sizeof(struct col_block);
    memset(codes + head, 0x5a, len - head);
    memset(mask, 1, sizeof mask);
    col_blocks_range(codes, COL_BLOCK_ROWS, 3 * COL_BLOCK_ROWS - 1, 0, COL_CHUNK_ROWS, mask);
    for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
        ck_assert_uint_eq(mask[i], i / COL_BLOCK_ROWS == 1 || i / COL_BLOCK_ROWS == 2);
}
END_TEST

/* Codes of whole bytes become the blocks that their values become, whatever their width and wherever NULLs are. */
START_TEST(codes_become_blocks)
{
    static int64_t v[COL_CHUNK_ROWS];
    static uint8_t plain[4 * COL_CHUNK_ROWS] __attribute__((aligned(8)));
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    static uint8_t want[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    unsigned bits = (unsigned)_i;
    seed_state = 99 + bits;
    for (int kind = 0; kind < 12; kind++) {
        unsigned width = 1u << kind % 3;
        bool nullable = kind >= 6;
        uint64_t highest = (1ull << 8 * width) - 1, mask = (1ull << bits) - 1;
        if (mask > highest)
            continue;
        for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++) {
            uint64_t far = i / COL_BLOCK_ROWS * (highest - mask) / COL_BLOCKS, code = far + (draw() & mask);
            bool null = nullable && (draw() % 7 == 0 || i / COL_BLOCK_ROWS == 9 || code == highest);
            code = null ? highest : i ? code : 0;
            v[i] = null ? COL_NULL : 1000 + (int64_t)code;
            memcpy(plain + (size_t)i * width, &code, width);
        }
        if (v[0] == COL_NULL)
            continue;
        size_t len = col_blocks_pack(v, 1000, COL_NULL, want);
        memset(codes, 0xee, sizeof codes);
        ck_assert_uint_eq(col_blocks_pack_codes(plain, width, nullable, len, codes), len);
        ck_assert_int_eq(memcmp(codes, want, len), 0);
        ck_assert_uint_eq(col_blocks_pack_codes(plain, width, nullable, len - 1, codes), 0);
    }
}
END_TEST

/* What a header may not say is found: places outside, too many bits, values above the span. */
START_TEST(bad_blocks_are_found)
{
    static int64_t v[COL_CHUNK_ROWS];
    static uint8_t codes[COL_BLOCKS_MAX_BYTES + COL_BLOCKS_SLACK] __attribute__((aligned(8)));
    bool nulls;
    for (uint32_t i = 0; i < COL_CHUNK_ROWS; i++)
        v[i] = 1000 + (i * 7) % 200;
    size_t len = col_blocks_pack(v, 1000, COL_NULL, codes);
    struct col_block *blocks = (struct col_block *)codes, before = blocks[3];
    ck_assert(col_blocks_check(codes, len, COL_CHUNK_ROWS, 199, &nulls) && !nulls);
    ck_assert(!col_blocks_check(codes, len, COL_CHUNK_ROWS, 198, &nulls));
    ck_assert(!col_blocks_check(codes, len - COL_BLOCK_UNIT, COL_CHUNK_ROWS, 199, &nulls));
    ck_assert(!col_blocks_check(codes, 8, COL_CHUNK_ROWS, 199, &nulls));
    blocks[3].at = 60000;
    ck_assert(!col_blocks_check(codes, len, COL_CHUNK_ROWS, 199, &nulls));
    blocks[3] = before;
    blocks[3].bits = 33;
    ck_assert(!col_blocks_check(codes, len, COL_CHUNK_ROWS, 199, &nulls));
    blocks[3] = before;
    blocks[3].base = UINT32_MAX;
    ck_assert(!col_blocks_check(codes, len, COL_CHUNK_ROWS, 199, &nulls));
}
END_TEST

/* ---- spilling ---- */

/* Columns whose chunks are in a file hold the same as others, can be changed, and are given back. */
START_TEST(spilled_columns_hold_the_same)
{
    struct storage st, plain;
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_int_eq(storage_init(&plain), 0);
    struct spill *spill = spill_open(100000);
    ck_assert_ptr_nonnull(spill);
    storage_spill(&st, spill);
    seed_state = 5;
    enum { SPILLED = 40 * COL_CHUNK_ROWS + 5 };
    for (uint32_t i = 0; i < SPILLED; i++) {
        struct sched_slice_row row = {.ts = (int64_t)i * 1000, .dur = (int64_t)(draw() % 100000), .utid = draw() % 300};
        ck_assert_uint_eq(sched_slice_insert(&st, &row), i);
        sched_slice_insert(&plain, &row);
    }
    for (int k = 0; k < 5000; k++) {
        uint32_t row = (uint32_t)(draw() % SPILLED);
        int64_t dur = draw() % 8 ? (int64_t)(draw() % 1000) : INT64_C(1) << 40; /* some chunks get wider */
        ROW_SET(&st, sched_slice, dur, row, dur);
        ROW_SET(&plain, sched_slice, dur, row, dur);
    }
    for (uint32_t i = 0; i < SPILLED; i++) {
        ck_assert_int_eq(ROW_GET(&st, sched_slice, ts, i), ROW_GET(&plain, sched_slice, ts, i));
        ck_assert_int_eq(ROW_GET(&st, sched_slice, dur, i), ROW_GET(&plain, sched_slice, dur, i));
        ck_assert_int_eq(ROW_GET(&st, sched_slice, utid, i), ROW_GET(&plain, sched_slice, utid, i));
    }
    ck_assert(!storage_failed(&st));
    storage_free(&st);
    storage_free(&plain);
}
END_TEST

Suite *column_suite(void);
Suite *column_suite(void)
{
    Suite *s = suite_create("column");
    TCase *t = tcase_create("column");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, packed_values_come_back, 0, KINDS);
    tcase_add_loop_test(t, changed_values_come_back, 0, KINDS);
    tcase_add_loop_test(t, lower_bound_finds_the_first, 0, 2);
    tcase_add_loop_test(t, a_chunk_of_one_value_is_as_many_rows, 0, 3);
    tcase_add_loop_test(t, blocks_of_bits_come_back, 0, COL_BLOCK_BITS_MAX);
    tcase_add_loop_test(t, blocks_are_tested_for_ranges, 0, COL_BLOCK_BITS_MAX);
    tcase_add_test(t, blocks_that_are_decided_are_not_read);
    tcase_add_loop_test(t, codes_become_blocks, 0, COL_BLOCK_BITS_MAX + 1);
    tcase_add_test(t, bad_blocks_are_found);
    tcase_add_test(t, late_rows_are_summarised);
    tcase_add_loop_test(t, settled_chunks_keep_their_values, 0, 2);
    tcase_add_test(t, spilled_columns_hold_the_same);
    tcase_add_test(t, failing_allocations_lose_no_memory_and_are_told);
    tcase_add_test(t, opening_storage_survives_failing_allocations);
    suite_add_tcase(s, t);
    return s;
}
