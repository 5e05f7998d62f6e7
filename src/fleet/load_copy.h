/* Gives a server of a shard what another one has of a load: its rows, then its commit.
 *
 * What one server says of a load becomes statements for another, so nothing of it is taken as it comes: tables are
 * those of the schema, numbers of rows have a bound, and a round of copying counts only when the receiver has got its
 * rows. */
#ifndef MERIDIAN_FLEET_LOAD_COPY_H
#define MERIDIAN_FLEET_LOAD_COPY_H

#include "fleet/fleet_private.h"

/* How many rows a load has in each table, by the schema's numbers. */
struct load_rows {
    uint64_t *n;
};

/* As the commit says that `from` has. -MRD_EFORMAT: it cannot be that of a load. Free it in any case. */
int load_rows_read(struct load_rows *out, const struct fleet *f, const struct click_server *from, int64_t load,
                   struct error *err);
void load_rows_free(struct load_rows *r);

/* *all: `s` has as many rows of the load. */
int load_rows_compare(const struct load_rows *r, const struct fleet *f, const struct click_server *s, int64_t load,
                      bool *all, struct error *err);

/* Copies all rows to a server that has none of the load. After each round `each` is told how many more there are; a
 * negative code of it ends the copying. */
int load_rows_copy(const struct load_rows *r, const struct fleet *f, const struct click_server *from,
                   const struct click_server *to, int64_t load,
                   int (*each)(void *ctx, uint64_t rows, struct error *err), void *ctx, struct error *err);

int load_commit_copy(const struct fleet *f, const struct click_server *from, const struct click_server *to,
                     int64_t load, struct error *err);

/* The schema's number of a table that a server names, with `ending` behind it. -MRD_EFORMAT: no fleet has it. */
int fleet_named_table(const struct fleet *f, const struct click_server *s, const char *name, const char *ending,
                      struct error *err);

#endif
