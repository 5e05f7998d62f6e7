/* Reads lines of ftrace's text. */
#include "importer/lines/systrace_line.h"

#include "importer/lines/line_reader.h"

#include <math.h>
#include <stdlib.h>

/* The kernel's common_flags (include/linux/trace_events.h). */
enum { FLAG_IRQS_OFF = 1, FLAG_NEED_RESCHED = 4, FLAG_HARDIRQ = 8, FLAG_SOFTIRQ = 16 };

struct scan {
    const uint8_t *p, *end;
};

static inline uint8_t peek(const struct scan *s)
{
    return s->p < s->end ? *s->p : 0;
}

static inline bool eat(struct scan *s, uint8_t c)
{
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static inline void skip_space(struct scan *s)
{
    while (s->p < s->end && is_space(*s->p))
        s->p++;
}

/* Digits, modulo 2^32; false when there are none. */
static inline bool digits(struct scan *s, uint32_t *value)
{
    const uint8_t *first = s->p;
    uint32_t v = 0;
    while (s->p < s->end && is_digit(*s->p))
        v = v * 10 + (uint32_t)(*s->p++ - '0');
    *value = v;
    return s->p > first;
}

static bool is_flag_letter(uint8_t c)
{
    return c == '.' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static bool is_flag_count(uint8_t c)
{
    return c == '.' || is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Whether the next n characters are flags: three letters and one or two depths. None are, too. */
static bool are_flags(const struct scan *s, size_t n)
{
    if ((size_t)(s->end - s->p) < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (i < 3 ? !is_flag_letter(s->p[i]) : !is_flag_count(s->p[i]))
            return false;
    return true;
}

static uint32_t flags_of(const uint8_t *p)
{
    uint8_t irq = p[2];
    return (p[0] == 'd' || p[0] == 'D' ? FLAG_IRQS_OFF : 0u) | (p[1] == 'N' || p[1] == 'n' ? FLAG_NEED_RESCHED : 0u) |
           (irq == 'h' || irq == 'H' || irq == 'Z' || irq == 'z' ? FLAG_HARDIRQ : 0u) |
           (irq == 's' || irq == 'H' ? FLAG_SOFTIRQ : 0u);
}

/* SECONDS.FRACTION as strtod reads it, times 1e9, cut. */
static bool read_time(struct scan *s, int64_t *ts)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const uint8_t *first = s->p;
    uint64_t v = 0;
    while (s->p < s->end && is_digit(*s->p))
        v = v * 10 + (uint64_t)(*s->p++ - '0');
    if (s->p == first || !eat(s, '.'))
        return false;
    const uint8_t *fraction = s->p;
    while (s->p < s->end && is_digit(*s->p))
        v = v * 10 + (uint64_t)(*s->p++ - '0');
    size_t places = (size_t)(s->p - fraction), all = (size_t)(s->p - first);
    if (!places)
        return false;
    double seconds;
    if (all <= 16 && v <= 1ull << 53) { /* both exact, so that one division rounds as strtod does */
        seconds = (double)v / powers[places];
    } else {
        char text[64];
        size_t n = all < sizeof text ? all : sizeof text - 1;
        memcpy(text, first, n);
        text[n] = 0;
        seconds = strtod(text, NULL);
        if (all > n && s->p - fraction < (int)(all - n))
            seconds = INFINITY;
    }
    double ns = seconds * 1e9;
    *ts = ns < 9223372036854775808.0 ? (int64_t)ns : INT64_MIN;
    return true;
}

/* EVENT: is as much without white space as ends with a colon. */
static bool read_event(struct scan *s, struct slice *event)
{
    const uint8_t *p = s->p, *colon = NULL;
    for (; p < s->end && !is_space(*p); p++)
        if (*p == ':' && p > s->p)
            colon = p;
    if (!colon)
        return false;
    *event = slice_of(s->p, (size_t)(colon - s->p));
    s->p = colon + 1;
    return true;
}

/* The column of flags, when there is one, and the time. A time that follows the flags at once has lost its first digit
 * to the second depth, as Perfetto reads it. */
static bool read_flags_and_time(struct scan *s, struct systrace_line *out)
{
    static const size_t lengths[] = {5, 4, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct scan after = *s;
        if (!are_flags(s, lengths[i]))
            continue;
        after.p += lengths[i];
        skip_space(&after);
        if (!read_time(&after, &out->ts) || !eat(&after, ':') || !is_space(peek(&after)))
            continue;
        out->flags = lengths[i] ? flags_of(s->p) : 0;
        *s = after;
        return true;
    }
    return false;
}

/* What follows the dash in front of the pid. */
static bool read_rest(struct scan s, struct systrace_line *out)
{
    uint32_t pid, tgid;
    if (!digits(&s, &pid) || s.p == s.end || !is_space(*s.p))
        return false;
    skip_space(&s);
    bool open = eat(&s, '(');
    if (open)
        skip_space(&s);
    out->has_tgid = digits(&s, &tgid);
    if (!out->has_tgid)
        while (eat(&s, '-'))
            ;
    eat(&s, ')');
    if (s.p < s.end && is_space(*s.p))
        s.p++;
    if (!eat(&s, '[') || !digits(&s, &out->cpu) || !eat(&s, ']'))
        return false;
    skip_space(&s);
    if (!read_flags_and_time(&s, out))
        return false;
    skip_space(&s);
    if (!read_event(&s, &out->event))
        return false;
    out->pid = (int32_t)pid;
    out->tgid = (int32_t)tgid;
    out->args = trim_space(slice_of(s.p, (size_t)(s.end - s.p)));
    return true;
}

bool systrace_line_parse(struct slice line, struct systrace_line *out)
{
    const uint8_t *end = line.p + line.len;
    for (const uint8_t *p = line.p; p < end; p++) {
        p = memchr(p, '-', (size_t)(end - p));
        if (!p)
            return false;
        if (p + 1 < end && is_digit(p[1]) && read_rest((struct scan){p + 1, end}, out)) {
            out->task = trim_space(slice_of(line.p, (size_t)(p - line.p)));
            return true;
        }
    }
    return false;
}
