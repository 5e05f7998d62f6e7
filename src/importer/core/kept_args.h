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

/* A line of memory each. */
struct kept_set {
    _Alignas(64) uint64_t words[KEPT_SET_BYTES / 8]; /* the payload, by payload_words() */
    uint64_t what;                                   /* kept_what(); 0: none yet */
    argset set;
};

/* To be made by KEPT_ARGS. */
struct kept_args {
    struct importer *im;
    struct kept_set *recent; /* 1 << (64 - shift); NULL until that is worth its memory, */
    void *memory;            /* where they stand */
    unsigned shift;          /* of a hash to its place */
    uint64_t n;              /* sets that were not found there and could have been, */
    uint64_t grow_from;      /* and how many it takes until there is room for more */
};
#define KEPT_ARGS(importer) ((struct kept_args){.im = (importer), .grow_from = KEPT_FROM})

/* How often equal sets come, among those that are alike: in a window of looks, how many found one. Where those are too
 * few nothing is looked for in the next KEPT_REST sets, and then again in a window. */
struct kept_sharing {
    uint16_t tries, hits; /* while it is off: `tries` sets so far */
    bool off;
};
enum { KEPT_WINDOW = 4096, KEPT_MIN_HITS = KEPT_WINDOW / 8, KEPT_REST = 15 * KEPT_WINDOW };

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

/* All there is to know of 1 to 32 bytes whose number is known: the ends, and of more than 16 what is between them. */
static inline void payload_words(const uint8_t *p, size_t len, uint64_t words[static KEPT_SET_BYTES / 8])
{
    bytes_ends(p, len, &words[0], &words[1]);
    words[2] = words[3] = 0;
    if (len > 16) {
        memcpy(&words[2], p + 8, 8);
        memcpy(&words[3], p + len - 16, 8);
    }
}
_Static_assert(KEPT_SET_BYTES == 32, "four words are all there is");

/* The decoder, what it is given, and the number of bytes, of which there are some. */
static inline uint64_t kept_what(uint32_t kind_aux, uint32_t len)
{
    return (uint64_t)kind_aux << 32 | len;
}

void kept_args_free(struct kept_args *k);

/* As kept_args(), looking among all sets; `place`: where it is remembered, NULL: nowhere. */
argset kept_args_intern(struct kept_args *k, struct kept_sharing *s, uint32_t kind_aux, struct slice payload,
                        enum kept_place where, struct kept_set *place);

/* Counts that a payload has come again whose set the caller knows. False when it is to be asked for nevertheless, as
 * the last of a window. */
static inline bool kept_args_again(struct kept_sharing *s)
{
    if (s->off)
        return true;
    if (s->tries + 1 == KEPT_WINDOW)
        return false;
    s->tries++;
    s->hits++;
    return true;
}

/* The set of a payload for a decoder (args_intern_bytes()). */
static inline argset kept_args(struct kept_args *k, struct kept_sharing *s, unsigned kind, uint32_t aux,
                               struct slice payload, enum kept_place where)
{
    uint32_t kind_aux = args_kind_aux(kind, aux);
    struct kept_set *place = NULL;
    if (k->recent && !s->off && payload.len - 1 < KEPT_SET_BYTES) {
        uint64_t w[KEPT_SET_BYTES / 8], what = kept_what(kind_aux, (uint32_t)payload.len);
        payload_words(payload.p, payload.len, w);
        uint64_t mixed = what ^ w[0] ^ (w[1] << 23 | w[1] >> 41) ^ (w[2] << 43 | w[2] >> 21);
        place = &k->recent[mixed * 0x9e3779b97f4a7c15u >> k->shift];
        uint64_t differ = (place->what ^ what) | (place->words[0] ^ w[0]) | (place->words[1] ^ w[1]);
        if (payload.len > 16)
            differ |= (place->words[2] ^ w[2]) | (place->words[3] ^ w[3]);
        if (!differ && s->tries + 1 < KEPT_WINDOW) {
            s->tries++;
            s->hits++;
            return place->set;
        }
    }
    return kept_args_intern(k, s, kind_aux, payload, where, place);
}

#endif
