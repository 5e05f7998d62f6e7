/* Keeps chunks in order of their id. */
#include "capture/service/chunk_list.h"

#include "base/alloc.h"
#include "base/bisect.h"

#include <string.h>

enum {
    BLOCK_MIN = 2, /* of many thousand writers most have one chunk here */
    BLOCK_MAX = 1024,
};

static uint32_t block_start(const struct chunk_list *l, uint32_t i)
{
    return l->blocks[i].start - l->origin;
}

/* The block that has position `pos`, or behind which it is. There is one at least. */
static uint32_t block_of_position(const struct chunk_list *l, uint32_t pos)
{
    uint32_t after = pos ? l->n_blocks : 1;
    if (after > 1)
        BISECT(after, i, block_start(l, i) <= pos);
    return after - 1;
}

/* The last block that begins with an id not above `chunk_id`, or the first one. */
static uint32_t block_of_id(const struct chunk_list *l, uint32_t chunk_id)
{
    uint32_t last = l->n_blocks - 1;
    if (!last || l->blocks[last].chunks[l->blocks[last].head].chunk_id <= chunk_id)
        return last;
    BISECT(last, i, l->blocks[i].chunks[l->blocks[i].head].chunk_id <= chunk_id);
    return last ? last - 1 : 0;
}

static uint32_t lower_bound_in(const struct chunk_block *b, uint32_t chunk_id)
{
    const struct chunk_meta *first = b->chunks + b->head;
    uint32_t at = b->n;
    if (at && first[at - 1].chunk_id < chunk_id)
        return at;
    BISECT(at, mid, first[mid].chunk_id < chunk_id);
    return at;
}

struct chunk_meta *chunk_list_at(const struct chunk_list *l, uint32_t pos)
{
    uint32_t i = block_of_position(l, pos);
    return &l->blocks[i].chunks[l->blocks[i].head + pos - block_start(l, i)];
}

uint32_t chunk_list_lower_bound(const struct chunk_list *l, uint32_t chunk_id)
{
    if (!l->n || l->blocks[0].chunks[l->blocks[0].head].chunk_id >= chunk_id)
        return 0;
    uint32_t i = block_of_id(l, chunk_id);
    return block_start(l, i) + lower_bound_in(&l->blocks[i], chunk_id);
}

struct chunk_meta *chunk_list_find(const struct chunk_list *l, uint32_t chunk_id)
{
    if (!l->n)
        return NULL;
    const struct chunk_block *b = &l->blocks[0], *last = &l->blocks[l->n_blocks - 1];
    struct chunk_meta *first = b->chunks + b->head;
    if (first->chunk_id == chunk_id) /* what is overwritten is mostly the oldest */
        return first;
    if (last->chunks[last->head + last->n - 1].chunk_id < chunk_id) /* and what is new is behind the newest */
        return NULL;
    b = &l->blocks[block_of_id(l, chunk_id)];
    first = b->chunks + b->head;
    uint32_t at = lower_bound_in(b, chunk_id);
    return at < b->n && first[at].chunk_id == chunk_id ? &first[at] : NULL;
}

/* Adds an empty block at place i. */
static bool add_block(struct chunk_list *l, uint32_t i, uint32_t cap)
{
    struct chunk_meta *chunks = mem_alloc(cap * sizeof *chunks);
    if (chunks && l->n_blocks == l->cap_blocks) {
        uint32_t room = l->cap_blocks ? l->cap_blocks * 2 : 1;
        struct chunk_block *p = mem_realloc(l->blocks, room * sizeof *p);
        if (p) {
            l->blocks = p;
            l->cap_blocks = room;
        }
    }
    if (!chunks || l->n_blocks == l->cap_blocks) {
        mem_free(chunks);
        return false;
    }
    memmove(l->blocks + i + 1, l->blocks + i, (l->n_blocks - i) * sizeof *l->blocks);
    l->n_blocks++;
    l->blocks[i] = (struct chunk_block){.chunks = chunks, .cap = cap};
    return true;
}

/* Makes room at the end of a block that is not the largest yet, or has much room in front. */
static bool widen(struct chunk_block *b)
{
    if (b->head > b->n / 2 + 8 || (b->head && b->cap == BLOCK_MAX)) {
        memmove(b->chunks, b->chunks + b->head, b->n * sizeof *b->chunks);
    } else {
        uint32_t cap = b->cap * 2 < BLOCK_MAX ? b->cap * 2 : BLOCK_MAX;
        struct chunk_meta *p = mem_alloc(cap * sizeof *p);
        if (!p)
            return false;
        memcpy(p, b->chunks + b->head, b->n * sizeof *p);
        mem_free(b->chunks);
        b->chunks = p;
        b->cap = cap;
    }
    b->head = 0;
    return true;
}

/* Makes room for a chunk at place *at of block *i, which is full and as large as one may be: what is added at either
 * end of a list begins a block, so that blocks which grow in order are full. */
