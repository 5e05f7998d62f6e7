/* Reads the rows of a report's part. */
#include "shell/compare/report_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A number with three decimals at most. */
static const char *shown(struct arena *a, double v)
{
    char text[64];
    if (fabs(v) >= 1e15 || v != v)
        snprintf(text, sizeof text, "%.6g", v);
    else
        snprintf(text, sizeof text, "%.*f", fabs(v) >= 1000 ? 0 : fabs(v) >= 10 ? 1 : 3, v);
    return arena_strndup(a, text, strlen(text));
}

static bool read_cell(struct report_table *t, const struct tp_result *r, int column)
{
    struct report_cell c = {.text = ""};
    char number[32];
    switch (tp_column_type(r, column)) {
    case TP_INT64:
        snprintf(number, sizeof number, "%" PRId64, tp_int64(r, column));
        c = (struct report_cell){true, (double)tp_int64(r, column), arena_strndup(&t->arena, number, strlen(number))};
        break;
    case TP_DOUBLE:
        c = (struct report_cell){true, tp_double(r, column), shown(&t->arena, tp_double(r, column))};
        break;
    case TP_TEXT: {
        size_t len;
        const char *text = tp_text(r, column, &len);
        c.text = arena_strndup(&t->arena, text, len < 300 ? len : 300);
        break;
    }
    case TP_NULL:
    case TP_BLOB:
        break;
    }
    return c.text && vec_push(&t->cells, c);
}

static bool read_headings(struct report_table *t, const struct tp_result *r)
{
    t->n_columns = (size_t)tp_columns(r);
    t->headings = arena_alloc(&t->arena, (t->n_columns + 1) * sizeof *t->headings);
    for (size_t i = 0; i < t->n_columns && t->headings; i++) {
        const char *name = tp_column_name(r, (int)i);
        t->headings[i] = arena_strndup(&t->arena, name, strlen(name));
        if (!t->headings[i])
            return false;
    }
    return t->headings != NULL;
}

int report_read(struct report_table *t, struct tp *tp, const char *sql, struct error *err)
{
    struct tp_result *r;
    bool fits = true;
    *t = (struct report_table){0};
    int rc = tp_query(tp, sql, &r);
    if (rc == 0)
        fits = read_headings(t, r);
    while (rc == 0 && fits && (rc = tp_step(r)) == 1) {
        for (size_t i = 0; i < t->n_columns && fits; i++)
            fits = read_cell(t, r, (int)i);
        rc = 0;
    }
    if (rc < 0 && rc != TP_NOMEM && rc != TP_INTERRUPTED) {
        const char *text = tp_error(tp);
        vec_clear(&t->cells);
        t->problem = arena_strndup(&t->arena, text, strlen(text));
        fits = t->problem != NULL;
        rc = 0;
    }
    tp_result_close(r);
    if (rc == TP_INTERRUPTED)
        return error_set(err, -MRD_ECANCELLED, "interrupted");
    return rc < 0 || !fits ? error_set(err, -MRD_ENOMEM, "out of memory") : 0;
}

void report_table_free(struct report_table *t)
{
    vec_free(&t->cells);
    arena_free(&t->arena);
}
