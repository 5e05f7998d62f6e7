/* Feeds a file to the importer: mapped and read in place, or streamed. */
#include "importer/input/reader.h"

#include "base/clock.h"
#include "base/fnv.h"
#include "importer/core/metadata.h"
#include "importer/input/reader_private.h"
#include "importer/proto/special_packets.h"
#include "importer/proto/trace_outline.h"
#include "importer/proto/trace_reader.h"
#include "wire/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 4 << 20, /* of a mapped file between two looks at progress */
    READ_BYTES = 256 << 10,
    KEPT_BYTES = 32 << 20, /* of a file's beginning stay mapped until they are parsed, as the first */
};

static void give_back(struct slice bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)bytes.p + page - 1) & -page, end = ((uintptr_t)bytes.p + bytes.len) & -page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTNEED); /* only ever read: nothing is lost; failing is harmless */
}

static void released(void *ctx, uint64_t oldest)
{
    struct reader *r = ctx;
    for (; r->next_piece < r->pieces.n && r->pieces.p[r->next_piece].epoch < oldest; r->next_piece++)
        give_back(r->pieces.p[r->next_piece].bytes);
    if (!proto_reader_has_deferred(r->im->proto))
        blocks_release(&r->blocks, oldest);
}

/* Keeps the workers busy with the compressed packets that come next in the mapped trace. */
static void feed_pool(struct reader *r)
{
    struct pb_cursor c = pb_cursor(r->ahead);
    struct pb_field f, g;
    while (r->pool && inflate_pool_has_room(r->pool) && pb_next(&c, &f)) {
        if (f.id == TRACE_PACKET &&
            (pb_find(pb_bytes(&f), TRACE_PACKET_COMPRESSED_PACKETS, &g) ||
             pb_find(pb_bytes(&f), TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, &g)) &&
            g.wire == PB_BYTES)
            inflate_pool_submit(r->pool, pb_bytes(&g), g.id == TRACE_PACKET_ZSTD_COMPRESSED_PACKETS);
    }
    r->ahead = slice_of(c.p, (size_t)(c.end - c.p));
}

/* Counts bytes that came out of compressed packets; false when they are more than a trace's. */
static bool unpacked(struct reader *r, size_t n)
{
    struct error err = {0};
    if (r->refused)
        return false;
    r->unpacked_bytes += n;
    /* The packets may have come out of a compressed file themselves: then its bytes are fewer. */
    if (r->unpacked_bytes <= unpack_limit(r->payload_bytes < r->taken_bytes ? r->payload_bytes : r->taken_bytes))
        return true;
    r->refused = true;
    unpack_limit_error(&err);
    importer_fail(r->im, -MRD_ELIMIT, "compressed packets: %s", err.text);
    return false;
}

/* Reads what the workers have made of a packet; false when they have not. */
static bool inflated_ahead(struct reader *r, struct slice payload)
{
    struct block *b = r->pool ? inflate_pool_take(r->pool, payload) : NULL;
    feed_pool(r);
    if (!b)
        return false;
    if (!unpacked(r, b->n)) {
        mem_free(b);
        return true;
    }
    b->in_use = true;
    if (!blocks_adopt(&r->blocks, b)) {
        r->im->failed = true;
        return true;
    }
    sorter_set_epoch(r->im->sorter, b->epoch);
    proto_reader_packets(r->im->proto, slice_of(b->bytes, b->n), -1);
    b->in_use = false;
    return true;
}

/* Starts workers when the trace has compressed packets at its beginning, where services put the first of them. */
static void start_pool(struct reader *r, struct slice file)
{
    enum { LOOK = 64 /* packets */ };
    unsigned threads = importer_threads(r->im);
    struct pb_cursor c = pb_cursor(file);
    struct pb_field f, g;
    bool compressed = false;
    for (int i = 0; i < LOOK && !compressed && pb_next(&c, &f); i++)
        compressed = f.id == TRACE_PACKET && (pb_find(pb_bytes(&f), TRACE_PACKET_COMPRESSED_PACKETS, &g) ||
                                              pb_find(pb_bytes(&f), TRACE_PACKET_ZSTD_COMPRESSED_PACKETS, &g));
    if (!compressed || threads < 2) /* the reader is one of them */
        return;
    r->pool = inflate_pool_open(threads - 1);
    r->ahead = file;
    feed_pool(r);
}

