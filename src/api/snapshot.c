/* Writes the loaded trace as a snapshot, and says what a trace that is one cannot do. */
#include "api/tp_snapshot.h"

#include "base/file.h"
#include "base/output_file.h"

#include <sys/mman.h>

enum { PIECE_BYTES = 8 << 20 };

static void add_text(struct checksum *sum, const char *text)
{
    checksum_add(sum, checksum_of(text ? text : "", text ? strlen(text) : 0, text != NULL));
}

uint64_t tp_options_sum(const struct tp_config *c)
{
    uint8_t flags[] = {c->full_sort,
                       c->no_ftrace_raw,
                       c->all_text_events,
                       c->crop_track_events,
                       (uint8_t)c->clock_model,
                       (uint8_t)c->sync_method,
                       c->ignore_ftrace_parse_errors};
    struct checksum sum = checksum_of(flags, sizeof flags, 0);
    add_text(&sum, c->sync_reference);
    for (size_t i = 0; i < c->n_file_clocks; i++)
        add_text(&sum, c->file_clocks[i]);
    return sum.low;
}

int tp_file_sum(const char *path, uint64_t seed, struct checksum *sum, uint64_t *bytes, struct error *err)
{
    struct mapped_file m;
    int rc = mapped_file_open(&m, path, err);
    if (rc < 0)
        return rc;
    *sum = checksum_of(&m.map_len, sizeof m.map_len, seed);
    for (size_t at = 0; at < m.bytes.len; at += PIECE_BYTES) {
        size_t n = m.bytes.len - at < PIECE_BYTES ? m.bytes.len - at : PIECE_BYTES;
        checksum_add(sum, checksum_of(m.bytes.p + at, n, seed));
        madvise((char *)m.map + at, n, MADV_DONTNEED); /* else the file would count as memory */
    }
    *bytes = m.bytes.len;
    if (mapped_file_shrank(&m))
        rc = error_set(err, -MRD_EIO, "%s became shorter while it was read; another program writes it", path);
    mapped_file_close(&m);
    return rc;
}

int tp_snapshot_to(struct tp *tp, struct snapshot_info info, const struct snapshot_sink *sink, struct error *err)
{
    if (tp->storage.snapshot) { /* a copy says of its source what the original says */
        info = snapshot_info_of(&tp->storage);
    } else {
        info.options = tp_options_sum(&tp->config);
    }
    uint8_t *clocks = NULL;
    size_t len = 0;
    int rc = importer_clock_state(tp->importer, &clocks, &len, err);
    info.clocks = slice_of(clocks, len);
    rc = rc ? rc : snapshot_write(&tp->storage, &info, sink, err);
    mem_free(clocks);
    return rc;
}

static int write_to_file(void *ctx, const void *bytes, size_t len, struct error *err)
{
    return output_file_write(ctx, bytes, len, err);
}

int tp_write_snapshot(struct tp *tp, const char *path, const char *source)
{
    struct output_file out;
    struct snapshot_info info = {0};
    struct snapshot_sink sink = {write_to_file, &out};
    int rc = tp_need_engine(tp);
    if (rc == 0 && source && !tp->storage.snapshot) {
        rc = tp_file_sum(source, 0, &info.source, &info.source_bytes, NULL); /* a pipe or a directory has none */
        info.text = slice_str(source);
        rc = 0;
    }
    rc = rc ? rc : output_file_open(&out, path, &tp->err);
    if (rc < 0)
        return tp_done(tp, rc);
    rc = tp_snapshot_to(tp, info, &sink, &tp->err);
    return tp_done(tp, output_file_close(&out, rc, &tp->err));
}

int tp_snapshot_check_options(struct tp *tp)
{
    static const struct tp_config none;
    uint64_t wanted = tp_options_sum(&tp->config);
    if (!tp->storage.snapshot || wanted == tp_options_sum(&none) || wanted == snapshot_info_of(&tp->storage).options)
        return 0;
    return error_set(&tp->err, -MRD_EINVALID,
                     "the snapshot was made with other options of loading; leave them out, or load the trace itself");
}

int tp_need_packets(struct tp *tp, const char *what)
{
    if (!tp->storage.snapshot)
        return 0;
    struct slice text = snapshot_info_of(&tp->storage).text;
    return error_set(&tp->err, -MRD_EUNSUPPORTED,
                     "%s: a snapshot has no packets; use the trace that it was made of%s%.*s", what,
                     text.len ? ": " : "", (int)(text.len < 200 ? text.len : 200), (const char *)text.p);
}
