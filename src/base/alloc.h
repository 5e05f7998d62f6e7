/* The allocation hook: all memory of Meridian's own code comes through here, so that a test can fail the k-th call.
 *
 * The hook, and how the heap grows, are the process-wide state in base: set them before any thread starts. */
#ifndef MERIDIAN_BASE_ALLOC_H
#define MERIDIAN_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Decides whether an allocation of `size` bytes may go ahead; false makes it fail as if memory were exhausted. */
typedef bool (*alloc_gate)(void *ctx, size_t size);

/* Installs a gate for tests; NULL removes it. */
void alloc_set_gate(alloc_gate gate, void *ctx);

/* What the gate says: for allocators of others that a test wants to fail, too. */
bool alloc_allowed(size_t size);

/* From now on the kernel is asked for the pages of the heap's end some hundred at a time, before they are touched: that
 * costs less than a fault for each. For programs that are about to fill much memory; up to 512 KiB are taken that may
 * not be needed. Where the kernel cannot do it (before Linux 5.14) nothing changes. Call it before threads start. */
void alloc_populate_heap(void);

/* As malloc/calloc/realloc/free. mem_realloc(p, 0) is not used. mem_free(NULL) is fine. */
void *mem_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_zalloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_realloc(void *p, size_t size) __attribute__((alloc_size(2)));
void mem_free(void *p);

/* A copy of `len` bytes with a NUL behind it; NULL when out of memory. */
char *mem_strndup(const char *s, size_t len);
char *mem_strdup(const char *s);

#endif
