/* The heads of queues, and which of them comes first: the loser tree of the merge.
 *
 * A head is one number, time above and leaf below, so that two of them are compared without a branch: which of two
 * queues goes on is as hard to foresee as a coin. Up to MERGE_FEW heads stand in a row instead: looking through them
 * all takes less time than waiting for the matches of a tree, each of which needs the one before. */
#ifndef MERIDIAN_IMPORTER_SORT_MERGE_TREE_H
#define MERIDIAN_IMPORTER_SORT_MERGE_TREE_H

#include "base/vec.h"

#include <stdint.h>

enum { MERGE_FEW = 12 };

typedef unsigned __int128 merge_head;

/* The head of a queue that has nothing more: later than any time. */
#define MERGE_HEAD_DONE ((merge_head)1 << 96)

struct merge_tree {
    VEC(merge_head)
    nodes; /* [0] the winner, [1..n) the losers of the matches, [n..2n) room to build it, [2n..3n) the leaves */
    uint32_t n;
    uint32_t n_few; /* heads in `few`, when n is small, in order of their leaves; the others are done */
    struct {
        int64_t ts;
        uint32_t leaf;
    } few[MERGE_FEW];
    uint32_t first; /* in `few`: the one that merge_tree_first() gave */
};

/* Room for n leaves (n > 0); false when out of memory. Each is set, then the tree is built. */
static inline bool merge_tree_reserve(struct merge_tree *t, uint32_t n)
{
    t->n = n;
    t->n_few = 0;
    return n <= MERGE_FEW || vec_reserve(&t->nodes, (size_t)n * 3);
}

static inline merge_head merge_head_of(int64_t ts, bool live, uint32_t leaf)
{
    return (live ? (merge_head)((uint64_t)ts ^ (uint64_t)1 << 63) << 32 : MERGE_HEAD_DONE) | leaf;
}

/* In order of the leaves. */
static inline void merge_tree_set(struct merge_tree *t, uint32_t leaf, int64_t ts, bool live)
{
    if (t->n > MERGE_FEW) {
        t->nodes.p[2 * (size_t)t->n + leaf] = merge_head_of(ts, live, leaf);
    } else if (live) {
        t->few[t->n_few].ts = ts;
        t->few[t->n_few++].leaf = leaf;
    }
}

/* Plays all matches from the leaves up: node k has the children 2k and 2k + 1, where child c >= n is leaf c - n. */
static inline void merge_tree_build(struct merge_tree *t)
{
    uint32_t n = t->n;
    if (n <= MERGE_FEW)
        return;
    merge_head *tree = t->nodes.p, *winner = tree + n, *leaf = tree + 2 * (size_t)n;
    for (uint32_t k = n - 1; k >= 1; k--) {
        merge_head l = 2 * k >= n ? leaf[2 * k - n] : winner[2 * k];
        merge_head r = 2 * k + 1 >= n ? leaf[2 * k + 1 - n] : winner[2 * k + 1];
        winner[k] = l < r ? l : r;
        tree[k] = l < r ? r : l;
    }
    tree[0] = winner[1];
}

/* The leaf whose head is earliest (of equals the one that was made first), and the earliest time of the others,
 * INT64_MAX when there are none. False when all are done. */
static inline bool merge_tree_first(struct merge_tree *t, uint32_t *leaf, int64_t *second)
{
    if (t->n <= MERGE_FEW) {
        int64_t first_ts = INT64_MAX, second_ts = INT64_MAX;
        uint32_t first = 0;
        if (!t->n_few)
            return false;
        for (uint32_t i = 0; i < t->n_few; i++) {
            int64_t ts = t->few[i].ts, later = ts < first_ts ? first_ts : ts;
            second_ts = later < second_ts ? later : second_ts;
            first = ts < first_ts ? i : first;
            first_ts = ts < first_ts ? ts : first_ts;
        }
        t->first = first;
        *leaf = t->few[first].leaf;
        *second = second_ts;
        return true;
    }
    merge_head winner = t->nodes.p[0], other = MERGE_HEAD_DONE;
    if (winner >= MERGE_HEAD_DONE)
        return false;
    *leaf = (uint32_t)winner;
    for (uint32_t k = (t->n + *leaf) / 2; k >= 1; k /= 2) /* it lost to the winner somewhere on its path */
        other = t->nodes.p[k] < other ? t->nodes.p[k] : other;
    *second = other >= MERGE_HEAD_DONE ? INT64_MAX : (int64_t)((uint64_t)(other >> 32) ^ (uint64_t)1 << 63);
    return true;
}

/* The leaf that merge_tree_first() gave has another head now, or is done. */
static inline void merge_tree_replace_first(struct merge_tree *t, int64_t ts, bool live)
{
    if (t->n <= MERGE_FEW) {
        t->few[t->first].ts = ts;
        if (!live) {
            t->n_few--;
            memmove(&t->few[t->first], &t->few[t->first + 1], (t->n_few - t->first) * sizeof *t->few);
        }
        return;
    }
    merge_head *tree = t->nodes.p, h = merge_head_of(ts, live, (uint32_t)tree[0]);
    for (uint32_t k = (t->n + (uint32_t)h) / 2; k >= 1; k /= 2) {
        merge_head other = tree[k];
        tree[k] = other < h ? h : other;
        h = other < h ? other : h;
    }
    tree[0] = h;
}

#endif
