/* The counters of losses and errors. */
#include "storage/stats.h"

const struct stat_def stat_defs[STAT_COUNT] = {
#define STAT(name, type, severity, source, scope, doc)                                                                 \
    {#name, STAT_##type, STAT_##severity, STAT_##source, STAT_##scope, doc},
#include "storage/stats.def"
#undef STAT
};

const char *const stat_severity_names[] = {"info", "notice", "data_loss", "error"};
const char *const stat_source_names[] = {"trace", "analysis"};

static int64_t *single_of(struct stats *s, uint32_t machine, enum stat_key key)
{
    if (stat_defs[key].scope == STAT_GLOBAL)
        machine = 0;
    size_t need = ((size_t)machine + 1) * STAT_COUNT;
    if (need > s->single.n) {
        if (!vec_reserve(&s->single, need)) {
            s->failed = true;
            return NULL;
        }
        memset(s->single.p + s->single.n, 0, (need - s->single.n) * sizeof *s->single.p);
        s->single.n = need;
    }
    return &s->single.p[(size_t)machine * STAT_COUNT + key];
}

void stats_add(struct stats *s, uint32_t machine, enum stat_key key, int64_t delta)
{
    int64_t *v = single_of(s, machine, key);
    if (v)
        *v = (int64_t)((uint64_t)*v + (uint64_t)delta);
}

void stats_set(struct stats *s, uint32_t machine, enum stat_key key, int64_t value)
{
    int64_t *v = single_of(s, machine, key);
    if (v)
        *v = value;
}

static uint64_t index_key(uint32_t machine, enum stat_key key, int32_t idx)
{
    if (stat_defs[key].scope == STAT_GLOBAL)
        machine = 0;
    return (uint64_t)machine << 48 | (uint64_t)key << 32 | (uint32_t)idx;
}

static int64_t *indexed_of(struct stats *s, uint32_t machine, enum stat_key key, int32_t idx)
{
    uint64_t *v = u64map_put(&s->indexed, index_key(machine, key, idx), NULL);
    if (!v)
        s->failed = true;
    return (int64_t *)v;
}

void stats_add_idx(struct stats *s, uint32_t machine, enum stat_key key, int32_t idx, int64_t delta)
{
    int64_t *v = indexed_of(s, machine, key, idx);
    if (v)
        *v = (int64_t)((uint64_t)*v + (uint64_t)delta);
}

void stats_set_idx(struct stats *s, uint32_t machine, enum stat_key key, int32_t idx, int64_t value)
{
    int64_t *v = indexed_of(s, machine, key, idx);
    if (v)
        *v = value;
}

int64_t stats_get(const struct stats *s, uint32_t machine, enum stat_key key)
{
    size_t at = (size_t)(stat_defs[key].scope == STAT_GLOBAL ? 0 : machine) * STAT_COUNT + key;
    return at < s->single.n ? s->single.p[at] : 0;
}

bool stats_any(const struct stats *s, uint32_t machine, enum stat_key key)
{
    uint64_t first = index_key(machine, key, 0);
    struct u64map_slot *slot;
    if (stats_get(s, machine, key) > 0)
        return true;
    for (size_t it = 0; (slot = u64map_next(&s->indexed, &it));)
        if (slot->key >> 32 == first >> 32 && (int64_t)slot->value > 0)
            return true;
    return false;
}

const int64_t *stats_get_idx(const struct stats *s, uint32_t machine, enum stat_key key, int32_t idx)
{
    return (const int64_t *)u64map_get(&s->indexed, index_key(machine, key, idx));
}

void stats_free(struct stats *s)
{
    vec_free(&s->single);
    u64map_free(&s->indexed);
    *s = (struct stats){0};
}
