/* Hashes rows of span joins. */
#include "sql/operators/span_join.h"

#include "base/hash.h"

static uint64_t add_bytes(uint64_t h, int type, const void *p, size_t len)
{
    return hash_combine(hash_combine(h, (uint64_t)type), hash_bytes(p, len));
}

static uint64_t add_word(uint64_t h, int type, uint64_t word)
{
    return hash_combine(hash_combine(h, (uint64_t)type), word);
}

/* Whole numbers are as integers: a column of both kinds may be kept as reals. */
static uint64_t add_double(uint64_t h, double v)
{
    if (v >= -0x1p53 && v <= 0x1p53 && v == (double)(int64_t)v)
        return add_word(h, SQLITE_INTEGER, (uint64_t)(int64_t)v);
    uint64_t word;
    memcpy(&word, &v, sizeof word);
    return add_word(h, SQLITE_FLOAT, word);
}

static uint64_t add_kept(uint64_t h, const struct engine *e, const struct side *s, int column)
{
    int type = s->kept->columns[column].type;
    int64_t w = table_get(&s->kept->table, (uint32_t)column, s->kept_row);
    if (w == column_null((enum col_type)type))
        return add_word(h, SQLITE_NULL, 0);
    if (type == COL_F64)
        return add_double(h, column_f64(w));
    if (type != COL_STR)
        return add_word(h, SQLITE_INTEGER, (uint64_t)w);
    struct slice text = strpool_view(&engine_storage((struct engine *)(uintptr_t)e)->strings, (strid)w);
    return add_bytes(h, SQLITE_TEXT, text.p, text.len);
}

static uint64_t add_cell(uint64_t h, sqlite3_stmt *stmt, int column)
{
    int type = sqlite3_column_type(stmt, column);
    switch (type) {
    case SQLITE_INTEGER:
        return add_word(h, type, (uint64_t)sqlite3_column_int64(stmt, column));
    case SQLITE_FLOAT:
        return add_double(h, sqlite3_column_double(stmt, column));
    case SQLITE_NULL:
        return add_word(h, type, 0);
    default: {
        const void *p = sqlite3_column_blob(stmt, column);
        return add_bytes(h, type, p, (size_t)sqlite3_column_bytes(stmt, column));
    }
    }
}

uint64_t span_join_row_hash(const struct span_join_cursor *c)
{
    const struct span_join_table *t = (const struct span_join_table *)c->base.pVtab;
    const struct side *a = &c->side[0], *b = &c->side[1];
    uint64_t h = hash_combine(hash_u64((uint64_t)(a->start > b->start ? a->start : b->start)),
                              (uint64_t)(a->end < b->end ? a->end : b->end));
    h = hash_combine(h, (uint64_t)c->partition);
    for (int side = 0; side < 2; side++) {
        const struct side *s = &c->side[side];
        for (int i = 0; i < t->n_source[side]; i++) {
            int column = t->source[side][i];
            h = !s->real  ? add_word(h, SQLITE_NULL, 0)
                : s->kept ? add_kept(h, t->e, s, column)
                          : add_cell(h, s->stmt, column);
        }
    }
    return h;
}
