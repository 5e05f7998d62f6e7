/* Tests the trace buffer against a list that does the same slowly: every packet is read once, whole and in order, or
 * its loss is visible; every counter is what the list says. */
#include "capture/service/trace_buffer.h"

#include <check.h>
#include <stdlib.h>

/* An assertion of Check writes to a pipe each time: too slow for millions of them. */
#define AGREE(ok, ...)                                                                                                 \
    do {                                                                                                               \
        if (!(ok))                                                                                                     \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)

/* ---- a model: chunks as the writers made them, records as the ring should hold them ---- */

enum { WRITERS = 5, MAX_FRAGMENTS = 24, MAX_CHUNK = 640 };

struct fragment {
    uint32_t packet;
    uint16_t at; /* of its length in the payload */
    bool begins, ends;
};

struct chunk {
    unsigned writer;
    uint32_t id;
    uint8_t payload[MAX_CHUNK];
    uint16_t size, n, flags;
    struct fragment fragments[MAX_FRAGMENTS];
    uint16_t committed; /* fragments the buffer knows; 0xffff: never committed */
    uint16_t read;
    bool complete, in_ring, needs_patch;
    uint8_t patch_bytes[4];
};

struct packet {
    uint16_t size;
    bool read, lost; /* lost: some of it can never come out */
};

struct record {
    size_t offset, size;
    struct chunk *chunk; /* NULL: padding */
};

struct writer {
    VEC(struct chunk *) chunks;  /* all, by id */
    VEC(struct chunk *) waiting; /* made, not committed */
    VEC(struct packet) packets;
    uint32_t left;      /* bytes of the packet being written that are still to come */
    uint32_t next_read; /* packets below were read or passed over */
    uint32_t last_written_id;
    bool any_written;
};

struct model {
    struct trace_buffer *b;
    enum trace_buffer_policy policy;
    unsigned seed;
    size_t size, wptr;
    bool full;
    bool disturb;               /* chunks come out of order, and half-written ones are scraped */
    bool patches;               /* some lengths come later */
    bool exact;                 /* neither of the two: the model knows what was read without a packet */
    VEC(struct record) records; /* in any order */
    struct writer w[WRITERS];
    struct trace_buffer_stats want;
    struct trace_packet packet;
};

static unsigned rnd(struct model *m, unsigned n)
{
    return (unsigned)rand_r(&m->seed) % n;
}

/* Byte i of a packet: its number first, so that no two are alike. */
static uint8_t pattern(unsigned writer, uint32_t packet, uint32_t i)
{
    return i < 4 ? (uint8_t)(packet >> (8 * i)) : (uint8_t)(writer * 31 + packet * 7 + i);
}

/* The next chunk of a writer: fragments until a random size is reached; the last may go on in the next chunk. */
static struct chunk *make_chunk(struct model *m, unsigned writer)
{
    struct writer *w = &m->w[writer];
    struct chunk *c = mem_zalloc(sizeof *c);
    unsigned room = 16 + rnd(m, MAX_CHUNK - 16), want = 1 + rnd(m, MAX_FRAGMENTS), at = 0;
    c->writer = writer;
    c->id = (uint32_t)w->chunks.n;
    c->committed = 0xffff;
    if (w->left)
        c->flags |= SHM_FIRST_CONTINUES;
    while (c->n < want && room - at > 12) {
        bool begins = !w->left;
        if (begins) {
            w->left = 8 + (rnd(m, 8) ? rnd(m, 60) : rnd(m, 1500));
            vec_push(&w->packets, (struct packet){.size = (uint16_t)w->left});
        }
        uint32_t n = (uint32_t)w->packets.n - 1, size = w->packets.p[n].size, take = w->left;
        if (take > room - at - 4)
            take = room - at - 4;
        struct fragment *f = &c->fragments[c->n++];
        *f = (struct fragment){n, (uint16_t)at, begins, take == w->left};
        c->payload[at++] = (uint8_t)(take | 0x80);
        c->payload[at++] = (uint8_t)(take >> 7 | 0x80);
        c->payload[at++] = (uint8_t)(take >> 14 | 0x80);
        c->payload[at++] = (uint8_t)(take >> 21);
        for (uint32_t i = size - w->left; take--; i++, w->left--)
            c->payload[at++] = pattern(writer, n, i);
        if (w->left)
            break;
    }
    if (w->left)
        c->flags |= SHM_LAST_CONTINUES;
    c->size = (uint16_t)room;
    if (m->patches && rnd(m, 10) == 0 && c->n && room >= 8) { /* some length comes later: of its last fragment */
        c->needs_patch = true;
        memcpy(c->patch_bytes, c->payload + c->fragments[c->n - 1].at, 4);
        memset(c->payload + c->fragments[c->n - 1].at, 0, 4);
        c->flags |= SHM_NEEDS_PATCHING;
    }
    vec_push(&w->chunks, c);
    vec_push(&w->waiting, c);
    return c;
}

