/* A query's answer as QueryResult messages, one batch of cells at a time. */
#ifndef MERIDIAN_SERVER_BATCHES_H
#define MERIDIAN_SERVER_BATCHES_H

#include "meridian/tp.h"
#include "wire/pb_writer.h"

#include <stdatomic.h>

enum { BATCH_MAX_CELLS = 50000, BATCH_ENOUGH_BYTES = 128 << 10 };

/* The cells of a batch while it is filled. Kept between batches: one for all answers. Zeroed is ready. */
struct batch_pools {
    struct pb_writer strings, varints, doubles, blobs;
    uint8_t *cells; /* [BATCH_MAX_CELLS] */
    size_t n_cells;
};
void batch_pools_free(struct batch_pools *p);

/* An answer on its way. */
struct answer {
    struct tp *tp;
    struct tp_result *r; /* NULL: without rows */
    char *sql;           /* owned */
    size_t sql_len;
    int64_t start_ns;
    char *error; /* owned; ends the answer */
    bool begun;  /* the first message has been written */
    bool row;    /* a row stands ready that did not fit the last batch */
    bool done;   /* the last message has been written */
    struct tp_statements statements;
    const atomic_bool *overdue; /* the statement was ended since others waited; stays from answer to answer */
};

/* Runs the text (all statements; the rows are those of the last). A failure is part of the answer. */
void answer_query(struct answer *a, struct tp *tp, struct slice sql);

/* Runs the first statement at or after `*offset`, moves *offset behind it; *executed: there was one. */
void answer_statement(struct answer *a, struct tp *tp, struct slice sql, size_t *offset, bool *executed);

/* An answer that is only an error. */
void answer_error(struct answer *a, const char *error);

/* Ends an answer on its way with an error, closing its result. */
void answer_cut(struct answer *a, const char *error);

/* Writes the fields of the next QueryResult; then a->done tells whether it was the last. */
void answer_next(struct answer *a, struct batch_pools *pools, struct pb_writer *w);

void answer_free(struct answer *a);

#endif
