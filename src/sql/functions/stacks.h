/* Call stacks as values, and profiles made of them. */
#ifndef MERIDIAN_SQL_FUNCTIONS_STACKS_H
#define MERIDIAN_SQL_FUNCTIONS_STACKS_H

#include "sql/functions/functions.h"

enum { STACK_ENTRIES = 1 };

/* Fields of an entry. */
enum stack_entry_kind { STACK_NAME = 2, STACK_CALLSITE = 3, STACK_FRAME = 4, STACK_ANNOTATED_CALLSITE = 5 };

/* A profile in the format of pprof (profile.proto), on its way. */
struct pprof;

struct pprof *pprof_open(const struct storage *st); /* NULL when out of memory */
void pprof_close(struct pprof *p);

/* Another kind of value that every sample has. */
void pprof_add_type(struct pprof *p, struct slice type, struct slice unit);

/* Adds n values to those of a stack (a value of stacks.c; empty: none). False when the stack is damaged. */
bool pprof_add(struct pprof *p, struct slice stack, const int64_t *values, size_t n);

/* The whole profile, uncompressed; valid until pprof_close(). Empty when out of memory. */
struct slice pprof_write(struct pprof *p);

#endif
