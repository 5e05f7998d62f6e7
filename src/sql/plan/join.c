/* The rows of the sources: one is scanned, each further one is joined by its row number or by its keys.
 * Batches of row numbers go from step to step; values are fetched when an expression asks for them. */
#include "sql/plan/join_private.h"
#include "sql/vtab/vtab.h"

#include <string.h>

/* ---- the rows of a source by key ---- */

void join_zip_keys(const int64_t *const *keys, uint32_t n_keys, uint32_t n, int64_t *out)
{
    if (n_keys == 1) {
        memcpy(out, keys[0], n * sizeof *out);
        return;
    }
    for (uint32_t k = 0; k < n_keys; k++)
        for (uint32_t i = 0; i < n; i++)
            out[(size_t)i * n_keys + k] = keys[k][i];
}

/* Keeps rows whose partner in a later join by row, which only they decide, passes that one's tests. */
static uint32_t keep_partnered(struct join *j, const struct plan_step *step, uint32_t *rows, uint32_t n)
{
    const struct query_plan *p = j->r->plan;
    for (uint32_t at = 1; at < p->n_steps && n && !p->right; at++) {
        const struct plan_step *s = &p->steps[at];
        const struct key_index *h = &j->steps[at].index;
        if (!s->by_row || !h->passes || s->keys[0]->sources != 1u << step->source || p->sources[s->source].left)
            continue;
        struct batch b = {.n = n, .serial = ++j->r->serial};
        b.rows[step->source] = rows;
        const int64_t *keys = eval(j->r, s->keys[0], &b);
        int64_t n_rows = j->r->tables[s->source]->n_rows;
        uint32_t left = 0;
        for (uint32_t i = 0; i < n; i++) {
            rows[left] = rows[i];
            left += keys[i] >= 0 && keys[i] < n_rows && h->passes[keys[i]];
        }
        n = left;
    }
    return n;
}

bool join_index_build(struct join *j, const struct plan_step *step, struct key_index *h, const int64_t *only,
                      uint32_t n_only)
{
    struct run *r = j->r;
    struct scan scan;
    uint32_t rows[BATCH + 8], n;
    const struct table *t = r->tables[step->source];
    bool inner = !r->plan->sources[step->source].left;
    scan_open(r, step, &scan);
    if (only)
        narrow_to_keys(r, &scan, step, only, n_only);
    int64_t *words = mem_alloc((step->n_keys + 1) * (size_t)BATCH * 2 * sizeof *words);
    if (!words)
        r->rc = SQLITE_NOMEM;
    while (words && scan_next(r, &scan, step->source, rows, &n)) {
        const int64_t *keys[PLAN_MAX_KEYS];
        int64_t *zipped = words + (size_t)step->n_keys * BATCH;
        n = inner ? keep_partnered(j, step, rows, n) : n;
        if (!key_index_room(r, step, h, n))
            break;
        for (uint32_t k = 0; k < step->n_keys && n; k++) {
            int64_t *column = words + (size_t)k * BATCH;
            if (step->columns[k] == VTAB_ROW)
                for (uint32_t i = 0; i < n; i++)
                    column[i] = rows[i];
            else
                column_gather(&t->columns[step->columns[k]], rows, n, column);
            keys[k] = column;
        }
        if (step->n_keys && n)
            join_zip_keys(keys, step->n_keys, n, zipped);
        for (uint32_t i = 0; i < n; i++) {
            const int64_t *key = zipped + (size_t)i * step->n_keys;
            if (join_is_null_key(step, key))
                continue;
            memcpy(h->keys + (size_t)h->n * step->n_keys, key, step->n_keys * sizeof *key);
            h->rows[h->n++] = rows[i];
        }
    }
    mem_free(words);
    scan_close(&scan);
    if (!step->n_keys && !step->n_ranges && h->n > 64) /* every row with every row: SQLite may know better */
        r->rc = RUN_GAVE_UP;
    return !r->rc && key_index_finish(r, step, h);
}

/* ---- from step to step ---- */

static void run_step(struct join *j, uint32_t at, const struct batch *b);