/* ---- what a write should do ---- */

static bool unread(const struct chunk *c)
{
    return c->read < c->committed;
}

static void drop_record(struct model *m, size_t i)
{
    struct record r = m->records.p[i];
    if (!r.chunk) {
        m->want.padding_bytes_cleared += r.size;
    } else {
        if (unread(r.chunk)) {
            m->want.chunks_overwritten++;
            m->want.bytes_overwritten += r.size;
            for (unsigned k = r.chunk->read; k < r.chunk->committed; k++)
                m->w[r.chunk->writer].packets.p[r.chunk->fragments[k].packet].lost = true;
        }
        r.chunk->in_ring = false;
    }
    m->records.p[i] = m->records.p[--m->records.n];
}

/* Clears [wptr, wptr + size); false when DISCARD forbids it. *end: where the last record cleared ended. */
static bool model_clear(struct model *m, size_t size, size_t *end)
{
    size_t until = m->wptr + size;
    *end = until;
    for (size_t i = 0; i < m->records.n; i++) {
        const struct record *r = &m->records.p[i];
        if (r->offset >= m->wptr && r->offset < until && m->policy == TRACE_BUFFER_DISCARD && r->chunk &&
            unread(r->chunk))
            return false;
    }
    for (size_t i = 0; i < m->records.n;) {
        const struct record *r = &m->records.p[i];
        if (r->offset < m->wptr || r->offset >= until) {
            i++;
            continue;
        }
        if (r->offset + r->size > *end)
            *end = r->offset + r->size;
        drop_record(m, i);
    }
    return true;
}

static void put_record(struct model *m, size_t offset, size_t size, struct chunk *c)
{
    if (!size)
        return;
    if (!c)
        m->want.padding_bytes_written += size;
    vec_push(&m->records, (struct record){offset, size, c});
}

static void lose(struct model *m, struct chunk *c)
{
    for (unsigned k = 0; k < c->n; k++)
        m->w[c->writer].packets.p[c->fragments[k].packet].lost = true;
}

static void model_write(struct model *m, struct chunk *c, uint16_t fragments, bool complete)
{
    struct writer *w = &m->w[c->writer];
    size_t size = (c->size + 16u + 15) & ~15u, end;
    if (c->in_ring && !m->full) {
        bool next_read = c->id + 1 < w->chunks.n && w->chunks.p[c->id + 1]->in_ring && w->chunks.p[c->id + 1]->read;
        AGREE(!next_read, "the model breaks a rule");
        if (fragments > c->committed || (complete && !c->complete && fragments >= c->committed)) {
            if (fragments > c->committed) {
                c->committed = fragments;
                c->complete = complete;
                m->want.chunks_rewritten++;
            }
        }
        return;
    }
    if (m->full) {
        m->want.chunks_discarded++;
        lose(m, c);
        return;
    }
    if (m->size - m->wptr < size) {
        size_t left = m->size - m->wptr;
        if (!model_clear(m, left, &end)) {
            m->full = true;
        } else {
            put_record(m, m->wptr, left, NULL);
            m->wptr = 0;
            m->want.write_wrap_count++;
        }
    }
    if (m->full || !model_clear(m, size, &end)) {
        m->full = true;
        m->want.chunks_discarded++;
        lose(m, c);
        return;
    }
    put_record(m, m->wptr, size, c);
    put_record(m, m->wptr + size, end - m->wptr - size, NULL);
    m->want.chunks_written++;
    m->want.bytes_written += size;
    m->wptr += size;
    if (m->wptr == m->size) {
        m->wptr = 0;
        m->want.write_wrap_count++;
    }
    if (w->any_written && c->id < w->last_written_id)
        m->want.chunks_committed_out_of_order++;
    else
        w->last_written_id = c->id;
    w->any_written = true;
    c->in_ring = true;
    c->committed = fragments;
    c->complete = complete;
}

