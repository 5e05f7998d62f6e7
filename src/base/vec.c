/* Grows arrays. */
#include "base/vec.h"

#include <stdint.h>

static bool grow(void **p, size_t *cap, size_t elem_size, size_t grown)
{
    if (grown > SIZE_MAX / 2 / elem_size)
        return false;
    void *q = mem_realloc(*p, grown * elem_size);
    if (!q)
        return false;
    *p = q;
    *cap = grown;
    return true;
}

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

bool vec_reserve_(void **p, size_t *cap, size_t elem_size, size_t need)
{
    return grow(p, cap, elem_size, max(need, *cap < 8 ? 8 : *cap + *cap / 2));
}

bool vec_reserve_small_(void **p, size_t *cap, size_t elem_size, size_t need)
{
    return grow(p, cap, elem_size, max(need, *cap + *cap / 2));
}
