/* Machines that reboot and keep their id: which boot a comparison, and which boot a packet, is of. */
#include "importer/clock/remote_private.h"
#include "importer/core/sequence.h"
#include "wire/fields.h"
#include "wire/pb_cursor.h"

enum { MAX_BOOTS = 64, SERVICE_SEQUENCE = 1 };

enum { /* fields of TracePacket, and of messages in it */
       BUNDLE_EVENT = 2,
       BUNDLE_COMPACT_SCHED = 4,
       EVENT_TIMESTAMP = 1,
       COMPACT_SWITCH_TIMESTAMP = 1,
       COMPACT_WAKING_TIMESTAMP = 7,
};

struct remote_machine *remote_add_boot(struct remote_sync *s, uint64_t raw_id, struct remote_machine *before)
{
    struct remote_machine *r = mem_zalloc(sizeof *r);
    if (!r || !vec_push(&s->machines, r)) {
        mem_free(r);
        s->im->failed = true;
        return NULL;
    }
    r->raw_id = raw_id;
    r->machine = NO_MACHINE;
    r->current = r;
    if (before) {
        r->boot = before->boot + 1;
        before->next_boot = r;
        s->rebooted = true;
    }
    return r;
}

/* Has the machine booted since the round before? Its clock shows less than it did, and not more than the time that has
 * gone by (clocks run within 1,000 ppm of each other): a clock that was only set back shows more. */
static bool starts_anew(const struct remote_machine *r, int64_t remote, int64_t host)
{
    return r->seen && r->boot + 1 < MAX_BOOTS && remote >= 0 && remote < r->last_remote && host > r->last_host &&
           (__int128)remote - remote / 1000 <= (__int128)host - r->last_host;
}

bool remote_deal_rounds(struct remote_sync *s, struct remote_machine *first, const struct clock_rounds *rounds,
                        bool split, remote_rounds_fn each)
{
    struct remote_machine *r = first;
    size_t from = 0;
    while (r->next_boot)
        r = r->next_boot;
    for (size_t i = 0; i < rounds->n; i++) {
        const int64_t *remote = round_value(rounds->p[i].client, rounds->p[i].n_client, CLOCK_ID_BOOTTIME);
        const int64_t *host = round_value(rounds->p[i].host, rounds->p[i].n_host, CLOCK_ID_BOOTTIME);
        if (!remote || !host)
            continue;
        if (split && starts_anew(r, *remote, *host)) {
            struct remote_machine *next = remote_add_boot(s, r->raw_id, r);
            if (!next || !each(r, &(struct clock_rounds){rounds->p + from, i - from, 0}))
                return false;
            next->host = r->host;
            next->clock_file = r->clock_file;
            r = next;
            from = i;
        }
        if (!r->seen) {
            r->first_remote = *remote;
            r->first_host = *host;
        }
        r->last_remote = *remote;
        r->last_host = *host;
        r->seen = true;
    }
    return each(r, &(struct clock_rounds){from ? rounds->p + from : rounds->p, rounds->n - from, 0});
}

struct remote_machine *remote_boot_at(struct remote_machine *first, int64_t host)
{
    struct remote_machine *r = first;
    while (r->next_boot && r->next_boot->seen && r->next_boot->first_host <= host)
        r = r->next_boot;
    return r;
}

/* BOOTTIME in a ClockSnapshot. */
static bool snapshot_moment(struct slice snapshot, int64_t *moment)
{
    struct pb_cursor c = pb_cursor(snapshot);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        uint32_t id = 0;
        bool has_value = false;
        struct pb_cursor clock = pb_cursor(f.id == CLOCK_SNAPSHOT_CLOCKS ? pb_bytes(&f) : slice_of(NULL, 0));
        while (pb_next(&clock, &g)) {
            if (g.id == CLOCK_SNAPSHOT_CLOCK_CLOCK_ID)
                id = pb_u32(&g);
            else if (g.id == CLOCK_SNAPSHOT_CLOCK_TIMESTAMP) {
                *moment = pb_i64(&g);
                has_value = true;
            }
        }
        if (id == CLOCK_ID_BOOTTIME)
            return has_value;
    }
    return false;
}

/* The time of the first event of an ftrace bundle. */
static bool bundle_moment(struct slice bundle, int64_t *moment)
{
    struct pb_cursor c = pb_cursor(bundle);
    struct pb_field f, g;
    while (pb_next(&c, &f)) {
        bool compact = f.id == BUNDLE_COMPACT_SCHED, event = f.id == BUNDLE_EVENT;
        struct pb_cursor in = pb_cursor(compact || event ? pb_bytes(&f) : slice_of(NULL, 0));
        while (pb_next(&in, &g)) {
            struct slice list = pb_bytes(&g);
            uint64_t first = pb_u64(&g);
            bool times = compact && (g.id == COMPACT_SWITCH_TIMESTAMP || g.id == COMPACT_WAKING_TIMESTAMP);
            if ((event && g.id == EVENT_TIMESTAMP) || (times && pb_varint(&list.p, list.p + list.len, &first))) {
                *moment = (int64_t)first;
                return true;
            }
        }
    }
    return false;
}