/* Filters the batch by what can be checked now, and hands it on. */
static void hand_on(struct join *j, uint32_t at, struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct step_state *st = &j->steps[at];
    uint32_t *keep = st->keep;
    if (!b->n || j->enough || run_stopped(j->r))
        return;
    b->serial = ++j->r->serial;
    if (s->n_where) {
        uint32_t n = eval_filter(j->r, s->where, s->n_where, b, keep);
        if (n < b->n) {
            for (uint32_t k = 0; k <= at; k++) {
                uint8_t source = j->r->plan->steps[k].source;
                for (uint32_t i = 0; i < n; i++)
                    st->filtered[source][i] = b->rows[source][keep[i]];
                b->rows[source] = st->filtered[source];
            }
            b->n = n;
            b->serial = ++j->r->serial;
        }
    }
    if (b->n && !j->r->rc)
        run_step(j, at + 1, b);
}

void join_flush(struct join *j, uint32_t at)
{
    struct step_state *st = &j->steps[at];
    struct batch b = {.n = st->n_out};
    for (uint32_t k = 0; k <= at; k++)
        b.rows[j->r->plan->steps[k].source] = st->out[j->r->plan->steps[k].source];
    hand_on(j, at, &b);
    st->n_out = 0;
}

static inline void put(struct join *j, uint32_t at, const struct batch *b, uint32_t i, uint32_t row)
{
    struct step_state *st = &j->steps[at];
    const struct plan_step *steps = j->r->plan->steps;
    for (uint32_t k = 0; k < at; k++)
        st->out[steps[k].source][st->n_out] = b->rows[steps[k].source][i];
    st->out[steps[at].source][st->n_out] = row;
    if (st->matched && row != (uint32_t)NO_ROW)
        st->matched[row] = 1;
    if (++st->n_out == BATCH)
        join_flush(j, at);
}

void join_put_none(struct join *j, uint32_t at, const struct batch *b, uint32_t i)
{
    put(j, at, b, i, (uint32_t)NO_ROW);
}

/* Does one pair pass what ON says beyond the keys? */
static bool pair_passes(struct join *j, uint32_t at, const struct batch *b, uint32_t i, uint32_t row)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    uint32_t rows[PLAN_ALL_SOURCES], keep[1];
    if (!s->n_after)
        return true;
    struct batch one = {.n = 1, .serial = ++j->r->serial};
    for (uint32_t k = 0; k < at; k++) {
        uint8_t source = j->r->plan->steps[k].source;
        rows[source] = b->rows[source][i];
        one.rows[source] = &rows[source];
    }
    rows[s->source] = row;
    one.rows[s->source] = &rows[s->source];
    return eval_filter(j->r, s->after, s->n_after, &one, keep) == 1;
}

/* Hands on a batch whose rows have one partner each. */
static void put_all(struct join *j, uint32_t at, const struct batch *b, const int64_t *keys)
{
    const struct plan_step *steps = j->r->plan->steps;
    uint32_t *partners = j->steps[at].out[steps[at].source];
    struct batch pairs = {.n = b->n};
    if (j->steps[at].n_out)
        join_flush(j, at);
    for (uint32_t i = 0; i < b->n; i++)
        partners[i] = (uint32_t)keys[i];
    for (uint32_t k = 0; k < at; k++)
        pairs.rows[steps[k].source] = b->rows[steps[k].source];
    pairs.rows[steps[at].source] = partners;
    hand_on(j, at, &pairs);
}

/* Joins a batch to the only row of a source, which no key finds: a sum of all, the bounds of a window. */
static void join_to_one(struct join *j, uint32_t at, const struct batch *b)
{
    int64_t *keys = j->steps[at].keys;
    for (uint32_t i = 0; i < b->n; i++)
        keys[i] = j->steps[at].index.rows[0];
    put_all(j, at, b, keys);
}

