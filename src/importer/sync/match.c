/* Pairs sends and receives. */
#include "importer/sync/match.h"

#include "base/hash.h"
#include "base/vec.h"

enum entry_state {
    ENTRY_FREE,
    ENTRY_WAITING,   /* one direction seen */
    ENTRY_MATCHED,   /* retired: both directions seen */
    ENTRY_AMBIGUOUS, /* retired: a second host interfered */
};

struct entry {
    struct packet_key key;
    int64_t ts;        /* of the waiting event; of the last event when retired */
    int64_t other_ts;  /* when matched: the receiver's */
    uint32_t host;     /* of the waiting event; the sender when matched */
    uint32_t other;    /* the receiver when matched */
    uint8_t state;     /* enum entry_state */
    uint8_t direction; /* of the waiting event */
};

struct matcher {
    struct entry *slots;
    size_t capacity; /* a power of two */
    size_t used;
    uint64_t secret; /* of the hashes of keys: no trace knows which belong into one slot */
    int64_t retire_ns;
    match_fn found;
    void *ctx;
    VEC(struct match_counts)
    hosts;
    VEC(int64_t)
    clocks; /* latest time seen per host */
};

uint64_t packet_flow(struct slice source, uint16_t source_port, struct slice destination, uint16_t destination_port)
{
    uint64_t secret = hash_secret(); /* no trace knows which flows have one number */
    uint64_t h = hash_bytes_seeded(source.p, source.len, secret);
    h = hash_combine(h, hash_bytes_seeded(destination.p, destination.len, secret));
    h = hash_combine(h, (uint64_t)source_port << 16 | destination_port);
    return h ? h : 1;
}

/* The least data offset that a TCP header has, in words of four bytes. */
enum { LEAST_DATA_OFFSET = 5 };

uint32_t packet_tcp_flags(uint32_t word)
{
    bool upside_down = word > 0xff && (word & 0xf0) == 0 && (word & 0xf) >= LEAST_DATA_OFFSET;
    if (!upside_down)
        return word & 0xff;
    uint32_t flags = 0;
    for (unsigned bit = 0; bit < 8; bit++)
        flags |= (word >> (15 - bit) & 1) << bit;
    return flags;
}

struct packet_key packet_key_short(const struct packet_key *key)
{
    return (struct packet_key){
        .seq = key->seq, .ack = key->ack, .flags = packet_tcp_flags(key->flags), .family = PACKET_TCP};
}

static uint64_t key_hash(const struct packet_key *k, uint64_t secret)
{
    uint64_t h = hash_keyed(secret, k->flow, (uint64_t)k->seq << 32 | k->ack);
    return hash_combine(h, (uint64_t)k->flags << 32 | (uint32_t)k->ip_id << 16 | k->family);
}

static bool same_key(const struct packet_key *a, const struct packet_key *b)
{
    return a->flow == b->flow && a->seq == b->seq && a->ack == b->ack && a->flags == b->flags && a->ip_id == b->ip_id &&
           a->family == b->family;
}

struct matcher *matcher_open(int64_t retire_ns, match_fn found, void *ctx)
{
    struct matcher *m = mem_zalloc(sizeof *m);
    if (!m)
        return NULL;
    m->secret = hash_secret();
    m->retire_ns = retire_ns;
    m->found = found;
    m->ctx = ctx;
    return m;
}

void matcher_close(struct matcher *m)
{
    if (!m)
        return;
    mem_free(m->slots);
    vec_free(&m->hosts);
    vec_free(&m->clocks);
    mem_free(m);
}

/* True once no copy of a retired key is to be expected any more, as far as the hosts that saw it have come. */
static bool expired(const struct matcher *m, const struct entry *e)
{
    if (e->state != ENTRY_MATCHED && e->state != ENTRY_AMBIGUOUS)
        return false;
    if (m->retire_ns < 0)
        return true;
    bool sender_done = m->clocks.p[e->host] > e->ts && m->clocks.p[e->host] - e->ts > m->retire_ns;
    bool receiver_done = m->clocks.p[e->other] > e->other_ts && m->clocks.p[e->other] - e->other_ts > m->retire_ns;
    return sender_done && receiver_done;
}

