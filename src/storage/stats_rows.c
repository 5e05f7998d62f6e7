/* Makes the rows of `stats` of the counters of the storage. */
#include "storage/stats_rows.h"

#include <stdlib.h>

/* The trace that stats of machines belong to; NULL when several are merged: they share their counters. */
static int64_t the_only_trace(const struct storage *st)
{
    const struct column *c = &st->t[T_metadata].columns[metadata_c_trace_id];
    return c->min == c->max ? c->min : COL_NULL;
}

static int by_key(const void *a, const void *b)
{
    const struct u64map_slot *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Entries of the indexed stats, by machine, key and index. */
static struct u64map_slot *sorted_indexed(const struct stats *s, size_t *n)
{
    struct u64map_slot *list = mem_alloc((s->indexed.n + 1) * sizeof *list);
    size_t it = 0;
    *n = 0;
    for (struct u64map_slot *slot; list && (slot = u64map_next(&s->indexed, &it)) != NULL;) {
        list[*n] = *slot;
        list[(*n)++].key ^= 0x80000000u; /* negative indexes first */
    }
    if (list)
        qsort(list, *n, sizeof *list, by_key);
    return list;
}

/* What goes from row to row. */
struct telling {
    int (*each)(void *ctx, const struct stats_line *row);
    void *ctx;
    int64_t trace;
    uint32_t next;
};

static int tell(struct telling *t, uint32_t machine, enum stat_key key, int64_t idx, int64_t value)
{
    const bool global = stat_defs[key].scope == STAT_GLOBAL;
    const struct stats_line row = {.number = t->next++,
                                   .key = key,
                                   .machine = machine,
                                   .idx = idx,
                                   .machine_id = global ? COL_NULL : machine,
                                   .trace_id = global ? COL_NULL : t->trace,
                                   .value = value};
    return t->each(t->ctx, &row);
}

static int tell_singles(struct telling *t, const struct stats *s, uint32_t machine, enum stat_scope scope)
{
    int rc = 0;
    for (uint32_t key = 0; rc == 0 && key < STAT_COUNT; key++)
        if (stat_defs[key].type == STAT_SINGLE && stat_defs[key].scope == scope)
            rc = tell(t, machine, key, COL_NULL, stats_get(s, machine, key));
    return rc;
}

/* Single ones are there before anything happens, so they come first, and of them those of no machine. */
int stats_rows_each(const struct storage *st, int (*each)(void *ctx, const struct stats_line *row), void *ctx)
{
    struct telling t = {each, ctx, the_only_trace(st), 0};
    const uint32_t machines = st->t[T_machine].n_rows ? st->t[T_machine].n_rows : 1;
    size_t n;
    struct u64map_slot *indexed = sorted_indexed(&st->stats, &n);
    int rc = indexed ? tell_singles(&t, &st->stats, 0, STAT_GLOBAL) : -MRD_ENOMEM;
    for (uint32_t m = 0; rc == 0 && m < machines; m++)
        rc = tell_singles(&t, &st->stats, m, STAT_MACHINE);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = tell(&t, (uint32_t)(indexed[i].key >> 48), (enum stat_key)(indexed[i].key >> 32 & 0xffff),
                  (int32_t)(uint32_t)(indexed[i].key ^ 0x80000000u), (int64_t)indexed[i].value);
    mem_free(indexed);
    return rc;
}

int stats_rows_put(struct storage *st, struct table *out, const struct stats_line *row)
{
    const struct stat_def *d = &stat_defs[row->key];
    const int64_t words[stats_n_columns] = {
        [stats_c_name] = strpool_intern_str(&st->strings, d->name),
        [stats_c_key] = row->key,
        [stats_c_idx] = row->idx,
        [stats_c_severity] = strpool_intern_str(&st->strings, stat_severity_names[d->severity]),
        [stats_c_source] = strpool_intern_str(&st->strings, stat_source_names[d->source]),
        [stats_c_value] = row->value,
        [stats_c_description] = strpool_intern_str(&st->strings, d->doc),
        [stats_c_machine_id] = row->machine_id,
        [stats_c_trace_id] = row->trace_id,
    };
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}
