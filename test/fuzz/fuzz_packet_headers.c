/* Fuzzes the reading of packet headers out of ftrace bundles: the input is a trace. */
#include "importer/ftrace/packet_headers.h"
#include "wire/pb_cursor.h"

#include "fuzz.h"

static int found(void *ctx, enum packet_direction direction, int64_t boot_ns, struct packet_key key)
{
    (void)direction, (void)boot_ns;
    if (!key.flow || key.family != PACKET_TCP)
        __builtin_trap();
    return ++*(int *)ctx > 100000; /* may stop whenever it likes */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct packet_headers h = {0};
    struct pb_cursor c = pb_cursor(slice_of(data, size));
    struct pb_field f, g;
    int n = 0;
    while (pb_next(&c, &f))
        if (f.id == 1 && pb_find(pb_bytes(&f), 1, &g) && packet_headers_bundle(&h, pb_bytes(&g), found, &n))
            break;
    return 0;
}
