/* Tests that tables whose keys were chosen to belong into one place are as quick as others. */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/strpool.h"
#include "base/u64map.h"
#include "importer_fixture.h"
#include "meridian/tp.h"
#include "storage/snapshot.h"
#include "trace_fixture.h"
#include "wire/fields.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

enum { KEYS = 6000, PLACES = 8192 }; /* a map of so many keys has so many slots */

/* The longest way from a key's own slot to where it stands. */
static size_t longest_walk(const struct u64map *m)
{
    size_t longest = 0;
    for (size_t i = 0; i < m->capacity; i++) {
        size_t way = (i - (size_t)hash_u64(m->slots[i].key ^ m->seed)) & (m->capacity - 1);
        longest = m->used[i] && way > longest ? way : longest;
    }
    return longest;
}

/* Keys of one slot. Without another seed the last one stands 5,999 slots away. */
START_TEST(keys_of_one_slot)
{
    struct u64map m = {0};
    static uint64_t keys[KEYS];
    uint64_t key = 0;
    for (size_t i = 0; i < KEYS; i++) {
        while (hash_u64(++key) % PLACES)
            ;
        keys[i] = key;
        ck_assert(u64map_set(&m, key, i));
    }
    ck_assert_uint_eq(m.capacity, PLACES);
    ck_assert_uint_ne(m.seed, 0);
    ck_assert_uint_le(longest_walk(&m), HASH_WALK_MAX);
    for (size_t i = 0; i < KEYS; i += 2)
        ck_assert(u64map_del(&m, keys[i]));
    for (size_t i = 0; i < KEYS; i++) {
        const uint64_t *at = u64map_get(&m, keys[i]);
        if (i % 2 ? !at || *at != i : at != NULL)
            ck_abort_msg("key %zu", i);
    }
    u64map_free(&m);
}
END_TEST

/* Keys that nobody chose keep their places, which are the same in each run. */
START_TEST(keys_in_their_order)
{
    enum { MANY = 300000 };
    struct u64map m = {0};
    uint64_t key = 1;
    for (uint64_t i = 0; i < MANY; i++) {
        key = key * 6364136223846793005u + 1442695040888963407u;
        const uint64_t kinds[] = {i, i << 12, i << 32 | 7, key, 0x7f0000000000u + 16 * i};
        if (!u64map_set(&m, kinds[_i], i)) /* Check's own assertion is slow */
            ck_abort_msg("out of memory");
    }
    ck_assert_uint_eq(m.n, MANY);
    ck_assert_uint_eq(m.seed, 0);
    u64map_free(&m);
}
END_TEST

/* Sixteen bytes, the first eight of which make the product in the hash zero: all of them have one hash. */
START_TEST(strings_of_one_hash)
{
    struct strpool s = {0};
    size_t longest = 0;
    const uint64_t begin = hash_fold(16 ^ 0x8bb84b93962eacc9u, 0x2d358dccaa6c78a5u);
    static strid ids[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t words[2] = {begin, i};
        ck_assert_uint_eq(hash_bytes(words, sizeof words), 0);
        ids[i] = strpool_intern(&s, words, sizeof words);
        ck_assert_uint_eq(ids[i], i + 1);
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        const uint64_t words[2] = {begin, i}, other[2] = {begin, KEYS + i};
        if (strpool_intern(&s, words, sizeof words) != ids[i] || strpool_find(&s, words, sizeof words) != ids[i] ||
            strpool_find(&s, other, sizeof other))
            ck_abort_msg("string %zu", (size_t)i);
    }
    for (uint32_t at = 0; at < s.slot_cap; at++) {
        size_t way = s.slots[at] ? (at - s.entries[s.slots[at]].hash) & (s.slot_cap - 1) : 0;
        longest = way > longest ? way : longest;
    }
    ck_assert_uint_le(longest, HASH_WALK_MAX);
    strpool_free(&s);
}
END_TEST

/* ---- what a trace names: chosen to have one hash, beside as many that were not ---- */

