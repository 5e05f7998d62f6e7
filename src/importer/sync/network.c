/* Relates many clocks: pairs, tree, composed maps and errors. */
#include "importer/sync/network.h"

#include "base/error.h"

#include <math.h>

void sync_network_init(struct sync_network *n, uint32_t n_hosts, enum sync_method method, struct sync_limits limits)
{
    *n = (struct sync_network){.n_hosts = n_hosts, .method = method, .limits = limits};
}

void sync_network_free(struct sync_network *n)
{
    for (size_t i = 0; i < n->pairs.n; i++) {
        sync_windows_free(&n->pairs.p[i].windows);
        incremental_sync_free(&n->pairs.p[i].incremental);
    }
    vec_free(&n->pairs);
    vec_free(&n->hosts);
    u64map_free(&n->pair_of);
    *n = (struct sync_network){0};
}

static struct sync_pair *pair_of(struct sync_network *n, uint32_t a, uint32_t b)
{
    uint32_t ref = a < b ? a : b, other = a < b ? b : a;
    bool added;
    uint64_t *at = u64map_put(&n->pair_of, (uint64_t)ref << 32 | other, &added);
    if (!at)
        return NULL;
    if (added) {
        struct sync_pair *p = vec_add(&n->pairs);
        if (!p) {
            u64map_del(&n->pair_of, (uint64_t)ref << 32 | other);
            return NULL;
        }
        p->ref = ref;
        p->other = other;
        incremental_sync_init(&p->incremental);
        *at = n->pairs.n - 1;
    }
    return &n->pairs.p[*at];
}

int sync_network_message(struct sync_network *n, uint32_t sender, int64_t send_ts, uint32_t receiver,
                         int64_t receive_ts)
{
    if (sender == receiver || sender >= n->n_hosts || receiver >= n->n_hosts)
        return -MRD_EINVALID;
    struct sync_pair *p = pair_of(n, sender, receiver);
    if (!p)
        return -MRD_ENOMEM;
    bool from_ref = sender == p->ref;
    enum sync_kind kind = from_ref ? SYNC_ABOVE : SYNC_BELOW;
    int64_t x = from_ref ? send_ts : receive_ts, y = from_ref ? receive_ts : send_ts;
    int rc = sync_windows_add(&p->windows, kind, x, y);
    if (!rc && n->method == SYNC_METHOD_TRACE_COMPASS)
        rc = incremental_sync_add(&p->incremental, kind, x, y);
    if (!rc)
        from_ref ? p->n_to_other++ : p->n_to_ref++;
    return rc;
}

/* The largest error over the messages' span: the bound is convex in each window, so its ends are where it is largest.
 */
static int64_t span_error(const struct sync_pair *p)
{
    int64_t worst = -1;
    for (size_t i = 0; i < p->windows.windows.n; i++) {
        const struct sync_window *w = &p->windows.windows.p[i];
        if (!w->has_transform)
            continue;
        int64_t a = sync_transform_error(&w->transform, &w->hull, w->x_begin);
        int64_t b = sync_transform_error(&w->transform, &w->hull, w->x_end);
        worst = a > worst ? a : worst;
        worst = b > worst ? b : worst;
    }
    return worst < 0 ? INT64_MAX : worst;
}

static int solve_pair(struct sync_network *n, struct sync_pair *p)
{
    int rc = sync_windows_solve(&p->windows, &n->limits);
    if (rc)
        return rc;
    p->quality = SYNC_ABSENT;
    for (size_t i = 0; i < p->windows.windows.n; i++) {
        enum sync_quality q = p->windows.windows.p[i].hull.quality;
        if (q != SYNC_FAIL && q > p->quality)
            p->quality = q;
        else if (q == SYNC_FAIL && p->quality == SYNC_ABSENT)
            p->quality = SYNC_FAIL;
    }
    p->max_error_ns = span_error(p);
    if (n->method == SYNC_METHOD_TRACE_COMPASS)
        p->quality = p->incremental.quality;
    return 0;
}

/* Whether the pair has a map at all. */
static bool usable(const struct sync_network *n, const struct sync_pair *p)
{
    if (n->method == SYNC_METHOD_TRACE_COMPASS)
        return p->quality == SYNC_ACCURATE || p->quality == SYNC_APPROXIMATE ||
               (p->quality == SYNC_FAIL && (p->incremental.alpha != 1 || p->incremental.beta != 0));
    return p->max_error_ns != INT64_MAX;
}

