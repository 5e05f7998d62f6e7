/* The rows of `metadata`. */
#include "importer/core/metadata.h"

#include "base/hash.h"

enum metadata_type { SINGLE, MULTI };
enum metadata_scope { GLOBAL = 0, TRACE = 1, MACHINE = 2, BOTH = TRACE | MACHINE };

static const struct {
    const char *name;
    uint8_t type;
    uint8_t scope;
} keys[METADATA_COUNT] = {
#define X(key, type, scope) {#key, type, scope},
    METADATA_KEYS(X)
#undef X
};

/* The row of (name, machine, trace), UINT32_MAX when there is none. *slot is its number in metadata_rows, or a free
 * one: an archive has rows for each of its members. */
static uint32_t find(const struct importer *im, strid name, int64_t machine, int64_t trace, uint64_t *slot)
{
    const struct storage *st = im->st;
    *slot = hash_combine(hash_combine(name, (uint64_t)machine), (uint64_t)trace);
    for (const uint64_t *row; (row = u64map_get(&im->metadata_rows, *slot)); ++*slot)
        if (ROW_GET(st, metadata, name, *row) == name && ROW_GET(st, metadata, machine_id, *row) == machine &&
            ROW_GET(st, metadata, trace_id, *row) == trace)
            return (uint32_t)*row;
    return UINT32_MAX;
}

static void put(struct importer *im, strid name, enum metadata_type type, int64_t machine, int64_t trace, int64_t i,
                strid s)
{
    uint64_t slot;
    uint32_t row = find(im, name, machine, trace, &slot);
    if (row != UINT32_MAX && type == SINGLE) {
        ROW_SET(im->st, metadata, int_value, row, i);
        ROW_SET(im->st, metadata, str_value, row, s);
        return;
    }
    uint32_t added =
        metadata_insert(im->st, &(struct metadata_row){.name = name,
                                                       .key_type = import_str(im, type == SINGLE ? "single" : "multi"),
                                                       .int_value = i,
                                                       .str_value = s,
                                                       .machine_id = machine,
                                                       .trace_id = trace});
    if (added == UINT32_MAX || (row == UINT32_MAX && !u64map_set(&im->metadata_rows, slot, added)))
        im->failed = true;
}

static int64_t machine_of(const struct machine_ctx *m, enum metadata_key key)
{
    return !(keys[key].scope & MACHINE) ? COL_NULL : m ? m->id : 0;
}

static int64_t trace_of(const struct importer *im, enum metadata_key key)
{
    return keys[key].scope & TRACE ? im->trace_file : COL_NULL;
}

void metadata_int(struct importer *im, const struct machine_ctx *m, enum metadata_key key, int64_t value)
{
    put(im, import_str(im, keys[key].name), keys[key].type, machine_of(m, key), trace_of(im, key), value, 0);
}

void metadata_str(struct importer *im, const struct machine_ctx *m, enum metadata_key key, strid value)
{
    put(im, import_str(im, keys[key].name), keys[key].type, machine_of(m, key), trace_of(im, key), COL_NULL, value);
}

void metadata_str_of_all(struct importer *im, enum metadata_key key, strid value)
{
    put(im, import_str(im, keys[key].name), keys[key].type, COL_NULL, COL_NULL, COL_NULL, value);
}

void metadata_dynamic(struct importer *im, const struct machine_ctx *m, strid name, int64_t int_value, strid str_value)
{
    put(im, name, SINGLE, m ? m->id : COL_NULL, m ? COL_NULL : im->trace_file, int_value, str_value);
}

int64_t metadata_get_int(const struct importer *im, const struct machine_ctx *m, enum metadata_key key)
{
    strid name = strpool_find(&im->st->strings, keys[key].name, strlen(keys[key].name));
    uint64_t slot;
    uint32_t row = name ? find(im, name, machine_of(m, key), trace_of(im, key), &slot) : UINT32_MAX;
    return row == UINT32_MAX ? COL_NULL : ROW_GET(im->st, metadata, int_value, row);
}

int64_t metadata_earliest(const struct importer *im, const struct machine_ctx *m, enum metadata_key key)
{
    const struct storage *st = im->st;
    strid name = strpool_find(&st->strings, keys[key].name, strlen(keys[key].name));
    int64_t earliest = COL_NULL;
    for (uint32_t row = 0; name && row < st->t[T_metadata].n_rows; row++) {
        int64_t v = ROW_GET(st, metadata, int_value, row);
        if (ROW_GET(st, metadata, name, row) == name && ROW_GET(st, metadata, machine_id, row) == machine_of(m, key) &&
            v != COL_NULL && (earliest == COL_NULL || v < earliest))
            earliest = v;
    }
    return earliest;
}