static void inflate_here(struct reader *r, struct slice payload, bool zstd)
{
    struct importer *im = r->im;
    r->payload_bytes += payload.len;
    if (!unpacked(r, 0) || inflated_ahead(r, payload))
        return;
    struct inflater **z = &r->inflaters[zstd];
    if (*z)
        inflater_reset(*z);
    else
        *z = inflater_open(zstd ? INFLATE_ZSTD : INFLATE_DEFLATE);
    if (!*z) {
        im->failed = true;
        return;
    }
    struct error err = {0};
    size_t written, room;
    int rc = 0;
    do {
        uint8_t *to = proto_stream_room(&r->inner, &room);
        if (!to)
            return;
        rc = inflater_run(*z, &payload, to, room, &written, &err);
        if (!unpacked(r, written))
            break;
        proto_stream_commit(&r->inner, written);
    } while (!rc && !im->failed && (payload.len || written == room));
    if (!rc && !inflater_at_end(*z))
        rc = error_set(&err, -MRD_EFORMAT, "the data is truncated");
    if (rc == -MRD_ENOMEM)
        im->failed = true;
    else if (rc)
        importer_fail(im, rc, "compressed packet: %s", err.text);
    proto_stream_end(&r->inner);
}

/* The packets that follow lie in the block of the compressed one, which is older than those that it is unpacked to. */
static void inflate_packets(void *ctx, struct slice payload, bool zstd)
{
    struct reader *r = ctx;
    uint64_t epoch = sorter_epoch(r->im->sorter);
    inflate_here(r, payload, zstd);
    sorter_set_epoch(r->im->sorter, epoch);
}

/* Copies packets that are made out of others into blocks of their own. */
static const uint8_t *keep_made(void *ctx, struct slice bytes)
{
    enum { BLOCK_BYTES = 1 << 20 };
    struct reader *r = ctx;
    struct block *b = r->kept;
    if (!b || b->cap - b->n < bytes.len) {
        if (b)
            b->in_use = false;
        r->kept = b = blocks_add(&r->blocks, bytes.len > BLOCK_BYTES ? bytes.len : BLOCK_BYTES);
        if (!b) {
            r->im->failed = true;
            return NULL;
        }
    }
    uint8_t *copy = b->bytes + b->n;
    memcpy(copy, bytes.p, bytes.len);
    b->n += bytes.len;
    sorter_set_epoch(r->im->sorter, b->epoch);
    return copy;
}

struct reader *reader_open(struct importer *im, const struct reader_merging *merging,
                           const struct format_reader *const *formats)
{
    struct reader *r = mem_zalloc(sizeof *r);
    if (!r)
        return NULL;
    r->im = im;
    r->merging = merging;
    r->formats = formats;
    r->inner = (struct proto_stream){.im = im, .blocks = &r->blocks, .offset = -1};
    r->made = (struct proto_stream){.im = im, .blocks = &r->blocks, .offset = -1};
    r->blocks.next_epoch = 1;
    sorter_on_released(im->sorter, released, r);
    proto_reader_on_compressed(im->proto, inflate_packets, r);
    proto_reader_on_made(im->proto, keep_made, r);
    return r;
}

void reader_parsed(struct reader *r)
{
    for (size_t i = 0; i < r->others.n; i++)
        if (r->others.p[i].format->parsed)
            r->others.p[i].format->parsed(r->others.p[i].self);
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    stream_close(&r->fed);
    for (size_t i = 0; i < r->others.n; i++)
        r->others.p[i].format->close(r->others.p[i].self);
    vec_free(&r->others);
    inflater_close(r->inflaters[0]);
    inflater_close(r->inflaters[1]);
    blocks_free(&r->blocks);
    archive_members_free(&r->members);
    for (size_t i = 0; i < r->maps.n; i++)
        mapped_file_close(&r->maps.p[i]);
    vec_free(&r->maps);
    vec_free(&r->pieces);
    vec_free(&r->pending);
    arena_free(&r->names);
    mem_free(r);
}

