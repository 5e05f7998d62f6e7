/* Makes a fleet's databases and tables on its servers. */
#include "fleet/fleet_private.h"

#include <inttypes.h>
#include <stdio.h>

/* A replica as the servers' configuration has it. */
struct replica {
    unsigned shard, replica; /* from 1 */
    unsigned port;
    char host[128];
};

#define LOW_CARDINALITY "allow_experimental_low_cardinality_type"

struct target {
    const struct click_server *server;
    const char *settings;
};

static int run_statement(void *ctx, const char *sql, struct error *err)
{
    const struct target *t = ctx;
    return click_run(t->server, sql, t->settings, slice_of(NULL, 0), err);
}

static int make_schema(struct fleet *f, const struct click_server *s, struct error *err)
{
    uint64_t asks; /* versions before 19 want to be asked for it; current ones refuse what they do not know */
    int rc = fleet_number(s, &asks, err, "SELECT count() FROM system.settings WHERE name = '" LOW_CARDINALITY "'");
    struct target t = {s, asks ? "&" LOW_CARDINALITY "=1" : NULL};
    return rc < 0
               ? rc
               : fleet_schema_make(&f->schema, f->database, f->cluster[0] ? f->cluster : NULL, run_statement, &t, err);
}

/* `key` becomes `value`. */
static int set_meta(const struct fleet *f, const struct click_server *s, const char *key, const char *value,
                    struct error *err)
{
    struct click_text t = {0};
    click_putf(&t, "INSERT INTO %s_local.meta VALUES ", f->database);
    click_put(&t, "(");
    click_put_quoted(&t, key, strlen(key));
    click_put(&t, ", ");
    click_put_quoted(&t, value, strlen(value));
    click_put(&t, ")");
    int rc = t.bad ? fleet_no_memory(err) : click_run(s, click_string(&t), NULL, slice_of(NULL, 0), err);
    click_text_free(&t);
    return rc;
}

/* The database with meta in it, which says who this server is, and no more. */
static int begin_node(struct fleet *f, const struct click_server *s, struct error *err)
{
    int rc = fleet_run(s, err, "CREATE DATABASE IF NOT EXISTS %s_local", f->database);
    if (rc == 0)
        rc = fleet_run(s, err, "DROP TABLE IF EXISTS %s_local.meta", f->database);
    if (rc == 0)
        rc = fleet_run(s, err, "CREATE TABLE %s_local.meta (key String, value String) ENGINE = MergeTree ORDER BY key",
                       f->database);
    return rc < 0 ? rc : set_meta(f, s, "self", s->url, err);
}

/* The replicas of the cluster as `s` is configured. */
static int read_cluster(struct fleet *f, const struct click_server *s, struct replica *out, size_t room, size_t *n,
                        struct error *err)
{
    struct click_rows *rows;
    *n = 0;
    int rc =
        fleet_ask(s, &rows, err,
                  "SELECT shard_num, replica_num, port, host_name FROM system.clusters WHERE cluster = '%s' ORDER BY "
                  "shard_num, replica_num",
                  f->cluster);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 4, err)) == 1) {
        if (*n == room) {
            rc =
                error_set(err, -MRD_ELIMIT, "%s: the cluster '%s' has more than %zu servers", s->url, f->cluster, room);
            break;
        }
        struct replica *r = &out[(*n)++];
        r->shard = (unsigned)click_u64(rows, 0);
        r->replica = (unsigned)click_u64(rows, 1);
        r->port = (unsigned)click_u64(rows, 2);
        snprintf(r->host, sizeof r->host, "%s", click_cell(rows, 3));
    }
    click_close(rows);
    if (rc == 0 && *n == 0)
        rc =
            error_set(err, -MRD_ENOTFOUND,
                      "%s: its configuration has no cluster '%s'; 'SELECT DISTINCT cluster FROM system.clusters' lists "
                      "them",
                      s->url, f->cluster);
    return rc;
}

/* Which of our servers stands behind the address that the cluster has: it is asked, through the first one. */
static int find_node(struct fleet *f, const struct replica *r, struct error *err)
{
    struct click_text t = {0};
    char url[256], address[160];
    snprintf(address, sizeof address, "%s:%u", r->host, r->port);
    click_put(&t, "SELECT value FROM remote(");
    click_put_quoted(&t, address, strlen(address));
    click_putf(&t, ", %s_local, meta", f->database);
    if (f->user[0]) {
        click_put(&t, ", ");
        click_put_quoted(&t, f->user, strlen(f->user));
        click_put(&t, ", ");
        click_put_quoted(&t, f->password, strlen(f->password));
    }
    click_put(&t, ") WHERE key = 'self'");
    int rc = t.bad ? fleet_no_memory(err) : click_one(&f->nodes.p[0].server, click_string(&t), url, sizeof url, err);
    click_text_free(&t);
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++) {
        if (strcmp(f->nodes.p[i].server.url, url) != 0)
            continue;
        f->nodes.p[i].shard = r->shard - 1;
        f->nodes.p[i].replica = r->replica - 1;
        return 0;
    }
    return error_set(err, -MRD_ENOTFOUND,
                     "the cluster '%s' has a server %s, which is none of those given: give the addresses of all",
                     f->cluster, address);
}