/* The pairs of the rows found, as many at a time as the batch has room for. */
static void put_found(struct join *j, uint32_t at, const struct batch *b, const uint32_t *found, uint32_t n,
                      const int64_t *keys)
{
    struct step_state *st = &j->steps[at];
    const struct plan_step *steps = j->r->plan->steps;
    for (uint32_t i = 0; st->matched && i < n; i++)
        st->matched[keys[found[i]]] = 1;
    if (n == b->n) {
        put_all(j, at, b, keys);
        return;
    }
    for (uint32_t done = 0; done < n && !j->r->rc && !j->enough;) {
        uint32_t room = BATCH - st->n_out, take = n - done < room ? n - done : room;
        for (uint32_t k = 0; k < at; k++) {
            const uint32_t *from = b->rows[steps[k].source];
            uint32_t *to = st->out[steps[k].source] + st->n_out;
            for (uint32_t i = 0; i < take; i++)
                to[i] = from[found[done + i]];
        }
        uint32_t *to = st->out[steps[at].source] + st->n_out;
        for (uint32_t i = 0; i < take; i++)
            to[i] = (uint32_t)keys[found[done + i]];
        st->n_out += take;
        done += take;
        if (st->n_out == BATCH)
            join_flush(j, at);
    }
}

/* Those of n rows of the step's source that pass its tests, as places in the list, in st->keep. */
static uint32_t test_rows(struct join *j, uint32_t at, const uint32_t *rows, uint32_t n)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct batch b = {.n = n, .serial = ++j->r->serial};
    b.rows[s->source] = rows;
    j->r->visited += n;
    return eval_filter(j->r, s->tests, s->n_tests, &b, j->steps[at].keep);
}

/* Of the places found whose rows pass the tests that nobody has tried on all rows. */
static uint32_t keep_tested(struct join *j, uint32_t at, const int64_t *keys, uint32_t *found, uint32_t n)
{
    uint32_t *rows = j->steps[at].list;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (uint32_t)keys[found[i]];
    n = n ? test_rows(j, at, rows, n) : 0;
    for (uint32_t i = 0; i < n; i++)
        found[i] = found[j->steps[at].keep[i]];
    return n;
}

static void join_by_row(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    bool left = j->r->plan->sources[s->source].left;
    const struct key_index *h = &j->steps[at].index;
    uint32_t n_rows = j->r->tables[s->source]->n_rows, *found = j->steps[at].found;
    int64_t *keys = j->steps[at].keys; /* what follows evaluates, too */
    memcpy(keys, eval(j->r, s->keys[0], b), b->n * sizeof *keys);
    uint32_t n = key_index_partners(h, keys, b->n, n_rows, found);
    if (j->steps[at].tests_found)
        n = keep_tested(j, at, keys, found, n);
    if (!s->n_after && (!left || n == b->n)) {
        put_found(j, at, b, found, n, keys);
        return;
    }
    for (uint32_t i = 0, next = 0; i < (left ? b->n : n) && !j->r->rc && !j->enough; i++) {
        uint32_t row = left ? i : found[i];
        bool there = !left || (next < n && found[next] == i);
        next += left && there;
        there = there && pair_passes(j, at, b, row, (uint32_t)keys[row]);
        if (there || left)
            put(j, at, b, row, there ? (uint32_t)keys[row] : (uint32_t)NO_ROW);
    }
}

/* The pairs of one row. */
static void join_row(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const int64_t *key)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct key_index *h = &j->steps[at].index;
    bool any = false;
    uint32_t place = join_is_null_key(s, key) ? 0 : key_index_first(h, s->n_keys, key);
    while (place && !j->r->rc && !j->enough) {
        if (++j->pairs % BATCH == 0 && run_stopped(j->r))
            break;
        if (pair_passes(j, at, b, i, h->rows[place - 1])) {
            any = true;
            put(j, at, b, i, h->rows[place - 1]);
        }
        place = key_index_next(h, s->n_keys, key, place);
    }
    if (!any && j->r->plan->sources[s->source].left && !j->r->rc)
        put(j, at, b, i, (uint32_t)NO_ROW);
}

/* Joins a batch to rows that one key finds by its number, of which there is one at most. False: not so here. */
static bool join_by_number(struct join *j, uint32_t at, const struct batch *b, int64_t *keys)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct key_index *h = &j->steps[at].index;
    uint32_t n = 0, *found = j->steps[at].found;
    if (!h->direct || !h->unique || s->n_after || j->r->plan->sources[s->source].left)
        return false;
    for (uint32_t i = 0; i < b->n; i++) { /* NULL lies outside, too */
        uint64_t number = (uint64_t)keys[i] - (uint64_t)h->base;
        uint32_t place = number < h->width ? h->direct[number] : 0;
        found[n] = i;
        n += place != 0;
        keys[i] = place ? h->rows[place - 1] : 0;
    }
    put_found(j, at, b, found, n, keys);
    return true;
}

