/* Grows arrays. */
#include "base/vec.h"

#include <stdint.h>

bool vec_reserve_(void **p, size_t *cap, size_t elem_size, size_t need)
{
    size_t grown = *cap < 8 ? 8 : *cap + *cap / 2;
    if (grown < need)
        grown = need;
    if (grown > SIZE_MAX / 2 / elem_size)
        return false;
    void *q = mem_realloc(*p, grown * elem_size);
    if (!q)
        return false;
    *p = q;
    *cap = grown;
    return true;
}