void reader_note_bytes(struct reader *r, struct slice bytes)
{
    size_t want = sizeof r->head - r->head_len, n = bytes.len < want ? bytes.len : want;
    if (n)
        memcpy(r->head + r->head_len, bytes.p, n);
    r->head_len += n;
    r->total_bytes += bytes.len;
}

static void progress(const struct reader *r, uint64_t done, uint64_t total)
{
    if (r->im->opt.progress)
        r->im->opt.progress(r->im->opt.progress_ctx, done, total);
    if (r->im->opt.progress_step)
        r->im->opt.progress_step(r->im->opt.progress_ctx, "reading", done, total);
}

void format_reader_used(struct importer *im, struct slice bytes)
{
    const struct reader *r = im->reader;
    for (size_t i = r->maps.n; i-- > 0;) {
        struct slice map = r->maps.p[i].bytes;
        if ((uintptr_t)bytes.p - (uintptr_t)map.p >= map.len)
            continue;
        give_back(bytes);
        progress(r, (uint64_t)(bytes.p + bytes.len - map.p), map.len);
        return;
    }
}

void reader_begin_input(struct reader *r, struct trace_input input)
{
    r->im->input = input;
    r->im->has_uuid = r->im->has_trigger = r->im->has_clone_trigger = false;
    r->head_len = 0;
    r->total_bytes = 0;
    if (input.serial)
        sorter_force_full_sort(r->im->sorter); /* its events are not later than those of the traces before */
}

void reader_read_proto(struct reader *r, struct slice file, bool mapped)
{
    struct importer *im = r->im;
    im->stable_first = (uintptr_t)file.p;
    im->stable_len = file.len;
    size_t at = 0, piece = PIECE_BYTES;
    proto_reader_begin_file(im->proto, file);
    start_pool(r, file);
    while (at < file.len && !im->failed && !r->refused && !proto_reader_damaged(im->proto)) {
        size_t n = file.len - at < piece ? file.len - at : piece;
        uint64_t epoch = r->blocks.next_epoch++;
        sorter_set_epoch(im->sorter, epoch);
        size_t used = proto_reader_packets(im->proto, slice_of(file.p + at, n), (int64_t)at);
        if (mapped && at >= KEPT_BYTES)
            give_back(slice_of(file.p + at, used));
        if (mapped && used && !vec_push(&r->pieces, (struct piece){epoch, slice_of(file.p + at, used)}))
            im->failed = true;
        at += used;
        piece = used ? PIECE_BYTES : piece * 2; /* a packet longer than a piece */
        if (!used && n == file.len - at) {      /* an incomplete packet at the end */
            proto_reader_note_tail(im->proto, n);
            break;
        }
        progress(r, at, file.len);
    }
    inflate_pool_close(r->pool);
    r->pool = NULL;
}

/* A gzip or zstd file that is mapped: streamed out of it. */
static int read_compressed(struct reader *r, struct slice file, struct error *err)
{
    struct stream s;
    int rc = 0;
    stream_open(&s, r->im, &r->blocks, 0, UINT32_MAX, 0);
    for (size_t at = 0; at < file.len && !rc;) {
        size_t n = file.len - at < READ_BYTES ? file.len - at : READ_BYTES;
        r->taken_bytes += n;
        rc = stream_write(&s, slice_of(file.p + at, n), err);
        at += n;
        progress(r, at, file.len);
    }
    int rc_end = stream_end(&s, rc ? NULL : err);
    stream_close(&s);
    return rc ? rc : rc_end;
}

