/* The manifest of a set of traces: any text is read or refused with an error. */
#include "importer/merge/manifest.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest m;
    struct error err = {0};
    if (manifest_parse(&m, slice_of(data, size), &err) == 0)
        manifest_free(&m);
    else if (!err.text[0])
        __builtin_trap(); /* an error says what is wrong */
    return 0;
}
