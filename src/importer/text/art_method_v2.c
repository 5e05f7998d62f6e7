/* Method traces of Android's runtime, version 2: blocks of records, each block of one thread. */
#include "importer/core/metadata.h"
#include "importer/lines/line_reader.h"
#include "importer/text/art_method.h"
#include "importer/text/text_file.h"
#include "importer/text/text_formats.h"

/* The file's layout is that of art/runtime/trace.h. */
enum {
    HEAD = 32,
    VERSION_AT = 4,
    START_AT = 6, /* ns */
    VERSION_BITS = 0xf,
    VERSION_DUAL = 5,
    LEB_BITS = 64,
};

enum packet { PACKET_THREAD, PACKET_METHOD, PACKET_RECORDS, PACKET_SUMMARY, PACKETS };

/* How a packet begins, behind the byte that tells what it is: who or what it is about, then how long the rest is. */
static const struct {
    uint8_t size, id_bytes, length_at, length_bytes;
} heads[PACKETS] = {
    [PACKET_THREAD] = {6, 4, 4, 2},
    [PACKET_METHOD] = {10, 8, 8, 2},
    [PACKET_RECORDS] = {11, 4, 7, 4},
    [PACKET_SUMMARY] = {2, 0, 0, 2},
};

enum { COUNT_AT = 4, COUNT_BYTES = 3 /* of records */ };

/* A LEB128 number taken off the bytes; `sign`: it may be negative. False when it is cut off or too long. */
static bool read_leb(struct slice *s, bool sign, uint64_t *value)
{
    uint64_t v = 0;
    unsigned shift = 0;
    for (size_t i = 0; i < s->len && shift < LEB_BITS; i++, shift += 7) {
        uint8_t byte = s->p[i];
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (sign && byte & 0x40 && shift + 7 < LEB_BITS)
            v |= UINT64_MAX << (shift + 7);
        *s = slice_from(*s, i + 1);
        *value = v;
        return true;
    }
    return false;
}

/* Records of a thread: each tells by how much its method and its times differ from those of the one before. A block
 * that did not fit into the recorder's buffer counts the records of the next one, too. */
static bool read_records(struct art *a, uint64_t start, uint32_t tid, uint64_t count, struct slice s)
{
    uint64_t method = 0, wall = 0, diff;
    for (uint64_t i = 0; i < count && s.len; i++) {
        if (!read_leb(&s, true, &diff))
            return false;
        method += diff;
        if (!read_leb(&s, false, &diff))
            return false;
        wall += diff;
        if (a->dual && !read_leb(&s, false, &diff))
            return false;
        art_push(a, (int64_t)(start + wall), tid, method);
    }
    return true;
}

/* Lines of key=value. False (and told) when the times are none that others have. */
static bool read_summary(struct art *a, struct slice text, struct error *err)
{
    struct slice line;
    while (line_next(&text, &line, NULL)) {
        const uint8_t *equals = line.len ? memchr(line.p, '=', line.len) : NULL;
        if (!equals)
            continue;
        size_t n = (size_t)(equals - line.p);
        if (slice_eq_str(line, "clock=thread-cpu")) {
            error_set(err, -MRD_EUNSUPPORTED, ART_CLOCK_TEXT);
            return false;
        }
        metadata_dynamic(a->im, a->m, import_slice(a->im, slice_to(line, n)), COL_NULL,
                         import_slice(a->im, slice_from(line, n + 1)));
    }
    return true;
}

/* One packet, taken off the bytes. */
static int read_packet(struct art *a, uint64_t start, struct slice *s, struct error *err)
{
    uint8_t kind = s->p[0];
    if (kind >= PACKETS)
        return error_set(err, -MRD_EFORMAT, "ART method trace: packet type %u is not known (ERR:tp-corrupt)", kind);
    struct slice rest = slice_from(*s, 1);
    if (rest.len < heads[kind].size)
        return art_cut_off(err);
    const uint8_t *head = rest.p;
    uint64_t id = art_little(head, heads[kind].id_bytes);
    uint64_t length = art_little(head + heads[kind].length_at, heads[kind].length_bytes);
    rest = slice_from(rest, heads[kind].size);
    if (length > rest.len)
        return art_cut_off(err);
    struct slice body = slice_to(rest, length);
    *s = slice_from(rest, length);
    switch ((enum packet)kind) {
    case PACKET_THREAD:
        art_name_thread(a, (int64_t)id, body);
        return 0;
    case PACKET_METHOD:
        art_read_method(a, id, body);
        return 0;
    case PACKET_RECORDS:
        return read_records(a, start, (uint32_t)id, art_little(head + COUNT_AT, COUNT_BYTES), body) ? 0
                                                                                                    : art_cut_off(err);
    default:
        return read_summary(a, body, err) ? 0 : -MRD_EUNSUPPORTED;
    }
}

static int write_file(void *self, struct slice file, struct error *err)
{
    struct art *a = self;
    if (file.len < HEAD)
        return art_cut_off(err);
    a->dual = (file.p[VERSION_AT] & VERSION_BITS) == VERSION_DUAL;
    uint64_t start = art_little(file.p + START_AT, 8);
    struct slice rest = slice_from(file, HEAD);
    while (rest.len) {
        int rc = read_packet(a, start, &rest, err);
        if (a->im->failed)
            return error_set(err, -MRD_ENOMEM, "out of memory");
        if (rc)
            return rc;
    }
    return 0;
}

const struct format_reader art_method_v2_format_reader = {
    .format = FORMAT_ART_METHOD_V2, .whole = true, .open = art_open, .write = write_file, .close = art_close};
