/* Relates the clocks of recordings that are complete. */
#include "importer/sync/sync_session.h"

#include <stdlib.h>

/* Matched keys stay taken this long: a segment is not sent again later than this. */
#define RETIRE_NS (120 * 1000000000ll)

int sync_session_packet(struct sync_session *s, uint32_t host, enum packet_direction direction, int64_t ts,
                        struct packet_key key)
{
    struct sync_packet_event e = {ts, key, host, (uint8_t)direction};
    return vec_push(&s->events, e) ? 0 : -MRD_ENOMEM;
}

static int by_time(const void *pa, const void *pb)
{
    const struct sync_packet_event *a = pa, *b = pb;
    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->direction > b->direction) - (a->direction < b->direction);
}

static void message(void *ctx, uint32_t sender, int64_t send_ts, uint32_t receiver, int64_t receive_ts)
{
    struct sync_session *s = ctx;
    int rc = sync_network_message(&s->network, sender, send_ts, receiver, receive_ts);
    if (rc == -MRD_ENOMEM)
        s->rc = rc;
}

/* How much the keys of a host tell, from the layout that its tracer writes. */
enum key_form { KEYS_NONE, KEYS_OF_ADDON, KEYS_WITHOUT_ADDRESSES, KEYS_FULL };

static enum key_form form_of(const struct packet_key *k)
{
    if (k->family == PACKET_PING)
        return KEYS_NONE;
    return k->flow ? KEYS_FULL : k->family == PACKET_TCP_ADDON ? KEYS_OF_ADDON : KEYS_WITHOUT_ADDRESSES;
}

struct host_keys {
    enum key_form best;
    bool has_id;
};

/* Keys of different layouts never equal each other. When a host has nothing but a poorer one, all are cut down to what
 * every layout tells; hosts that all have the same keep their keys whole. */
static int equalise_keys(struct sync_session *s, uint32_t n_hosts)
{
    struct host_keys *hosts = mem_zalloc((n_hosts ? n_hosts : 1) * sizeof *hosts);
    if (!hosts)
        return -MRD_ENOMEM;
    for (size_t i = 0; i < s->events.n; i++) {
        const struct packet_key *key = &s->events.p[i].key;
        struct host_keys *h = &hosts[s->events.p[i].host];
        h->best = form_of(key) > h->best ? form_of(key) : h->best;
        h->has_id |= key->ip_id != 0;
    }
    enum key_form least = KEYS_FULL, most = KEYS_NONE;
    bool some_have_ids = false, all_have_ids = true;
    for (const struct host_keys *h = hosts; h < hosts + n_hosts; h++) {
        if (h->best == KEYS_NONE)
            continue;
        least = h->best < least ? h->best : least;
        most = h->best > most ? h->best : most;
        some_have_ids |= h->has_id;
        all_have_ids &= h->has_id;
    }
    mem_free(hosts);
    for (size_t i = 0; i < s->events.n; i++) {
        struct packet_key *key = &s->events.p[i].key;
        if (least < most && key->family != PACKET_PING)
            *key = packet_key_short(key);
        else if (some_have_ids && !all_have_ids)
            key->ip_id = 0;
    }
    return 0;
}

/* Counts the messages that the maps turn round, both times taken to the reference. */
static void count_inverted(struct sync_session *s)
{
    for (size_t i = 0; i < s->network.pairs.n; i++) {
        struct sync_pair *p = &s->network.pairs.p[i];
        for (size_t k = 0; k < p->windows.messages.n; k++) {
            const struct sync_message *m = &p->windows.messages.p[k];
            bool to_other = m->kind == SYNC_ABOVE;
            int64_t ref_ts = sync_network_to_reference(&s->network, p->ref, m->x, NULL);
            int64_t other_ts = sync_network_to_reference(&s->network, p->other, m->y, NULL);
            p->n_inverted_before += to_other ? m->y < m->x : m->x < m->y;
            p->n_inverted_after += to_other ? other_ts < ref_ts : ref_ts < other_ts;
        }
    }
}

int sync_session_solve(struct sync_session *s, uint32_t n_hosts, enum sync_method method, struct sync_limits limits,
                       int reference)
{
    s->n_hosts = n_hosts;
    sync_network_init(&s->network, n_hosts, method, limits);
    s->matcher = matcher_open(method == SYNC_METHOD_TRACE_COMPASS ? -1 : RETIRE_NS, message, s);
    if (!s->matcher)
        return -MRD_ENOMEM;
    s->rc = equalise_keys(s, n_hosts);
    if (s->events.n)
        qsort(s->events.p, s->events.n, sizeof *s->events.p, by_time);
    for (size_t i = 0; i < s->events.n && !s->rc; i++) {
        const struct sync_packet_event *e = &s->events.p[i];
        if (!matcher_event(s->matcher, e->host, e->direction, e->ts, e->key))
            s->rc = -MRD_ENOMEM;
    }
    vec_free(&s->events);
    int rc = s->rc ? s->rc : sync_network_solve(&s->network, reference);
    if (!rc)
        count_inverted(s);
    return rc;
}

