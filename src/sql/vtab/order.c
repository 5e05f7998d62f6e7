/* Sorts selected rows: each sort column becomes a code that orders as SQL does, codes of several columns are
 * packed into one word, words are sorted by counting or radix sort. Strings are ranked once per distinct string.
 *
 * All sorts are stable, so trailing columns in which the rows stand in order already cost nothing. */
#include "sql/vtab/vtab.h"

#include "base/bisect.h"
#include "base/compare.h"

#include <stdlib.h>
#include <string.h>

/* ---- codes ---- */

struct coder {
    const struct column *column; /* NULL: the row number */
    uint64_t base, highest;      /* code = word - base (+ 1 when there are NULLs, which are 0); inverted when desc */
    unsigned bits;
    bool desc, nullable;
    uint8_t type;
    /* strings in text order: */
    uint32_t *ids;   /* sorted distinct ids, or NULL when `ranks` is by id */
    uint32_t *ranks; /* [id - base] or beside ids; 1-based */
    uint32_t n_ids;
};

static unsigned bits_of(uint64_t highest)
{
    return highest ? 64 - (unsigned)__builtin_clzll(highest) : 0;
}

/* Order words of doubles: the negative zero (-1) equals the other (0). */
static inline int64_t one_zero(int64_t order)
{
    return order == -1 ? 0 : order;
}

static uint64_t rank_of(const struct coder *c, uint32_t id)
{
    if (!c->ids)
        return c->ranks[id - c->base];
    uint32_t n = c->n_ids;
    BISECT(n, i, c->ids[i] <= id);
    return c->ranks[n ? n - 1 : 0];
}

enum { BLOCK = 512 };

/* The codes of up to BLOCK rows. */
static void codes_of(const struct coder *c, const uint32_t *rows, uint32_t n, uint64_t *out)
{
    int64_t words[BLOCK], null = column_null(c->type);
    if (c->column)
        column_gather(c->column, rows, n, words);
    if (!c->column) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = rows[i];
    } else if (c->ranks) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = words[i] ? rank_of(c, (uint32_t)words[i]) : 0;
    } else if (c->type == COL_F64) {
        for (uint32_t i = 0; i < n; i++) {
            out[i] = c->nullable && words[i] == null
                         ? 0
                         : (uint64_t)one_zero(column_f64_order(words[i])) - c->base + c->nullable;
            out[i] = out[i] < c->highest ? out[i] : c->highest; /* what is damaged reads as 0, in no range */
        }
    } else if (c->nullable) {
        for (uint32_t i = 0; i < n; i++)
            out[i] = words[i] == null ? 0 : (uint64_t)words[i] - c->base + 1;
    } else {
        for (uint32_t i = 0; i < n; i++)
            out[i] = (uint64_t)words[i] - c->base;
    }
    for (uint32_t i = 0; c->desc && i < n; i++)
        out[i] = c->highest - out[i];
}

struct ranked {
    struct slice text;
    uint32_t at;
};

static int by_text(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    size_t common = x->text.len < y->text.len ? x->text.len : y->text.len;
    int c = common ? memcmp(x->text.p, y->text.p, common) : 0;
    return c ? c : (x->text.len > y->text.len) - (x->text.len < y->text.len);
}

