/* Aggregates: what each adds for a row, and its result, as SQLite has them. */
#include "sql/plan/aggregate.h"

#include "base/hash.h"
#include "sql/plan/varied.h"

#include <math.h>
#include <string.h>

struct pair {
    int64_t word;
    uint32_t group; /* + 1; 0: free */
};

static void fail(struct run *r, int rc)
{
    if (!r->rc)
        r->rc = rc;
}

enum plan_type accumulator_type(const struct accumulator *a)
{
    switch (a->of->kind) {
    case AGG_COUNT_ROWS:
    case AGG_COUNT:
        return PLAN_INT;
    case AGG_SUM:
    case AGG_MIN:
    case AGG_MAX:
        return (enum plan_type)a->of->arg->type;
    case AGG_CONCAT:
        return PLAN_TEXT;
    default:
        return PLAN_REAL;
    }
}

/* Do averages, or whether a sum overflows on its way, depend on the order in which SQLite adds? */
static bool watches_sizes(const struct accumulator *a, const struct run *r)
{
    return (r->plan->unordered || a->of->distinct) && a->of->arg && a->of->arg->type == PLAN_INT &&
           (a->of->kind == AGG_AVG || a->of->kind == AGG_TOTAL || a->of->kind == AGG_SUM);
}

static bool is_mixed(const struct accumulator *a)
{
    return a->of->kind == AGG_SUM && a->of->arg->mixed;
}

static bool resize(struct run *r, void **p, size_t size, uint32_t from, uint32_t to)
{
    if (!run_alloc(r, (uint64_t)size * (to - from)))
        return false;
    void *bigger = mem_realloc(*p, size * to);
    if (!bigger) {
        fail(r, SQLITE_NOMEM);
        return false;
    }
    memset((char *)bigger + size * from, 0, size * (to - from));
    *p = bigger;
    return true;
}

bool accumulator_grow(struct accumulator *a, struct run *r, uint32_t from, uint32_t to)
{
    bool ok = resize(r, (void **)&a->sums, sizeof *a->sums, from, to);
    if (ok && (watches_sizes(a, r) || is_mixed(a)))
        ok = resize(r, (void **)&a->sizes, sizeof *a->sizes, from, to);
    if (ok && a->of->kind == AGG_CONCAT) {
        ok = resize(r, (void **)&a->texts, sizeof *a->texts, from, to);
        a->n_texts = ok ? to : a->n_texts;
    }
    return ok;
}

/* ---- adding ---- */

struct input {
    const uint32_t *ids;
    const int64_t *words;
    const int64_t *filter; /* NULL: all rows */
    int64_t null;
    uint32_t n;
};

static inline bool is_in(const struct input *in, uint32_t i)
{
    return (!in->filter || in->filter[i] == 1) && in->words[i] != in->null;
}

static void add_integers(struct accumulator *a, struct run *r, const struct input *in)
{
    bool overflow = false, real = a->of->kind != AGG_SUM;
    for (uint32_t i = 0; i < in->n; i++) {
        struct sum *s = &a->sums[in->ids[i]];
        if (!is_in(in, i))
            continue;
        s->n++;
        if (real)
            s->d += (double)in->words[i];
        else
            overflow |= __builtin_add_overflow(s->i, in->words[i], &s->i);
        if (a->sizes && a->sizes[in->ids[i]] < 1ull << 62)
            a->sizes[in->ids[i]] += (uint64_t)(in->words[i] < 0 ? -in->words[i] : in->words[i]) >> 1;
    }
    if (overflow) /* SQLite has an error for it */
        fail(r, RUN_GAVE_UP);
}

static void add_reals(struct accumulator *a, const struct input *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        if (!is_in(in, i))
            continue;
        a->sums[in->ids[i]].n++;
        a->sums[in->ids[i]].d += column_f64(in->words[i]);
    }
}

static void add_mixed(struct accumulator *a, const struct input *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        struct sum *s = &a->sums[in->ids[i]];
        if (!is_in(in, i))
            continue;
        bool whole = mixed_is_whole(in->words[i]);
        s->n++;
        s->d += column_f64(mixed_real_word(in->words[i]));
        s->i += whole ? mixed_integer(in->words[i]) : 0;
        a->sizes[in->ids[i]] |= !whole;
    }
}

static int compare(const struct run *r, const struct plan_expr *of, int64_t a, int64_t b)
{
    enum plan_type type = (enum plan_type)of->type;
    if (of->varied)
        return a == b ? 0 : varied_compare(&r->e->storage->strings, a, b);
    if (type == PLAN_REAL) {
        double x = column_f64(a), y = column_f64(b);
        return (x > y) - (x < y);
    }
    if (type != PLAN_TEXT || a == b)
        return (a > b) - (a < b);
    struct slice s = strpool_view(&r->e->storage->strings, (strid)a);
    struct slice t = strpool_view(&r->e->storage->strings, (strid)b);
    int order = memcmp(s.p, t.p, s.len < t.len ? s.len : t.len);
    return order ? order : (s.len > t.len) - (s.len < t.len);
}

