/* Imports the processor time of user ids on each cluster of cpus. The first value of a sequence's state is the whole
 * time, those after it are what came on top. */
#include "importer/android/android_internal.h"
#include "importer/android/sparse.h"

#include "base/hash.h"

enum {
    USER = 100000,        /* user ids of one user */
    APPS = 10000,         /* the first one of an app; below is the system */
    SHARED_FIRST = 50000, /* shared ids of groups and isolated processes: each group is one */
    SHARED_LAST = 59999,
    ISOLATED_FIRST = 90000,
    POOL = 10000,
    MAX_CLUSTERS = 64,
};

#define ALL_PACKETS UINT64_MAX /* no state has that number */

struct cpu_uid_value { /* of a user id on a cluster, as told */
    uint64_t state;
    uint64_t ms;
};

struct cpu_uid_times {
    struct u64map clusters; /* state -> clusters */
    struct u64map values;   /* hash of (uid, cluster) -> index of value */
    struct u64map counters; /* hash of (uid or total, cluster) -> index of counter */
    VEC(struct cpu_uid_value)
    value;
    VEC(struct cpu_uid_counter)
    counter;
    struct sparse_sources sources; /* the first is all packets, the others are those of a state */
    VEC(uint32_t)
    told; /* indexes of counters: what the packet has */
};

struct cpu_uid_counter {
    struct sparse_counter sparse;
    uint32_t uid, cluster;
    bool total;      /* of the system or of all apps */
    bool pooled;     /* of a group of ids */
    uint64_t grown;  /* ms: all increases */
    uint64_t ms;     /* the value to write */
    uint64_t packet; /* that told it last, from 1 */
};

void cpu_per_uid_close(struct cpu_uid_times *t)
{
    if (!t)
        return;
    u64map_free(&t->clusters);
    u64map_free(&t->values);
    u64map_free(&t->counters);
    vec_free(&t->value);
    vec_free(&t->counter);
    sparse_sources_free(&t->sources);
    vec_free(&t->told);
    mem_free(t);
}

static uint32_t make_track(struct machine_ctx *m, const struct cpu_uid_counter *k)
{
    const char *kind = k->uid ? "Apps" : "System";
    struct strpool *strings = &m->st->strings;
    struct track_dim dims[] = {{"uid", DIM_INT, k->uid}, {"cluster", DIM_INT, k->cluster}};
    if (k->total)
        dims[0] = (struct track_dim){"type", DIM_STR, import_str(m->im, kind)};
    struct track_spec spec = {.type = k->total ? "android_cpu_per_uid_totals" : "android_cpu_per_uid",
                              .event_type = TRACK_COUNTER,
                              .name = k->total ? strpool_printf(strings, "CPU for %s CL%u", kind, k->cluster)
                                               : strpool_printf(strings, "CPU for UID %u CL%u", k->uid, k->cluster),
                              .unit = import_str(m->im, "ms"),
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 2};
    return track_intern(m->im->tracks, m->id, &spec);
}

/* The counter of an id or of a total (uid 0: the system, 1: the apps), made when new; NULL when out of memory. */
static struct cpu_uid_counter *counter_of(struct machine_ctx *m, struct cpu_uid_times *t, bool total, uint32_t uid,
                                          uint32_t cluster)
{
    bool added = false;
    uint64_t *at = u64map_put(&t->counters, hash_keyed(m->im->secret, (uint64_t)uid << 1 | total, cluster), &added);
    if (at && added) {
        *at = t->counter.n;
        struct cpu_uid_counter k = {.uid = uid, .cluster = cluster, .total = total};
        k.sparse.track = make_track(m, &k);
        if (!vec_push(&t->counter, k))
            at = NULL;
    }
    if (!at || *at >= t->counter.n) {
        m->im->failed = true;
        return NULL;
    }
    return &t->counter.p[*at];
}

/* How much a value grew since it was told before, 0 for the first time; *now is what it is. */
static uint64_t growth(struct machine_ctx *m, struct cpu_uid_times *t, uint64_t state, uint64_t key, uint64_t told,
                       uint64_t *now)
{
    bool added = false;
    uint64_t *at = u64map_put(&t->values, key, &added);
    if (at && added) {
        *at = t->value.n;
        if (!vec_push(&t->value, (struct cpu_uid_value){state, told}))
            at = NULL;
    }
    if (!at || *at >= t->value.n) {
        m->im->failed = true;
        return 0;
    }
    struct cpu_uid_value *v = &t->value.p[*at];
    uint64_t before = v->ms;
    if (!added)
        v->ms = v->state == state ? v->ms + told : told;
    v->state = state;
    *now = v->ms;
    return v->ms > before ? v->ms - before : 0;
}

