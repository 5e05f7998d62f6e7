/* The readers of formats other than Perfetto's packets. */
#include "importer/input/format_reader.h"

#include "importer/input/reader_private.h"
#include "importer/sort/sorter.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"
#include "wire/pb_writer.h"

const struct format_reader *format_reader_find(const struct format_reader *const *table, enum trace_format format)
{
    for (; *table; table++)
        if ((*table)->format == format)
            return *table;
    return NULL;
}

void *format_reader_begin(struct importer *im, const struct format_reader *format)
{
    sorter_force_full_sort(im->sorter);
    im->has_idle |= !format->no_idle;
    im->has_plain_zero |= format->no_idle;
    void *self = format->open(im);
    if (!self || !vec_push(&im->reader->others, (struct open_format){format, self})) {
        if (self)
            format->close(self);
        im->failed = true;
        return NULL;
    }
    return self;
}

int format_reader_run(struct importer *im, const struct format_reader *format, struct slice file, struct error *err)
{
    im->stable_first = (uintptr_t)file.p;
    im->stable_len = file.len;
    void *self = format_reader_begin(im, format);
    if (!self)
        return error_set(err, -MRD_ENOMEM, "out of memory");
    int rc = format->write(self, file, err);
    return rc ? rc : format_reader_end(format, self, err);
}

static void put(struct proto_stream *s, struct slice bytes)
{
    while (bytes.len && !s->im->failed) {
        size_t room;
        uint8_t *to = proto_stream_room(s, &room);
        if (!to)
            return;
        size_t n = bytes.len < room ? bytes.len : room;
        memcpy(to, bytes.p, n);
        proto_stream_commit(s, n);
        bytes = slice_of(bytes.p + n, bytes.len - n);
    }
}

void format_reader_packet(struct importer *im, uint32_t sequence, const struct slice *pieces, size_t n)
{
    uint8_t head[24], tail[24];
    size_t len = 0, tail_len = pb_encode_varint(tail, TRACE_PACKET_TRUSTED_PACKET_SEQUENCE_ID << 3 | PB_VARINT);
    tail_len += pb_encode_varint(tail + tail_len, sequence);
    for (size_t i = 0; i < n; i++)
        len += pieces[i].len;
    size_t head_len = pb_encode_varint(head, TRACE_PACKET << 3 | PB_BYTES);
    head_len += pb_encode_varint(head + head_len, len + tail_len);
    put(&im->reader->made, slice_of(head, head_len));
    for (size_t i = 0; i < n; i++)
        put(&im->reader->made, pieces[i]);
    put(&im->reader->made, slice_of(tail, tail_len));
}
