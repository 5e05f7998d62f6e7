/* What the files behind fleet.h share. */
#ifndef MERIDIAN_FLEET_FLEET_PRIVATE_H
#define MERIDIAN_FLEET_FLEET_PRIVATE_H

#include "fleet/click.h"
#include "fleet/fleet.h"
#include "fleet/fleet_schema.h"

enum { FLEET_MAX_SERVERS = 1000 };
enum { FLEET_ID_SIZE = 37 }; /* of a trace's UUID with its NUL */

struct fleet_node {
    struct click_server server;
    unsigned shard, replica; /* from 0 */
};

struct fleet {
    char database[64];
    char cluster[64]; /* "": one server */
    char user[64], password[128];
    struct click_limits limits; /* of all servers */
    char settings[200];         /* of statements of users, which only read */
    struct fleet_schema schema;
    VEC(struct fleet_node)
    nodes; /* by shard, then replica */
    unsigned n_shards;
    size_t entry; /* the node that is asked for all */
};

int fleet_no_memory(struct error *err);

/* A fleet without nodes, its names checked. */
int fleet_prepare(struct fleet **out, const struct fleet_where *where, struct error *err);
/* The server at an address, with the fleet's user and limits. */
int fleet_server_at(const struct fleet *f, const char *address, struct click_server *out, struct error *err);

/* Is it a name for a cluster that may stand in SQL? */
bool fleet_is_cluster(const char *name);

int fleet_add_node(struct fleet *f, const char *url, unsigned shard, unsigned replica, struct error *err);

/* Of `s`: NAME_local.meta holds the schema and its hash, or there is none (*found false). -MRD_EEXISTS when they are of
 * another version. */
int fleet_check_version(struct fleet *f, const struct click_server *s, bool *found, struct error *err);

/* The shard that a trace belongs to. */
unsigned fleet_shard_of(const struct fleet *f, const char *trace);

/* The first node of a shard; nodes of the shard follow each other. */
const struct fleet_node *fleet_shard_nodes(const struct fleet *f, unsigned shard, size_t *n);

/* A statement with printf's formats on one server. */
int fleet_run(const struct click_server *s, struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int fleet_ask(const struct click_server *s, struct click_rows **rows, struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The first cell of the answer as a number. */
int fleet_number(const struct click_server *s, uint64_t *out, struct error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- repair.c ---- */

/* Gives commits and drops that some replicas of a shard have to the others, where all rows of the load are there.
 * Shards with a replica that does not answer are left. */
int fleet_settle(struct fleet *f, uint64_t *settled, struct error *err);

#endif
