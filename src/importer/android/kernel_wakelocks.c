/* Imports how long kernel wakelocks were held: sums of the time, told as what came on top since the packet before. */
#include "importer/android/android_internal.h"
#include "importer/android/sparse.h"

#include "base/hash.h"

enum { NS_IN_MS = 1000000 };

struct wakelock { /* what a number means */
    strid name, type;
};

/* How long locks of one name were held in one incremental state, as far as it was told; of what type the last one was.
 */
struct wakelock_time {
    uint64_t held_ms;
    struct wakelock lock;
    uint64_t packet; /* of its state that told it last, from 1 */
};

struct wakelocks {
    struct u64map ids;      /* hash of (state, id) -> index of locks */
    struct u64map names;    /* hash of (state, name) -> index of times */
    struct u64map counters; /* hash of (name, type) -> index of counters */
    struct sparse_sources states;
    VEC(struct wakelock)
    locks;
    VEC(struct wakelock_time)
    times;
    VEC(struct sparse_counter)
    counter;
    VEC(uint32_t)
    told; /* indexes of times: what the packet has */
};

void wakelocks_close(struct wakelocks *w)
{
    if (!w)
        return;
    u64map_free(&w->ids);
    u64map_free(&w->names);
    u64map_free(&w->counters);
    sparse_sources_free(&w->states);
    vec_free(&w->locks);
    vec_free(&w->times);
    vec_free(&w->counter);
    vec_free(&w->told);
    mem_free(w);
}

/* The counter of a name and type, made when new; NULL when out of memory. */
static struct sparse_counter *counter_of(struct machine_ctx *m, struct wakelocks *w, const struct wakelock *lock)
{
    bool added = false;
    uint64_t *at = u64map_put(&w->counters, (uint64_t)lock->name << 32 | lock->type, &added);
    if (at && added) {
        struct track_dim dims[] = {{"wakelock_name", DIM_STR, lock->name}, {"wakelock_type", DIM_STR, lock->type}};
        struct track_spec spec = {.type = "android_kernel_wakelock",
                                  .event_type = TRACK_COUNTER,
                                  .name = lock->name,
                                  .unit = import_str(m->im, "ms"),
                                  .parent = UINT32_MAX,
                                  .dims = dims,
                                  .n_dims = 2};
        *at = w->counter.n;
        if (!vec_push(&w->counter, (struct sparse_counter){.track = track_intern(m->im->tracks, m->id, &spec)}))
            at = NULL;
    }
    return at && *at < w->counter.n ? &w->counter.p[*at] : NULL;
}

/* What a number means, the first of several. */
static void name_wakelock(struct packet *p, struct wakelocks *w, uint64_t state, struct slice bytes)
{
    static const char *const types[] = {"unknown", "kernel", "native"};
    struct machine_ctx *m = p->m;
    uint64_t id = android_number(bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_ID);
    uint64_t type = android_number(bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_TYPE);
    struct wakelock lock = {android_text(m, bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_NAME),
                            import_str(m->im, types[type < sizeof types / sizeof *types ? type : 0])};
    bool added = false;
    uint64_t *at = u64map_put(&w->ids, hash_combine(state, id), &added);
    if (at && !added) {
        stats_add(&m->st->stats, m->id, STAT_kernel_wakelock_reused_id, 1);
        return;
    }
    if (at)
        *at = w->locks.n;
    if (!at || !vec_push(&w->locks, lock))
        m->im->failed = true;
}

static void add_time(struct machine_ctx *m, struct wakelocks *w, uint32_t state, const struct wakelock *lock,
                     uint64_t held)
{
    bool added = false;
    uint64_t *at = u64map_put(&w->names, (uint64_t)state << 32 | lock->name, &added);
    if (at && added) {
        *at = w->times.n;
        if (!vec_push(&w->times, ((struct wakelock_time){0})))
            at = NULL;
    }
    if (!at || *at >= w->times.n) {
        m->im->failed = true;
        return;
    }
    struct wakelock_time *t = &w->times.p[*at];
    uint64_t packet = sparse_packet(&w->states, state);
    t->held_ms += held;
    t->lock = *lock;
    if (t->packet != packet && !vec_push(&w->told, (uint32_t)*at))
        m->im->failed = true;
    t->packet = packet;
}

static void count_errors(struct machine_ctx *m, uint64_t flags)
{
    static const enum stat_key stats[] = {STAT_kernel_wakelock_zero_value_reported,
                                          STAT_kernel_wakelock_non_monotonic_value_reported,
                                          STAT_kernel_wakelock_implausibly_large_value_reported};
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        if (flags >> i & 1)
            stats_add(&m->st->stats, m->id, stats[i], 1);
}

static struct wakelocks *wakelocks_of(struct machine_ctx *m)
{
    if (!m->android->wakelocks && !(m->android->wakelocks = mem_zalloc(sizeof *m->android->wakelocks)))
        m->im->failed = true;
    return m->android->wakelocks;
}

void kernel_wakelocks_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct wakelocks *w = wakelocks_of(m);
    uint32_t state = w ? sparse_source_of(m->im, &w->states, p->gen->state) : UINT32_MAX;
    if (state == UINT32_MAX)
        return;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    uint64_t id, held;
    while (pb_next(&c, &f))
        if (f.id == KERNEL_WAKELOCK_DATA_WAKELOCK)
            name_wakelock(p, w, hash_u64(state ^ m->im->secret), pb_bytes(&f));
    struct pb_numbers ids = pb_numbers(p->field, KERNEL_WAKELOCK_DATA_WAKELOCK_ID),
                      times = pb_numbers(p->field, KERNEL_WAKELOCK_DATA_TIME_HELD_MILLIS);
    w->told.n = 0;
    while (pb_next_number(&ids, &id) && pb_next_number(&times, &held)) {
        const uint64_t *at = u64map_get(&w->ids, hash_keyed(m->im->secret, state, id));
        if (at && *at < w->locks.n)
            add_time(m, w, state, &w->locks.p[*at], held);
        else
            stats_add(&m->st->stats, m->id, STAT_kernel_wakelock_unknown_id, 1);
    }
    for (size_t i = 0; i < w->told.n; i++) {
        const struct wakelock_time *t = &w->times.p[w->told.p[i]];
        struct sparse_counter *counter = counter_of(m, w, &t->lock);
        if (counter)
            sparse_tell(m->im, counter, &w->states, state, p->ts, (double)t->held_ms * (double)NS_IN_MS);
    }
    sparse_packet_read(&w->states, state, p->ts);
    count_errors(m, android_number(p->field, KERNEL_WAKELOCK_DATA_ERROR_FLAGS));
}
