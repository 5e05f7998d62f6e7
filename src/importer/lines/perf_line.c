/* Reads lines of perf script. */
#include "importer/lines/perf_line.h"

#include "importer/lines/line_reader.h"

enum { PLACES = 6 /* of the seconds */ };

/* The seconds that end in front of the colon at `at`: their first digit, NULL when there are none. */
static size_t seconds_before(struct slice line, size_t at)
{
    size_t i = at;
    while (i && is_digit(line.p[i - 1]))
        i--;
    if (at - i != PLACES || !i || line.p[i - 1] != '.')
        return 0;
    size_t first = --i;
    while (first && is_digit(line.p[first - 1]))
        first--;
    return first < i && first && line.p[first - 1] == ' ' ? first : 0;
}

/* TID, or PID/TID. */
static bool read_ids(struct slice word, struct perf_sample_line *out)
{
    const uint8_t *slash = memchr(word.p, '/', word.len);
    if (!slash)
        return number_decimal(word, &out->tid);
    size_t n = (size_t)(slash - word.p);
    out->has_pid = true;
    return number_decimal(slice_to(word, n), &out->pid) && number_decimal(slice_from(word, n + 1), &out->tid);
}

static bool read_head(struct slice head, struct perf_sample_line *out)
{
    struct slice words[PERF_COMM_WORDS + 2];
    size_t n = 0;
    for (struct slice s = trim_blanks(head); s.len && n < sizeof words / sizeof *words; s = trim_blanks(s)) {
        size_t end = 0;
        while (end < s.len && s.p[end] != ' ' && s.p[end] != '\t')
            end++;
        words[n++] = slice_to(s, end);
        s = slice_from(s, end);
    }
    if (n && words[n - 1].p[0] == '[' && words[n - 1].p[words[n - 1].len - 1] == ']') /* the cpu */
        n--;
    if (!n || !read_ids(words[--n], out))
        return false;
    out->n_comm = n < PERF_COMM_WORDS ? n : PERF_COMM_WORDS;
    memcpy(out->comm, words, out->n_comm * sizeof *words);
    return true;
}

bool perf_sample_line_parse(struct slice line, struct perf_sample_line *out)
{
    *out = (struct perf_sample_line){0};
    for (size_t at = 0; at < line.len; at++) {
        const uint8_t *colon = memchr(line.p + at, ':', line.len - at);
        if (!colon)
            return false;
        at = (size_t)(colon - line.p);
        size_t first = seconds_before(line, at);
        double seconds;
        if (!first || !number_real(slice_of(line.p + first, at - first), &seconds))
            continue;
        double ns = seconds * 1000 * 1000 * 1000; /* in this order: the last bit matters */
        out->ts = ns < 9223372036854775808.0 ? (int64_t)ns : INT64_MIN;
        return read_head(slice_to(line, first), out);
    }
    return false;
}

bool perf_frame_line_parse(struct slice line, struct perf_frame_line *out)
{
    struct slice s = trim_blanks(line);
    size_t address = 0;
    while (address < s.len && s.p[address] != ' ' && s.p[address] != '\t')
        address++;
    const uint8_t *open = s.len ? memrchr(s.p, '(', s.len) : NULL;
    uint64_t value;
    if (!open || s.p[s.len - 1] != ')' || (size_t)(open - s.p) < address || !number_hex(slice_to(s, address), &value))
        return false;
    out->mapping = slice_of(open + 1, (size_t)(s.p + s.len - open - 2));
    out->symbol = trim_blanks(slice_of(s.p + address, (size_t)(open - s.p) - address));
    const uint8_t *plus = out->symbol.len ? memrchr(out->symbol.p, '+', out->symbol.len) : NULL;
    if (plus)
        out->symbol.len = (size_t)(plus - out->symbol.p);
    return true;
}
