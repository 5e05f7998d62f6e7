/* The tables `stats` and `_trace_bounds`, made from the counters of the storage when they are asked for. */
#include "sql/engine_private.h"
#include "sql/tables/tables.h"
#include "sql/vtab/vtab.h"

#include <stdlib.h>

/* The trace that stats of machines belong to; NULL when several are merged: they share their counters. */
static int64_t the_only_trace(const struct storage *st)
{
    const struct column *c = &st->t[T_metadata].columns[metadata_c_trace_id];
    return c->min == c->max ? c->min : COL_NULL;
}

static int add_stat(struct storage *st, struct table *out, enum stat_key key, const int32_t *idx, int64_t value,
                    uint32_t machine)
{
    const struct stat_def *d = &stat_defs[key];
    bool global = d->scope == STAT_GLOBAL;
    const int64_t words[stats_n_columns] = {
        [stats_c_name] = strpool_intern_str(&st->strings, d->name),
        [stats_c_key] = key,
        [stats_c_idx] = idx ? *idx : COL_NULL,
        [stats_c_severity] = strpool_intern_str(&st->strings, stat_severity_names[d->severity]),
        [stats_c_source] = strpool_intern_str(&st->strings, stat_source_names[d->source]),
        [stats_c_value] = value,
        [stats_c_description] = strpool_intern_str(&st->strings, d->doc),
        [stats_c_machine_id] = global ? COL_NULL : machine,
        [stats_c_trace_id] = global ? COL_NULL : the_only_trace(st),
    };
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
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

/* Every single stat of every machine, also when 0; indexed ones where they were set. */
static int stats_compute(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    struct storage *st = engine_storage(e);
    (void)args;
    (void)err;
    uint32_t machines = st->t[T_machine].n_rows ? st->t[T_machine].n_rows : 1;
    size_t n, at = 0;
    struct u64map_slot *indexed = sorted_indexed(&st->stats, &n);
    if (!indexed)
        return -MRD_ENOMEM;
    int rc = 0;
    for (uint32_t m = 0; rc == 0 && m < machines; m++) {
        for (uint32_t key = 0; rc == 0 && key < STAT_COUNT; key++) {
            const struct stat_def *d = &stat_defs[key];
            if (d->scope == STAT_GLOBAL && m > 0)
                continue;
            if (d->type == STAT_SINGLE)
                rc = add_stat(st, out, key, NULL, stats_get(&st->stats, m, key), m);
            while (at < n && indexed[at].key >> 32 < ((uint64_t)m << 16 | key))
                at++;
            for (; rc == 0 && at < n && indexed[at].key >> 32 == ((uint64_t)m << 16 | key); at++) {
                int32_t idx = (int32_t)(uint32_t)(indexed[at].key ^ 0x80000000u);
                rc = add_stat(st, out, key, &idx, (int64_t)indexed[at].value, m);
            }
        }
    }
    mem_free(indexed);
    return rc;
}

static int bounds_compute(struct engine *e, sqlite3_value **args, struct table *out, struct error *err)
{
    const struct storage *st = engine_storage(e);
    (void)args;
    (void)err;
    const int64_t words[] = {st->trace_start_ns, st->trace_end_ns};
    return table_append(out, words) == UINT32_MAX ? -MRD_ENOMEM : 0;
}

static const struct column_def bounds_columns[] = {{"start_ts", COL_I64, 0, "First event."},
                                                   {"end_ts", COL_I64, 0, "Last event."}};
static const struct table_def bounds_def = {"_trace_bounds", bounds_columns, 2, "The time that the trace covers."};

const struct engine_table_function stats_table_functions[] = {
    {.name = "__intrinsic_stats", .def = &table_defs[T_stats], .row_numbers = ROWS_ID, .compute = stats_compute},
    {.name = "_trace_bounds", .def = &bounds_def, .row_numbers = ROWS_UNTYPED, .compute = bounds_compute},
};
const size_t stats_table_functions_n = sizeof stats_table_functions / sizeof *stats_table_functions;
