/* perf.data: header, attrs and features; records of files and streams, plain and compressed; tracepoints. */
#include "importer/importer.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct storage st;
    struct importer *im;
    struct error err;
    if (storage_init(&st) != 0)
        return 0;
    if (importer_open(&im, &st, NULL, &err) == 0) {
        importer_feed(im, data, size, &err);
        importer_finish(im, &err);
        importer_close(im);
    }
    storage_free(&st);
    return 0;
}
