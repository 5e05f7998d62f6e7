/* What the strings and numbers of JSON mean. */
#include "base/json_reader.h"

#include "base/alloc.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <stdlib.h>

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const uint8_t *p, const uint8_t *end)
{
    int32_t v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* A \u escape whose digits are at p: the character, and where it ends. NULL when the digits are missing. */
static const uint8_t *unicode(const uint8_t *p, const uint8_t *end, uint32_t *c)
{
    int32_t high = hex4(p, end), low = -1;
    if (high < 0)
        return NULL;
    p += 4;
    *c = (uint32_t)high;
    if (high < 0xd800 || high > 0xdfff)
        return p;
    *c = 0xfffd;
    if (high < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u')
        low = hex4(p + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return p; /* alone: it stands for no character */
    *c = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return p + 6;
}

size_t json_unescape(struct json_text text, enum json_unescape_mode mode, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const uint8_t *p = text.raw.p, *end = p + text.raw.len;
    char *start = out;
    while (p < end) {
        if (*p != '\\') {
            if (mode == JSON_STRICT && *p < ' ')
                return SIZE_MAX;
            *out++ = (char)*p++;
            continue;
        }
        if (++p == end)
            break;
        const char *known = *p ? strchr(from, *p) : NULL;
        uint32_t c;
        const uint8_t *behind;
        if (known) {
            *out++ = to[known - from];
            p++;
        } else if (*p == 'u' && (behind = unicode(p + 1, end, &c))) {
            out += utf8_put(out, c);
            p = behind;
        } else if (mode != JSON_TOLERANT) {
            return SIZE_MAX;
        } else {
            p++;
        }
    }
    return (size_t)(out - start);
}

static bool with_sign(uint64_t v, bool negative, int64_t *out)
{
    if (v > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static bool times_ten(unsigned __int128 *v, int n)
{
    for (; n > 0 && *v; n--) {
        if (*v > (unsigned __int128)UINT64_MAX)
            return false;
        *v *= 10;
    }
    return true;
}

bool json_number_scaled(const struct json_number *n, int scale, int64_t *out)
{
    /* All digits as one integer, times 10^e. */
    enum { MOST_FRACTION = 18, MOST_SHIFT = 40 };
    unsigned __int128 v = n->whole;
    uint64_t fraction = n->fraction;
    uint32_t fraction_digits = n->fraction_digits;
    if (!n->whole_exact)
        return false;
    for (; fraction_digits > MOST_FRACTION || (fraction_digits && fraction % 10 == 0); fraction_digits--)
        fraction /= 10;
    for (uint32_t i = 0; i < fraction_digits; i++)
        v *= 10;
    v += fraction;
    int e = n->exponent + scale - (int)fraction_digits;
    if (e > 0 && !times_ten(&v, e < MOST_SHIFT ? e : MOST_SHIFT))
        return false;
    uint64_t cut = 0; /* the last digit that was cut decides */
    for (int i = 0; i > e && (v || cut); i--) {
        cut = (uint64_t)(v % 10);
        v /= 10;
    }
    v += cut >= 5;
    return v <= UINT64_MAX && with_sign((uint64_t)v, n->negative, out);
}

bool json_number_i64(const struct json_number *n, bool whole_reals, int64_t *out)
{
    if (n->integer)
        return n->whole_exact && with_sign(n->whole, n->negative, out);
    if (!whole_reals)
        return false;
    double d = json_number_f64(n);
    if (!(d >= -9.2e18 && d <= 9.2e18) || d != (double)(int64_t)d)
        return false;
    *out = (int64_t)d;
    return true;
}

double json_number_f64(const struct json_number *n)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { MOST_TENS = 22 };
    static const uint64_t whole_limit = (uint64_t)1 << 53;
    /* A mantissa and a power of ten that are both exact doubles: one operation rounds correctly. */
    uint64_t mantissa = n->whole;
    bool fits = n->exact && n->fraction_digits <= 16;
    for (uint32_t i = 0; fits && i < n->fraction_digits; i++)
        fits = !__builtin_mul_overflow(mantissa, 10u, &mantissa);
    fits = fits && !__builtin_add_overflow(mantissa, n->fraction, &mantissa);
    int e = n->exponent - (int)n->fraction_digits;
    double d;
    if (fits && mantissa <= whole_limit && e >= -MOST_TENS && e <= MOST_TENS) {
        d = e < 0 ? (double)mantissa / tens[-e] : (double)mantissa * tens[e];
        return n->negative ? -d : d;
    }
    enum { STACK = 128 };
    char buf[STACK];
    char *text = n->text.len < STACK ? buf : mem_alloc(n->text.len + 1);
    if (!text)
        return 0;
    memcpy(text, n->text.p, n->text.len);
    text[n->text.len] = 0;
    d = strtod(text, NULL);
    if (text != buf)
        mem_free(text);
    return d;
}
