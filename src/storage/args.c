/* Stores argument sets: equal ones once, as values or as payloads that are decoded on demand. */
#include "storage/args.h"

#include "base/hash.h"
#include "base/probe.h"

struct args_slot {
    uint32_t hash;
    argset set; /* none: free */
};

void args_set_decoder(struct args *a, unsigned kind, args_decode_fn decode, void *ctx)
{
    if (kind > ARGS_READY && kind < ARGS_MAX_DECODERS) {
        a->decoders[kind].decode = decode;
        a->decoders[kind].ctx = ctx;
    }
}

void args_set_key_decoder(struct args *a, unsigned kind, args_decode_key_fn decode_key)
{
    if (kind > ARGS_READY && kind < ARGS_MAX_DECODERS)
        a->decoders[kind].decode_key = decode_key;
}

/* Payloads are short and mostly differ early or not at all: a call of memcmp would cost more than it compares. */
static inline bool same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
    uint64_t x, y;
    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            if (a[i] != b[i])
                return false;
        return true;
    }
    for (size_t i = 0; i + 8 < n; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y)
            return false;
    }
    memcpy(&x, a + n - 8, 8);
    memcpy(&y, b + n - 8, 8);
    return x == y;
}

/* NULL for none or an unknown one. */
static const struct arg_set *set_at(const struct args *a, argset set)
{
    return !argset_is_none(set) && set.plus_one <= a->sets.n ? &a->sets.p[set.plus_one - 1] : NULL;
}

static struct arg_list view_ready(const struct args *a, const struct arg_set *s)
{
    return (struct arg_list){a->ready.p + s->first, s->len, 0};
}

static uint32_t hash_values(const struct args *a, const struct arg *list, size_t n)
{
    uint64_t h = n ^ a->seed;
    for (size_t i = 0; i < n; i++) {
        h = hash_combine(h, (uint64_t)list[i].key << 32 | list[i].flat_key);
        h = hash_combine(h, (uint64_t)list[i].word ^ (uint64_t)list[i].type << 56);
    }
    return (uint32_t)h;
}

static bool same_values(const struct arg *x, const struct arg *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i].key != y[i].key || x[i].flat_key != y[i].flat_key || x[i].type != y[i].type || x[i].word != y[i].word)
            return false;
    return true;
}

static uint32_t hash_payload(const struct args *a, struct slice payload, uint32_t kind_aux)
{
    return (uint32_t)hash_combine(hash_bytes_seeded(payload.p, payload.len, a->seed), kind_aux);
}

static uint32_t hash_set(const struct args *a, argset set)
{
    const struct arg_set *s = set_at(a, set);
    return s->kind_aux == ARGS_READY ? hash_values(a, view_ready(a, s).p, s->len)
                                     : hash_payload(a, slice_of(s->bytes, s->len), s->kind_aux);
}

static bool resize_slots(struct args *a, uint32_t cap)
{
    struct args_slot *slots = cap ? mem_zalloc(cap * sizeof *slots) : NULL;
    if (!slots)
        return false;
    for (uint32_t i = 0; i < a->slot_cap; i++) {
        if (argset_is_none(a->slots[i].set))
            continue;
        uint32_t at;
        probe_free(at, a->slots[i].hash, cap, !argset_is_none(slots[at].set));
        slots[at] = a->slots[i];
    }
    mem_free(a->slots);
    a->slots = slots;
    a->slot_cap = cap;
    return true;
}

static bool grow_slots(struct args *a)
{
    return resize_slots(a, a->slot_cap ? a->slot_cap * 2 : 1024);
}

/* A file may have chosen its sets to belong into one place (base/hash.h). */
static inline bool crowded(const struct args *a, uint32_t walk)
{
    return (walk & (a->slot_cap - 1)) >= HASH_WALK_MAX && !a->seed;
}