static void keep_extremes(struct accumulator *a, struct run *r, const struct input *in, uint8_t *extremes)
{
    bool largest = a->of->kind == AGG_MAX;
    for (uint32_t i = 0; i < in->n; i++) {
        struct sum *s = &a->sums[in->ids[i]];
        if (in->filter && in->filter[i] != 1)
            continue;
        enum extreme is = s->n == 0 ? EXTREME_NULL : EXTREME_NOT;
        if (in->words[i] != in->null) {
            int order = s->n ? compare(r, a->of->arg, in->words[i], s->i) : largest ? 1 : -1;
            is = (largest ? order > 0 : order < 0) ? EXTREME_BETTER : order == 0 ? EXTREME_EQUAL : EXTREME_NOT;
            if (is == EXTREME_BETTER)
                s->i = in->words[i];
            s->n++;
        }
        if (extremes)
            extremes[i] = (uint8_t)is;
    }
}

/* Without the secret all pairs of two equal numbers have one hash: a group's number and an id go alike. */
static struct pair *find(const struct accumulator *a, struct pair *set, uint64_t mask, uint32_t group, int64_t word)
{
    uint64_t at = hash_combine(group ^ a->secret, (uint64_t)word) & mask;
    while (set[at].group && (set[at].group != group || set[at].word != word))
        at = (at + 1) & mask;
    return &set[at];
}

static bool grow_set(struct accumulator *a, struct run *r)
{
    uint64_t size = a->set ? (a->set_mask + 1) * 2 : 4096;
    a->secret = hash_secret();
    struct pair *bigger = run_alloc(r, size * sizeof *bigger) ? mem_zalloc(size * sizeof *bigger) : NULL;
    if (!bigger) {
        fail(r, SQLITE_NOMEM);
        return false;
    }
    for (uint64_t i = 0; a->set && i <= a->set_mask; i++)
        if (a->set[i].group)
            *find(a, bigger, size - 1, a->set[i].group, a->set[i].word) = a->set[i];
    mem_free(a->set);
    a->set = bigger;
    a->set_mask = size - 1;
    return true;
}

/* Which values are the first of their kind in their group. */
static void find_first(struct accumulator *a, struct run *r, const struct input *in, int64_t *first)
{
    int64_t minus_zero = a->of->arg->type == PLAN_REAL ? column_f64_word(-0.0) : in->null;
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t word = in->words[i];
        bool counts = is_in(in, i);
        first[i] = 0;
        if (!counts)
            continue;
        word = word == minus_zero ? 0 : word;
        if ((!a->set || a->n_set * 2 > a->set_mask) && !grow_set(a, r))
            return;
        struct pair *p = find(a, a->set, a->set_mask, in->ids[i] + 1, word);
        if (p->group)
            continue;
        *p = (struct pair){word, in->ids[i] + 1};
        a->n_set++;
        first[i] = 1;
    }
}

static bool add_text(struct run *r, struct growing_text *t, const void *p, size_t n)
{
    if (t->n + n + 1 > t->cap) {
        uint64_t cap = 2ull * (t->n + n) + 16;
        if (cap > UINT32_MAX / 4 || !run_alloc(r, cap - t->cap)) {
            fail(r, RUN_GAVE_UP);
            return false;
        }
        char *bigger = mem_realloc(t->p, cap);
        if (!bigger) {
            fail(r, SQLITE_NOMEM);
            return false;
        }
        t->p = bigger;
        t->cap = (uint32_t)cap;
    }
    memcpy(t->p + t->n, p, n);
    t->n += (uint32_t)n;
    return true;
}

static void concatenate(struct accumulator *a, struct run *r, const struct input *in)
{
    const struct strpool *strings = &r->e->storage->strings;
    enum plan_type type = (enum plan_type)a->of->arg->type;
    struct format_text number = {0};
    for (uint32_t i = 0; i < in->n && !r->rc; i++) {
        struct growing_text *t = &a->texts[in->ids[i]];
        if (!is_in(in, i))
            continue;
        if (t->any && !add_text(r, t, a->of->separator.p, a->of->separator.len))
            break;
        t->any = true;
        if (type == PLAN_TEXT) {
            struct slice s = strpool_view(strings, (strid)in->words[i]);
            add_text(r, t, s.p, s.len);
            continue;
        }
        number.n = 0;
        if (format_put(&number, strings, type, in->words[i]))
            add_text(r, t, number.p, number.n);
        else
            fail(r, SQLITE_NOMEM);
    }
    mem_free(number.p);
}

