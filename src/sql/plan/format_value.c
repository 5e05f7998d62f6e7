/* Texts of one value: hex(), quote(), char(). */
#include "base/utf8.h"
#include "sql/plan/plan_private.h"

#include <string.h>

enum format_result format_hex(struct format_text *t, const struct strpool *strings, enum plan_type type, int64_t word,
                              struct slice unused)
{
    static const char digits[] = "0123456789ABCDEF";
    struct format_text number = {0};
    (void)unused;
    if (word == plan_null(type))
        return FORMAT_TEXT;
    bool ok = type == PLAN_TEXT || format_put(&number, strings, type, word);
    struct slice s = type == PLAN_TEXT ? strpool_view(strings, (strid)word) : slice_of(number.p, number.n);
    const uint8_t *from = s.p;
    char some[256];
    for (size_t at = 0, n = 0; ok && at < s.len; n = 0) {
        for (; at < s.len && n < sizeof some; at++) {
            some[n++] = digits[from[at] >> 4];
            some[n++] = digits[from[at] & 15];
        }
        ok = format_put_text(t, slice_of(some, n));
    }
    mem_free(number.p);
    return ok ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}

/* Of reals SQLite knows how many digits it takes. */
enum format_result format_sql_literal(struct format_text *t, const struct strpool *strings, enum plan_type type,
                                      int64_t word, struct slice unused)
{
    (void)unused;
    if (word == plan_null(type))
        return format_put_text(t, slice_of("NULL", 4)) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
    if (type == PLAN_REAL)
        return FORMAT_ASK;
    if (type != PLAN_TEXT)
        return format_put(t, strings, type, word) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
    struct slice s = strpool_view(strings, (strid)word);
    const char *at = (const char *)s.p, *end = at + s.len;
    if (s.len && memchr(at, 0, s.len))
        return FORMAT_ASK;
    bool ok = format_put_text(t, slice_of("'", 1));
    while (ok && at < end) {
        const char *quote = memchr(at, '\'', (size_t)(end - at)), *to = quote ? quote + 1 : end;
        ok = format_put_text(t, slice_of(at, (size_t)(to - at))) && (!quote || format_put_text(t, slice_of("'", 1)));
        at = to;
    }
    return ok && format_put_text(t, slice_of("'", 1)) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}

enum format_result format_char(struct format_text *t, const struct strpool *strings, enum plan_type type, int64_t word,
                               struct slice unused)
{
    enum { REPLACEMENT = 0xfffd, MOST = 0x10ffff };
    char out[4];
    (void)strings;
    (void)unused;
    if (type != PLAN_INT || word == COL_NULL || word == 0)
        return FORMAT_ASK;
    size_t n = utf8_put(out, word < 0 || word > MOST ? REPLACEMENT : (uint32_t)word);
    return format_put_text(t, slice_of(out, n)) ? FORMAT_TEXT : FORMAT_NO_MEMORY;
}
