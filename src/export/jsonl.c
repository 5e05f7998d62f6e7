/* JSON lines: an object a row. Infinities, which JSON does not have, are null. */
#include "base/json_writer.h"
#include "export/formats.h"

#include <math.h>

static int put(void *ctx, const void *bytes, size_t n)
{
    export_put(ctx, bytes, n);
    return 0;
}

static void put_cell(struct json_writer *w, enum export_kind kind, const struct export_vector *v, size_t row)
{
    char number[EXPORT_DOUBLE_SIZE];
    if ((v->null && v->null[row]) || (kind == EXPORT_DOUBLE && !isfinite(v->doubles[row])))
        json_put_null(w);
    else if (kind == EXPORT_INT64)
        json_put_raw(w, number, export_int_text(v->ints[row], number));
    else if (kind == EXPORT_DOUBLE)
        json_put_raw(w, number, export_double_text(v->doubles[row], number));
    else
        json_put_bytes(w, v->dictionary[v->codes[row]].bytes, v->dictionary[v->codes[row]].size);
}

int export_jsonl_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    (void)err;
    for (size_t row = 0; row < block->rows; row++) {
        struct json_writer json = {.put = put, .ctx = w->out};
        json_put_open(&json, '{');
        for (size_t i = 0; i < w->schema->count; i++) {
            json_put_key(&json, w->schema->columns[i].name);
            put_cell(&json, w->schema->columns[i].kind, &block->columns[i], row);
        }
        json_put_close(&json, '}');
        export_put_u8(w->out, '\n');
    }
    return 0;
}
