/* The trace buffer: reading packets back, whole and in order. */
#include "capture/service/trace_buffer_internal.h"

#include "wire/pb_cursor.h"

/* The chunk at position `k` of the reading order. */
static struct chunk_meta *chunk_nth(struct sequence *s, uint32_t k)
{
    uint32_t i = s->skip_start + k;
    return chunk_list_at(&s->chunks, i < s->chunks.n ? i : i - s->chunks.n);
}

/* Chunk ids wrap: the oldest chunk is the first one behind the newest. */
static void find_start(struct sequence *s)
{
    uint32_t start = chunk_list_lower_bound(&s->chunks, s->last_written + 1);
    if (start == s->chunks.n || s->last_written == UINT32_MAX)
        start = 0;
    if (start != s->skip_start) {
        s->skip_start = start;
        s->skip = 0;
    }
}

/* Nothing more is to be read in this chunk. */
static void finish(struct trace_buffer *b, struct sequence *s, struct chunk_meta *m)
{
    if (m->consumed)
        return;
    m->consumed = true;
    const struct record *r = record_at(b, m->offset);
    b->stats.chunks_read++;
    b->stats.bytes_read += r->size;
    unsigned bucket = 0;
    while (bucket < CHUNK_HISTOGRAM_BUCKETS - 1 && m->read_offset > chunk_histogram_def[bucket])
        bucket++;
    s->stats.histogram_counts[bucket]++;
    s->stats.histogram_sums[bucket] += m->read_offset;
    if (!s->any_done || m->chunk_id - s->last_done < 1u << 31)
        s->last_done = m->chunk_id;
    s->any_done = true;
    sequence_passed(s, m->chunk_id);
    if (s->partial_id == m->chunk_id)
        s->partial_read = 0;
}

/* Takes the next fragment of a chunk. False: the chunk is broken from here on and now counts as read. */
static bool next_fragment(struct trace_buffer *b, struct sequence *s, struct chunk_meta *m, struct slice *out)
{
    const struct record *r = record_at(b, m->offset);
    const uint8_t *base = (const uint8_t *)r + RECORD_HEADER, *p = base + m->read_offset, *end = base + r->payload;
    uint64_t len = 0;
    if (!pb_varint(&p, end, &len) || (len != SHM_DROP_PACKET_SIZE && len > (uint64_t)(end - p))) {
        b->stats.abi_violations++;
        s->loss |= LOSS_PRESENT | LOSS_CORRUPTED;
        m->num_read = m->num_fragments;
        return false;
    }
    if (len == SHM_DROP_PACKET_SIZE) {
        b->stats.trace_writer_packet_loss++;
        s->loss |= LOSS_PRESENT | LOSS_WRITER_ABORT;
        m->num_read = m->num_fragments;
        m->read_offset = (uint32_t)(p - base);
        return false;
    }
    *out = slice_of(p, (size_t)len);
    m->read_offset = (uint32_t)(p + len - base);
    m->num_read++;
    if (!m->complete) {
        s->partial_id = m->chunk_id;
        s->partial_read = m->num_read;
    }
    return true;
}

/* Steps over a fragment that cannot be used. */
static void skip_fragment(struct trace_buffer *b, struct sequence *s, struct chunk_meta *m, uint32_t loss)
{
    struct slice unused;
    next_fragment(b, s, m, &unused);
    s->loss |= LOSS_PRESENT | loss;
}

enum ahead { AHEAD_OK, AHEAD_NOT_YET, AHEAD_BROKEN };

/* Is the rest of the packet that begins with the last fragment of chunk k there? *count: chunks it goes through. */
static enum ahead look_ahead(const struct trace_buffer *b, struct sequence *s, uint32_t k, uint32_t *count)
{
    for (uint32_t j = k + 1;; j++) {
        const struct chunk_meta *prev = chunk_nth(s, j - 1);
        if (j >= s->chunks.n)
            return AHEAD_NOT_YET;
        const struct chunk_meta *m = chunk_nth(s, j);
        /* what waits for a patch is in the last fragment: at the end the others are good */
        bool unpatched = m->flags & SHM_NEEDS_PATCHING && !(b->final && m->num_fragments > 1);
        if (m->chunk_id != prev->chunk_id + 1 || unpatched || (!m->complete && !m->num_fragments))
            return AHEAD_NOT_YET;
        if (!(m->flags & SHM_FIRST_CONTINUES) || !m->num_fragments || m->num_read)
            return AHEAD_BROKEN;
        if (m->num_fragments > 1 || !(m->flags & SHM_LAST_CONTINUES)) {
            *count = j - k + 1;
            return AHEAD_OK;
        }
    }
}

static bool add_slice(struct trace_packet *p, struct slice s)
{
    if (!s.len)
        return true;
    p->bytes += s.len;
    return vec_push(&p->slices, s);
}

/* Takes the fragments of a packet that goes through `count` chunks from k on. */
static bool gather(struct trace_buffer *b, struct sequence *s, uint32_t k, uint32_t count, struct trace_packet *p)
{
    bool ok = true;
    for (uint32_t j = 0; j < count; j++) {
        struct chunk_meta *m = chunk_nth(s, k + j);
        struct slice part;
        ok = ok && next_fragment(b, s, m, &part) && add_slice(p, part);
        if (!ok && m->num_read == 0)
            return false; /* the rest is an orphan, found on the way */
        if (m->num_read == m->num_fragments && m->complete)
            finish(b, s, m);
        if (!ok)
            return false;
    }
    return true;
}

