/* Tables: appending rows, finding in sorted columns. */
#include "storage/table.h"

#include "base/alloc.h"
#include "base/bisect.h"
#include "base/error.h"
#include "base/vectorised.h"

int table_init(struct table *t, const struct table_def *def)
{
    *t = (struct table){.def = def};
    t->columns = mem_zalloc((def->n_columns + 1) * sizeof *t->columns);
    if (!t->columns)
        return -MRD_ENOMEM;
    for (uint32_t i = 0; i < def->n_columns; i++)
        column_init(&t->columns[i], def->columns[i].type);
    return 0;
}

void table_free(struct table *t)
{
    for (uint32_t i = 0; t->columns && i < t->def->n_columns; i++)
        if (t->columns[i].chunks || t->columns[i].tail) /* most tables of most traces are empty */
            column_free(&t->columns[i]);
    mem_free(t->columns);
    *t = (struct table){0};
}

void table_clear(struct table *t)
{
    for (uint32_t i = 0; i < t->def->n_columns; i++)
        column_clear(&t->columns[i]);
    t->n_rows = 0;
    t->final = false;
}

static bool grow_tails(struct table *t)
{
    uint32_t cap = t->tail_cap ? t->tail_cap * 4 : 16;
    if (cap > COL_CHUNK_ROWS)
        cap = COL_CHUNK_ROWS;
    for (uint32_t i = 0; i < t->def->n_columns; i++) {
        int64_t *tail = mem_realloc(t->columns[i].tail, cap * sizeof *tail);
        if (!tail)
            return false;
        t->columns[i].tail = tail;
    }
    t->tail_cap = cap;
    return true;
}

bool table_grow(struct table *t)
{
    uint32_t at = t->n_rows & COL_CHUNK_MASK;
    bool ok = t->n_rows < UINT32_MAX - 1;
    uint32_t chunks = t->n_rows >> COL_CHUNK_SHIFT;
    if (at == 0) /* every row so far is to be in a sealed chunk */
        for (uint32_t i = 0; ok && i < t->def->n_columns; i++)
            ok = t->columns[i].n_chunks == chunks || column_seal(&t->columns[i]);
    if (ok && at >= t->tail_cap)
        ok = grow_tails(t);
    if (!ok)
        t->failed = true;
    return ok;
}

uint32_t table_append(struct table *t, const int64_t *words)
{
    if (!table_room(t))
        return UINT32_MAX;
    uint32_t at = t->n_rows & COL_CHUNK_MASK;
    for (uint32_t i = 0; i < t->def->n_columns; i++)
        t->columns[i].tail[at] = words[i];
    return t->n_rows++;
}

VECTORISED static void store_sequence(int64_t *tail, int64_t first, int64_t step, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, first += step)
        tail[i] = first;
}

/* Rows [from, from + n) of what is told go to the tail of a column. */
static void store_words(int64_t *tail, const struct table_words *w, uint32_t from, uint32_t n)
{
    if (w->p) {
        memcpy(tail, w->p + from, n * sizeof *tail);
        return;
    }
    store_sequence(tail, w->first + w->step * (int64_t)from, w->step, n);
}

bool table_append_columns(struct table *t, const struct table_words *columns, uint32_t n)
{
    for (uint32_t done = 0, now; done < n; done += now) {
        if (!table_room(t))
            return false;
        uint32_t at = t->n_rows & COL_CHUNK_MASK, room = t->tail_cap - at;
        now = n - done < room ? n - done : room;
        for (uint32_t i = 0; i < t->def->n_columns; i++)
            store_words(t->columns[i].tail + at, &columns[i], done, now);
        t->n_rows += now;
    }
    return true;
}

bool table_append_chunk(struct table *t, const int64_t *words)
{
    uint32_t chunks = t->n_rows >> COL_CHUNK_SHIFT, n = t->def->n_columns, i = 0;
    bool ok = (t->n_rows & COL_CHUNK_MASK) == 0 && t->n_rows < UINT32_MAX - 1 - COL_CHUNK_ROWS;
    for (; ok && i < n; i++) /* rows before may still be in the tail */
        ok = t->columns[i].n_chunks == chunks || column_seal(&t->columns[i]);
    for (i = 0; ok && i < n; i++)
        ok = column_append_chunk(&t->columns[i], words[i]);
    if (!ok) {
        for (uint32_t k = 0; k + 1 < i; k++) /* those that have it already: columns are of one length */
            t->columns[k].n_chunks = chunks;
        t->failed = true;
        return false;
    }
    t->n_rows += COL_CHUNK_ROWS;
    t->final = false;
    return true;
}

void table_finalize(struct table *t)
{
    if (t->final)
        return;
    bool untouched = !t->n_rows && !t->tail_cap; /* as column_init() left it */
    for (uint32_t i = 0; !untouched && i < t->def->n_columns; i++)
        column_summarize(&t->columns[i], t->n_rows - (t->columns[i].n_chunks << COL_CHUNK_SHIFT));
    t->final = true;
}

static bool is_before(const struct column *c, uint32_t row, int64_t want, bool after)
{
    int64_t v = column_order(c->type, column_get(c, row));
    return after ? v <= want : v < want;
}

uint32_t table_lower_bound(const struct table *t, uint32_t col, int64_t word, bool after)
{
    const struct column *c = &t->columns[col];
    int64_t want = column_order(c->type, word);
    uint32_t chunk = c->n_chunks; /* the first whose maximum is not below */
    BISECT(chunk, i, after ? c->chunks[i].max <= want : c->chunks[i].max < want);
    uint32_t first = chunk << COL_CHUNK_SHIFT;
    uint32_t last = chunk < c->n_chunks && t->n_rows - first > COL_CHUNK_ROWS ? first + COL_CHUNK_ROWS : t->n_rows;
    BISECT_RANGE(first, last, row, is_before(c, row, want, after));
    return first;
}