bool join_put_rows(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const uint32_t *rows, uint32_t lo,
                   uint32_t n)
{
    bool any = false;
    for (uint32_t k = 0; k < n && !j->r->rc && !j->enough; k++) {
        uint32_t row = rows ? rows[k] : lo + k;
        if (++j->pairs % BATCH == 0 && run_stopped(j->r))
            break;
        if (pair_passes(j, at, b, i, row)) {
            any = true;
            put(j, at, b, i, row);
        }
    }
    return any;
}

/* The pairs of one row with n rows of the source that have not been tested. */
static bool put_untested(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const uint32_t *rows,
                         uint32_t n)
{
    bool any = false;
    for (uint32_t from = 0; from < n && !j->enough && !run_stopped(j->r); from += BATCH) {
        uint32_t *list = j->steps[at].list, n_list = n - from < BATCH ? n - from : BATCH;
        memcpy(list, rows + from, n_list * sizeof *list);
        uint32_t n_kept = test_rows(j, at, list, n_list);
        for (uint32_t k = 0; k < n_kept; k++)
            list[k] = list[j->steps[at].keep[k]];
        any |= join_put_rows(j, at, b, i, list, 0, n_kept);
    }
    return any;
}

/* By the index of the column, which is there for all statements. */
static void join_by_index(struct join *j, uint32_t at, const struct batch *b, const int64_t *keys)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct table *t = j->r->tables[s->source];
    uint32_t column = (uint32_t)s->columns[0];
    const struct column_index *x = index_get(j->steps[at].indexed, t, column);
    if (!x)
        j->r->rc = engine_is_interrupted(j->r->e) ? SQLITE_INTERRUPT : RUN_GAVE_UP;
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        const uint32_t *rows = NULL;
        uint32_t n = join_is_null_key(s, keys + i) ? 0 : index_find(x, t, column, keys[i], &rows);
        bool any = s->n_tests ? put_untested(j, at, b, i, rows, n) : join_put_rows(j, at, b, i, rows, 0, n);
        j->r->visited += s->n_tests ? 0 : n;
        if (!any && j->r->plan->sources[s->source].left && !j->r->rc)
            put(j, at, b, i, (uint32_t)NO_ROW);
    }
}

static void join_by_keys(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct key_index *h = &j->steps[at].index;
    const int64_t *columns[PLAN_MAX_KEYS];
    int64_t *keys = j->steps[at].keys; /* what follows evaluates, too */
    for (uint32_t k = 0; k < s->n_keys; k++)
        columns[k] = eval(j->r, s->keys[k], b);
    if (j->r->rc)
        return;
    if (s->n_keys)
        join_zip_keys(columns, s->n_keys, b->n, keys);
    if (j->steps[at].indexed) {
        join_by_index(j, at, b, keys);
        return;
    }
    if (join_by_number(j, at, b, keys))
        return;
    key_index_adapt(j->r, s, h);
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        if (s->n_keys && h->sorted_by < 0 && !h->direct)
            key_index_fetch(h, s->n_keys, keys, i, b->n);
        join_row(j, at, b, i, keys + (size_t)i * s->n_keys);
    }
}

static void join_by_tree(struct join *j, uint32_t at, const struct batch *b)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct plan_source *source = &j->r->plan->sources[s->source];
    struct row_list *rows = &j->steps[at].kin;
    int64_t *slices = j->steps[at].keys; /* what follows evaluates, too */
    memcpy(slices, eval(j->r, source->kin_of, b), b->n * sizeof *slices);
    for (uint32_t i = 0; i < b->n && !j->r->rc && !j->enough; i++) {
        if (!kin_find(j->r, source, slices[i], rows))
            return;
        if (s->n_tests)
            put_untested(j, at, b, i, rows->p, (uint32_t)rows->n);
        else
            join_put_rows(j, at, b, i, rows->p, 0, (uint32_t)rows->n);
    }
}

