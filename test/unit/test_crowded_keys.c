/* Tests that tables whose keys were chosen to belong into one place are as quick as others. */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/strpool.h"
#include "base/u64map.h"

#include <check.h>
#include <stdlib.h>

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

Suite *crowded_keys_suite(void);
Suite *crowded_keys_suite(void)
{
    Suite *s = suite_create("crowded_keys");
    TCase *t = tcase_create("keys");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, keys_of_one_slot);
    tcase_add_loop_test(t, keys_in_their_order, 0, 5);
    tcase_add_test(t, strings_of_one_hash);
    suite_add_tcase(s, t);
    return s;
}