static bool deliver(struct sequence *s, struct trace_packet *p)
{
    p->who = s->stats.who;
    p->loss = s->loss;
    s->loss = 0;
    return true;
}

/* What has been read of a chunk that was overwritten half-read, and came again. */
static void catch_up(struct trace_buffer *b, struct sequence *s, struct chunk_meta *m, bool late)
{
    struct slice unused;
    uint16_t to = s->partial_read < m->num_fragments ? s->partial_read : m->num_fragments;
    while (m->num_read < to && next_fragment(b, s, m, &unused))
        ;
    if (late) /* its successors have been read: what follows is not in order */
        s->loss |= LOSS_PRESENT | LOSS_READ_GAP;
}

enum step { STEP_PACKET, STEP_CHUNK_DONE, STEP_STOP };

/* Reads on in chunk k: a packet, or the end of the chunk, or the end of what can be read of the sequence now. */
static enum step read_chunk(struct trace_buffer *b, struct sequence *s, uint32_t k, struct trace_packet *p)
{
    struct chunk_meta *m = chunk_nth(s, k);
    if (m->flags & SHM_NEEDS_PATCHING && !b->final)
        return STEP_STOP;
    if (!m->num_read && s->partial_read && s->partial_id == m->chunk_id)
        catch_up(b, s, m, m->chunk_id - s->last_from >= 1u << 31);
    else if (!m->num_read && !m->consumed && !(s->any_done && s->last_done + 1 == m->chunk_id))
        s->loss |= LOSS_PRESENT | (s->any_done ? LOSS_READ_GAP : 0);
    while (m->num_read < m->num_fragments) {
        bool last = m->num_read == m->num_fragments - 1;
        vec_clear(&p->slices);
        p->bytes = 0;
        if (m->num_read == 0 && m->flags & SHM_FIRST_CONTINUES) {
            skip_fragment(b, s, m, LOSS_ORPHAN);
            continue;
        }
        if (last && m->flags & SHM_NEEDS_PATCHING) { /* final: the patch will not come */
            skip_fragment(b, s, m, LOSS_BROKEN_CHAIN);
            continue;
        }
        uint32_t count = 1;
        bool ahead = last && m->flags & SHM_LAST_CONTINUES;
        if (ahead) {
            enum ahead found = look_ahead(b, s, k, &count);
            if (found != AHEAD_OK)
                b->stats.readaheads_failed++;
            if (found == AHEAD_NOT_YET && !b->final)
                return STEP_STOP;
            if (found != AHEAD_OK) {
                skip_fragment(b, s, m, found == AHEAD_BROKEN ? LOSS_BROKEN_CHAIN : LOSS_REASSEMBLY_GAP);
                continue;
            }
        }
        if (!gather(b, s, k, count, p))
            continue;
        b->stats.readaheads_succeeded += ahead;
        if (p->bytes && deliver(s, p)) {
            s->last_from = m->chunk_id;
            return STEP_PACKET;
        }
    }
    if (!m->complete && !b->final)
        return STEP_STOP;
    if (!m->complete && !m->consumed)
        s->loss |= LOSS_PRESENT; /* the writer never finished the last packet */
    finish(b, s, m);
    return STEP_CHUNK_DONE;
}

/* Is a chunk missing in front of position k that may still come? What was overwritten will not. */
static bool has_hole(struct sequence *s, uint32_t k)
{
    const struct chunk_meta *m = chunk_nth(s, k);
    if (k > 0)
        return chunk_nth(s, k - 1)->chunk_id + 1 != m->chunk_id;
    return s->any_gone && !m->num_read && m->chunk_id - s->last_gone - 2 < 1u << 31;
}

static bool read_sequence(struct trace_buffer *b, struct sequence *s, struct trace_packet *p)
{
    find_start(s);
    for (uint32_t k = s->skip; k < s->chunks.n; k++) {
        if (!b->final && has_hole(s, k))
            return false;
        enum step step = read_chunk(b, s, k, p);
        if (step == STEP_PACKET)
            return true;
        if (step == STEP_STOP)
            return false;
        if (k == s->skip)
            s->skip++;
    }
    return false;
}

bool trace_buffer_unfinished(const struct trace_buffer *b, struct u64map *by_machine)
{
    for (size_t i = 0; i < b->order.n; i++) {
        const struct sequence *s = b->order.p[i];
        if (!(s->loss & ~(uint32_t)LOSS_PRESENT))
            continue;
        uint64_t *n = u64map_put(by_machine, s->stats.who.machine_id, NULL);
        if (!n)
            return false;
        ++*n;
    }
    return true;
}

void trace_buffer_begin_read(struct trace_buffer *b, bool final)
{
    trace_buffer_order(b);
    b->final = final;
    b->at_sequence = 0;
}

bool trace_buffer_read(struct trace_buffer *b, struct trace_packet *p)
{
    for (; b->at_sequence < b->order.n; b->at_sequence++)
        if (read_sequence(b, b->order.p[b->at_sequence], p))
            return true;
    return false;
}
