/* The bump allocator. */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct arena_block {
    struct arena_block *older;
    size_t size;
    char data[] __attribute__((aligned(16)));
};

static void *grow(struct arena *a, size_t size)
{
    size_t block_size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    if (block_size > LARGEST_BLOCK)
        block_size = LARGEST_BLOCK;
    bool own_block = size > block_size / 4; /* a large piece does not end the current block */
    if (own_block)
        block_size = size;
    struct arena_block *b = size > SIZE_MAX / 2 ? NULL : mem_alloc(sizeof *b + block_size);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    b->size = block_size;
    a->total_bytes += sizeof *b + block_size;
    if (own_block && a->blocks) {
        b->older = a->blocks->older;
        a->blocks->older = b;
        return b->data;
    }
    b->older = a->blocks;
    a->blocks = b;
    a->next = b->data + size;
    a->end = b->data + block_size;
    return b->data;
}

void *arena_alloc_bytes(struct arena *a, size_t size)
{
    if ((size_t)(a->end - a->next) < size || !a->next)
        return grow(a, size);
    void *p = a->next;
    a->next += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t pad = -(uintptr_t)a->next & 7;
    if (!a->next || (size_t)(a->end - a->next) < pad || (size_t)(a->end - a->next) - pad < size)
        return grow(a, size);
    char *p = a->next + pad;
    a->next = p + size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);
    return p ? memset(p, 0, size) : NULL;
}

char *arena_strndup(struct arena *a, const void *s, size_t len)
{
    char *p = arena_alloc_bytes(a, len + 1);
    if (!p)
        return NULL;
    if (len)
        memcpy(p, s, len);
    p[len] = 0;
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : arena_alloc_bytes(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void arena_free(struct arena *a)
{
    for (struct arena_block *b = a->blocks, *older; b; b = older) {
        older = b->older;
        mem_free(b);
    }
    *a = (struct arena){0};
}