/* ---- operations ---- */

static void commit(struct model *m, struct chunk *c, uint16_t fragments, bool complete)
{
    struct trace_chunk t = {
        .who = {.producer_id = (uint16_t)(1 + c->writer / 2), .writer_id = (uint16_t)(1 + c->writer), .pid = 7},
        .chunk_id = c->id,
        .num_fragments = (uint16_t)(complete ? fragments : fragments + 1),
        .flags = (uint8_t)c->flags,
        .complete = complete,
        .payload = slice_of(c->payload, c->size),
    };
    if (!complete && fragments == c->n) /* the last one is always taken for unfinished */
        return;
    model_write(m, c, fragments, complete);
    trace_buffer_write(m->b, &t);
}

static void commit_some(struct model *m, unsigned writer)
{
    struct writer *w = &m->w[writer];
    while (w->waiting.n < 1 + rnd(m, 3))
        make_chunk(m, writer);
    /* chunk 0 comes first: of a sequence that it does not know the buffer cannot tell what is missing */
    size_t i = !m->disturb || rnd(m, 4) || w->waiting.p[0]->id == 0 ? 0 : rnd(m, (unsigned)w->waiting.n);
    struct chunk *c = w->waiting.p[i];
    if (m->disturb && i == 0 && c->n > 1 && rnd(m, 6) == 0 && !(c->committed != 0xffff && !c->in_ring)) { /* scraped */
        uint16_t from = c->committed == 0xffff ? 0 : c->committed;
        uint16_t n = (uint16_t)(from + rnd(m, c->n - from));
        if (n > 0 && n < c->n)
            commit(m, c, n, false);
        return;
    }
    memmove(&w->waiting.p[i], &w->waiting.p[i + 1], (w->waiting.n - i - 1) * sizeof c);
    w->waiting.n--;
    commit(m, c, c->n, true);
}

static void patch_some(struct model *m, unsigned writer)
{
    struct writer *w = &m->w[writer];
    for (size_t i = w->chunks.n > 8 ? w->chunks.n - 8 : 0; i < w->chunks.n; i++) {
        struct chunk *c = w->chunks.p[i];
        if (!c->needs_patch || !c->complete || !c->in_ring || c->committed != c->n)
            continue;
        struct trace_patch p = {.offset = c->fragments[c->n - 1].at};
        memcpy(p.bytes, c->patch_bytes, 4);
        c->needs_patch = false;
        m->want.patches_succeeded++;
        AGREE(trace_buffer_patch(m->b, (uint16_t)(1 + writer / 2), (uint16_t)(1 + writer), c->id, &p, 1, false),
              "patch of chunk %u refused", c->id);
    }
}

/* Which packet it is that was read: the first one to come with this size and these bytes; UINT32_MAX: none. */
static uint32_t find_packet(const struct model *m, unsigned writer)
{
    const struct trace_packet *p = &m->packet;
    const struct writer *w = &m->w[writer];
    for (uint32_t n = w->next_read; n < w->packets.n; n++) {
        uint32_t i = 0;
        bool same = w->packets.p[n].size == p->bytes && !w->packets.p[n].read;
        for (size_t s = 0; s < p->slices.n && same; s++)
            for (size_t k = 0; k < p->slices.p[s].len && same; k++, i++)
                same = p->slices.p[s].p[k] == pattern(writer, n, i);
        if (same)
            return n;
    }
    return UINT32_MAX;
}