static bool is_to_one(const struct join *j, uint32_t at)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    const struct step_state *st = &j->steps[at];
    return st->index.n == 1 && !s->n_keys && !s->n_ranges && !s->n_after && !st->matched;
}

static void run_step(struct join *j, uint32_t at, const struct batch *b)
{
    const struct query_plan *p = j->r->plan;
    if (at == p->n_steps) {
        j->r->found += b->n;
        if (j->r->most_found && j->r->found > j->r->most_found && !j->r->rc)
            j->r->rc = RUN_GAVE_UP;
        j->enough = j->r->rc || !j->sink->push(j->sink, b);
        return;
    }
    if (p->sources[p->steps[at].source].kin)
        join_by_tree(j, at, b);
    else if (p->steps[at].by_row)
        join_by_row(j, at, b);
    else if (is_to_one(j, at))
        join_to_one(j, at, b);
    else if (p->steps[at].n_ranges)
        join_by_ranges(j, at, b);
    else
        join_by_keys(j, at, b);
    /* Rows wait for a full batch here; the batch above is about to be overwritten, but they have been copied. */
}

enum {
    FEW_ROWS = 1 << 16,
    FEW_ASK = 8, /* times as many rows has the source as that which asks */
    LEAST_WALKED = 512,
    LEAST_WAITED = 2048, /* rows of an index that is made when the first rows ask */
    WALKS = 4            /* through as many rows as the source has take no longer than its index */
};

/* Is the key a column of integers? */
static bool is_of_column(const struct plan_step *s)
{
    return s->n_keys == 1 && s->columns[0] >= 0 && s->keys[0]->type == PLAN_INT;
}

/* Ways that cost nothing before a row asks: where few do, or the index is there. */
static bool needs_nothing(struct join *j, uint32_t at)
{
    const struct query_plan *p = j->r->plan;
    const struct plan_step *s = &p->steps[at];
    struct step_state *st = &j->steps[at];
    const struct table *t = j->r->tables[s->source];
    const char *name = p->sources[s->source].table.name;
    const struct engine_known_table *known = name ? engine_find_known(j->r->e, name) : NULL;
    const uint32_t ask = j->r->tables[p->steps[0].source]->n_rows;
    if (p->sources[s->source].kin)
        return true;
    if (s->by_row) {
        st->tests_found = s->n_tests && (j->r->keeps || ask < t->n_rows / FEW_ASK);
    } else if (s->n_ranges && !s->by_sorted) {
        bool sorted = name && t->n_rows >= LEAST_WALKED && t->n_rows >= ask / 2 && !s->n_tests &&
                      steps_is_sorted_range(p, &s->ranges[0]);
        bool both = steps_has_both_bounds(s);
        st->walks = sorted && (both || !is_of_column(s));
        st->waits = !st->walks && is_of_column(s) && !s->n_tests && t->n_rows >= LEAST_WAITED;
        st->may_walk = (uint64_t)t->n_rows * (both ? WALKS : 1);
    } else if (j->r->keeps && is_of_column(s) && known && known->vtab && known->table == t) {
        st->indexed = known->vtab;
    }
    return st->tests_found || st->walks || st->waits || st->indexed;
}

/* What the step finds rows by. */
static bool build_step(struct join *j, uint32_t at)
{
    const struct plan_step *s = &j->r->plan->steps[at];
    struct step_state *st = &j->steps[at];
    bool ok = true;
    if (needs_nothing(j, at))
        return true;
    if (s->by_row)
        ok = key_index_pass(j->r, s, &st->index);
    else if (!s->by_sorted)
        ok = join_index_build(j, s, &st->index, NULL, 0);
    bool none = s->by_row ? st->index.passes && !st->index.n : !s->by_sorted && !st->index.n;
    const struct plan_source *source = &j->r->plan->sources[s->source];
    if (!source->left && !source->right && s->source >= j->r->plan->right) /* rows of a right join come nevertheless */
        j->nothing |= ok && none;
    if (ok && s->n_ranges && !s->by_sorted && !j->nothing)
        ok = range_index_finish(j->r, s, &st->index, &st->ranges);
    return ok;
}

/* Builds what is cheap before the rest, which is not built where that leaves nothing; rows that are joined by their
 * numbers tell the others which keys they need. */
