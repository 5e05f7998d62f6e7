/* Writes the trace of an application's SDK to a file: sdk_trace EVENTS FILE [SEQUENCES]. */
#include "bench/sdk_trace.h"

#include <stdio.h>
#include <stdlib.h>

struct out {
    FILE *f;
    bool failed;
};

static void put(void *ctx, struct slice packet, uint32_t sequence, unsigned flags, uint64_t ts)
{
    struct out *o = ctx;
    uint8_t head[11] = {0x0a};
    size_t n = 1 + pb_encode_varint(head + 1, packet.len);
    (void)sequence;
    (void)flags;
    (void)ts;
    o->failed |= fwrite(head, 1, n, o->f) != n || fwrite(packet.p, 1, packet.len, o->f) != packet.len;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: sdk_trace EVENTS FILE [SEQUENCES]\n");
        return 1;
    }
    struct sdk_trace_options o = {strtoull(argv[1], NULL, 10), argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 8,
                                  4096};
    struct out out = {fopen(argv[2], "wb"), false};
    if (!out.f || !o.sequences || !sdk_trace_write(&o, put, &out) || fclose(out.f) != 0 || out.failed) {
        fprintf(stderr, "sdk_trace: cannot write %s\n", argv[2]);
        return 1;
    }
    return 0;
}