/* Gives all sets places that nobody can foresee. Their numbers stay. */
static bool reseed(struct args *a)
{
    a->seed = hash_secret();
    for (uint32_t i = 0; i < a->slot_cap; i++)
        if (!argset_is_none(a->slots[i].set))
            a->slots[i].hash = hash_set(a, a->slots[i].set);
    return resize_slots(a, a->slot_cap);
}

static argset add_set(struct args *a, struct arg_set set)
{
    if (a->sets.n >= UINT32_MAX - 1 || !vec_push(&a->sets, set)) {
        a->failed = true;
        return ARGSET_NONE;
    }
    return argset_of_cell((int64_t)a->sets.n - 1);
}

argset args_intern(struct args *a, const struct arg *list, size_t n)
{
    if (!n)
        return ARGSET_NONE;
    if (a->n_slots * 4 >= (size_t)a->slot_cap * 3 && !grow_slots(a))
        goto failed;
    uint32_t hash = hash_values(a, list, n), at;
    probe_each(at, hash, a->slot_cap, !argset_is_none(a->slots[at].set))
    {
        const struct arg_set *s = set_at(a, a->slots[at].set);
        if (a->slots[at].hash == hash && s->kind_aux == ARGS_READY && s->len == n &&
            same_values(view_ready(a, s).p, list, n))
            return a->slots[at].set;
    }
    if (crowded(a, at - hash)) {
        if (!reseed(a))
            goto failed;
        return args_intern(a, list, n);
    }
    if (n > UINT32_MAX || !vec_reserve(&a->ready, a->ready.n + n))
        goto failed;
    argset set = add_set(a, (struct arg_set){.first = a->ready.n, .len = (uint32_t)n});
    if (argset_is_none(set))
        return set;
    memcpy(a->ready.p + a->ready.n, list, n * sizeof *list);
    a->ready.n += n;
    a->slots[at] = (struct args_slot){hash, set};
    a->n_slots++;
    return set;
failed:
    a->failed = true;
    return ARGSET_NONE;
}

argset args_intern_bytes(struct args *a, unsigned kind, uint32_t aux, struct slice payload, bool stable, bool share,
                         bool *was_new)
{
    uint32_t kind_aux = args_kind_aux(kind, aux);
    struct args_slot *slot = NULL;
    uint32_t hash = 0;
    if (was_new)
        *was_new = true;
    if (share) {
        if (a->n_slots * 4 >= (size_t)a->slot_cap * 3 && !grow_slots(a))
            goto failed;
        hash = hash_payload(a, payload, kind_aux);
        uint32_t at;
        probe_each(at, hash, a->slot_cap, !argset_is_none(a->slots[at].set))
        {
            if (a->slots[at].hash != hash)
                continue;
            const struct arg_set *s = set_at(a, a->slots[at].set);
            if (s->kind_aux == kind_aux && s->len == payload.len && same_bytes(s->bytes, payload.p, payload.len)) {
                if (was_new)
                    *was_new = false;
                return a->slots[at].set;
            }
        }
        if (crowded(a, at - hash)) {
            if (!reseed(a))
                goto failed;
            return args_intern_bytes(a, kind, aux, payload, stable, share, was_new);
        }
        slot = &a->slots[at];
    }
    if (payload.len > UINT32_MAX)
        goto failed;
    const uint8_t *bytes = payload.p;
    if (!stable && payload.len) {
        uint8_t *copy = arena_alloc_bytes(&a->bytes, payload.len);
        if (!copy)
            goto failed;
        bytes = memcpy(copy, payload.p, payload.len);
    }
    argset set = add_set(a, (struct arg_set){.bytes = bytes, .len = (uint32_t)payload.len, .kind_aux = kind_aux});
    if (slot && !argset_is_none(set)) {
        *slot = (struct args_slot){hash, set};
        a->n_slots++;
    }
    return set;
failed:
    a->failed = true;
    return ARGSET_NONE;
}

