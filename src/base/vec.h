/* A growable array of any type.
 *
 *     VEC(uint32_t) ids = {0};
 *     if (!vec_push(&ids, 7)) return -MRD_ENOMEM;
 *     vec_free(&ids);
 */
#ifndef MERIDIAN_BASE_VEC_H
#define MERIDIAN_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#define VEC(type)                                                                                                      \
    struct {                                                                                                           \
        type *p;                                                                                                       \
        size_t n;                                                                                                      \
        size_t cap;                                                                                                    \
    }

/* Makes room for `need` elements in all (amortised doubling); false when out of memory, then nothing changed. */
bool vec_reserve_(void **p, size_t *cap, size_t elem_size, size_t need);

#define vec_reserve(v, need) ((need) <= (v)->cap || vec_reserve_((void **)&(v)->p, &(v)->cap, sizeof *(v)->p, (need)))

/* The same for arrays of which there are very many and most stay small: the first room is what is needed, no more. */
bool vec_reserve_small_(void **p, size_t *cap, size_t elem_size, size_t need);

#define vec_reserve_small(v, need)                                                                                     \
    ((need) <= (v)->cap || vec_reserve_small_((void **)&(v)->p, &(v)->cap, sizeof *(v)->p, (need)))

/* Appends one value; false when out of memory. */
#define vec_push(v, ...) (vec_reserve((v), (v)->n + 1) ? ((v)->p[(v)->n++] = (__VA_ARGS__), true) : false)

/* Appends a zeroed element and yields a pointer to it, NULL when out of memory. The pointer lasts until the next push.
 */
#define vec_add(v)                                                                                                     \
    (vec_reserve((v), (v)->n + 1) ? (memset(&(v)->p[(v)->n], 0, sizeof *(v)->p), &(v)->p[(v)->n++]) : NULL)

#define vec_last(v)  (&(v)->p[(v)->n - 1])
#define vec_clear(v) ((v)->n = 0)
#define vec_free(v)  (mem_free((v)->p), (v)->p = NULL, (v)->n = 0, (v)->cap = 0)

#include "base/alloc.h"

#include <string.h>

#endif
