/* Tests the containers and helpers of base: arena, string pool, map, vector, UTF-8, files, suggestions, settings. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/bisect.h"
#include "base/by_id.h"
#include "base/dev_flags.h"
#include "base/file.h"
#include "base/range_map.h"
#include "base/strpool.h"
#include "base/suggest.h"
#include "base/u64map.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory that runs out ---- */

static unsigned allocations_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return allocations_left && allocations_left--;
}

static void no_gate(void)
{
    alloc_set_gate(NULL, NULL);
}

/* ---- the heap's pages ---- */

/* Sanitizers and other allocators have their own heap. */
static bool heap_is_brk(void)
{
    void *p = mem_alloc(100);
    bool is = p < sbrk(0) && (char *)p > (char *)sbrk(0) - (1 << 30);
    mem_free(p);
    return is;
}

static bool kernel_populates(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = p != MAP_FAILED && madvise(p, 4096, 23 /* MADV_POPULATE_WRITE */) == 0;
    if (p != MAP_FAILED)
        munmap(p, 4096);
    return can;
}

START_TEST(pages_of_the_heap_come_before_they_are_touched)
{
    enum { BYTES = 64 * 1024, PIECES = 64, PAGE = 4096, AHEAD = 32 /* pages */ };
    unsigned char resident[AHEAD];
    unsigned here = 0, most = 0;
    if (!heap_is_brk() || !kernel_populates())
        return;
    mallopt(M_TOP_PAD, 8 << 20);
    alloc_populate_heap();
    char *piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        piece[i] = mem_alloc(BYTES);
        ck_assert_ptr_nonnull(piece[i]);
        uintptr_t behind = ((uintptr_t)piece[i] + BYTES + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        if (mincore((void *)behind, sizeof resident * PAGE, resident) != 0)
            continue; /* beyond the heap */
        here = 0;
        for (int k = 0; k < AHEAD; k++)
            here += resident[k] & 1;
        most = here > most ? here : most;
    }
    ck_assert_uint_eq(most, AHEAD); /* behind the heap's last piece, where nobody has written */
    for (int i = 0; i < PIECES; i++)
        mem_free(piece[i]);
}
END_TEST

/* ---- arena ---- */

START_TEST(arena_pieces_do_not_overlap)
{
    struct arena a = {0};
    unsigned char *pieces[300];
    for (size_t i = 0; i < 300; i++) { /* up to 90 KB in one piece: larger than a block */
        size_t size = i == 299 ? 90000 : i + 1;
        pieces[i] = arena_alloc(&a, size);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % 8, 0);
        memset(pieces[i], (int)(i & 0xff), size);
    }
    for (size_t i = 0; i < 300; i++) {
        ck_assert_uint_eq(pieces[i][0], i & 0xff);
        ck_assert_uint_eq(pieces[i][i == 299 ? 89999 : i], i & 0xff);
    }
    ck_assert_uint_ge(a.total_bytes, 300 * 299 / 2 + 90000);
    const uint64_t *zero = arena_zalloc(&a, 64);
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(zero[i], 0);
    arena_free(&a);
    ck_assert_uint_eq(a.total_bytes, 0);
    ck_assert_str_eq(arena_strndup(&a, "whole text", 5), "whole"); /* usable again */
    ck_assert_str_eq(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    arena_free(&a);
}
END_TEST

START_TEST(arena_says_when_memory_ran_out)
{
    struct arena a = {0};
    allocations_left = 0;
    alloc_set_gate(gate, NULL);
    ck_assert_ptr_null(arena_alloc(&a, 16));
    ck_assert(a.failed);
    no_gate();
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 4)); /* the sum with its head does not fit a size_t */
    arena_free(&a);
    ck_assert(!a.failed);
}
END_TEST

/* ---- string pool ---- */

START_TEST(strings_are_kept_once)
{
    struct strpool s = {0};
    char text[24];
    strid ids[5000];
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "string %d", i);
        ids[i] = strpool_intern_str(&s, text);
        ck_assert_uint_ne(ids[i], 0);
    }
    const char *first = strpool_cstr(&s, ids[0]);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof text, "string %d", i);
        ck_assert_uint_eq(strpool_printf(&s, "string %d", i), ids[i]);
        ck_assert_uint_eq(strpool_find(&s, text, strlen(text)), ids[i]);
        ck_assert_str_eq(strpool_cstr(&s, ids[i]), text);
    }
    ck_assert_uint_eq(s.n, 5000);
    ck_assert_ptr_eq(strpool_cstr(&s, ids[0]), first); /* views stay valid while the pool grows */
    ck_assert_uint_eq(strpool_find(&s, "string", 6), 0);
    strpool_free(&s);
}
END_TEST

