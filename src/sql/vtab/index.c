/* Makes indexes: the rows of a column by value, by one counting sort when lookups repeat. */
#include "sql/engine_private.h"

#include "base/bisect.h"
#include "sql/vtab/vtab.h"

#include <string.h>

static void index_free(struct column_index *x)
{
    if (!x)
        return;
    mem_free(x->rows);
    mem_free(x->starts);
    mem_free(x);
}

void index_drop_all(struct vtab *v)
{
    for (uint32_t i = 0; v->indexes && i < v->source->def->n_columns; i++) {
        index_free(v->indexes[i]);
        v->indexes[i] = NULL;
        if (v->scanned)
            v->scanned[i] = 0;
    }
    named_index_forget_rows(v->source);
}

/* Walks the words of a column a chunk at a time. */
#define FOR_WORDS(c, n_rows, row, word)                                                                                \
    for (uint32_t base_ = 0; base_ < (n_rows) && !stop_asked(stop); base_ += COL_CHUNK_ROWS)                           \
        for (uint32_t i_ = 0, n_ = unpack_block((c), (n_rows), base_, words); i_ < n_; i_++)                           \
            if (row = base_ + i_, word = words[i_], true)

static uint32_t unpack_block(const struct column *c, uint32_t n_rows, uint32_t base, int64_t *words)
{
    uint32_t n = n_rows - base < COL_CHUNK_ROWS ? n_rows - base : COL_CHUNK_ROWS;
    column_unpack(c, base, n, words);
    return n;
}

/* A snapshot whose damage shows while it is read changes its words: they need not be those of the header, nor the same
 * the second time. Such an index is not used (index_get()). */
static bool is_key(const struct column_index *x, int64_t word)
{
    return (uint64_t)word - (uint64_t)x->min < x->n_keys;
}

static bool build_dense(struct column_index *x, const struct column *c, uint32_t n_rows, stop_flag *stop)
{
    int64_t words[COL_CHUNK_ROWS], null = column_null(c->type), word;
    uint32_t row;
    x->min = c->min;
    x->n_keys = (uint32_t)(c->max - c->min + 1);
    x->starts = mem_zalloc(((size_t)x->n_keys + 1) * sizeof *x->starts);
    if (!x->starts)
        return false;
    FOR_WORDS(c, n_rows, row, word)
    if (word != null && is_key(x, word))
        x->starts[word - x->min]++;
    uint32_t total = 0;
    for (uint32_t k = 0; k <= x->n_keys; k++) {
        uint32_t count = x->starts[k];
        x->starts[k] = total;
        total += count;
    }
    x->n_rows = total;
    x->rows = mem_alloc(((size_t)total + 1) * sizeof *x->rows);
    if (!x->rows)
        return false;
    FOR_WORDS(c, n_rows, row, word)
    if (word != null && is_key(x, word) && x->starts[word - x->min] < total)
        x->rows[x->starts[word - x->min]++] = row;
    if (stop_asked(stop))
        return false;
    memmove(x->starts + 1, x->starts, x->n_keys * sizeof *x->starts);
    x->starts[0] = 0;
    return true;
}

static bool build_sparse(struct column_index *x, const struct table *t, uint32_t column, stop_flag *stop)
{
    const struct column *c = &t->columns[column];
    int64_t words[COL_CHUNK_ROWS], null = column_null(c->type), word;
    uint32_t row;
    x->rows = mem_alloc(((size_t)t->n_rows + 1) * sizeof *x->rows);
    if (!x->rows)
        return false;
    FOR_WORDS(c, t->n_rows, row, word)
    if (word != null)
        x->rows[x->n_rows++] = row;
    struct plan_order order = {(int16_t)column, false};
    if (stop_asked(stop)) /* also when there are too few rows to sort */
        return false;
    return order_rows(t, NULL, &order, 1, true, x->n_rows, x->rows, x->n_rows, stop);
}

static struct column_index *build(const struct table *t, uint32_t column, stop_flag *stop)
{
    const struct column *c = &t->columns[column];
    struct column_index *x = mem_zalloc(sizeof *x);
    if (!x)
        return NULL;
    uint64_t span = (uint64_t)c->max - (uint64_t)c->min;
    bool dense = c->type != COL_F64 && c->min <= c->max && span < UINT32_MAX && span < 2ull * t->n_rows + 65536;
    if (dense ? build_dense(x, c, t->n_rows, stop) : build_sparse(x, t, column, stop))
        return x;
    index_free(x);
    return NULL;
}

void index_refresh(struct vtab *v, const struct table *t)
{
    if (v->indexed_rows == t->n_rows && v->indexed_generation == v->engine->generation)
        return;
    index_drop_all(v);
    v->indexed_rows = t->n_rows;
    v->indexed_generation = v->engine->generation;
}

const struct column_index *index_peek(struct vtab *v, const struct table *t, uint32_t column)
{
    index_refresh(v, t);
    return v->indexes[column];
}

bool index_is_due(struct vtab *v, const struct table *t, uint32_t column, uint32_t n_rows)
{
    enum {
        AFTER = 4,     /* when the rows passed over are this many times the table */
        MIN_ROWS = 256 /* smaller ranges are not worth one */
    };
    v->scanned[column] += n_rows;
    return n_rows >= MIN_ROWS && v->scanned[column] >= (uint64_t)AFTER * t->n_rows;
}

const struct column_index *index_get(struct vtab *v, const struct table *t, uint32_t column)
{
    if (!index_peek(v, t, column))
        v->indexes[column] = build(t, column, engine_stop(v->engine));
    if (v->indexes[column] && storage_damage(v->engine->storage)) {
        index_free(v->indexes[column]);
        v->indexes[column] = NULL;
    }
    return v->indexes[column];
}

static int64_t order_word(const struct column *c, uint32_t row)
{
    return column_order(c->type, column_get(c, row));
}

uint32_t index_find(const struct column_index *x, const struct table *t, uint32_t column, int64_t word,
                    const uint32_t **rows)
{
    if (x->n_keys) {
        if (word < x->min || word > x->min + (int64_t)x->n_keys - 1)
            return 0;
        uint32_t key = (uint32_t)(word - x->min);
        *rows = x->rows + x->starts[key];
        return x->starts[key + 1] - x->starts[key];
    }
    const struct column *c = &t->columns[column];
    uint32_t first = x->n_rows;
    BISECT(first, i, order_word(c, x->rows[i]) < word);
    *rows = x->rows + first;
    uint32_t end = first;
    while (end < x->n_rows && order_word(c, x->rows[end]) == word) /* runs are short where values are sparse */
        end++;
    return end - first;
}
