/* perf.data: header, attrs and features; records of files and streams, plain and compressed; tracepoints. */
#include "importer/importer.h"

#include "fuzz.h"

#include <fcntl.h>

/* Whatever a recording names has the tables of a small program: its stacks are the input's. */
static int open_code(void *ctx, const struct code_name *name)
{
    (void)ctx;
    (void)name;
    return open("/bin/true", O_RDONLY | O_CLOEXEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct storage st;
    struct importer *im;
    struct error err;
    struct import_options options = {.open_code = open_code};
    if (storage_init(&st) != 0)
        return 0;
    if (importer_open(&im, &st, &options, &err) == 0) {
        importer_feed(im, data, size, &err);
        importer_finish(im, &err);
        importer_close(im);
    }
    storage_free(&st);
    return 0;
}
