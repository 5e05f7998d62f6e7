/* Values by id: directories of pages. */
#include "base/by_id.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <string.h>

enum { PAGE_MASK = (1 << BY_ID_PAGE_BITS) - 1, DIR_LEN = 1 << BY_ID_DIR_BITS };

static bool reach(struct by_id *v, size_t top)
{
    if (top < v->n)
        return true;
    size_t n = top + top / 2 + 1;
    void ***grown = mem_realloc(v->tops, n * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + v->n, 0, (n - v->n) * sizeof *grown);
    v->tops = grown;
    v->n = n;
    return true;
}

void *by_id_add_(struct by_id *v, size_t size, uint32_t id)
{
    size_t top = id >> BY_ID_TOP_BITS;
    if (!reach(v, top) || (!v->tops[top] && !(v->tops[top] = mem_zalloc(DIR_LEN * sizeof **v->tops))))
        return NULL;
    void **page = &v->tops[top][id >> BY_ID_PAGE_BITS & (DIR_LEN - 1)];
    if (!(*page = mem_zalloc(size << BY_ID_PAGE_BITS)))
        return NULL;
    return (char *)*page + (id & PAGE_MASK) * size;
}

uint32_t by_id_from_(const struct by_id *v, uint32_t id)
{
    for (uint64_t at = id; at >> BY_ID_TOP_BITS < v->n;) {
        void **dir = v->tops[at >> BY_ID_TOP_BITS];
        if (!dir)
            at = ((at >> BY_ID_TOP_BITS) + 1) << BY_ID_TOP_BITS;
        else if (dir[at >> BY_ID_PAGE_BITS & (DIR_LEN - 1)])
            return (uint32_t)at;
        else
            at = ((at >> BY_ID_PAGE_BITS) + 1) << BY_ID_PAGE_BITS;
    }
    return BY_ID_END;
}

void by_id_free_(struct by_id *v)
{
    for (size_t top = 0; top < v->n; top++) {
        for (size_t i = 0; v->tops[top] && i < DIR_LEN; i++)
            mem_free(v->tops[top][i]);
        mem_free(v->tops[top]);
    }
    mem_free(v->tops);
    *v = (struct by_id){0};
}
