/* Moves chunks from the producers into the buffers. Everything in a commit and in the shared memory is untrusted: the
 * other side may write while we read. */
#include "capture/service/late_lengths.h"
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"

#include "base/alloc.h"
#include "capture/shm/chunk.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

#define MAX_DATA    65536u /* payload of one chunk; more is refused */
#define MAX_PATCHES 1024u

/* The session whose buffer it is; NULL: none, or one that is over. */
static struct session *session_of_buffer(struct service *svc, uint64_t buffer_id)
{
    for (size_t i = 0; i < svc->sessions.n; i++)
        for (size_t k = 0; k < svc->sessions.p[i]->buffers.n; k++)
            if (buffer_id && svc->sessions.p[i]->buffers.p[k].id == buffer_id)
                return svc->sessions.p[i];
    return NULL;
}

/* A chunk that was meant for this buffer is refused. It is a loss of the session that the buffer belongs to, and of no
 * other: what comes late for a session that is over says nothing about those that run now. */
static void discard_chunk(struct service_producer *p, uint64_t buffer_id, const char *why)
{
    struct session *s = session_of_buffer(p->service, buffer_id);
    unsigned dropped;
    if (s)
        s->chunks_discarded++;
    if (log_allowed(&p->service->log_limit, 10, &dropped))
        log_line("traced: producer %u \"%s\": chunk for buffer %llu refused: %s", p->id, p->name,
                 (unsigned long long)buffer_id, s ? why : "no session uses this buffer any more");
}

static void discard_patches(struct service_producer *p, uint64_t buffer_id, size_t n)
{
    struct session *s = session_of_buffer(p->service, buffer_id);
    if (s)
        s->patches_discarded += n;
}

/* May this producer write to that buffer with that writer? Counts the refusal. */
static struct session_ring *allowed_buffer(struct service_producer *p, uint64_t writer_id, uint64_t buffer_id)
{
    struct service *svc = p->service;
    uint64_t *registered = u64map_get(&p->writers, writer_id);
    if (writer_id < 1 || writer_id > SHM_MAX_WRITER_ID || !u64map_get(&p->allowed_buffers, buffer_id) ||
        (registered && *registered != buffer_id))
        return NULL;
    return service_find_buffer(svc, buffer_id);
}

/* Stores a chunk whose bytes (with header) are ours or may change under us; the header is read once. */
static void store_chunk(struct service_producer *p, const uint8_t *bytes, size_t size, uint64_t buffer_id,
                        bool complete)
{
    const struct shm_chunk_header *h = (const void *)bytes;
    uint32_t chunk_id;
    uint16_t writer_id, packets;
    if (size < SHM_CHUNK_HEADER) {
        discard_chunk(p, buffer_id, "it is shorter than its header");
        return;
    }
    if ((uintptr_t)bytes % 4 == 0) { /* in shared memory: each field once, the count before the bytes it promises */
        packets = atomic_load_explicit(&((struct shm_chunk_header *)(uintptr_t)h)->packets, memory_order_acquire);
        chunk_id = atomic_load_explicit(&((struct shm_chunk_header *)(uintptr_t)h)->chunk_id, memory_order_relaxed);
        writer_id = atomic_load_explicit(&((struct shm_chunk_header *)(uintptr_t)h)->writer_id, memory_order_relaxed);
    } else {
        memcpy(&chunk_id, bytes, 4);
        memcpy(&writer_id, bytes + 4, 2);
        memcpy(&packets, bytes + 6, 2);
    }
    struct session_ring *buffer = allowed_buffer(p, writer_id, buffer_id);
    if (!buffer) {
        discard_chunk(p, buffer_id, "its writer may not write to this buffer");
        return;
    }
    const struct ipc_identity *id = ipc_peer_identity(p->peer);
    struct trace_chunk c = {
        .who = {p->id, writer_id, id->uid, id->pid, id->machine_id},
        .chunk_id = chunk_id,
        .num_fragments = packets & SHM_COUNT_MASK,
        .flags = (uint8_t)(packets >> SHM_FLAGS_SHIFT & 7),
        .complete = complete,
        .at_ns = p->commit_ns,
        .payload = slice_of(bytes + SHM_CHUNK_HEADER, size - SHM_CHUNK_HEADER),
    };
    session_ring_write(buffer, &c);
}

