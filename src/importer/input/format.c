/* Owns format detection: one table, first match wins. */
#include "importer/input/format.h"

#include "wire/fields.h"
#include "wire/pb_cursor.h"

struct magic {
    uint8_t format;
    uint16_t offset;
    uint8_t len;
    const char *bytes;
};

static const struct magic magics[] = {
    {FORMAT_TAR, 257, 6, "ustar\0"},
    {FORMAT_TAR, 257, 8, "ustar  \0"},
    {FORMAT_FUCHSIA, 0, 8, "\x10\x00\x04\x46\x78\x54\x16\x00"},
    {FORMAT_PERF, 0, 8, "PERFILE2"},
    {FORMAT_PERF, 0, 8, "2ELIFREP"},
    {FORMAT_TRACE_DAT, 0, 10, "\x17\x08\x44tracing"},
    {FORMAT_SIMPLEPERF, 0, 10, "SIMPLEPERF"},
    {FORMAT_ZIP, 0, 4, "PK\3\4"},
    {FORMAT_GZIP, 0, 2, "\x1f\x8b"},
    {FORMAT_ZSTD, 0, 4, "\x28\xb5\x2f\xfd"},
    {FORMAT_HPROF, 0, 12, "JAVA PROFILE"},
};

const char *format_name(enum trace_format format)
{
    static const char *const names[] = {
#define X(id, name) name,
        TRACE_FORMATS(X)
#undef X
            "unknown"};
    return names[format];
}

/* The text without white space, up to what fits. */
static size_t squeeze(struct slice head, char *out, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < head.len && n < cap; i++)
        if (!strchr(" \t\r\n\v\f", head.p[i]) || !head.p[i])
            out[n++] = (char)head.p[i];
    return n;
}

static bool contains(struct slice head, const char *text)
{
    return head.len && memmem(head.p, head.len, text, strlen(text));
}

static bool starts(const char *text, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    return len >= n && memcmp(text, prefix, n) == 0;
}

static enum trace_format detect_text(struct slice head)
{
    enum { JSON_LOOKAHEAD = 128 };
    char squeezed[JSON_LOOKAHEAD];
    size_t n =
        squeeze(slice_of(head.p, head.len < JSON_LOOKAHEAD ? head.len : JSON_LOOKAHEAD), squeezed, sizeof squeezed);
    if (starts(squeezed, n, "{\"perfetto_manifest\""))
        return FORMAT_MANIFEST;
    if (starts(squeezed, n, "{\"meta\"") || starts(squeezed, n, "{\"libs\""))
        return FORMAT_GECKO;
    if (starts(squeezed, n, "{\"") || starts(squeezed, n, "[{\""))
        return FORMAT_JSON;
    if (slice_starts(head, "TRACE:\n") && head.len > 7 && head.p[7] == 0x78) /* a zlib stream follows */
        return FORMAT_CTRACE;
    if (slice_starts(head, "# ninja log"))
        return FORMAT_NINJA_LOG;
    if (contains(head, "# tracer") || slice_starts(head, "TRACE:\n") || slice_starts(head, "cpus=") ||
        slice_starts(head, "<!doctype html>") || slice_starts(head, "<!DOCTYPE html>") ||
        slice_starts(head, "<html>") || slice_starts(head, " "))
        return FORMAT_SYSTRACE;
    return FORMAT_UNKNOWN;
}

/* Whether the first packet begins with module_symbols. */
static bool is_symbols(struct slice head)
{
    enum { MODULE_SYMBOLS_TAG = TRACE_PACKET_MODULE_SYMBOLS << 3 | PB_BYTES };
    const uint8_t *p = head.p + 1, *end = head.p + head.len;
    uint64_t len, tag = 0;
    return pb_varint(&p, end, &len) && pb_varint(&p, end, &tag) && tag == MODULE_SYMBOLS_TAG;
}

enum trace_format format_detect(struct slice head)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const struct magic *m = &magics[i];
        if (head.len >= (size_t)m->offset + m->len && memcmp(head.p + m->offset, m->bytes, m->len) == 0)
            return m->format;
    }
    enum trace_format text = detect_text(head);
    if (text != FORMAT_UNKNOWN)
        return text;
    if (head.len && head.p[0] == 0x0a)
        return is_symbols(head) ? FORMAT_SYMBOLS : FORMAT_PROTO;
    return FORMAT_UNKNOWN;
}
