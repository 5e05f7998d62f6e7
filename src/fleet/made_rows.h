/* Rows of a loaded trace that a fleet has in place of those of a table, or beside them all: what tables.def names. */
#ifndef MERIDIAN_FLEET_MADE_ROWS_H
#define MERIDIAN_FLEET_MADE_ROWS_H

#include "base/vec.h"
#include "storage/storage.h"

struct made_rows {
    struct table table;
    VEC(uint32_t) ids; /* of each row in the table that it stands for; empty: there is none */
};

/* Fills a zeroed struct; free it in any case. Texts are added to `st`. -MRD_ENOMEM. */
typedef int (*made_rows_fn)(struct made_rows *m, struct storage *st);

int made_machines(struct made_rows *m, struct storage *st); /* each machine, with what it lost */
int made_cpus(struct made_rows *m, struct storage *st);     /* those that are there */
int made_stats(struct made_rows *m, struct storage *st);    /* those that are not 0 */

void made_rows_free(struct made_rows *m);

/* The columns of made_machines(). */
extern const struct table_def made_machines_def;

/* The sums of a trace's stats of these severities, those of one machine or (machine < 0) of all. */
struct made_losses {
    int64_t lost, errors;
};
int made_losses(struct made_losses *out, const struct storage *st, int64_t machine);

#endif
