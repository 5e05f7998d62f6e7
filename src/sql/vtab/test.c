/* Makes tests: turns a constraint and its value into a test of a column's words, by SQLite's rules of comparison.
 *
 * Numbers compare by value across integers and reals; NULL passes no comparison but IS; a text that looks like a number
 * counts as one against a numeric column, any other text or blob is greater than every number. */
#include "sql/vtab/vtab.h"

#include "base/bisect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A value as a numeric column sees it. */
enum { NO_MEMORY = -1 };
struct number {
    int type; /* NO_MEMORY; SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT, or SQLITE_TEXT for what is greater than every
                 number */
    int64_t i;
    double d;
};

static struct number number_of(sqlite3_value *v)
{
    struct number out = {.type = sqlite3_value_type(v)};
    sqlite3_value *copy = NULL;
    if (out.type == SQLITE_TEXT) { /* the conversion would change the value that others read */
        copy = sqlite3_value_dup(v);
        if (!copy)
            return (struct number){.type = NO_MEMORY};
        out.type = sqlite3_value_numeric_type(copy);
        v = copy;
    }
    if (out.type == SQLITE_INTEGER)
        out.i = sqlite3_value_int64(v);
    else if (out.type == SQLITE_FLOAT)
        out.d = sqlite3_value_double(v);
    else if (out.type != SQLITE_NULL)
        out.type = SQLITE_TEXT;
    sqlite3_value_free(copy);
    return out;
}

/* The place of a number among the words of a column: the words in [first, last] equal it (none when first > last, then
 * words below `first` are smaller and words above `last` are greater). */
struct place {
    int64_t first, last;
};

static struct place place_in_ints(struct number n)
{
    if (n.type == SQLITE_INTEGER)
        return (struct place){n.i, n.i};
    if (n.d >= 9223372036854775808.0) /* above all: [MAX + 1, MAX] */
        return (struct place){INT64_MAX, INT64_MIN};
    if (n.d < -9223372036854775808.0)
        return (struct place){INT64_MIN, INT64_MAX};
    double floor_d = floor(n.d);
    int64_t below = (int64_t)floor_d;
    return floor_d == n.d ? (struct place){below, below} : (struct place){below + 1, below};
}

static struct place place_in_doubles(struct number n)
{
    double d = n.type == SQLITE_INTEGER ? (double)n.i : n.d;
    if (d == 0)
        return (struct place){column_f64_order(column_f64_word(-0.0)), column_f64_order(column_f64_word(0.0))};
    int64_t order = column_f64_order(column_f64_word(d));
    if (n.type == SQLITE_INTEGER) { /* a large integer may lie between two doubles */
        int above = d >= 9223372036854775808.0 ? 1 : ((int64_t)d > n.i) - ((int64_t)d < n.i);
        if (above > 0)
            return (struct place){order, order - 1};
        if (above < 0)
            return (struct place){order + 1, order};
    }
    return (struct place){order, order};
}

/* Limits of what a word that is not NULL can be. */
static void value_limits(enum col_type type, int64_t *min, int64_t *max)
{
    *min = type == COL_F64 ? column_f64_order(column_f64_word(-INFINITY)) : INT64_MIN + 1;
    *max = type == COL_F64 ? column_f64_order(column_f64_word(INFINITY)) : INT64_MAX;
}

static int finish_range(struct test *out, int64_t lo, int64_t hi)
{
    out->kind = TEST_RANGE;
    out->lo = lo;
    out->hi = hi;
    return lo <= hi ? 1 : TEST_FAILS;
}

static int make_number(struct test *out, enum col_type type, enum plan_op op, struct number n)
{
    int64_t min, max;
    value_limits(type, &min, &max);
    bool text = n.type == SQLITE_TEXT;
    bool overflow_up = !text && type != COL_F64 && n.type == SQLITE_FLOAT && n.d >= 9223372036854775808.0;
    bool overflow_down = !text && type != COL_F64 && n.type == SQLITE_FLOAT && n.d < -9223372036854775808.0;
    bool above_all = text || overflow_up;
    struct place p = {1, 0};
    if (!above_all && !overflow_down)
        p = type == COL_F64 ? place_in_doubles(n) : place_in_ints(n);
    bool equal = !above_all && !overflow_down && p.first <= p.last;
    out->kind = TEST_NOT_NULL;
    out->lo = p.first;
    out->hi = p.last;
    switch (op) {
    case PLAN_EQ:
    case PLAN_IS:
        return equal ? finish_range(out, p.first < min ? min : p.first, p.last) : TEST_FAILS;
    case PLAN_NE:
        out->kind = equal ? TEST_NE : TEST_NOT_NULL;
        return 1;
    case PLAN_ISNOT:
        out->kind = TEST_ISNOT;
        return equal;
    case PLAN_LT:
    case PLAN_LE:
        if (above_all)
            return 1;
        if (overflow_down || (op == PLAN_LT && p.first == INT64_MIN))
            return TEST_FAILS;
        return finish_range(out, min, op == PLAN_LT ? p.first - 1 : p.last);
    default:
        if (overflow_down)
            return 1;
        if (above_all || (op == PLAN_GT && p.last == INT64_MAX))
            return TEST_FAILS;
        p.first = op == PLAN_GT ? p.last + 1 : p.first;
        return finish_range(out, p.first < min ? min : p.first, max);
    }
}

