/* What joins are made of: scans of tables, and indices of their rows by keys. */
#ifndef MERIDIAN_SQL_PLAN_JOIN_PRIVATE_H
#define MERIDIAN_SQL_PLAN_JOIN_PRIVATE_H

#include "sql/plan/plan_private.h"
#include "sql/slice_tree.h"

/* A scan of a step's source: tests of packed values first, then those that must be computed. */
struct scan {
    struct test tests[PLAN_MAX_TESTS];
    uint32_t n_tests;
    struct plan_expr *others[PLAN_MAX_TESTS]; /* tests that the scan does not know */
    uint32_t n_others;
    uint32_t lo, hi;
    uint32_t *rows; /* those to be looked at, ascending; NULL: all of [lo, hi) */
    uint32_t n_rows, at;
    int64_t *listed; /* while it is being opened: numbers of rows, ascending */
    uint32_t n_listed;
};

void scan_open(struct run *r, const struct plan_step *step, struct scan *s);
/* The rows of the next chunk that pass, in `rows` (BATCH of them, and some room); false at the end. */
bool scan_next(struct run *r, struct scan *s, uint8_t source, uint32_t *rows, uint32_t *n);
void scan_close(struct scan *s);

/* The rows of a source by key: rows of one key are chained, ascending. Most of the time goes into waiting for memory,
 * so a slot holds a part of the hash beside the place, and the keys of a place lie side by side. */
struct key_index {
    uint64_t *slots; /* the upper half of the hash, then the place of the first row of a key, + 1 */
    uint32_t *next;  /* by place in rows: the next of the same key, + 1 */
    uint32_t *rows;
    int64_t *keys; /* by place, n_keys each */
    uint32_t n, cap, mask;
    uint32_t *direct; /* of one key with few values: the first place by key, + 1; NULL: there are too many */
    int64_t base;     /* the least key */
    uint64_t width;
    bool unique;     /* with `direct`: no key has two rows */
    uint8_t *passes; /* by row number: for joins by row with tests; NULL: all do */
    int sorted_by;   /* the key by which the places ascend; -1: none, or looking by hash is quicker */
    uint32_t at;     /* where the last one was found in that order */
    uint64_t looked, jumped;
};

void key_index_free(struct key_index *h);
/* Room for n more rows with their keys, which the caller puts behind the others. False: r->rc. */
bool key_index_room(struct run *r, const struct plan_step *step, struct key_index *h, uint32_t n);
/* Makes the rows findable; by hash, when the step has ranges. */
bool key_index_finish(struct run *r, const struct plan_step *step, struct key_index *h);
/* Between batches: goes over to hashes when rows do not come in the order of the index. */
void key_index_adapt(struct run *r, const struct plan_step *step, struct key_index *h);
/* Fetches memory for the rows of a batch behind row i, whose keys lie side by side. */
void key_index_fetch(const struct key_index *h, uint32_t n_keys, const int64_t *keys, uint32_t i, uint32_t n);
/* The first place that has the key, + 1; 0: none. */
uint32_t key_index_first(struct key_index *h, uint32_t n_keys, const int64_t *key);
/* The next one behind that place. */
uint32_t key_index_next(const struct key_index *h, uint32_t n_keys, const int64_t *key, uint32_t place);
/* Of joins by row number. Finds the rows of the source that pass the step's tests. False: r->rc. */
bool key_index_pass(struct run *r, const struct plan_step *step, struct key_index *h);
/* The rows of a batch whose partner is there and passes: how many, and which of the n. */
uint32_t key_index_partners(const struct key_index *h, const int64_t *keys, uint32_t n, uint32_t n_rows,
                            uint32_t *found);

/* The rows of a source by key and, within a key, by what a range compares. */
struct range_index {
    uint32_t *rows; /* by place */
    uint32_t n, longest;
    uint32_t *starts, *ends;          /* by the first place of a key in the key index */
    int64_t *bounds[PLAN_MAX_RANGES]; /* by place: what ascends; NULL: the first of them */
    uint32_t *near[PLAN_MAX_RANGES];  /* by the first place of a key: where the last search ended */
    bool turned;                      /* rows of a key do not ascend */
    uint32_t *sorted;                 /* then: room for some of them */
};

void range_index_free(struct range_index *x);
/* From an index that has the rows by hash. False: r->rc. */
bool range_index_finish(struct run *r, const struct plan_step *s, struct key_index *h, struct range_index *x);
/* The places that may pass for row i of a batch, whose words for the ranges are `others`; `first`: the first place of
 * its key, + 1. */
