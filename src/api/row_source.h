/* Rows that come from elsewhere than our own engine, behind the functions of struct tp_result: a server's (remote.h), a
 * fleet's (src/fleet/). */
#ifndef MERIDIAN_API_ROW_SOURCE_H
#define MERIDIAN_API_ROW_SOURCE_H

#include "base/error.h"
#include "meridian/tp.h"

/* Each does for `rows` what the tp_ function of that name does for a result. */
struct row_source {
    int (*columns)(const void *rows);
    const char *(*column_name)(const void *rows, int column);
    int (*step)(void *rows, struct error *err); /* negative: a code of our own */
    enum tp_type (*type)(const void *rows, int column);
    int64_t (*int64)(const void *rows, int column);
    double (*dbl)(const void *rows, int column);
    const char *(*bytes)(void *rows, int column, size_t *len); /* of texts with a NUL behind them; NULL for NULL */
    void (*close)(void *rows);
};

/* A result out of rows, which are closed with it; on failure they are not. `tp` keeps the text of errors. */
int tp_result_of(struct tp *tp, const struct row_source *source, void *rows, struct tp_result **out);

#endif
