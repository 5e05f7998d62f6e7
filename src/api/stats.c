/* Tells what a load has counted: the stats of each machine. */
#include "api/tp_internal.h"

#include <stdlib.h>

const char *tp_machine_name(const struct tp *tp, uint32_t machine)
{
    const struct table *t = &tp->storage.t[T_machine];
    if (machine >= t->n_rows)
        return NULL;
    int64_t name = table_get(t, machine_c_name, machine);
    bool own = name != table_get(t, machine_c_sysname, machine);
    return own && name ? strpool_cstr(&tp->storage.strings, (strid)name) : NULL;
}

static bool add_stat(struct tp *tp, enum stat_key key, uint32_t machine, bool indexed, int64_t idx, int64_t value)
{
    const struct stat_def *d = &stat_defs[key];
    return vec_push(&tp->stats, (struct tp_stat){.name = d->name,
                                                 .severity = stat_severity_names[d->severity],
                                                 .source = stat_source_names[d->source],
                                                 .description = d->doc,
                                                 .value = value,
                                                 .idx = idx,
                                                 .machine = machine,
                                                 .indexed = indexed,
                                                 .of_trace = d->scope == STAT_GLOBAL,
                                                 .machine_name = tp_machine_name(tp, machine)});
}

static int by_name_machine_idx(const void *a, const void *b)
{
    const struct tp_stat *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (c == 0)
        c = (x->machine > y->machine) - (x->machine < y->machine);
    return c ? c : (x->idx > y->idx) - (x->idx < y->idx);
}

static void make_stats(struct tp *tp)
{
    const struct stats *s = &tp->storage.stats;
    for (size_t i = 0; i < s->single.n; i++)
        if (s->single.p[i] != 0)
            add_stat(tp, (enum stat_key)(i % STAT_COUNT), (uint32_t)(i / STAT_COUNT), false, 0, s->single.p[i]);
    size_t it = 0;
    for (const struct u64map_slot *slot; (slot = u64map_next(&s->indexed, &it));)
        if (slot->value != 0)
            add_stat(tp, (enum stat_key)(slot->key >> 32 & 0xffff), (uint32_t)(slot->key >> 48), true,
                     (int32_t)(uint32_t)slot->key, (int64_t)slot->value);
    if (tp->stats.n)
        qsort(tp->stats.p, tp->stats.n, sizeof *tp->stats.p, by_name_machine_idx);
    tp->stats_made = true;
}

bool tp_stats_next(struct tp *tp, size_t *it, struct tp_stat *out)
{
    if (!tp->stats_made)
        make_stats(tp);
    if (*it >= tp->stats.n)
        return false;
    *out = tp->stats.p[(*it)++];
    return true;
}
