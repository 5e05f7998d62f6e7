/* Messages written down by field number, for tests that need many small ones:
 *
 *     put(&w, "10:1 8:%d 12{5{1:1 2'main'}}", ts)
 *
 * A field is a number and its value: `:` a varint (a minus sign is allowed), `'…'` bytes, `{…}` a message. */
#ifndef MERIDIAN_TEST_PB_TEXT_H
#define MERIDIAN_TEST_PB_TEXT_H

#include "wire/pb_writer.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static inline const char *put_fields(struct pb_writer *w, const char *s)
{
    for (;;) {
        s += strspn(s, " \n");
        if (!*s || *s == '}')
            return s;
        char *end;
        uint32_t field = (uint32_t)strtoul(s, &end, 10);
        ck_assert_msg(end != s && field, "a field number is missing at: %s", s);
        if (*end == ':') {
            const char *digits = end + 1;
            pb_put_varint(w, field, *digits == '-' ? (uint64_t)strtoll(digits, &end, 10) : strtoull(digits, &end, 10));
            s = end;
        } else if (*end == '\'') {
            const char *close = strchr(end + 1, '\'');
            ck_assert_msg(close, "no end of text at: %s", s);
            pb_put_bytes(w, field, end + 1, (size_t)(close - end) - 1);
            s = close + 1;
        } else {
            ck_assert_msg(*end == '{', "no value at: %s", s);
            size_t message = pb_begin(w, field);
            s = put_fields(w, end + 1);
            ck_assert_msg(*s == '}', "a message has no end");
            pb_end(w, message);
            s++;
        }
    }
}

__attribute__((format(printf, 2, 3))) static inline void put(struct pb_writer *w, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ck_assert_int_lt(n, (int)sizeof text);
    const char *end = put_fields(w, text);
    ck_assert_msg(!*end, "more than the message at: %s", end);
}

#endif
