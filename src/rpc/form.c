/* Reads the arguments of an address or a form. */
#include "rpc/form.h"

#include "base/hex.h"

bool form_next(struct slice *rest, struct slice *name, struct slice *value)
{
    if (rest->len == 0)
        return false;
    const uint8_t *end = memchr(rest->p, '&', rest->len);
    const size_t n = end ? (size_t)(end - rest->p) : rest->len;
    const uint8_t *equals = n ? memchr(rest->p, '=', n) : NULL;
    const size_t name_len = equals ? (size_t)(equals - rest->p) : n;
    *name = slice_of(rest->p, name_len);
    *value = equals ? slice_of(equals + 1, n - name_len - 1) : slice_of(rest->p + n, 0);
    rest->p += n + (end != NULL);
    rest->len -= n + (end != NULL);
    return true;
}

int64_t form_decode(struct slice encoded, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < encoded.len; i++) {
        int c = encoded.p[i] == '+' ? ' ' : encoded.p[i];
        if (c == '%') {
            int high = i + 2 < encoded.len ? hex_digit(encoded.p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(encoded.p[i + 2]) : -1;
            if (low < 0)
                return -1;
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0)
            return -1;
        to[n++] = (char)c;
    }
    to[n] = '\0';
    return (int64_t)n;
}
