/* The allocation hook. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static alloc_gate gate_fn;
static void *gate_ctx;

void alloc_set_gate(alloc_gate gate, void *ctx)
{
    gate_fn = gate;
    gate_ctx = ctx;
}

bool alloc_allowed(size_t size)
{
    return __builtin_expect(!gate_fn, 1) || gate_fn(gate_ctx, size);
}

void *mem_alloc(size_t size)
{
    return alloc_allowed(size) ? malloc(size) : NULL;
}

void *mem_zalloc(size_t size)
{
    return alloc_allowed(size) ? calloc(1, size) : NULL;
}

void *mem_realloc(void *p, size_t size)
{
    return alloc_allowed(size) ? realloc(p, size) : NULL;
}

void mem_free(void *p)
{
    free(p);
}

char *mem_strndup(const char *s, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (!copy)
        return NULL;
    if (len) /* an empty view may have no bytes at all */
        memcpy(copy, s, len);
    copy[len] = 0;
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}