/* The buffer hands out a packet: it must be a whole one, not seen before, and a gap before it must be marked. */
static void take_packet(struct model *m)
{
    const struct trace_packet *p = &m->packet;
    unsigned writer = p->who.writer_id - 1u;
    AGREE(writer < WRITERS, "writer %u", writer);
    struct writer *w = &m->w[writer];
    uint32_t n = find_packet(m, writer);
    AGREE(n != UINT32_MAX, "a packet that nobody wrote, or twice, or out of order");
    AGREE(n == w->next_read || p->loss, "writer %u: packets %u..%u are missing without a mark", writer, w->next_read,
          n - 1);
    w->packets.p[n].read = true;
    w->next_read = n + 1;
}

/* The first packet of a writer that cannot be read yet: its end is not in the buffer, its beginning still is. */
static uint32_t first_unfinished(const struct writer *w)
{
    const struct chunk *c = w->any_written ? w->chunks.p[w->last_written_id] : NULL;
    if (!c || !(c->flags & SHM_LAST_CONTINUES))
        return UINT32_MAX;
    uint32_t n = c->fragments[c->n - 1].packet;
    while (!(c->fragments[c->n - 1].packet == n && c->fragments[c->n - 1].begins))
        c = w->chunks.p[c->id - 1];
    return c->in_ring ? n : UINT32_MAX;
}

/* How far each chunk has been read: up to the last packet that came out; when all chunks come in order and whole, of
 * the writers before `stopped_at` up to what cannot be read yet, though no packet may have come out of an orphan. */
static void update_read_state(struct model *m, unsigned stopped_at)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct writer *w = &m->w[i];
        uint32_t until = m->exact && i < stopped_at ? first_unfinished(w) : w->next_read;
        for (size_t k = w->chunks.n > 64 ? w->chunks.n - 64 : 0; k < w->chunks.n; k++) {
            struct chunk *c = w->chunks.p[k];
            if (!c->in_ring)
                continue;
            uint16_t r = 0;
            while (r < c->committed && c->fragments[r].packet < until)
                r++;
            if (r > c->read)
                c->read = r;
        }
    }
}

static void read_some(struct model *m, unsigned limit, bool final)
{
    unsigned stopped_at = WRITERS;
    trace_buffer_begin_read(m->b, final);
    while (trace_buffer_read(m->b, &m->packet)) {
        take_packet(m);
        if (--limit == 0) {
            stopped_at = m->packet.who.writer_id - 1u;
            break;
        }
    }
    update_read_state(m, stopped_at);
}

static void check_stats(const struct model *m)
{
    const struct trace_buffer_stats *s = trace_buffer_get_stats(m->b), *w = &m->want;
    const struct {
        const char *name;
        uint64_t is, want;
    } rows[] = {
        {"chunks_written", s->chunks_written, w->chunks_written},
        {"bytes_written", s->bytes_written, w->bytes_written},
        {"chunks_discarded", s->chunks_discarded, w->chunks_discarded},
        {"write_wrap_count", s->write_wrap_count, w->write_wrap_count},
        {"padding_bytes_written", s->padding_bytes_written, w->padding_bytes_written},
        {"padding_bytes_cleared", s->padding_bytes_cleared, w->padding_bytes_cleared},
        {"chunks_committed_out_of_order", s->chunks_committed_out_of_order, w->chunks_committed_out_of_order},
        {"chunks_rewritten", s->chunks_rewritten, w->chunks_rewritten},
        {"patches_succeeded", s->patches_succeeded, w->patches_succeeded},
        {"abi_violations", s->abi_violations, 0},
        {"chunks_overwritten", s->chunks_overwritten, w->chunks_overwritten}, /* from here on only when exact */
        {"bytes_overwritten", s->bytes_overwritten, w->bytes_overwritten},
    };
    size_t n = sizeof rows / sizeof *rows - (m->exact ? 0 : 2);
    for (size_t i = 0; i < n; i++)
        AGREE(rows[i].is == rows[i].want, "%s is %llu, should be %llu", rows[i].name, (unsigned long long)rows[i].is,
              (unsigned long long)rows[i].want);
}

