/* What libFuzzer calls in a target, and replay_main.c for it. */
#ifndef MERIDIAN_TEST_FUZZ_H
#define MERIDIAN_TEST_FUZZ_H

#include "base/fnv.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* a target may leave it out */

/* For what an input chooses without a byte of its own. */
static inline uint32_t fuzz_sum(const uint8_t *data, size_t size)
{
    return (uint32_t)(fnv1a(FNV1A_BASIS, data, size) >> 32);
}

#endif