/* Of texts that are put together for it. */
static void concatenate_made(struct accumulator *a, struct run *r, const struct batch *b, const struct input *in)
{
    const struct plan_expr *x = a->of->arg;
    const int64_t *args[PLAN_MAX_CALL_ARGS] = {NULL};
    struct format_text made = {0};
    for (uint32_t k = 0; k < x->n_args; k++)
        args[k] = eval(r, x->args[k], b);
    for (uint32_t i = 0; i < in->n && !r->rc; i++) {
        struct growing_text *t = &a->texts[in->ids[i]];
        if (in->filter && in->filter[i] != 1)
            continue;
        made.n = 0;
        enum format_result done = format_make(x, &r->e->storage->strings, args, i, &made);
        if (done == FORMAT_NULL)
            continue;
        if (done != FORMAT_TEXT)
            fail(r, done == FORMAT_ASK ? RUN_GAVE_UP : SQLITE_NOMEM);
        else if (!t->any || add_text(r, t, a->of->separator.p, a->of->separator.len))
            t->any = add_text(r, t, made.p, made.n);
    }
    mem_free(made.p);
}

static void collect(struct accumulator *a, struct run *r, const struct input *in)
{
    bool real = a->of->arg->type == PLAN_REAL;
    if (!run_alloc(r, in->n * 12ull))
        return;
    if (!vec_reserve(&a->values, a->values.n + in->n) || !vec_reserve(&a->groups, a->groups.n + in->n)) {
        fail(r, SQLITE_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < in->n; i++) {
        if (!is_in(in, i))
            continue;
        double v = real ? column_f64(in->words[i]) : (double)in->words[i];
        if (isinf(v)) /* an error */
            fail(r, RUN_GAVE_UP);
        a->values.p[a->values.n++] = v;
        a->groups.p[a->groups.n++] = in->ids[i];
        a->sums[in->ids[i]].n++;
    }
}

void accumulate(struct accumulator *a, struct run *r, const struct batch *b, const uint32_t *ids, uint8_t *extremes)
{
    int64_t passed[BATCH];
    struct input in = {.ids = ids, .n = b->n};
    if (a->of->filter) {
        const int64_t *v = eval(r, a->of->filter, b);
        bool real = a->of->filter->type == PLAN_REAL;
        for (uint32_t i = 0; i < b->n; i++)
            passed[i] = real ? v[i] != COL_NULL_F64 && column_f64(v[i]) != 0 : v[i] != COL_NULL && v[i] != 0;
        in.filter = passed;
    }
    if (a->of->kind == AGG_COUNT_ROWS) {
        for (uint32_t i = 0; i < b->n; i++)
            a->sums[ids[i]].n += !in.filter || passed[i];
        return;
    }
    bool makes = a->of->kind == AGG_CONCAT && !a->of->distinct && a->of->arg->format && !format_counts(a->of->arg);
    if (makes) {
        concatenate_made(a, r, b, &in);
        return;
    }
    in.words = eval(r, a->of->arg, b);
    in.null = plan_null((enum plan_type)a->of->arg->type);
    if (r->rc)
        return;
    if (a->of->distinct) {
        find_first(a, r, &in, passed);
        in.filter = passed;
    }
    if (r->rc)
        return;
    switch (a->of->kind) {
    case AGG_COUNT:
        for (uint32_t i = 0; i < b->n; i++)
            a->sums[ids[i]].n += is_in(&in, i);
        break;
    case AGG_SUM:
    case AGG_TOTAL:
    case AGG_AVG:
        if (is_mixed(a))
            add_mixed(a, &in);
        else if (a->of->arg->type == PLAN_REAL)
            add_reals(a, &in);
        else
            add_integers(a, r, &in);
        break;
    case AGG_MIN:
    case AGG_MAX:
        keep_extremes(a, r, &in, extremes);
        break;
    case AGG_CONCAT:
        concatenate(a, r, &in);
        break;
    default:
        collect(a, r, &in);
        break;
    }
}

/* ---- results ---- */

static inline void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

/* Puts the k-th smallest of p[0, n) at its place, smaller ones before it. */
static void select_kth(double *p, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, i = lo, j = hi;
        if (p[mid] < p[lo])
            swap(&p[mid], &p[lo]);
        if (p[hi] < p[lo])
            swap(&p[hi], &p[lo]);
        if (p[hi] < p[mid])
            swap(&p[hi], &p[mid]);
        double pivot = p[mid];
        while (i <= j) {
            while (p[i] < pivot)
                i++;
            while (p[j] > pivot)
                j--;
            if (i <= j) {
                swap(&p[i], &p[j]);
                i++;
                if (j == 0)
                    break;
                j--;
            }
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            return;
    }
}

static double percentile(double *p, size_t n, double fraction, bool discrete)
{
    double at = fraction * (double)(n - 1);
    size_t i = (size_t)at;
    select_kth(p, n, i);
    double v = p[i];
    if (!discrete && i + 1 < n) {
        double next = p[i + 1];
        for (size_t k = i + 2; k < n; k++)
            next = p[k] < next ? p[k] : next;
        v += (next - v) * (at - (double)i);
    }
    return v;
}

/* Values of one group put side by side. */
static void find_percentiles(struct accumulator *a, struct run *r, uint32_t n_groups, int64_t *out)
{
    uint64_t at = 0;
    double *sorted = run_alloc(r, a->values.n * sizeof *sorted) ? mem_alloc((a->values.n + 1) * sizeof *sorted) : NULL;
    uint64_t *places = mem_alloc(((size_t)n_groups + 1) * sizeof *places);
    if (!sorted || !places) {
        fail(r, SQLITE_NOMEM);
    } else {
        for (uint32_t g = 0; g < n_groups; g++) {
            places[g] = at;
            at += (uint64_t)a->sums[g].n;
        }
        for (size_t i = 0; i < a->values.n; i++)
            sorted[places[a->groups.p[i]]++] = a->values.p[i];
        for (uint32_t g = 0; g < n_groups && !run_stopped(r); g++) {
            size_t n = (size_t)a->sums[g].n;
            out[g] = n ? column_f64_word(
                             percentile(sorted + places[g] - n, n, a->of->fraction, a->of->kind == AGG_PERCENTILE_DISC))
                       : COL_NULL_F64;
        }
    }
    mem_free(sorted);
    mem_free(places);
}

static int64_t sum_of_integers(const struct sum *s, struct run *r)
{
    int64_t word;
    if (!mixed_from_integer(s->i, &word))
        fail(r, RUN_GAVE_UP);
    return word;
}

static int64_t result_of(struct accumulator *a, struct run *r, uint32_t g)
{
    const struct sum *s = &a->sums[g];
    enum plan_type type = accumulator_type(a);
    /* beyond the integers that doubles hold, or those of 64 bits, the order shows */
    if (a->sizes && a->sizes[g] >= (a->of->kind == AGG_SUM ? 1ull << 61 : 1ull << 51))
        fail(r, RUN_GAVE_UP);
    switch (a->of->kind) {
    case AGG_COUNT_ROWS:
    case AGG_COUNT:
        return s->n;
    case AGG_TOTAL:
        return column_f64_word(s->d);
    case AGG_AVG:
        return s->n ? column_f64_word(s->d / (double)s->n) : COL_NULL_F64;
    case AGG_CONCAT: {
        const struct growing_text *t = &a->texts[g];
        const uint32_t before = r->e->storage->strings.n;
        strid id = t->any ? strpool_intern(&r->e->storage->strings, t->p ? t->p : "", t->n) : 0;
        run_note_texts(r, before, t->n);
        if (t->any && !id)
            fail(r, SQLITE_NOMEM);
        return id;
    }
    default:
        if (!s->n)
            return plan_null(type);
        if (is_mixed(a) && !a->sizes[g])
            return sum_of_integers(s, r);
        if (a->of->kind == AGG_SUM && type == PLAN_REAL)
            return column_f64_word(s->d);
        if (a->of->kind == AGG_SUM && s->i == COL_NULL)
            fail(r, RUN_GAVE_UP);
        return s->i;
    }
}

int64_t *accumulator_results(struct accumulator *a, struct run *r, uint32_t n_groups)
{
    int64_t *out = run_alloc(r, n_groups * 8ull) ? mem_alloc(((size_t)n_groups + 1) * sizeof *out) : NULL;
    if (!out) {
        fail(r, SQLITE_NOMEM);
        return NULL;
    }
    if (a->of->kind >= AGG_PERCENTILE)
        find_percentiles(a, r, n_groups, out);
    else
        for (uint32_t g = 0; g < n_groups && !r->rc; g++)
            out[g] = result_of(a, r, g);
    return out;
}

void accumulator_free(struct accumulator *a)
{
    for (uint32_t i = 0; i < a->n_texts; i++)
        mem_free(a->texts[i].p);
    mem_free(a->sums);
    mem_free(a->sizes);
    mem_free(a->texts);
    mem_free(a->set);
    vec_free(&a->values);
    vec_free(&a->groups);
}