/* What the packet says of the time since its machine booted; false when that is not sure (a clock of its sequence). */
static bool packet_moment(struct slice packet, int64_t *moment)
{
    struct pb_cursor c = pb_cursor(packet);
    struct pb_field f;
    int64_t timestamp = 0;
    bool has_timestamp = false, has_defaults = false;
    uint32_t clock = 0;
    while (pb_next(&c, &f)) {
        switch (f.id) {
        case TRACE_PACKET_CLOCK_SNAPSHOT:
            return snapshot_moment(pb_bytes(&f), moment);
        case TRACE_PACKET_FTRACE_EVENTS:
            return bundle_moment(pb_bytes(&f), moment);
        case TRACE_PACKET_TIMESTAMP:
            timestamp = pb_i64(&f);
            has_timestamp = true;
            break;
        case TRACE_PACKET_TIMESTAMP_CLOCK_ID:
            clock = pb_u32(&f);
            break;
        case TRACE_PACKET_TRACE_PACKET_DEFAULTS:
            has_defaults = true;
            break;
        }
    }
    *moment = timestamp;
    return has_timestamp && (clock ? clock >= CLOCK_ID_MONOTONIC && clock <= CLOCK_ID_BOOTTIME : !has_defaults);
}

/* How far a reading of the machine's clock lies outside the comparisons of a boot. While more of them may come, the
 * latest boot is open at its end: nothing waits longer than this before it is written. */
static uint64_t distance(const struct remote_sync *s, const struct remote_machine *r, int64_t moment)
{
    static const uint64_t longest_wait_ns = 600 * UINT64_C(1000000000);
    if (moment < r->first_remote)
        return (uint64_t)r->first_remote - (uint64_t)moment;
    uint64_t behind = moment > r->last_remote ? (uint64_t)moment - (uint64_t)r->last_remote : 0;
    return !s->known && !r->next_boot && behind < longest_wait_ns ? 0 : behind;
}

/* Whether the machine's clock can have shown so much in this boot: it had ended when the next one began, by what that
 * one's first comparison shows (clocks run within 1,000 ppm of each other). */
static bool can_show(const struct remote_machine *r, int64_t moment)
{
    const struct remote_machine *next = r->next_boot;
    if (!r->seen || !next || !next->seen)
        return r->seen;
    __int128 left = (__int128)next->first_host - r->last_host - next->first_remote;
    __int128 slack = ((__int128)next->first_host - r->last_host + next->first_remote) / 1000 + 1;
    return moment <= r->last_remote + left + slack;
}

/* The boot in whose time the packet lies best; where that cannot be told, the one that the file has come to. *sure says
 * that no other boot can have sent it, or that it lies among the comparisons of this one alone. */
static const struct remote_machine *boot_of(const struct remote_sync *s, const struct remote_machine *first,
                                            struct slice packet, bool *sure)
{
    const struct remote_machine *best = NULL;
    unsigned possible = 0, among = 0;
    int64_t moment;
    *sure = true;
    if (!packet_moment(packet, &moment))
        return first->current;
    for (const struct remote_machine *r = first; r; r = r->next_boot) {
        if (!can_show(r, moment))
            continue;
        possible++;
        among += moment >= r->first_remote && moment <= r->last_remote;
        if (!best || distance(s, r, moment) < distance(s, best, moment) ||
            (r == first->current && distance(s, r, moment) == distance(s, best, moment)))
            best = r;
    }
    *sure = possible <= 1 || among == 1;
    return best ? best : first->current;
}

struct machine_ctx *remote_sync_boot(struct remote_sync *s, struct machine_ctx *m, uint32_t sequence,
                                     struct slice packet)
{
    const struct remote_machine *first = NULL;
    if (!s->rebooted || !m->id)
        return m;
    for (size_t i = 0; i < s->machines.n && !first; i++)
        if (s->machines.p[i]->raw_id == m->raw_id)
            first = s->machines.p[i];
    if (!first || !first->next_boot)
        return m;
    for (const struct remote_machine *r = first; r && sequence > SERVICE_SEQUENCE; r = r->next_boot) {
        struct machine_ctx *boot = r->machine > 0 ? s->im->machines.p[r->machine] : NULL;
        const struct sequences *known = boot ? machine_sequences(boot) : NULL;
        if (known && sequences_has(known, sequence))
            return boot;
    }
    bool sure;
    const struct remote_machine *r = boot_of(s, first, packet, &sure);
    struct machine_ctx *boot = importer_machine_boot(s->im, m, r->boot);
    if (!sure && boot && sequence > SERVICE_SEQUENCE)
        stats_add_idx(&s->im->st->stats, boot->id, STAT_clock_sync_boot_unsure, (int32_t)boot->id, 1);
    return boot;
}