enum { SETS = 20000, IIDS = 12000, IID_PLACES = 16384 };

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Two values, the second of which makes the product in the hash zero. */
static double intern_values(bool chosen)
{
    struct strpool strings = {0};
    struct args a = {.strings = &strings};
    double begin = now();
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < SETS; i++) {
            uint64_t h = hash_combine(hash_combine(hash_combine(2, 7ull << 32 | 7), (uint64_t)i), 8ull << 32 | 8);
            struct arg list[2] = {{7, 7, i, ARG_INT}, {8, 8, chosen ? (int64_t)h : i, ARG_INT}};
            if (args_intern(&a, list, 2).plus_one != i + 1)
                ck_abort_msg("set %d", (int)i);
        }
    }
    double took = now() - begin;
    args_free(&a);
    strpool_free(&strings);
    return took;
}

static double intern_payloads(bool chosen)
{
    struct strpool strings = {0};
    struct args a = {.strings = &strings};
    const uint64_t first = hash_fold(16 ^ 0x8bb84b93962eacc9u, 0x2d358dccaa6c78a5u);
    double begin = now();
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < SETS; i++) {
            const uint64_t words[2] = {chosen ? first : 1, i};
            bool is_new;
            argset set = args_intern_bytes(&a, 1, 0, slice_of(words, sizeof words), false, true, &is_new);
            if (set.plus_one != i + 1 || is_new != (round == 0))
                ck_abort_msg("payload %d", (int)i);
        }
    }
    double took = now() - begin;
    args_free(&a);
    strpool_free(&strings);
    return took;
}

/* Tracks of two numbers. The same hash as for sets of args, over the words of a track's key. */
static double intern_tracks(bool chosen)
{
    struct importer_fixture f;
    importer_fixture_open(&f);
    uint64_t type = fixture_str(&f, "type"), a = fixture_str(&f, "a"), b = fixture_str(&f, "b");
    double begin = now();
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < SETS; i++) {
            const uint64_t words[] = {type << 32, (uint64_t)TRACK_COUNTER << 32, a << 8 | DIM_INT, (uint64_t)i,
                                      b << 8 | DIM_INT};
            uint64_t h = 6;
            for (size_t k = 0; k < 5; k++)
                h = hash_combine(h, words[k]);
            struct track_dim dims[] = {{"a", DIM_INT, i}, {"b", DIM_INT, chosen ? (int64_t)h : i}};
            struct track_spec spec = {
                .type = "type", .event_type = TRACK_COUNTER, .parent = UINT32_MAX, .dims = dims, .n_dims = 2};
            if (track_intern(f.im.tracks, 0, &spec) != i)
                ck_abort_msg("track %d", (int)i);
        }
    }
    double took = now() - begin;
    importer_fixture_close(&f);
    return took;
}

/* Names of a sequence with numbers that belong into one slot. */
static double intern_names(bool chosen)
{
    enum { INTERNED_DATA = 12, EVENT_NAMES = 2 };
    struct trace_fixture f;
    trace_fixture_open(&f);
    packet_begin(&f, 1);
    pb_put_varint(&f.w, 13, 1);
    size_t data = pb_begin(&f.w, INTERNED_DATA);
    uint64_t iid = (uint64_t)1 << 40;
    for (int i = 0; i < IIDS; i++) {
        while (++iid && chosen && hash_combine(iid, EVENT_NAMES) % IID_PLACES)
            ;
        size_t name = pb_begin(&f.w, EVENT_NAMES);
        pb_put_varint(&f.w, 1, iid);
        pb_put_str(&f.w, 2, "name");
        pb_end(&f.w, name);
    }
    pb_end(&f.w, data);
    packet_end(&f);
    for (int i = 0; i < 2; i++) { /* the last one is found, and the one after it is not */
        packet_begin(&f, 2 + i);
        size_t event = pb_begin(&f.w, 11);
        pb_put_varint(&f.w, 9, 3);
        pb_put_varint(&f.w, 10, iid + (uint64_t)i);
        pb_end(&f.w, event);
        packet_end(&f);
    }
    double begin = now();
    trace_fixture_load(&f);
    double took = now() - begin;
    ck_assert_str_eq(fixture_text(&f, ROW_GET(&f.st, slice, name, 0)), "name");
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_interned_data_tokenizer_errors), 1);
    trace_fixture_close(&f);
    return took;
}