/* Ranks the strings that occur in the rows. */
static bool rank_strings(struct coder *c, const struct strpool *strings, const uint32_t *rows, uint32_t n,
                         stop_flag *stop)
{
    uint64_t span = (uint64_t)c->column->max - c->base + 1;
    bool by_span = span <= 8ull * n + 1024;
    VEC(uint32_t)
    ids = {0};
    uint8_t *seen = by_span ? mem_zalloc(span) : NULL;
    bool ok = !by_span || seen;
    for (uint32_t i = 0; ok && i < n; i++) {
        int64_t id = column_get(c->column, rows[i]);
        if (i % BLOCK == 0 && stop_asked(stop))
            ok = false;
        if (!id || (by_span && seen[(uint64_t)id - c->base]))
            continue;
        if (by_span)
            seen[(uint64_t)id - c->base] = 1;
        ok = vec_push(&ids, (uint32_t)id);
    }
    mem_free(seen);
    if (ok && ids.n && !by_span) {
        ok = stop_sort(ids.p, ids.n, sizeof *ids.p, compare_u32, stop);
        size_t kept = 1;
        for (size_t i = 1; i < ids.n; i++)
            if (ids.p[i] != ids.p[kept - 1])
                ids.p[kept++] = ids.p[i];
        ids.n = kept;
    }
    struct ranked *order = ok ? mem_alloc((ids.n + 1) * sizeof *order) : NULL;
    c->ranks = order ? mem_zalloc((by_span ? span : ids.n + 1) * sizeof *c->ranks) : NULL;
    if (c->ranks) {
        for (size_t i = 0; i < ids.n; i++)
            order[i] = (struct ranked){strpool_view(strings, ids.p[i]),
                                       by_span ? (uint32_t)(ids.p[i] - c->base) : (uint32_t)i};
        ok = stop_sort(order, ids.n, sizeof *order, by_text, stop);
        for (size_t i = 0; i < ids.n; i++)
            c->ranks[order[i].at] = (uint32_t)i + 1;
    }
    mem_free(order);
    c->n_ids = (uint32_t)ids.n;
    c->highest = ids.n;
    if (c->ranks && !by_span)
        c->ids = ids.p;
    else
        vec_free(&ids);
    return c->ranks && ok;
}

static bool coder_init(struct coder *c, const struct table *t, const struct strpool *strings, struct plan_order term,
                       bool grouped, const uint32_t *rows, uint32_t n, stop_flag *stop)
{
    *c = (struct coder){.desc = term.desc};
    if (term.column == VTAB_ROW) {
        c->highest = t->n_rows;
        c->bits = bits_of(c->highest);
        return true;
    }
    c->column = &t->columns[term.column];
    c->type = c->column->type;
    c->nullable = c->column->has_null;
    if (c->column->min <= c->column->max) {
        c->base = (uint64_t)c->column->min;
        c->highest = (uint64_t)(c->type == COL_F64 ? one_zero(c->column->max) : c->column->max) - c->base;
        if (c->highest == UINT64_MAX) /* full range: no room for NULL, and none can be beside INT64_MIN */
            c->nullable = false;
        c->highest += c->nullable;
        if (c->type == COL_STR && !grouped && !rank_strings(c, strings, rows, n, stop))
            return false;
    }
    c->bits = bits_of(c->highest);
    return true;
}

static void coder_free(struct coder *c)
{
    mem_free(c->ids);
    mem_free(c->ranks);
}

/* ---- sorts ---- */

/* Codes of at most 16 bits. */
static bool counting_sort(const struct coder *c, uint32_t *rows, uint32_t n, stop_flag *stop)
{
    uint32_t n_codes = (uint32_t)c->highest + 1;
    uint16_t *codes = mem_alloc(((size_t)n + 1) * sizeof *codes);
    uint32_t *out = mem_alloc(((size_t)n + 1) * sizeof *out);
    uint32_t *starts = mem_zalloc(((size_t)n_codes + 1) * sizeof *starts);
    bool ok = codes && out && starts;
    for (uint32_t from = 0; ok && from < n; from += BLOCK) {
        uint64_t block[BLOCK];
        uint32_t count = n - from < BLOCK ? n - from : BLOCK;
        codes_of(c, rows + from, count, block);
        for (uint32_t i = 0; i < count; i++) {
            codes[from + i] = (uint16_t)block[i];
            starts[block[i] + 1]++;
        }
        ok = !stop_asked(stop);
    }
    if (ok) {
        for (uint32_t k = 1; k <= n_codes; k++)
            starts[k] += starts[k - 1];
        for (uint32_t i = 0; i < n; i++)
            out[starts[codes[i]]++] = rows[i];
        memcpy(rows, out, n * sizeof *rows);
    }
    mem_free(codes);
    mem_free(out);
    mem_free(starts);
    return ok;
}

