/* Results as text: which format shows them, and what the formats share. */
#include "shell/output_private.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const output_format_names[OUTPUT_FORMATS] = {
#define FORMAT(NAME, name, show) name,
    OUTPUT_FORMAT_ROWS(FORMAT)
#undef FORMAT
};

int output_format_find(const char *name)
{
    for (int i = 0; i < OUTPUT_FORMATS; i++)
        if (strcmp(name, output_format_names[i]) == 0)
            return i;
    return -1;
}

int output_next(const struct output *o, struct tp_result *r)
{
    return o->out->error ? 0 : tp_step(r);
}

void output_double(struct text_out *o, double v)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    out_text(o, text);
}

void output_hex(struct text_out *o, const struct tp_result *r, int column)
{
    size_t len;
    const unsigned char *bytes = tp_blob(r, column, &len);
    for (size_t i = 0; i < len; i++)
        out_printf(o, "%02x", bytes[i]);
}

/* One line: controls, also those beyond ASCII that terminals obey, become blanks, and bytes that are no UTF-8 question
 * marks. */
static size_t plain_text(const char *text, size_t len, char *to, size_t room)
{
    size_t n = 0;
    for (size_t i = 0, c; i < len; i += c ? c : 1) {
        c = utf8_sequence(text + i, len - i);
        if (n + (c ? c : 1) >= room)
            break;
        bool control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
                       (c == 2 && (unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
        if (c == 0 || control)
            to[n++] = c ? ' ' : '?';
        else
            for (size_t k = 0; k < c; k++)
                to[n++] = text[i + k];
    }
    to[n] = '\0';
    return n;
}

size_t output_cell(const struct tp_result *r, int column, char *to, size_t room)
{
    int n = 0;
    size_t len;
    switch (tp_column_type(r, column)) {
    case TP_NULL:
        n = snprintf(to, room, "[NULL]");
        break;
    case TP_INT64:
        n = snprintf(to, room, "%lld", (long long)tp_int64(r, column));
        break;
    case TP_DOUBLE:
        n = snprintf(to, room, "%f", tp_double(r, column));
        break;
    case TP_BLOB:
        n = snprintf(to, room, "<raw bytes>");
        break;
    case TP_TEXT: {
        const char *text = tp_text(r, column, &len);
        return plain_text(text, strnlen(text, len), to, room);
    }
    }
    return (size_t)n < room ? (size_t)n : room - 1;
}

const char *output_name(const struct tp_result *r, int column, char to[OUTPUT_NAME_MAX])
{
    const char *name = tp_column_name(r, column);
    plain_text(name, strlen(name), to, OUTPUT_NAME_MAX);
    return to;
}

int64_t output_result(struct output *o, struct tp_result *r)
{
    static int64_t (*const shows[OUTPUT_FORMATS])(struct output *, struct tp_result *) = {
#define FORMAT(NAME, name, show) show,
        OUTPUT_FORMAT_ROWS(FORMAT)
#undef FORMAT
    };
    int n = tp_columns(r);
    if (n == 0 || (n == 1 && strcmp(tp_column_name(r, 0), "suppress_query_output") == 0)) {
        int rc;
        while ((rc = tp_step(r)) == 1)
            ;
        return rc;
    }
    bool fixed = o->format == OUTPUT_TABLE && o->width;
    if (o->results++ && o->format != OUTPUT_JSON && o->format != OUTPUT_JSONL && !fixed)
        out_char(o->out, '\n');
    return shows[o->format](o, r);
}