static int put_nothing(void *ctx, const void *bytes, size_t n, struct error *err)
{
    (void)bytes;
    (void)err;
    *(size_t *)ctx += n;
    return 0;
}

/* The index of strings in a snapshot. */
static double write_strings(bool chosen)
{
    struct storage st;
    size_t written = 0;
    const uint64_t first = hash_fold(16 ^ 0x8bb84b93962eacc9u, 0x2d358dccaa6c78a5u);
    ck_assert_int_eq(storage_init(&st), 0);
    for (uint64_t i = 0; i < SETS; i++) {
        const uint64_t words[2] = {chosen ? first : 1, i};
        strpool_intern(&st.strings, words, sizeof words);
    }
    struct error err;
    storage_finalize(&st);
    storage_number_args(&st);
    struct snapshot_info info = {0};
    const struct snapshot_sink sink = {put_nothing, &written};
    double begin = now();
    ck_assert_int_eq(snapshot_write(&st, &info, &sink, &err), 0);
    double took = now() - begin;
    storage_free(&st);
    return took;
}

/* COUNT(DISTINCT) of a value that is the number of its group, from 1: what anybody may ask. */
static double count_distinct(bool chosen)
{
    struct pb_writer w = {0};
    struct tp *tp;
    struct tp_result *r;
    for (uint64_t i = 0; i < SETS; i++) {
        size_t packet = pb_begin(&w, 1);
        pb_put_varint(&w, TRACE_PACKET_TIMESTAMP, 1 + i);
        pb_put_varint(&w, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
        size_t event = pb_begin(&w, TRACE_PACKET_TRACK_EVENT);
        pb_put_varint(&w, TRACK_EVENT_TYPE, TRACK_EVENT_TYPE_INSTANT);
        pb_end(&w, event);
        pb_end(&w, packet);
    }
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_int_eq(tp_feed(tp, w.p, w.n), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    double begin = now();
    ck_assert_int_eq(tp_query(tp,
                              chosen ? "select sum(n) from (select count(distinct id + 1) as n from slice group by id)"
                                     : "select sum(n) from (select count(distinct id + 2) as n from slice group by id)",
                              &r),
                     0);
    ck_assert_int_eq(tp_step(r), 1);
    ck_assert_int_eq(tp_int64(r, 0), SETS);
    double took = now() - begin;
    tp_result_close(r);
    tp_close(tp);
    pb_writer_free(&w);
    return took;
}

static double (*const interned[])(bool chosen) = {intern_values, intern_payloads, intern_tracks,
                                                  intern_names,  write_strings,   count_distinct};

/* Without another seed the chosen ones take some hundred times as long. */
START_TEST(chosen_keys_are_as_quick)
{
    double chosen = 1e9, others = 1e9;
    for (int i = 0; i < 3; i++) {
        double c = interned[_i](true), o = interned[_i](false);
        chosen = c < chosen ? c : chosen;
        others = o < others ? o : others;
    }
    ck_assert_msg(chosen < 6 * others, "%.4f s, others %.4f s", chosen, others);
}
END_TEST

Suite *crowded_keys_suite(void);
Suite *crowded_keys_suite(void)
{
    Suite *s = suite_create("crowded_keys");
    TCase *t = tcase_create("keys");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, keys_of_one_slot);
    tcase_add_loop_test(t, keys_in_their_order, 0, 5);
    tcase_add_test(t, strings_of_one_hash);
    tcase_add_loop_test(t, chosen_keys_are_as_quick, 0, sizeof interned / sizeof *interned);
    suite_add_tcase(s, t);
    return s;
}