static int read_fd(struct reader *r, int fd, struct error *err)
{
    uint8_t *buf = mem_alloc(READ_BYTES);
    if (!buf)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = 0;
    for (;;) {
        ssize_t n = file_read(fd, buf, READ_BYTES);
        if (n < 0)
            rc = error_set_errno(err, errno, "read");
        if (n <= 0)
            break;
        rc = reader_feed(r, buf, (size_t)n, err);
        if (rc)
            break;
        progress(r, r->total_bytes, 0);
    }
    mem_free(buf);
    int rc_end = reader_finish(r, rc ? NULL : err);
    return rc ? rc : rc_end;
}

/* The machine of what names none: behind those of a manifest, when there was one. */
static uint32_t host_row(struct reader *r)
{
    const struct machine_ctx *host = importer_host(r->im);
    return host ? host->id : 0;
}

/* The traces that wait, in their order. */
void reader_read_pending(struct reader *r)
{
    for (; r->n_read < r->pending.n; r->n_read++) {
        const struct pending_trace *t = &r->pending.p[r->n_read];
        reader_begin_input(r, (struct trace_input){.serial = t->serial,
                                                   .clock_file = t->clock_file,
                                                   .base_machine = t->machine ? t->machine : host_row(r),
                                                   .still_written = t->still_written});
        reader_note_bytes(r, t->bytes);
        r->taken_bytes += t->bytes.len;
        trace_file_add(r->im, UINT32_MAX, 0, FORMAT_PROTO, (int64_t)t->bytes.len);
        reader_read_proto(r, t->bytes, true);
        proto_reader_finish_file(r->im->proto);
    }
}

/* The last part of a path, without its ending. */
static const char *name_of(struct reader *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return arena_strndup(&r->names, name, strcspn(name, "."));
}

