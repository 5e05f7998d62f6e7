/* The recordings of a load and what joins their clocks. */
#include "importer/clock/recordings.h"

struct recording {
    char *name;
    uint32_t number;
    uint32_t machine; /* row; UINT32_MAX until it is placed */
    struct clock_id clock;
    uint64_t n_packets;
    struct recordings *all;
};

struct recordings {
    VEC(struct recording *)
    hosts;
    struct sync_session session;
    bool solved;
};

/* What LTTng and ftrace recordings keep: a clock good to a thousandth (NTP slews by half of that at most). */
static const struct sync_limits quartz = {.slope_ppb = 1000000};

int recordings_add(struct importer *im, const char *name, uint32_t *number)
{
    if (!im->recordings && !(im->recordings = mem_zalloc(sizeof *im->recordings)))
        return -MRD_ENOMEM;
    struct recordings *all = im->recordings;
    struct recording *r = all->hosts.n < SYNC_MAX_HOSTS ? mem_zalloc(sizeof *r) : NULL;
    if (!r)
        return all->hosts.n < SYNC_MAX_HOSTS ? -MRD_ENOMEM : -MRD_ELIMIT;
    *r = (struct recording){.name = mem_strdup(name), .number = (uint32_t)all->hosts.n, .machine = UINT32_MAX};
    r->all = all;
    if (!r->name || !vec_push(&all->hosts, r)) {
        mem_free(r->name);
        mem_free(r);
        return -MRD_ENOMEM;
    }
    *number = r->number;
    return 0;
}

int recordings_packet(struct importer *im, uint32_t number, enum packet_direction direction, int64_t ts,
                      struct packet_key key)
{
    im->recordings->hosts.p[number]->n_packets++;
    return sync_session_packet(&im->recordings->session, number, direction, ts, key);
}

/* The one that the user named, or the preferred one. */
static int chosen_reference(const struct importer *im, int preferred)
{
    const struct recordings *all = im->recordings;
    for (size_t i = 0; im->opt.sync_reference && i < all->hosts.n; i++)
        if (strcmp(all->hosts.p[i]->name, im->opt.sync_reference) == 0)
            return (int)i;
    return preferred;
}

int recordings_check_reference(const struct importer *im, struct error *err)
{
    const struct recordings *all = im->recordings;
    if (!im->opt.sync_reference || !all || all->hosts.n < 2 || chosen_reference(im, -1) >= 0)
        return 0;
    return error_set(err, -MRD_EINVALID, "there is no host '%s' (reference); the hosts are '%s', '%s'%s",
                     im->opt.sync_reference, all->hosts.p[0]->name, all->hosts.p[1]->name,
                     all->hosts.n > 2 ? " and more" : "");
}

int recordings_solve(struct importer *im, int preferred)
{
    struct recordings *all = im->recordings;
    if (!all || all->hosts.n < 2)
        return 0;
    enum sync_method method = (enum sync_method)im->opt.sync_method;
    struct sync_limits limits = method == SYNC_METHOD_EXACT ? quartz : (struct sync_limits){0};
    int rc = sync_session_solve(&all->session, (uint32_t)all->hosts.n, method, limits, chosen_reference(im, preferred));
    all->solved = rc == 0;
    return rc;
}

static const struct sync_host *host_of(const struct recordings *all, uint32_t number)
{
    return &all->session.network.hosts.p[number];
}

bool recordings_related(const struct importer *im, uint32_t number)
{
    const struct recordings *all = im->recordings;
    if (!all || !all->solved)
        return false;
    for (uint32_t i = 0; i < all->hosts.n; i++)
        if (i != number && host_of(all, i)->island == host_of(all, number)->island)
            return true;
    return false;
}

void recordings_place(struct importer *im, uint32_t number, uint32_t machine, struct clock_id clock)
{
    im->recordings->hosts.p[number]->machine = machine;
    im->recordings->hosts.p[number]->clock = clock;
}

/* The reference of a recording's group. */
static struct recording *root_of(const struct recordings *all, uint32_t number)
{
    while (host_of(all, number)->parent != SYNC_NO_HOST)
        number = (uint32_t)host_of(all, number)->parent;
    return all->hosts.p[number];
}

static int64_t to_root(const void *map, int64_t ts)
{
    const struct recording *r = map;
    return sync_network_to_reference(&r->all->session.network, r->number, ts, NULL);
}

static int64_t from_root(const void *map, int64_t ts)
{
    const struct recording *r = map;
    return sync_network_from_reference(&r->all->session.network, r->number, ts, NULL);
}

