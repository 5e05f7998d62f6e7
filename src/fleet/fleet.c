/* Opens a fleet: which servers it has, and whether this program knows its schema. */
#include "fleet/fleet_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int fleet_no_memory(struct error *err)
{
    return error_set(err, -MRD_ENOMEM, "out of memory");
}

static bool is_name(const char *name, size_t room)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return n > 0 && n < room && !isdigit((unsigned char)name[0]);
}

static bool copy_text(char *to, size_t room, const char *from)
{
    return (size_t)snprintf(to, room, "%s", from ? from : "") < room;
}

bool fleet_is_cluster(const char *name)
{
    return name[0] && !strpbrk(name, "'\\` ,()");
}

static void set_limits(struct click_limits *l, const struct fleet_where *where)
{
    *l = click_usual_limits;
    if (where->limit_ms)
        l->silence_ms = l->total_ms = where->limit_ms;
    if (where->limit_bytes)
        l->bytes = where->limit_bytes;
    if (where->limit_rows)
        l->rows = where->limit_rows;
    l->user_ms = where->user_ms;
}

int fleet_prepare(struct fleet **out, const struct fleet_where *where, struct error *err)
{
    struct fleet *f = *out = mem_zalloc(sizeof *f);
    const char *database = where->database ? where->database : "fleet";
    if (!f)
        return fleet_no_memory(err);
    if (!is_name(database, sizeof f->database - 8))
        return error_set(err, -MRD_EINVALID, "--database: invalid name '%.60s': use letters, digits and underscores",
                         database);
    copy_text(f->database, sizeof f->database, database);
    set_limits(&f->limits, where);
    /* A trace is on one shard whole, so that joins and IN between tables may stay within each. */
    snprintf(f->settings, sizeof f->settings,
             "&database=%s&readonly=2&distributed_product_mode=local&enable_optimize_predicate_expression=1",
             f->database);
    if (!copy_text(f->user, sizeof f->user, where->user) ||
        !copy_text(f->password, sizeof f->password, where->password))
        return error_set(err, -MRD_EINVALID, "the user's name or password is too long");
    return fleet_schema_open(&f->schema, err);
}

int fleet_server_at(const struct fleet *f, const char *address, struct click_server *out, struct error *err)
{
    *out = (struct click_server){
        .user = f->user[0] ? f->user : NULL, .password = f->password[0] ? f->password : NULL, .limits = f->limits};
    return click_parse(out, address, err);
}

int fleet_add_node(struct fleet *f, const char *url, unsigned shard, unsigned replica, struct error *err)
{
    if (f->nodes.n == FLEET_MAX_SERVERS)
        return error_set(err, -MRD_ELIMIT, "the fleet '%s' has more than %d servers", f->database, FLEET_MAX_SERVERS);
    struct fleet_node *n = vec_add(&f->nodes);
    if (!n)
        return fleet_no_memory(err);
    n->shard = shard;
    n->replica = replica;
    f->n_shards = shard + 1 > f->n_shards ? shard + 1 : f->n_shards;
    return fleet_server_at(f, url, &n->server, err);
}

void fleet_close(struct fleet *f)
{
    if (!f)
        return;
    fleet_schema_close(&f->schema);
    vec_free(&f->nodes);
    mem_free(f);
}

/* ---- statements ---- */

static int run_list(const struct click_server *s, struct click_rows **rows, struct error *err, const char *fmt,
                    va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *sql = n < 0 ? NULL : mem_alloc((size_t)n + 1);
    if (sql)
        vsnprintf(sql, (size_t)n + 1, fmt, again);
    va_end(again);
    int rc = !sql   ? fleet_no_memory(err)
             : rows ? click_query(s, sql, NULL, rows, err)
                    : click_run(s, sql, NULL, slice_of(NULL, 0), err);
    mem_free(sql);
    return rc;
}

int fleet_run(const struct click_server *s, struct error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = run_list(s, NULL, err, fmt, ap);
    va_end(ap);
    return rc;
}

int fleet_ask(const struct click_server *s, struct click_rows **rows, struct error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *rows = NULL;
    int rc = run_list(s, rows, err, fmt, ap);
    va_end(ap);
    return rc;
}

int fleet_number(const struct click_server *s, uint64_t *out, struct error *err, const char *fmt, ...)
{
    struct click_rows *rows = NULL;
    va_list ap;
    va_start(ap, fmt);
    *out = 0;
    int rc = run_list(s, &rows, err, fmt, ap);
    va_end(ap);
    if (rc == 0 && (rc = click_step(rows, err)) == 1)
        *out = click_u64(rows, 0);
    click_close(rows);
    return rc < 0 ? rc : 0;
}

/* ---- what a server says of its fleet ---- */