/* ---- sets ---- */

static int by_word(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

uint32_t words_sort(int64_t *words, uint32_t n)
{
    uint32_t kept = 0;
    if (n)
        qsort(words, n, sizeof *words, by_word);
    for (uint32_t i = 0; i < n; i++)
        if (!i || words[i] != words[i - 1])
            words[kept++] = words[i];
    return kept;
}

void test_make_set(struct test *out, int64_t *words, uint32_t n)
{
    enum { WIDEST = 1 << 20, FEW = 4, NARROW = 64 };
    out->kind = TEST_SET;
    out->set = words;
    out->n_set = n;
    out->lo = words[0];
    out->hi = words[n - 1];
    uint64_t width = (uint64_t)out->hi - (uint64_t)out->lo;
    if (width < WIDEST && (n > FEW || width < NARROW)) {
        out->bits = mem_zalloc(width + 1);
        for (uint32_t i = 0; out->bits && i < n; i++)
            out->bits[words[i] - out->lo] = 1;
    }
}

typedef VEC(int64_t) word_list;

static int finish_set(struct test *out, word_list *words)
{
    if (!words->n)
        return TEST_FAILS;
    test_make_set(out, words->p, words_sort(words->p, (uint32_t)words->n));
    *words = (word_list){0};
    return 1;
}

/* A text that SQLite would turn into a number equal to one of those of the set, when a column of numbers is asked for a
 * string (`text_column IN (SELECT integer ...)`). */
static bool text_in_numbers(const struct test *t, struct slice s)
{
    char buf[64], *end = buf;
    while (s.len && strchr(" \t\n\v\f\r", *s.p) && *s.p)
        s.p++, s.len--;
    while (s.len && strchr(" \t\n\v\f\r", s.p[s.len - 1]) && s.p[s.len - 1])
        s.len--;
    if (!s.len || s.len >= sizeof buf || strspn((const char *)s.p, "0123456789+-.eE") < s.len)
        return false;
    memcpy(buf, s.p, s.len);
    buf[s.len] = 0;
    double d = strtod(buf, &end);
    int64_t order = column_f64_order(column_f64_word(d == 0 ? 0.0 : d));
    return *end == 0 && t->n_set && bsearch(&order, t->set, t->n_set, sizeof *t->set, by_word);
}

static int make_in(struct test *out, enum col_type type, sqlite3_value *list, const struct strpool *strings)
{
    word_list words = {0}, numbers = {0};
    sqlite3_value *v = NULL;
    bool ok = true;
    int rc;
    for (rc = sqlite3_vtab_in_first(list, &v); rc == SQLITE_OK && v; rc = sqlite3_vtab_in_next(list, &v)) {
        if (type == COL_STR) {
            if (sqlite3_value_type(v) == SQLITE_TEXT) {
                const void *text = sqlite3_value_text(v);
                strid id = text ? strpool_find(strings, text, (size_t)sqlite3_value_bytes(v)) : 0;
                ok = ok && text && (!id || vec_push(&words, id));
            } else if (sqlite3_value_type(v) != SQLITE_NULL && sqlite3_value_type(v) != SQLITE_BLOB) {
                double d = sqlite3_value_double(v);
                ok = ok && vec_push(&numbers, column_f64_order(column_f64_word(d == 0 ? 0.0 : d)));
            }
            continue;
        }
        struct number n = number_of(v);
        struct place p = {1, 0};
        ok &= n.type != NO_MEMORY;
        if (n.type == SQLITE_INTEGER || (n.type == SQLITE_FLOAT && (type == COL_F64 || fabs(n.d) < 9.3e18)))
            p = type == COL_F64 ? place_in_doubles(n) : place_in_ints(n);
        if (p.first <= p.last && p.last - p.first <= 1)
            ok = ok && vec_push(&words, p.first) && vec_push(&words, p.last);
    }
    int result = -MRD_ENOMEM;
    if (rc == SQLITE_NOMEM || !ok) {
        result = -MRD_ENOMEM;
    } else if (numbers.n) {
        /* Rare enough that the texts are told one by one: ids become texts' own numbers only by looking at each. */
        struct test probe = {.set = numbers.p, .n_set = (uint32_t)numbers.n};
        qsort(numbers.p, numbers.n, sizeof *numbers.p, by_word);
        for (size_t id = 1; ok && id <= strings->n; id++) {
            if (text_in_numbers(&probe, strpool_view(strings, (strid)id)))
                ok = vec_push(&words, (int64_t)id);
        }
        result = ok ? finish_set(out, &words) : -MRD_ENOMEM;
    } else {
        result = finish_set(out, &words);
    }
    vec_free(&words);
    vec_free(&numbers);
    return result;
}

/* ---- strings ---- */

static int make_string(struct test *out, enum plan_op op, sqlite3_value *v, const struct strpool *strings)
{
    int type = sqlite3_value_type(v);
    if (type == SQLITE_NULL) {
        out->kind = op == PLAN_IS ? TEST_NULL : TEST_NOT_NULL;
        return op == PLAN_IS || op == PLAN_ISNOT ? 1 : TEST_FAILS;
    }
    if (type != SQLITE_TEXT)
        return 0;
    const char *text = (const char *)sqlite3_value_text(v);
    size_t len = (size_t)sqlite3_value_bytes(v);
    if (!text)
        return -MRD_ENOMEM;
    if (op == PLAN_EQ || op == PLAN_IS || op == PLAN_NE || op == PLAN_ISNOT) {
        strid id = strpool_find(strings, text, len);
        if (op == PLAN_EQ || op == PLAN_IS)
            return id ? finish_range(out, id, id) : TEST_FAILS;
        out->lo = out->hi = id;
        out->kind = op == PLAN_ISNOT ? TEST_ISNOT : id ? TEST_NE : TEST_NOT_NULL;
        return op == PLAN_ISNOT && !id ? 0 : 1;
    }
    char *copy = mem_strndup(text, len);
    if (!copy)
        return -MRD_ENOMEM;
    out->kind = TEST_STRING;
    out->op = (uint8_t)op;
    out->text = slice_of(copy, len);
    out->strings = strings;
    return 1;
}

int test_make(struct test *out, int16_t column, enum col_type type, enum plan_op op, sqlite3_value *v,
              const struct strpool *strings)
{
    *out = (struct test){.column = column, .type = (uint8_t)type};
    if (op == PLAN_ISNULL || op == PLAN_NOTNULL) {
        out->kind = op == PLAN_ISNULL ? TEST_NULL : TEST_NOT_NULL;
        return 1;
    }
    if (op == PLAN_IN)
        return make_in(out, type, v, strings);
    if (type == COL_STR)
        return make_string(out, op, v, strings);
    struct number n = number_of(v);
    if (n.type == NO_MEMORY)
        return -MRD_ENOMEM;
    if (n.type != SQLITE_NULL)
        return make_number(out, type, op, n);
    out->kind = op == PLAN_IS ? TEST_NULL : TEST_NOT_NULL;
    return op == PLAN_IS || op == PLAN_ISNOT ? 1 : TEST_FAILS;
}

void test_free(struct test *t)
{
    mem_free(t->set);
    mem_free(t->bits);
    mem_free((void *)(uintptr_t)t->text.p);
    mem_free(t->memo);
    *t = (struct test){0};
}

static bool in_set(const struct test *t, int64_t word)
{
    if (word < t->lo || word > t->hi)
        return false;
    if (t->bits)
        return t->bits[word - t->lo];
    uint32_t at = t->n_set;
    BISECT(at, mid, t->set[mid] < word);
    return at < t->n_set && t->set[at] == word;
}

static bool string_passes(const struct test *t, strid id)
{
    struct slice s = strpool_view(t->strings, id);
    if (t->op == PLAN_GLOB)
        return sqlite3_strglob((const char *)t->text.p, (const char *)s.p) == 0;
    size_t common = s.len < t->text.len ? s.len : t->text.len;
    int c = common ? memcmp(s.p, t->text.p, common) : 0;
    if (c == 0)
        c = (s.len > t->text.len) - (s.len < t->text.len);
    return t->op == PLAN_LT ? c < 0 : t->op == PLAN_LE ? c <= 0 : t->op == PLAN_GT ? c > 0 : c >= 0;
}

/* Each distinct string is looked at once. */
static bool string_test(struct test *t, strid id)
{
    if (!id)
        return false;
    if (id >= t->memo_size) {
        uint32_t size = t->strings->n + 1;
        uint8_t *memo = id < size ? mem_realloc(t->memo, size) : NULL;
        if (!memo)
            return string_passes(t, id);
        memset(memo + t->memo_size, 0, size - t->memo_size);
        t->memo = memo;
        t->memo_size = size;
    }
    if (!t->memo[id])
        t->memo[id] = string_passes(t, id) ? 2 : 1;
    return t->memo[id] == 2;
}

bool test_word(struct test *t, int64_t word)
{
    if (t->kind == TEST_STRING)
        return string_test(t, (strid)word);
    bool null = word == column_null(t->type);
    if (t->type == COL_F64)
        word = column_f64_order(word);
    switch (t->kind) {
    case TEST_RANGE:
        return word >= t->lo && word <= t->hi && !null;
    case TEST_NE:
        return !null && (word < t->lo || word > t->hi);
    case TEST_ISNOT:
        return null || word < t->lo || word > t->hi;
    case TEST_NULL:
        return null;
    case TEST_NOT_NULL:
        return !null;
    default:
        return !null && in_set(t, word);
    }
}
