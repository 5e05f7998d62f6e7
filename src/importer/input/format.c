/* Detects the format of a trace: one table, the first match wins. */
#include "importer/input/format.h"

#include "importer/input/format_otlp.h"
#include "importer/input/format_text.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#include <strings.h>

enum { TEXT_LOOKAHEAD = 128 /* where the marks of text lie */ };

struct magic {
    uint8_t format;
    uint16_t offset;
    uint8_t len;
    const char *bytes;
};

static const struct magic magics[] = {
    {FORMAT_SNAPSHOT, 0, 8, "MRDNSNAP"}, /* before what may stand at byte 257 of it */
    {FORMAT_TAR, 257, 6, "ustar\0"},
    {FORMAT_TAR, 257, 8, "ustar  \0"},
    {FORMAT_FUCHSIA, 0, 8, "\x10\x00\x04\x46\x78\x54\x16\x00"},
    {FORMAT_PERF, 0, 8, "PERFILE2"},
    {FORMAT_PERF, 0, 8, "2ELIFREP"},
    {FORMAT_PERF, 0, 8, "PERFFILE"}, /* version 1: told, not read */
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

bool format_has_idle_thread(enum trace_format format)
{
    switch (format) {
    case FORMAT_PROTO:
    case FORMAT_SYMBOLS:
    case FORMAT_SYSTRACE:
    case FORMAT_PERF:
    case FORMAT_TRACE_DAT:
    case FORMAT_FUCHSIA:
        return true;
    default:
        return false;
    }
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

size_t ctrace_payload(struct slice head)
{
    static const char mark[] = "TRACE:\n\x78\x9c"; /* the zlib header of the usual level */
    size_t look = head.len < TEXT_LOOKAHEAD ? head.len : TEXT_LOOKAHEAD;
    const uint8_t *m = look ? memmem(head.p, look, mark, sizeof mark - 1) : NULL;
    return m ? (size_t)(m - head.p) + sizeof mark - 3 : 0;
}

static bool is_systrace(struct slice head)
{
    if (head.len > TEXT_LOOKAHEAD)
        head.len = TEXT_LOOKAHEAD;
    const char *text = (const char *)head.p;
    return contains(head, "# tracer") || contains(head, "TRACE:\n") || slice_starts(head, "cpus=") ||
           slice_starts(head, " ") || (head.len >= 15 && strncasecmp(text, "<!doctype html>", 15) == 0) ||
           (head.len >= 6 && strncasecmp(text, "<html>", 6) == 0);
}

static bool is_ninja_log(struct slice head)
{
    return slice_starts(head, "# ninja log");
}

/* Behind JSON, in the order of detection. */
static const struct {
    enum trace_format format;
    bool (*is)(struct slice head);
} texts[] = {
    {FORMAT_NINJA_LOG, is_ninja_log}, {FORMAT_LOGCAT, is_logcat}, {FORMAT_COLLAPSED, is_collapsed},
    {FORMAT_PERF_TEXT, is_perf_text}, {FORMAT_STRACE, is_strace}, {FORMAT_SYSTRACE, is_systrace},
};

static enum trace_format detect_text(struct slice head)
{
    enum { JSON_LOOKAHEAD = 128 };
    char squeezed[JSON_LOOKAHEAD];
    size_t n =
        squeeze(slice_of(head.p, head.len < JSON_LOOKAHEAD ? head.len : JSON_LOOKAHEAD), squeezed, sizeof squeezed);
    if (starts(squeezed, n, "{\"perfetto_manifest\""))
        return FORMAT_MANIFEST;
    if (is_otlp_json(head))
        return FORMAT_OTLP_JSON;
    if (starts(squeezed, n, "{\"meta\"") || starts(squeezed, n, "{\"libs\""))
        return FORMAT_GECKO;
    if (starts(squeezed, n, "{\"") || starts(squeezed, n, "[{\""))
        return FORMAT_JSON;
    if (is_instruments(head))
        return FORMAT_INSTRUMENTS;
    if (ctrace_payload(head))
        return FORMAT_CTRACE;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].is(head))
            return texts[i].format;
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
    enum { PRIMES_FIRST = PRIMES_TRACE_ID << 3 | PB_FIXED64 };
    enum trace_format art = art_method_format(head);
    if (art != FORMAT_UNKNOWN)
        return art;
    if (otlp_framing_of(head) != OTLP_NOT)
        return FORMAT_OTLP;
    bool bom = slice_starts(head, "\xef\xbb\xbf"); /* some editors put it in front of text */
    enum trace_format text = detect_text(bom ? slice_of(head.p + 3, head.len - 3) : head);
    if (text != FORMAT_UNKNOWN)
        return text;
    if (head.len && head.p[0] == 0x0a && is_symbols(head))
        return FORMAT_SYMBOLS;
    if (is_pprof(head))
        return FORMAT_PPROF;
    if (head.len && head.p[0] == 0x0a)
        return FORMAT_PROTO;
    if (head.len && head.p[0] == PRIMES_FIRST)
        return FORMAT_PRIMES;
    return is_dumpstate(head) ? FORMAT_DUMPSTATE : FORMAT_UNKNOWN;
}
