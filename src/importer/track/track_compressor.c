/* The sets of tracks that asynchronous slices share, and which of them is free. */
#include "importer/track/track_compressor.h"

#include "base/u64map.h"

enum { MAX_SET_DIMS = 7 };

struct member { /* one track of a set; its index in the set is track_compressor_idx */
    uint32_t track;
    uint32_t nest; /* open slices */
    int64_t cookie;
    bool queued; /* its index stands in `free` */
    bool unused; /* made without a cookie */
};

struct track_set {
    uint32_t machine;
    struct track_spec spec;
    struct track_dim dims[MAX_SET_DIMS + 1];
    VEC(struct member)
    members;
    struct u64map by_cookie; /* cookie -> index of member */
    VEC(uint32_t)
    free; /* a heap, lowest index first; an entry may have been taken again by its own cookie */
    /* Members of complete slices are never used by cookies. They are the leaves of a tree, in the order in which they
     * were made: when the last slice on each ends, and above two of them the earlier end. */
    VEC(uint32_t) scoped; /* tracks */
    int64_t *ends;        /* 1: the root; from n_leaves on: the leaves, INT64_MAX without a member */
    size_t n_leaves;
};

struct track_compressor {
    VEC(struct track_set)
    sets;
};

struct track_compressor *track_compressor_open(void)
{
    return mem_zalloc(sizeof(struct track_compressor));
}

void track_compressor_close(struct track_compressor *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->sets.n; i++) {
        vec_free(&c->sets.p[i].members);
        u64map_free(&c->sets.p[i].by_cookie);
        vec_free(&c->sets.p[i].free);
        vec_free(&c->sets.p[i].scoped);
        mem_free(c->sets.p[i].ends);
    }
    vec_free(&c->sets);
    mem_free(c);
}

uint32_t track_set_intern(struct track_tracker *t, uint32_t machine, const struct track_spec *spec)
{
    struct track_compressor *c = track_tracker_compressor(t);
    uint32_t set = track_tracker_key(t, machine, spec, (uint32_t)c->sets.n);
    if (set == UINT32_MAX || set < c->sets.n)
        return set;
    struct track_set *s = vec_add(&c->sets);
    if (!s)
        return track_tracker_no_memory(t);
    s->machine = machine;
    s->spec = *spec;
    s->spec.n_dims = spec->n_dims < MAX_SET_DIMS ? spec->n_dims : MAX_SET_DIMS;
    for (uint32_t i = 0; i < s->spec.n_dims; i++)
        s->dims[i] = spec->dims[i];
    s->spec.group = set + 1;
    s->dims[s->spec.n_dims].key = "track_compressor_idx";
    s->spec.n_dims++;
    return set;
}

static struct track_set *set_at(struct track_tracker *t, uint32_t set)
{
    struct track_compressor *c = track_tracker_compressor(t);
    return set < c->sets.n ? &c->sets.p[set] : NULL;
}

static bool heap_push(struct track_set *s, uint32_t index)
{
    if (!vec_push(&s->free, index))
        return false;
    for (size_t i = s->free.n - 1; i && s->free.p[(i - 1) / 2] > s->free.p[i]; i = (i - 1) / 2) {
        uint32_t up = s->free.p[(i - 1) / 2];
        s->free.p[(i - 1) / 2] = s->free.p[i];
        s->free.p[i] = up;
    }
    return true;
}

static uint32_t heap_pop(struct track_set *s)
{
    uint32_t top = s->free.p[0], last = s->free.p[--s->free.n];
    size_t i = 0, n = s->free.n;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && s->free.p[child + 1] < s->free.p[child])
            child++;
        if (s->free.p[child] >= last)
            break;
        s->free.p[i] = s->free.p[child];
        i = child;
    }
    if (n)
        s->free.p[i] = last;
    return top;
}

static struct member *add_member(struct track_tracker *t, struct track_set *s)
{
    s->dims[s->spec.n_dims - 1].value = (int64_t)s->members.n;
    s->spec.dims = s->dims;
    struct member *m = vec_add(&s->members);
    if (!m)
        return NULL;
    m->track = track_insert_row(t, s->machine, &s->spec);
    return m;
}

/* The member of a cookie: its own, else the first that is free, else a new one. */
static struct member *member_of(struct track_tracker *t, struct track_set *s, int64_t cookie)
{
    const uint64_t *known = u64map_get(&s->by_cookie, (uint64_t)cookie);
    if (known)
        return &s->members.p[*known];
    struct member *m = NULL;
    while (s->free.n && !m) {
        m = &s->members.p[heap_pop(s)];
        m->queued = false;
        if (m->nest)
            m = NULL;
    }
    if (m && !m->unused)
        u64map_del(&s->by_cookie, (uint64_t)m->cookie);
    else if (!m)
        m = add_member(t, s);
    if (!m || !u64map_set(&s->by_cookie, (uint64_t)cookie, (uint64_t)(m - s->members.p)))
        return NULL;
    m->unused = false;
    m->cookie = cookie;
    return m;
}

