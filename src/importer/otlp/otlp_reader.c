/* Files of OTLP: their framing, and messages that are damaged or cut. */
#include "importer/otlp/otlp_internal.h"

#include "importer/input/archive.h"
#include "importer/input/format_otlp.h"
#include "wire/inflate.h"
#include "wire/pb_cursor.h"

struct otlp_open {
    struct importer *im;
    bool json;
};

static void *open_file(struct importer *im, bool json)
{
    struct otlp_open *f = mem_zalloc(sizeof *f);
    if (f)
        *f = (struct otlp_open){.im = im, .json = json};
    return f;
}

static void *open_json(struct importer *im)
{
    return open_file(im, true);
}

static void *open_proto(struct importer *im)
{
    return open_file(im, false);
}

bool otlp_keep(struct otlp *o, uint8_t *copy)
{
    if (copy && vec_push(&o->copies, copy))
        return true;
    mem_free(copy);
    o->im->failed = true;
    return false;
}

static bool begin_file(struct otlp_open *f, struct slice bytes, struct otlp_reading *r)
{
    struct importer *im = f->im;
    struct otlp *o = otlp_of(im);
    if (!o)
        return false;
    if (!importer_bytes_stable(im, bytes.p)) {
        uint8_t *copy = mem_alloc(bytes.len + 1);
        if (copy && bytes.len)
            memcpy(copy, bytes.p, bytes.len);
        if (!otlp_keep(o, copy))
            return false;
        bytes.p = copy;
    }
    struct otlp_file file = {.bytes = bytes,
                             .input = im->input,
                             .trace_file = im->trace_file,
                             .json = f->json,
                             .declared = im->input.declared.machine != NULL};
    file.input.declared = (struct declared_trace){0}; /* it does not stay */
    *r = (struct otlp_reading){.o = o, .file = (uint32_t)o->files.n};
    if (!vec_push(&o->files, file))
        im->failed = true;
    return !im->failed;
}

static int end_reading(struct otlp_reading *r, size_t first_span, struct error *err)
{
    otlp_spans_enter(r, first_span);
    if (r->other_signals)
        otlp_count(r, STAT_otlp_unknown_signal, (int64_t)r->other_signals);
    return r->o->im->failed ? error_set(err, -MRD_ENOMEM, "out of memory for spans of OpenTelemetry") : 0;
}

/* Where the next line begins that is an object: messages stand on lines of their own, or there is one message only. */
static size_t next_message(struct slice bytes, size_t from)
{
    const uint8_t *p = bytes.p + from, *end = bytes.p + bytes.len;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        if (++p < end && *p == '{')
            return (size_t)(p - bytes.p);
    }
    return bytes.len;
}

static int write_json(void *self, struct slice bytes, struct error *err)
{
    struct otlp_reading r;
    size_t at = 0, limit = 0;
    bool bounded = false; /* a message was bad: those behind it end where the next line with an object begins */
    if (!begin_file(self, bytes, &r))
        return error_set(err, -MRD_ENOMEM, "out of memory for spans of OpenTelemetry");
    size_t first_span = r.o->spans.n;
    bytes = r.o->files.p[r.file].bytes;
    if (slice_starts(bytes, "\xef\xbb\xbf"))
        at = 3;
    while (!r.o->im->failed) {
        size_t used;
        bool cut = false;
        while (at < bytes.len && strchr(" \t\r\n", bytes.p[at]) && bytes.p[at])
            at++;
        if (at == bytes.len)
            break;
        if (at >= limit)
            limit = bounded ? next_message(bytes, at) : bytes.len;
        struct slice rest = slice_of(bytes.p + at, limit - at);
        bool ok = *rest.p == '{' && otlp_json_message(&r, rest, &used, &cut);
        if (ok) {
            at += used;
            continue;
        }
        at = limit = next_message(bytes, at);
        bounded = true;
        otlp_count(&r, cut && at == bytes.len ? STAT_otlp_truncated : STAT_otlp_bad_message, 1);
    }
    return end_reading(&r, first_span, err);
}

