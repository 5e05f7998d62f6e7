/* The rows that the counters of the storage make in the table `stats`. */
#ifndef MERIDIAN_STORAGE_STATS_ROWS_H
#define MERIDIAN_STORAGE_STATS_ROWS_H

#include "storage/storage.h"

struct stats_line {
    uint32_t number; /* of the row, from 0 */
    enum stat_key key;
    uint32_t machine;             /* row of machine that it counts for; 0 for what is about no one machine */
    int64_t idx;                  /* COL_NULL: it has one value */
    int64_t machine_id, trace_id; /* as the table has them: COL_NULL for none */
    int64_t value;
};

/* Single stats, also when 0: those of no machine, then those of each; then indexed ones that were set, by machine, stat
 * and index. A negative code of `each` ends it. After storage_finalize(). */
int stats_rows_each(const struct storage *st, int (*each)(void *ctx, const struct stats_line *row), void *ctx);

/* Appends a row to a table with the columns of `stats`. -MRD_ENOMEM. */
int stats_rows_put(struct storage *st, struct table *out, const struct stats_line *row);

#endif
