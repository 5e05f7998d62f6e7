/* Keys of lookups: which place has a key; lookups that need no list. */
#ifndef MERIDIAN_SQL_PLAN_LOOKUP_PRIVATE_H
#define MERIDIAN_SQL_PLAN_LOOKUP_PRIVATE_H

#include "sql/plan/plan_private.h"

/* Different keys, of n_keys words each, in the order in which they were added; n_keys may be 0. */
struct lookup_keys {
    int64_t *keys;
    uint64_t *slots; /* the upper half of the hash, then place + 1 */
    uint32_t n, cap, mask, n_keys;
    uint32_t *direct; /* by key - base: place + 1; NULL: by hash */
    int64_t base;
    uint64_t width;
};

/* Memory of n things and one more, counted; NULL: r->rc. */
void *lookup_alloc(struct run *r, uint64_t n, size_t size);
void lookup_keys_free(struct lookup_keys *k);
/* Before the first is added: the only key of `n` rows is a column of a table. Where its values lie close together they
 * need no hash. False: r->rc. */
bool lookup_keys_number(struct run *r, struct lookup_keys *k, const struct column *c, uint32_t n);
/* The place of the key, + 1; 0: it is not there. */
uint32_t lookup_keys_find(const struct lookup_keys *k, const int64_t *key);
/* The same; one that is not there is added. 0: r->rc. */
uint32_t lookup_keys_add(struct run *r, struct lookup_keys *k, const int64_t *key);
/* Fetches memory for the row that comes AHEAD rows behind row i of n, whose key is words[k][…]. */
void lookup_keys_fetch(const struct lookup_keys *k, const int64_t *const *words, uint32_t i, uint32_t n);

/* ---- lookup_walk.c: by ranges, without a list of the rows ---- */

struct lookup_walk;
/* NULL: it needs a list, or r->rc. */
struct lookup_walk *lookup_walk_open(struct run *r, const struct plan_lookup *of);
/* The result for the arguments, of which none is NULL: keys, then what the ranges compare with. Of no use where the
 * walk has become too dear. */
int64_t lookup_walk_find(struct run *r, struct lookup_walk *w, const int64_t *words);
/* Has it been as much work as a list would have been? */
bool lookup_walk_is_dear(const struct lookup_walk *w);
void lookup_walk_free(struct lookup_walk *w);

#endif
