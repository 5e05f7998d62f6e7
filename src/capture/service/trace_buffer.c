/* The trace buffer: writing, overwriting, patching. Reading is in trace_buffer_read.c. */
#include "capture/service/trace_buffer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_RECORD 65520u /* the size of a record has 16 bits */

enum { DROP_AT_ONCE = TRACE_BUFFER_MAX_SEQUENCES / 64 };

const int64_t chunk_histogram_def[CHUNK_HISTOGRAM_BUCKETS - 1] = {8,    32,   128,  512,   1024,
                                                                  2048, 4096, 8192, 12288, 16384};

struct trace_buffer *trace_buffer_new(size_t size, enum trace_buffer_policy policy)
{
    struct trace_buffer *b = mem_zalloc(sizeof *b);
    if (!b)
        return NULL;
    b->size = size < 4096 ? 4096 : size & ~(size_t)15;
    if (b->size > UINT32_MAX - 15)
        b->size = UINT32_MAX - 15 - 4095;
    b->size &= ~(size_t)15;
    /* mapped, so that a buffer costs memory only as far as it fills */
    b->ring = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->ring == MAP_FAILED) {
        mem_free(b);
        return NULL;
    }
    b->policy = policy;
    b->stats.buffer_size = b->size;
    return b;
}

static void free_sequence(struct sequence *s)
{
    chunk_list_free(&s->chunks);
    mem_free(s);
}

void trace_buffer_free(struct trace_buffer *b)
{
    if (!b)
        return;
    munmap(b->ring, b->size);
    for (size_t i = 0; i < b->order.n; i++) {
        free_sequence(b->order.p[i]);
    }
    vec_free(&b->all);
    vec_free(&b->order);
    u64map_free(&b->by_key);
    mem_free(b);
}

/* ---- the index ---- */

static struct sequence *find_sequence(struct trace_buffer *b, uint16_t producer_id, uint16_t writer_id)
{
    uint64_t *i = u64map_get(&b->by_key, sequence_key(producer_id, writer_id));
    return i ? b->all.p[*i] : NULL;
}

static uint64_t key_of(const struct sequence *s)
{
    return sequence_key(s->stats.who.producer_id, s->stats.who.writer_id);
}

/* Is nothing of it in the buffer, and nothing to be told by its next packet? */
static bool may_make_room(const struct sequence *s)
{
    return !s->chunks.n && !(s->loss & ~(uint32_t)LOSS_PRESENT);
}

/* Writers come and go without end (a producer that reconnects has new ones). When there are too many, those of which
 * nothing is in the buffer make room: with them go their histograms, and the next chunk of one that lives begins its
 * sequence anew. False: too few are so, as each time all are looked at. */
static bool drop_empty_sequences(struct trace_buffer *b)
{
    size_t kept = 0;
    if (b->empty < DROP_AT_ONCE)
        return false;
    for (size_t i = 0; i < b->order.n; i++) {
        struct sequence *s = b->order.p[i];
        if (!may_make_room(s)) {
            b->order.p[kept++] = s;
            continue;
        }
        u64map_del(&b->by_key, key_of(s));
        b->all.p[s->index] = NULL;
        free_sequence(s);
    }
    b->order.n = kept;
    b->at_sequence = 0;
    b->empty = 0;
    return true;
}

/* A number in all[] that records may refer to: one that is free, else a new one. */
static bool take_index(struct trace_buffer *b, size_t *index)
{
    if (b->order.n == b->all.n) {
        *index = b->all.n;
        return vec_push(&b->all, NULL);
    }
    while (b->all.p[b->free_from % b->all.n])
        b->free_from++;
    *index = b->free_from % b->all.n;
    return true;
}

