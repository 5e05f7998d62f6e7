/* Keeps sets of args as bytes. */
#include "importer/core/kept_args.h"

#include "base/alloc.h"

static void grow(struct kept_args *k)
{
    enum { WORTH_THE_MOST = 65536 };
    unsigned bits = k->grow_from == KEPT_FROM ? KEPT_BITS : KEPT_BITS_MOST;
    k->grow_from = k->grow_from == KEPT_FROM ? WORTH_THE_MOST : UINT64_MAX;
    enum { LINE = _Alignof(struct kept_set) };
    k->shift = 64 - bits;
    mem_free(k->memory);
    k->memory = mem_zalloc((sizeof *k->recent << bits) + LINE);
    k->recent = k->memory ? (void *)(((uintptr_t)k->memory + LINE) & ~(uintptr_t)(LINE - 1)) : NULL;
}

void kept_args_free(struct kept_args *k)
{
    mem_free(k->memory);
    *k = (struct kept_args){0};
}

argset kept_args_intern(struct kept_args *k, struct kept_sharing *s, uint32_t kind_aux, struct slice payload,
                        enum kept_place where, struct kept_set *place)
{
    bool share = !s->off, was_new;
    if (__builtin_expect(k->n == k->grow_from, 0)) {
        grow(k);
        place = NULL;
    }
    bool stable = where == KEPT_STABLE || (where == KEPT_IN_FILE && importer_bytes_stable(k->im, payload.p));
    argset set = args_intern_bytes(&k->im->st->args, kind_aux >> ARGS_AUX_BITS, kind_aux & ((1u << ARGS_AUX_BITS) - 1),
                                   payload, stable, share, &was_new);
    k->n += !k->recent || !was_new;
    s->hits += share && !was_new;
    if (++s->tries == (share ? KEPT_WINDOW : KEPT_REST)) {
        s->off = share && s->hits < KEPT_MIN_HITS;
        s->tries = s->hits = 0;
    }
    if (place && !argset_is_none(set) && (!was_new || !place->what)) {
        place->set = set;
        place->what = kept_what(kind_aux, (uint32_t)payload.len);
        payload_words(payload.p, payload.len, place->words);
    }
    return set;
}
