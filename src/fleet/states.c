/* What each server of a fleet has. */
#include "fleet/loads.h"

#include <stdio.h>

static int read_commits(struct fleet *f, const struct fleet_node *n, struct fleet_server_state *s,
                        struct loads *commits, struct error *err)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT load FROM %s_local.loads", f->database);
    int rc = loads_read(commits, &n->server, sql, err);
    s->traces = commits->list.n;
    return rc;
}

static int read_state(struct fleet *f, const struct fleet_node *n, struct fleet_server_state *s, struct loads *commits,
                      struct error *err)
{
    const struct click_server *server = &n->server;
    int rc = fleet_number(server, &s->traces, err, "SELECT count() FROM %s_local.loads", f->database);
    if (rc == 0)
        rc = fleet_number(server, &s->rows, err,
                          "SELECT sum(rows) FROM system.parts WHERE active AND database = '%s_local' AND table LIKE "
                          "'%%_rows'",
                          f->database);
    if (rc == 0)
        rc = fleet_number(server, &s->disk_bytes, err,
                          "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '%s_local'",
                          f->database);
    if (rc == 0)
        rc = fleet_number(server, &s->errors, err, "SELECT count() FROM %s%s.fleet_errors", f->database,
                          f->cluster[0] ? "_local" : "");
    if (rc == 0)
        rc = fleet_number(
            server, &s->begun, err,
            "SELECT uniqExact(load) FROM %s_local.begun WHERE load NOT IN (SELECT load FROM %s_local.commits)",
            f->database, f->database);
    return rc < 0 ? rc : read_commits(f, n, s, commits, err);
}

typedef int (*reader)(struct fleet *f, const struct fleet_node *n, struct fleet_server_state *s, struct loads *commits,
                      struct error *err);

/* Calls `each` for every server of the shards that have `replicas` or more. */
static int for_shards(struct fleet *f, reader read, size_t replicas,
                      void (*each)(void *ctx, const struct fleet_server_state *s), void *ctx, struct error *err)
{
    int rc = 0;
    for (unsigned shard = 0; rc >= 0 && shard < f->n_shards; shard++) {
        size_t n;
        const struct fleet_node *nodes = fleet_shard_nodes(f, shard, &n);
        if (n < replicas)
            continue;
        struct fleet_server_state *states = mem_zalloc((n + 1) * sizeof *states);
        struct loads *commits = mem_zalloc((n + 1) * sizeof *commits), all = {0}, missing = {0};
        rc = states && commits ? 0 : fleet_no_memory(err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            struct error why = {0};
            states[i] = (struct fleet_server_state){
                .url = nodes[i].server.url, .shard = nodes[i].shard, .replica = nodes[i].replica};
            states[i].reachable = read(f, &nodes[i], &states[i], &commits[i], &why) == 0;
            snprintf(states[i].why, sizeof states[i].why, "%.199s", why.text);
            rc = loads_add(&all, &commits[i], err);
        }
        for (size_t i = 0; rc == 0 && i < n; i++) {
            rc = loads_without(&missing, &all, &commits[i], err);
            states[i].missing = missing.list.n;
            each(ctx, &states[i]);
        }
        for (size_t i = 0; commits && i < n; i++)
            loads_free(&commits[i]);
        loads_free(&all);
        loads_free(&missing);
        mem_free(states);
        mem_free(commits);
    }
    return rc;
}

int fleet_states(struct fleet *f, void (*each)(void *ctx, const struct fleet_server_state *s), void *ctx,
                 struct error *err)
{
    return for_shards(f, read_state, 1, each, ctx, err);
}

int fleet_compare_replicas(struct fleet *f, void (*each)(void *ctx, const struct fleet_server_state *s), void *ctx,
                           struct error *err)
{
    return for_shards(f, read_commits, 2, each, ctx, err);
}