static struct entry *find(const struct matcher *m, struct entry *slots, size_t capacity, const struct packet_key *key)
{
    size_t at = key_hash(key, m->secret) & (capacity - 1);
    while (slots[at].state != ENTRY_FREE && !same_key(&slots[at].key, key))
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

/* Makes room: expired entries go, and the table grows when those that stay fill more than half of it. */
static bool make_room(struct matcher *m)
{
    size_t stay = 0;
    for (size_t i = 0; i < m->capacity; i++)
        stay += m->slots[i].state != ENTRY_FREE && !expired(m, &m->slots[i]);
    size_t capacity = m->capacity ? m->capacity : 1024;
    while (stay * 2 >= capacity)
        capacity *= 2;
    struct entry *slots = mem_zalloc(capacity * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < m->capacity; i++)
        if (m->slots[i].state != ENTRY_FREE && !expired(m, &m->slots[i]))
            *find(m, slots, capacity, &m->slots[i].key) = m->slots[i];
    mem_free(m->slots);
    m->slots = slots;
    m->capacity = capacity;
    m->used = stay;
    return true;
}

static bool know_host(struct matcher *m, uint32_t host)
{
    while (m->hosts.n <= host)
        if (!vec_add(&m->hosts) || !vec_push(&m->clocks, INT64_MIN))
            return false;
    return true;
}

/* A second event of a key that waits. */
static void meet(struct matcher *m, struct entry *e, uint32_t host, enum packet_direction direction, int64_t ts)
{
    struct match_counts *mine = &m->hosts.p[host];
    if (e->direction == direction) {
        if (e->host == host) {
            mine->duplicates++; /* a copy: the first one stays */
            return;
        }
        mine->ambiguous++;
        m->hosts.p[e->host].ambiguous++;
        e->state = ENTRY_AMBIGUOUS;
        e->other = host;
        e->other_ts = ts;
        return;
    }
    if (e->host == host) {
        mine->loopback++; /* through a virtual device: the waiting event may still find its partner elsewhere */
        return;
    }
    bool waiting_was_sent = e->direction == PACKET_SENT;
    uint32_t sender = waiting_was_sent ? e->host : host, receiver = waiting_was_sent ? host : e->host;
    int64_t send_ts = waiting_was_sent ? e->ts : ts, receive_ts = waiting_was_sent ? ts : e->ts;
    *e = (struct entry){.key = e->key,
                        .ts = send_ts,
                        .other_ts = receive_ts,
                        .host = sender,
                        .other = receiver,
                        .state = ENTRY_MATCHED};
    m->hosts.p[sender].matched++;
    m->hosts.p[receiver].matched++;
    m->found(m->ctx, sender, send_ts, receiver, receive_ts);
}

bool matcher_event(struct matcher *m, uint32_t host, enum packet_direction direction, int64_t ts, struct packet_key key)
{
    if (!know_host(m, host) || (m->used * 4 >= m->capacity * 3 && !make_room(m)))
        return false;
    struct match_counts *mine = &m->hosts.p[host];
    direction == PACKET_SENT ? mine->sent++ : mine->received++;
    if (ts > m->clocks.p[host])
        m->clocks.p[host] = ts;
    struct entry *e = find(m, m->slots, m->capacity, &key);
    if (e->state == ENTRY_WAITING) {
        meet(m, e, host, direction, ts);
        return true;
    }
    if (e->state != ENTRY_FREE && !expired(m, e)) {
        mine->duplicates++;
        return true;
    }
    m->used += e->state == ENTRY_FREE;
    *e = (struct entry){.key = key, .ts = ts, .host = host, .state = ENTRY_WAITING, .direction = (uint8_t)direction};
    return true;
}

static void add_counts(struct match_counts *sum, const struct match_counts *c)
{
    sum->sent += c->sent;
    sum->received += c->received;
    sum->matched += c->matched;
    sum->duplicates += c->duplicates;
    sum->ambiguous += c->ambiguous;
    sum->loopback += c->loopback;
}

struct match_counts matcher_counts(const struct matcher *m, uint32_t host)
{
    struct match_counts sum = {0};
    for (size_t i = 0; i < m->hosts.n; i++)
        if (host == UINT32_MAX || host == i)
            add_counts(&sum, &m->hosts.p[i]);
    if (host == UINT32_MAX)
        sum.matched /= 2; /* both ends counted it */
    for (size_t i = 0; i < m->capacity; i++) {
        const struct entry *e = &m->slots[i];
        if (e->state != ENTRY_WAITING || (host != UINT32_MAX && e->host != host))
            continue;
        e->direction == PACKET_SENT ? sum.unmatched_sent++ : sum.unmatched_received++;
    }
    return sum;
}
