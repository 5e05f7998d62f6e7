/* Hexadecimal digits. */
#ifndef MERIDIAN_BASE_HEX_H
#define MERIDIAN_BASE_HEX_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* The value of a digit in either case; -1: it is none. */
static inline int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Reads two digits a byte, text.len / 2 bytes. False: the length is odd, or something else is between them. */
static inline bool hex_bytes(struct slice text, uint8_t *out)
{
    for (size_t i = 0; i < text.len / 2; i++) {
        int high = hex_digit(text.p[2 * i]), low = hex_digit(text.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return text.len % 2 == 0;
}

#endif