static struct sequence *add_sequence(struct trace_buffer *b, const struct trace_writer_identity *who, size_t index)
{
    uint64_t key = sequence_key(who->producer_id, who->writer_id);
    struct sequence *s = mem_zalloc(sizeof *s);
    if (!s || !vec_reserve(&b->order, b->order.n + 1) || !u64map_set(&b->by_key, key, index)) {
        mem_free(s);
        return NULL;
    }
    s->stats.who = *who;
    s->index = (uint32_t)index;
    s->loss = LOSS_PRESENT; /* set on the first packet of each sequence, too */
    b->all.p[index] = s;
    b->empty++;
    b->ordered = (b->ordered || !b->order.n) && (!b->order.n || key_of(*vec_last(&b->order)) < key);
    b->order.p[b->order.n++] = s;
    return s;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = key_of(*(struct sequence *const *)a), y = key_of(*(struct sequence *const *)b);
    return x < y ? -1 : x > y;
}

void trace_buffer_order(struct trace_buffer *b)
{
    if (!b->ordered && b->order.n)
        qsort(b->order.p, b->order.n, sizeof *b->order.p, by_key);
    b->ordered = true;
}

static struct sequence *get_sequence(struct trace_buffer *b, const struct trace_writer_identity *who)
{
    struct sequence *s = find_sequence(b, who->producer_id, who->writer_id);
    size_t index;
    if (s)
        return s;
    bool room = b->order.n < TRACE_BUFFER_MAX_SEQUENCES || drop_empty_sequences(b);
    return room && take_index(b, &index) ? add_sequence(b, who, index) : NULL;
}

/* The chunk at position `at` changed: if it was among those done with, only `skip` of them are left. */
static void forget_skip(struct sequence *s, uint32_t at, uint32_t skip)
{
    if (s->skip_start)
        s->skip = 0;
    else if (at < s->skip)
        s->skip = skip;
}

static struct chunk_meta *insert_chunk(struct trace_buffer *b, struct sequence *s, uint32_t chunk_id)
{
    uint32_t at;
    bool was_empty = may_make_room(s);
    struct chunk_meta *m = chunk_list_insert(&s->chunks, chunk_id, &at);
    if (!m)
        return NULL;
    b->empty -= was_empty;
    if (at + 1 < s->chunks.n)
        forget_skip(s, at, at);
    return m;
}

static void remove_chunk(struct trace_buffer *b, struct sequence *s, uint32_t chunk_id)
{
    uint32_t at = chunk_list_lower_bound(&s->chunks, chunk_id);
    chunk_list_remove(&s->chunks, at);
    forget_skip(s, at, s->skip ? s->skip - 1 : 0);
    b->empty += may_make_room(s);
}

/* ---- the ring ---- */

static bool is_unread(const struct chunk_meta *m)
{
    return m->num_read < m->num_fragments;
}

/* Looks at the records that [wptr, wptr + size) covers. With `erase` they leave the index. False: DISCARD forbids it.
 * *end is where the last record covered ends. */
static bool clear_way(struct trace_buffer *b, size_t size, bool erase, size_t *end)
{
    size_t at = b->wptr, until = b->wptr + size;
    while (at < until && at < b->high) {
        struct record *r = record_at(b, at);
        if (r->sequence == PADDING) {
            if (erase)
                b->stats.padding_bytes_cleared += r->size;
        } else {
            struct sequence *s = b->all.p[r->sequence];
            struct chunk_meta *m = s ? chunk_list_find(&s->chunks, r->chunk_id) : NULL;
            bool unread = m && is_unread(m);
            if (unread && b->policy == TRACE_BUFFER_DISCARD)
                return false;
            if (erase && unread) {
                b->stats.chunks_overwritten++;
                b->stats.bytes_overwritten += r->size;
                s->loss |= LOSS_PRESENT | LOSS_OVERWRITE;
            }
            if (erase && m) {
                if (m->complete) /* else the whole of it is still to come */
                    sequence_passed(s, m->chunk_id);
                remove_chunk(b, s, r->chunk_id);
            }
        }
        at += r->size;
    }
    *end = at > until ? at : until;
    return true;
}