void range_index_find(const struct plan_step *s, struct range_index *x, uint32_t first, const int64_t *const *others,
                      uint32_t i, uint32_t *lo, uint32_t *hi);
/* The same by the column alone by which the table is sorted, without an index: row numbers. All other conditions are
 * still to be tested, but those on this column. */
void range_index_find_rows(const struct run *r, const struct plan_step *s, const int64_t *const *others, uint32_t i,
                           uint32_t *lo, uint32_t *hi);

bool run_alloc_rows(struct run *r, uint32_t **out, uint64_t n);

/* Narrows the scan of the first step to the rows that a later step can join, when it knows few keys: narrow.c. */
void narrow_scan(struct run *r, struct scan *scan, const struct plan_step *first, const struct plan_step *later,
                 const struct key_index *h);
/* Narrows the scan of a step to the rows of these of its only key, ascending. */
void narrow_to_keys(struct run *r, struct scan *scan, const struct plan_step *step, const int64_t *keys, uint32_t n);
/* Are so many different keys few among the values of the step's column? */
bool narrow_is_worth(const struct run *r, const struct plan_step *step, uint32_t n);

/* ---- join.c ---- */

struct vtab;

struct step_state {
    struct key_index index;
    struct range_index ranges;
    uint32_t *out[PLAN_ALL_SOURCES]; /* rows of the batch being made */
    uint32_t n_out;
    uint32_t *filtered[PLAN_ALL_SOURCES]; /* rows of it that pass `where` */
    int64_t *keys;                        /* of the batch being joined; behind them what ranges compare */
    uint32_t *keep;
    uint32_t *found;  /* of the batch being joined by row */
    uint32_t *list;   /* rows that are looked at as they are found: where nothing was built for them before */
    bool tests_found; /* by row: the tests are tried on the rows that are found, since those are few */
    bool walks;       /* by ranges: there is no index yet, rows between the bounds are looked at one by one */
    bool waits;       /* by ranges: the index is made when the first rows ask */
    int64_t *only;    /* the keys, ascending, whose rows the index has; NULL: it has all */
    uint32_t n_only;
    uint64_t walked, may_walk;
    struct row_list kin;  /* of one slice */
    uint8_t *matched;     /* of a right join, by row of the source: it has a partner */
    struct vtab *indexed; /* the rows of a key come from its index of the column; NULL: another way */
};

struct join {
    struct run *r;
    struct sink *sink;
    struct step_state steps[PLAN_MAX_SOURCES];
    bool ready;           /* the steps are open, and may have rows */
    bool enough, nothing; /* nothing: a source has no row that could be joined */
    uint64_t pairs;       /* looked at */
};

/* Hands on what has gathered at a step. */
void join_flush(struct join *j, uint32_t at);
/* The keys of the rows of a batch, side by side. */
void join_zip_keys(const int64_t *const *keys, uint32_t n_keys, uint32_t n, int64_t *out);
/* Is one of the keys NULL? Then it finds nothing. */
static inline bool join_is_null_key(const struct plan_step *s, const int64_t *key)
{
    for (uint32_t k = 0; k < s->n_keys; k++)
        if (key[k] == plan_null((enum plan_type)s->keys[k]->type))
            return true;
    return false;
}
/* The rows of a step's source by key; `only`: those of its only key, ascending. False: r->rc. */
bool join_index_build(struct join *j, const struct plan_step *step, struct key_index *h, const int64_t *only,
                      uint32_t n_only);
/* Hands on the pairs of row i of the batch with n rows, `rows` or those from `lo` on, that pass; any? */
bool join_put_rows(struct join *j, uint32_t at, const struct batch *b, uint32_t i, const uint32_t *rows, uint32_t lo,
                   uint32_t n);
/* Row i of the batch, which has no partner. */
void join_put_none(struct join *j, uint32_t at, const struct batch *b, uint32_t i);

/* ---- join_ranges.c ---- */

void join_by_ranges(struct join *j, uint32_t at, const struct batch *b);

/* ---- join_right.c ---- */

/* Room to remember which rows of the step's source have partners, if its join is a right one. */
bool join_right_open(struct join *j, uint32_t at);
/* The rows that have no partner, behind all that have one. */
void join_right_rest(struct join *j, uint32_t at);

#endif
