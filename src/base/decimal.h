/* Whole numbers as decimal digits. */
#ifndef MERIDIAN_BASE_DECIMAL_H
#define MERIDIAN_BASE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

enum { DECIMAL_SIZE = 20 }; /* room for any, with its sign */

/* Writes the digits, without a NUL behind them: their number. */
static inline size_t decimal_put_u64(uint64_t v, char *out)
{
    char digits[DECIMAL_SIZE];
    size_t n = 0, at = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        out[at++] = digits[--n];
    return at;
}

static inline size_t decimal_put_i64(int64_t v, char *out)
{
    if (v >= 0)
        return decimal_put_u64((uint64_t)v, out);
    out[0] = '-';
    return 1 + decimal_put_u64(-(uint64_t)v, out + 1);
}

#endif
