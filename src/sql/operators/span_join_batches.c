/* Span joins as sources of plans: the columns that a plan wants, many rows at a time. Both inputs become columns first.
 * What is not as foreseen, errors among it, is left to SQLite, which reads the table row by row. */
#include "sql/engine_private.h"
#include "sql/operators/span_join.h"

static bool batch_column(void *ctx, uint32_t i, const char **name, enum col_type *type)
{
    const struct span_join_table *t = ctx;
    const char *declared;
    *type = COL_I64;
    if (i < 2 || (i == 2 && t->partitioned)) {
        const char *partition = t->in[0].partition ? t->in[0].partition : t->in[1].partition;
        *name = i == 0 ? "ts" : i == 1 ? "dur" : partition;
        return true;
    }
    int side = (int)i >= t->first[1] && t->n_source[1] ? 1 : 0, input = t->source[side][(int)i - t->first[side]];
    *name = t->in[side].columns[input];
    declared = t->in[side].types[input];
    if (sqlite3_stricmp(declared, "TEXT") == 0)
        *type = COL_STR;
    else if (sqlite3_stricmp(declared, "DOUBLE") == 0)
        *type = COL_F64;
    else
        return sqlite3_stricmp(declared, "BIGINT") == 0 || sqlite3_stricmp(declared, "INTEGER") == 0;
    return true;
}

enum { AHEAD = 1024 };

struct batch_column {
    const struct column *from; /* NULL: computed, or all NULL */
    int side;
    int64_t null;
    int64_t words[AHEAD];
};

/* Where the wanted columns come from; false when one is not of the type that was said. */
static bool find_columns(struct span_join_cursor *c, uint32_t n, const bool *wanted, struct batch_column *out)
{
    const struct span_join_table *t = (const struct span_join_table *)c->base.pVtab;
    uint32_t first = t->partitioned ? 3 : 2;
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        enum col_type type;
        out[i].from = NULL;
        if (i < first || !wanted[i])
            continue;
        int side = (int)i >= t->first[1] && t->n_source[1] ? 1 : 0;
        const struct column *from = &c->side[side].kept->table.columns[t->source[side][(int)i - t->first[side]]];
        if (!batch_column((void *)(uintptr_t)t, i, &name, &type))
            return false;
        out[i].side = side;
        out[i].null = column_null(type);
        if (from->min > from->max)
            continue; /* all NULL */
        if ((enum col_type)from->type != type)
            return false;
        out[i].from = from;
    }
    return true;
}

static void fill(const struct span_join_cursor *c, struct batch_column *columns, uint32_t n, const bool *wanted,
                 uint32_t at)
{
    const struct span_join_table *t = (const struct span_join_table *)c->base.pVtab;
    const struct side *a = &c->side[0], *b = &c->side[1];
    int64_t start = a->start > b->start ? a->start : b->start, end = a->end < b->end ? a->end : b->end;
    uint32_t first = t->partitioned ? 3 : 2;
    columns[0].words[at] = start;
    columns[1].words[at] = end - start;
    if (t->partitioned)
        columns[2].words[at] = c->partition;
    for (uint32_t i = first; i < n; i++) {
        const struct side *s = &c->side[columns[i].side];
        if (wanted[i])
            columns[i].words[at] =
                s->real && columns[i].from ? column_get(columns[i].from, s->kept_row) : columns[i].null;
    }
}

static int batch_rows(void *ctx, const bool *wanted, bool (*push)(void *to, const int64_t *const *words, uint32_t n),
                      void *to)
{
    struct span_join_table *t = ctx;
    struct span_join_cursor c = {.base = {&t->base}, .keep_all = true};
    uint32_t n = (uint32_t)(t->first[1] + t->n_source[1]), at = 0;
    struct batch_column *columns = mem_zalloc((n + 1) * sizeof *columns);
    const int64_t **words = mem_zalloc((n + 1) * sizeof *words);
    bool ok = columns && words && span_join_filter(&c, NULL, 0, NULL) == SQLITE_OK && c.side[0].kept &&
              c.side[1].kept && find_columns(&c, n, wanted, columns);
    for (uint32_t i = 0; i < n && ok; i++)
        words[i] = i < 2 || (i == 2 && t->partitioned) || wanted[i] ? columns[i].words : NULL;
    while (ok && !c.eof) {
        fill(&c, columns, n, wanted, at);
        if (++at == AHEAD) {
            ok = push(to, words, at) && !stop_asked(engine_stop(t->e));
            at = 0;
        }
        ok = ok && span_join_next(&c) == SQLITE_OK;
    }
    ok = ok && (!at || push(to, words, at));
    span_join_close(&c);
    sqlite3_free(t->base.zErrMsg); /* SQLite takes it from calls of its own only */
    t->base.zErrMsg = NULL;
    mem_free(columns);
    mem_free(words);
    return ok;
}

void span_join_offer(struct span_join_table *t)
{
    struct engine_batches b = {.name = t->name,
                               .ctx = t,
                               .n_columns = (uint32_t)(t->first[1] + t->n_source[1]),
                               .column = batch_column,
                               .rows = batch_rows};
    if (t->name && engine_add_batches(t->e, &b))
        t->serial = b.serial;
}