/* The packet has a value of the counter. */
static void tell(struct machine_ctx *m, struct cpu_uid_times *t, struct cpu_uid_counter *k, uint64_t grown)
{
    uint64_t packet = sparse_packet(&t->sources, 0);
    k->grown += grown;
    if (k->packet != packet && !vec_push(&t->told, (uint32_t)(k - t->counter.p)))
        m->im->failed = true;
    k->packet = packet;
}

static void add_time(struct machine_ctx *m, struct cpu_uid_times *t, uint64_t state, uint32_t uid, uint32_t cluster,
                     uint64_t told)
{
    uint64_t now = told;
    uint64_t grown = growth(m, t, state, hash_keyed(m->im->secret, uid, cluster), told, &now);
    uint32_t own = uid % USER;
    bool pooled = (own >= SHARED_FIRST && own <= SHARED_LAST) || own >= ISOLATED_FIRST;
    struct cpu_uid_counter *k = counter_of(m, t, false, pooled ? uid - uid % POOL : uid, cluster);
    if (!k)
        return;
    tell(m, t, k, grown);
    k->pooled = pooled;
    k->ms = pooled ? k->grown : now;
    k = counter_of(m, t, true, own >= APPS, cluster);
    if (!k)
        return;
    tell(m, t, k, grown);
    k->ms = k->grown;
}

static struct cpu_uid_times *times_of(struct machine_ctx *m)
{
    struct cpu_uid_times *t = m->android->cpu_times;
    if (!t)
        t = m->android->cpu_times = mem_zalloc(sizeof *t);
    m->im->failed |= !t;
    return t && sparse_source_of(m->im, &t->sources, ALL_PACKETS) == 0 ? t : NULL;
}

/* Totals, and what several ids have in common, go on from state to state. */
static void write_told(struct importer *im, struct cpu_uid_times *t, uint32_t source, int64_t ts)
{
    for (size_t i = 0; i < t->told.n; i++) {
        struct cpu_uid_counter *k = &t->counter.p[t->told.p[i]];
        sparse_tell(im, &k->sparse, &t->sources, k->total || k->pooled ? 0 : source, ts, (double)k->ms);
    }
    sparse_packet_read(&t->sources, 0, ts);
    sparse_packet_read(&t->sources, source, ts);
}

void cpu_per_uid_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct cpu_uid_times *t = times_of(m);
    if (!t)
        return;
    uint64_t state = p->gen->state, uid, ms;
    struct pb_field f;
    uint64_t *clusters = u64map_put(&t->clusters, state, NULL);
    uint32_t source = sparse_source_of(m->im, &t->sources, state);
    if (!clusters || source == UINT32_MAX) {
        m->im->failed = true;
        return;
    }
    if (pb_find(p->field, CPU_PER_UID_DATA_CLUSTER_COUNT, &f))
        *clusters = pb_u32(&f);
    uint32_t n = (uint32_t)(*clusters < MAX_CLUSTERS ? *clusters : MAX_CLUSTERS);
    struct pb_numbers uids = pb_numbers(p->field, CPU_PER_UID_DATA_UID),
                      times = pb_numbers(p->field, CPU_PER_UID_DATA_TOTAL_TIME_MS);
    t->told.n = 0;
    for (bool more = n > 0; more && pb_next_number(&uids, &uid);)
        for (uint32_t cluster = 0; cluster < n && (more = pb_next_number(&times, &ms)); cluster++)
            add_time(m, t, state, (uint32_t)uid, cluster, ms);
    write_told(m->im, t, source, p->ts);
}

void cpu_per_uid_finish(struct machine_ctx *m, struct cpu_uid_times *t)
{
    for (size_t i = 0; t && i < t->counter.n; i++) {
        const struct cpu_uid_counter *k = &t->counter.p[i];
        if (!k->total)
            android_cpu_per_uid_track_insert(
                m->st, &(struct android_cpu_per_uid_track_row){.track_id = k->sparse.track,
                                                               .uid = k->uid,
                                                               .cluster = k->cluster,
                                                               .total_cpu_millis = (int64_t)k->grown});
    }
}
