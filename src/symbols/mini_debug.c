/* Unpacks .gnu_debugdata, within bounds. */
#include "symbols/mini_debug.h"

#include "base/alloc.h"
#include "wire/unxz.h"

int mini_debug_unpack(const struct elf_image *e, uint8_t **bytes, size_t *len, struct error *err)
{
    uint8_t *packed = NULL;
    *bytes = NULL;
    int rc = elf_image_read(e, &e->packed, &packed, err);
    if (!rc)
        rc = unxz(slice_of(packed, (size_t)e->packed.size), MINI_DEBUG_MAX_BYTES, ".gnu_debugdata", bytes, len, err);
    mem_free(packed);
    return rc;
}