START_TEST(no_string_and_the_empty_string_differ)
{
    struct strpool s = {0};
    ck_assert_str_eq(strpool_cstr(&s, 0), "");
    strid empty = strpool_intern(&s, "", 0), nul = strpool_intern(&s, "a\0b", 3), a = strpool_intern_str(&s, "a");
    ck_assert_uint_ne(empty, 0);
    ck_assert_str_eq(strpool_cstr(&s, empty), "");
    ck_assert_uint_ne(nul, a);
    ck_assert_uint_eq(strpool_view(&s, nul).len, 3);
    ck_assert(s.has_nul);
    strpool_free(&s);
}
END_TEST

/* ---- map ---- */

/* Random puts and deletions, beside an array that knows the truth; keys include 0 and the largest. */
START_TEST(a_map_holds_what_was_put)
{
    enum { KEYS = 700 };
    struct u64map m = {0};
    uint64_t truth[KEYS] = {0};
    bool there[KEYS] = {0};
    size_t n = 0;
    uint32_t seed = 1;
    for (int step = 0; step < 40000; step++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t k = (seed >> 8) % KEYS;
        uint64_t key = k == 0 ? 0 : k == 1 ? UINT64_MAX : (uint64_t)k << 32;
        if (seed >> 30 == 0) {
            ck_assert_int_eq(u64map_del(&m, key), there[k]);
            n -= there[k];
            there[k] = false;
        } else {
            bool added;
            uint64_t *value = u64map_put(&m, key, &added);
            ck_assert_ptr_nonnull(value);
            ck_assert_int_eq(added, !there[k]);
            ck_assert_uint_eq(*value, added ? 0 : truth[k]);
            *value = truth[k] = (uint64_t)step;
            n += added;
            there[k] = true;
        }
        ck_assert_uint_eq(m.n, n);
    }
    for (uint32_t k = 2; k < KEYS; k++) {
        const uint64_t *value = u64map_get(&m, (uint64_t)k << 32);
        ck_assert_int_eq(value != NULL, there[k]);
        if (value)
            ck_assert_uint_eq(*value, truth[k]);
    }
    size_t it = 0, walked = 0;
    while (u64map_next(&m, &it))
        walked++;
    ck_assert_uint_eq(walked, n);
    u64map_clear(&m);
    ck_assert_uint_eq(m.n, 0);
    ck_assert_ptr_null(u64map_get(&m, 0));
    u64map_free(&m);
}
END_TEST

START_TEST(a_map_without_memory_keeps_what_it_has)
{
    struct u64map m = {0};
    uint64_t key = 0;
    ck_assert(u64map_set(&m, 7, 8));
    allocations_left = 0;
    alloc_set_gate(gate, NULL);
    while (u64map_set(&m, 1000 + key, key))
        key++;
    no_gate();
    ck_assert_uint_eq(m.n, key + 1);
    ck_assert_uint_eq(*u64map_get(&m, 7), 8);
    for (uint64_t i = 0; i < key; i++)
        ck_assert_uint_eq(*u64map_get(&m, 1000 + i), i);
    u64map_free(&m);
}
END_TEST

/* ---- vector ---- */

START_TEST(a_vector_grows_or_stays_as_it_is)
{
    VEC(uint32_t) v = {0};
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert(vec_push(&v, i));
    uint32_t *zeroed = vec_add(&v);
    ck_assert_ptr_nonnull(zeroed);
    ck_assert_uint_eq(*zeroed, 0);
    size_t cap = v.cap;
    ck_assert(!vec_reserve(&v, SIZE_MAX / 2)); /* times four it does not fit a size_t */
    ck_assert_uint_eq(v.cap, cap);
    ck_assert_uint_eq(v.n, 1001);
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(v.p[i], i);
    vec_free(&v);
    ck_assert_uint_eq(v.n, 0);
}
END_TEST

