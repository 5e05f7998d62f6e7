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
        if (!c->side[side].kept->table.n_rows || from->min > from->max)
            continue; /* all NULL */
        if ((enum col_type)from->type != type)
            return false;
        out[i].from = from;
    }
    return true;
}

/* The kept rows that rows of the answer are made of, and which of them are gaps. */
struct made_of {
    uint32_t rows[2][AHEAD];
    bool gaps[2][AHEAD], any_gap[2];
};

/* Row `at` is what the cursor stands on. */
static void note(const struct span_join_cursor *c, struct batch_column *columns, struct made_of *m, uint32_t at)
{
    const struct span_join_table *t = (const struct span_join_table *)c->base.pVtab;
    const struct side *a = &c->side[0], *b = &c->side[1];
    int64_t start = a->start > b->start ? a->start : b->start, end = a->end < b->end ? a->end : b->end;
    columns[0].words[at] = start;
    columns[1].words[at] = end - start;
    if (t->partitioned)
        columns[2].words[at] = c->partition;
    for (int i = 0; i < 2; i++) {
        const struct side *s = &c->side[i];
        m->rows[i][at] = s->real ? s->kept_row : at ? m->rows[i][at - 1] : 0;
        m->gaps[i][at] = !s->real;
        m->any_gap[i] |= !s->real;
    }
}

/* The other columns of n rows. */
static void fill(struct batch_column *columns, uint32_t n_columns, const bool *wanted, uint32_t first,
                 struct made_of *m, uint32_t n)
{
    for (uint32_t i = first; i < n_columns; i++) {
        struct batch_column *k = &columns[i];
        if (!wanted[i])
            continue;
        if (k->from)
            column_gather(k->from, m->rows[k->side], n, k->words);
        for (uint32_t at = 0; at < n && (!k->from || m->any_gap[k->side]); at++)
            if (!k->from || m->gaps[k->side][at])
                k->words[at] = k->null;
    }
    m->any_gap[0] = m->any_gap[1] = false;
}

static int batch_rows(void *ctx, const bool *wanted, bool (*push)(void *to, const int64_t *const *words, uint32_t n),
                      void *to)
{
    struct span_join_table *t = ctx;
    struct span_join_cursor c = {.base = {&t->base}, .keep_all = true, .wanted = wanted};
    uint32_t n = (uint32_t)(t->first[1] + t->n_source[1]), at = 0, first = t->partitioned ? 3 : 2;
    struct made_of *made_of = mem_zalloc(sizeof *made_of);
    struct batch_column *columns = mem_zalloc((n + 1) * sizeof *columns);
    const int64_t **words = mem_zalloc((n + 1) * sizeof *words);
    bool ok = columns && words && made_of && span_join_filter(&c, NULL, 0, NULL) == SQLITE_OK && c.side[0].kept &&
              c.side[1].kept && find_columns(&c, n, wanted, columns);
    for (uint32_t i = 0; i < n && ok; i++)
        words[i] = i < 2 || (i == 2 && t->partitioned) || wanted[i] ? columns[i].words : NULL;
    while (ok && !c.eof) {
        note(&c, columns, made_of, at);
        if (++at == AHEAD) {
            fill(columns, n, wanted, first, made_of, at);
            ok = push(to, words, at) && !stop_asked(engine_stop(t->e));
            at = 0;
        }
        ok = ok && span_join_next(&c) == SQLITE_OK;
    }
    if (ok && at)
        fill(columns, n, wanted, first, made_of, at);
    ok = ok && (!at || push(to, words, at));
    span_join_close(&c);
    sqlite3_free(t->base.zErrMsg); /* SQLite takes it from calls of its own only */
    t->base.zErrMsg = NULL;
    mem_free(columns);
    mem_free(words);
    mem_free(made_of);
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
