/* Finds where the bytes of a packet arrived.
 *
 * A packet is known by its connection (addresses and ports, in the direction of travel) and the sequence numbers of its
 * bytes. The network may cut a packet into several, or a card may join several to one; so what a machine sends has
 * arrived when the first packet that holds its last byte is received elsewhere. Of bytes that a machine sent again, or
 * passed on from one of its devices to the next, the first packet counts: the program's. */
#include "base/bisect.h"
#include "base/hash.h"
#include "base/u64map.h"
#include "base/vec.h"
#include "importer/network/packets.h"
#include "importer/track/flow_tracker.h"

#include <stdlib.h>

/* So many copies of a byte are looked at: it is hardly ever received twice. */
enum { MOST_COPIES = 64 };

/* Connections that use the ports of an old one begin so far behind it. */
enum { EPOCH_BITS = 40 };

/* A packet with bytes; begin and end count from the first sequence number of its connection, without wrapping. */
struct piece {
    int64_t begin, end, ts;
    uint32_t row, machine;
};

typedef VEC(struct piece) pieces;

struct connection {
    pieces sent, received; /* by time, as they come */
    uint64_t at;           /* the last sequence number, unwrapped */
    uint32_t syn;          /* that of the first packet of the connection at hand */
    bool has_syn, any;
};

struct matching {
    struct importer *im;
    struct storage *st;
    struct u64map by_name;
    VEC(struct connection)
    connections;
};

static struct connection *connection_of(struct matching *m, uint32_t row)
{
    uint64_t h = hash_keyed(m->im->secret, (uint64_t)ROW_GET(m->st, network_packet, source, row),
                            (uint64_t)ROW_GET(m->st, network_packet, destination, row));
    h = hash_combine(h, (uint64_t)ROW_GET(m->st, network_packet, source_port, row) << 16 |
                            (uint64_t)ROW_GET(m->st, network_packet, destination_port, row));
    bool added;
    uint64_t *at = u64map_put(&m->by_name, h, &added);
    if (at && added) {
        if (!vec_add(&m->connections))
            return NULL;
        *at = m->connections.n - 1;
    }
    return at ? &m->connections.p[*at] : NULL;
}

/* The sequence number of a packet, counted on over the end of its 32 bits. */
static uint64_t unwrap(struct connection *c, uint32_t seq, bool is_first)
{
    if (is_first && (!c->has_syn || c->syn != seq)) { /* else it is sent again, or arrives */
        c->at = (((c->at >> EPOCH_BITS) + c->any) << EPOCH_BITS) + seq;
        c->syn = seq;
        c->has_syn = true;
    } else if (!c->any) {
        c->at = (uint64_t)1 << 33 | seq; /* room for what was sent before and arrives later */
    } else {
        c->at += (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)c->at);
    }
    c->any = true;
    return c->at;
}

static bool collect(struct matching *m)
{
    uint32_t n = m->st->t[T_network_packet].n_rows;
    strid sent = strpool_intern_str(&m->st->strings, "send");
    for (uint32_t row = 0; row < n; row++) {
        struct connection *c = connection_of(m, row);
        if (!c)
            return false;
        bool is_first = (ROW_GET(m->st, network_packet, flags, row) & TCP_FLAG_SYN) != 0;
        uint64_t begin = unwrap(c, (uint32_t)ROW_GET(m->st, network_packet, sequence, row), is_first) + is_first;
        uint64_t length = (uint64_t)ROW_GET(m->st, network_packet, length, row);
        struct piece p = {(int64_t)begin, (int64_t)(begin + length), ROW_GET(m->st, network_packet, ts, row), row,
                          (uint32_t)ROW_GET(m->st, network_packet, machine_id, row)};
        bool was_sent = (strid)ROW_GET(m->st, network_packet, direction, row) == sent;
        if (length && !vec_push(was_sent ? &c->sent : &c->received, p))
            return false;
    }
    return true;
}