struct keyed {
    uint64_t key;
    uint32_t row;
    uint32_t at; /* place before sorting, keeps small sorts stable */
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The codes of several columns in one word each, of up to BLOCK rows. */
static void keys_of(const struct coder *c, uint32_t n_coders, const uint32_t *rows, uint32_t n, uint64_t *out)
{
    codes_of(&c[0], rows, n, out);
    for (uint32_t k = 1; k < n_coders; k++) {
        uint64_t codes[BLOCK];
        codes_of(&c[k], rows, n, codes);
        for (uint32_t i = 0; i < n; i++)
            out[i] = (c[k].bits < 64 ? out[i] << c[k].bits : 0) | codes[i];
    }
}

static bool radix_sort(struct keyed *keys, struct keyed *spare, uint32_t n, unsigned bits, struct keyed **sorted,
                       stop_flag *stop)
{
    enum { DIGIT = 11, BUCKETS = 1 << DIGIT };
    for (unsigned shift = 0; shift < bits; shift += DIGIT) {
        uint32_t starts[BUCKETS] = {0};
        if (stop_asked(stop))
            return false;
        for (uint32_t i = 0; i < n; i++)
            starts[(keys[i].key >> shift) & (BUCKETS - 1)]++;
        if (starts[(keys[0].key >> shift) & (BUCKETS - 1)] == n)
            continue; /* all alike here */
        uint32_t total = 0;
        for (uint32_t b = 0; b < BUCKETS; b++) {
            uint32_t count = starts[b];
            starts[b] = total;
            total += count;
        }
        for (uint32_t i = 0; i < n; i++) /* 0.1 s at most for the largest tables */
            spare[starts[(keys[i].key >> shift) & (BUCKETS - 1)]++] = keys[i];
        struct keyed *swap = keys;
        keys = spare;
        spare = swap;
    }
    *sorted = keys;
    return true;
}

enum { FEW_RUNS = 4 /* are merged sooner than sorted */ };

/* Rows that stand in order already, one run behind the other: of arms of a compound, or of partitions. */
struct runs {
    uint32_t starts[FEW_RUNS + 1]; /* and the end of the last */
    uint32_t n;                    /* more than FEW_RUNS: they are not counted any more */
};

static void find_runs(struct runs *r, const struct keyed *keys, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end && r->n <= FEW_RUNS; i++) {
        if (i && keys[i].key >= keys[i - 1].key)
            continue;
        if (r->n < FEW_RUNS)
            r->starts[r->n] = i;
        r->n++;
    }
}

/* Merges [lo, mid) and [mid, hi); of equal keys those of the first come first. */
static void merge(const struct keyed *keys, uint32_t lo, uint32_t mid, uint32_t hi, struct keyed *out)
{
    uint32_t a = lo, b = mid;
    out += lo;
    while (a < mid && b < hi) {
        bool second = keys[b].key < keys[a].key;
        *out++ = keys[second ? b : a];
        b += second;
        a += !second;
    }
    memcpy(out, keys + a, (mid - a) * sizeof *keys);
    memcpy(out + (mid - a), keys + b, (hi - b) * sizeof *keys);
}

static bool merge_runs(struct runs *r, struct keyed *keys, struct keyed *spare, uint32_t n, struct keyed **sorted,
                       stop_flag *stop)
{
    r->starts[r->n] = n;
    while (r->n > 1) {
        uint32_t kept = 0;
        if (stop_asked(stop))
            return false;
        for (uint32_t k = 0; k < r->n; k += 2) {
            uint32_t lo = r->starts[k], mid = r->starts[k + 1], hi = k + 1 < r->n ? r->starts[k + 2] : mid;
            merge(keys, lo, mid, hi, spare);
            r->starts[kept++] = lo;
        }
        r->starts[kept] = n;
        r->n = kept;
        struct keyed *swap = keys;
        keys = spare;
        spare = swap;
    }
    *sorted = keys;
    return true;
}

