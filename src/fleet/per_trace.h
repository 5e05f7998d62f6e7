/* What came of PerfettoSQL over single recordings: which gave rows, and which columns these have. */
#ifndef MERIDIAN_FLEET_PER_TRACE_H
#define MERIDIAN_FLEET_PER_TRACE_H

#include "fleet/places.h"

struct asked {
    char trace[FLEET_ID_SIZE];
    char *path; /* owned */
    uint64_t size;
    size_t place;
    bool answered, failed;
};

struct perfetto {
    struct fleet *f;
    const struct fleet_perfetto *what;
    char session[64]; /* "&session_id=…" */
    struct places places;
    VEC(struct asked)
    asked; /* by place, then trace */
    struct asked **by_trace;
    char *names; /* of the columns, with \x01 between; owned; NULL: no recording has answered yet */
    char *kinds; /* a letter for each, over all that answered; owned */
    size_t failed;
};

/* Makes by_trace, once all are known. */
int perfetto_index(struct perfetto *p, struct error *err);

/* The last lines of all recordings, which are in the temporary table perfetto_arrived: tells of those that failed. */
int perfetto_judge(struct perfetto *p, struct error *err);

/* The statement that makes the table `perfetto`, and the one that fills it. */
int perfetto_make_table(struct perfetto *p, struct error *err);

/* A statement of the session. */
int perfetto_run(struct perfetto *p, const char *sql, struct slice data, struct error *err);

#endif
