/* IPC frames: any bytes decode or are refused, and what was decoded stays inside them. */
#include "capture/ipc/frame.h"
#include "capture/service/packet_check.h"

#include "fuzz.h"

#include <stdlib.h>

static void touch(struct slice s)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum = (uint8_t)(sum + s.p[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ipc_frame f;
    if (ipc_frame_decode(slice_of(data, size), &f)) {
        touch(f.name);
        touch(f.name2);
        touch(f.payload);
        struct slice at = f.payload, name;
        uint32_t id;
        for (int i = 0; i < 100 && f.kind == IPC_BIND_REPLY && ipc_frame_next_method(&at, &id, &name); i++)
            touch(name);
    }
    /* a packet in one piece and in two must be judged alike */
    size_t cut = size ? data[0] % size : 0;
    struct slice whole = slice_of(data, size), parts[2] = {slice_of(data, cut), slice_of(data + cut, size - cut)};
    if (packet_check(&whole, 1) != packet_check(parts, 2))
        abort();
    return 0;
}