static double weight(const struct sync_network *n, const struct sync_pair *p)
{
    return n->method == SYNC_METHOD_TRACE_COMPASS ? 1 : (double)p->max_error_ns + 1;
}

/* Cheapest ways from `root` to all hosts it can reach, into distance[] and the hosts when `write`. O(hosts * pairs),
 * which is nothing beside finding the messages. */
static double grow_tree(struct sync_network *n, uint32_t root, double *distance, bool write, uint32_t island)
{
    double sum = 0;
    for (uint32_t i = 0; i < n->n_hosts; i++)
        distance[i] = INFINITY;
    distance[root] = 0;
    if (write)
        n->hosts.p[root] = (struct sync_host){.parent = SYNC_NO_HOST, .island = island};
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t k = 0; k < n->pairs.n; k++) {
            struct sync_pair *p = &n->pairs.p[k];
            if (!usable(n, p))
                continue;
            for (int way = 0; way < 2; way++) {
                uint32_t from = way ? p->other : p->ref, to = way ? p->ref : p->other;
                if (distance[from] + weight(n, p) >= distance[to])
                    continue;
                distance[to] = distance[from] + weight(n, p);
                changed = true;
                if (write)
                    n->hosts.p[to] = (struct sync_host){(int)from, (uint32_t)k, island, n->hosts.p[from].hops + 1};
            }
        }
    }
    for (uint32_t i = 0; i < n->n_hosts; i++)
        sum += isinf(distance[i]) ? 0 : distance[i];
    return sum;
}

/* The host that reaches the most others at the least total error, among those not placed yet. */
static uint32_t best_root(struct sync_network *n, const bool *placed, double *distance)
{
    uint32_t best = 0, best_reach = 0;
    double best_sum = INFINITY;
    for (uint32_t i = 0; i < n->n_hosts; i++) {
        if (placed[i])
            continue;
        double sum = grow_tree(n, i, distance, false, 0);
        uint32_t reach = 0;
        for (uint32_t k = 0; k < n->n_hosts; k++)
            reach += !isinf(distance[k]);
        if (reach > best_reach || (reach == best_reach && sum < best_sum)) {
            best = i;
            best_reach = reach;
            best_sum = sum;
        }
    }
    return best;
}

int sync_network_solve(struct sync_network *n, int reference)
{
    for (size_t i = 0; i < n->pairs.n; i++) {
        int rc = solve_pair(n, &n->pairs.p[i]);
        if (rc)
            return rc;
    }
    vec_clear(&n->hosts);
    if (!vec_reserve(&n->hosts, n->n_hosts + 1))
        return -MRD_ENOMEM;
    n->hosts.n = n->n_hosts;
    memset(n->hosts.p, 0, n->n_hosts * sizeof *n->hosts.p);
    double *distance = mem_alloc((n->n_hosts + 1) * sizeof *distance);
    bool *placed = mem_zalloc(n->n_hosts + 1);
    int rc = distance && placed ? 0 : -MRD_ENOMEM;
    n->n_islands = 0;
    for (uint32_t left = n->n_hosts; !rc && left;) {
        bool chosen = n->n_islands == 0 && reference >= 0 && (uint32_t)reference < n->n_hosts;
        uint32_t root = chosen ? (uint32_t)reference : best_root(n, placed, distance);
        if (n->n_islands == 0)
            n->reference = root;
        grow_tree(n, root, distance, true, n->n_islands++);
        for (uint32_t i = 0; i < n->n_hosts; i++) {
            left -= !placed[i] && !isinf(distance[i]);
            placed[i] = placed[i] || !isinf(distance[i]);
        }
    }
    for (uint32_t i = 0; !rc && i < n->n_hosts; i++)
        if (n->hosts.p[i].parent != SYNC_NO_HOST)
            n->pairs.p[n->hosts.p[i].pair].in_tree = true;
    mem_free(distance);
    mem_free(placed);
    return rc;
}

static int64_t clamp(long double v, int64_t lo, int64_t hi)
{
    return v <= (long double)lo ? lo : v >= (long double)hi ? hi : (int64_t)llrintl(v);
}