/* Bytes of a complete chunk that are in use. */
static size_t chunk_filled(const uint8_t *bytes, size_t size)
{
    uint16_t packets;
    if (size < SHM_CHUNK_HEADER)
        return size;
    memcpy(&packets, bytes + 6, sizeof packets);
    return shm_chunk_filled(bytes, size, packets & SHM_COUNT_MASK);
}

static struct shm_page_header *page_at(struct service_producer *p, uint64_t page)
{
    if (!p->shm.p || page >= p->shm.size / p->page_size)
        return NULL;
    return (struct shm_page_header *)(void *)(p->shm.p + page * p->page_size);
}

static void move_chunk(struct service_producer *p, struct slice entry)
{
    struct pb_cursor c = pb_cursor(entry);
    struct pb_field f;
    uint64_t page = 0, chunk = 0, buffer = 0, filled = 0;
    struct slice data = {0};
    bool has_data = false, incomplete = false;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_PAGE:
            page = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_CHUNK:
            chunk = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_TARGET_BUFFER:
            buffer = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_DATA:
            data = pb_bytes(&f);
            has_data = true;
            break;
        case COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE_CHUNK_INCOMPLETE:
            incomplete = pb_bool(&f);
            break;
        case MOVE_FIELD_FILLED:
            filled = pb_u64(&f);
            break;
        }
    }
    if (has_data) {
        if (c.bad || data.len > MAX_DATA)
            discard_chunk(p, buffer, "it is damaged or too large");
        else
            store_chunk(p, data.p, incomplete ? data.len : chunk_filled(data.p, data.len), buffer, !incomplete);
        return;
    }
    struct shm_page_header *h = page_at(p, page);
    if (c.bad || !h || chunk >= SHM_MAX_CHUNKS || !shm_transition(h, (unsigned)chunk, SHM_COMPLETE, SHM_BEING_READ)) {
        discard_chunk(p, buffer, "there is no such chunk");
        return;
    }
    unsigned n = shm_layout_chunks(atomic_load_explicit(&h->bitmap, memory_order_relaxed));
    if (chunk < n) { /* the producer may have changed the layout meanwhile: the numbers stay inside the page */
        uint32_t size = shm_chunk_size(p->page_size, n);
        uint8_t *bytes = (uint8_t *)h + SHM_PAGE_HEADER + chunk * size;
        if (filled < SHM_CHUNK_HEADER || filled > size) /* of a producer that does not tell: we look */
            filled = chunk_filled(bytes, size);
        store_chunk(p, bytes, filled, buffer, true);
        memset(bytes, 0, SHM_CHUNK_HEADER);
    } else {
        discard_chunk(p, buffer, "there is no such chunk");
    }
    shm_transition(h, (unsigned)chunk, SHM_BEING_READ, SHM_FREE);
}

static void patch_chunk(struct service_producer *p, struct slice entry)
{
    struct pb_cursor c = pb_cursor(entry);
    struct pb_field f, q;
    uint64_t buffer = 0, writer = 0, chunk = 0;
    struct trace_patch patches[MAX_PATCHES];
    size_t n = 0, total = 0;
    bool has_more = false, bad = false;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_TARGET_BUFFER:
            buffer = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_WRITER_ID:
            writer = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_CHUNK_ID:
            chunk = pb_u64(&f);
            break;
        case COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCHES: {
            struct slice data = {0};
            uint64_t offset = 0;
            total++;
            struct pb_cursor pc = pb_sub(&f);
            while (pb_next(&pc, &q)) {
                if (q.id == COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCH_OFFSET)
                    offset = pb_u64(&q);
                else if (q.id == COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_PATCH_DATA)
                    data = pb_bytes(&q);
            }
            if (pc.bad || data.len != 4 || offset > UINT32_MAX || n == MAX_PATCHES) {
                bad = true;
                break;
            }
            patches[n].offset = (uint32_t)offset;
            memcpy(patches[n++].bytes, data.p, 4);
            break;
        }
        case COMMIT_DATA_REQUEST_CHUNK_TO_PATCH_HAS_MORE_PATCHES:
            has_more = pb_bool(&f);
            break;
        }
    }
    struct session_ring *b = bad || c.bad || chunk > UINT32_MAX ? NULL : allowed_buffer(p, writer, buffer);
    if (!b) {
        discard_patches(p, buffer, total);
        return;
    }
    struct trace_writer_identity who = {p->id, (uint16_t)writer, .machine_id = ipc_peer_identity(p->peer)->machine_id};
    session_ring_patch(b, &who, (uint32_t)chunk, patches, n, has_more);
}