START_TEST(values_by_id_stand_where_they_were_made)
{
    static const uint32_t ids[] = {0, 15, 16, 1023, 1024, 70000, UINT32_MAX - 16};
    BY_ID(uint64_t) v = {0};
    uint64_t *at[7];
    unsigned n = 0, seen = 0;
    ck_assert_ptr_null(by_id_find(&v, 0));
    for (unsigned i = 0; i < 7; i++) {
        ck_assert_ptr_nonnull(at[i] = by_id_make(&v, ids[i]));
        ck_assert_uint_eq(*at[i], 0);
        *at[i] = ids[i] + 1ull;
    }
    for (unsigned i = 0; i < 7; i++) {
        ck_assert_ptr_eq(by_id_find(&v, ids[i]), at[i]);
        ck_assert_uint_eq(*at[i], ids[i] + 1ull);
    }
    ck_assert_ptr_null(by_id_find(&v, 32));
    ck_assert_ptr_null(by_id_find(&v, 71000));
    by_id_each(&v, id)
    {
        seen++;
        n += *by_id_find(&v, id) == id + 1ull;
    }
    ck_assert_uint_eq(n, 7);
    ck_assert_uint_eq(seen, 6 * 16); /* 0 and 15 share a page */
    by_id_free(&v);
    ck_assert_ptr_null(by_id_find(&v, 0));
}
END_TEST

START_TEST(values_by_id_without_memory_stay)
{
    BY_ID(uint32_t) v = {0};
    *by_id_make(&v, 5) = 7;
    for (size_t k = 0; k < 3; k++) { /* the top, a directory, a page */
        allocations_left = k;
        alloc_set_gate(gate, NULL);
        ck_assert_ptr_null(by_id_make(&v, (uint32_t)(k + 1) * 5000));
        alloc_set_gate(NULL, NULL);
    }
    ck_assert_uint_eq(*by_id_find(&v, 5), 7);
    ck_assert_ptr_nonnull(by_id_make(&v, 15000));
    by_id_free(&v);
}
END_TEST

/* ---- UTF-8 ---- */

static const struct {
    const char *bytes;
    size_t len, first, prefix; /* of the first sequence; of all whole ones */
} utf8[] = {
    {"", 0, 0, 0},
    {"a", 1, 1, 1},
    {"\0a", 2, 1, 2},
    {"\xc3\xa4x", 3, 2, 3},
    {"\xe2\x82\xac", 3, 3, 3},
    {"\xf0\x9f\x98\x80", 4, 4, 4},
    {"a\xe2\x82", 3, 1, 1}, /* cut */
    {"\xe2\x82", 2, 0, 0},
    {"\x80", 1, 0, 0},     /* a continuation alone */
    {"\xc0\x80", 2, 0, 0}, /* overlong */
    {"\xe0\x80\x80", 3, 0, 0},
    {"\xf0\x80\x80\x80", 4, 0, 0},
    {"\xed\xa0\x80", 3, 0, 0},     /* a surrogate */
    {"\xed\x9f\xbf", 3, 3, 3},     /* the last before them */
    {"\xf4\x8f\xbf\xbf", 4, 4, 4}, /* U+10FFFF */
    {"\xf4\x90\x80\x80", 4, 0, 0}, /* the one behind it */
    {"\xff", 1, 0, 0},
};

START_TEST(a_bisection_finds_the_first_that_says_no)
{
    enum { MOST = 33 };
    for (uint32_t n = 0; n <= MOST; n++)
        for (uint32_t yes = 0; yes <= n; yes++)
            for (uint32_t from = 0; from <= yes; from++) {
                uint32_t asked = 0, first = from, end = n, place = n;
                BISECT(place, i, (asked++, i < yes));
                ck_assert_uint_eq(place, yes);
                ck_assert_uint_le(asked, 6); /* log2(33), and one */
                BISECT_RANGE(first, end, i, i < yes);
                ck_assert_uint_eq(first, yes);
                ck_assert_uint_eq(end, yes);
            }
}
END_TEST

START_TEST(utf8_is_told_from_other_bytes)
{
    ck_assert_uint_eq(utf8_sequence(utf8[_i].bytes, utf8[_i].len), utf8[_i].first);
    ck_assert_uint_eq(utf8_prefix(utf8[_i].bytes, utf8[_i].len), utf8[_i].prefix);
}
END_TEST