static bool build_steps(struct join *j)
{
    const struct query_plan *p = j->r->plan;
    bool ok = true;
    for (int turn = 0; turn < 3; turn++)
        for (uint32_t at = 1; ok && !j->nothing && at < p->n_steps; at++) {
            bool few = j->r->tables[p->steps[at].source]->n_rows < FEW_ROWS;
            if (turn == (p->steps[at].by_row ? 0 : few ? 1 : 2))
                ok = build_step(j, at) && join_right_open(j, at);
        }
    return ok;
}

static bool open_steps(struct join *j)
{
    const struct query_plan *p = j->r->plan;
    bool ok = build_steps(j);
    for (uint32_t at = 0; ok && !j->nothing && at < p->n_steps; at++) {
        struct step_state *st = &j->steps[at];
        for (uint32_t k = 0; ok && k <= at; k++) {
            uint8_t source = p->steps[k].source;
            ok =
                run_alloc_rows(j->r, &st->out[source], BATCH + 8) && run_alloc_rows(j->r, &st->filtered[source], BATCH);
        }
        ok = ok && run_alloc_rows(j->r, &st->keep, BATCH) && run_alloc_rows(j->r, &st->found, BATCH);
        if (ok && (st->tests_found || st->walks || st->indexed || p->sources[p->steps[at].source].kin))
            ok = run_alloc_rows(j->r, &st->list, BATCH + 8);
        if (ok && !(st->keys = mem_alloc((p->steps[at].n_keys + p->steps[at].n_ranges + 1) * (size_t)BATCH *
                                         sizeof *st->keys))) {
            j->r->rc = SQLITE_NOMEM;
            ok = false;
        }
    }
    return ok && !j->nothing;
}

static void close_steps(struct join *j)
{
    for (uint32_t at = 0; at < j->r->plan->n_steps; at++) {
        key_index_free(&j->steps[at].index);
        range_index_free(&j->steps[at].ranges);
        mem_free(j->steps[at].keep);
        mem_free(j->steps[at].found);
        mem_free(j->steps[at].list);
        mem_free(j->steps[at].keys);
        mem_free(j->steps[at].matched);
        mem_free(j->steps[at].only);
        vec_free(&j->steps[at].kin);
        for (uint32_t k = 0; k < PLAN_ALL_SOURCES; k++) {
            mem_free(j->steps[at].out[k]);
            mem_free(j->steps[at].filtered[k]);
        }
    }
}

/* Is there a source without rows, where none would do? */
static bool is_empty(const struct run *r)
{
    for (uint32_t i = r->plan->right; i < r->plan->n_sources; i++)
        if (!r->plan->sources[i].left && r->tables[i]->n_rows == 0)
            return true;
    return false;
}

static void go(struct join *j)
{
    struct run *r = j->r;
    const struct plan_step *first = &r->plan->steps[0];
    struct scan scan;
    uint32_t n, *rows = j->steps[0].out[first->source];
    scan_open(r, first, &scan);
    for (uint32_t at = 1; at < r->plan->n_steps; at++)
        narrow_scan(r, &scan, first, &r->plan->steps[at], &j->steps[at].index);
    while (!j->enough && !r->rc && scan_next(r, &scan, first->source, rows, &n)) {
        struct batch b = {.n = n};
        b.rows[first->source] = rows;
        hand_on(j, 0, &b);
    }
    scan_close(&scan);
    for (uint32_t at = 1; at < r->plan->n_steps && !r->rc && !j->enough; at++) {
        join_flush(j, at);
        if (j->steps[at].matched)
            join_right_rest(j, at);
    }
}

void join_close(struct run *r)
{
    if (!r->join)
        return;
    close_steps(r->join);
    mem_free(r->join);
    r->join = NULL;
}

int join_run(struct run *r, struct sink *sink)
{
    if (is_empty(r))
        return r->rc;
    if (!r->join) {
        if (!(r->join = mem_zalloc(sizeof *r->join)))
            return r->rc = SQLITE_NOMEM;
        r->join->r = r;
        r->join->ready = open_steps(r->join);
    }
    r->join->sink = sink;
    r->join->enough = false;
    if (r->join->ready && !r->rc)
        go(r->join);
    if (!r->keeps)
        join_close(r);
    return r->rc;
}
