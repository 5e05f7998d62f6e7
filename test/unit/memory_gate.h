/* Memory that runs out at one call of the allocator, for alloc_set_gate(). */
#ifndef MERIDIAN_TEST_MEMORY_GATE_H
#define MERIDIAN_TEST_MEMORY_GATE_H

#include "base/alloc.h"

struct gate {
    unsigned calls, fail_at;
    bool for_good;         /* every call from there on fails, not only one */
    unsigned import_calls; /* out: those of the import itself; then args are decoded, as queries do */
};

static inline bool gate_open(void *ctx, size_t size)
{
    struct gate *g = ctx;
    (void)size;
    g->calls++;
    return g->calls < g->fail_at || (!g->for_good && g->calls > g->fail_at);
}

#endif
