/* Gives each machine its ring. */
#include "capture/service/session_ring.h"

struct machine_ring {
    uint32_t machine_id;
    struct trace_buffer *buffer;
};

struct session_ring {
    size_t size, machine_size;
    enum trace_buffer_policy policy;
    VEC(struct machine_ring) rings; /* the first one is this machine's, and of all that have none of their own */
    bool final;
    size_t at; /* the ring being read */
};

struct session_ring *session_ring_new(size_t size, size_t machine_size, enum trace_buffer_policy policy)
{
    struct session_ring *r = mem_zalloc(sizeof *r);
    struct machine_ring first = {.buffer = r ? trace_buffer_new(size, policy) : NULL};
    if (!first.buffer || !vec_push(&r->rings, first)) {
        trace_buffer_free(first.buffer);
        mem_free(r);
        return NULL;
    }
    r->size = size;
    r->machine_size = machine_size;
    r->policy = policy;
    return r;
}

struct session_ring *session_ring_new_like(const struct session_ring *r)
{
    return session_ring_new(r->size, r->machine_size, r->policy);
}

void session_ring_free(struct session_ring *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->rings.n; i++)
        trace_buffer_free(r->rings.p[i].buffer);
    vec_free(&r->rings);
    mem_free(r);
}

struct session_ring *session_ring_clone(const struct session_ring *r)
{
    struct session_ring *c = mem_zalloc(sizeof *c);
    if (!c)
        return NULL;
    c->size = r->size;
    c->machine_size = r->machine_size;
    c->policy = r->policy;
    for (size_t i = 0; i < r->rings.n; i++) {
        struct machine_ring one = {r->rings.p[i].machine_id, trace_buffer_clone(r->rings.p[i].buffer)};
        if (!one.buffer || !vec_push(&c->rings, one)) {
            trace_buffer_free(one.buffer);
            session_ring_free(c);
            return NULL;
        }
    }
    return c;
}

/* The machine's ring, as it is; the first one when it has none. */
static struct trace_buffer *ring_of(const struct session_ring *r, uint32_t machine_id)
{
    for (size_t i = 1; machine_id && i < r->rings.n; i++)
        if (r->rings.p[i].machine_id == machine_id)
            return r->rings.p[i].buffer;
    return r->rings.p[0].buffer;
}

void session_ring_write(struct session_ring *r, const struct trace_chunk *c)
{
    struct trace_buffer *b = ring_of(r, c->who.machine_id);
    bool is_new = r->machine_size && c->who.machine_id && b == r->rings.p[0].buffer && r->rings.n < SESSION_RINGS_MAX &&
                  vec_reserve(&r->rings, r->rings.n + 1);
    struct trace_buffer *own = is_new ? trace_buffer_new(r->machine_size, r->policy) : NULL;
    if (own) { /* else it shares: a chunk is worth more than its place */
        r->rings.p[r->rings.n++] = (struct machine_ring){c->who.machine_id, own};
        b = own;
    }
    trace_buffer_write(b, c);
}

bool session_ring_patch(struct session_ring *r, const struct trace_writer_identity *who, uint32_t chunk_id,
                        const struct trace_patch *patches, size_t n, bool has_more)
{
    return trace_buffer_patch(ring_of(r, who->machine_id), who->producer_id, who->writer_id, chunk_id, patches, n,
                              has_more);
}

bool session_ring_lacks_patches(const struct session_ring *r, const struct trace_writer_identity *who,
                                uint32_t chunk_id)
{
    return trace_buffer_lacks_patches(ring_of(r, who->machine_id), who->producer_id, who->writer_id, chunk_id);
}

void session_ring_begin_read(struct session_ring *r, bool final)
{
    r->final = final;
    r->at = 0;
    trace_buffer_begin_read(r->rings.p[0].buffer, final);
}

bool session_ring_read(struct session_ring *r, struct trace_packet *p)
{
    while (!trace_buffer_read(r->rings.p[r->at].buffer, p)) {
        if (r->at + 1 == r->rings.n)
            return false;
        trace_buffer_begin_read(r->rings.p[++r->at].buffer, r->final);
    }
    return true;
}

struct trace_buffer_stats session_ring_stats(const struct session_ring *r)
{
    union { /* every member is a sum */
        struct trace_buffer_stats stats;
        uint64_t v[sizeof(struct trace_buffer_stats) / sizeof(uint64_t)];
    } sum = {{0}}, one;
    _Static_assert(sizeof sum.stats == sizeof sum.v, "members are uint64_t");
    for (size_t i = 0; i < r->rings.n; i++) {
        one.stats = *trace_buffer_get_stats(r->rings.p[i].buffer);
        for (size_t k = 0; k < sizeof sum.v / sizeof *sum.v; k++)
            sum.v[k] += one.v[k];
    }
    return sum.stats;
}

const struct trace_sequence_stats *session_ring_next(const struct session_ring *r, struct session_ring_place *at)
{
    for (; at->ring < r->rings.n; at->ring++, at->sequence = 0) {
        struct trace_buffer *b = r->rings.p[at->ring].buffer;
        if (at->sequence < trace_buffer_sequence_count(b))
            return trace_buffer_sequence(b, at->sequence++);
    }
    return NULL;
}

bool session_ring_unfinished(const struct session_ring *r, struct u64map *by_machine)
{
    bool ok = true;
    for (size_t i = 0; ok && i < r->rings.n; i++)
        ok = trace_buffer_unfinished(r->rings.p[i].buffer, by_machine);
    return ok;
}