static void put_padding(struct trace_buffer *b, size_t offset, size_t size)
{
    if (!size)
        return;
    *record_at(b, offset) = (struct record){.size = (uint32_t)size, .sequence = PADDING};
    b->stats.padding_bytes_written += size;
    if (offset + size > b->high)
        b->high = offset + size;
}

/* Makes room for a record of `size` bytes at wptr, wrapping first if it must. False: DISCARD forbids it. */
static bool make_room(struct trace_buffer *b, size_t size)
{
    size_t left = b->size - b->wptr, end;
    if (left < size) {
        if (!clear_way(b, left, false, &end))
            return false;
        clear_way(b, left, true, &end);
        put_padding(b, b->wptr, left);
        b->wptr = 0;
        b->stats.write_wrap_count++;
    }
    if (b->policy == TRACE_BUFFER_DISCARD && !clear_way(b, size, false, &end))
        return false;
    clear_way(b, size, true, &end);
    put_padding(b, b->wptr + size, end - b->wptr - size); /* what is left of the last record covered */
    return true;
}

/* A scraped chunk comes again with more in it, or whole, and then without the room that it left. */
static void rewrite(struct trace_buffer *b, struct sequence *s, struct chunk_meta *m, const struct trace_chunk *c)
{
    struct record *r = record_at(b, m->offset);
    const struct chunk_meta *next = chunk_list_find(&s->chunks, c->chunk_id + 1);
    if (c->payload.len > r->payload || c->num_fragments < m->num_fragments || (c->flags & m->flags) != m->flags) {
        b->stats.abi_violations++;
        return;
    }
    if (c->num_fragments == m->num_fragments && m->complete)
        return;
    if (c->num_fragments == m->num_fragments && !c->complete)
        return;
    if (next && next->num_read > 0) {
        b->stats.abi_violations++;
        return;
    }
    memcpy((uint8_t *)r + RECORD_HEADER, c->payload.p, c->payload.len);
    m->num_fragments = c->num_fragments;
    m->flags = c->flags;
    m->complete = c->complete;
    b->stats.chunks_rewritten++;
    uint32_t at = chunk_list_lower_bound(&s->chunks, c->chunk_id);
    forget_skip(s, at, at);
}

/* Long: what a chunk may be, in the order in which it has to be asked. */
void trace_buffer_write(struct trace_buffer *b, const struct trace_chunk *chunk)
{
    struct trace_chunk c = *chunk;
    size_t size = (c.payload.len + RECORD_HEADER + 15) & ~(size_t)15;
    if (size > MAX_RECORD || size > b->size || (!c.complete && c.num_fragments == 0)) {
        b->stats.abi_violations++;
        return;
    }
    if (!c.complete) { /* the last fragment is still being written */
        c.num_fragments--;
        c.flags &= (uint8_t) ~(SHM_LAST_CONTINUES | SHM_NEEDS_PATCHING);
    }
    if (b->full) {
        b->stats.chunks_discarded++;
        return;
    }
    struct sequence *s = get_sequence(b, &c.who);
    if (!s) {
        b->stats.chunks_discarded++;
        return;
    }
    s->stats.before_last_at_ns = s->stats.last_at_ns;
    s->stats.last_at_ns = c.at_ns;
    struct chunk_meta *m = chunk_list_find(&s->chunks, c.chunk_id);
    if (m) {
        rewrite(b, s, m, &c);
        return;
    }
    if (!make_room(b, size)) {
        b->full = true;
        b->stats.chunks_discarded++;
        return;
    }
    m = insert_chunk(b, s, c.chunk_id);
    if (!m) { /* out of memory: the room stays, as padding */
        put_padding(b, b->wptr, size);
        b->stats.chunks_discarded++;
    } else {
        if (s->any_written && c.chunk_id - s->last_written >= 1u << 31)
            b->stats.chunks_committed_out_of_order++;
        else
            s->last_written = c.chunk_id;
        s->any_written = true;
        m->offset = (uint32_t)b->wptr;
        m->num_fragments = c.num_fragments;
        m->flags = c.flags;
        m->complete = c.complete;
        struct record *r = record_at(b, b->wptr);
        *r = (struct record){(uint32_t)size, s->index, c.chunk_id, (uint32_t)c.payload.len};
        if (c.payload.len)
            memcpy((uint8_t *)r + RECORD_HEADER, c.payload.p, c.payload.len);
        b->stats.chunks_written++;
        b->stats.bytes_written += size;
    }
    b->wptr += size;
    if (b->wptr > b->high)
        b->high = b->wptr;
    if (b->wptr == b->size) {
        b->wptr = 0;
        b->stats.write_wrap_count++;
    }
}

