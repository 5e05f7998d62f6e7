/* Decodes the compact lists of scheduler events. */
#include "kernel/compact_sched.h"

#include "base/hash.h"
#include "kernel/encode.h"
#include "wire/pb_cursor.h"

static inline void put(struct compact_sched *c, enum compact_list_no list, uint64_t value)
{
    struct compact_list *l = &c->lists[list];
    l->n = (size_t)(encode_varint(l->bytes + l->n, value) - l->bytes);
}

static inline uint64_t signed_at(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return (uint64_t)(int64_t)v;
}

/* The number of a comm in the table, in order of first use. */
static uint32_t intern(struct compact_sched *c, const uint8_t *p)
{
    struct compact_comm comm;
    memcpy(&comm, p, 16);
    size_t slot = (size_t)hash_combine(comm.text[0], comm.text[1]) % COMPACT_SLOTS;
    for (; c->slots[slot]; slot = (slot + 1) % COMPACT_SLOTS) {
        const struct compact_comm *other = &c->comms[c->slots[slot] - 1];
        if (other->text[0] == comm.text[0] && other->text[1] == comm.text[1])
            return c->slots[slot] - 1u;
    }
    c->comms[c->n_comms] = comm;
    c->slots[slot] = (uint8_t)(c->n_comms + 1);
    return c->n_comms++;
}

void compact_sched_switch(struct compact_sched *c, const uint8_t *event, uint64_t timestamp)
{
    const struct compact_offsets *at = &c->at;
    uint64_t state;
    if (at->prev_state_is_64)
        memcpy(&state, event + at->prev_state, 8);
    else
        state = signed_at(event + at->prev_state);
    put(c, COMPACT_SWITCH_TIMESTAMP, timestamp - c->last_switch);
    put(c, COMPACT_SWITCH_PREV_STATE, state);
    put(c, COMPACT_SWITCH_NEXT_PID, signed_at(event + at->next_pid));
    put(c, COMPACT_SWITCH_NEXT_PRIO, signed_at(event + at->next_prio));
    put(c, COMPACT_SWITCH_NEXT_COMM, intern(c, event + at->next_comm));
    c->last_switch = timestamp;
    c->n_switch++;
}

void compact_sched_waking(struct compact_sched *c, const uint8_t *event, uint64_t timestamp)
{
    const struct compact_offsets *at = &c->at;
    put(c, COMPACT_WAKING_TIMESTAMP, timestamp - c->last_waking);
    put(c, COMPACT_WAKING_PID, signed_at(event + at->pid));
    put(c, COMPACT_WAKING_TARGET_CPU, signed_at(event + at->target_cpu));
    put(c, COMPACT_WAKING_PRIO, signed_at(event + at->prio));
    put(c, COMPACT_WAKING_COMM, intern(c, event + at->comm));
    put(c, COMPACT_WAKING_COMMON_FLAGS, event[at->common_flags]);
    c->last_waking = timestamp;
    c->n_waking++;
}

size_t compact_sched_size(const struct compact_sched *c)
{
    /* the lists differ in length by little: two of them, times their number, would be as good; the sum is exact */
    size_t n = c->n_comms * 18u;
    for (unsigned i = 1; i < COMPACT_LISTS; i++)
        n += c->lists[i].n;
    return n;
}

size_t compact_sched_pieces(const struct compact_sched *c, uint8_t *scratch, struct slice *pieces, size_t *total)
{
    size_t n = 0;
    *total = 0;
    if (!c->n_switch && !c->n_waking)
        return 0;
    uint8_t *q = scratch;
    for (unsigned i = 1; i < COMPACT_LISTS; i++) {
        uint8_t *start = q;
        if (i == COMPACT_INTERN_TABLE) {
            for (unsigned k = 0; k < c->n_comms; k++) {
                const char *text = (const char *)c->comms[k].text;
                q = encode_tag(q, COMPACT_INTERN_TABLE, PB_BYTES);
                q = encode_bytes(q, text, strnlen(text, 16));
            }
        } else if (c->lists[i].n) {
            q = encode_tag(q, i, PB_BYTES);
            q = encode_varint(q, c->lists[i].n);
        }
        if (q > start)
            pieces[n++] = slice_of(start, (size_t)(q - start));
        if (c->lists[i].n)
            pieces[n++] = slice_of(c->lists[i].bytes, c->lists[i].n);
    }
    for (size_t i = 0; i < n; i++)
        *total += pieces[i].len;
    return n;
}

void compact_sched_clear(struct compact_sched *c)
{
    c->n_switch = c->n_waking = c->n_comms = 0;
    c->last_switch = c->last_waking = 0;
    memset(c->slots, 0, sizeof c->slots);
    for (unsigned i = 0; i < COMPACT_LISTS; i++)
        c->lists[i].n = 0;
}
