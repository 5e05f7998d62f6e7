/* The identity of tracks: one row of `track` for each type, machine, set of dimensions (and name). */
#include "importer/track/track_tracker.h"

#include "base/hash.h"
#include "base/probe.h"
#include "importer/track/track_compressor.h"

enum { MAX_DIMS = 8, KEY_WORDS = 3 + 2 * MAX_DIMS };

static const char *const event_type_names[] = {"slice", "counter", "state"};

struct slot {
    uint32_t hash;
    uint32_t id;     /* row of the track, or number of the set of tracks, + 1; 0: free */
    uint32_t key_at; /* index into words */
    uint32_t key_n;
};

struct hot_slot { /* tracks with one integer dimension, by the literal's address: no string is looked at */
    const char *type;
    int64_t value;
    uint32_t machine;
    uint32_t track; /* row + 1; 0: free */
};

struct track_tracker {
    struct importer *im;
    VEC(uint64_t)
    words;              /* the keys of all tracks, one after another */
    struct slot *slots; /* a power of two */
    uint64_t seed;      /* of their hashes; 0 until keys crowd */
    uint32_t slot_cap;
    uint32_t n;
    struct hot_slot *hot;
    uint32_t hot_cap;
    uint32_t hot_n;
    strid event_types[3];
    struct track_compressor *compressor;
};

struct track_tracker *track_tracker_open(struct importer *im)
{
    struct track_tracker *t = mem_zalloc(sizeof *t);
    if (!t)
        return NULL;
    t->im = im;
    t->compressor = track_compressor_open();
    if (!t->compressor) {
        mem_free(t);
        return NULL;
    }
    for (unsigned i = 0; i < 3; i++)
        t->event_types[i] = import_str(im, event_type_names[i]);
    return t;
}

void track_tracker_close(struct track_tracker *t)
{
    if (!t)
        return;
    vec_free(&t->words);
    mem_free(t->slots);
    mem_free(t->hot);
    track_compressor_close(t->compressor);
    mem_free(t);
}

static bool resize(struct track_tracker *t, uint32_t cap)
{
    struct slot *slots = mem_zalloc(cap * sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < t->slot_cap; i++) {
        if (!t->slots[i].id)
            continue;
        uint32_t at;
        probe_free(at, t->slots[i].hash, cap, slots[at].id);
        slots[at] = t->slots[i];
    }
    mem_free(t->slots);
    t->slots = slots;
    t->slot_cap = cap;
    return true;
}

/* Tracks of one description share its set. */
static argset described(struct importer *im, const char *description)
{
    strid key = import_str(im, "description");
    struct arg arg = {key, key, import_str(im, description), ARG_STRING};
    return args_intern(&im->st->args, &arg, 1);
}

uint32_t track_insert_row(struct track_tracker *t, uint32_t machine, const struct track_spec *spec)
{
    struct storage *st = t->im->st;
    struct arg dims[MAX_DIMS];
    uint32_t n = spec->n_dims < MAX_DIMS ? spec->n_dims : MAX_DIMS;
    strid type = import_str(t->im, spec->type);
    int64_t utid = COL_NULL, upid = COL_NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct track_dim *d = &spec->dims[i];
        strid key = import_str(t->im, d->key);
        dims[i] = (struct arg){key, key, d->value, d->kind == DIM_STR ? ARG_STRING : ARG_INT};
        if (strcmp(d->key, "utid") == 0)
            utid = d->value;
        else if (strcmp(d->key, "upid") == 0)
            upid = d->value;
        else if (strcmp(d->key, "cpu") == 0 && machine < t->im->machines.n && d->value >= 0 &&
                 d->value < CPUS_PER_MACHINE)
            machine_ucpu(t->im->machines.p[machine], (uint32_t)d->value); /* a cpu that has a track exists */
    }
    argset set = args_intern(&st->args, dims, n);
    argset source = spec->source_args;
    if (argset_is_none(source) && spec->description)
        source = described(t->im, spec->description);
    return track_insert(st, &(struct track_row){.name = spec->name,
                                                .parent_id = spec->parent == UINT32_MAX ? COL_NULL : spec->parent,
                                                .source_arg_set_id = source,
                                                .machine_id = machine,
                                                .type = type,
                                                .dimension_arg_set_id = set,
                                                .track_group_id = spec->group ? (int64_t)spec->group - 1 : COL_NULL,
                                                .event_type = t->event_types[spec->event_type],
                                                .counter_unit = spec->unit,
                                                .utid = utid,
                                                .upid = upid});
}

/* Writes the key of a spec; returns its words. A set of tracks has a key like a track's, marked as such. */
static uint32_t make_key(struct track_tracker *t, uint32_t machine, const struct track_spec *spec, bool is_set,
                         uint64_t key[KEY_WORDS])
{
    uint32_t n = 0;
    key[n++] = (uint64_t)import_str(t->im, spec->type) << 32 | machine;
    key[n++] = (uint64_t)is_set << 40 | (uint64_t)spec->event_type << 32 | (spec->name_is_key ? spec->name : 0);
    for (uint32_t i = 0; i < spec->n_dims && i < MAX_DIMS; i++) {
        key[n++] = (uint64_t)import_str(t->im, spec->dims[i].key) << 8 | spec->dims[i].kind;
        key[n++] = (uint64_t)spec->dims[i].value;
    }
    return n;
}

