/* Finds the tp_shell servers beside the files of recordings. */
#include "fleet/places.h"

#include <stdio.h>

#define DEFAULT_SOURCE "http://localhost:9001"

/* The columns of /recordings (server/recording_rows.h). */
#define ROWS_COLUMNS "trace String, row UInt64, ended Nullable(String), kinds String, cells Array(Nullable(String))"

void places_free(struct places *p)
{
    for (size_t i = 0; i < p->list.n; i++)
        vec_free(&p->list.p[i].sources);
    vec_free(&p->list);
}

static struct place *find(struct places *p, const char *host, size_t n)
{
    for (size_t i = 0; i < p->list.n; i++)
        if (strlen(p->list.p[i].host) == n && memcmp(p->list.p[i].host, host, n) == 0)
            return &p->list.p[i];
    return NULL;
}

struct place *places_at(struct places *p, const char *host)
{
    struct place *found = find(p, host, strlen(host));
    if (!found && (found = vec_add(&p->list)))
        snprintf(found->host, sizeof found->host, "%s", host);
    return found;
}

/* "HOST=URL"; a host without recordings is none of our business. */
static int add_named(struct places *p, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    struct click_server s = {0};
    if (!equals || equals == text)
        return error_set(err, -MRD_EINVALID, "--files: invalid value '%.100s': use HOST=http://ADDRESS:PORT", text);
    int rc = click_parse(&s, equals + 1, err);
    struct place *place = find(p, text, (size_t)(equals - text));
    if (rc < 0)
        return error_prefix(err, "--files");
    struct source *to = place ? vec_add(&place->sources) : NULL;
    if (place && !to)
        return fleet_no_memory(err);
    if (to)
        memcpy(to->url, s.url, sizeof to->url);
    return 0;
}

/* The address of a node among ClickHouse servers; "" for the one that is asked for all. */
static int find_address(struct fleet *f, const struct fleet_node *n, char *out, size_t room, struct error *err)
{
    const struct click_server *entry = &f->nodes.p[f->entry].server;
    char sql[400];
    out[0] = '\0';
    if (n == &f->nodes.p[f->entry])
        return 0;
    snprintf(
        sql, sizeof sql,
        "SELECT concat(host_name, ':', toString(port)) FROM system.clusters WHERE cluster = '%s' AND shard_num = %u "
        "AND replica_num = %u",
        f->cluster, n->shard + 1, n->replica + 1);
    return click_one(entry, sql, out, room, err);
}

/* The node on a host, the one that is asked for all before others; a node that does not answer is on none. */
static const struct fleet_node *node_on(struct fleet *f, const char *host)
{
    char name[256];
    for (size_t i = 0; i < f->nodes.n; i++) {
        const struct fleet_node *n = &f->nodes.p[(f->entry + i) % f->nodes.n];
        if (click_one(&n->server, "SELECT hostName()", name, sizeof name, NULL) == 0 && strcmp(name, host) == 0)
            return n;
    }
    return NULL;
}

int places_find(struct places *p, struct fleet *f, const char *const *files, size_t n, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_named(p, files[i], err);
    for (size_t i = 0; rc == 0 && i < p->list.n; i++) {
        struct place *place = &p->list.p[i];
        if (place->sources.n)
            continue;
        const struct fleet_node *node = node_on(f, place->host);
        struct source *s = node ? vec_add(&place->sources) : NULL;
        if (!node)
            return error_set(
                err, -MRD_ENOTFOUND,
                "the recordings' files are on %s, where no server of the fleet is: start tp_shell server http "
                "--traces DIR there, and name it with --files %s=http://ADDRESS:9001",
                place->host, place->host);
        if (!s)
            return fleet_no_memory(err);
        snprintf(s->url, sizeof s->url, DEFAULT_SOURCE);
        rc = find_address(f, node, s->through, sizeof s->through, err);
    }
    return rc;
}

void source_put_table(struct click_text *t, const struct fleet *f, const struct source *s, const char *rest)
{
    if (s->through[0]) {
        click_put(t, "remote(");
        click_put_quoted(t, s->through, strlen(s->through));
        click_put(t, ", ");
    }
    click_put(t, "url('");
    click_put(t, s->url);
    click_put(t, rest);
    click_put(t, "', 'TabSeparated', '" ROWS_COLUMNS "')");
    if (s->through[0] && f->user[0]) {
        click_put(t, ", ");
        click_put_quoted(t, f->user, strlen(f->user));
        click_put(t, ", ");
        click_put_quoted(t, f->password, strlen(f->password));
    }
    click_put(t, s->through[0] ? ")" : "");
}
