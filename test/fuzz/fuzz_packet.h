/* What targets whose code writes packets demand of them. */
#ifndef MERIDIAN_TEST_FUZZ_PACKET_H
#define MERIDIAN_TEST_FUZZ_PACKET_H

#include "wire/pb_cursor.h"

/* For a packet_sink: every packet must be whole. */
static inline void fuzz_packet_is_whole(void *ctx, const struct slice *pieces, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        struct pb_cursor c = pb_cursor(pieces[i]);
        struct pb_field f;
        while (pb_next(&c, &f))
            continue;
        if (c.bad)
            __builtin_trap();
    }
}

#endif
