/* CSV as RFC 4180 has it, lines end with a newline alone: NULL is nothing at all, the empty text is "". */
#include "export/formats.h"

static void put_text(struct export_buffer *b, const char *text, size_t n)
{
    bool plain = n > 0;
    for (size_t i = 0; i < n && plain; i++)
        plain = text[i] != '"' && text[i] != ',' && text[i] != '\n' && text[i] != '\r';
    if (plain && text[0] != ' ' && text[n - 1] != ' ') {
        export_put(b, text, n);
        return;
    }
    export_put_u8(b, '"');
    for (size_t at = 0; at < n;) {
        const char *quote = memchr(text + at, '"', n - at);
        size_t part = quote ? (size_t)(quote - (text + at)) + 1 : n - at;
        export_put(b, text + at, part);
        if (quote)
            export_put_u8(b, '"');
        at += part;
    }
    export_put_u8(b, '"');
}

int export_csv_begin(struct export_writer *w, struct error *err)
{
    (void)err;
    for (size_t i = 0; i < w->schema->count; i++) {
        if (i)
            export_put_u8(w->out, ',');
        put_text(w->out, w->schema->columns[i].name, strlen(w->schema->columns[i].name));
    }
    export_put_u8(w->out, '\n');
    return 0;
}

static void put_cell(struct export_buffer *b, enum export_kind kind, const struct export_vector *v, size_t row)
{
    char number[EXPORT_DOUBLE_SIZE];
    if (v->null && v->null[row])
        return;
    if (kind == EXPORT_INT64)
        export_put(b, number, export_int_text(v->ints[row], number));
    else if (kind == EXPORT_DOUBLE)
        export_put(b, number, export_double_text(v->doubles[row], number));
    else
        put_text(b, v->dictionary[v->codes[row]].bytes, v->dictionary[v->codes[row]].size);
}

int export_csv_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    (void)err;
    for (size_t row = 0; row < block->rows; row++) {
        for (size_t i = 0; i < w->schema->count; i++) {
            if (i)
                export_put_u8(w->out, ',');
            put_cell(w->out, w->schema->columns[i].kind, &block->columns[i], row);
        }
        export_put_u8(w->out, '\n');
    }
    return 0;
}