/* One row a window of the pair with the next recording on the way to the reference. */
static void write_windows(struct importer *im, const struct recording *r)
{
    const struct sync_network *n = &r->all->session.network;
    const struct sync_pair *p = &n->pairs.p[host_of(r->all, r->number)->pair];
    struct strpool *strings = &im->st->strings;
    bool is_ref = p->ref == r->number;
    for (size_t i = 0; i < p->windows.windows.n; i++) {
        const struct sync_window *w = &p->windows.windows.p[i];
        int64_t other[2], ts[2], error[2], back;
        if (!w->has_transform && n->method == SYNC_METHOD_EXACT)
            continue;
        other[0] = is_ref ? w->x_begin : sync_pair_apply(n, p, w->x_begin, NULL);
        other[1] = is_ref ? w->x_end : sync_pair_apply(n, p, w->x_end, NULL);
        for (int k = 0; k < 2; k++) { /* the bound is convex: largest at an end */
            ts[k] = sync_network_to_reference(n, r->number, other[k], &error[k]);
            if (clock_graph_to_trace_time(im->clocks, root_of(r->all, r->number)->clock, ts[k], &back) == 0)
                ts[k] = back;
        }
        int64_t worst = error[0] > error[1] ? error[0] : error[1], span = ts[1] - ts[0];
        clock_sync_insert(
            im->st,
            &(struct clock_sync_row){
                .machine_id = r->machine,
                .clock = strpool_intern_str(strings, r->clock.id == CLOCK_ID_BOOTTIME ? "BOOTTIME" : "REALTIME"),
                .start_ts = ts[0],
                .end_ts = ts[1],
                .offset_ns = other[0] - ts[0],
                .drift_ppb = span > 0 ? (double)(other[1] - other[0] - span) / (double)span * 1e9 : 0,
                .max_error_ns = worst == INT64_MAX ? COL_NULL : worst,
                .rounds = (int64_t)w->n,
                .min_rtt_ns = COL_NULL,
                .step_ns = COL_NULL,
                .model = strpool_intern_str(strings, "packets")});
    }
}

/* A recording that nothing relates to the reference: equal REALTIMEs are all that is left. A proto trace gets that by
 * the rules of merging; one of another format has no snapshots that would bring it there. */
static void leave_apart(struct importer *im, const struct recording *r)
{
    struct clock_id trace = clock_graph_trace_clock(im->clocks);
    struct clock_reading equal[] = {
        {.clock = r->clock},
        {.clock = {.id = CLOCK_ID_REALTIME, .machine = trace.machine, .file = trace.file}},
    };
    bool same = trace.id == CLOCK_ID_REALTIME && trace.machine == r->clock.machine;
    if (r->clock.id == CLOCK_ID_REALTIME && !same)
        clock_graph_add_snapshot(im->clocks, equal, 2);
    if (r->clock.id == CLOCK_ID_REALTIME || r->n_packets)
        import_log(im->machines.p[r->machine], STAT_clock_sync_unrelatable_clock_domains, COL_NULL, -1, ARGSET_NONE);
}

int recordings_relate(struct importer *im)
{
    static const struct clock_map_ops ops = {to_root, from_root, NULL};
    struct recordings *all = im->recordings;
    if (!all || !all->solved)
        return 0;
    uint32_t *machines = mem_alloc(all->hosts.n * sizeof *machines);
    if (!machines)
        return -MRD_ENOMEM;
    const struct sync_network *n = &all->session.network;
    if (recordings_related(im, n->reference))
        clock_graph_fix_trace_clock(im->clocks, all->hosts.p[n->reference]->clock);
    for (uint32_t i = 0; i < all->hosts.n; i++) {
        struct recording *r = all->hosts.p[i];
        const struct sync_host *h = host_of(all, i);
        machines[i] = r->machine;
        im->machines.p[r->machine]->clock_related |= recordings_related(im, i);
        if (h->parent != SYNC_NO_HOST &&
            !clock_graph_add_map(im->clocks, r->clock, root_of(all, i)->clock, (struct clock_map){&ops, r}))
            im->failed = true;
        if (h->parent == SYNC_NO_HOST && (h->island != 0 || !recordings_related(im, i)))
            leave_apart(im, r);
    }
    sync_session_write(&all->session, im->st, machines);
    for (uint32_t i = 0; i < all->hosts.n; i++)
        if (host_of(all, i)->island == 0 && host_of(all, i)->parent != SYNC_NO_HOST)
            write_windows(im, all->hosts.p[i]);
    mem_free(machines);
    return 0;
}

int recordings_error(const struct importer *im, uint32_t machine, int64_t trace_ns, int64_t *error_ns)
{
    const struct recordings *all = im->recordings;
    for (uint32_t i = 0; all && all->solved && i < all->hosts.n; i++) {
        if (all->hosts.p[i]->machine != machine || !recordings_related(im, i))
            continue;
        if (host_of(all, i)->island != 0)
            return -MRD_ELIMIT;
        sync_network_from_reference(&all->session.network, i, trace_ns, error_ns);
        return *error_ns == INT64_MAX ? -MRD_ELIMIT : 0;
    }
    return -MRD_ENOTFOUND;
}

void recordings_name_machines(struct importer *im)
{
    const struct recordings *all = im->recordings;
    for (uint32_t i = 0; all && i < all->hosts.n; i++) {
        const struct recording *r = all->hosts.p[i];
        if (!recordings_related(im, i))
            continue;
        strid name = ROW_GET(im->st, machine, name, r->machine);
        if (!name || name == ROW_GET(im->st, machine, sysname, r->machine))
            ROW_SET(im->st, machine, name, r->machine, import_str(im, r->name));
    }
}

void recordings_close(struct importer *im)
{
    struct recordings *all = im->recordings;
    if (!all)
        return;
    for (size_t i = 0; i < all->hosts.n; i++) {
        mem_free(all->hosts.p[i]->name);
        mem_free(all->hosts.p[i]);
    }
    vec_free(&all->hosts);
    sync_session_free(&all->session);
    mem_free(all);
    im->recordings = NULL;
}