/* ---- files ---- */

static ssize_t read_a_byte(int fd, void *buf, size_t len)
{
    static bool interrupted;
    interrupted = !interrupted;
    if (interrupted) {
        errno = EINTR;
        return -1;
    }
    return read(fd, buf, len ? 1 : 0);
}

static ssize_t read_error(int fd, void *buf, size_t len)
{
    (void)fd, (void)buf, (void)len;
    errno = EIO;
    return -1;
}

START_TEST(a_file_is_read_whole_or_not_at_all)
{
    char path[] = "/tmp/mrd-base-XXXXXX", *text = NULL;
    size_t len;
    struct error err;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(file_write_all(fd, "ten bytes.", 10, &err), 0);
    close(fd);
    ck_assert_int_eq(file_read_all(path, 10, &text, &len, &err), 0);
    ck_assert_uint_eq(len, 10);
    ck_assert_str_eq(text, "ten bytes.");
    mem_free(text);
    file_set_read_hook(read_a_byte);
    ck_assert_int_eq(file_read_all(path, 10, &text, &len, &err), 0);
    ck_assert_str_eq(text, "ten bytes.");
    mem_free(text);
    file_set_read_hook(read_error);
    ck_assert_int_lt(file_read_all(path, 10, &text, &len, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    file_set_read_hook(NULL);
    ck_assert_int_lt(file_read_all(path, 9, &text, &len, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "larger than 9 bytes"));
    struct mapped_file m;
    ck_assert_int_eq(mapped_file_open(&m, path, &err), 0);
    ck_assert_uint_eq(m.bytes.len, 10);
    ck_assert_int_eq(memcmp(m.bytes.p, "ten bytes.", 10), 0);
    ck_assert(!mapped_file_shrank(&m));
    mapped_file_close(&m);
    unlink(path);
    ck_assert_int_lt(mapped_file_open(&m, path, &err), 0);
    ck_assert_int_eq(mapped_file_open(&m, "/dev/null", &err), -MRD_EUNSUPPORTED);
}
END_TEST

/* ---- suggestions and settings ---- */

static const struct {
    const char *typed, *text;
} near_words[] = {
    {"qery", " (did you mean '--query'?)"},
    {"quary", " (did you mean '--query'?)"},
    {"exprot", " (did you mean '--export'?)"},
    {"zzzzzzzz", ""},
};

START_TEST(the_nearest_word_is_suggested)
{
    char room[64];
    struct suggestion s = suggest(near_words[_i].typed, strlen(near_words[_i].typed));
    suggest_among(&s, "query");
    suggest_among(&s, "export");
    suggest_among(&s, "interactive");
    ck_assert_str_eq(suggest_text(&s, "--", room, sizeof room), near_words[_i].text);
}
END_TEST

START_TEST(settings_take_what_their_kind_says)
{
    struct settings {
        bool on;
        int64_t ms;
    } settings = {false, 5};
    static const struct dev_flag flags[] = {{"on", DEV_BOOL, offsetof(struct settings, on)},
                                            {"ms", DEV_NUMBER, offsetof(struct settings, ms)}};
    static const char *const bad[] = {"on", "on=maybe", "ms=", "ms=-1", "ms=1x", "ms=99999999999999999999"};
    struct error err;
    ck_assert_int_eq(dev_flag_set(flags, 2, &settings, "on=true", &err), 1);
    ck_assert(settings.on);
    ck_assert_int_eq(dev_flag_set(flags, 2, &settings, "ms=300", &err), 1);
    ck_assert_int_eq(settings.ms, 300);
    ck_assert_int_eq(dev_flag_set(flags, 2, &settings, "other=1", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.text[0] = 0;
        ck_assert_msg(dev_flag_set(flags, 2, &settings, bad[i], &err) == -MRD_EINVALID, "%s", bad[i]);
        ck_assert_msg(err.text[0], "%s: no text", bad[i]);
    }
    ck_assert_int_eq(settings.ms, 300); /* a refused value changes nothing */
    ck_assert(settings.on);
}
END_TEST

/* ---- ranges ---- */

/* Against an array that says what holds each number. */
START_TEST(ranges_are_found_and_taken)
{
    enum { NUMBERS = 300, STEPS = 20000 };
    struct arena arena = {0};
    struct range_map map = {.arena = &arena};
    int held[NUMBERS] = {0}, ids[STEPS], wrong = 0;
    unsigned random = (unsigned)_i + 1;
    for (int step = 1; step < STEPS; step++) {
        random = random * 1103515245 + 12345;
        uint64_t start = random >> 8 & 255, end = start + 1 + (random >> 16) % 40;
        struct range r, out;
        bool found = range_map_find(&map, start, &r);
        wrong += (found ? *(int *)r.value : 0) != held[start];
        while (range_map_take(&map, start, end, &out)) {
            wrong += out.start >= end || out.end <= start;
            for (uint64_t i = out.start; i < out.end; i++) {
                wrong += held[i] != *(int *)out.value;
                held[i] = 0;
            }
        }
        for (uint64_t i = start; i < end; i++)
            wrong += held[i] != 0;
        if (random & 64)
            continue;
        ids[step] = step;
        wrong += !range_map_add(&map, (struct range){start, end, &ids[step]});
        for (uint64_t i = start; i < end; i++)
            held[i] = step;
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_uint_lt(arena.total_bytes, 1 << 20); /* places of what was taken are used again */
    arena_free(&arena);
}
END_TEST

START_TEST(ranges_in_order_do_not_make_a_list)
{
    enum { RANGES = 200000 };
    struct arena arena = {0};
    struct range_map map = {.arena = &arena};
    struct range r;
    int wrong = 0;
    for (uint64_t i = 0; i < RANGES; i++)
        wrong += !range_map_add(&map, (struct range){10 * i, 10 * i + 5, NULL});
    for (uint64_t i = 0; i < RANGES; i++)
        wrong += !range_map_find(&map, 10 * i + 4, &r) || range_map_find(&map, 10 * i + 5, &r);
    ck_assert_int_eq(wrong, 0);
    arena_free(&arena);
}
END_TEST

START_TEST(ranges_without_memory_stay)
{
    struct arena arena = {0};
    struct range_map map = {.arena = &arena};
    struct range r;
    ck_assert(range_map_add(&map, (struct range){1, 2, NULL}));
    alloc_set_gate(gate, NULL);
    allocations_left = 0;
    bool added = true;
    for (uint64_t i = 1; added && i < 100000; i++)
        added = range_map_add(&map, (struct range){2 * i + 1, 2 * i + 2, NULL});
    no_gate();
    ck_assert(!added);
    ck_assert(range_map_find(&map, 1, &r));
    arena_free(&arena);
}
END_TEST

Suite *base_suite(void);

Suite *base_suite(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("core");
    tcase_add_checked_fixture(t, NULL, no_gate);
    tcase_add_test(t, pages_of_the_heap_come_before_they_are_touched);
    tcase_add_test(t, arena_pieces_do_not_overlap);
    tcase_add_test(t, arena_says_when_memory_ran_out);
    tcase_add_test(t, strings_are_kept_once);
    tcase_add_test(t, no_string_and_the_empty_string_differ);
    tcase_add_test(t, a_map_holds_what_was_put);
    tcase_add_test(t, a_map_without_memory_keeps_what_it_has);
    tcase_add_test(t, a_vector_grows_or_stays_as_it_is);
    tcase_add_test(t, values_by_id_stand_where_they_were_made);
    tcase_add_test(t, values_by_id_without_memory_stay);
    tcase_add_loop_test(t, ranges_are_found_and_taken, 0, 4);
    tcase_add_test(t, ranges_in_order_do_not_make_a_list);
    tcase_add_test(t, ranges_without_memory_stay);
    tcase_add_test(t, a_bisection_finds_the_first_that_says_no);
    tcase_add_loop_test(t, utf8_is_told_from_other_bytes, 0, sizeof utf8 / sizeof *utf8);
    tcase_add_test(t, a_file_is_read_whole_or_not_at_all);
    tcase_add_loop_test(t, the_nearest_word_is_suggested, 0, sizeof near_words / sizeof *near_words);
    tcase_add_test(t, settings_take_what_their_kind_says);
    suite_add_tcase(s, t);
    return s;
}
