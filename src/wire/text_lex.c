/* Reads the words, strings and numbers of protobuf text format. */
#include "wire/text_lex.h"

#include "base/hex.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_fail(struct text_lexer *s, const char *at, const char *fmt, ...)
{
    va_list ap;
    if (s->failed)
        return;
    s->failed = true;
    va_start(ap, fmt);
    error_vset(s->err, -MRD_EFORMAT, fmt, ap);
    va_end(ap);
    error_prefix(s->err, "%u:%u", s->line, (unsigned)(at - s->line_start) + 1);
}

void text_skip_space(struct text_lexer *s)
{
    while (s->p < s->end) {
        if (*s->p == '#') {
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        } else if (*s->p == '\n') {
            s->line++;
            s->line_start = ++s->p;
        } else if (isspace((unsigned char)*s->p)) {
            s->p++;
        } else {
            return;
        }
    }
}

bool text_peek(struct text_lexer *s, char c)
{
    text_skip_space(s);
    return s->p < s->end && *s->p == c;
}

bool text_accept(struct text_lexer *s, char c)
{
    if (!text_peek(s, c))
        return false;
    s->p++;
    return true;
}

/* The character here, for a message. */
const char *text_here(struct text_lexer *s, char buf[8])
{
    text_skip_space(s);
    if (s->p == s->end)
        return "end of text";
    snprintf(buf, 8, isprint((unsigned char)*s->p) ? "'%c'" : "\\x%02x", (unsigned char)*s->p);
    return buf;
}

/* A word: identifier or number. Empty when there is none. */
struct slice text_next_word(struct text_lexer *s)
{
    text_skip_space(s);
    const char *start = s->p;
    while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '.' ||
                             ((*s->p == '-' || *s->p == '+') && (s->p == start || s->p[-1] == 'e' || s->p[-1] == 'E'))))
        s->p++;
    return slice_of(start, (size_t)(s->p - start));
}

/* One escape behind the backslash; s->p is on the character behind it. */
static void put_escape(struct text_lexer *s, struct pb_writer *w)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    if (s->p == s->end) {
        text_fail(s, s->p, "unterminated string");
        return;
    }
    char c = *s->p++;
    const char *known = strchr(names, c);
    uint8_t b = 0;
    if (c && known) {
        b = (uint8_t)values[known - names];
    } else if (c == 'x' || c == 'X') {
        int digits = 0;
        for (; digits < 2 && s->p < s->end && hex_digit((uint8_t)*s->p) >= 0; digits++)
            b = (uint8_t)(b << 4 | hex_digit((uint8_t)*s->p++));
        if (!digits)
            text_fail(s, s->p, "\\x without a digit");
    } else if (c >= '0' && c <= '7') {
        unsigned v = (unsigned)(c - '0');
        for (int i = 0; i < 2 && s->p < s->end && *s->p >= '0' && *s->p <= '7'; i++)
            v = v * 8 + (unsigned)(*s->p++ - '0');
        b = (uint8_t)v;
    } else {
        text_fail(s, s->p - 1, "unknown escape");
    }
    pb_put_raw(w, &b, 1);
}

/* One string, or several in a row, without their quotes. */
void text_string(struct text_lexer *s, struct pb_writer *w)
{
    if (!text_peek(s, '"') && !text_peek(s, '\'')) {
        char b[8];
        text_fail(s, s->p, "expected a string, found %s", text_here(s, b));
        return;
    }
    while (!s->failed && (text_peek(s, '"') || text_peek(s, '\''))) {
        const char *start = s->p;
        char quote = *s->p++;
        while (s->p < s->end && *s->p != quote && *s->p != '\n' && !s->failed) {
            if (*s->p == '\\') {
                s->p++;
                put_escape(s, w);
            } else {
                pb_put_raw(w, s->p++, 1);
            }
        }
        if (s->p == s->end || *s->p != quote)
            text_fail(s, start, "unterminated string");
        else
            s->p++;
    }
}

static bool parse_u64(struct slice t, uint64_t *v)
{
    char buf[32];
    char *end;
    if (!t.len || t.len >= sizeof buf || !isdigit(t.p[0]))
        return false;
    memcpy(buf, t.p, t.len);
    buf[t.len] = 0;
    errno = 0;
    *v = strtoull(buf, &end, 0);
    return *end == 0 && errno == 0;
}

/* An integer in [min, max]; as two's complement. */
uint64_t text_int(struct text_lexer *s, int64_t min, uint64_t max)
{
    text_skip_space(s);
    const char *at = s->p;
    bool minus = text_accept(s, '-');
    text_skip_space(s);
    struct slice t = text_next_word(s);
    uint64_t v = 0;
    if (!parse_u64(t, &v)) {
        text_fail(s, at, "expected an integer, found \"%.*s\"", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
        return 0;
    }
    if (minus ? v > (uint64_t)0 - (uint64_t)min : v > max) {
        text_fail(s, at, "%s%.*s is out of range", minus ? "-" : "", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
        return 0;
    }
    return minus ? 0 - v : v;
}

double text_double(struct text_lexer *s)
{
    text_skip_space(s);
    const char *at = s->p;
    struct slice t = text_next_word(s);
    char buf[64], *end;
    if (!t.len || t.len >= sizeof buf) {
        text_fail(s, at, "expected a number");
        return 0;
    }
    memcpy(buf, t.p, t.len);
    if (buf[t.len - 1] == 'f' && t.len > 1 && (isdigit((unsigned char)buf[t.len - 2]) || buf[t.len - 2] == '.'))
        t.len--;
    buf[t.len] = 0;
    double v = strtod(buf, &end);
    if (*end)
        text_fail(s, at, "expected a number, found \"%s\"", buf);
    return v;
}

bool text_bool(struct text_lexer *s)
{
    text_skip_space(s);
    const char *at = s->p;
    struct slice t = text_next_word(s);
    if (slice_eq_str(t, "true") || slice_eq_str(t, "t") || slice_eq_str(t, "True") || slice_eq_str(t, "1"))
        return true;
    if (!slice_eq_str(t, "false") && !slice_eq_str(t, "f") && !slice_eq_str(t, "False") && !slice_eq_str(t, "0"))
        text_fail(s, at, "expected true or false, found \"%.*s\"", (int)(t.len < 40 ? t.len : 40), (const char *)t.p);
    return false;
}

uint64_t text_zigzag(uint64_t v)
{
    return v << 1 ^ (0 - (v >> 63));
}
