/* Imports wakelocks of apps: a slice from the moment one was acquired to that of its release. */
#include "importer/android/android_internal.h"

#include "base/hash.h"

struct wakelock {
    strid tag;
    uint64_t flags, owner_pid, owner_uid, work_uid;
    uint64_t key; /* hash of all that is above */
    bool has_pid, has_uid, has_work_uid;
};

/* One acquire or release, until its time comes. */
struct app_wakelock_event {
    uint32_t lock; /* in `locks` */
    bool acquired;
};

struct app_wakelocks {
    struct machine_ctx *m;
    uint32_t queue;
    VEC(struct app_wakelock_event)
    events;
    VEC(struct wakelock)
    locks;
    struct u64map read; /* where an interned entry lies -> its index in `locks` + 1 */
};

void app_wakelocks_close(struct app_wakelocks *w)
{
    if (!w)
        return;
    vec_free(&w->events);
    vec_free(&w->locks);
    u64map_free(&w->read);
    mem_free(w);
}

static uint32_t tracks(struct machine_ctx *m)
{
    struct track_spec spec = {.type = "app_wakelock_events",
                              .event_type = TRACK_SLICE,
                              .name = import_str(m->im, "app_wakelock_events"),
                              .parent = UINT32_MAX};
    uint32_t set = track_set_intern(m->im->tracks, m->id, &spec);
    m->im->failed |= set == TRACK_SET_NONE;
    return set;
}

static void parse_events(void *owner, const struct sort_event *events, size_t n)
{
    struct app_wakelocks *w = owner;
    struct machine_ctx *m = w->m;
    struct args *args = &m->st->args;
    uint32_t set = tracks(m);
    for (size_t i = 0; i < n && set != TRACK_SET_NONE; i++) {
        const struct app_wakelock_event *e = &w->events.p[events[i].a];
        const struct wakelock *k = &w->locks.p[e->lock];
        if (!e->acquired) {
            uint32_t track = track_set_end(m->im->tracks, set, (int64_t)k->key);
            if (track != UINT32_MAX)
                slice_end(m->im->slices, m->id, events[i].ts, track, 0, k->tag, NULL);
            continue;
        }
        struct arg_list list = {0};
        arg_list_int(args, &list, "flags", (int64_t)k->flags);
        if (k->has_pid)
            arg_list_int(args, &list, "owner_pid", (int64_t)k->owner_pid);
        if (k->has_uid)
            arg_list_int(args, &list, "owner_uid", (int64_t)k->owner_uid);
        if (k->has_work_uid)
            arg_list_int(args, &list, "work_uid", (int64_t)k->work_uid);
        uint32_t track = track_set_begin(m->im->tracks, set, (int64_t)k->key);
        if (track != UINT32_MAX)
            slice_begin(m->im->slices, m->id, events[i].ts, track, 0, k->tag, args_intern(args, list.p, list.n));
        arg_list_free(&list);
    }
}

static struct app_wakelocks *wakelocks_of(struct machine_ctx *m)
{
    struct app_wakelocks *w = m->android->app_wakelocks;
    if (w)
        return w;
    w = mem_zalloc(sizeof *w);
    if (!w)
        return NULL;
    w->m = m;
    w->queue = sorter_add_queue(m->im->sorter, parse_events, w);
    if (w->queue == UINT32_MAX) {
        mem_free(w);
        return NULL;
    }
    return m->android->app_wakelocks = w;
}

static struct wakelock read_wakelock(struct machine_ctx *m, struct slice entry)
{
    struct pb_field f;
    struct wakelock k = {.tag = android_text(m, entry, APP_WAKELOCK_INFO_TAG),
                         .flags = android_number(entry, APP_WAKELOCK_INFO_FLAGS),
                         .owner_pid = android_number(entry, APP_WAKELOCK_INFO_OWNER_PID),
                         .owner_uid = android_number(entry, APP_WAKELOCK_INFO_OWNER_UID),
                         .work_uid = android_number(entry, APP_WAKELOCK_INFO_WORK_UID),
                         .has_pid = pb_find(entry, APP_WAKELOCK_INFO_OWNER_PID, &f),
                         .has_uid = pb_find(entry, APP_WAKELOCK_INFO_OWNER_UID, &f),
                         .has_work_uid = pb_find(entry, APP_WAKELOCK_INFO_WORK_UID, &f)};
    uint64_t key = hash_keyed(m->im->secret, k.tag, k.flags);
    key = hash_combine(hash_combine(key, k.owner_pid), k.owner_uid);
    k.key = hash_combine(key, k.work_uid);
    return k;
}

/* The lock of an interned entry, read once: two bytes may mean it again. */
static uint32_t lock_of(struct app_wakelocks *w, struct slice entry)
{
    const uint64_t *known = u64map_get(&w->read, (uint64_t)(uintptr_t)entry.p);
    if (known)
        return (uint32_t)(*known - 1);
    if (!vec_push(&w->locks, read_wakelock(w->m, entry)) ||
        !u64map_set(&w->read, (uint64_t)(uintptr_t)entry.p, w->locks.n))
        w->m->im->failed = true;
    return (uint32_t)w->locks.n - 1;
}

enum tokenize_result app_wakelock_tokenize(struct packet *p)
{
    struct machine_ctx *m = p->m;
    struct app_wakelocks *w = wakelocks_of(m);
    if (!w) {
        m->im->failed = true;
        return TOKENIZE_DONE;
    }
    struct pb_numbers ids = pb_numbers(p->field, APP_WAKELOCK_BUNDLE_INTERN_ID),
                      times = pb_numbers(p->field, APP_WAKELOCK_BUNDLE_ENCODED_TS);
    uint64_t id, encoded;
    int64_t ts;
    while (pb_next_number(&ids, &id)) {
        if (!pb_next_number(&times, &encoded) || __builtin_add_overflow(p->ts, encoded >> 1, &ts)) {
            stats_add(&m->st->stats, m->id, STAT_app_wakelock_parse_error, 1);
            break;
        }
        struct slice entry = interned_find(p->gen, INTERNED_DATA_APP_WAKELOCK_INFO, id);
        if (!entry.len) {
            stats_add(&m->st->stats, m->id, STAT_app_wakelock_unknown_id, 1);
            continue;
        }
        struct app_wakelock_event e = {.lock = lock_of(w, entry), .acquired = encoded & 1};
        if (m->im->failed)
            break;
        if (!vec_push(&w->events, e))
            m->im->failed = true;
        else
            sorter_push(m->im->sorter, w->queue, (struct sort_event){.ts = ts, .a = w->events.n - 1});
    }
    return TOKENIZE_DONE;
}
