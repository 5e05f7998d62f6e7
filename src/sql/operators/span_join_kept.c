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

/* The words of rows [first, first + n) of one chunk, which are integers; 0 where there is no such column. */
static void read_ahead(const struct side *s, int column, uint32_t first, uint32_t n, int64_t *out)
{
    if (column < 0)
        memset(out, 0, n * sizeof *out);
    else if (s->kept->columns[column].type == COL_I64)
        column_unpack(&s->kept->table.columns[column], first, n, out);
    else
        for (uint32_t i = 0; i < n; i++)
            out[i] = span_join_kept_word(s, column, first + i);
}

struct span_words span_join_kept_words(struct side *s)
{
    struct span_ahead *a = &s->ahead;
    uint32_t i = s->kept_row - a->first, n_rows = s->kept->table.n_rows;
    if (i >= a->n) {
        a->first = s->kept_row & ~(uint32_t)(SPAN_JOIN_AHEAD - 1);
        a->n = n_rows - a->first < SPAN_JOIN_AHEAD ? n_rows - a->first : SPAN_JOIN_AHEAD;
        read_ahead(s, s->in->ts, a->first, a->n, a->ts);
        read_ahead(s, s->in->dur, a->first, a->n, a->dur);
        read_ahead(s, s->in->part, a->first, a->n, a->part);
        i = s->kept_row - a->first;
    }
    return (struct span_words){a->ts[i], a->dur[i] == COL_NULL ? 0 : a->dur[i], a->part[i]};
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
