/* Keeps sets of args as bytes. */
#include "importer/core/kept_args.h"

#include "base/alloc.h"

void kept_args_grow(struct kept_args *k)
{
    enum { WORTH_THE_MOST = 65536 };
    k->grow_from = k->bits ? UINT64_MAX : WORTH_THE_MOST;
    k->bits = k->bits ? KEPT_BITS_MOST : KEPT_BITS;
    mem_free(k->recent);
    k->recent = mem_zalloc(sizeof *k->recent << k->bits);
}

void kept_args_free(struct kept_args *k)
{
    mem_free(k->recent);
    *k = (struct kept_args){0};
}

argset kept_args_intern(struct kept_args *k, struct kept_sharing *s, uint32_t kind_aux, struct slice payload,
                        enum kept_place where, struct kept_set *place)
{
    bool share = !s->off, was_new;
    bool stable = where == KEPT_STABLE || (where == KEPT_IN_FILE && importer_bytes_stable(k->im, payload.p));
    argset set = args_intern_bytes(&k->im->st->args, kind_aux >> ARGS_AUX_BITS, kind_aux & ((1u << ARGS_AUX_BITS) - 1),
                                   payload, stable, share, &was_new);
    if (share) {
        s->hits += !was_new;
        if (++s->tries == KEPT_WINDOW) {
            s->off = s->hits < KEPT_MIN_HITS;
            s->tries = s->hits = 0;
        }
    }
    if (place && !argset_is_none(set)) {
        *place = (struct kept_set){.set = set, .kind_aux = kind_aux, .len = (uint32_t)payload.len};
        memcpy(place->payload, payload.p, payload.len);
    }
    return set;
}
