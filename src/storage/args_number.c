/* Numbers of sets of args as other importers give them. */
#include "storage/args.h"

#include "base/alloc.h"
#include "base/bisect.h"

#include <string.h>

enum { NOT_COMPLETED = UINT32_MAX, LAST = UINT32_MAX };

void args_note_complete(struct args *a, argset set)
{
    struct completed_set c = {set.plus_one - 1, (uint32_t)a->sets.n};
    if (a->completed.n < ARGS_MAX_COMPLETED && !vec_push(&a->completed, c))
        a->failed = true;
}

void args_number_last(struct args *a, argset set)
{
    struct completed_set c = {set.plus_one - 1, LAST};
    if (!argset_is_none(set) && a->completed.n < ARGS_MAX_COMPLETED && !vec_push(&a->completed, c))
        a->failed = true;
}

/* By set: the first of its entries among those that are completed. */
static uint32_t *first_completed(const struct args *a)
{
    uint32_t *first = mem_alloc(a->sets.n * sizeof *first);
    for (size_t i = 0; first && i < a->sets.n; i++)
        first[i] = NOT_COMPLETED;
    for (size_t k = a->completed.n; first && k-- > 0;)
        first[a->completed.p[k].set] = (uint32_t)k;
    return first;
}

/* The sets that are used, in order: *n of them. NULL when out of memory. A set takes its place when it is completed for
 * the first time, else when it was made; from one completed set to the next `before` never falls, but for those that
 * come last. */
static uint32_t *order(const struct args *a, const uint8_t *used, uint32_t *n)
{
    const struct completed_set *c = a->completed.p;
    size_t k = 0;
    uint32_t *m = mem_alloc((a->sets.n + 1) * sizeof *m), *first = m ? first_completed(a) : NULL;
    *n = 0;
    for (uint32_t i = 0; first && i <= a->sets.n; i++) {
        for (; k < a->completed.n && (c[k].before <= i || c[k].before == LAST); k++)
            if (c[k].before != LAST && used[c[k].set] && first[c[k].set] == k)
                m[(*n)++] = c[k].set;
        if (i < a->sets.n && used[i] && first[i] == NOT_COMPLETED)
            m[(*n)++] = i;
    }
    for (k = 0; first && k < a->completed.n; k++)
        if (c[k].before == LAST && used[c[k].set] && first[c[k].set] == k)
            m[(*n)++] = c[k].set;
    if (!first) {
        mem_free(m);
        m = NULL;
    }
    mem_free(first);
    return m;
}

/* Moves the sets to the places of `m`; places[i] becomes what set i is now. */
static bool move(struct args *a, const uint32_t *m, uint32_t n, argset *places)
{
    struct arg_set *moved = mem_alloc((n + 1) * sizeof *moved);
    if (!moved)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        moved[i] = a->sets.p[m[i]];
        places[m[i]] = argset_of_cell(i);
    }
    if (n)
        memcpy(a->sets.p, moved, n * sizeof *moved);
    mem_free(moved);
    a->sets.n = n;
    mem_free(a->slots); /* they know the old places */
    a->slots = NULL;
    a->slot_cap = a->n_slots = 0;
    return true;
}

/* The number of the first value of each set, and one more. */
static uint32_t *count_values(const struct args *a, const uint32_t *m, uint32_t n)
{
    uint32_t *numbers = mem_alloc(((size_t)n + 1) * sizeof *numbers);
    struct arg_list list = {0};
    uint64_t next = 0;
    for (uint32_t i = 0; numbers && i < n; i++) {
        list.n = 0;
        args_values(a, argset_of_cell(m[i]), &list);
        numbers[i] = (uint32_t)next;
        next += list.n;
    }
    arg_list_free(&list);
    if (!numbers || next > UINT32_MAX - 1) {
        mem_free(numbers);
        return NULL;
    }
    numbers[n] = (uint32_t)next;
    return numbers;
}

argset *args_number(struct args *a, const uint8_t *used)
{
    uint32_t n;
    argset *places = mem_zalloc(a->sets.n * sizeof *places);
    uint32_t *m = places ? order(a, used, &n) : NULL;
    uint32_t *numbers = m ? count_values(a, m, n) : NULL;
    bool done = numbers && move(a, m, n, places);
    mem_free(m);
    if (!done) {
        mem_free(numbers);
        mem_free(places);
        return NULL;
    }
    a->numbers = numbers;
    a->n_numbers = n;
    return places;
}

int64_t args_cell(const struct args *a, argset set)
{
    if (!a->numbers || argset_is_none(set))
        return argset_cell(set);
    uint32_t at = set.plus_one - 1;
    return at < a->n_numbers && a->numbers[at] < a->numbers[at + 1] ? a->numbers[at] : COL_NULL;
}

argset args_of_cell(const struct args *a, int64_t cell)
{
    if (!a->numbers)
        return argset_of_cell(cell);
    if (cell < 0 || cell >= a->numbers[a->n_numbers])
        return ARGSET_NONE;
    uint32_t n = a->n_numbers; /* sets that begin at or before the cell */
    BISECT(n, i, a->numbers[i] <= cell);
    return n && a->numbers[n - 1] == cell ? (argset){n} : ARGSET_NONE;
}

enum { NEXT_SETS = 16 }; /* that are looked at before all are searched: a table has most sets, not each */

argset args_of_next_cell(const struct args *a, int64_t cell, argset *last)
{
    if (!a->numbers || cell < 0 || cell > UINT32_MAX)
        return args_of_cell(a, cell);
    const uint32_t first = last->plus_one ? last->plus_one - 1 : 0;
    for (uint32_t at = first; at - first < NEXT_SETS && at < a->n_numbers && a->numbers[at] <= cell; at++)
        if (a->numbers[at] == cell && a->numbers[at + 1] > cell)
            return *last = (argset){at + 1};
    argset set = args_of_cell(a, cell);
    if (!argset_is_none(set))
        *last = set;
    return set;
}
