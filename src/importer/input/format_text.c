/* Tells formats of text and of profiles apart, by their first lines. */
#include "importer/input/format_text.h"

#include "importer/lines/line_reader.h"
#include "importer/lines/perf_line.h"
#include "importer/lines/strace_line.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

static struct slice first_line(struct slice head)
{
    struct slice line = slice_of("", 0);
    line_next(&head, &line, NULL);
    return line;
}

bool is_strace(struct slice head)
{
    struct strace_line l;
    return strace_line_parse(first_line(head), &l) == STRACE_OK;
}

/* What perf script --header writes stands in front. */
bool is_perf_text(struct slice head)
{
    struct slice line = slice_of("", 0);
    bool header = slice_starts(head, "# ========");
    while (line_next(&head, &line, NULL) && header && (!line.len || line.p[0] == '#'))
        ;
    struct perf_sample_line l;
    return perf_sample_line_parse(line, &l);
}

bool is_collapsed(struct slice head)
{
    enum { LINES = 3 };
    struct slice line;
    int seen = 0;
    bool whole;
    while (seen < LINES && line_next(&head, &line, &whole)) {
        if (seen && !whole) /* cut: it says nothing */
            break;
        int64_t count;
        line = trim_space(line);
        if (!line.len || line.p[0] == '#')
            continue;
        const uint8_t *space = memrchr(line.p, ' ', line.len);
        if (!space || !memchr(line.p, ';', (size_t)(space - line.p)) ||
            !is_digit(space[1 < line.p + line.len - space ? 1 : 0]) ||
            !number_decimal(slice_from(line, (size_t)(space + 1 - line.p)), &count))
            return false;
        seen++;
    }
    return seen > 0;
}

bool is_pprof(struct slice head)
{
    enum { SMALLEST = 10, LAST_FIELD = 14, COMMENT = 13 };
    static const uint8_t wires[LAST_FIELD + 1] = {[1] = PB_BYTES, [2] = PB_BYTES, [3] = PB_BYTES, [4] = PB_BYTES,
                                                  [5] = PB_BYTES, [6] = PB_BYTES, [11] = PB_BYTES};
    const uint8_t *p = head.p, *end = head.p + head.len;
    bool typical = false;
    if (head.len < SMALLEST)
        return false;
    while (p < end) {
        uint64_t tag, value;
        if (!pb_varint(&p, end, &tag))
            return typical;
        uint64_t id = tag >> 3, wire = tag & 7;
        if (!id || id > LAST_FIELD || (wire != wires[id] && !(id == COMMENT && wire == PB_BYTES)))
            return false;
        typical |= id >= 2 && id <= 8;
        if (!pb_varint(&p, end, &value))
            return typical;
        if (wire == PB_BYTES) {
            if (value > (uint64_t)(end - p))
                return typical;
            p += value;
        }
    }
    return typical;
}

/* A word of digits and separators: "dd-dd", "dd:dd:dd.…". */
static bool looks_like(struct slice word, const char *pattern)
{
    size_t i = 0;
    for (; pattern[i]; i++)
        if (i >= word.len || (pattern[i] == 'd' ? !is_digit(word.p[i]) : word.p[i] != (uint8_t)pattern[i]))
            return false;
    return true;
}

bool is_logcat(struct slice head)
{
    struct slice line = slice_of("", 0), words[6] = {{0}};
    while (line_next(&head, &line, NULL) && slice_starts(line, "--------"))
        ;
    size_t n = 0;
    for (line = trim_space(line); line.len && n < 6; line = trim_space(line)) {
        size_t end = 0;
        while (end < line.len && !is_space(line.p[end]))
            end++;
        words[n++] = slice_to(line, end);
        line = slice_from(line, end);
    }
    if (n < 5 || !(looks_like(words[0], "dd-dd") || looks_like(words[0], "dddd-dd-dd")) ||
        !looks_like(words[1], "dd:dd:dd."))
        return false;
    for (size_t i = 4; i < n; i++)
        if (words[i].len == 1 && strchr("VDIWEFAS", words[i].p[0]))
            return true;
    return false;
}

bool is_instruments(struct slice head)
{
    struct slice line;
    return line_next(&head, &line, NULL) && slice_starts(line, "<?xml version=\"1.0\"?>") &&
           slice_starts(trim_space(head), "<trace-query-result>");
}

enum trace_format art_method_format(struct slice head)
{
    if (slice_starts(head, "*version\n"))
        return FORMAT_ART_METHOD;
    if (head.len < 6 || !slice_starts(head, "SLOW"))
        return FORMAT_UNKNOWN;
    uint8_t version = head.p[4];
    bool second = version == 0x04 || version == 0x05 || version == 0xf4 || version == 0xf5;
    return second ? FORMAT_ART_METHOD_V2 : FORMAT_ART_METHOD;
}

bool is_dumpstate(struct slice head)
{
    enum { RULE = 56 };
    struct slice line = first_line(head);
    size_t n = 0;
    while (n < line.len && line.p[n] == '=')
        n++;
    return slice_starts(head, "9,0,i,vers,") ||
           (n == RULE && slice_starts(slice_from(head, line.len), "\n== dumpstate: "));
}
