/* The lines of one recording's rows: server/recording_rows.h has their columns. */
#ifndef MERIDIAN_SERVER_ROWS_TEXT_H
#define MERIDIAN_SERVER_ROWS_TEXT_H

#include "meridian/tp.h"
#include "wire/pb_writer.h"

/* A zeroed struct is one without a result. */
struct rows_text {
    struct tp_result *r; /* owned */
    struct pb_writer *out;
    const char *trace;
    int columns;
    char *kinds; /* of each column so far */
    int64_t rows;
};

/* Takes over the result, and also when there is no memory (false). `out` and `trace` must live on. */
bool rows_text_begin(struct rows_text *t, struct tp_result *r, struct pb_writer *out, const char *trace);

/* The current row of the result. */
void rows_text_put(struct rows_text *t);

/* The last line. */
void rows_text_end(const struct rows_text *t, struct pb_writer *out, const char *trace, const char *ended);
void rows_text_close(struct rows_text *t);

#endif