/* The `limit` smallest rows, in order, to the front: candidates are kept in a buffer of twice the limit. */
static bool select_smallest(const struct coder *c, uint32_t n_coders, uint32_t limit, uint32_t *rows, uint32_t n,
                            stop_flag *stop)
{
    struct keyed *best = mem_alloc(2 * (size_t)limit * sizeof *best);
    uint64_t worst = 0, keys[BLOCK];
    uint32_t held = 0;
    bool full = false, ok = best != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = i % BLOCK || !stop_asked(stop);
        if (i % BLOCK == 0)
            keys_of(c, n_coders, rows + i, n - i < BLOCK ? n - i : BLOCK, keys);
        uint64_t key = keys[i % BLOCK];
        if (full && key >= worst) /* an equal one that came earlier stays */
            continue;
        best[held++] = (struct keyed){key, rows[i], i};
        if (held == 2 * limit) {
            ok = stop_sort(best, held, sizeof *best, by_key, stop);
            held = limit;
            worst = best[limit - 1].key;
            full = true;
        }
    }
    ok = ok && stop_sort(best, held, sizeof *best, by_key, stop);
    for (uint32_t i = 0; ok && i < limit && i < held; i++)
        rows[i] = best[i].row;
    mem_free(best);
    return ok;
}

static bool key_sort(const struct coder *c, uint32_t n_coders, unsigned bits, uint32_t *rows, uint32_t n,
                     stop_flag *stop)
{
    enum { SMALL = 128 };
    struct keyed small[SMALL];
    struct keyed *keys = n <= SMALL ? small : mem_alloc((size_t)n * sizeof *keys);
    struct keyed *spare = n <= SMALL ? NULL : mem_alloc((size_t)n * sizeof *keys), *sorted = keys;
    bool ok = keys && (spare || n <= SMALL);
    struct runs runs = {.n = 0};
    for (uint32_t from = 0; ok && from < n; from += BLOCK) {
        uint64_t block[BLOCK];
        uint32_t count = n - from < BLOCK ? n - from : BLOCK;
        keys_of(c, n_coders, rows + from, count, block);
        for (uint32_t i = 0; i < count; i++)
            keys[from + i] = (struct keyed){block[i], rows[from + i], from + i};
        find_runs(&runs, keys, from, from + count);
        ok = !stop_asked(stop);
    }
    if (ok) {
        if (n <= SMALL)
            qsort(keys, n, sizeof *keys, by_key);
        else if (runs.n <= FEW_RUNS)
            ok = merge_runs(&runs, keys, spare, n, &sorted, stop);
        else
            ok = radix_sort(keys, spare, n, bits, &sorted, stop);
        for (uint32_t i = 0; ok && i < n; i++)
            rows[i] = sorted[i].row;
    }
    if (keys != small)
        mem_free(keys);
    mem_free(spare);
    return ok;
}

/* Are the rows, ascending by number, in order by the column? Strings are sorted by their ids, which only says that
 * equal ones are together. */
static bool is_sorted(const struct table *t, int column, bool grouped)
{
    if (column == VTAB_ROW)
        return true;
    return t->columns[column].sorted && (grouped || t->columns[column].type != COL_STR);
}

static bool follows_rows(const struct table *t, struct plan_order term, bool grouped)
{
    return !term.desc && is_sorted(t, term.column, grouped);
}

enum { MOST_SELECTED = 4096 /* rows: more are sorted sooner with all others */ };

static bool sort_rows(const struct table *t, const struct strpool *strings, const struct plan_order *terms,
                      uint32_t n_terms, bool grouped, uint32_t limit, uint32_t *rows, uint32_t n, stop_flag *stop)
{
    struct coder coders[PLAN_MAX_ORDER] = {{0}};
    bool ok = n > 1;
    for (uint32_t i = 0; ok && i < n_terms; i++)
        ok = coder_init(&coders[i], t, strings, terms[i], grouped, rows, n, stop);
    /* From the last terms to the first, as many at a time as fit a word. */
    for (uint32_t end = n_terms; ok && end > 0;) {
        uint32_t first = end - 1;
        unsigned bits = coders[first].bits;
        while (first > 0 && bits + coders[first - 1].bits <= 64)
            bits += coders[--first].bits;
        if (bits == 0)
            ; /* one value */
        else if (first == 0 && end == n_terms && limit < n / 8 && limit > 0 && limit <= MOST_SELECTED)
            ok = select_smallest(coders, n_terms, limit, rows, n, stop);
        else if (end - first == 1 && bits <= 16 && n > 1024)
            ok = counting_sort(&coders[first], rows, n, stop);
        else
            ok = key_sort(coders + first, end - first, bits, rows, n, stop);
        end = first;
    }
    for (uint32_t i = 0; i < n_terms; i++)
        coder_free(&coders[i]);
    return ok || n <= 1;
}

