/* Packets into chunks. */
#include "capture/shm/trace_writer.h"

#include "base/alloc.h"

#include <string.h>

/* A packet is not begun with fewer bytes left: four for its length, eight for something useful. */
#define MIN_TO_BEGIN 12
/* Kept free at the end of a chunk, for the mark "a packet was dropped here". */
#define TAIL 4
/* Lengths up to this are rewritten as one byte when the message ends in the chunk it began in. */
#define SHORT_LENGTH 126

/* The first byte of a fragment's length is 0 until the fragment is whole: when this process is killed, the service
 * knows which packets it can take. So that byte comes last, behind the rest and the flags. */
static void set_first_byte(uint8_t *p, uint8_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static void put_length(uint8_t *p, uint32_t v) /* a varint of always four bytes */
{
    p[1] = (uint8_t)(v >> 7 | 0x80);
    p[2] = (uint8_t)(v >> 14 | 0x80);
    p[3] = (uint8_t)(v >> 21 & 0x7f);
    set_first_byte(p, (uint8_t)(v | 0x80));
}

static struct shm_chunk_header *header_of(const struct shm_chunk *c)
{
    return (struct shm_chunk_header *)(void *)c->p;
}

static void add_flags(const struct shm_chunk *c, unsigned flags)
{
    atomic_fetch_or_explicit(&header_of(c)->packets, (uint16_t)(flags << SHM_FLAGS_SHIFT), memory_order_release);
}

static unsigned packet_count(struct trace_writer *w)
{
    return atomic_load_explicit(&header_of(&w->chunk)->packets, memory_order_relaxed) & SHM_COUNT_MASK;
}

/* From now on everything goes to the garbage area, round and round. */
static void use_garbage(struct trace_writer *w)
{
    w->cur = w->frag = w->garbage;
    w->end = w->garbage + sizeof w->garbage;
    w->frag_size = NULL;
}

struct trace_writer *trace_writer_new(struct shm_arbiter *a, uint16_t target_buffer, enum shm_policy policy)
{
    struct trace_writer *w = mem_zalloc(sizeof *w);
    uint16_t id = w ? shm_arbiter_new_writer_id(a, target_buffer) : 0;
    if (!id) {
        mem_free(w);
        return NULL;
    }
    w->arbiter = shm_arbiter_ref(a);
    w->writer_id = id;
    w->target_buffer = target_buffer;
    w->policy = policy;
    w->first_packet = true;
    use_garbage(w);
    return w;
}

void trace_writer_free(struct trace_writer *w)
{
    if (!w)
        return;
    trace_writer_end_packet(w);
    trace_writer_flush(w);
    shm_arbiter_free_writer_id(w->arbiter, w->writer_id);
    shm_arbiter_unref(w->arbiter);
    mem_free(w->patches);
    mem_free(w);
}

static void return_chunk(struct trace_writer *w)
{
    if (!w->chunk.p)
        return;
    w->stats.chunks++;
    shm_arbiter_return_chunk(w->arbiter, &w->chunk, (uint32_t)(w->cur - w->chunk.p), w->target_buffer);
}

static bool get_chunk(struct trace_writer *w, struct shm_chunk *c, uint16_t packets, enum shm_policy policy)
{
    if (!shm_arbiter_get_chunk(w->arbiter, w->next_chunk_id, w->writer_id, packets, policy, c))
        return false;
    w->next_chunk_id++;
    return true;
}

static void use_chunk(struct trace_writer *w, const struct shm_chunk *c)
{
    w->chunk = *c;
    w->cur = c->p + SHM_CHUNK_HEADER;
    w->end = c->p + c->size - TAIL;
}

/* Leaves the mark of a lost packet behind the whole packets of the current chunk, and hands the chunk over. The reader
 * passes over what is behind a mark. */
static void mark_loss(struct trace_writer *w)
{
    if (w->frag_size) { /* the packet has begun here: its fragment becomes the mark */
        put_length(w->frag_size, SHM_DROP_PACKET_SIZE);
        w->cur = w->frag_size;
    } else {
        put_length(w->cur, SHM_DROP_PACKET_SIZE);
        atomic_fetch_add_explicit(&header_of(&w->chunk)->packets, 1, memory_order_release);
    }
    w->cur += 4;
    w->stats.loss_marks++;
    w->owes_mark = false;
    return_chunk(w);
}

/* The mark of a loss that began when there was no chunk to leave it in gets a chunk of its own; false: still none. */
static bool pay_mark(struct trace_writer *w)
{
    struct shm_chunk c = {0};
    if (!get_chunk(w, &c, 0, w->policy))
        return false;
    use_chunk(w, &c);
    w->frag_size = NULL;
    mark_loss(w);
    return true;
}

/* The next chunk to begin packets in, behind the mark of what was lost before; false when there is none. */
static bool fresh_chunk(struct trace_writer *w)
{
    struct shm_chunk c = {0};
    if ((w->owes_mark && !pay_mark(w)) || !get_chunk(w, &c, 0, w->policy))
        return false;
    return_chunk(w);
    use_chunk(w, &c);
    return true;
}

static void send_patches(struct trace_writer *w)
{
    for (size_t i = 0; i < w->n_patches; i++)
        w->patches[i].last_of_chunk = i + 1 == w->n_patches || w->patches[i + 1].chunk_id != w->patches[i].chunk_id;
    shm_arbiter_add_patches(w->arbiter, w->target_buffer, w->writer_id, w->patches, w->n_patches);
    w->n_patches = 0;
}

/* Lengths that are open in a chunk about to be handed over become patches. */
static bool open_lengths_to_patches(struct trace_writer *w, const struct shm_chunk *c)
{
    bool any = false;
    for (unsigned i = 0; i < w->depth; i++) {
        struct trace_writer_nest *n = &w->nest[i];
        if (n->size_field < c->p || n->size_field >= c->p + c->size)
            continue;
        if (w->n_patches == w->cap_patches) {
            size_t cap = w->cap_patches ? w->cap_patches * 2 : 16;
            struct shm_patch *p = mem_realloc(w->patches, cap * sizeof *p);
            if (!p)
                return false;
            w->patches = p;
            w->cap_patches = cap;
        }
        n->patch = w->n_patches++;
        w->patches[n->patch] =
            (struct shm_patch){.chunk_id = c->id, .offset = (uint16_t)(n->size_field - c->p - SHM_CHUNK_HEADER)};
        n->size_field = NULL;
        any = true;
    }
    if (any)
        add_flags(c, SHM_NEEDS_PATCHING);
    return true;
}

/* Hands over the full chunks of this packet; false: memory is out, and what follows cannot be patched. */
static bool hand_over_kept(struct trace_writer *w)
{
    bool ok = true;
    for (unsigned i = 0; i < w->n_kept; i++) {
        struct trace_writer_kept *k = &w->kept[i];
        ok = open_lengths_to_patches(w, &k->chunk) && ok;
        shm_arbiter_return_chunk(w->arbiter, &k->chunk, k->filled, w->target_buffer);
    }
    w->n_kept = 0;
    return ok;
}

/* The packet being written is lost. Messages still open have nowhere to put their length. */
static void drop_packet(struct trace_writer *w)
{
    for (unsigned i = 0; i < w->depth; i++)
        w->nest[i] = (struct trace_writer_nest){.patch = SIZE_MAX};
    hand_over_kept(w);
    if (w->chunk.p)
        mark_loss(w);
    else if (!w->need_loss_flag)
        w->owes_mark = true; /* the first packet of a row of losses */
    w->dropping = true;
    w->stats.dropped++;
    w->need_loss_flag = true;
    /* chunks of this packet that are out wait for patches: without any their whole sequence would stand still */
    if (w->n_patches)
        send_patches(w);
    use_garbage(w);
}

/* The chunk in which the packet goes on; false: none. A writer that waits for one keeps none that is full: they may be
 * what it waits for. */
static bool get_continuation(struct trace_writer *w, struct shm_chunk *c)
{
    const uint16_t packets = 1 | SHM_FIRST_CONTINUES << SHM_FLAGS_SHIFT;
    return (w->n_kept && get_chunk(w, c, packets, SHM_DROP)) ||
           (hand_over_kept(w) && get_chunk(w, c, packets, w->policy));
}

/* The packet goes on in `c`; false: memory is out, and its lengths cannot be sent. */
static bool continue_in(struct trace_writer *w, const struct shm_chunk *c)
{
    add_flags(&w->chunk, SHM_LAST_CONTINUES);
    put_length(w->frag_size, (uint32_t)(w->cur - w->frag));
    w->bytes_before += (uint64_t)(w->cur - w->frag);
    w->kept[w->n_kept++] = (struct trace_writer_kept){w->chunk, (uint32_t)(w->cur - w->chunk.p)};
    w->stats.chunks++;
    bool ok = (!c->scarce && w->n_kept < TRACE_WRITER_MAX_KEPT) || hand_over_kept(w);
    use_chunk(w, c); /* its first length is 0, see shm_arbiter_get_chunk() */
    w->frag_size = w->cur;
    w->cur += 4;
    w->frag = w->cur;
    w->fragmented = true;
    return ok;
}

/* The chunk is full in the middle of a packet: continue it in the next one. */
static void next_chunk(struct trace_writer *w)
{
    if (w->dropping) { /* round the garbage area; open messages have no length field here */
        w->bytes_before += (uint64_t)(w->cur - w->frag);
        w->cur = w->frag = w->garbage;
        return;
    }
    struct shm_chunk c = {0};
    /* first the new chunk, so that the old one can still tell of a loss */
    if (!get_continuation(w, &c)) {
        drop_packet(w);
        return;
    }
    if (!continue_in(w, &c))
        drop_packet(w);
}

/* Room for the lengths of a packet that ends here. Where there is little, its last byte goes into a chunk of its own,
 * if one is free. */
static bool room_for_late_lengths(struct trace_writer *w)
{
    size_t need = w->n_patches * sizeof(struct shm_late_length) + sizeof(struct shm_late_footer);
    struct shm_chunk c = {0};
    if ((size_t)(w->end - w->cur) >= need)
        return true;
    if (w->cur - w->frag < 2 || !get_chunk(w, &c, 1 | SHM_FIRST_CONTINUES << SHM_FLAGS_SHIFT, SHM_DROP))
        return false;
    uint8_t last = *--w->cur;
    continue_in(w, &c);
    *w->cur++ = last;
    return (size_t)(w->end - w->cur) >= need;
}

/* Leaves the lengths that are about to be sent at the end of the chunk, for when this process is killed before. */
static void keep_late_lengths(struct trace_writer *w)
{
    struct shm_late_footer *footer = shm_late_footer(w->chunk.p, w->chunk.size);
    uint8_t *at = (uint8_t *)footer - w->n_patches * sizeof(struct shm_late_length);
    w->end = at - TAIL;
    for (size_t i = 0; i < w->n_patches; i++, at += sizeof(struct shm_late_length)) {
        struct shm_late_length l = {w->patches[i].chunk_id, w->patches[i].offset, {0}};
        memcpy(l.bytes, w->patches[i].bytes, sizeof l.bytes);
        memcpy(at, &l, sizeof l);
    }
    footer->n = (uint32_t)w->n_patches;
    atomic_store_explicit(&footer->magic, SHM_LATE_MAGIC, memory_order_release);
}

void trace_writer_begin_packet(struct trace_writer *w)
{
    if (w->in_packet)
        trace_writer_end_packet(w);
    w->in_packet = true;
    w->fragmented = false;
    w->dropping = false;
    w->depth = w->too_deep = 0;
    w->bytes_before = 0;
    w->stats.packets++;
    bool room = w->chunk.p && w->end - w->cur >= MIN_TO_BEGIN && packet_count(w) < SHM_MAX_PACKETS;
    if (!room && !fresh_chunk(w)) {
        w->frag_size = NULL;
        drop_packet(w);
        return;
    }
    /* counted before it is written: a scraper knows that the last packet may not be whole */
    *w->cur = 0;
    atomic_fetch_add_explicit(&header_of(&w->chunk)->packets, 1, memory_order_release);
    w->frag_size = w->cur;
    w->cur += 4;
    w->frag = w->cur;
    if (w->first_packet)
        trace_writer_varint(w, 87, 1); /* first_packet_on_sequence */
    if (w->need_loss_flag) {
        w->need_loss_flag = false;           /* set again when this packet is dropped, too */
        trace_writer_varint(w, 42, 1 | 256); /* previous_packet_dropped: PRESENT | SMB_FULL */
    }
}

void trace_writer_end_packet(struct trace_writer *w)
{
    if (!w->in_packet)
        return;
    w->too_deep = 0;
    while (w->depth)
        trace_writer_end(w);
    w->in_packet = false;
    if (w->dropping) {
        use_garbage(w);
        return;
    }
    bool keeps = w->n_patches && room_for_late_lengths(w);
    size_t len = (size_t)(w->cur - w->frag);
    if (len <= SHORT_LENGTH && !w->fragmented) {
        memmove(w->frag_size + 1, w->frag, len);
        set_first_byte(w->frag_size, (uint8_t)len);
        w->cur -= 3;
    } else {
        put_length(w->frag_size, (uint32_t)len);
    }
    w->frag_size = NULL;
    w->first_packet = false;
    if (keeps)
        keep_late_lengths(w);
    hand_over_kept(w);
    if (w->n_patches)
        send_patches(w);
}

void trace_writer_flush(struct trace_writer *w)
{
    if (w->in_packet)
        return;
    return_chunk(w);
    if (w->owes_mark) /* perhaps no packet comes behind it */
        pay_mark(w);
    use_garbage(w);
}

/* Skips what is written inside messages nested too deep: the protobuf stays well-formed. */
static bool muted(const struct trace_writer *w)
{
    return w->too_deep > 0 || !w->in_packet;
}

void trace_writer_raw(struct trace_writer *w, const void *p, size_t len)
{
    const uint8_t *src = p;
    if (muted(w))
        return;
    while (len) {
        size_t room = (size_t)(w->end - w->cur);
        if (!room) {
            next_chunk(w);
            continue;
        }
        size_t n = len < room ? len : room;
        memcpy(w->cur, src, n);
        w->cur += n;
        src += n;
        len -= n;
    }
}

static void put_small(struct trace_writer *w, const uint8_t *p, size_t n)
{
    if ((size_t)(w->end - w->cur) >= n && !muted(w)) {
        memcpy(w->cur, p, n);
        w->cur += n;
    } else {
        trace_writer_raw(w, p, n);
    }
}

void trace_writer_varint(struct trace_writer *w, uint32_t id, uint64_t v)
{
    uint8_t b[16];
    size_t n = pb_encode_varint(b, (uint64_t)id << 3);
    n += pb_encode_varint(b + n, v);
    put_small(w, b, n);
}

void trace_writer_fixed64(struct trace_writer *w, uint32_t id, uint64_t v)
{
    uint8_t b[16];
    size_t n = pb_encode_varint(b, (uint64_t)id << 3 | 1);
    memcpy(b + n, &v, 8);
    put_small(w, b, n + 8);
}

void trace_writer_fixed32(struct trace_writer *w, uint32_t id, uint32_t v)
{
    uint8_t b[16];
    size_t n = pb_encode_varint(b, (uint64_t)id << 3 | 5);
    memcpy(b + n, &v, 4);
    put_small(w, b, n + 4);
}

void trace_writer_double(struct trace_writer *w, uint32_t id, double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    trace_writer_fixed64(w, id, u);
}

void trace_writer_bytes(struct trace_writer *w, uint32_t id, const void *p, size_t len)
{
    uint8_t b[16];
    size_t n = pb_encode_varint(b, (uint64_t)id << 3 | 2);
    n += pb_encode_varint(b + n, len);
    put_small(w, b, n);
    trace_writer_raw(w, p, len);
}

void trace_writer_begin(struct trace_writer *w, uint32_t id)
{
    if (w->depth == TRACE_WRITER_MAX_DEPTH || muted(w)) {
        w->too_deep++;
        return;
    }
    uint8_t b[8];
    put_small(w, b, pb_encode_varint(b, (uint64_t)id << 3 | 2));
    if (w->end - w->cur < 4) /* the length must not straddle chunks, or it could not be patched */
        next_chunk(w);
    struct trace_writer_nest *n = &w->nest[w->depth++];
    n->size_field = w->dropping ? NULL : w->cur;
    n->patch = SIZE_MAX;
    w->cur += 4;
    n->start_bytes = trace_writer_packet_bytes(w);
}

void trace_writer_end(struct trace_writer *w)
{
    if (w->too_deep) {
        w->too_deep--;
        return;
    }
    if (!w->depth)
        return;
    struct trace_writer_nest *n = &w->nest[--w->depth];
    uint64_t len = trace_writer_packet_bytes(w) - n->start_bytes;
    bool is_here = n->size_field >= w->frag && n->size_field < w->cur;
    if (is_here && len <= SHORT_LENGTH) {
        memmove(n->size_field + 1, n->size_field + 4, len);
        n->size_field[0] = (uint8_t)len;
        w->cur -= 3;
    } else if (n->size_field) {
        put_length(n->size_field, (uint32_t)len);
    } else if (n->patch != SIZE_MAX) {
        put_length(w->patches[n->patch].bytes, (uint32_t)len);
    }
}

uint8_t *trace_writer_reserve_slow(struct trace_writer *w, size_t n)
{
    w->reserved_to = w->scratch + n;
    return w->scratch;
}

void trace_writer_commit_slow(struct trace_writer *w, const uint8_t *to)
{
    w->reserved_to = NULL;
    trace_writer_raw(w, w->scratch, (size_t)(to - w->scratch));
}
