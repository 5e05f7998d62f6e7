/* From when to when a session may have nothing of a producer on another machine.
 *
 * A machine that dies, or whose link breaks, is noticed late: the time of the notice says nothing. What is told is an
 * upper bound. It begins where the last data that arrived ends: our producers say up to which time they have handed
 * over all that was written; of others, the sequence counts that was silent for longest, as each may hold a chunk, and
 * a reader has the time of its last packet. It ends when a producer of that name says on that machine that it has
 * begun, or hands something over. */
#include "base/bisect.h"
#include "capture/service/producers.h"
#include "capture/service/relay.h"
#include "capture/service/state.h"
#include "capture/service/tracing_session.h"
#include "wire/fields.h"

#include <stdlib.h>

enum { ABSENCES_MAX = 256 };

/* A time of the machine's BOOTTIME on ours, by the last comparison; 0 without any. */
static uint64_t on_our_clock(const struct service_machine *m, uint64_t theirs_ns)
{
    const struct clock_round *r = m->burst.n ? vec_last(&m->burst) : m->rounds.n ? vec_last(&m->rounds) : NULL;
    if (!r)
        return 0;
    uint64_t sent = clock_readings_get(&r->client[1], CLOCK_BOOTTIME_ID);
    return theirs_ns + (clock_readings_get(&r->host[1], CLOCK_BOOTTIME_ID) - sent);
}

/* Of a producer that does not tell: when the chunk before the last one came, of the sequence for which that is longest
 * ago. What was written while the last chunk was on its way is in none that came. UINT64_MAX without any. */
static uint64_t longest_silence(const struct session *s, const struct service_producer *p)
{
    uint64_t since = UINT64_MAX;
    for (size_t i = 0; i < s->buffers.n; i++) {
        const struct trace_sequence_stats *q;
        for (struct session_ring_place at = {0}; (q = session_ring_next(s->buffers.p[i].buffer, &at));)
            if (q->who.producer_id == p->id && q->before_last_at_ns < since)
                since = q->before_last_at_ns;
    }
    return since;
}

static uint64_t missing_since(const struct session *s, const struct service_machine *m,
                              const struct service_producer *p)
{
    uint64_t since = p->whole_until_ns ? on_our_clock(m, p->whole_until_ns) : longest_silence(s, p);
    if (!since && p->whole_until_ns) /* nobody compares clocks */
        since = p->commit_ns;
    if (since > p->commit_ns) /* it has arrived: it was not written later */
        since = p->commit_ns;
    if (since < p->connected_ns)
        since = p->connected_ns;
    return since < s->started_boot_ns ? s->started_boot_ns : since;
}

static bool is_of(const struct machine_absence *a, const struct service_producer *p)
{
    return a->producer_id == p->id || a->back_id == p->id;
}

bool absence_begin(struct session *s, struct machine_losses *l, const struct service_machine *m,
                   const struct service_producer *p)
{
    for (size_t i = 0; i < l->absences.n; i++) {
        struct machine_absence *a = &l->absences.p[i];
        if (a->until_ns || !is_of(a, p))
            continue;
        a->back_id = 0; /* it was on its way back, or this is told already */
        return false;
    }
    struct machine_absence a = {.producer_id = p->id, .since_ns = missing_since(s, m, p)};
    snprintf(a.producer, sizeof a.producer, "%s", p->name);
    if (l->absences.n < ABSENCES_MAX && vec_push(&l->absences, a))
        return true;
    if (l->absences.n) { /* too many: the last one stands for all that follow */
        struct machine_absence *last = vec_last(&l->absences);
        last->since_ns = a.since_ns < last->since_ns ? a.since_ns : last->since_ns;
        last->until_ns = 0;
        last->back_id = 0;
        *last->producer = 0;
    }
    return true;
}

