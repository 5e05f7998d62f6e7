/* Zlib's and zstd's streaming decoders. Their memory comes from the allocation hook like all other. */
#include "wire/inflate.h"

#include "base/alloc.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDCtx_advanced: our own allocator */
#include <limits.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

struct inflater {
    enum inflate_kind kind;
    z_stream zlib;
    ZSTD_DCtx *zstd;
    bool open;        /* zlib is initialised */
    bool inside;      /* of a member or frame */
    unsigned members; /* that ended */
};

static void *zlib_alloc(void *ctx, unsigned items, unsigned size)
{
    (void)ctx;
    return mem_alloc((size_t)items * size);
}

static void codec_free(void *ctx, void *p)
{
    (void)ctx;
    mem_free(p);
}

static void *zstd_alloc(void *ctx, size_t size)
{
    (void)ctx;
    return mem_alloc(size);
}

struct inflater *inflater_open(enum inflate_kind kind)
{
    struct inflater *z = mem_zalloc(sizeof *z);
    if (!z)
        return NULL;
    z->kind = kind;
    if (kind == INFLATE_DEFLATE) {
        z->zlib.zalloc = zlib_alloc;
        z->zlib.zfree = codec_free;
        z->open = inflateInit2(&z->zlib, 15 + 32) == Z_OK; /* 32: zlib or gzip by the header */
    } else {
        z->zstd = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, codec_free, NULL});
    }
    if (!z->open && !z->zstd) {
        inflater_close(z);
        return NULL;
    }
    return z;
}

void inflater_close(struct inflater *z)
{
    if (!z)
        return;
    if (z->open)
        inflateEnd(&z->zlib);
    ZSTD_freeDCtx(z->zstd);
    mem_free(z);
}

void inflater_reset(struct inflater *z)
{
    if (z->kind == INFLATE_DEFLATE)
        inflateReset(&z->zlib);
    else
        ZSTD_DCtx_reset(z->zstd, ZSTD_reset_session_only);
    z->inside = false;
    z->members = 0;
}

static int run_zlib(struct inflater *z, struct slice *in, uint8_t *out, size_t room, size_t *written, struct error *err)
{
    unsigned capacity = room > UINT_MAX ? UINT_MAX : (unsigned)room;
    z->zlib.next_out = out;
    z->zlib.avail_out = capacity;
    int rc = 0;
    /* Even without input left, the decoder may hold output that had no room before. */
    while (z->zlib.avail_out && (in->len || z->inside)) {
        z->zlib.next_in = (uint8_t *)(uintptr_t)in->p;
        unsigned given = in->len > UINT_MAX ? UINT_MAX : (unsigned)in->len;
        unsigned room_before = z->zlib.avail_out;
        z->zlib.avail_in = given;
        z->inside = true;
        int status = inflate(&z->zlib, Z_NO_FLUSH);
        size_t used = given - z->zlib.avail_in;
        *in = slice_of(in->p + used, in->len - used);
        if (status == Z_STREAM_END) { /* perhaps another member follows */
            inflateReset(&z->zlib);
            z->inside = false;
            z->members++;
        } else if (status == Z_DATA_ERROR && z->members && !z->zlib.total_out) {
            *in = slice_of(in->p + in->len, 0); /* padding behind the last member */
            inflateReset(&z->zlib);
            z->inside = false;
        } else if (status == Z_MEM_ERROR) {
            rc = error_set(err, -MRD_ENOMEM, "deflate: out of memory");
            break;
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            rc = error_set(err, -MRD_EFORMAT, "deflate: %s", z->zlib.msg ? z->zlib.msg : "damaged data");
            break;
        } else if (!used && z->zlib.avail_out == room_before) {
            break;
        }
    }
    *written = capacity - z->zlib.avail_out;
    return rc;
}

static int run_zstd(struct inflater *z, struct slice *in, uint8_t *out, size_t room, size_t *written, struct error *err)
{
    ZSTD_outBuffer o = {out, room, 0};
    ZSTD_inBuffer i = {in->p, in->len, 0};
    int rc = 0;
    /* Even without input left, the decoder may hold output that had no room before. */
    do {
        size_t in_before = i.pos, out_before = o.pos;
        size_t hint = ZSTD_decompressStream(z->zstd, &o, &i);
        if (ZSTD_isError(hint)) {
            bool nomem = ZSTD_getErrorCode(hint) == ZSTD_error_memory_allocation;
            rc = error_set(err, nomem ? -MRD_ENOMEM : -MRD_EFORMAT, "zstd: %s", ZSTD_getErrorName(hint));
            break;
        }
        z->inside = hint != 0;
        if (i.pos == in_before && o.pos == out_before)
            break;
    } while (o.pos < room && i.pos < i.size);
    *in = slice_of(in->p + i.pos, in->len - i.pos);
    *written = o.pos;
    return rc;
}

int inflater_run(struct inflater *z, struct slice *in, uint8_t *out, size_t room, size_t *written, struct error *err)
{
    return z->kind == INFLATE_DEFLATE ? run_zlib(z, in, out, room, written, err)
                                      : run_zstd(z, in, out, room, written, err);
}

bool inflater_at_end(const struct inflater *z)
{
    return !z->inside;
}