void commit_data(struct service_producer *p, struct slice request)
{
    /* The order of the protocol: all moves, then all patches, then the acknowledgement */
    uint64_t flush_id = 0, whole_until = 0;
    struct pb_cursor c = pb_cursor(request);
    struct pb_field f;
    relay_producer_heard(p);
    p->finished = false;
    while (pb_next(&c, &f)) {
        if (f.id == COMMIT_DATA_REQUEST_CHUNKS_TO_MOVE)
            move_chunk(p, pb_bytes(&f));
        else if (f.id == COMMIT_DATA_REQUEST_FLUSH_REQUEST_ID)
            flush_id = pb_u64(&f);
        else if (f.id == COMMIT_FIELD_WHOLE_UNTIL)
            whole_until = pb_u64(&f);
        else if (f.id == COMMIT_FIELD_FINISHED)
            p->finished = pb_bool(&f);
    }
    if (whole_until > p->whole_until_ns)
        p->whole_until_ns = whole_until;
    c = pb_cursor(request);
    while (pb_next(&c, &f))
        if (f.id == COMMIT_DATA_REQUEST_CHUNKS_TO_PATCH)
            patch_chunk(p, pb_bytes(&f));
    if (flush_id)
        flush_acknowledged(p, flush_id);
}

static bool buffer_in_session(const struct session *s, uint64_t id)
{
    for (size_t i = 0; i < s->buffers.n; i++)
        if (s->buffers.p[i].id == id)
            return true;
    return false;
}

/* A chunk as its header says. */
struct found_chunk {
    uint8_t *bytes;
    size_t size;
    enum shm_chunk_state state;
    uint16_t packets; /* with flags */
    uint16_t writer;
};

/* Calls `take` for each chunk that somebody writes or has written. */
static void each_chunk(struct service_producer *p, void (*take)(void *ctx, const struct found_chunk *c), void *ctx)
{
    size_t pages = p->shm.p ? p->shm.size / p->page_size : 0;
    for (size_t page = 0; page < pages; page++) {
        struct shm_page_header *h = page_at(p, page);
        uint32_t bitmap = atomic_load_explicit(&h->bitmap, memory_order_acquire);
        unsigned n = shm_layout_chunks(bitmap);
        for (unsigned i = 0; i < n; i++) {
            struct found_chunk c = {.state = shm_state(bitmap, i), .size = shm_chunk_size(p->page_size, n)};
            if (c.state == SHM_FREE)
                continue;
            c.bytes = (uint8_t *)h + SHM_PAGE_HEADER + (size_t)i * c.size;
            struct shm_chunk_header *ch = (struct shm_chunk_header *)(void *)c.bytes;
            c.packets = atomic_load_explicit(&ch->packets, memory_order_acquire);
            c.writer = atomic_load_explicit(&ch->writer_id, memory_order_relaxed);
            take(ctx, &c);
        }
    }
}

struct scrape {
    struct service_producer *p;
    struct session *s;
    uint8_t *copy; /* of one page */
    uint64_t chunks, unknown;
};

/* Stores a copy of the chunk: into one that is being written more may come, so it keeps its room. */
static void store_copy(struct scrape *sc, const struct found_chunk *c, uint64_t buffer, bool complete)
{
    memcpy(sc->copy, c->bytes, c->size);
    memcpy(sc->copy + 6, &c->packets, sizeof c->packets); /* the count as of before the copy */
    store_chunk(sc->p, sc->copy, complete ? chunk_filled(sc->copy, c->size) : c->size, buffer, complete);
    sc->chunks++;
}

static void scrape_chunk(void *ctx, const struct found_chunk *c)
{
    struct scrape *sc = ctx;
    uint64_t *buffer = u64map_get(&sc->p->writers, c->writer);
    bool complete = c->state == SHM_COMPLETE;
    if (buffer && buffer_in_session(sc->s, *buffer) && (complete || (c->packets & SHM_COUNT_MASK) >= 2))
        store_copy(sc, c, *buffer, complete);
}

void commit_scrape(struct service_producer *p, struct session *s)
{
    struct scrape sc = {.p = p, .s = s, .copy = p->scraping && p->shm.p ? mem_alloc(p->page_size) : NULL};
    if (sc.copy)
        each_chunk(p, scrape_chunk, &sc);
    mem_free(sc.copy);
}