bool trace_buffer_patch(struct trace_buffer *b, uint16_t producer_id, uint16_t writer_id, uint32_t chunk_id,
                        const struct trace_patch *patches, size_t n, bool has_more)
{
    struct sequence *s = find_sequence(b, producer_id, writer_id);
    struct chunk_meta *m = s ? chunk_list_find(&s->chunks, chunk_id) : NULL;
    if (!m) {
        b->stats.patches_failed++;
        return false;
    }
    struct record *r = record_at(b, m->offset);
    for (size_t i = 0; i < n; i++) {
        if (patches[i].offset > r->payload || r->payload - patches[i].offset < 4) {
            b->stats.patches_failed++;
            return false;
        }
    }
    for (size_t i = 0; i < n; i++)
        memcpy((uint8_t *)r + RECORD_HEADER + patches[i].offset, patches[i].bytes, 4);
    b->stats.patches_succeeded += n;
    if (!has_more)
        m->flags &= (uint8_t)~SHM_NEEDS_PATCHING;
    return true;
}

bool trace_buffer_lacks_patches(struct trace_buffer *b, uint16_t producer_id, uint16_t writer_id, uint32_t chunk_id)
{
    struct sequence *s = find_sequence(b, producer_id, writer_id);
    struct chunk_meta *m = s ? chunk_list_find(&s->chunks, chunk_id) : NULL;
    return m && m->flags & SHM_NEEDS_PATCHING;
}

/* ---- copies and statistics ---- */

struct trace_buffer *trace_buffer_clone(const struct trace_buffer *b)
{
    struct trace_buffer *c = trace_buffer_new(b->size, b->policy);
    if (!c)
        return NULL;
    memcpy(c->ring, b->ring, b->high);
    c->wptr = b->wptr;
    c->high = b->high;
    c->full = b->full;
    c->stats = b->stats;
    c->stats.bytes_read = c->stats.chunks_read = 0;
    c->stats.readaheads_succeeded = c->stats.readaheads_failed = 0;
    for (size_t i = 0; i < b->all.n; i++) { /* records refer to these numbers */
        const struct sequence *from = b->all.p[i];
        bool room = vec_push(&c->all, NULL);
        if (room && !from)
            continue;
        struct sequence *to = room ? add_sequence(c, &from->stats.who, i) : NULL;
        bool copied = false;
        if (to) {
            *to = *from;
            to->chunks = (struct chunk_list){0};
            copied = chunk_list_copy(&to->chunks, &from->chunks);
        }
        if (!copied) {
            trace_buffer_free(c);
            return NULL;
        }
    }
    c->empty = b->empty;
    return c;
}

const struct trace_buffer_stats *trace_buffer_get_stats(const struct trace_buffer *b)
{
    return &b->stats;
}
enum trace_buffer_policy trace_buffer_get_policy(const struct trace_buffer *b)
{
    return b->policy;
}
size_t trace_buffer_sequence_count(const struct trace_buffer *b)
{
    return b->order.n;
}
const struct trace_sequence_stats *trace_buffer_sequence(struct trace_buffer *b, size_t i)
{
    trace_buffer_order(b);
    return &b->order.p[i]->stats;
}
