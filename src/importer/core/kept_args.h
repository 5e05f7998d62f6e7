/* Sets of args that are kept as bytes, for events that come with the same ones again and again: equal bytes are one
 * set.
 *
 * A set's own bytes are where it was met first, on a page of the file for each. The ones met not long ago stand beside
 * each other, with their bytes: comparing there halves what a look costs. */
#ifndef MERIDIAN_IMPORTER_CORE_KEPT_ARGS_H
#define MERIDIAN_IMPORTER_CORE_KEPT_ARGS_H

#include "base/hash.h"
#include "importer/core/context.h"

/* Room for more of them the more sets are asked for: a trace of a few events costs little. */
enum { KEPT_FROM = 1024, KEPT_BITS = 11, KEPT_BITS_MOST = 13, KEPT_SET_BYTES = 32 };

struct kept_set {
    uint8_t payload[KEPT_SET_BYTES];
    argset set;
    uint32_t kind_aux; /* of the decoder, and what it is given, */
    uint32_t len;      /* and how many bytes of the payload count; 0: none yet */
};

/* To be made by KEPT_ARGS. */
struct kept_args {
    struct importer *im;
    struct kept_set *recent; /* 1 << bits; NULL until that is worth its memory */
    unsigned bits;
    uint64_t n;         /* sets asked for, */
    uint64_t grow_from; /* and how many it takes until there is room for more recent ones */
};
#define KEPT_ARGS(importer) ((struct kept_args){.im = (importer), .grow_from = KEPT_FROM})

/* How often equal sets come, among those that are alike: in a window of looks, how many found one. */
struct kept_sharing {
    uint16_t tries, hits;
    bool off; /* too rare to look for */
};
enum { KEPT_WINDOW = 4096, KEPT_MIN_HITS = KEPT_WINDOW / 8 };

/* What is known of the bytes' place. */
enum kept_place {
    KEPT_ANYWHERE, /* they are copied */
    KEPT_IN_FILE,  /* they are copied unless importer_bytes_stable() */
    KEPT_STABLE,   /* they stay as long as the storage */
};

/* The first and the last 8 of at least 1 byte; of fewer than 8, all of them in both. With the length they are all there
 * is to know of up to 16 bytes. */
static inline void bytes_ends(const uint8_t *p, size_t len, uint64_t *first, uint64_t *last)
{
    if (len >= 8) {
        memcpy(first, p, 8);
        memcpy(last, p + len - 8, 8);
        return;
    }
    uint32_t lo = 0, hi = 0;
    if (len >= 4) {
        memcpy(&lo, p, 4);
        memcpy(&hi, p + len - 4, 4);
    } else {
        lo = p[0];
        hi = (uint32_t)p[len / 2] << 8 | p[len - 1];
    }
    *first = *last = (uint64_t)hi << 32 | lo;
}

/* The 16 bytes between the ends, of 17 to 32 bytes: with the ends they are all. */
static inline bool bytes_between_same(const uint8_t *a, const uint8_t *b, size_t len)
{
    uint64_t a_low, a_high, b_low, b_high;
    memcpy(&a_low, a + 8, 8);
    memcpy(&b_low, b + 8, 8);
    memcpy(&a_high, a + len - 16, 8);
    memcpy(&b_high, b + len - 16, 8);
    return a_low == b_low && a_high == b_high;
}
_Static_assert(KEPT_SET_BYTES <= 32, "four words are all there is");

void kept_args_grow(struct kept_args *k);
void kept_args_free(struct kept_args *k);

/* As kept_args(), looking among all sets; `place`: where it is remembered, NULL: nowhere. */
argset kept_args_intern(struct kept_args *k, struct kept_sharing *s, uint32_t kind_aux, struct slice payload,
                        enum kept_place where, struct kept_set *place);

/* The set of a payload for a decoder (args_intern_bytes()). */
static inline argset kept_args(struct kept_args *k, struct kept_sharing *s, unsigned kind, uint32_t aux,
                               struct slice payload, enum kept_place where)
{
    uint32_t len = (uint32_t)payload.len, kind_aux = args_kind_aux(kind, aux);
    uint64_t first, last, middle = 0, first_known, last_known;
    struct kept_set *place = NULL;
    if (__builtin_expect(k->n++ == k->grow_from, 0))
        kept_args_grow(k);
    if (k->recent && !s->off && payload.len && payload.len <= KEPT_SET_BYTES) {
        bytes_ends(payload.p, len, &first, &last);
        if (len > 16)
            memcpy(&middle, payload.p + 8, 8);
        uint64_t hash = hash_combine(first ^ kind_aux ^ middle << 7, last ^ len);
        place = &k->recent[hash & ((1u << k->bits) - 1)];
        if (place->kind_aux == kind_aux && place->len == len && s->tries + 1 < KEPT_WINDOW) {
            bytes_ends(place->payload, len, &first_known, &last_known);
            if (first == first_known && last == last_known &&
                (len <= 16 || bytes_between_same(place->payload, payload.p, len))) {
                s->tries++;
                s->hits++;
                return place->set;
            }
        }
    }
    return kept_args_intern(k, s, kind_aux, payload, where, place);
}

#endif
