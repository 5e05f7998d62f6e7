/* Imports how long kernel wakelocks were held: sums of the time, told as what came on top since the packet before. */
#include "importer/android/android_internal.h"
#include "importer/android/sparse.h"

#include "base/hash.h"

enum { NS_IN_MS = 1000000 };

struct wakelock {
    uint64_t state; /* the incremental state that named it */
    uint64_t id;
    uint64_t held_ms;
    uint32_t counter; /* index */
};

struct wakelocks {
    struct u64map ids;      /* hash of (state, id) -> index of locks */
    struct u64map counters; /* hash of (name, type) -> index of counters */
    VEC(struct wakelock)
    locks;
    VEC(struct sparse_counter)
    counter;
};

void wakelocks_close(struct wakelocks *w)
{
    if (!w)
        return;
    u64map_free(&w->ids);
    u64map_free(&w->counters);
    vec_free(&w->locks);
    vec_free(&w->counter);
    mem_free(w);
}

/* The counter of a name and type, made when new; UINT32_MAX when out of memory. */
static uint32_t counter_of(struct machine_ctx *m, struct wakelocks *w, strid name, uint64_t type)
{
    static const char *const types[] = {"unknown", "kernel", "native"};
    strid type_text = import_str(m->im, types[type < sizeof types / sizeof *types ? type : 0]);
    bool added = false;
    uint64_t *at = u64map_put(&w->counters, hash_combine(hash_u64(name), type_text), &added);
    if (!at)
        return UINT32_MAX;
    if (!added)
        return (uint32_t)*at;
    struct track_dim dims[] = {{"wakelock_name", DIM_STR, name}, {"wakelock_type", DIM_STR, type_text}};
    struct track_spec spec = {.type = "android_kernel_wakelock",
                              .event_type = TRACK_COUNTER,
                              .name = name,
                              .unit = import_str(m->im, "ms"),
                              .parent = UINT32_MAX,
                              .dims = dims,
                              .n_dims = 2};
    if (!vec_push(&w->counter, (struct sparse_counter){.track = track_intern(m->im->tracks, m->id, &spec)}))
        return UINT32_MAX;
    *at = w->counter.n - 1;
    return (uint32_t)*at;
}

static void name_wakelock(struct packet *p, struct wakelocks *w, uint64_t state, struct slice bytes)
{
    struct machine_ctx *m = p->m;
    uint64_t id = android_number(bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_ID);
    strid name = android_text(m, bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_NAME);
    bool added = false;
    uint64_t *at = u64map_put(&w->ids, hash_combine(state, id), &added);
    uint32_t counter =
        at ? counter_of(m, w, name, android_number(bytes, KERNEL_WAKELOCK_DATA_WAKELOCK_WAKELOCK_TYPE)) : UINT32_MAX;
    if (counter == UINT32_MAX) {
        m->im->failed = true;
        return;
    }
    if (!added) {
        stats_add(&m->st->stats, m->id, STAT_kernel_wakelock_reused_id, 1);
        w->locks.p[*at].counter = counter;
        return;
    }
    *at = w->locks.n;
    if (!vec_push(&w->locks, (struct wakelock){.state = state, .id = id, .counter = counter}))
        m->im->failed = true;
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

void kernel_wakelocks_parse(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct wakelocks *w = m->android->wakelocks;
    if (!w && !(w = m->android->wakelocks = mem_zalloc(sizeof *w))) {
        m->im->failed = true;
        return;
    }
    uint64_t state = hash_u64(p->gen->state), id, held;
    struct pb_cursor c = pb_cursor(p->field);
    struct pb_field f;
    while (pb_next(&c, &f))
        if (f.id == KERNEL_WAKELOCK_DATA_WAKELOCK)
            name_wakelock(p, w, state, pb_bytes(&f));
    struct pb_numbers ids = pb_numbers(p->field, KERNEL_WAKELOCK_DATA_WAKELOCK_ID),
                      times = pb_numbers(p->field, KERNEL_WAKELOCK_DATA_TIME_HELD_MILLIS);
    while (pb_next_number(&ids, &id) && pb_next_number(&times, &held)) {
        const uint64_t *at = u64map_get(&w->ids, hash_combine(state, id));
        if (at && *at < w->locks.n)
            w->locks.p[*at].held_ms += held;
        else
            stats_add(&m->st->stats, m->id, STAT_kernel_wakelock_unknown_id, 1);
    }
    for (size_t i = 0; i < w->locks.n; i++) /* those that are not told did not grow */
        if (w->locks.p[i].state == state)
            sparse_push(m->im, &w->counter.p[w->locks.p[i].counter], p->ts,
                        (double)w->locks.p[i].held_ms * (double)NS_IN_MS);
    count_errors(m, android_number(p->field, KERNEL_WAKELOCK_DATA_ERROR_FLAGS));
}
