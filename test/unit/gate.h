/* Imports of a trace in memory with memory running out at one call of the allocator. */
#ifndef MERIDIAN_TEST_GATE_H
#define MERIDIAN_TEST_GATE_H

#include "importer/importer.h"
#include "memory_gate.h"

#include <check.h>

/* Imports `trace` and decodes all args; true when that went well. */
static inline bool import_with_gate(struct slice trace, struct gate *g)
{
    struct import_options options = {0};
    struct error err;
    struct storage s;
    struct importer *i;
    bool failed = true;
    alloc_set_gate(gate_open, g);
    if (storage_init(&s) == 0) {
        if (importer_open(&i, &s, &options, &err) == 0) {
            failed = importer_feed(i, trace.p, trace.len, &err) != 0;
            failed |= importer_finish(i, &err) != 0;
            g->import_calls = g->calls;
            struct arg_list list = {0};
            for (uint32_t id = 0; id < args_count(&s.args); id++) {
                list.n = 0;
                args_values(&s.args, argset_of_cell(id), &list);
            }
            arg_list_free(&list);
            importer_close(i);
        }
        storage_free(&s);
    }
    alloc_set_gate(NULL, NULL);
    return !failed;
}

/* Imports `trace` again and again, each time with a later call failing, until none does. Returns about how many calls
 * there are. */
static inline unsigned import_without_memory(struct slice trace)
{
    for (unsigned k = 1;; k += 1 + k / 64) {
        struct gate g = {.fail_at = k, .for_good = k % 2};
        bool good = import_with_gate(trace, &g);
        if (g.calls < k) {
            ck_assert_msg(good, "it fails with all the memory that it wants");
            return k;
        }
        ck_assert_msg(!good || !g.for_good || k > g.import_calls, "call %u failed and nobody said so", k);
        ck_assert_uint_lt(k, 1000000);
    }
}

#endif
