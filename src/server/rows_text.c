/* Writes rows of a result as lines of ClickHouse's TabSeparated, the cells as one array of texts. */
#include "server/rows_text.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A text as it stands between tabs and in quotes alike. */
static void put_escaped(struct pb_writer *out, const char *text, size_t n)
{
    static const char special[] = "\b\f\n\r\t\\'", letters[] = "bfnrt\\'";
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = text[i] ? strchr(special, text[i]) : NULL;
        if (text[i] && !at)
            continue;
        pb_put_raw(out, text + done, i - done);
        pb_put_raw(out, (const char[]){'\\', at ? letters[at - special] : '0'}, 2);
        done = i + 1;
    }
    pb_put_raw(out, text + done, n - done);
}

static void put(struct pb_writer *out, const char *text)
{
    pb_put_raw(out, text, strlen(text));
}

static void put_quoted(struct pb_writer *out, const char *text, size_t n)
{
    put(out, "'");
    put_escaped(out, text, n);
    put(out, "'");
}

/* Whole numbers and others make numbers; with texts among them everything is text. */
static char joined(char before, char kind)
{
    if (before == '-' || before == kind)
        return kind;
    return before == 's' || kind == 's' ? 's' : 'd';
}

static void put_cell(struct rows_text *t, int column)
{
    char number[40];
    size_t n;
    const char *text;
    char kind = 's';
    switch (tp_column_type(t->r, column)) {
    case TP_NULL:
        put(t->out, "NULL");
        return;
    case TP_INT64:
        kind = 'i';
        n = (size_t)snprintf(number, sizeof number, "%" PRId64, tp_int64(t->r, column));
        put_quoted(t->out, number, n);
        break;
    case TP_DOUBLE:
        kind = 'd';
        n = (size_t)snprintf(number, sizeof number, "%.17g", tp_double(t->r, column));
        put_quoted(t->out, number, n);
        break;
    case TP_TEXT:
        text = tp_text(t->r, column, &n);
        put_quoted(t->out, text, n);
        break;
    case TP_BLOB:
        text = tp_blob(t->r, column, &n);
        put_quoted(t->out, text, n);
        break;
    }
    t->kinds[column] = joined(t->kinds[column], kind);
}

bool rows_text_begin(struct rows_text *t, struct tp_result *r, struct pb_writer *out, const char *trace)
{
    int columns = tp_columns(r);
    *t = (struct rows_text){.r = r, .out = out, .trace = trace, .kinds = mem_alloc((size_t)columns + 1)};
    if (!t->kinds)
        return false;
    t->columns = columns;
    memset(t->kinds, '-', (size_t)columns);
    t->kinds[columns] = '\0';
    return true;
}

void rows_text_put(struct rows_text *t)
{
    char head[80];
    snprintf(head, sizeof head, "%.40s\t%" PRId64 "\t\\N\t\t[", t->trace, t->rows++);
    put(t->out, head);
    for (int i = 0; i < t->columns; i++) {
        put(t->out, i ? "," : "");
        put_cell(t, i);
    }
    put(t->out, "]\n");
}

void rows_text_end(const struct rows_text *t, struct pb_writer *out, const char *trace, const char *ended)
{
    char row[32];
    put_escaped(out, trace, strlen(trace));
    snprintf(row, sizeof row, "\t%" PRId64 "\t", t->rows);
    put(out, row);
    put_escaped(out, ended, strlen(ended));
    put(out, "\t");
    put(out, t->kinds ? t->kinds : "");
    put(out, "\t[");
    for (int i = 0; i < t->columns; i++) {
        const char *name = tp_column_name(t->r, i);
        put(out, i ? "," : "");
        put_quoted(out, name, strlen(name));
    }
    put(out, "]\n");
}

void rows_text_close(struct rows_text *t)
{
    tp_result_close(t->r);
    mem_free(t->kinds);
    *t = (struct rows_text){0};
}
