/* ClickHouse's RowBinary: rows of values as in Native, a byte in front of each that may be NULL. */
#include "export/formats.h"

static void put_value(struct export_buffer *b, enum export_kind kind, const struct export_vector *v, size_t row)
{
    if (kind == EXPORT_INT64)
        export_put(b, &v->ints[row], sizeof *v->ints);
    else if (kind == EXPORT_DOUBLE)
        export_put(b, &v->doubles[row], sizeof *v->doubles);
    else
        export_put_counted(b, v->dictionary[v->codes[row]].bytes, v->dictionary[v->codes[row]].size);
}

int export_rowbinary_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    (void)err;
    for (size_t row = 0; row < block->rows; row++) {
        for (size_t i = 0; i < w->schema->count; i++) {
            const struct export_vector *v = &block->columns[i];
            bool null = v->null && v->null[row];
            if (w->schema->columns[i].nullable)
                export_put_u8(w->out, null);
            if (!null)
                put_value(w->out, w->schema->columns[i].kind, v, row);
        }
    }
    return 0;
}
