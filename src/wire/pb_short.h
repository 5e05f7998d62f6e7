/* Fields as messages of small numbers have them: a tag of one byte; a number or length of one byte, two, or four, in
 * which recorders write lengths before they know them. */
#ifndef MERIDIAN_WIRE_PB_SHORT_H
#define MERIDIAN_WIRE_PB_SHORT_H

#include "wire/pb_cursor.h"

/* A tag of one byte. Those of fields from 16 on are longer: for them this does not compile. */
#define PB_SHORT_TAG(field, wire) (((field) << 3 | (wire)) / ((field) < 16))

/* The number or length of the field at c->p, when it is such a one: the bytes of tag and number, else 0. The caller
 * compares *c->p with the tags that it looks for, and leaves other fields to pb_next(). */
static inline unsigned pb_short_field(const struct pb_cursor *c, uint32_t *value)
{
    const uint8_t *p = c->p;
    size_t left = (size_t)(c->end - p);
    if (left < 2)
        return 0;
    *value = p[1];
    if (__builtin_expect(*value < 0x80, 1))
        return 2;
    if (left >= 3 && p[2] < 0x80) {
        *value = (*value & 0x7f) | (uint32_t)p[2] << 7;
        return 3;
    }
    if (left < 5)
        return 0;
    uint32_t v;
    memcpy(&v, p + 1, sizeof v);
    if ((v & 0x80808080) != 0x00808080)
        return 0;
    *value = (v & 0x7f) | (v >> 1 & 0x3f80) | (v >> 2 & 0x1fc000) | (v >> 3 & 0xfe00000);
    return 5;
}

#endif
