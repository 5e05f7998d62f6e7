/* The traces that a fleet has, by name and by UUID. */
#ifndef MERIDIAN_FLEET_KNOWN_H
#define MERIDIAN_FLEET_KNOWN_H

#include "fleet/fleet_private.h"

struct known_trace {
    char trace[FLEET_ID_SIZE], uuid[FLEET_ID_SIZE];
};

struct known {
    VEC(struct known_trace) traces; /* up to `sorted` by name */
    size_t sorted;
    VEC(uint32_t) by_uuid; /* of the sorted ones */
    VEC(bool) unlisted;    /* by shard: no replica of it has answered */
    struct error why;      /* of the last one that has not */
};

/* Reads all shards anew, each from all of its replicas that answer. A shard that does not answer is no failure. */
int known_read(struct known *k, const struct fleet *f, struct error *err);
void known_free(struct known *k);

bool known_has(const struct known *k, const char *trace);

/* Remembers a trace; false: no memory. */
bool known_add(struct known *k, const char *trace, const char *uuid);

/* Another trace that says the same UUID, or NULL. */
const char *known_same_uuid(const struct known *k, const char *trace, const char *uuid);

#endif
