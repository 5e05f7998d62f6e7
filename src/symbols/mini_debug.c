/* Runs liblzma over .gnu_debugdata, within bounds. */
#include "symbols/mini_debug.h"

#include "base/alloc.h"

#include <lzma.h>

enum { FIRST_BYTES = 1 << 16 };

static int fault(lzma_ret code, struct error *err)
{
    if (code == LZMA_MEM_ERROR)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    if (code == LZMA_MEMLIMIT_ERROR)
        return error_set(err, -MRD_ELIMIT, "unpacking its .gnu_debugdata takes too much memory");
    return error_set(err, -MRD_EFORMAT, "its .gnu_debugdata is damaged");
}

/* Makes room behind what is there. */
static int grow(lzma_stream *z, uint8_t **bytes, size_t *room, struct error *err)
{
    size_t n = *room ? 2 * *room : FIRST_BYTES;
    if (*room >= MINI_DEBUG_MAX_BYTES)
        return error_set(err, -MRD_ELIMIT, "its .gnu_debugdata has more than %d MiB", MINI_DEBUG_MAX_BYTES >> 20);
    uint8_t *grown = mem_realloc(*bytes, n);
    if (!grown)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    z->next_out = grown + *room;
    z->avail_out = n - *room;
    *bytes = grown;
    *room = n;
    return 0;
}

static int unpack(lzma_stream *z, uint8_t **bytes, struct error *err)
{
    size_t room = 0;
    lzma_ret code = lzma_stream_decoder(z, MINI_DEBUG_MAX_BYTES, 0);
    int rc = 0;
    while (code == LZMA_OK && !rc) {
        if (!z->avail_out)
            rc = grow(z, bytes, &room, err);
        if (!rc)
            code = lzma_code(z, LZMA_FINISH);
    }
    return rc || code == LZMA_STREAM_END ? rc : fault(code, err);
}

int mini_debug_unpack(const struct elf_image *e, uint8_t **bytes, size_t *len, struct error *err)
{
    lzma_stream z = LZMA_STREAM_INIT;
    uint8_t *packed = NULL;
    *bytes = NULL;
    int rc = elf_image_read(e, &e->packed, &packed, err);
    if (rc < 0)
        return rc;
    z.next_in = packed;
    z.avail_in = (size_t)e->packed.size;
    rc = unpack(&z, bytes, err);
    *len = (size_t)z.total_out;
    lzma_end(&z);
    mem_free(packed);
    if (rc < 0) {
        mem_free(*bytes);
        *bytes = NULL;
    }
    return rc;
}
