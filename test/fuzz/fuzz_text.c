/* Files of text and profiles of other tools. The first byte chooses: bit 0, all events of text; the rest, into pieces of
 * how many bytes the file is cut (0: one piece). */
#include "importer/importer.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct storage st;
    struct importer *im;
    struct error err;
    if (!size || storage_init(&st) != 0)
        return 0;
    struct import_options options = {.all_text_events = data[0] & 1};
    size_t piece = data[0] >> 1;
    data++;
    size--;
    if (importer_open(&im, &st, &options, &err) == 0) {
        int rc = 0;
        for (size_t at = 0; at < size && !rc;) {
            size_t n = piece && piece < size - at ? piece : size - at;
            rc = importer_feed(im, data + at, n, &err);
            at += n;
        }
        importer_finish(im, &err);
        importer_close(im);
    }
    storage_free(&st);
    return 0;
}
