/* Reads lines of strace. */
#include "importer/lines/strace_line.h"

#include "importer/lines/line_reader.h"

/* Digits behind the point are microseconds, however many they are. */
static bool read_time(struct slice s, int64_t *ts)
{
    const int64_t max_seconds = INT64_MAX / 1000000000;
    const uint8_t *point = s.len ? memchr(s.p, '.', s.len) : NULL;
    struct slice whole = slice_to(s, point ? (size_t)(point - s.p) : s.len);
    int64_t seconds, fraction = 0;
    if (!number_decimal(whole, &seconds) || seconds < 0 || seconds > max_seconds || whole.p[0] == '-')
        return false;
    if (point && (!number_decimal(slice_from(s, whole.len + 1), &fraction) || fraction < 0 || fraction > 999999))
        return false;
    if (__builtin_add_overflow(seconds * 1000000000, fraction * 1000, ts))
        return false;
    return true;
}

static const uint8_t *find(struct slice s, const char *text)
{
    return s.len ? memmem(s.p, s.len, text, strlen(text)) : NULL;
}

static struct slice between(const uint8_t *from, const uint8_t *to)
{
    return slice_of(from, (size_t)(to - from));
}

/* The first ')' that spaces and '=' follow; NULL when there is none. *ret is what stands behind. */
static const uint8_t *find_result(struct slice s, struct slice *ret)
{
    const uint8_t *end = s.p + s.len;
    for (const uint8_t *p = s.p; p < end && (p = memchr(p, ')', (size_t)(end - p))); p++) {
        const uint8_t *q = p + 1;
        while (q < end && *q == ' ')
            q++;
        if (q < end && *q == '=') {
            *ret = trim_blanks(between(q + 1, end));
            return p;
        }
    }
    return NULL;
}

static bool ends_unfinished(struct slice *s)
{
    static const char mark[] = "<unfinished ...>";
    struct slice t = trim_blanks(*s);
    size_t n = sizeof mark - 1;
    if (t.len < n || memcmp(t.p + t.len - n, mark, n) != 0)
        return false;
    t = trim_blanks(slice_to(t, t.len - n));
    while (t.len && (t.p[t.len - 1] == ',' || t.p[t.len - 1] == ' '))
        t.len--;
    *s = t;
    return true;
}

/* <... NAME resumed> REST) = RESULT */
static bool read_resumed(struct slice s, struct strace_line *out)
{
    static const char mark[] = " resumed>";
    const uint8_t *at = find(s, mark), *end = s.p + s.len, *close;
    if (!at || at < s.p + 5)
        return false;
    out->kind = STRACE_RESUMED;
    out->name = trim_blanks(between(s.p + 5, at));
    struct slice rest = between(at + sizeof mark - 1, end);
    if (ends_unfinished(&rest)) {
        out->kind = STRACE_RESUMED_UNFINISHED;
        out->args = trim_blanks(rest);
        return true;
    }
    if ((close = find_result(rest, &out->ret))) {
        out->args = trim_blanks(between(rest.p, close));
        return true;
    }
    const uint8_t *equals = find(rest, "=");
    if (!equals)
        return false;
    out->ret = trim_blanks(between(equals + 1, end));
    return true;
}

static bool read_call(struct slice s, struct strace_line *out)
{
    if (slice_starts(s, "<... "))
        return read_resumed(s, out);
    const uint8_t *open = find(s, "("), *close;
    if (!open)
        return false;
    out->name = trim_blanks(between(s.p, open));
    struct slice rest = between(open + 1, s.p + s.len);
    out->kind = STRACE_UNFINISHED;
    out->args = rest;
    if (ends_unfinished(&out->args)) {
        out->args = trim_blanks(out->args);
        return true;
    }
    out->kind = STRACE_COMPLETE;
    if (!(close = find_result(rest, &out->ret)))
        return false;
    out->args = trim_blanks(between(rest.p, close));
    return true;
}

enum strace_result strace_line_parse(struct slice line, struct strace_line *out)
{
    enum { MAX_PID_DIGITS = 9 };
    struct slice s = line, word = next_word(&s);
    *out = (struct strace_line){0};
    bool all_digits = word.len > 0;
    for (size_t i = 0; i < word.len; i++)
        all_digits &= is_digit(word.p[i]);
    if (all_digits && word.len <= MAX_PID_DIGITS) {
        out->has_pid = true;
        number_decimal(word, &out->pid);
        word = next_word(&s);
    }
    if (!read_time(word, &out->ts))
        return word.len && memchr(word.p, ':', word.len) ? STRACE_BAD_TIME : STRACE_BAD;
    return read_call(trim_blanks(s), out) ? STRACE_OK : STRACE_BAD;
}