int fleet_check_version(struct fleet *f, const struct click_server *s, bool *found, struct error *err)
{
    struct click_rows *rows = NULL;
    uint64_t there = 0, schema = 0, hash = 0;
    int rc = fleet_number(s, &there, err, "EXISTS TABLE %s_local.meta", f->database);
    *found = false;
    if (rc < 0 || !there)
        return rc;
    rc = fleet_ask(s, &rows, err, "SELECT key, value FROM %s_local.meta WHERE key IN ('schema', 'columns')",
                   f->database);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 2, err)) == 1) {
        const char *key = click_cell(rows, 0), *value = click_cell(rows, 1);
        *(strcmp(key, "schema") == 0 ? &schema : &hash) = strtoull(value, NULL, 16);
    }
    click_close(rows);
    if (rc < 0)
        return rc;
    *found = schema != 0;
    if (schema != 0 && (schema != FLEET_SCHEMA || hash != f->schema.hash))
        return error_set(err, -MRD_EEXISTS,
                         "%s: the fleet '%s' has the schema %" PRIu64 ".%016" PRIx64
                         ", this tp_shell writes %d.%016" PRIx64
                         ". Use the tp_shell that made it, or make another fleet beside it (tp_shell fleet init "
                         "--database NAME) and add the recordings to that",
                         s->url, f->database, schema, hash, FLEET_SCHEMA, f->schema.hash);
    return 0;
}

/* Shards come in order, and none is without a node. */
static bool is_next(const struct fleet *f, unsigned shard)
{
    const unsigned before = f->nodes.n ? vec_last(&f->nodes)->shard : 0;
    return shard == before || (f->nodes.n && shard == before + 1);
}

static int read_nodes(struct fleet *f, const struct click_server *s, struct error *err)
{
    struct click_rows *rows;
    int rc = fleet_ask(s, &rows, err,
                       "SELECT key, value FROM %s_local.meta WHERE key LIKE 'node %%' OR key = 'cluster' ORDER BY key",
                       f->database);
    while (rc >= 0 && rows && (rc = click_step_whole(rows, 2, err)) == 1) {
        unsigned shard, replica;
        const char *key = click_cell(rows, 0), *value = click_cell(rows, 1);
        if (strcmp(key, "cluster") == 0 && fleet_is_cluster(value) && strlen(value) < sizeof f->cluster)
            copy_text(f->cluster, sizeof f->cluster, value);
        else if (sscanf(key, "node %u %u", &shard, &replica) != 2 || !is_next(f, shard))
            rc = error_set(err, -MRD_EFORMAT, "%s: %s_local.meta has an unknown line '%.60s' '%.60s'", s->url,
                           f->database, key, value);
        else
            rc = fleet_add_node(f, value, shard, replica, err);
        if (rc < 0)
            break;
        if (f->nodes.n && strcmp(vec_last(&f->nodes)->server.url, s->url) == 0)
            f->entry = f->nodes.n - 1;
    }
    click_close(rows);
    if (rc == 0 && f->nodes.n == 0)
        rc = error_set(err, -MRD_EFORMAT, "%s: the fleet '%s' is not complete; run tp_shell fleet init again", s->url,
                       f->database);
    return rc;
}

/* The fleet as this server tells it. */
static int open_by(struct fleet *f, const char *address, struct error *err)
{
    struct click_server s;
    bool found;
    int rc = fleet_server_at(f, address, &s, err);
    if (rc == 0)
        rc = fleet_check_version(f, &s, &found, err);
    if (rc == 0 && !found)
        rc = error_set(err, -MRD_ENOTFOUND, "%s: there is no fleet '%s'; make one with tp_shell fleet init", s.url,
                       f->database);
    return rc < 0 ? rc : read_nodes(f, &s, err);
}

int fleet_open(struct fleet **out, const struct fleet_where *where, struct error *err)
{
    struct error first = {0};
    struct fleet *f;
    int rc = fleet_prepare(&f, where, err);
    bool prepared = rc == 0;
    for (size_t i = 0; prepared && i < where->n_servers; i++) {
        rc = open_by(f, where->servers[i], err);
        if (rc == 0 || rc == -MRD_EEXISTS || rc == -MRD_EINVALID || rc == -MRD_ENOMEM)
            break;
        if (!first.code && err)
            first = *err;
        vec_clear(&f->nodes);
    }
    if (rc < 0) {
        if (first.code && err && rc != -MRD_EEXISTS && rc != -MRD_EINVALID)
            *err = first;
        fleet_close(f);
        f = NULL;
    }
    *out = f;
    return rc;
}

/* ---- shards ---- */

unsigned fleet_shard_of(const struct fleet *f, const char *trace)
{
    char digits[17] = {0};
    size_t n = 0;
    for (const char *p = trace; *p && n < 8; p++)
        if (isxdigit((unsigned char)*p))
            digits[n++] = *p;
    return f->n_shards ? (unsigned)(strtoull(digits, NULL, 16) % f->n_shards) : 0;
}

const struct fleet_node *fleet_shard_nodes(const struct fleet *f, unsigned shard, size_t *n)
{
    const struct fleet_node *first = NULL;
    *n = 0;
    for (size_t i = 0; i < f->nodes.n; i++) {
        if (f->nodes.p[i].shard != shard)
            continue;
        first = first ? first : &f->nodes.p[i];
        ++*n;
    }
    return first;
}

int fleet_query(struct fleet *f, struct tp *tp, const char *sql, struct tp_result **out, struct error *err)
{
    const struct click_server entry = click_for_users(&f->nodes.p[f->entry].server);
    struct click_rows *rows;
    *out = NULL;
    int rc = click_query(&entry, sql, f->settings, &rows, err);
    if (rc < 0)
        return rc;
    if (tp_result_of(tp, &click_source, rows, out) < 0) {
        click_close(rows);
        return fleet_no_memory(err);
    }
    return 0;
}