static int add_mapped(struct reader *r, struct mapped_file m, const char *path, struct error *err)
{
    struct importer *im = r->im;
    if (!vec_push(&r->maps, m)) {
        mapped_file_close(&m);
        return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    if (!m.bytes.len)
        return 0;
    r->packed_bytes += m.bytes.len;
    r->im->input_bytes = r->packed_bytes;
    size_t look = m.bytes.len < FORMAT_LOOKAHEAD ? m.bytes.len : FORMAT_LOOKAHEAD;
    int64_t start = clock_now_ns(CLOCK_MONOTONIC);
    enum trace_format format = format_detect(slice_of(m.bytes.p, look));
    stats_add(&im->st->stats, 0, STAT_guess_trace_type_duration_ns, clock_now_ns(CLOCK_MONOTONIC) - start);
    if (format == FORMAT_PROTO) {
        struct pending_trace t = {
            .bytes = m.bytes, .name = name_of(r, path), .serial = r->inputs++, .still_written = m.still_written};
        t.clock_file = t.serial && proto_outline(m.bytes).has_snapshots ? t.serial : 0;
        return t.name && vec_push(&r->pending, t) ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    }
    reader_read_pending(r);
    r->taken_bytes += format == FORMAT_GZIP || format == FORMAT_ZSTD ? 0 : m.bytes.len;
    if (format != FORMAT_ZIP && format != FORMAT_TAR && format != FORMAT_MANIFEST)
        reader_begin_input(r, (struct trace_input){.serial = r->inputs++, .base_machine = host_row(r)});
    reader_note_bytes(r, m.bytes);
    const struct format_reader *other = format_reader_find(r->formats, format);
    if (other) {
        trace_file_add(im, UINT32_MAX, 0, format, (int64_t)m.bytes.len);
        return format_reader_run(im, other, m.bytes, err);
    }
    switch (format) {
    case FORMAT_SYMBOLS:
        trace_file_add(im, UINT32_MAX, 0, format, (int64_t)m.bytes.len);
        reader_read_proto(r, m.bytes, true);
        return 0;
    case FORMAT_ZIP:
    case FORMAT_TAR:
        return r->merging->archive(r, m.bytes, trace_file_add(im, UINT32_MAX, 0, format, (int64_t)m.bytes.len), err);
    case FORMAT_MANIFEST:
        return r->merging->manifest(r, m.bytes, err);
    default:
        return read_compressed(r, m.bytes, err);
    }
}

int reader_add_file(struct reader *r, const char *path, struct error *err)
{
    if (strcmp(path, "-") == 0)
        return read_fd(r, STDIN_FILENO, err);
    struct mapped_file m;
    int rc = mapped_file_open(&m, path, err);
    if (rc == 0 && m.bytes.len) {
        rc = add_mapped(r, m, path, err);
        if (rc)
            error_prefix(err, "%s", path);
        return rc;
    }
    if (rc && rc != -MRD_EUNSUPPORTED)
        return rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* a pipe or a device, or what tells no size, as tracefs and /proc do */
    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    rc = read_fd(r, fd, err);
    close(fd);
    if (rc)
        error_prefix(err, "%s", path);
    return rc;
}

int reader_feed(struct reader *r, const void *bytes, size_t len, struct error *err)
{
    if (!r->feeding) {
        reader_read_pending(r);
        stream_close(&r->fed);
        stream_open(&r->fed, r->im, &r->blocks, 0, UINT32_MAX, 0);
        r->feeding = true;
        reader_begin_input(r, (struct trace_input){.serial = r->inputs++, .base_machine = host_row(r)});
    }
    r->packed_bytes += len;
    r->im->input_bytes = r->packed_bytes;
    r->taken_bytes += len;
    reader_note_bytes(r, slice_of(bytes, len));
    return stream_write(&r->fed, slice_of(bytes, len), err);
}

bool reader_had_manifest_alone(const struct reader *r)
{
    return r->has_manifest && !r->inputs;
}

uint64_t reader_bytes(const struct reader *r)
{
    return r->packed_bytes;
}

void reader_note_shrunk(struct reader *r)
{
    for (size_t i = 0; i < r->maps.n; i++)
        if (mapped_file_shrank(&r->maps.p[i]))
            stats_add_idx(&r->im->st->stats, 0, STAT_file_shrank, 0, 1);
}

int reader_finish(struct reader *r, struct error *err)
{
    int rc = r->feeding ? stream_end(&r->fed, err) : 0;
    r->feeding = false;
    return rc;
}

int reader_inflate_all(enum trace_format format, struct slice in, uint8_t **out, size_t *len, uint64_t *room,
                       struct error *err)
{
    struct inflater *z = inflater_open(format == FORMAT_GZIP ? INFLATE_DEFLATE : INFLATE_ZSTD);
    size_t cap = 0, written = 0, whole = in.len;
    int rc = z ? 0 : error_set(err, -MRD_ENOMEM, "out of memory");
    *out = NULL;
    *len = 0;
    while (!rc) {
        if (*len == cap) {
            cap = cap ? cap * 2 : 1 << 20;
            uint8_t *grown = mem_realloc(*out, cap);
            if (!grown) {
                rc = error_set(err, -MRD_ENOMEM, "out of memory");
                break;
            }
            *out = grown;
        }
        rc = inflater_run(z, &in, *out + *len, cap - *len, &written, err);
        *len += written;
        if (written > *room || *len > unpack_limit(whole - in.len)) {
            rc = unpack_limit_error(err);
            break;
        }
        *room -= written;
        if (!in.len && *len < cap)
            break;
    }
    if (!rc && !inflater_at_end(z))
        rc = error_set(err, -MRD_EFORMAT, "%s: compressed data is truncated", format_name(format));
    inflater_close(z);
    return rc;
}

void reader_metadata(struct reader *r)
{
    if (!r->im->has_uuid && r->head_len) /* a trace without one: a hash of its first bytes */
        metadata_str_of_all(r->im, METADATA_trace_uuid,
                            trace_uuid_text(r->im, 0, fnv1a(FNV1A_BASIS, r->head, r->head_len)));
    uint64_t bytes = r->total_bytes + r->im->directory_bytes;
    if (bytes)
        metadata_int(r->im, NULL, METADATA_trace_size_bytes, (int64_t)bytes);
}
