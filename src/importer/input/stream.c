/* Reads a trace front to back: detection, decompression, and packets across the borders of pieces. */
#include "importer/input/stream.h"

#include "importer/input/reader_private.h"

#include "importer/core/metadata.h"
#include "importer/proto/trace_reader.h"

enum {
    BLOCK_BYTES = 1 << 20,
    FIRST_BLOCK_BYTES = 128 << 10, /* many a trace fits in it */
    SMALLEST_ROOM = 64 << 10,
    SCRATCH_BYTES = 64 << 10,
    MAX_DEPTH = 4, /* gzip in zstd in … */
};

uint8_t *proto_stream_room(struct proto_stream *s, size_t *room)
{
    struct block *b = s->block;
    if (!b || b->cap - b->n < SMALLEST_ROOM) {
        size_t tail = b ? b->n - s->start : 0;
        size_t cap = !b ? FIRST_BLOCK_BYTES : tail * 2 > BLOCK_BYTES ? tail * 2 : BLOCK_BYTES;
        struct block *next = blocks_add(s->blocks, cap);
        if (!next) {
            s->im->failed = true;
            return NULL;
        }
        if (b) {
            memcpy(next->bytes, b->bytes + s->start, tail);
            next->n = tail;
            b->in_use = false;
        }
        s->block = b = next;
        s->start = 0;
    }
    *room = b->cap - b->n;
    return b->bytes + b->n;
}

void proto_stream_commit(struct proto_stream *s, size_t n)
{
    struct block *b = s->block;
    b->n += n;
    sorter_set_epoch(s->im->sorter, b->epoch);
    size_t used = proto_reader_packets(s->im->proto, slice_of(b->bytes + s->start, b->n - s->start), s->offset);
    s->start += used;
    if (s->offset >= 0)
        s->offset += (int64_t)used;
}

void proto_stream_end(struct proto_stream *s)
{
    if (!s->block)
        return;
    if (!proto_reader_damaged(s->im->proto))
        proto_reader_note_tail(s->im->proto, s->block->n - s->start);
    s->start = s->block->n;
}

uint32_t trace_file_add(struct importer *im, uint32_t parent, strid name, enum trace_format format, int64_t size)
{
    bool container = format == FORMAT_GZIP || format == FORMAT_ZSTD || format == FORMAT_CTRACE ||
                     format == FORMAT_ZIP || format == FORMAT_TAR;
    uint32_t row =
        trace_file_insert(im->st, &(struct trace_file_row){.parent_id = parent == UINT32_MAX ? COL_NULL : parent,
                                                           .name = name,
                                                           .size = size,
                                                           .trace_type = import_str(im, format_name(format)),
                                                           .processing_order = im->st->t[T_trace_file].n_rows,
                                                           .is_container = container});
    im->has_idle |= format == FORMAT_PROTO;
    if (row == UINT32_MAX)
        im->failed = true;
    else if (!container) {
        if (format_has_idle_thread(format))
            im->idle_files++;
        else
            im->other_files++;
        im->trace_file = row;
        im->file_format = (uint8_t)format;
        metadata_str(im, NULL, METADATA_trace_type, import_str(im, format_name(format)));
    }
    return row;
}

void stream_open(struct stream *s, struct importer *im, struct blocks *blocks, unsigned depth, uint32_t parent,
                 strid name)
{
    *s = (struct stream){.im = im, .blocks = blocks, .depth = depth, .format = FORMAT_UNKNOWN, .file = parent};
    s->source_bytes = &s->unpacked_from;
    s->proto = (struct proto_stream){.im = im, .blocks = blocks, .offset = depth ? -1 : 0};
    (void)name;
}

static int write_proto(struct proto_stream *p, struct slice bytes, struct error *err)
{
    while (bytes.len && !proto_reader_damaged(p->im->proto)) {
        size_t room;
        uint8_t *to = proto_stream_room(p, &room);
        if (!to)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        size_t n = bytes.len < room ? bytes.len : room;
        memcpy(to, bytes.p, n);
        proto_stream_commit(p, n);
        bytes = slice_of(bytes.p + n, bytes.len - n);
        if (p->im->failed)
            return error_set(err, -MRD_ENOMEM, "out of memory");
    }
    return 0;
}

static int write_compressed(struct stream *s, struct slice bytes, struct error *err)
{
    size_t written, before = bytes.len;
    do {
        int rc = inflater_run(s->inflater, &bytes, s->scratch, SCRATCH_BYTES, &written, err);
        s->unpacked_from += before - bytes.len;
        before = bytes.len;
        if (s->inner->bytes + written > unpack_limit(*s->source_bytes))
            return unpack_limit_error(err);
        int rc_inner = written ? stream_write(s->inner, slice_of(s->scratch, written), rc ? NULL : err) : 0;
        if (rc || rc_inner)
            return rc ? rc : rc_inner;
    } while (bytes.len || written == SCRATCH_BYTES);
    return 0;
}

static int unsupported(enum trace_format format, struct error *err)
{
    if (format == FORMAT_UNKNOWN)
        return error_set(err, -MRD_EFORMAT, "Unknown trace type provided (ERR:fmt)");
    return error_set(err, -MRD_EUNSUPPORTED, "traces of type %s cannot be imported", format_name(format));
}

static bool is_held(const struct stream *s)
{
    enum trace_format format = s->format;
    return (s->other && s->other->whole) || format == FORMAT_ZIP || format == FORMAT_TAR || format == FORMAT_MANIFEST;
}

