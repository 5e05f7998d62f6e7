/* Values by id, where ids are of many owners and each owner has a table: memory goes by the ids that were met, not by
 * the highest, as that of an array would (a thousand machines with an array each that is as long as the threads of them
 * all).
 *
 *     BY_ID(struct state) states = {0};
 *     struct state *s = by_id_make(&states, utid);       zeroed when it is new; NULL when out of memory
 *     struct state *t = by_id_find(&states, utid);       NULL when nothing near it was made
 *     by_id_free(&states);
 *
 * Values stand in pages of 16, which never move. A look-up is three loads. */
#ifndef MERIDIAN_BASE_BY_ID_H
#define MERIDIAN_BASE_BY_ID_H

#include <stddef.h>
#include <stdint.h>

enum { BY_ID_PAGE_BITS = 4, BY_ID_DIR_BITS = 6, BY_ID_TOP_BITS = BY_ID_PAGE_BITS + BY_ID_DIR_BITS };

struct by_id {
    void ***tops; /* directories of pages; NULL where there is none */
    size_t n;
};

#define BY_ID(type)                                                                                                    \
    struct {                                                                                                           \
        struct by_id any;                                                                                              \
        type *type_of; /* always NULL */                                                                               \
    }

static inline void *by_id_find_(const struct by_id *v, size_t size, uint32_t id)
{
    size_t top = id >> BY_ID_TOP_BITS;
    if (__builtin_expect(top >= v->n || !v->tops[top], 0))
        return NULL;
    char *page = v->tops[top][id >> BY_ID_PAGE_BITS & ((1u << BY_ID_DIR_BITS) - 1)];
    return page ? page + (id & ((1u << BY_ID_PAGE_BITS) - 1)) * size : NULL;
}

void *by_id_add_(struct by_id *v, size_t size, uint32_t id); /* which is not there */

static inline void *by_id_make_(struct by_id *v, size_t size, uint32_t id)
{
    void *there = by_id_find_(v, size, id);
    return __builtin_expect(there != NULL, 1) ? there : by_id_add_(v, size, id);
}

#define by_id_find(v, id) ((__typeof__((v)->type_of))by_id_find_(&(v)->any, sizeof *(v)->type_of, (id)))
#define by_id_make(v, id) ((__typeof__((v)->type_of))by_id_make_(&(v)->any, sizeof *(v)->type_of, (id)))

#define BY_ID_END UINT32_MAX

/* The first id from `id` on that has a place, made or beside one that was made; BY_ID_END behind the last. */
uint32_t by_id_from_(const struct by_id *v, uint32_t id);

#define by_id_each(v, id)                                                                                              \
    for (uint32_t id = by_id_from_(&(v)->any, 0); id != BY_ID_END; id = by_id_from_(&(v)->any, id + 1))

void by_id_free_(struct by_id *v);
#define by_id_free(v) by_id_free_(&(v)->any)

#endif