/* Is the last fragment whole? Its length begins with 0 until it is (shm/trace_writer.c). */
static bool last_is_whole(const uint8_t *bytes, size_t size, unsigned fragments)
{
    const uint8_t *p = bytes + SHM_CHUNK_HEADER, *end = bytes + size;
    for (unsigned i = 0; i < fragments; i++) {
        uint64_t len;
        if (p == end || (i + 1 == fragments && !*p) || !pb_varint(&p, end, &len))
            return false;
        if (len == SHM_DROP_PACKET_SIZE)
            return true;
        if (len > (uint64_t)(end - p))
            return false;
        p += len;
    }
    return true;
}

/* The buffer of a writer that had no time to register: when the producer may write to one of the session only, that. */
static uint64_t only_buffer(const struct service_producer *p, const struct session *s)
{
    uint64_t found = 0;
    for (size_t i = 0; i < s->buffers.n; i++) {
        if (!u64map_get(&p->allowed_buffers, s->buffers.p[i].id))
            continue;
        if (found)
            return 0;
        found = s->buffers.p[i].id;
    }
    return found;
}

static uint64_t buffer_of_writer(const struct scrape *sc, uint16_t writer)
{
    uint64_t *registered = u64map_get(&sc->p->writers, writer);
    return registered ? *registered : only_buffer(sc->p, sc->s);
}

/* Behind all chunks: they may be what waits for the lengths. */
static void take_over_lengths(void *ctx, const struct found_chunk *c)
{
    struct scrape *sc = ctx;
    uint64_t buffer = buffer_of_writer(sc, c->writer);
    struct session_ring *ring = buffer_in_session(sc->s, buffer) ? allowed_buffer(sc->p, c->writer, buffer) : NULL;
    const struct trace_writer_identity who = {sc->p->id, c->writer,
                                              .machine_id = ipc_peer_identity(sc->p->peer)->machine_id};
    if (ring)
        late_lengths_apply(c->bytes, c->size, ring, &who);
}

static void take_over_chunk(void *ctx, const struct found_chunk *c)
{
    struct scrape *sc = ctx;
    uint64_t *registered = u64map_get(&sc->p->writers, c->writer);
    uint64_t buffer = buffer_of_writer(sc, c->writer);
    unsigned count = c->packets & SHM_COUNT_MASK;
    bool complete = c->state == SHM_COMPLETE;
    if (!count || (registered && !buffer_in_session(sc->s, buffer)))
        return;
    if (!buffer || (!complete && !sc->p->scrape_at_end && !sc->p->scraping)) {
        sc->unknown += count; /* nobody knows whose they are, or they are not for us to take */
        return;
    }
    if (!complete && sc->p->whole_known)
        complete = last_is_whole(c->bytes, c->size, count);
    else if (!complete)
        sc->unknown++;
    if (complete || count >= 2)
        store_copy(sc, c, buffer, complete);
}

void commit_take_over(struct service_producer *p, struct session *s)
{
    bool has_part = false, records = false;
    for (size_t i = 0; i < s->instances.n; i++) {
        has_part |= s->instances.p[i]->producer == p;
        records |= s->instances.p[i]->producer == p && s->instances.p[i]->state != INSTANCE_STOPPED;
    }
    /* after its end nothing is of the session any more */
    if (!has_part || !p->shm.p || s->state == SESSION_DISABLED || s->state == SESSION_CLONED)
        return;
    struct scrape sc = {.p = p, .s = s, .copy = mem_alloc(p->page_size)};
    if (sc.copy)
        each_chunk(p, take_over_chunk, &sc);
    if (sc.copy && p->keeps_lengths)
        each_chunk(p, take_over_lengths, &sc);
    mem_free(sc.copy);
    bool cut = records && p->reads_more && !p->finished;
    if (!sc.chunks && !sc.unknown && !cut)
        return; /* it has handed over everything before it went */
    s->local_lost.producers++;
    s->local_lost.producers_cut += cut;
    s->local_lost.packets_unknown += sc.unknown;
    log_line("traced: session %llu: producer %u \"%s\" ended while it recorded: %llu chunks were taken out of its "
             "memory, at "
             "most %llu packets are lost",
             (unsigned long long)s->id, p->id, p->name, (unsigned long long)sc.chunks, (unsigned long long)sc.unknown);
    relay_name_lost(s, p);
}
