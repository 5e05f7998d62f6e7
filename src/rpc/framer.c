/* The RPC stream's framing, read byte by byte only up to the length. */
#include "rpc/framer.h"

#include "base/alloc.h"
#include "rpc/wire.h"
#include "wire/pb_cursor.h"

enum { FIRST_ROOM = 64 << 10, TAG = STREAM_MSG << 3 | PB_BYTES };

/* More of tag and length: FRAMER_MESSAGE when they are whole. */
static enum framer_step take_head(struct framer *f, struct slice *in)
{
    while (in->len) {
        uint8_t byte = *in->p++;
        in->len--;
        if (f->head_len == 0 && byte != TAG)
            return FRAMER_BROKEN;
        f->head[f->head_len++] = byte;
        if (f->head_len > 1 && byte < 0x80) {
            const uint8_t *p = f->head + 1;
            uint64_t len;
            if (!pb_varint(&p, f->head + f->head_len, &len) || len > RPC_MAX_MESSAGE)
                return FRAMER_BROKEN;
            f->len = (size_t)len;
            return FRAMER_MESSAGE;
        }
        if (f->head_len == sizeof f->head)
            return FRAMER_BROKEN;
    }
    return FRAMER_MORE;
}

static bool head_whole(const struct framer *f)
{
    return f->head_len > 1 && f->head[f->head_len - 1] < 0x80;
}

/* Room for `need` bytes of a message: a length alone, without its bytes, costs little. */
static bool make_room(struct framer *f, size_t need)
{
    if (need <= f->cap)
        return true;
    size_t cap = f->cap ? f->cap : FIRST_ROOM;
    while (cap < need)
        cap *= 2;
    if (cap > f->len)
        cap = f->len;
    uint8_t *p = f->p ? mem_realloc(f->p, cap) : mem_alloc(cap);
    if (!p)
        return false;
    f->p = p;
    f->cap = cap;
    return true;
}

enum framer_step framer_next(struct framer *f, struct slice *in, struct rpc_message *message)
{
    if (!head_whole(f)) {
        enum framer_step step = take_head(f, in);
        if (step != FRAMER_MESSAGE)
            return step;
    }
    size_t take = f->len - f->n < in->len ? f->len - f->n : in->len;
    if (take) {
        if (!make_room(f, f->n + take))
            return FRAMER_NOMEM;
        memcpy(f->p + f->n, in->p, take);
        f->n += take;
        in->p += take;
        in->len -= take;
    }
    if (f->n < f->len)
        return FRAMER_MORE;
    *message = (struct rpc_message){f->p, f->n};
    *f = (struct framer){0};
    return FRAMER_MESSAGE;
}

void framer_free(struct framer *f)
{
    mem_free(f->p);
    *f = (struct framer){0};
}