static void check_all_accounted(struct model *m)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct writer *w = &m->w[i];
        for (size_t k = 0; k < w->chunks.n; k++) { /* what was never committed cannot come out */
            struct chunk *c = w->chunks.p[k];
            unsigned known = c->committed == 0xffff ? 0 : c->committed;
            for (unsigned f = known; f < c->n; f++)
                w->packets.p[c->fragments[f].packet].lost = true;
            if (c->needs_patch && c->n)
                w->packets.p[c->fragments[c->n - 1].packet].lost = true;
        }
        if (w->left)
            w->packets.p[w->packets.n - 1].lost = true;
        for (size_t n = 0; n < w->packets.n; n++)
            AGREE(w->packets.p[n].read || w->packets.p[n].lost, "writer %u: packet %zu is nowhere", i, n);
    }
}

/* Any writer; more often one with a chunk under way whose successors are in the buffer. */
static unsigned pick_writer(struct model *m)
{
    for (unsigned i = 0; i < WRITERS && rnd(m, 2); i++) {
        const struct writer *w = &m->w[i];
        if (w->waiting.n && (w->waiting.p[0]->id < w->last_written_id || w->waiting.p[0]->committed != 0xffff))
            return i;
    }
    return rnd(m, WRITERS);
}

static void run(unsigned seed, enum trace_buffer_policy policy, unsigned ops)
{
    struct model m = {.policy = policy, .seed = seed};
    m.disturb = seed % 2;
    /* large enough that the ring does not lap a chunk that is under way: what then comes late is out of order */
    m.size = m.disturb ? 32768u << rnd(&m, 2) : 4096u << rnd(&m, 4);
    m.b = trace_buffer_new(m.size, policy);
    m.patches = seed % 3 == 0;
    m.exact = !m.disturb && !m.patches;
    for (unsigned op = 0; op < ops; op++) {
        unsigned writer = pick_writer(&m);
        switch (rnd(&m, 16)) {
        case 0:
            read_some(&m, UINT32_MAX, false);
            break;
        case 1:
            read_some(&m, 1 + rnd(&m, 5), false);
            break;
        case 2:
            patch_some(&m, writer);
            break;
        default:
            commit_some(&m, writer);
        }
        if (op % 64 == 0)
            check_stats(&m);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        patch_some(&m, i);
    read_some(&m, UINT32_MAX, true);
    check_stats(&m);
    check_all_accounted(&m);
    for (unsigned i = 0; i < WRITERS; i++) {
        for (size_t k = 0; k < m.w[i].chunks.n; k++)
            mem_free(m.w[i].chunks.p[k]);
        vec_free(&m.w[i].chunks);
        vec_free(&m.w[i].waiting);
        vec_free(&m.w[i].packets);
    }
    vec_free(&m.records);
    vec_free(&m.packet.slices);
    trace_buffer_free(m.b);
}

/* Two million operations on rings and a quarter of a million on buffers that discard. */
static unsigned rounds(unsigned n)
{
    const char *s = getenv("MERIDIAN_STRESS"); /* a factor */
    return s ? n * (unsigned)atoi(s) : n;
}

START_TEST(ring_agrees_with_the_list)
{
    for (unsigned seed = 1; seed <= rounds(1000); seed++)
        run(seed, TRACE_BUFFER_RING, 2000);
}
END_TEST

START_TEST(discard_agrees_with_the_list)
{
    for (unsigned seed = 1; seed <= rounds(400); seed++)
        run(seed * 7919, TRACE_BUFFER_DISCARD, 600);
}
END_TEST

Suite *trace_buffer_model_suite(void);
Suite *trace_buffer_model_suite(void)
{
    Suite *s = suite_create("trace_buffer_model");
    TCase *m = tcase_create("model");
    tcase_set_timeout(m, 1200);
    tcase_add_test(m, ring_agrees_with_the_list);
    tcase_add_test(m, discard_agrees_with_the_list);
    suite_add_tcase(s, m);
    return s;
}
