/* The blocks of bytes that came from a pipe or a decompressor. */
#include "importer/input/blocks.h"

struct block *blocks_add(struct blocks *b, size_t cap)
{
    struct block *block = cap < SIZE_MAX / 2 ? mem_alloc(sizeof *block + cap) : NULL;
    if (!block || !vec_push(&b->list, block)) {
        mem_free(block);
        return NULL;
    }
    *block = (struct block){.epoch = b->next_epoch++, .cap = cap, .in_use = true};
    return block;
}

bool blocks_adopt(struct blocks *b, struct block *block)
{
    if (!vec_push(&b->list, block)) {
        mem_free(block);
        return false;
    }
    block->epoch = b->next_epoch++;
    return true;
}

void blocks_release(struct blocks *b, uint64_t oldest)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->list.n; i++) {
        struct block *block = b->list.p[i];
        if (block->epoch < oldest && !block->in_use)
            mem_free(block);
        else
            b->list.p[kept++] = block;
    }
    b->list.n = kept;
}

void blocks_free(struct blocks *b)
{
    for (size_t i = 0; i < b->list.n; i++)
        mem_free(b->list.p[i]);
    vec_free(&b->list);
}
