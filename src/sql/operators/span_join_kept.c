/* The side of a span join that is kept and read again for each partition: its rows by time. */
#include "base/saturate.h"
#include "sql/operators/span_join.h"

int64_t span_join_kept_word(const struct side *s, int column, uint32_t row)
{
    if (column < 0)
        return 0;
    int64_t w = table_get(&s->kept->table, (uint32_t)column, row);
    enum col_type type = (enum col_type)s->kept->columns[column].type;
    if (w == column_null(type))
        return 0;
    return type == COL_F64 ? (int64_t)column_f64(w) : w;
}

int64_t span_join_adjusted(const struct span_input *in, int64_t ts, int64_t dur)
{
    return in->dur < 0 ? saturating_add(ts, 1) : dur < 0 ? ts : saturating_add(ts, dur);
}

static int64_t adjusted_at(const struct side *s, uint32_t row)
{
    return span_join_adjusted(s->in, span_join_kept_word(s, s->in->ts, row), span_join_kept_word(s, s->in->dur, row));
}

bool span_join_stands_in_order(const struct side *s)
{
    int64_t last_end = INT64_MIN;
    for (uint32_t row = 0; s->kept && row < s->kept->table.n_rows; row++) {
        int64_t ts = span_join_kept_word(s, s->in->ts, row), dur = span_join_kept_word(s, s->in->dur, row);
        if (ts < last_end || dur < -1)
            return false;
        last_end = s->in->dur < 0 ? ts : span_join_adjusted(s->in, ts, dur);
    }
    return s->kept != NULL;
}

void span_join_pass(struct side *s, int64_t ts)
{
    uint32_t n = s->kept->table.n_rows, first = s->kept_row + 1;
    uint64_t step = 1;
    if (first >= n || adjusted_at(s, first) >= ts)
        return;
    uint32_t before = first, behind = n; /* the last known to end before `ts`, the first known not to */
    while (before + step < n && behind == n) {
        if (adjusted_at(s, (uint32_t)(before + step)) < ts) {
            before += (uint32_t)step;
            step *= 2;
        } else {
            behind = (uint32_t)(before + step);
        }
    }
    while (behind - before > 1) {
        uint32_t middle = before + (behind - before) / 2;
        if (adjusted_at(s, middle) < ts)
            before = middle;
        else
            behind = middle;
    }
    s->kept_row = before - 1;
}