static int by_end(const void *pa, const void *pb)
{
    const struct piece *a = pa, *b = pb;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* The first of `in`, sorted by end, that ends behind `byte`. */
static size_t first_behind(const pieces *in, int64_t byte)
{
    size_t at = in->n;
    BISECT(at, mid, in->p[mid].end <= byte);
    return at;
}

/* Which of two packets is the other end of one at `ts`: the nearest behind it, or before it where `before`; clocks that
 * are not exact may leave none on that side, then the nearest. */
static bool nearer(int64_t a, int64_t b, int64_t ts, bool before)
{
    bool a_fits = before ? a <= ts : a >= ts, b_fits = before ? b <= ts : b >= ts;
    if (a_fits != b_fits)
        return a_fits;
    return (a < b) == (a_fits != before);
}

/* The other end of `p` among `in`, which is sorted by end: what holds its last byte on another machine. NULL: none. */
static const struct piece *other_end(const pieces *in, const struct piece *p, bool before)
{
    const struct piece *best = NULL;
    size_t at = first_behind(in, p->end - 1);
    for (size_t i = at; i < in->n && i < at + MOST_COPIES; i++) {
        const struct piece *q = &in->p[i];
        if (q->begin < p->end && q->machine != p->machine && (!best || nearer(q->ts, best->ts, p->ts, before)))
            best = q;
    }
    return best;
}

/* Marks what a machine sent before, and leaves the rest: `sent` is by time. */
static void drop_repeated(struct matching *m, pieces *sent)
{
    enum { MACHINES = 16 }; /* that send on one connection: one, and those that pass it on */
    struct {
        uint32_t machine;
        int64_t end;
    } seen[MACHINES];
    size_t n_seen = 0, n = 0;
    for (size_t i = 0; i < sent->n; i++) {
        struct piece p = sent->p[i];
        size_t k = 0;
        while (k < n_seen && seen[k].machine != p.machine)
            k++;
        if (k < n_seen && p.end <= seen[k].end) {
            ROW_SET(m->st, network_packet, repeated, p.row, 1);
            continue;
        }
        if (k == n_seen && n_seen < MACHINES)
            seen[n_seen++].machine = p.machine;
        if (k < n_seen)
            seen[k].end = p.end;
        sent->p[n++] = p;
    }
    sent->n = n;
}

static void arrow(struct matching *m, uint32_t sent, uint32_t received)
{
    int64_t out = ROW_GET(m->st, network_packet, slice_id, sent),
            in = ROW_GET(m->st, network_packet, slice_id, received);
    if (out != COL_NULL && in != COL_NULL)
        flow_between(m->im->flows, (uint32_t)out, (uint32_t)in);
}

static void match(struct matching *m, struct connection *c)
{
    drop_repeated(m, &c->sent);
    if (c->received.n)
        qsort(c->received.p, c->received.n, sizeof *c->received.p, by_end);
    for (size_t i = 0; i < c->sent.n; i++) {
        const struct piece *p = &c->sent.p[i], *at = other_end(&c->received, p, false);
        if (!at)
            continue;
        ROW_SET(m->st, network_packet, peer_id, p->row, at->row);
        arrow(m, p->row, at->row);
    }
    if (c->sent.n)
        qsort(c->sent.p, c->sent.n, sizeof *c->sent.p, by_end);
    for (size_t i = 0; i < c->received.n; i++) {
        const struct piece *p = &c->received.p[i], *from = other_end(&c->sent, p, true);
        if (from)
            ROW_SET(m->st, network_packet, peer_id, p->row, from->row);
    }
}

void network_packets_match(struct importer *im)
{
    struct matching m = {.im = im, .st = im->st};
    if (!im->st->t[T_network_packet].n_rows)
        return;
    if (!collect(&m))
        im->failed = true;
    for (size_t i = 0; i < m.connections.n && !im->failed; i++)
        match(&m, &m.connections.p[i]);
    for (size_t i = 0; i < m.connections.n; i++) {
        vec_free(&m.connections.p[i].sent);
        vec_free(&m.connections.p[i].received);
    }
    vec_free(&m.connections);
    u64map_free(&m.by_name);
}
