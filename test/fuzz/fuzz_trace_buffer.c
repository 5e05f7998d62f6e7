/* The trace buffer: any chunks, patches and reads, in any order. The input is a program of operations. */
#include "capture/service/trace_buffer.h"

#include "fuzz.h"

#include <stdlib.h>

struct input {
    const uint8_t *p, *end;
};

static unsigned take(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

static void read_some(struct trace_buffer *b, struct trace_packet *p, unsigned limit, bool final)
{
    volatile uint8_t sum = 0;
    trace_buffer_begin_read(b, final);
    while (limit-- && trace_buffer_read(b, p))
        for (size_t i = 0; i < p->slices.n; i++)
            for (size_t k = 0; k < p->slices.p[i].len; k++)
                sum = (uint8_t)(sum + p->slices.p[i].p[k]);
}

static void write_chunk(struct trace_buffer *b, struct input *in)
{
    unsigned writer = take(in) % 4, flags = take(in);
    struct trace_chunk c = {.who = {.producer_id = (uint16_t)(1 + writer / 2), .writer_id = (uint16_t)(1 + writer)},
                            .chunk_id = take(in) % 16 + (flags & 0x40 ? UINT32_MAX - 8 : 0),
                            .num_fragments = (uint16_t)take(in),
                            .flags = flags & 7,
                            .complete = !(flags & 0x80)};
    size_t len = take(in) * 4u, left = (size_t)(in->end - in->p);
    c.payload = slice_of(in->p, len < left ? len : left);
    trace_buffer_write(b, &c);
    if (flags & 0x20)
        in->p += c.payload.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    struct trace_packet p = {0};
    struct trace_buffer *b = trace_buffer_new(4096, take(&in) & 1 ? TRACE_BUFFER_DISCARD : TRACE_BUFFER_RING);
    while (in.p < in.end) {
        unsigned op = take(&in);
        if (op < 160) {
            write_chunk(b, &in);
        } else if (op < 190) {
            struct trace_patch patch = {.offset = take(&in) * (op & 1 ? 1u : 0x1000000u),
                                        .bytes = {(uint8_t)op, 0x80, 1}};
            trace_buffer_patch(b, (uint16_t)(1 + op % 2), (uint16_t)(1 + take(&in) % 4), take(&in) % 16, &patch, 1,
                               op & 2);
        } else if (op < 250) {
            read_some(b, &p, op & 1 ? UINT32_MAX : 2, op & 2);
        } else {
            struct trace_buffer *copy = trace_buffer_clone(b);
            trace_buffer_free(b);
            b = copy;
        }
    }
    read_some(b, &p, UINT32_MAX, true);
    const struct trace_buffer_stats *s = trace_buffer_get_stats(b);
    if (s->bytes_written + s->padding_bytes_written < s->bytes_overwritten + s->padding_bytes_cleared)
        abort();
    vec_free(&p.slices);
    trace_buffer_free(b);
    return 0;
}