/* One message that is a frame of zstd. */
static bool inflate_message(struct otlp_reading *r, struct slice packed, struct slice *out)
{
    struct inflater *z = inflater_open(INFLATE_ZSTD);
    struct error err = {0};
    size_t cap = 0, len = 0, written = 0, whole = packed.len;
    uint8_t *bytes = NULL;
    bool ok = z != NULL;
    do {
        if (len == cap) {
            cap = cap ? cap * 2 : 64 << 10;
            uint8_t *grown = ok ? mem_realloc(bytes, cap) : NULL;
            r->o->im->failed |= ok && !grown;
            ok = grown != NULL;
            bytes = grown ? grown : bytes;
        }
        ok = ok && inflater_run(z, &packed, bytes + len, cap - len, &written, &err) == 0;
        len += ok ? written : 0;
        ok = ok && len <= unpack_limit(whole);
    } while (ok && (packed.len || len == cap));
    ok = ok && inflater_at_end(z);
    inflater_close(z);
    *out = slice_of(bytes, len);
    return otlp_keep(r->o, bytes) && ok;
}

static void read_message(struct otlp_reading *r, struct slice message, bool cut)
{
    static const char zstd[] = "\x28\xb5\x2f\xfd";
    struct slice plain = message;
    bool ok = true, packed = slice_starts(message, zstd);
    if (packed)
        ok = inflate_message(r, message, &plain);
    if (packed && plain.len && *plain.p == '{') {
        size_t used;
        bool inner_cut;
        ok &= otlp_json_message(r, plain, &used, &inner_cut);
    } else {
        ok &= otlp_proto_message(r, plain);
    }
    if (cut)
        otlp_count(r, STAT_otlp_truncated, 1);
    else if (!ok)
        otlp_count(r, STAT_otlp_bad_message, 1);
}

/* The length in front of a message, and where that begins. False when the length itself is cut. */
static bool read_length(enum otlp_framing framing, struct slice rest, uint64_t *len, size_t *head)
{
    enum { PREFIX = 4 };
    if (framing == OTLP_BIG_ENDIAN_32) {
        if (rest.len < PREFIX)
            return false;
        *len = (uint64_t)rest.p[0] << 24 | (uint64_t)rest.p[1] << 16 | (uint64_t)rest.p[2] << 8 | rest.p[3];
        *head = PREFIX;
        return true;
    }
    const uint8_t *p = rest.p;
    if (!pb_varint(&p, rest.p + rest.len, len))
        return false;
    *head = (size_t)(p - rest.p);
    return true;
}

static int write_proto(void *self, struct slice bytes, struct error *err)
{
    struct otlp_reading r;
    if (!begin_file(self, bytes, &r))
        return error_set(err, -MRD_ENOMEM, "out of memory for spans of OpenTelemetry");
    size_t first_span = r.o->spans.n;
    bytes = r.o->files.p[r.file].bytes;
    enum otlp_framing framing =
        otlp_framing_of(slice_of(bytes.p, bytes.len < FORMAT_LOOKAHEAD ? bytes.len : FORMAT_LOOKAHEAD));
    if (framing == OTLP_BARE) {
        if (!otlp_proto_message(&r, bytes))
            otlp_count(&r, STAT_otlp_truncated, 1);
        return end_reading(&r, first_span, err);
    }
    for (size_t at = 0; at < bytes.len && !r.o->im->failed;) {
        uint64_t len;
        size_t head;
        struct slice rest = slice_of(bytes.p + at, bytes.len - at);
        if (!read_length(framing, rest, &len, &head)) {
            otlp_count(&r, STAT_otlp_truncated, 1);
            break;
        }
        bool cut = len > rest.len - head;
        size_t n = cut ? rest.len - head : (size_t)len;
        read_message(&r, slice_of(rest.p + head, n), cut);
        at += head + n;
    }
    return end_reading(&r, first_span, err);
}

static void close_file(void *self)
{
    mem_free(self);
}

const struct format_reader otlp_json_reader = {
    .format = FORMAT_OTLP_JSON,
    .no_idle = true,
    .fixed_clock = true,
    .whole = true,
    .open = open_json,
    .write = write_json,
    .close = close_file,
};

const struct format_reader otlp_proto_reader = {
    .format = FORMAT_OTLP,
    .no_idle = true,
    .fixed_clock = true,
    .whole = true,
    .open = open_proto,
    .write = write_proto,
    .close = close_file,
};
