/* Where the files of a fleet's recordings are, and how ClickHouse reaches the tp_shell server beside them.
 *
 * A place is a host, as the commits name it, with one server or several. Each is asked by ClickHouse through its table
 * function url(): by the ClickHouse server of the same host, on its loopback, where the fleet has one there; else by
 * the one that is asked for all. */
#ifndef MERIDIAN_FLEET_PLACES_H
#define MERIDIAN_FLEET_PLACES_H

#include "fleet/fleet_private.h"

struct source {
    char url[200];     /* of the tp_shell server, as its asker sees it */
    char through[200]; /* "host:port" of the ClickHouse server that asks it; "": the one that is asked for all */
};

struct place {
    char host[256];
    VEC(struct source)
    sources;
};

struct places {
    VEC(struct place)
    list;
};

/* The place of a host, made when it is not there; NULL when out of memory. */
struct place *places_at(struct places *p, const char *host);

/* Finds the sources of all places: those of `files` ("HOST=URL" each), else by the fleet's own hosts, port 9001.
 * -MRD_ENOTFOUND: of a host there is none. */
int places_find(struct places *p, struct fleet *f, const char *const *files, size_t n, struct error *err);
void places_free(struct places *p);

/* Writes the table that a source gives for the rest of an address ("/recordings?…", %-encoded). */
void source_put_table(struct click_text *t, const struct fleet *f, const struct source *s, const char *rest);

#endif
