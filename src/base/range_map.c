/* Ranges in a treap: a search tree by start, kept shallow by a random priority of each node. */
#include "base/range_map.h"

struct range_node {
    struct range range;
    uint64_t priority;
    struct range_node *below, *above;
};

/* xorshift64: enough to keep the tree shallow whatever the order of what comes. */
static uint64_t next_priority(struct range_map *m)
{
    uint64_t x = m->random ? m->random : 0x9e3779b97f4a7c15;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return m->random = x;
}

/* The link to the last range that starts in front of `end`, NULL when none does. */
static struct range_node **last_before(struct range_node **link, uint64_t end)
{
    struct range_node **last = NULL;
    while (*link) {
        if ((*link)->range.start < end) {
            last = link;
            link = &(*link)->above;
        } else {
            link = &(*link)->below;
        }
    }
    return last;
}

bool range_map_find(const struct range_map *m, uint64_t at, struct range *found)
{
    for (const struct range_node *n = m->root; n;) {
        if (at < n->range.start) {
            n = n->below;
        } else if (at >= n->range.end) {
            n = n->above;
        } else {
            *found = n->range;
            return true;
        }
    }
    return false;
}

bool range_map_take(struct range_map *m, uint64_t start, uint64_t end, struct range *taken)
{
    struct range_node **link = last_before(&m->root, end);
    if (!link || (*link)->range.end <= start)
        return false;
    struct range_node *out = *link, *below = out->below, *above = out->above;
    while (below && above) { /* what is below it and what is above it become one tree in its place */
        if (below->priority > above->priority) {
            *link = below;
            link = &below->above;
            below = below->above;
        } else {
            *link = above;
            link = &above->below;
            above = above->below;
        }
    }
    *link = below ? below : above;
    *taken = out->range;
    out->above = m->unused;
    m->unused = out;
    return true;
}

static struct range_node *new_node(struct range_map *m)
{
    struct range_node *n = m->unused;
    if (n)
        m->unused = n->above;
    else
        n = arena_alloc(m->arena, sizeof *n);
    return n;
}

bool range_map_add(struct range_map *m, struct range range)
{
    struct range_node *n = new_node(m);
    if (!n)
        return false;
    *n = (struct range_node){.range = range, .priority = next_priority(m)};
    struct range_node **link = &m->root;
    while (*link && (*link)->priority >= n->priority)
        link = range.start < (*link)->range.start ? &(*link)->below : &(*link)->above;
    struct range_node *rest = *link, **below = &n->below, **above = &n->above;
    *link = n;
    while (rest) { /* what was here is split at the new range */
        if (rest->range.start < range.start) {
            *below = rest;
            below = &rest->above;
            rest = rest->above;
        } else {
            *above = rest;
            above = &rest->below;
            rest = rest->below;
        }
    }
    *below = NULL;
    *above = NULL;
    return true;
}