/* Trace Compass' line in integers, anchored at the first point it has. It may run backwards where clocks do; a map may
 * not. */
static struct sync_transform incremental_transform(const struct incremental_sync *s)
{
    const long double one = 4611686018427387904.0L;
    const sync_points *h = s->hull[0].n ? &s->hull[0] : &s->hull[1];
    int64_t x0 = h->n ? h->p[0].x : 0;
    long double y0 = s->alpha * (long double)x0 + s->beta;
    return (struct sync_transform){x0, clamp(y0, INT64_MIN, INT64_MAX),
                                   clamp((s->alpha - 1) * one, 1 - ((int64_t)1 << 62), INT64_MAX)};
}

bool sync_pair_formula(const struct sync_network *n, const struct sync_pair *p, int64_t x, long double *slope,
                       long double *offset)
{
    const struct sync_window *w = sync_windows_at(&p->windows, x);
    long double a, b;
    if (n->method == SYNC_METHOD_TRACE_COMPASS) {
        a = p->incremental.alpha;
        b = p->incremental.beta;
    } else if (w) {
        a = 1 + (long double)w->transform.slope_minus_one / 4611686018427387904.0L;
        b = (long double)w->transform.y0 - a * (long double)w->transform.x0;
    } else {
        return false;
    }
    *slope = 1 / a;
    *offset = -b / a;
    return true;
}

int64_t sync_pair_apply(const struct sync_network *n, const struct sync_pair *p, int64_t x, int64_t *error)
{
    int64_t y = x;
    if (error)
        *error = INT64_MAX;
    if (n->method == SYNC_METHOD_TRACE_COMPASS) {
        struct sync_transform t = incremental_transform(&p->incremental);
        return sync_transform_apply(&t, x);
    }
    sync_windows_apply(&p->windows, x, &y, error);
    return y;
}

int64_t sync_pair_invert(const struct sync_network *n, const struct sync_pair *p, int64_t y, int64_t *error)
{
    if (error)
        *error = INT64_MAX;
    if (n->method == SYNC_METHOD_TRACE_COMPASS) {
        struct sync_transform t = incremental_transform(&p->incremental);
        return sync_transform_invert(&t, y);
    }
    int64_t x = y, back;
    if (sync_windows_invert(&p->windows, y, &x) && error)
        sync_windows_apply(&p->windows, x, &back, error);
    return x;
}

static void add_error(int64_t *sum, int64_t hop)
{
    *sum = hop == INT64_MAX || *sum == INT64_MAX ? INT64_MAX : sync_saturate((__int128)*sum + hop);
}

int64_t sync_network_to_reference(const struct sync_network *n, uint32_t host, int64_t ts, int64_t *error)
{
    int64_t sum = 0;
    for (uint32_t at = host; n->hosts.p[at].parent != SYNC_NO_HOST; at = (uint32_t)n->hosts.p[at].parent) {
        const struct sync_pair *p = &n->pairs.p[n->hosts.p[at].pair];
        int64_t hop;
        ts = at == p->other ? sync_pair_invert(n, p, ts, error ? &hop : NULL)
                            : sync_pair_apply(n, p, ts, error ? &hop : NULL);
        if (error)
            add_error(&sum, hop);
    }
    if (error)
        *error = sum;
    return ts;
}

int64_t sync_network_from_reference(const struct sync_network *n, uint32_t host, int64_t ts, int64_t *error)
{
    /* The way down: the hosts from the reference to `host` are those of the way up, backwards. */
    int64_t sum = 0;
    uint32_t hops = n->hosts.p[host].hops;
    for (uint32_t level = 1; level <= hops; level++) {
        uint32_t at = host;
        for (uint32_t up = hops; up > level; up--)
            at = (uint32_t)n->hosts.p[at].parent;
        const struct sync_pair *p = &n->pairs.p[n->hosts.p[at].pair];
        int64_t hop;
        ts = at == p->other ? sync_pair_apply(n, p, ts, error ? &hop : NULL)
                            : sync_pair_invert(n, p, ts, error ? &hop : NULL);
        if (error)
            add_error(&sum, hop);
    }
    if (error)
        *error = sum;
    return ts;
}