bool order_rows(const struct table *t, const struct strpool *strings, const struct plan_order *terms, uint32_t n_terms,
                bool grouped, uint32_t limit, uint32_t *rows, uint32_t n, stop_flag *stop)
{
    while (n_terms && follows_rows(t, terms[n_terms - 1], grouped))
        n_terms--; /* stable sorts keep them */
    return sort_rows(t, strings, terms, n_terms, grouped, limit, rows, n, stop);
}

bool order_rows_anew(const struct table *t, const struct strpool *strings, const struct plan_order *terms,
                     uint32_t n_terms, uint32_t *rows, uint32_t n, stop_flag *stop)
{
    return sort_rows(t, strings, terms, n_terms, false, 0, rows, n, stop);
}

/* Row numbers digit by digit. */
static bool sort_numbers(uint32_t *rows, uint32_t n, stop_flag *stop)
{
    enum { DIGIT = 11, BUCKETS = 1 << DIGIT };
    uint32_t *spare = mem_alloc((size_t)n * sizeof *spare), *from = rows, *to = spare;
    bool ok = spare != NULL;
    for (unsigned shift = 0; ok && shift < 32; shift += DIGIT) {
        uint32_t starts[BUCKETS] = {0}, total = 0;
        for (uint32_t i = 0; i < n; i++)
            starts[from[i] >> shift & (BUCKETS - 1)]++;
        for (uint32_t b = 0; b < BUCKETS; b++) {
            uint32_t count = starts[b];
            starts[b] = total;
            total += count;
        }
        for (uint32_t i = 0; i < n; i++)
            to[starts[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
        ok = !stop_asked(stop);
    }
    if (ok && from != rows)
        memcpy(rows, from, (size_t)n * sizeof *rows);
    mem_free(spare);
    return ok;
}

bool order_ascending(uint32_t *rows, uint32_t n, stop_flag *stop)
{
    enum { FEW = 4096 };
    uint32_t at = 1;
    while (at < n && rows[at] > rows[at - 1])
        at++;
    return at >= n || (n < FEW ? stop_sort(rows, n, sizeof *rows, compare_u32, stop) : sort_numbers(rows, n, stop));
}

static bool same_value(const struct column *c, uint32_t a, uint32_t b)
{
    int64_t x = column_get(c, a), y = column_get(c, b);
    if (c->type != COL_F64 || x == y)
        return x == y;
    return one_zero(column_f64_order(x)) == one_zero(column_f64_order(y));
}

uint32_t order_dedupe(const struct table *t, const struct plan_order *terms, uint32_t n_terms, uint32_t *rows,
                      uint32_t n)
{
    uint32_t kept = n ? 1 : 0;
    for (uint32_t i = 1; i < n; i++) {
        bool same = true;
        for (uint32_t k = 0; same && k < n_terms; k++)
            same = terms[k].column != VTAB_ROW && same_value(&t->columns[terms[k].column], rows[i], rows[kept - 1]);
        if (!same)
            rows[kept++] = rows[i];
    }
    return kept;
}

bool order_is_natural(const struct table *t, const struct plan_order *terms, uint32_t n_terms, bool grouped,
                      bool *reverse)
{
    *reverse = false;
    if (n_terms == 0)
        return true;
    bool row = terms[0].column == VTAB_ROW;
    if (!is_sorted(t, terms[0].column, grouped))
        return false;
    if (!row && n_terms > 1) {
        for (uint32_t i = 0; i < n_terms; i++) /* sorted columns all the way: the same order */
            if (!follows_rows(t, terms[i], grouped))
                return false;
        return true;
    }
    *reverse = terms[0].desc && !grouped;
    return true;
}
