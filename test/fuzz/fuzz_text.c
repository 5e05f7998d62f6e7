/* Files of text and profiles of other tools. The first byte chooses: bit 0, all events of text; the rest, into pieces
 * of how many bytes the file is cut (0: one piece). Built once with FUZZ_FORMAT for each format: what is not told apart
 * as that format gets its beginning in front; and once without it, for how they are told apart. */
#include "importer/importer.h"
#include "importer/input/format.h"
#include "importer/lines/line_reader.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#define BYTES(s) (const uint8_t *)(s), sizeof(s) - 1

/* How files begin that are told apart as their format. */
static const struct {
    enum trace_format format;
    struct slice front;
} fronts[] = {
    {FORMAT_ART_METHOD, {BYTES("*version\n3\n")}},
    {FORMAT_ART_METHOD_V2, {BYTES("SLOW\5\0\40\0")}},
    {FORMAT_COLLAPSED, {BYTES("a;b 1\na;b 2\na;b 3\n")}},
    {FORMAT_CTRACE, {BYTES("TRACE:\n\x78\x9c")}},
    {FORMAT_DUMPSTATE, {BYTES("9,0,i,vers,36,1,a,b\n")}},
    {FORMAT_FUCHSIA, {BYTES("\x10\x00\x04\x46\x78\x54\x16\x00")}},
    {FORMAT_GECKO, {BYTES("{\"meta\":{},")}},
    {FORMAT_HPROF, {BYTES("JAVA PROFILE 1.0.3\0\0\0\0\4\0\0\0\0\0\0\0\1")}},
    {FORMAT_INSTRUMENTS, {BYTES("<?xml version=\"1.0\"?>\n<trace-query-result>\n")}},
    {FORMAT_LOGCAT, {BYTES("2022-06-24 18:24:37.123  1000   100   101 I Tag: first\n")}},
    {FORMAT_NINJA_LOG, {BYTES("# ninja log v5\n")}},
    {FORMAT_PERF_TEXT, {BYTES("a 1/2 [000] 3.000004: 5 cycles:\n\t6 f+0x7 (m)\n\n")}},
    {FORMAT_PPROF, {BYTES("\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x01\x61\x32\x01\x62")}},
    {FORMAT_PRIMES, {BYTES("\x09\x01\x00\x00\x00\x00\x00\x00\x00")}},
    {FORMAT_SIMPLEPERF, {BYTES("SIMPLEPERF\1\0")}},
    {FORMAT_STRACE, {BYTES("1 2.000003 a(4) = 5\n")}},
    {FORMAT_SYSTRACE, {BYTES("# tracer: nop\n#\n")}},
};

#ifdef FUZZ_FORMAT
static struct slice front_of(struct slice file)
{
    static bool checked;
    struct slice front = {0};
    for (size_t i = 0; i < sizeof fronts / sizeof fronts[0]; i++) {
        if (!checked && format_detect(fronts[i].front) != fronts[i].format)
            abort(); /* what is put in front tells the format */
        front = fronts[i].format == FUZZ_FORMAT ? fronts[i].front : front;
    }
    checked = true;
    if (!front.len)
        abort();
    return format_detect(slice_to(file, file.len < FORMAT_LOOKAHEAD ? file.len : FORMAT_LOOKAHEAD)) == FUZZ_FORMAT
               ? (struct slice){front.p, 0}
               : front;
}
#else
static struct slice front_of(struct slice file)
{
    return (struct slice){fronts[file.len % sizeof fronts / sizeof fronts[0]].front.p, 0};
}
#endif

static int feed(struct importer *im, struct slice bytes, size_t piece, struct error *err)
{
    int rc = 0;
    for (size_t at = 0; at < bytes.len && !rc;) {
        size_t n = piece && piece < bytes.len - at ? piece : bytes.len - at;
        rc = importer_feed(im, bytes.p + at, n, err);
        at += n;
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct storage st;
    struct importer *im;
    struct error err = {0};
    if (!size || storage_init(&st) != 0)
        return 0;
    struct import_options options = {.all_text_events = data[0] & 1};
    size_t piece = data[0] >> 1;
    struct slice file = {data + 1, size - 1};
    if (importer_open(&im, &st, &options, &err) == 0) {
        if (!feed(im, front_of(file), 0, &err))
            feed(im, file, piece, &err);
        importer_finish(im, &err);
        importer_close(im);
    }
    storage_free(&st);
    return 0;
}