static uint32_t hash_key(const struct track_tracker *t, const uint64_t *key, uint32_t n)
{
    uint64_t h = n ^ t->seed;
    for (uint32_t i = 0; i < n; i++)
        h = hash_combine(h, key[i]);
    return (uint32_t)h;
}

/* Keys that were chosen to belong into one place (base/hash.h) get others. */
static bool reseed(struct track_tracker *t)
{
    t->seed = hash_secret();
    for (uint32_t i = 0; i < t->slot_cap; i++)
        t->slots[i].hash = hash_key(t, t->words.p + t->slots[i].key_at, t->slots[i].key_n);
    return resize(t, t->slot_cap);
}

/* The slot of a key, made when new (then its id is 0). NULL when out of memory. */
static struct slot *find_slot(struct track_tracker *t, const uint64_t *key, uint32_t n)
{
    uint32_t hash = hash_key(t, key, n);
    if (t->n * 4 >= t->slot_cap * 3 && !resize(t, t->slot_cap ? t->slot_cap * 2 : 256))
        return NULL;
    uint32_t at;
    probe_each(at, hash, t->slot_cap, t->slots[at].id)
    {
        const struct slot *s = &t->slots[at];
        if (s->hash == hash && s->key_n == n && memcmp(t->words.p + s->key_at, key, n * sizeof *key) == 0)
            return &t->slots[at];
    }
    if (((at - hash) & (t->slot_cap - 1)) >= HASH_WALK_MAX && !t->seed)
        return reseed(t) ? find_slot(t, key, n) : NULL;
    if (!vec_reserve(&t->words, t->words.n + n))
        return NULL;
    memcpy(t->words.p + t->words.n, key, n * sizeof *key);
    t->slots[at] = (struct slot){hash, 0, (uint32_t)t->words.n, n};
    t->words.n += n;
    return &t->slots[at];
}

uint32_t track_tracker_no_memory(struct track_tracker *t)
{
    t->im->failed = true;
    return UINT32_MAX;
}

uint32_t track_intern(struct track_tracker *t, uint32_t machine, const struct track_spec *spec)
{
    uint64_t key[KEY_WORDS];
    struct slot *s = find_slot(t, key, make_key(t, machine, spec, false, key));
    if (!s)
        return track_tracker_no_memory(t);
    if (!s->id) {
        uint32_t track = track_insert_row(t, machine, spec);
        if (track == UINT32_MAX)
            return track_tracker_no_memory(t);
        s->id = track + 1;
        t->n++;
    }
    return s->id - 1;
}

uint32_t track_tracker_key(struct track_tracker *t, uint32_t machine, const struct track_spec *spec, uint32_t next)
{
    uint64_t key[KEY_WORDS];
    struct slot *s = find_slot(t, key, make_key(t, machine, spec, true, key));
    if (!s)
        return track_tracker_no_memory(t);
    if (!s->id) {
        s->id = next + 1;
        t->n++;
    }
    return s->id - 1;
}

struct track_compressor *track_tracker_compressor(struct track_tracker *t)
{
    return t->compressor;
}

static uint32_t hot_at(const struct track_tracker *t, uint32_t machine, const char *type, int64_t value)
{
    uint64_t h = hash_combine(hash_u64((uint64_t)(uintptr_t)type), (uint64_t)value ^ (uint64_t)machine << 48);
    uint32_t at;
    probe_each(at, (uint32_t)h, t->hot_cap, t->hot[at].track) if (t->hot[at].type == type &&
                                                                  t->hot[at].value == value &&
                                                                  t->hot[at].machine == machine) break;
    return at;
}

static bool grow_hot(struct track_tracker *t)
{
    struct track_tracker bigger = {.hot_cap = t->hot_cap ? t->hot_cap * 2 : 64};
    bigger.hot = mem_zalloc(bigger.hot_cap * sizeof *bigger.hot);
    if (!bigger.hot)
        return false;
    for (uint32_t i = 0; i < t->hot_cap; i++)
        if (t->hot[i].track)
            bigger.hot[hot_at(&bigger, t->hot[i].machine, t->hot[i].type, t->hot[i].value)] = t->hot[i];
    mem_free(t->hot);
    t->hot = bigger.hot;
    t->hot_cap = bigger.hot_cap;
    return true;
}

uint32_t track_intern_int(struct track_tracker *t, uint32_t machine, const char *type, enum track_kind event_type,
                          const char *dim_key, int64_t dim_value, strid name)
{
    if (t->hot_n * 2 >= t->hot_cap && !grow_hot(t))
        return track_tracker_no_memory(t);
    uint32_t at = hot_at(t, machine, type, dim_value);
    if (t->hot[at].track)
        return t->hot[at].track - 1;
    struct track_dim dim = {dim_key, DIM_INT, dim_value};
    struct track_spec spec = {
        .type = type, .event_type = event_type, .name = name, .parent = UINT32_MAX, .dims = &dim, .n_dims = 1};
    uint32_t track = track_intern(t, machine, &spec);
    if (track != UINT32_MAX) {
        t->hot[at] = (struct hot_slot){type, dim_value, machine, track + 1};
        t->hot_n++;
    }
    return track;
}