/* Puts a member that nothing uses where the next cookie finds it. */
static bool offer(struct track_set *s, struct member *m)
{
    if (m->nest || m->queued)
        return true;
    m->queued = true;
    return heap_push(s, (uint32_t)(m - s->members.p));
}

uint32_t track_set_begin(struct track_tracker *t, uint32_t set, int64_t cookie)
{
    struct track_set *s = set_at(t, set);
    struct member *m = s ? member_of(t, s, cookie) : NULL;
    if (!m)
        return track_tracker_no_memory(t);
    m->nest++;
    return m->track;
}

uint32_t track_set_begin_once(struct track_tracker *t, uint32_t set, int64_t cookie)
{
    struct track_set *s = set_at(t, set);
    struct member *m = s ? member_of(t, s, cookie) : NULL;
    if (!m)
        return track_tracker_no_memory(t);
    m->nest = 1;
    return m->track;
}

uint32_t track_set_end(struct track_tracker *t, uint32_t set, int64_t cookie)
{
    struct track_set *s = set_at(t, set);
    struct member *m = s ? member_of(t, s, cookie) : NULL;
    if (!m)
        return track_tracker_no_memory(t);
    if (m->nest)
        m->nest--;
    if (!offer(s, m))
        return track_tracker_no_memory(t);
    return m->track;
}

static void set_end(struct track_set *s, size_t place, int64_t end)
{
    size_t i = s->n_leaves + place;
    s->ends[i] = end;
    for (i /= 2; i; i /= 2)
        s->ends[i] = s->ends[2 * i] < s->ends[2 * i + 1] ? s->ends[2 * i] : s->ends[2 * i + 1];
}

/* The first place whose slice has ended by `ts`; SIZE_MAX: none. */
static size_t first_ended(const struct track_set *s, int64_t ts)
{
    if (!s->n_leaves || s->ends[1] > ts)
        return SIZE_MAX;
    size_t i = 1;
    while (i < s->n_leaves)
        i = s->ends[2 * i] <= ts ? 2 * i : 2 * i + 1;
    return i - s->n_leaves < s->scoped.n ? i - s->n_leaves : SIZE_MAX;
}

/* Twice the leaves; their parents are set again, one place after the other. */
static bool grow_tree(struct track_set *s)
{
    enum { FIRST = 4 };
    size_t n = s->n_leaves ? 2 * s->n_leaves : FIRST, before = s->n_leaves;
    int64_t *ends = mem_alloc(2 * n * sizeof *ends), *old = s->ends;
    if (!ends)
        return false;
    for (size_t i = 0; i < 2 * n; i++)
        ends[i] = INT64_MAX;
    s->ends = ends;
    s->n_leaves = n;
    for (size_t i = 0; i < before; i++)
        set_end(s, i, old[before + i]);
    mem_free(old);
    return true;
}

static size_t add_scoped(struct track_tracker *t, struct track_set *s)
{
    if (s->scoped.n == s->n_leaves && !grow_tree(s))
        return SIZE_MAX;
    const struct member *m = add_member(t, s);
    return m && vec_push(&s->scoped, m->track) ? s->scoped.n - 1 : SIZE_MAX;
}

uint32_t track_set_scoped(struct track_tracker *t, uint32_t set, int64_t ts, int64_t dur)
{
    struct track_set *s = set_at(t, set);
    int64_t end;
    if (!s)
        return track_tracker_no_memory(t);
    size_t place = first_ended(s, ts);
    if (place == SIZE_MAX)
        place = add_scoped(t, s);
    if (place == SIZE_MAX)
        return track_tracker_no_memory(t);
    set_end(s, place, __builtin_add_overflow(ts, dur, &end) ? INT64_MAX : end);
    return s->scoped.p[place];
}

uint32_t track_set_first(struct track_tracker *t, uint32_t set)
{
    struct track_set *s = set_at(t, set);
    if (!s)
        return track_tracker_no_memory(t);
    if (!s->members.n) {
        struct member *m = add_member(t, s);
        if (!m || !offer(s, m))
            return track_tracker_no_memory(t);
        m->unused = true; /* for cookies: what shares it knows when it ends */
    }
    return s->members.p[0].track;
}
