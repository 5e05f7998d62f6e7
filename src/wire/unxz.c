/* Runs liblzma over bytes in memory, within bounds. */
#include "wire/unxz.h"

#include "base/alloc.h"

#include <lzma.h>

enum {
    FIRST_BYTES = 1 << 16,
    WINDOW_BYTES = 80 << 20 /* `xz -9` asks for 65 MiB; what of it is touched is as large as what comes out */
};

struct unpacking {
    lzma_stream z;
    uint8_t *bytes;
    size_t room, max;
    const char *what;
    struct error *err;
};

static int fault(const struct unpacking *u, lzma_ret code)
{
    if (code == LZMA_MEM_ERROR)
        return error_set(u->err, -MRD_ENOMEM, "out of memory");
    if (code == LZMA_MEMLIMIT_ERROR)
        return error_set(u->err, -MRD_ELIMIT, "unpacking its %s takes too much memory", u->what);
    return error_set(u->err, -MRD_EFORMAT, "its %s is damaged", u->what);
}

/* Makes room behind what is there. */
static int grow(struct unpacking *u)
{
    size_t n = !u->room ? FIRST_BYTES : u->room > u->max / 2 ? u->max : 2 * u->room;
    if (n > u->max)
        n = u->max;
    if (u->room >= u->max)
        return error_set(u->err, -MRD_ELIMIT, "its %s has more than %zu bytes", u->what, u->max);
    uint8_t *grown = mem_realloc(u->bytes, n);
    if (!grown)
        return error_set(u->err, -MRD_ENOMEM, "out of memory");
    u->z.next_out = grown + u->room;
    u->z.avail_out = n - u->room;
    u->bytes = grown;
    u->room = n;
    return 0;
}

static int run(struct unpacking *u)
{
    lzma_ret code = lzma_stream_decoder(&u->z, u->max > WINDOW_BYTES ? u->max : WINDOW_BYTES, 0);
    int rc = 0;
    while (code == LZMA_OK && !rc) {
        if (!u->z.avail_out)
            rc = grow(u);
        if (!rc)
            code = lzma_code(&u->z, LZMA_FINISH);
    }
    return rc || code == LZMA_STREAM_END ? rc : fault(u, code);
}

int unxz(struct slice packed, size_t max_bytes, const char *what, uint8_t **bytes, size_t *len, struct error *err)
{
    struct unpacking u = {.z = LZMA_STREAM_INIT, .max = max_bytes, .what = what, .err = err};
    u.z.next_in = packed.p;
    u.z.avail_in = packed.len;
    int rc = run(&u);
    *len = rc ? 0 : (size_t)u.z.total_out;
    *bytes = rc ? NULL : u.bytes;
    lzma_end(&u.z);
    if (rc)
        mem_free(u.bytes);
    return rc;
}
