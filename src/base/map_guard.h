/* Keeps a mapped file that shrinks while it is read from ending the process: what is gone reads as zeros.
 *
 * The kernel sends SIGBUS for a page of a mapping that has no file behind it any more. While a mapping is guarded, a
 * handler puts zeros there and notes it. Faults elsewhere go to the handler that was there before. */
#ifndef MERIDIAN_BASE_MAP_GUARD_H
#define MERIDIAN_BASE_MAP_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct map_guard;

/* Guards a mapping, from any thread. NULL when out of memory: then it is not guarded. */
struct map_guard *map_guard_add(const void *map, size_t len);

/* A page of it was gone when it was read. */
bool map_guard_hit(const struct map_guard *g);

/* To be called before the mapping goes away; NULL is fine. */
void map_guard_remove(struct map_guard *g);

#endif
