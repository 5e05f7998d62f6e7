/* Columns of text, by the C library's table of characters. */
#include "shell/text_width.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* The width of the character at `s`, and its length; the text is valid UTF-8. */
static unsigned next_width(const char *s, size_t *len)
{
    static const unsigned char lengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    static const unsigned char masks[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned char first = (unsigned char)*s;
    unsigned n = lengths[first >> 4];
    unsigned long c = first & masks[n];
    for (unsigned i = 1; i < n && s[i]; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    *len = n;
    for (unsigned i = 1; i < n; i++)
        if (!s[i])
            *len = i;
    if (c < 0x300)
        return 1;
    int w = wcwidth((wchar_t)c);
    return w < 0 ? 1 : (unsigned)w;
}

/* The table of widths belongs to a locale; any of UTF-8 does. */
static locale_t utf8_locale(void)
{
    static locale_t utf8;
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    return utf8;
}

size_t text_fit(const char *s, unsigned columns, unsigned *width)
{
    locale_t utf8 = utf8_locale(), before = utf8 ? uselocale(utf8) : (locale_t)0;
    size_t n = 0, len;
    *width = 0;
    while (s[n]) {
        unsigned w = next_width(s + n, &len);
        if (*width + w > columns)
            break;
        *width += w;
        n += len;
    }
    if (utf8)
        uselocale(before);
    return n;
}

unsigned text_width(const char *s)
{
    unsigned width;
    text_fit(s, ~0u, &width);
    return width;
}

unsigned text_screen(int fd)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    if (!isatty(fd))
        return 0;
    long n = columns ? strtol(columns, NULL, 10) : 0;
    if (n > 0 && n < 100000)
        return (unsigned)n;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

bool text_colours(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}
