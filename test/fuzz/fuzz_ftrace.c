/* Ftrace bundles: any bytes as the body of a bundle must import, and all args must decode. The first byte chooses the
 * sorter, and whether the bundle comes twice. */
#include "importer/core/context.h"
#include "importer/importer.h"
#include "wire/pb_writer.h"

#include "fuzz.h"

static void put_bundle(struct pb_writer *w, const uint8_t *data, size_t size)
{
    size_t packet = pb_begin(w, 1);
    pb_put_varint(w, 10, 1); /* sequence */
    pb_put_varint(w, 13, 1); /* its state is valid */
    size_t interned = pb_begin(w, 12);
    for (uint64_t iid = 1; iid < 4; iid++) {
        size_t symbol = pb_begin(w, 26);
        pb_put_varint(w, 1, iid);
        pb_put_str(w, 2, "a_function");
        pb_end(w, symbol);
    }
    pb_end(w, interned);
    pb_put_bytes(w, 1, data, size);
    pb_end(w, packet);
}

static void decode_all(struct storage *st)
{
    struct arg_list args = {0};
    for (uint32_t id = 0; id < args_count(&st->args); id++) {
        args.n = 0;
        args_values(&st->args, argset_of_cell(id), &args);
        for (size_t i = 0; i < args.n; i++)
            strpool_view(&st->strings, args.p[i].key);
    }
    arg_list_free(&args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct storage st;
    struct importer *im;
    struct pb_writer w = {0};
    struct import_options options = {.full_sort = size && data[0] & 1, .ignore_ftrace_parse_errors = true};
    if (size < 1 || size > 1 << 20)
        return 0;
    put_bundle(&w, data + 1, size - 1);
    if (data[0] & 2) /* the same again: cpus, descriptors and states are known now */
        put_bundle(&w, data + 1, size - 1);
    if (storage_init(&st) == 0) {
        if (importer_open(&im, &st, &options, NULL) == 0) {
            importer_feed(im, w.p, w.n, NULL);
            importer_finish(im, NULL);
            decode_all(&st);
            importer_close(im);
        }
        storage_free(&st);
    }
    pb_writer_free(&w);
    return 0;
}