static bool on_chain(const sync_points *chain, int64_t x, int64_t y)
{
    for (size_t i = 0; i < chain->n; i++)
        if (chain->p[i].x == x && chain->p[i].y == y)
            return true;
    return false;
}

static void write_points(const struct sync_pair *p, uint32_t row, struct storage *st)
{
    strid kinds[2] = {[SYNC_BELOW] = strpool_intern_str(&st->strings, "below"),
                      [SYNC_ABOVE] = strpool_intern_str(&st->strings, "above")};
    for (size_t w = 0; w < p->windows.windows.n; w++) {
        const struct sync_window *win = &p->windows.windows.p[w];
        for (size_t k = win->first; k < win->first + win->n; k++) {
            const struct sync_message *m = &p->windows.messages.p[k];
            clock_sync_point_insert(
                st, &(struct clock_sync_point_row){.pair_id = row,
                                                   .x = m->x,
                                                   .y = m->y,
                                                   .kind = kinds[m->kind],
                                                   .window_index = (int64_t)w,
                                                   .on_hull = on_chain(&win->hull.chain[m->kind], m->x, m->y)});
        }
    }
}

static double drift_ppm(const struct sync_network *n, const struct sync_pair *p, int64_t x)
{
    if (n->method == SYNC_METHOD_TRACE_COMPASS)
        return (double)((p->incremental.alpha - 1) * 1e6L);
    const struct sync_window *w = sync_windows_at(&p->windows, x);
    return w ? sync_transform_drift_ppb(&w->transform) / 1e3 : 0;
}

void sync_session_write(const struct sync_session *s, struct storage *st, const uint32_t *machines)
{
    static const char *const methods[] = {
#define X(name, text) text,
        SYNC_METHODS(X)
#undef X
    };
    for (size_t i = 0; i < s->network.pairs.n; i++) {
        const struct sync_pair *p = &s->network.pairs.p[i];
        struct match_counts a = matcher_counts(s->matcher, p->ref), b = matcher_counts(s->matcher, p->other);
        const struct sync_message *first = p->windows.messages.p, *last = first + p->windows.messages.n - 1;
        int64_t middle = first->x + (last->x - first->x) / 2;
        size_t hull[2] = {0, 0};
        for (size_t w = 0; w < p->windows.windows.n; w++)
            for (int kind = 0; kind < 2; kind++)
                hull[kind] += p->windows.windows.p[w].hull.chain[kind].n;
        long double slope = 0, offset = 0;
        bool formula = sync_pair_formula(&s->network, p, middle, &slope, &offset);
        bool mapped = sync_windows_at(&p->windows, middle) || s->network.method == SYNC_METHOD_TRACE_COMPASS;
        uint32_t row = clock_sync_pair_insert(
            st, &(struct clock_sync_pair_row){
                    .ref_machine_id = machines[p->ref],
                    .other_machine_id = machines[p->other],
                    .quality = strpool_intern_str(&st->strings, sync_quality_text(p->quality)),
                    .slope_ppm = mapped ? drift_ppm(&s->network, p, middle) : column_f64(COL_NULL_F64),
                    .offset_ns = mapped ? sync_pair_apply(&s->network, p, middle, NULL) - middle : COL_NULL,
                    .max_error_ns = p->max_error_ns == INT64_MAX ? COL_NULL : p->max_error_ns,
                    .matched = (int64_t)(p->n_to_other + p->n_to_ref),
                    .in_hull_above = (int64_t)hull[SYNC_ABOVE],
                    .in_hull_below = (int64_t)hull[SYNC_BELOW],
                    .unmatched_send = (int64_t)(a.unmatched_sent + b.unmatched_sent),
                    .unmatched_recv = (int64_t)(a.unmatched_received + b.unmatched_received),
                    .x_begin = first->x,
                    .x_end = last->x,
                    .windows = (int64_t)p->windows.windows.n,
                    .accurate = (int64_t)p->incremental.n_accurate,
                    .to_ref_slope = formula ? (double)slope : column_f64(COL_NULL_F64),
                    .to_ref_offset_ns = formula ? (double)offset : column_f64(COL_NULL_F64),
                    .inverted_before = (int64_t)p->n_inverted_before,
                    .inverted_after = (int64_t)p->n_inverted_after,
                    .in_tree = p->in_tree,
                    .method = strpool_intern_str(&st->strings, methods[s->network.method])});
        if (row != UINT32_MAX)
            write_points(p, row, st);
    }
}

void sync_session_free(struct sync_session *s)
{
    vec_free(&s->events);
    sync_network_free(&s->network);
    matcher_close(s->matcher);
    *s = (struct sync_session){0};
}