/* What the cluster is, in `out` with room for FLEET_MAX_SERVERS: every server must know it, and all the same. */
static int read_replicas(struct fleet *f, struct replica *out, size_t *n, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++) {
        size_t before = *n;
        rc = read_cluster(f, &f->nodes.p[i].server, out, FLEET_MAX_SERVERS, n, err);
        if (rc == 0 && i > 0 && *n != before)
            rc = error_set(err, -MRD_EINVALID, "%s: its cluster '%s' has %zu servers, that of %s has %zu",
                           f->nodes.p[i].server.url, f->cluster, *n, f->nodes.p[0].server.url, before);
    }
    if (rc == 0 && *n != f->nodes.n)
        rc = error_set(err, -MRD_EINVALID,
                       "the cluster '%s' has %zu servers, and %zu addresses are given: give those of all", f->cluster,
                       *n, f->nodes.n);
    f->n_shards = 0;
    for (size_t i = 0; rc == 0 && i < *n; i++)
        f->n_shards = out[i].shard > f->n_shards ? out[i].shard : f->n_shards;
    return rc;
}

/* The last of a server: from now on it is one of a fleet. */
static int end_node(struct fleet *f, const struct click_server *s, struct error *err)
{
    char key[40], value[40];
    int rc = f->cluster[0] ? set_meta(f, s, "cluster", f->cluster, err) : 0;
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++) {
        snprintf(key, sizeof key, "node %04u %04u", f->nodes.p[i].shard, f->nodes.p[i].replica);
        rc = set_meta(f, s, key, f->nodes.p[i].server.url, err);
    }
    snprintf(value, sizeof value, "%" PRIx64, f->schema.hash);
    if (rc == 0)
        rc = set_meta(f, s, "columns", value, err);
    snprintf(value, sizeof value, "%x", FLEET_SCHEMA);
    return rc < 0 ? rc : set_meta(f, s, "schema", value, err);
}

/* How many shards a server says that its fleet has; 0: it has none. */
static int shards_before(struct fleet *f, const struct click_server *s, uint64_t *n, struct error *err)
{
    bool found;
    *n = 0;
    int rc = fleet_check_version(f, s, &found, err);
    if (rc < 0 || !found)
        return rc;
    return fleet_number(s, n, err, "SELECT uniqExact(substring(key, 6, 4)) FROM %s_local.meta WHERE key LIKE 'node %%'",
                        f->database);
}

/* Where a trace belongs depends on how many shards there are. */
static int check_shards(struct fleet *f, uint64_t before, struct error *err)
{
    if (before == 0 || before == f->n_shards)
        return 0;
    return error_set(err, -MRD_EUNSUPPORTED,
                     "the fleet '%s' has %" PRIu64
                     " shards and cannot be spread over %u: make another beside it (tp_shell "
                     "fleet init --database NAME) and add the recordings to that",
                     f->database, before, f->n_shards);
}

static int make_nodes(struct fleet *f, struct replica *replicas, struct error *err)
{
    uint64_t before = 0, n;
    size_t n_replicas = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++) {
        rc = shards_before(f, &f->nodes.p[i].server, &n, err);
        before = n > before ? n : before;
    }
    if (rc == 0 && f->cluster[0])
        rc = read_replicas(f, replicas, &n_replicas, err);
    if (rc == 0)
        rc = check_shards(f, before, err);
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++)
        rc = begin_node(f, &f->nodes.p[i].server, err);
    for (size_t i = 0; rc == 0 && i < n_replicas; i++)
        rc = find_node(f, &replicas[i], err);
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++)
        rc = make_schema(f, &f->nodes.p[i].server, err);
    for (size_t i = 0; rc == 0 && i < f->nodes.n; i++)
        rc = end_node(f, &f->nodes.p[i].server, err);
    return rc;
}

int fleet_init(const struct fleet_where *where, const char *cluster, struct error *err)
{
    struct fleet *f;
    int rc = fleet_prepare(&f, where, err);
    if (rc == 0 && !cluster && where->n_servers > 1)
        rc =
            error_set(err, -MRD_EINVALID,
                      "fleet init: several servers are a cluster: give its name in their configuration with --cluster");
    if (rc == 0 && cluster &&
        ((size_t)snprintf(f->cluster, sizeof f->cluster, "%s", cluster) >= sizeof f->cluster ||
         !fleet_is_cluster(cluster)))
        rc = error_set(err, -MRD_EINVALID, "--cluster: invalid name '%.60s'", cluster);
    for (size_t i = 0; rc == 0 && i < where->n_servers; i++)
        rc = fleet_add_node(f, where->servers[i], 0, (unsigned)i, err);
    struct replica *replicas = mem_zalloc(FLEET_MAX_SERVERS * sizeof *replicas);
    if (rc == 0)
        rc = replicas ? make_nodes(f, replicas, err) : fleet_no_memory(err);
    mem_free(replicas);
    fleet_close(f);
    return rc;
}