static int hold(struct stream *s, struct slice bytes, struct error *err)
{
    if (!vec_reserve(&s->held, s->held.n + bytes.len))
        return error_set(err, -MRD_ENOMEM, "out of memory");
    memcpy(s->held.p + s->held.n, bytes.p, bytes.len);
    s->held.n += bytes.len;
    return 0;
}

static int read_held(struct stream *s, struct error *err)
{
    struct slice bytes = slice_of(s->held.p, s->held.n);
    struct reader *r = s->im->reader;
    if (s->other) {
        int rc = s->other->write(s->other_self, bytes, err);
        return rc ? rc : format_reader_end(s->other, s->other_self, err);
    }
    r->inputs = 0; /* the stream itself is not a trace, and it is the first */
    if (s->format == FORMAT_MANIFEST)
        return r->merging->manifest(r, bytes, err);
    return r->merging->archive(r, bytes, s->file, err);
}

static int write_other(struct stream *s, struct slice bytes, struct error *err)
{
    return is_held(s) ? hold(s, bytes, err) : s->other->write(s->other_self, bytes, err);
}

/* A format that has a reader of its own begins. */
static int begin_other(struct stream *s, struct error *err)
{
    s->file = trace_file_add(s->im, s->file, 0, s->format, 0);
    s->other_self = format_reader_begin(s->im, s->other);
    if (!s->other_self)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    return write_other(s, slice_of(s->head, s->head_len), err);
}

/* The head is complete: chooses what to do with the bytes. */
static int sniff(struct stream *s, struct error *err)
{
    size_t packed_from = 0;
    s->sniffed = true;
    s->format = format_detect(slice_of(s->head, s->head_len));
    s->other = format_reader_find(s->im->reader->formats, s->format);
    if (s->other)
        return begin_other(s, err);
    if (s->format == FORMAT_CTRACE)
        packed_from = ctrace_payload(slice_of(s->head, s->head_len));
    switch (s->format) {
    case FORMAT_PROTO:
    case FORMAT_SYMBOLS:
        s->file = trace_file_add(s->im, s->file, 0, s->format, 0);
        return write_proto(&s->proto, slice_of(s->head, s->head_len), err);
    case FORMAT_GZIP:
    case FORMAT_ZSTD:
    case FORMAT_CTRACE:
        if (s->depth == MAX_DEPTH)
            return error_set(err, -MRD_ELIMIT, "compressed more than %d times", MAX_DEPTH);
        s->inflater = inflater_open(s->format == FORMAT_ZSTD ? INFLATE_ZSTD : INFLATE_DEFLATE);
        s->inner = mem_zalloc(sizeof *s->inner);
        s->scratch = mem_alloc(SCRATCH_BYTES);
        if (!s->inflater || !s->inner || !s->scratch)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        s->file = trace_file_add(s->im, s->file, 0, s->format, 0);
        stream_open(s->inner, s->im, s->blocks, s->depth + 1, s->file, 0);
        s->inner->source_bytes = s->source_bytes;
        return write_compressed(s, slice_of(s->head + packed_from, s->head_len - packed_from), err);
    case FORMAT_ZIP:
    case FORMAT_TAR:
        s->file = trace_file_add(s->im, s->file, 0, s->format, 0);
        return hold(s, slice_of(s->head, s->head_len), err);
    case FORMAT_MANIFEST:
        return hold(s, slice_of(s->head, s->head_len), err);
    default:
        return unsupported(s->format, err);
    }
}

int stream_write(struct stream *s, struct slice bytes, struct error *err)
{
    if (!bytes.len)
        return 0;
    s->bytes += bytes.len;
    if (!s->sniffed) {
        size_t want = sizeof s->head - s->head_len, n = bytes.len < want ? bytes.len : want;
        memcpy(s->head + s->head_len, bytes.p, n);
        s->head_len += n;
        bytes = slice_of(bytes.p + n, bytes.len - n);
        if (s->head_len < sizeof s->head)
            return 0;
        int rc = sniff(s, err);
        if (rc)
            return rc;
    }
    if (!bytes.len)
        return 0;
    if (s->inner)
        return write_compressed(s, bytes, err);
    if (s->format == FORMAT_PROTO || s->format == FORMAT_SYMBOLS)
        return write_proto(&s->proto, bytes, err);
    if (s->other)
        return write_other(s, bytes, err);
    if (is_held(s))
        return hold(s, bytes, err);
    return unsupported(s->format, err);
}

int stream_end(struct stream *s, struct error *err)
{
    int rc = !s->sniffed && s->head_len ? sniff(s, err) : 0;
    if (s->sniffed && s->file != UINT32_MAX)
        ROW_SET(s->im->st, trace_file, size, s->file, (int64_t)s->bytes);
    if (s->inner) {
        int rc_inner = stream_end(s->inner, rc ? NULL : err);
        if (!rc)
            rc = rc_inner;
        if (!rc && !inflater_at_end(s->inflater))
            rc = error_set(err, -MRD_EFORMAT, "%s: compressed data is truncated", format_name(s->format));
    }
    if (!rc && s->held.n)
        rc = read_held(s, err);
    else if (!rc && s->other_self)
        rc = format_reader_end(s->other, s->other_self, err);
    proto_stream_end(&s->proto);
    return rc;
}

void stream_close(struct stream *s)
{
    if (s->inner) {
        stream_close(s->inner);
        mem_free(s->inner);
    }
    inflater_close(s->inflater);
    mem_free(s->scratch);
    vec_free(&s->held);
    *s = (struct stream){0};
}
