/* A bump allocator: many small pieces, freed together.
 *
 * Ownership: what comes from an arena lives until arena_free(). A zeroed struct is an empty arena. When memory runs
 * out, arena_alloc() returns NULL and latches `failed`, which a caller may test once at the end of a batch. */
#ifndef MERIDIAN_BASE_ARENA_H
#define MERIDIAN_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *next;                 /* free space of the newest block */
    char *end;
    size_t total_bytes; /* memory held, for statistics */
    bool failed;        /* an allocation has failed */
};

/* `size` bytes aligned to 8; undefined contents. NULL when out of memory. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);

/* As arena_alloc() without alignment, for strings and packed bytes. */
void *arena_alloc_bytes(struct arena *a, size_t size);

/* A copy with a NUL behind it. */
char *arena_strndup(struct arena *a, const void *s, size_t len);

/* printf into the arena. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Frees everything; the arena is empty and usable again. */
void arena_free(struct arena *a);

#endif
