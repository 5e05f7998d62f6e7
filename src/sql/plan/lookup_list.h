/* The rows of a query within an expression, in the order in which ranges find them: lookup_list.c makes the list,
 * lookup_ranges.c looks into it. */
#ifndef MERIDIAN_SQL_PLAN_LOOKUP_LIST_H
#define MERIDIAN_SQL_PLAN_LOOKUP_LIST_H

#include "sql/plan/lookup_private.h"

enum best { BEST_AT_BEGIN, BEST_AT_END, BEST_IN_TREE };

struct lookup_ranges {
    const struct plan_lookup *of;
    const struct table *sorted; /* all rows of this table count, which its column sorts: there is nothing to be made */
    uint32_t column;
    struct lookup_walk *walk;         /* or few rows have asked: they need no list */
    struct lookup_keys keys;          /* places are groups */
    uint32_t *starts, n;              /* by group, and the end; rows that may be found */
    uint32_t *rows;                   /* by place: of the table */
    uint8_t by[PLAN_MAX_RANGES];      /* ranges in the order in which they are looked at */
    bool cuts[PLAN_MAX_RANGES];       /* by that order: by search */
    int64_t *own[PLAN_MAX_RANGES];    /* by place: what they compare */
    int64_t *bounds[PLAN_MAX_RANGES]; /* what ascends, where that is not the same; NULL: own */
    uint32_t *near[PLAN_MAX_RANGES];  /* by group: where the last search ended */
    bool exact;                       /* what the searches leave passes */
    bool differs;                     /* EXISTS of another value: it is the least or the greatest */
    int64_t *values, *scores;         /* the least score is the best */
    uint64_t *sums;                   /* of the values before the place */
    uint32_t *counts;                 /* of those that are not NULL */
    uint32_t *tree;                   /* the best place of each node */
    uint8_t best;                     /* enum best: where it is among places */
    uint64_t looked;
};

/* Runs the query and lays its rows out; false: r->rc. */
bool lookup_list_make(struct run *r, struct lookup_ranges *l);
void lookup_list_free(struct lookup_ranges *l);

/* Where the words of a range stand in the list of the query. */
static inline uint32_t item_of_range(const struct plan_lookup *of, uint32_t range)
{
    return of->n_keys + (of->kind == LOOKUP_VALUE) + range;
}

static inline int64_t null_of(const struct plan_lookup *of, uint32_t item)
{
    return plan_null((enum plan_type)of->sub->items[item].expr->type);
}

/* Is the value of one place better than that of another? The first of equals is. */
static inline bool better(const struct lookup_ranges *l, uint32_t a, uint32_t b)
{
    return l->scores[a] < l->scores[b] || (l->scores[a] == l->scores[b] && a < b);
}

#endif
