/* Fuzzes the import of OTLP, JSON and protobuf in every framing: in one piece and in pieces, with args read at the end.
 */
#include "fuzz.h"
#include "importer/importer.h"

#include <stdlib.h>

static uint64_t rows_of(struct storage *st)
{
    static const int tables[] = {T_slice, T_flow, T_otel_span, T_otel_link, T_otel_event, T_machine, T_process};
    uint64_t rows = 0;
    struct arg_list list = {0};
    for (uint32_t i = 0; i < st->t[T_slice].n_rows; i++) {
        args_values(&st->args, ROW_ARGS(st, slice, arg_set_id, i), &list);
        rows += list.n;
        list.n = 0;
    }
    for (uint32_t i = 0; i < st->t[T_otel_link].n_rows; i++) {
        args_values(&st->args, ROW_ARGS(st, otel_link, arg_set_id, i), &list);
        rows += list.n;
        list.n = 0;
    }
    arg_list_free(&list);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        rows += st->t[tables[i]].n_rows;
    return rows;
}

/* Rows, or UINT64_MAX when the import failed. */
static uint64_t import(const uint8_t *data, size_t size, size_t piece)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    uint64_t rows = UINT64_MAX;
    if (storage_init(&st))
        return rows;
    if (importer_open(&im, &st, NULL, &err) == 0) {
        int rc = 0;
        for (size_t at = 0; at < size && !rc; at += piece)
            rc = importer_feed(im, data + at, size - at < piece ? size - at : piece, &err);
        int rc_finish = importer_finish(im, &err);
        if (!rc && !rc_finish)
            rows = rows_of(&st);
        importer_close(im);
    }
    storage_free(&st);
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (import(data, size, size) != import(data, size, 13))
        abort(); /* pieces make no difference */
    return 0;
}
