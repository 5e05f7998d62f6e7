/* Sets of loads, and what a server has of them. */
#ifndef MERIDIAN_FLEET_LOADS_H
#define MERIDIAN_FLEET_LOADS_H

#include "fleet/fleet_private.h"

/* In order of their numbers, each once. */
struct loads {
    VEC(int64_t) list;
};
void loads_free(struct loads *l);
bool loads_have(const struct loads *l, int64_t load);

/* The first column of a query's rows. */
int loads_read(struct loads *out, const struct click_server *s, const char *sql, struct error *err);

/* Those of `a` that are not in `b`; those of either. */
int loads_without(struct loads *out, const struct loads *a, const struct loads *b, struct error *err);
int loads_add(struct loads *to, const struct loads *more, struct error *err);

/* "1,2,3" for IN (…), of list[from, to). */
void loads_put(struct click_text *t, const struct loads *l, size_t from, size_t to);
enum { LOADS_A_STATEMENT = 5000 }; /* servers take statements of 256 KiB */

#endif
