/* What libFuzzer calls in a target, and replay_main.c for it. */
#ifndef MERIDIAN_TEST_FUZZ_H
#define MERIDIAN_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* a target may leave it out */

#endif
