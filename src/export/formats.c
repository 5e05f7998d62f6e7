/* The table of formats, and numbers as text. */
#include "export/formats.h"

#include "base/decimal.h"
#include "export/arrow.h"
#include "export/native.h"
#include "export/parquet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct export_format export_formats[] = {
    {"native", "native", "Native", NULL, export_native_block, NULL, NULL},
    {"rowbinary", "rowbinary", "RowBinary", NULL, export_rowbinary_block, NULL, NULL},
    {"arrow", "arrow", NULL, export_arrow_begin, export_arrow_block, export_arrow_end, export_arrow_free},
    {"arrow_stream", "arrows", NULL, export_arrow_stream_begin, export_arrow_block, export_arrow_end,
     export_arrow_free},
    {"parquet", "parquet", NULL, export_parquet_begin, export_parquet_block, export_parquet_end, export_parquet_free},
    {"csv", "csv", NULL, export_csv_begin, export_csv_block, NULL, NULL},
    {"jsonl", "jsonl", NULL, NULL, export_jsonl_block, NULL, NULL},
};
const size_t n_export_formats = sizeof export_formats / sizeof *export_formats;

const struct export_format *export_format_find(const char *name)
{
    for (size_t i = 0; i < n_export_formats; i++)
        if (strcmp(export_formats[i].name, name) == 0)
            return &export_formats[i];
    return NULL;
}

int export_native_block(struct export_writer *w, const struct export_block *block, struct error *err)
{
    (void)err;
    native_put_block(w->out, w->schema, block, true);
    return 0;
}

size_t export_int_text(int64_t v, char out[EXPORT_DOUBLE_SIZE])
{
    return decimal_put_i64(v, out);
}

size_t export_double_text(double d, char out[EXPORT_DOUBLE_SIZE])
{
    if (fabs(d) < 1e15 && d == (double)(int64_t)d && !(d == 0 && signbit(d))) { /* most counters */
        size_t n = export_int_text((int64_t)d, out);
        out[n++] = '.';
        out[n++] = '0';
        return n;
    }
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, EXPORT_DOUBLE_SIZE, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    if (isfinite(d) && !strpbrk(out, ".e")) {
        out[n++] = '.';
        out[n++] = '0';
    }
    return (size_t)n;
}
