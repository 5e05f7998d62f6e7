/* Walks over the packets of a file. */
#include "wire/packet_file.h"

#include "base/alloc.h"
#include "wire/fields.h"
#include "wire/inflate.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAX_RATIO = 200,       /* of what comes out to what went in: deflate cannot do much more with real packets */
    FREE_BYTES = 64 << 20, /* below this nobody counts */
    PIECE_BYTES = 256 << 10,
};

/* Everything that `in` unpacks to, appended to `out`. */
static int unpack(enum inflate_kind kind, struct slice in, struct pb_writer *out, struct error *err)
{
    struct inflater *z = inflater_open(kind);
    uint8_t *piece = mem_alloc(PIECE_BYTES);
    uint64_t room = FREE_BYTES + (uint64_t)in.len * MAX_RATIO;
    int rc = z && piece ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    size_t n = PIECE_BYTES;
    while (rc == 0 && (in.len || n == PIECE_BYTES)) {
        rc = inflater_run(z, &in, piece, PIECE_BYTES, &n, err);
        if (rc == 0 && n == 0 && in.len)
            rc = error_set(err, -MRD_EFORMAT, "damaged");
        if (rc == 0)
            pb_put_raw(out, piece, n);
        if (rc == 0 && out->failed)
            rc = error_set(err, -MRD_ENOMEM, "out of memory");
        if (rc == 0 && out->n > room)
            rc = error_set(err, -MRD_ELIMIT, "it unpacks to more than %d times its size", MAX_RATIO);
    }
    if (rc == 0 && !inflater_at_end(z))
        rc = error_set(err, -MRD_EFORMAT, "compressed data is truncated");
    mem_free(piece);
    inflater_close(z);
    return rc;
}

static int unpack_file(struct packet_file *f, const char *path, struct error *err)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    bool is_gzip = f->bytes.len > sizeof gzip && memcmp(f->bytes.p, gzip, sizeof gzip) == 0;
    bool is_zstd = f->bytes.len > sizeof zstd && memcmp(f->bytes.p, zstd, sizeof zstd) == 0;
    if (!is_gzip && !is_zstd)
        return 0;
    struct pb_writer out = {0};
    int rc = unpack(is_gzip ? INFLATE_DEFLATE : INFLATE_ZSTD, f->bytes, &out, err);
    if (rc < 0) {
        pb_writer_free(&out);
        return error_prefix(err, "%s", path);
    }
    packet_file_close(f);
    f->owned = (char *)out.p;
    f->bytes = pb_written(&out);
    return 0;
}

int packet_file_open(struct packet_file *f, const char *path, struct error *err)
{
    struct stat st;
    size_t len = 0;
    *f = (struct packet_file){0};
    /* files of /proc and tracefs tell no size */
    bool regular = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size;
    int rc = regular ? mapped_file_open(&f->map, path, err) : file_read_all(path, SIZE_MAX - 1, &f->owned, &len, err);
    if (rc < 0)
        return rc;
    f->bytes = regular ? f->map.bytes : slice_of(f->owned, len);
    rc = unpack_file(f, path, err);
    if (rc < 0)
        packet_file_close(f);
    return rc;
}

void packet_file_close(struct packet_file *f)
{
    mapped_file_close(&f->map);
    mem_free(f->owned);
    *f = (struct packet_file){0};
}

int packet_file_check(const struct packet_file *f, const char *path, struct error *err)
{
    struct pb_cursor c = pb_cursor(f->bytes);
    struct pb_field v;
    if (f->bytes.len == 0 || (pb_next(&c, &v) && v.id == TRACE_PACKET && v.wire == PB_BYTES))
        return 0;
    return error_set(err, -MRD_EFORMAT, "%s: not a Perfetto trace", path);
}

struct packet_walk {
    int (*each)(void *ctx, struct slice field);
    void *ctx;
    struct packet_counts *counts;
    struct error *err;
};

/* Gives out the fields of a trace; `inside`: it came out of a packet. */
static int walk_fields(struct packet_walk *w, struct slice trace, bool inside);

static bool is_whole(struct slice trace)
{
    struct pb_cursor c = pb_cursor(trace);
    struct pb_field v;
    while (pb_next(&c, &v))
        ;
    return !c.bad;
}

/* The packets in a packet; 1 when it holds none, or any that cannot be read: then it is handed on as it is. */
static int walk_packed(struct packet_walk *w, const struct pb_field *packet)
{
    struct pb_cursor c = pb_sub(packet);
    struct pb_field v, packed = {0};
    struct pb_writer out = {0};
    struct error err;
    while (pb_next(&c, &v))
        if ((v.id == TRACE_PACKET_COMPRESSED_PACKETS || v.id == TRACE_PACKET_ZSTD_COMPRESSED_PACKETS) &&
            v.wire == PB_BYTES)
            packed = v;
    if (!packed.id || c.bad)
        return 1;
    int rc = unpack(packed.id == TRACE_PACKET_COMPRESSED_PACKETS ? INFLATE_DEFLATE : INFLATE_ZSTD, pb_bytes(&packed),
                    &out, &err);
    if (rc == -MRD_ENOMEM) {
        error_set(w->err, rc, "out of memory");
    } else if (rc < 0 || !is_whole(pb_written(&out))) {
        w->counts->damaged++;
        rc = 1;
    } else {
        w->counts->unpacked++;
        rc = walk_fields(w, pb_written(&out), true);
    }
    pb_writer_free(&out);
    return rc;
}

static int walk_fields(struct packet_walk *w, struct slice trace, bool inside)
{
    struct pb_cursor c = pb_cursor(trace);
    struct pb_field v;
    const uint8_t *start = c.p;
    int rc = 0;
    for (; rc == 0 && pb_next(&c, &v); start = c.p) {
        bool packet = v.id == TRACE_PACKET && v.wire == PB_BYTES;
        rc = packet && !inside ? walk_packed(w, &v) : 1;
        if (rc == 1) {
            w->counts->packets += packet;
            rc = w->each(w->ctx, slice_of(start, (size_t)(c.p - start)));
        }
    }
    if (c.bad)
        w->counts->tail += (size_t)(c.end - c.p);
    return rc;
}

int packet_file_walk(const struct packet_file *f, int (*each)(void *ctx, struct slice field), void *ctx,
                     struct packet_counts *counts, struct error *err)
{
    struct packet_walk w = {each, ctx, counts, err};
    *counts = (struct packet_counts){0};
    return walk_fields(&w, f->bytes, false);
}
