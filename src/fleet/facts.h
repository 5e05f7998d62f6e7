/* What a commit says of its trace: when and where it was recorded, of what build, how much of each table. */
#ifndef MERIDIAN_FLEET_FACTS_H
#define MERIDIAN_FLEET_FACTS_H

#include "fleet/find.h"
#include "fleet/fleet_private.h"

struct facts {
    char uuid[FLEET_ID_SIZE];
    int64_t recorded_s; /* Unix time: of the recording's clock, else of the file */
    int64_t machines, start_ts, end_ts, lost, errors;
    char build[256];
};

/* Of a loaded trace. */
int facts_read(struct facts *f, const struct storage *st, const struct fleet_file *file, struct error *err);

/* The month of the recording as a number: 202611. */
int64_t facts_month(const struct facts *f);

struct facts_table {
    const char *name;
    uint64_t rows, bytes;
};

/* The line of a commit, from uuid on. */
void facts_put_line(struct click_text *t, const struct facts *f, const struct fleet_add *what,
                    const struct fleet_file *file, const char *host, int64_t import_ms,
                    const struct facts_table *tables, size_t n_tables);

/* A text as a cell of TabSeparated. */
void facts_put_cell(struct click_text *t, const char *text);

#endif
