/* The traces that a fleet has. */
#include "fleet/known.h"

#include "base/bisect.h"

#include <stdio.h>
#include <stdlib.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct known_trace *)a)->trace, ((const struct known_trace *)b)->trace);
}

static int by_uuid(const void *a, const void *b, void *ctx)
{
    const struct known_trace *t = ctx;
    return strcmp(t[*(const uint32_t *)a].uuid, t[*(const uint32_t *)b].uuid);
}

static bool sort(struct known *k)
{
    if (k->traces.n == k->sorted)
        return true;
    if (!vec_reserve(&k->by_uuid, k->traces.n))
        return false;
    qsort(k->traces.p, k->traces.n, sizeof *k->traces.p, by_name);
    k->sorted = k->traces.n;
    k->by_uuid.n = k->traces.n;
    for (size_t i = 0; i < k->traces.n; i++)
        k->by_uuid.p[i] = (uint32_t)i;
    qsort_r(k->by_uuid.p, k->by_uuid.n, sizeof *k->by_uuid.p, by_uuid, k->traces.p);
    return true;
}

static int read_node(struct known *k, const struct fleet *f, const struct click_server *s, struct error *err)
{
    struct click_rows *rows;
    int rc = fleet_ask(s, &rows, err,
                       "SELECT trace, uuid FROM %s_local.commits WHERE load IN (SELECT load FROM %s_local.loads)",
                       f->database, f->database);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 2, err)) == 1)
        if (!known_add(k, click_cell(rows, 0), click_cell(rows, 1))) {
            rc = fleet_no_memory(err);
            break;
        }
    click_close(rows);
    return rc;
}

/* Traces that are there twice (of two replicas) do no harm. */
int known_read(struct known *k, const struct fleet *f, struct error *err)
{
    known_free(k);
    for (unsigned shard = 0; shard < f->n_shards; shard++) {
        size_t n;
        const struct fleet_node *nodes = fleet_shard_nodes(f, shard, &n);
        bool listed = false;
        for (size_t i = 0; i < n; i++) {
            int rc = read_node(k, f, &nodes[i].server, &k->why);
            if (rc == -MRD_ENOMEM)
                return fleet_no_memory(err);
            listed |= rc == 0;
        }
        if (!vec_push(&k->unlisted, !listed))
            return fleet_no_memory(err);
    }
    return sort(k) ? 0 : fleet_no_memory(err);
}

void known_free(struct known *k)
{
    vec_free(&k->traces);
    vec_free(&k->by_uuid);
    vec_free(&k->unlisted);
    k->sorted = 0;
}

bool known_has(const struct known *k, const char *trace)
{
    struct known_trace key;
    snprintf(key.trace, sizeof key.trace, "%s", trace);
    if (k->sorted && bsearch(&key, k->traces.p, k->sorted, sizeof key, by_name))
        return true;
    for (size_t i = k->sorted; i < k->traces.n; i++)
        if (strcmp(k->traces.p[i].trace, trace) == 0)
            return true;
    return false;
}

enum { UNSORTED_MAX = 1000 };

bool known_add(struct known *k, const char *trace, const char *uuid)
{
    struct known_trace *t = vec_add(&k->traces);
    if (!t)
        return false;
    snprintf(t->trace, sizeof t->trace, "%s", trace ? trace : "");
    snprintf(t->uuid, sizeof t->uuid, "%s", uuid ? uuid : "");
    return k->sorted == 0 || k->traces.n - k->sorted < UNSORTED_MAX || sort(k);
}

static bool is_other(const struct known_trace *t, const char *trace, const char *uuid)
{
    return strcmp(t->uuid, uuid) == 0 && strcmp(t->trace, trace) != 0;
}

const char *known_same_uuid(const struct known *k, const char *trace, const char *uuid)
{
    size_t at = k->by_uuid.n;
    if (!uuid[0])
        return NULL;
    BISECT(at, i, strcmp(k->traces.p[k->by_uuid.p[i]].uuid, uuid) < 0);
    for (; at < k->by_uuid.n && strcmp(k->traces.p[k->by_uuid.p[at]].uuid, uuid) == 0; at++)
        if (is_other(&k->traces.p[k->by_uuid.p[at]], trace, uuid))
            return k->traces.p[k->by_uuid.p[at]].trace;
    for (size_t i = k->sorted; i < k->traces.n; i++)
        if (is_other(&k->traces.p[i], trace, uuid))
            return k->traces.p[i].trace;
    return NULL;
}
