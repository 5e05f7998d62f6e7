/* Tells UTF-8 from other bytes. */
#include "base/utf8.h"

size_t utf8_sequence(const char *s, size_t len)
{
    const unsigned char *u = (const unsigned char *)s;
    static const struct {
        unsigned char first, last, n, second_min, second_max;
    } rows[] = {
        {0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
        {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
        {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (u[0] < rows[r].first || u[0] > rows[r].last)
            continue;
        size_t n = rows[r].n;
        if (n > len || (n > 1 && (u[1] < rows[r].second_min || u[1] > rows[r].second_max)))
            return 0;
        for (size_t i = 2; i < n; i++)
            if ((u[i] & 0xc0) != 0x80)
                return 0;
        return n;
    }
    return 0;
}

size_t utf8_prefix(const char *s, size_t len)
{
    size_t at = 0, n = 1;
    while (at < len && n) {
        n = (unsigned char)s[at] < 0x80 ? 1 : utf8_sequence(s + at, len - at);
        at += n;
    }
    return at;
}

size_t utf8_put(char *out, uint32_t c)
{
    char *begin = out;
    if (c < 0x80) {
        *out++ = (char)c;
    } else if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
        *out++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *out++ = (char)(0xe0 | c >> 12);
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    } else {
        *out++ = (char)(0xf0 | c >> 18);
        *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
        *out++ = (char)(0x80 | (c & 0x3f));
    }
    return (size_t)(out - begin);
}
