/* Arguments in an address or a body: "name=value&name=value", with %XX and '+' as in forms. */
#ifndef MERIDIAN_RPC_FORM_H
#define MERIDIAN_RPC_FORM_H

#include "base/slice.h"

/* Takes the next argument from the front of *rest: its name, and its value as it came (views). False when there is
 * none. One without '=' has an empty value. */
bool form_next(struct slice *rest, struct slice *name, struct slice *value);

/* Writes what an encoded text stands for into `to`, which has room for encoded.len + 1 bytes, and a NUL behind it. The
 * length; negative: a '%' without two digits, or a NUL in the text. */
int64_t form_decode(struct slice encoded, char *to);

#endif
