/* Reads rows in ClickHouse's format TabSeparatedWithNamesAndTypes. */
#include "fleet/separated.h"

#include <stdlib.h>
#include <string.h>

/* The next byte of the answer, or -1 at its end, or a negative code below that. */
static int next_byte(struct separated *s, struct error *err)
{
    while (s->in.len == 0) {
        int rc = s->over ? 0 : s->more(s->ctx, &s->in, err);
        if (rc <= 0) {
            s->over = true;
            return rc < 0 ? error_prefix(err, "%s", s->from) - 1 : -1;
        }
    }
    s->in.len--;
    return *s->in.p++;
}

enum { MAX_CELLS = 1 << 16 }; /* of a row: each takes memory of its own, however short it is */

static bool begin_cell(struct separated *s)
{
    return vec_push(&s->starts, s->line.n) && vec_push(&s->sizes, 0) && vec_push(&s->nulls, false);
}

static bool end_cell(struct separated *s)
{
    *vec_last(&s->sizes) = s->line.n - *vec_last(&s->starts);
    return vec_push(&s->line, '\0');
}

/* What stands behind a backslash; -1: the cell is NULL. */
static int unescape(int c)
{
    static const char from[] = "btnfr0", to[] = "\b\t\n\f\r\0";
    const char *at = c ? strchr(from, c) : NULL;
    return c == 'N' ? -1 : at ? to[at - from] : c;
}

/* Reads a line into cells: 1; 0: there is none. */
static int read_line(struct separated *s, struct error *err)
{
    vec_clear(&s->line);
    vec_clear(&s->starts);
    vec_clear(&s->sizes);
    vec_clear(&s->nulls);
    int c = next_byte(s, err);
    if (c < 0)
        return c + 1;
    bool ok = begin_cell(s);
    for (; ok && c >= 0 && c != '\n'; c = next_byte(s, err)) {
        if (c == '\t' && s->starts.n == MAX_CELLS)
            return error_set(err, -MRD_ELIMIT, "%s: a row has more than %d cells", s->from, MAX_CELLS);
        if (c == '\t') {
            ok = end_cell(s) && begin_cell(s);
            continue;
        }
        if (c == '\\' && (c = next_byte(s, err)) >= 0 && (c = unescape(c)) < 0) {
            *vec_last(&s->nulls) = true;
            continue;
        }
        if (c < 0)
            break;
        ok = vec_push(&s->line, (char)c);
    }
    if (!ok || !end_cell(s))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (c < -1)
        return c + 1;
    return c == -1 ? error_set(err, -MRD_EFORMAT, "%s: the answer ends in the middle of a row", s->from) : 1;
}

static const char *cell_text(const struct separated *s, size_t i)
{
    return s->line.p + s->starts.p[i];
}

static enum cell_kind kind_of(const char *type)
{
    static const char nullable[] = "Nullable(", low[] = "LowCardinality(";
    if (strncmp(type, low, sizeof low - 1) == 0)
        type += sizeof low - 1;
    if (strncmp(type, nullable, sizeof nullable - 1) == 0)
        type += sizeof nullable - 1;
    if (strncmp(type, "Int", 3) == 0 || strncmp(type, "UInt", 4) == 0)
        return strtol(type + (*type == 'U') + 3, NULL, 10) > 64 || strncmp(type, "Interval", 8) == 0 ? CELL_TEXT
                                                                                                     : CELL_INTEGER;
    return strncmp(type, "Float", 5) == 0 ? CELL_DOUBLE : CELL_TEXT;
}

int separated_begin(struct separated *s, struct error *err)
{
    int rc = read_line(s, err);
    for (size_t i = 0; rc == 1 && i < s->starts.n; i++) {
        char *name = mem_strdup(cell_text(s, i));
        if (!name || !vec_push(&s->names, name)) {
            mem_free(name);
            return error_set(err, -MRD_ENOMEM, "out of memory");
        }
    }
    if (rc == 1)
        rc = read_line(s, err);
    if (rc == 1 && s->starts.n != s->names.n)
        return error_set(err, -MRD_EFORMAT, "%s: the answer has %zu names and %zu types", s->from, s->names.n,
                         s->starts.n);
    for (size_t i = 0; rc == 1 && i < s->starts.n; i++)
        if (!vec_push(&s->kinds, (uint8_t)kind_of(cell_text(s, i))))
            return error_set(err, -MRD_ENOMEM, "out of memory");
    return rc < 0 ? rc : 0;
}

int separated_next(struct separated *s, struct error *err)
{
    int rc = s->names.n ? read_line(s, err) : 0;
    if (rc == 1 && s->starts.n != s->names.n)
        return error_set(err, -MRD_EFORMAT, "%s: a row has %zu cells, not %zu", s->from, s->starts.n, s->names.n);
    return rc;
}

const char *separated_cell(const struct separated *s, int column)
{
    return s->nulls.p[column] ? NULL : cell_text(s, (size_t)column);
}

void separated_free(struct separated *s)
{
    for (size_t i = 0; i < s->names.n; i++)
        mem_free(s->names.p[i]);
    vec_free(&s->names);
    vec_free(&s->kinds);
    vec_free(&s->line);
    vec_free(&s->starts);
    vec_free(&s->sizes);
    vec_free(&s->nulls);
}
