/* Opens snapshots as traces. */
#include "importer/input/snapshot_reader.h"

#include "importer/input/reader_private.h"
#include "storage/snapshot.h"

static void *open_snapshot(struct importer *im)
{
    return im;
}

static struct map_guard *guard_of(const struct importer *im, struct slice bytes)
{
    for (size_t i = 0; i < im->reader->maps.n; i++)
        if (im->reader->maps.p[i].bytes.p == bytes.p)
            return im->reader->maps.p[i].guard;
    return NULL;
}

/* A mapped file stays as long as the importer. What was unpacked, or came through a pipe, does not. */
static int keep(void *self, struct slice bytes, struct error *err)
{
    struct importer *im = self;
    im->n_snapshots++;
    if (guard_of(im, bytes) || im->n_snapshots > 1) { /* more than one are refused at the end */
        im->snapshot = bytes;
        return 0;
    }
    im->snapshot_copy = mem_alloc(bytes.len + 1);
    if (!im->snapshot_copy)
        return error_set(err, -MRD_ENOMEM, "out of memory for a snapshot");
    memcpy(im->snapshot_copy, bytes.p, bytes.len);
    im->snapshot = slice_of(im->snapshot_copy, bytes.len);
    return 0;
}

static void close_snapshot(void *self)
{
    (void)self;
}

const struct format_reader snapshot_format_reader = {.format = FORMAT_SNAPSHOT,
                                                     .fixed_clock = true,
                                                     .whole = true,
                                                     .open = open_snapshot,
                                                     .write = keep,
                                                     .close = close_snapshot};

static uint32_t traces_in(const struct storage *st)
{
    uint32_t n = 0;
    for (uint32_t row = 0; row < st->t[T_trace_file].n_rows; row++)
        n += ROW_GET(st, trace_file, is_container, row) == 0;
    return n;
}

int snapshot_reader_attach(struct importer *im, struct error *err)
{
    if (!im->n_snapshots)
        return 0;
    if (im->n_snapshots > 1 || traces_in(im->st) > 1 || im->directory_bytes)
        return error_set(err, -MRD_EUNSUPPORTED,
                         "a snapshot cannot be loaded together with other traces: load the traces that it was made of");
    int rc = snapshot_attach(im->st, im->snapshot, guard_of(im, im->snapshot), err);
    return rc ? rc : 1;
}
