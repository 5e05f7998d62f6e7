/* Sorts ranges by their starts and finds the smallest. */
#include "symbols/range_list.h"

#include "base/bisect.h"

#include <stdlib.h>

bool range_list_add(struct range_list *l, uint64_t start, uint64_t end, uint32_t id)
{
    return start >= end || vec_push(&l->list, (struct code_range){start, end, 0, id});
}

static int by_start(const void *a, const void *b)
{
    const struct code_range *r = a, *s = b;
    if (r->start != s->start)
        return r->start < s->start ? -1 : 1;
    if (r->end != s->end)
        return r->end > s->end ? -1 : 1; /* the outer one first */
    return (r->id > s->id) - (r->id < s->id);
}

void range_list_sort(struct range_list *l)
{
    uint64_t reach = 0;
    if (l->list.n > 1)
        qsort(l->list.p, l->list.n, sizeof *l->list.p, by_start);
    for (size_t i = 0; i < l->list.n; i++) {
        reach = l->list.p[i].end > reach ? l->list.p[i].end : reach;
        l->list.p[i].reach = reach;
    }
}

const struct code_range *range_list_find(const struct range_list *l, uint64_t address)
{
    enum { MAX_BACK = 4096 }; /* ranges before it that end earlier, inside of one that does not */
    size_t at = l->list.n;
    BISECT(at, mid, l->list.p[mid].start <= address);
    for (int i = 0; at && i < MAX_BACK && l->list.p[at - 1].reach > address; i++, at--)
        if (l->list.p[at - 1].end > address)
            return &l->list.p[at - 1];
    return NULL;
}

void range_list_free(struct range_list *l)
{
    vec_free(&l->list);
}