bool absence_returns(struct machine_losses *l, const struct service_producer *p)
{
    for (size_t i = 0; i < l->absences.n; i++)
        if (l->absences.p[i].back_id == p->id)
            return false; /* one producer fills one gap, however many data sources it has */
    for (size_t i = 0; i < l->absences.n; i++) {
        struct machine_absence *a = &l->absences.p[i];
        if (a->until_ns || a->back_id || strncmp(a->producer, p->name, sizeof a->producer - 1) != 0)
            continue; /* a longer name is kept as far as it fits */
        a->back_id = p->id;
        return true;
    }
    return false;
}

void absence_end(struct machine_losses *l, const struct service_producer *p)
{
    for (size_t i = 0; i < l->absences.n; i++)
        if (l->absences.p[i].back_id == p->id && !l->absences.p[i].until_ns)
            l->absences.p[i].until_ns = clock_boot_ns();
}

static int by_begin(const void *a, const void *b)
{
    uint64_t x = ((const struct machine_absence *)a)->since_ns, y = ((const struct machine_absence *)b)->since_ns;
    return x < y ? -1 : x > y;
}

uint64_t absence_total_ns(struct machine_losses *l, uint64_t now_ns)
{
    uint64_t total = 0, covered = 0; /* up to there */
    if (l->absences.n)               /* their order does not matter to anybody */
        qsort(l->absences.p, l->absences.n, sizeof *l->absences.p, by_begin);
    for (size_t i = 0; i < l->absences.n; i++) {
        const struct machine_absence *a = &l->absences.p[i];
        uint64_t from = a->since_ns > covered ? a->since_ns : covered, to = a->until_ns ? a->until_ns : now_ns;
        if (to <= from)
            continue;
        total += to - from;
        covered = to;
    }
    return total;
}

static int by_producer(const void *a, const void *b)
{
    const struct sequence_of_producer *x = a, *y = b;
    if (x->producer_id != y->producer_id)
        return x->producer_id < y->producer_id ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

bool absence_list_sequences(const struct session *s, struct sequences_of_producers *all)
{
    for (size_t i = 0; i < s->buffers.n; i++) {
        struct sequence_of_producer one;
        for (struct session_ring_place at = {0}; (one.sequence = session_ring_next(s->buffers.p[i].buffer, &at));) {
            one.producer_id = one.sequence->who.producer_id;
            one.order = (uint32_t)all->list.n;
            if (!vec_push(&all->list, one))
                return false;
        }
    }
    if (all->list.n)
        qsort(all->list.p, all->list.n, sizeof *all->list.p, by_producer);
    return true;
}

static void put_sequences(struct session *s, const struct sequences_of_producers *all, uint16_t producer_id,
                          struct pb_writer *w)
{
    size_t at = all->list.n;
    BISECT(at, i, all->list.p[i].producer_id < producer_id);
    for (; at < all->list.n && all->list.p[at].producer_id == producer_id; at++) {
        const struct trace_sequence_stats *q = all->list.p[at].sequence;
        size_t mark = pb_begin(w, MACHINE_LOSSES_ABSENCE_SEQUENCES);
        pb_put_varint(w, MACHINE_LOSSES_ABSENCE_SEQUENCE_ID, session_sequence_id(s, &q->who));
        pb_put_varint(w, MACHINE_LOSSES_ABSENCE_SEQUENCE_LAST_NS, q->last_at_ns);
        pb_end(w, mark);
    }
}

void absence_put(struct session *s, const struct machine_losses *l, const struct sequences_of_producers *all,
                 struct pb_writer *w, uint32_t field)
{
    for (size_t i = 0; i < l->absences.n; i++) {
        const struct machine_absence *a = &l->absences.p[i];
        size_t mark = pb_begin(w, field);
        if (*a->producer)
            pb_put_str(w, MACHINE_LOSSES_ABSENCE_PRODUCER, a->producer);
        pb_put_varint(w, MACHINE_LOSSES_ABSENCE_SINCE_NS, a->since_ns);
        if (a->until_ns)
            pb_put_varint(w, MACHINE_LOSSES_ABSENCE_UNTIL_NS, a->until_ns);
        put_sequences(s, all, a->producer_id, w);
        pb_end(w, mark);
    }
}