static bool split(struct chunk_list *l, uint32_t *i, uint32_t *at)
{
    bool front = *i == 0 && *at == 0, back = *i + 1 == l->n_blocks && *at == l->blocks[*i].n;
    uint32_t keep = front ? 0 : back ? *at : BLOCK_MAX / 2;
    if (!add_block(l, front ? *i : *i + 1, BLOCK_MAX))
        return false;
    struct chunk_block *b = &l->blocks[*i], *next = b + 1;
    if (front) { /* filled from its end, as more may follow in front */
        b->head = BLOCK_MAX;
        return true;
    }
    next->n = b->n - keep;
    next->start = b->start + keep;
    memcpy(next->chunks, b->chunks + b->head + keep, next->n * sizeof *next->chunks);
    b->n = keep;
    if (*at > keep || back) {
        ++*i;
        *at -= keep;
    }
    return true;
}

/* Opens a gap at place `at` of a block that has room for it. */
static struct chunk_meta *open_gap(struct chunk_block *b, uint32_t at)
{
    if (b->head && at == 0)
        b->head--;
    else
        memmove(b->chunks + b->head + at + 1, b->chunks + b->head + at, (b->n - at) * sizeof *b->chunks);
    b->n++;
    return b->chunks + b->head + at;
}

/* The entry of an id behind all others, when there is room for it; NULL: look for its place. */
static struct chunk_meta *append(struct chunk_list *l, uint32_t chunk_id)
{
    struct chunk_block *b = l->n ? &l->blocks[l->n_blocks - 1] : NULL;
    if (!b || b->head + b->n == b->cap || b->chunks[b->head + b->n - 1].chunk_id >= chunk_id)
        return NULL;
    l->n++;
    return &b->chunks[b->head + b->n++];
}

/* Makes an entry somewhere else. */
static struct chunk_meta *put_in(struct chunk_list *l, uint32_t chunk_id, uint32_t *pos)
{
    if (!l->n_blocks && !add_block(l, 0, BLOCK_MIN))
        return NULL;
    uint32_t i = block_of_id(l, chunk_id), at = lower_bound_in(&l->blocks[i], chunk_id);
    struct chunk_block *b = &l->blocks[i];
    bool full = b->head + b->n == b->cap && !(b->head && at == 0);
    bool largest = b->cap == BLOCK_MAX && b->head < BLOCK_MAX / 4; /* else moving it is paid for by what has left */
    if (full && !(largest ? split(l, &i, &at) : widen(b)))
        return NULL;
    struct chunk_meta *m = open_gap(&l->blocks[i], at);
    l->n++;
    if (i == 0 && at == 0) {
        l->blocks[0].start = --l->origin;
    } else {
        for (uint32_t k = i + 1; k < l->n_blocks; k++)
            l->blocks[k].start++;
    }
    *pos = block_start(l, i) + at;
    return m;
}

struct chunk_meta *chunk_list_insert(struct chunk_list *l, uint32_t chunk_id, uint32_t *pos)
{
    struct chunk_meta *m = append(l, chunk_id);
    *pos = l->n - 1;
    if (!m)
        m = put_in(l, chunk_id, pos);
    if (m)
        *m = (struct chunk_meta){.chunk_id = chunk_id};
    return m;
}

static void drop_block(struct chunk_list *l, uint32_t i)
{
    mem_free(l->blocks[i].chunks);
    memmove(l->blocks + i, l->blocks + i + 1, (l->n_blocks - i - 1) * sizeof *l->blocks);
    l->n_blocks--;
}

void chunk_list_remove(struct chunk_list *l, uint32_t pos)
{
    uint32_t i = block_of_position(l, pos);
    struct chunk_block *b = &l->blocks[i];
    uint32_t at = pos - block_start(l, i);
    if (at == 0)
        b->head++;
    else
        memmove(b->chunks + b->head + at, b->chunks + b->head + at + 1, (b->n - at - 1) * sizeof *b->chunks);
    b->n--;
    l->n--;
    if (pos == 0) {
        l->origin++;
        b->start++;
    } else {
        for (uint32_t k = i + 1; k < l->n_blocks; k++)
            l->blocks[k].start--;
    }
    if (!b->n && l->n_blocks > 1)
        drop_block(l, i);
    else if (!b->n)
        b->head = 0;
}

bool chunk_list_copy(struct chunk_list *to, const struct chunk_list *from)
{
    for (uint32_t i = 0; i < from->n_blocks; i++) {
        const struct chunk_block *b = &from->blocks[i];
        uint32_t cap = b->n > BLOCK_MIN ? b->n : BLOCK_MIN;
        if (!add_block(to, i, cap))
            return false;
        memcpy(to->blocks[i].chunks, b->chunks + b->head, b->n * sizeof *b->chunks);
        to->blocks[i].n = b->n;
        to->blocks[i].start = b->start;
    }
    to->n = from->n;
    to->origin = from->origin;
    return true;
}

void chunk_list_free(struct chunk_list *l)
{
    for (uint32_t i = 0; i < l->n_blocks; i++)
        mem_free(l->blocks[i].chunks);
    mem_free(l->blocks);
    *l = (struct chunk_list){0};
}
