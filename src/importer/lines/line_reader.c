/* Cuts files into lines, and lines into numbers. */
#include "importer/lines/line_reader.h"

#include "base/hex.h"

#include <stdlib.h>

/* Some editors put a mark of UTF-8 in front of the first line. */
static void give(struct line_reader *r, struct slice line, int64_t end, bool in_place)
{
    if (!r->begun && slice_starts(line, "\xef\xbb\xbf"))
        line = slice_from(line, 3);
    r->begun = true;
    r->ended = !r->each(r->ctx, line, end, in_place);
}

static bool keep(struct line_reader *r, struct slice bytes)
{
    if (!bytes.len)
        return true;
    if (!vec_reserve(&r->tail, r->tail.n + bytes.len))
        return false;
    memcpy(r->tail.p + r->tail.n, bytes.p, bytes.len);
    r->tail.n += bytes.len;
    return true;
}

bool line_reader_feed(struct line_reader *r, struct slice bytes)
{
    const uint8_t *p = bytes.p, *end = bytes.p + bytes.len;
    while (p < end && !r->ended) {
        const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));
        if (!feed)
            break;
        int64_t after = r->at + (feed + 1 - bytes.p);
        if (r->tail.n) {
            if (!keep(r, slice_of(p, (size_t)(feed - p))))
                return false;
            give(r, slice_of(r->tail.p, r->tail.n), after, false);
            vec_clear(&r->tail);
        } else {
            give(r, slice_of(p, (size_t)(feed - p)), after, true);
        }
        p = feed + 1;
    }
    r->at += (int64_t)bytes.len;
    return r->ended || keep(r, slice_of(p, (size_t)(end - p)));
}

void line_reader_end(struct line_reader *r)
{
    if (!r->ended && r->tail.n)
        give(r, slice_of(r->tail.p, r->tail.n), r->at, false);
    vec_clear(&r->tail);
}

void line_reader_free(struct line_reader *r)
{
    vec_free(&r->tail);
}

bool line_next(struct slice *text, struct slice *line, bool *fed)
{
    if (!text->len)
        return false;
    const uint8_t *feed = memchr(text->p, '\n', text->len);
    size_t n = feed ? (size_t)(feed - text->p) : text->len;
    *line = slice_of(text->p, n);
    *text = slice_from(*text, feed ? n + 1 : n);
    if (fed)
        *fed = feed != NULL;
    return true;
}

struct slice next_word(struct slice *text)
{
    size_t n = 0;
    while (text->len && text->p[0] == ' ')
        *text = slice_from(*text, 1);
    while (n < text->len && text->p[n] != ' ')
        n++;
    struct slice word = slice_to(*text, n);
    *text = slice_from(*text, n);
    return word;
}

struct slice trim_blanks(struct slice s)
{
    while (s.len && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = slice_from(s, 1);
    while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
        s.len--;
    return s;
}

struct slice trim_space(struct slice s)
{
    while (s.len && is_space(s.p[0]))
        s = slice_from(s, 1);
    while (s.len && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

bool number_decimal(struct slice s, int64_t *value)
{
    bool negative = s.len && s.p[0] == '-';
    int64_t v = 0;
    if (s.len && (s.p[0] == '-' || s.p[0] == '+'))
        s = slice_from(s, 1);
    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_digit(s.p[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, negative ? -(s.p[i] - '0') : s.p[i] - '0', &v))
            return false;
    *value = v;
    return true;
}

bool number_hex(struct slice s, uint64_t *value)
{
    if (s.len > 2 && s.p[0] == '0' && (s.p[1] | 32) == 'x')
        s = slice_from(s, 2);
    uint64_t v = 0;
    if (!s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        int digit = hex_digit(s.p[i]);
        if (digit < 0 || v >> 60)
            return false;
        v = v << 4 | (unsigned)digit;
    }
    *value = v;
    return true;
}

bool number_real(struct slice s, double *value)
{
    char text[128];
    char *end;
    if (!s.len || s.len >= sizeof text || is_space(s.p[0]))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = 0;
    *value = strtod(text, &end);
    return end == text + s.len;
}