static void values_of_base(const struct args *a, argset set, bool with_defaults, struct arg_list *out)
{
    if (!argset_is_none(set) && set.plus_one <= a->base.n)
        a->base.values(a->base.ctx, set.plus_one - 1, with_defaults, out);
}

void args_values(const struct args *a, argset set, struct arg_list *out)
{
    if (a->base.values) {
        values_of_base(a, set, false, out);
        return;
    }
    const struct arg_set *s = set_at(a, set);
    if (!s)
        return;
    unsigned kind = s->kind_aux >> ARGS_AUX_BITS;
    if (kind == ARGS_READY) {
        struct arg_list ready = view_ready(a, s);
        if (vec_reserve(out, out->n + ready.n)) {
            memcpy(out->p + out->n, ready.p, ready.n * sizeof *ready.p);
            out->n += ready.n;
        }
    } else if (a->decoders[kind].decode) {
        a->decoders[kind].decode(a->decoders[kind].ctx, s->kind_aux & ((1u << ARGS_AUX_BITS) - 1),
                                 slice_of(s->bytes, s->len), out);
    }
}

void args_values_of(const struct args *a, argset set, strid key, struct arg_list *out)
{
    const struct arg_set *s = a->base.values ? NULL : set_at(a, set);
    unsigned kind = s ? s->kind_aux >> ARGS_AUX_BITS : ARGS_READY;
    if (!a->decoders[kind].decode_key) {
        args_values(a, set, out);
        return;
    }
    a->decoders[kind].decode_key(a->decoders[kind].ctx, s->kind_aux & ((1u << ARGS_AUX_BITS) - 1),
                                 slice_of(s->bytes, s->len), key, out);
}

void args_values_by(const struct args *a, unsigned decoder, argset set, struct arg_list *out)
{
    if (a->base.values) {
        values_of_base(a, set, decoder == ARGS_WITH_DEFAULTS, out);
        return;
    }
    const struct arg_set *s = set_at(a, set);
    if (s && s->kind_aux >> ARGS_AUX_BITS != ARGS_READY && a->decoders[decoder].decode)
        a->decoders[decoder].decode(a->decoders[decoder].ctx, s->kind_aux & ((1u << ARGS_AUX_BITS) - 1),
                                    slice_of(s->bytes, s->len), out);
}

void arg_list_add(struct args *a, struct arg_list *l, strid flat_key, strid key, enum arg_type type, int64_t word)
{
    if (!vec_push(l, (struct arg){flat_key, key, word, (uint8_t)type}))
        a->failed = true;
}

static void add_named(struct args *a, struct arg_list *l, const char *key, enum arg_type type, int64_t word)
{
    strid k = strpool_intern_str(a->strings, key);
    arg_list_add(a, l, k, k, type, word);
}

void arg_list_int(struct args *a, struct arg_list *l, const char *key, int64_t v)
{
    add_named(a, l, key, ARG_INT, v);
}

void arg_list_uint(struct args *a, struct arg_list *l, const char *key, uint64_t v)
{
    add_named(a, l, key, ARG_UINT, (int64_t)v);
}

void arg_list_bool(struct args *a, struct arg_list *l, const char *key, bool v)
{
    add_named(a, l, key, ARG_BOOL, v);
}

void arg_list_str(struct args *a, struct arg_list *l, const char *key, strid v)
{
    add_named(a, l, key, ARG_STRING, v);
}

void arg_list_real(struct args *a, struct arg_list *l, const char *key, double v)
{
    add_named(a, l, key, ARG_REAL, column_f64_word(v));
}

void arg_list_free(struct arg_list *l)
{
    vec_free(l);
}

void args_free(struct args *a)
{
    arena_free(&a->bytes);
    vec_free(&a->sets);
    vec_free(&a->ready);
    vec_free(&a->completed);
    mem_free(a->slots);
    mem_free(a->numbers);
    struct strpool *strings = a->strings;
    *a = (struct args){.strings = strings};
}
