/* Ids of traces and spans for slices that have none. */
#include "shell/convert/otlp_ids.h"

#include "base/alloc.h"
#include "base/fnv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t number(const struct tp_result *r, int column, int64_t null)
{
    return tp_column_type(r, column) == TP_NULL ? null : tp_int64(r, column);
}

static int take_count(void *ctx, struct tp_result *r)
{
    struct otlp_ids *ids = ctx;
    size_t len = 0;
    const char *uuid = tp_text(r, 1, &len);
    ids->n = (size_t)number(r, 0, 0);
    ids->trace = fnv1a(FNV1A_BASIS, uuid ? uuid : "", uuid ? len : 0);
    return 0;
}

/* A slice comes after the one around it. */
static int take_slice(void *ctx, struct tp_result *r)
{
    struct otlp_ids *ids = ctx;
    size_t id = (size_t)number(r, 0, 0), parent = (size_t)number(r, 1, OTLP_NO_SLICE);
    if (id >= ids->n)
        return 0;
    while (parent < id && ids->instants[parent])
        parent = ids->parents[parent];
    ids->parents[id] = parent < id ? (uint32_t)parent : OTLP_NO_SLICE;
    ids->instants[id] = ids->parents[id] != OTLP_NO_SLICE && number(r, 2, 0);
    return 0;
}

/* The first flow into a slice that nothing lies around says what caused it. */
static int take_flow(void *ctx, struct tp_result *r)
{
    struct otlp_ids *ids = ctx;
    size_t out = (size_t)number(r, 0, OTLP_NO_SLICE), in = (size_t)number(r, 1, OTLP_NO_SLICE);
    if (in < ids->n && out < in && ids->parents[in] == OTLP_NO_SLICE)
        ids->parents[in] = (uint32_t)out;
    return 0;
}

int otlp_ids_open(struct shell *sh, struct otlp_ids *ids, struct error *err)
{
    *ids = (struct otlp_ids){0};
    int rc = convert_rows(sh,
                          "select (select coalesce(max(id) + 1, 0) from slice), "
                          "(select str_value from metadata where name = 'trace_uuid' limit 1)",
                          take_count, ids, err);
    if (rc < 0)
        return rc;
    ids->parents = mem_alloc((ids->n + 1) * sizeof *ids->parents);
    ids->roots = mem_alloc((ids->n + 1) * sizeof *ids->roots);
    ids->instants = mem_zalloc(ids->n + 1);
    if (!ids->parents || !ids->roots || !ids->instants)
        return error_set(err, -MRD_ENOMEM, "out of memory for the ids of %zu slices", ids->n);
    memset(ids->parents, 0xff, (ids->n + 1) * sizeof *ids->parents);
    rc = convert_rows(
        sh,
        "select id, parent_id, dur = 0 and id not in (select slice_id from otel_span where slice_id is not "
        "null) from slice order by id",
        take_slice, ids, err);
    if (rc >= 0)
        rc = convert_rows(sh,
                          "select slice_out, slice_in from flow where slice_in not in (select slice_id from otel_span "
                          "where slice_id is not null) order by slice_in, id",
                          take_flow, ids, err);
    for (size_t i = 0; i < ids->n; i++) /* those before are done */
        ids->roots[i] = ids->parents[i] == OTLP_NO_SLICE ? (uint32_t)i : ids->roots[ids->parents[i]];
    return rc;
}

void otlp_ids_close(struct otlp_ids *ids)
{
    mem_free(ids->parents);
    mem_free(ids->roots);
    mem_free(ids->instants);
}

static uint64_t id_of(const struct otlp_ids *ids, uint32_t slice, uint64_t kind)
{
    uint64_t h = fnv1a(fnv1a(ids->trace, &slice, sizeof slice), &kind, sizeof kind);
    h ^= h >> 32; /* FNV mixes upwards only */
    h = (h * 0xd6e8feb86659fd93u) ^ (h >> 29);
    return h ? h : 1;
}

void otlp_trace_id(const struct otlp_ids *ids, uint32_t slice, char text[33])
{
    uint32_t root = ids->roots[slice];
    snprintf(text, 33, "%016" PRIx64 "%016" PRIx64, id_of(ids, root, 1), id_of(ids, root, 2));
}

void otlp_span_id(const struct otlp_ids *ids, uint32_t slice, char text[17])
{
    snprintf(text, 17, "%016" PRIx64, id_of(ids, slice, 3));
}
